//! The readers and parsers, each fed with one altered seed. A target returns the size of its input.

use crate::mutate::Dice;
use diffclf::discrete::model::{StatesCheckpoint, StatesModel};
use diffclf::discrete::network::SitesNetwork;
use diffclf::discrete::{self, LearnedStates};
use diffclf::energy::Energy;
use diffclf::energy::compose::Expression;
use diffclf::engine::{Isa, Pool};
use diffclf::format::model::{ModelFile, Tensor, TensorData};
use diffclf::format::npy::NpyView;
use diffclf::format::trajectory::{Kind, Trajectory};
use diffclf::metric::Regions;
use diffclf::model::{Checkpoint, Content, Model};
use diffclf::molecule::{
    Beads, EnergyTerms, ForceField, Solvent, SolventModel, Topology, read_coordinates,
};
use diffclf::objective::parse_terms;
use diffclf::process::{Process, Spacing, TimeSampler};
use diffclf::sample::Diffusivity;
use diffclf::sample::mcmc::Kernel;
use diffclf::train::StepReport;
use diffclf_experiments::cell::CellRecord;
use diffclf_run::archive::{Member, member};
use diffclf_run::beads::BeadFile;
use diffclf_run::data::DataSet;
use diffclf_run::named::{Named, word};
use diffclf_run::prepare::Preparation;
use diffclf_run::run_folder::RunFolder;
use diffclf_run::settings::Settings;
use diffclf_run::train::{Job, train_on};
use diffclf_run::{Bar, Silent, Watch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A native structure, and a topology that begins with it.
const NATIVE: &str = include_str!("../../experiments/chignolin/native.pdb");
const BEADS: &str = include_str!("../../experiments/chignolin/go.toml");

/// A reader or parser.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// So many inputs of the cheapest target take the time of one.
    pub cost: u64,
    /// Whether it is a reader of files, whose memory is bounded by its input.
    pub reads: bool,
    /// Feeds it with one input.
    pub run: fn(&Bench, &mut Dice) -> usize,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "npy",
        cost: 1,
        reads: true,
        run: npy,
    },
    Target {
        name: "archive",
        cost: 1,
        reads: true,
        run: archive,
    },
    Target {
        name: "table",
        cost: 1,
        reads: true,
        run: table,
    },
    Target {
        name: "trajectory",
        cost: 1,
        reads: true,
        run: trajectory,
    },
    Target {
        name: "topology",
        cost: 4,
        reads: true,
        run: topology,
    },
    Target {
        name: "beads",
        cost: 1,
        reads: true,
        run: beads,
    },
    Target {
        name: "coordinates",
        cost: 1,
        reads: true,
        run: coordinates,
    },
    Target {
        name: "container",
        cost: 1,
        reads: true,
        run: container,
    },
    Target {
        name: "model",
        cost: 4,
        reads: true,
        run: resealed_model,
    },
    Target {
        name: "energy",
        cost: 40,
        reads: false,
        run: energy,
    },
    Target {
        name: "checkpoint",
        cost: 40,
        reads: false,
        run: resealed_checkpoint,
    },
    Target {
        name: "states",
        cost: 4,
        reads: true,
        run: states,
    },
    Target {
        name: "words",
        cost: 1,
        reads: true,
        run: words,
    },
    Target {
        name: "settings",
        cost: 1,
        reads: true,
        run: settings,
    },
    Target {
        name: "resolve",
        cost: 200,
        reads: false,
        run: resolve,
    },
    Target {
        name: "cell",
        cost: 1,
        reads: true,
        run: cell,
    },
    Target {
        name: "log",
        cost: 400,
        reads: false,
        run: log,
    },
];

/// Files that mdtraj wrote.
const FRAMES: [(Kind, &[u8]); 5] = [
    (
        Kind::Xtc,
        include_bytes!("../../core/tests/mdtraj/near.xtc"),
    ),
    (Kind::Xtc, include_bytes!("../../core/tests/mdtraj/far.xtc")),
    (Kind::Xtc, include_bytes!("../../core/tests/mdtraj/few.xtc")),
    (Kind::Dcd, include_bytes!("../../core/tests/mdtraj/few.dcd")),
    (Kind::Pdb, include_bytes!("../../core/tests/mdtraj/few.pdb")),
];

/// Seeds, and what is needed to go on with what was read.
pub struct Bench {
    arrays: Vec<Vec<u8>>,
    archives: Vec<Vec<u8>>,
    topology: Vec<u8>,
    coordinates: Vec<u8>,
    models: Vec<Vec<u8>>,
    checkpoints: Vec<Vec<u8>>,
    states: Vec<Vec<u8>>,
    texts: Vec<String>,
    cells: Vec<String>,
    config: String,
    log: Vec<u8>,
    pool: Arc<Pool>,
    folder: TempDir,
}

/// Stops a training after so many steps.
struct Stopping(AtomicU64);

impl Watch for Stopping {
    fn begin(&self, _label: &str, _total: u64, _done: u64) -> Box<dyn Bar> {
        Box::new(Silent)
    }
    fn note(&self, _text: &str) {}
    fn stopped(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

const TINY: &str = "batch = 16\nsteps = 3\nscore_steps = 2\nwidth = 8\ndepth = 2\nfeatures = 4\ngrid_levels = 12\nheld_out = 0.1\n\
                    held_out_every = 2\nlog_every = 1\n";

const TABLES: [&str; 4] = [
    "phi,psi\n-1.5,2e1\n0.25,-3\n",
    "# made today\r\n1;2;3\r\n4;5;6\r\n",
    "1\t2\t3\n4\t5\t6",
    "\"a \"\"b\"\"\",c\n1,nan\ninf,-0\n",
];

const TEXTS: [&str; 28] = [
    "-pi/2 < phi < 0 and not (`a:b` >= 1e-3 or x2 != atan2(1, phi))",
    "2*(1 - cos(phi)) + 0.5*x1^2 - log(abs(x2))**-0.5",
    "A and B",
    "0.3*A or 0.7*(B and not C)^0.5",
    "((A))^2 and not not B or 1e-3*C",
    "dsm+diffclf",
    "dsm+0.1*fokker-planck(laplacian=difference)+binary-bregman(generator=kl)",
    "bayes(gap=4,stop-gradient=yes)+0.5*anchor",
    "{kind=\"edm\", sigma_max=80.0}",
    "{kind = \"vp\", beta_min = 0.1, beta_max = 20.0}",
    "{kind=\"ve\", sigma_min=0.01, sigma_max=50.0}",
    "trigonometric",
    "{kind=\"linear\", a=0.7}",
    "{kind=\"log-snr-normal\", mean=8.4, std=1.0}",
    "{kind=\"close\", share=1e-15}",
    "{kind=\"multiscale\", snr_share=0.5}",
    "grid-stratified",
    "{kind=\"power\", rho=7.0}",
    "{ kind = \"bridge\", factor = 0.5}",
    "0.5",
    "mala",
    "hmc",
    "quadrants",
    "portable",
    "rings",
    "process = { kind = \"edm\", sigma_max = 80.0 }\nrate = 0.001\nsteps = 100\n",
    "times = \"close\"\nlevels = 4\nbatch = 32\nt_min = 1e-4\nt_max = 0.999\nspacing = \"linear\"\n",
    "system = \"mog40\"\ndim = 8\nsamples = 100\nparticles = 4\nnetwork = \"pairs\"\nform = \"scalar\"\n",
];

impl Bench {
    /// Reads the seeds, and trains a tiny model for those of its kind.
    pub fn new() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let files = |folder: PathBuf, end: &str| -> Vec<Vec<u8>> {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
            paths.retain(|path| path.extension().is_some_and(|found| found == end));
            paths.sort();
            paths
                .iter()
                .filter_map(|path| std::fs::read(path).ok())
                .collect()
        };
        let arrays = files(root.join("core/tests/npy"), "npy");
        assert!(!arrays.is_empty(), "core/tests/npy holds no arrays");
        let archives = files(root.join("run/tests/npz"), "npz");
        assert!(!archives.is_empty(), "run/tests/npz holds no archives");
        let molecule = root.join("experiments/aldp-solvation");
        let [topology, coordinates] = ["prmtop", "crd"].map(|end| {
            let found = files(molecule.clone(), end);
            found
                .into_iter()
                .next()
                .expect("experiments/aldp-solvation holds a molecule")
        });
        let kept = files(root.join("experiments/blindness/cells"), "json");
        let cells: Vec<String> = kept
            .into_iter()
            .filter_map(|c| String::from_utf8(c).ok())
            .collect();
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let pool = Arc::new(Pool::new(1));
        let (mut models, mut checkpoints) = (Vec::new(), Vec::new());
        let (mut config, mut log) = (String::new(), Vec::new());
        let mut states = Vec::new();
        for (name, stop, more) in [
            ("states", 2, "states = 4\n"),
            ("mixture", 100, ""),
            ("stopped", 2, ""),
            ("gaussian", 4, "base = \"gaussian\"\nscale = \"common\"\n"),
        ] {
            let path = folder.path().join(name);
            let job = Job {
                settings: toml::from_str(&format!("{TINY}{more}"))
                    .expect("these settings are right"),
                path: path.clone(),
                first_stage: None,
                from: None,
                time: None,
                resume: false,
                force: false,
                checkpoint_every: Duration::ZERO,
                watch: Arc::new(Stopping(AtomicU64::new(stop))),
                pool: pool.clone(),
            };
            // A run that is stopped is an error, and leaves what is wanted.
            let symbols = name == "states";
            let _ = train_on(job, if symbols { symbol_rows() } else { rows() });
            let read =
                |file: &str| std::fs::read(path.join(file)).expect("the run has left its files");
            if symbols {
                states.push(read("model.safetensors"));
                states.push(read("checkpoint.safetensors"));
                continue;
            }
            models.push(read("model.safetensors"));
            checkpoints.push(read("checkpoint.safetensors"));
            if name == "stopped" {
                config = String::from_utf8(read("config.toml")).expect("settings are text");
                log = read("log.jsonl");
            }
        }
        Self {
            arrays,
            archives,
            topology,
            coordinates,
            models,
            checkpoints,
            states,
            texts: TEXTS.map(String::from).to_vec(),
            cells,
            config,
            log,
            pool,
            folder,
        }
    }
}

/// The data of the tiny runs.
fn rows() -> Vec<DataSet> {
    let values: Vec<f64> = (0..200)
        .map(|i| (f64::from(i) * 0.7).sin() + f64::from(i % 3) * 1.3)
        .collect();
    DataSet::from_array("rows", values, 100, 2)
        .into_iter()
        .collect()
}

/// Rows of symbols.
fn symbol_rows() -> Vec<DataSet> {
    let values: Vec<f64> = (0..300).map(|i| f64::from(i * i % 7 % 4)).collect();
    DataSet::from_array("symbols", values, 100, 3)
        .into_iter()
        .collect()
}

fn npy(bench: &Bench, dice: &mut Dice) -> usize {
    let mut bytes = dice.pick(&bench.arrays).clone();
    dice.bytes(&mut bytes);
    if let Ok(view) = NpyView::parse(&bytes) {
        assert_eq!(view.to_vec_f32().len(), view.rows() * view.dim());
        let _ = (view.first_non_finite(), view.column_statistics());
    }
    bytes.len()
}

fn archive(bench: &Bench, dice: &mut Dice) -> usize {
    let mut bytes = dice.pick(&bench.archives).clone();
    dice.bytes(&mut bytes);
    for key in [None, Some("rows"), Some("other")] {
        if let Ok(Member::Stored(part)) = member(Path::new("a.npz"), &bytes, key) {
            let _ = NpyView::parse(&bytes[part]);
        }
    }
    bytes.len()
}

fn table(_: &Bench, dice: &mut Dice) -> usize {
    let seed = *dice.pick(&TABLES);
    let text = dice.text(seed);
    if let Ok(table) = diffclf_run::table::read(Path::new("a.csv"), text.as_bytes()) {
        assert!(NpyView::parse(&table.array).is_ok());
    }
    text.len()
}

/// Frames of atoms; what is read can be written and read again.
fn trajectory(_: &Bench, dice: &mut Dice) -> usize {
    let (kind, seed) = dice.pick(&FRAMES);
    let mut bytes = seed.to_vec();
    dice.bytes(&mut bytes);
    if let Ok(found) = Trajectory::read(*kind, &bytes) {
        assert_eq!(found.positions.len(), 3 * found.atoms * found.frames());
        let mut again = Vec::new();
        if found.write(Kind::Dcd, 1.0, &mut again).is_ok() {
            assert!(Trajectory::read(Kind::Dcd, &again).is_ok());
        }
    }
    bytes.len()
}

/// A molecule that was read is put to use.
fn topology(bench: &Bench, dice: &mut Dice) -> usize {
    let mut bytes = bench.topology.clone();
    dice.bytes(&mut bytes);
    if let Ok(topology) = Topology::from_prmtop(&bytes) {
        let _ = topology.backbone();
        if let Ok(field) = ForceField::new(&topology, Some(SolventModel::Obc1)) {
            let positions: Vec<f64> = (0..3 * field.atoms())
                .map(|k| (k as f64 * 0.7).sin())
                .collect();
            let (mut terms, mut forces) = ([EnergyTerms::default()], positions.clone());
            let done = field.energies_and_forces(
                Isa::PORTABLE,
                &positions,
                &[Solvent::WATER],
                &mut terms,
                &mut forces,
            );
            assert!(done.is_ok());
        }
    }
    bytes.len()
}

/// A topology of beads that was read is put to use: a structure or the text beside one.
fn beads(_bench: &Bench, dice: &mut Dice) -> usize {
    let mut bytes = NATIVE.as_bytes().to_vec();
    let altered = dice.below(2) == 0;
    if altered {
        dice.bytes(&mut bytes);
    }
    let text = match altered {
        true => BEADS.to_string(),
        false => dice.text(BEADS),
    };
    let structure = |_: &Path| {
        let frames = Trajectory::read(Kind::Pdb, &bytes)?;
        Ok(Beads::of_structure(&frames)?)
    };
    if let Ok(file) = BeadFile::parse(&text, structure)
        && let Ok(model) = file.go_model()
    {
        let (mut energy, mut score) = ([0.0], vec![0.0; model.dim()]);
        model.energy_and_score(&[0.0], model.native(), &mut energy, &mut score);
    }
    bytes.len() + text.len()
}

fn coordinates(bench: &Bench, dice: &mut Dice) -> usize {
    let mut bytes = bench.coordinates.clone();
    dice.bytes(&mut bytes);
    if let Ok(positions) = read_coordinates(&bytes) {
        assert!(!positions.is_empty() && positions.len().is_multiple_of(3));
    }
    bytes.len()
}

/// Without a new seal: nothing but the first of them may pass.
fn container(bench: &Bench, dice: &mut Dice) -> usize {
    let from = if dice.below(2) == 0 {
        &bench.models
    } else {
        &bench.checkpoints
    };
    let whole = dice.pick(from);
    let mut bytes = whole.clone();
    dice.bytes(&mut bytes);
    let _ = diffclf::format::model::peek(&bytes[..bytes.len().min(9)]);
    assert!(ModelFile::from_bytes(&bytes).is_err() || bytes == *whole);
    bytes.len()
}

/// The same file, altered by somebody who can seal it.
fn resealed(dice: &mut Dice, seed: &[u8]) -> Option<Vec<u8>> {
    let file = ModelFile::from_bytes(seed).expect("the seed is a whole file");
    let mut content = file.content().expect("its content is JSON");
    if dice.below(8) > 0 {
        dice.json(&mut content);
    }
    let mut altered = ModelFile::new(file.kind(), &content).ok()?;
    let victim = dice.below(4 * file.tensors().len());
    for (k, (name, tensor)) in file.tensors().iter().enumerate() {
        let TensorData::F32(numbers) = tensor.data() else {
            continue;
        };
        let (mut shape, mut numbers) = (tensor.shape().to_vec(), numbers.clone());
        if k == victim {
            match dice.below(4) {
                0 => {
                    let at = dice.below(numbers.len());
                    let odd = [f32::NAN, f32::INFINITY, 1e38, -1e38, 1e-40];
                    numbers[at] = *dice.pick(&odd);
                }
                1 => shape.reverse(),
                2 => {
                    numbers.pop();
                    shape = vec![numbers.len()];
                }
                _ => continue,
            }
        }
        altered
            .insert(name, Tensor::new(shape, numbers).ok()?)
            .ok()?;
    }
    altered.to_bytes().ok()
}

fn read_resealed_model(bench: &Bench, dice: &mut Dice) -> (usize, Option<Model>) {
    let seed = dice.pick(&bench.models).clone();
    match resealed(dice, &seed) {
        Some(bytes) => (bytes.len(), Model::from_bytes(&bytes).ok()),
        None => (0, None),
    }
}

fn resealed_model(bench: &Bench, dice: &mut Dice) -> usize {
    read_resealed_model(bench, dice).0
}

/// A model that was read is put to use.
fn energy(bench: &Bench, dice: &mut Dice) -> usize {
    let (bytes, Some(model)) = read_resealed_model(bench, dice) else {
        return 0;
    };
    let Content { spec, .. } = &model.content;
    if spec.bytes_of_point() > 1 << 24 || spec.dim > 64 {
        return bytes;
    }
    if let Ok(energy) = model.in_data_coordinates(bench.pool.clone(), Isa::PORTABLE) {
        let (point, mut out) = (vec![0.3; spec.dim], [0.0]);
        energy.log_density(&[spec.grid.t_min()], &point, &mut out);
        let mut score = point.clone();
        energy.score(&[spec.grid.t_max()], &point, &mut score);
        let _ = model.to_bytes();
    }
    bytes
}

/// A checkpoint that was read is trained on with.
fn resealed_checkpoint(bench: &Bench, dice: &mut Dice) -> usize {
    let seed = dice.pick(&bench.checkpoints).clone();
    let Some(bytes) = resealed(dice, &seed) else {
        return 0;
    };
    let Ok(checkpoint) = Checkpoint::from_bytes(&bytes) else {
        return bytes.len();
    };
    let settings: Settings = toml::from_str(&bench.config).expect("these settings are right");
    let folder = bench.folder.path();
    if let Ok(found) = Preparation::resumed(&settings, &rows(), checkpoint, folder)
        && let Ok(mut trainer) = found.trainer(bench.pool.clone(), Isa::PORTABLE)
    {
        for _ in 0..2 {
            if trainer.finished() || trainer.advance(&mut StepReport::default()).is_err() {
                break;
            }
        }
    }
    bytes.len()
}

/// A model of states, or its checkpoint; one that was read is put to use.
fn states(bench: &Bench, dice: &mut Dice) -> usize {
    let seed = dice.pick(&bench.states).clone();
    let Some(bytes) = resealed(dice, &seed) else {
        return 0;
    };
    let _ = StatesCheckpoint::from_bytes(&bytes);
    if let Ok(model) = StatesModel::from_bytes(&bytes) {
        let spec = model.content.spec.clone();
        let sizes = match spec.network {
            SitesNetwork::Mlp { width, depth } => (width, depth),
            SitesNetwork::Transformer {
                width,
                depth,
                heads,
                head_width,
            } => (width.max(heads.saturating_mul(head_width)), depth),
        };
        if spec.space.sites <= 64 && sizes.0 <= 64 && sizes.1 <= 8 {
            let params = model.best().to_vec();
            if let Ok(energy) =
                LearnedStates::new(spec.clone(), params, bench.pool.clone(), Isa::PORTABLE)
            {
                let (row, mut out) = (vec![0; spec.space.sites], [0.0]);
                discrete::Energy::log_density(&energy, spec.grid.t_min(), &row, &mut out);
            }
        }
    }
    bytes.len()
}

fn words(bench: &Bench, dice: &mut Dice) -> usize {
    let seed = dice.pick(&bench.texts).clone();
    let text = dice.text(&seed);
    if let Ok(expression) = Expression::parse(&text) {
        // What was read is written as it can be read.
        assert!(
            Expression::parse(&expression.to_string()).is_ok(),
            "{text:?} {expression}"
        );
    }
    let columns = ["phi".to_string(), "a:b".into()];
    for formula in [
        diffclf::expression::Expression::number(&text, &columns, 3),
        diffclf::expression::Expression::condition(&text, &columns, 3),
    ]
    .into_iter()
    .flatten()
    {
        let mut slope = [0.0; 3];
        let value = formula.value_and_gradient(&[0.3, -1.2, 2.0], &mut slope);
        assert_eq!(
            value.to_bits(),
            formula.value(&[0.3, -1.2, 2.0]).to_bits(),
            "{text:?}"
        );
    }
    let _ = parse_terms(&text);
    if let Ok(Named(process)) = text.parse::<Named<Process>>() {
        let _ = (
            process.validate(),
            diffclf::process::TimeGrid::default_for(&process),
        );
    }
    if let Ok(Named(times)) = text.parse::<Named<TimeSampler>>() {
        let process = Process::default();
        let grid = diffclf::process::TimeGrid::default_for(&process);
        let _ = times.validate(&process, &grid, 3, 4);
    }
    let _ = (
        text.parse::<Named<Spacing>>(),
        text.parse::<Named<Diffusivity>>(),
    );
    let _ = (
        Kernel::by_name(&text),
        Process::by_name(&text),
        Isa::by_name(&text),
    );
    let _ = word::<Regions>(&text);
    text.len()
}

fn settings(bench: &Bench, dice: &mut Dice) -> usize {
    let seed = match dice.below(4) {
        0 => dice.pick(&bench.texts).clone(),
        _ => bench.config.clone(),
    };
    let text = dice.text(&seed);
    if let Ok(settings) = toml::from_str::<Settings>(&text) {
        let _ = settings.to_toml();
    }
    text.len()
}

/// Settings that were read become a run, up to its first step.
fn resolve(bench: &Bench, dice: &mut Dice) -> usize {
    let text = dice.text(&format!("{TINY}base = \"gaussian\"\n"));
    let Ok(settings) = toml::from_str::<Settings>(&text) else {
        return text.len();
    };
    let named = settings.data.is_some() || settings.system.is_some() || settings.has_end();
    if named {
        return text.len();
    }
    let (isa, rows) = (Isa::PORTABLE, rows());
    if let Ok(found) = Preparation::fresh(&settings, &rows, &bench.pool, isa, &Silent)
        && found.content.spec.bytes_of_point() < 1 << 20
        && found.content.spec.layout().len() < 1 << 20
        && let Ok(mut trainer) = found.trainer(bench.pool.clone(), isa)
    {
        let _ = trainer.advance(&mut StepReport::default());
    }
    text.len()
}

fn cell(bench: &Bench, dice: &mut Dice) -> usize {
    let seed = dice.pick(&bench.cells).clone();
    let text = dice.text(&seed);
    let _ = serde_json::from_str::<CellRecord>(&text);
    let _ = serde_json::from_str::<Value>(&text);
    text.len()
}

/// A log that a bad disk has spoiled does not stand in the way of a run.
fn log(bench: &Bench, dice: &mut Dice) -> usize {
    let path = bench.folder.path().join("stopped");
    let mut bytes = bench.log.clone();
    dice.bytes(&mut bytes);
    std::fs::write(path.join("log.jsonl"), &bytes).expect("the folder is ours");
    let folder = RunFolder::take(&path).expect("the folder is ours");
    let (_, seconds) = folder.log(5).expect("a log never stands in the way");
    assert!(seconds >= 0.0);
    bytes.len()
}
