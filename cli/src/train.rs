//! `diffclf train`: from samples to a model, in a run folder that can be left and taken up again at any moment.

use crate::coordinates::Coordinates;
use crate::data::{Moments, Origin};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::print::note;
use crate::run_folder::{CONFIG, RunFolder};
use crate::run_report::after_training;
use crate::session::Session;
use crate::settings::Settings;
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::model::{Checkpoint, Content, Record};
use diffclf::objective::ObjectiveName;
use diffclf::rng::STREAMS;
use diffclf::system::System;
use diffclf::train::{Endpoints, Standardisation, State, TrainSettings, Trainer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  diffclf train samples.npy -o runs/mine
  diffclf train samples.npy -o runs/mine --resume
  diffclf train --system mog40 --dim 8 --samples 60000 -o runs/mog40
  diffclf train --system two-modes --end-system moons -o runs/bridge
  diffclf train samples.npy --config run.toml --rate 0.0005 -o runs/slow
  diffclf train samples.npy --objective 'dsm+0.1*fokker-planck(laplacian=difference)' -o runs/fp";

const NOTES: &str = "\
Settings follow in parentheses: binary-bregman(generator=kl), bayes(gap=4,stop-gradient=yes).

A configuration file holds the same settings as the flags, with _ for -:
  objective = \"dsm+diffclf\"
  score_steps = 15000
  steps = 15000
  process = { kind = \"vp\", beta_max = 20.0 }

The run folder holds config.toml (all settings), log.jsonl (every figure), checkpoint.safetensors,
model.safetensors and report.html (a page with pictures and a diagnosis). A run that was stopped in any way, even by kill -9, continues with --resume and ends with the
very bytes of an uninterrupted run (on the same kind of machine, whatever the number of threads).

Exit codes: 0 success, 1 failed, 2 wrong usage or input, 3 numbers became infinite or NaN, 130 interrupted.";

/// Examples, all objectives, and what else there is to know.
fn after_help() -> String {
    format!(
        "{EXAMPLES}\n\nObjectives (a weighted sum of them; docs/objectives.md says which to choose):\n{}{NOTES}",
        ObjectiveName::help()
    )
}

const NOTHING: &str =
    "nothing to learn from: give a .npy file, or a built-in system with --system NAME --dim D";

/// Learn an energy from samples.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    /// Keep the data's own coordinates; their mean and variance go into the model instead
    #[arg(long, help_heading = "Data")]
    no_standardise: bool,
    /// TOML file with settings; flags override it
    #[arg(long, value_name = "RUN.toml", help_heading = "Run")]
    config: Option<PathBuf>,
    /// Run folder [default: runs/NAME, after the data]
    #[arg(short, long, value_name = "RUNDIR", help_heading = "Run")]
    output: Option<PathBuf>,
    /// Continue the run in the folder (or start it, if there is none yet)
    #[arg(long, help_heading = "Run")]
    resume: bool,
    /// Delete a run that is in the folder already
    #[arg(long, help_heading = "Run", conflicts_with = "resume")]
    force: bool,
    /// Seconds between two checkpoints
    #[arg(
        long,
        value_name = "SECONDS",
        allow_negative_numbers = true,
        default_value_t = 10.0,
        help_heading = "Run"
    )]
    checkpoint_every: f64,
    /// Do not write report.html at the end
    #[arg(long, help_heading = "Run")]
    no_report: bool,
    /// No progress on the terminal
    #[arg(long, help_heading = "Run")]
    quiet: bool,
    #[command(flatten)]
    machine: Machine,
}

/// What is needed to build a trainer.
struct Plan {
    content: Content,
    state: Option<State>,
    log_every: u64,
    notices: Vec<String>,
}

/// Runs the command.
pub fn run(mut args: Args) -> Result<()> {
    if args.no_standardise {
        args.settings.standardise = Some(false);
    }
    args.settings.kernel = args.machine.kernel.clone();
    if let Some(config) = &args.config {
        args.settings = Settings::read(config)?.overridden_by(&args.settings)?;
    }
    let path = run_path(&args)?;
    if !args.quiet {
        for file in [&args.settings.data, &args.settings.end]
            .into_iter()
            .flatten()
        {
            say_if_large(file);
        }
    }
    let (data, end) = (args.settings.data.clone(), args.settings.end.clone());
    train(Job {
        path: path.clone(),
        checkpoint_every: checkpoint_pause(args.checkpoint_every)?,
        pool: args.machine.pool()?,
        settings: args.settings,
        first_stage: None,
        resume: args.resume,
        force: args.force,
        quiet: args.quiet,
    })?;
    if !args.no_report {
        // A resumed run has its data in its settings, unless they have moved.
        let saved = Settings::read(&path.join(CONFIG))?;
        let files = [data.or(saved.data), end.or(saved.end)];
        let files = files.each_ref().map(|file| file.as_deref());
        after_training(&path, files, &args.machine, args.quiet);
    }
    Ok(())
}

/// A run and the folder it belongs to.
pub struct Job {
    /// What to train.
    pub settings: Settings,
    /// Run folder.
    pub path: PathBuf,
    /// Start a new run from this state instead of fresh parameters: the end of a first stage that several runs share.
    pub first_stage: Option<State>,
    /// Continue a run that is there.
    pub resume: bool,
    /// Delete a run that is there.
    pub force: bool,
    /// Time between two checkpoints.
    pub checkpoint_every: Duration,
    /// No progress, no closing words.
    pub quiet: bool,
    /// Threads.
    pub pool: Arc<Pool>,
}

/// Trains to the end, or as far as it gets.
pub fn train(job: Job) -> Result<()> {
    let Job {
        settings: mut wanted,
        path,
        pool,
        ..
    } = job;
    let (folder, isa, origins, plan);
    if job.resume && RunFolder::has_run(&path) {
        folder = RunFolder::take(&path)?;
        let mut saved = folder.settings()?;
        // Data may have moved since; their content is compared with the checkpoint's.
        saved.data = wanted.data.clone().or(saved.data);
        saved.end = wanted.end.clone().or(saved.end);
        origins = open_origins(&saved)?;
        wanted.held_out = wanted.held_out.or(saved.held_out);
        wanted.shrink_batch(rows(&origins));
        saved.refuse_conflicts(&wanted, &path)?;
        plan = match folder.checkpoint()? {
            Some(checkpoint) => Plan::resumed(&mut saved, &origins, checkpoint, &path)?,
            None => Plan::new(&mut saved, &origins)?,
        };
        isa = isa_of(&saved)?;
    } else {
        if !job.resume {
            RunFolder::refuse_existing(&path, job.force)?;
        } else if wanted.data.is_none() && wanted.system.is_none() {
            return Err(Error::Usage(format!(
                "there is no run to resume in {}; give the data to start one",
                path.display()
            )));
        }
        origins = open_origins(&wanted)?;
        let mut fresh = Plan::new(&mut wanted, &origins)?;
        fresh.state = job.first_stage;
        plan = fresh;
        isa = isa_of(&wanted)?;
        folder = RunFolder::create(&path, &absolute(wanted)?)?;
    }
    if !job.quiet {
        plan.notices
            .iter()
            .for_each(|text| note(&format!("note: {text}")));
    }

    let Plan {
        content,
        state,
        log_every,
        ..
    } = plan;
    let train = &content.record.settings;
    let share = train.held_out.map_or(0.0, |rule| rule.share);
    let prepared = origins
        .iter()
        .map(|origin| origin.prepare(&content.standardisation))
        .collect::<Result<Vec<_>>>()?;
    let feeds: Vec<_> = prepared
        .iter()
        .enumerate()
        .map(|(k, rows)| rows.feed(k, train.batch, train.seed, share))
        .collect();
    let endpoints = Endpoints {
        start: feeds[0].train.clone(),
        end: feeds.get(1).map(|feed| feed.train.clone()),
    };
    let held_out = feeds[0].held_out.as_ref().map(|(start, rows)| {
        let end = feeds.get(1).and_then(|feed| feed.held_out.as_ref());
        let rows = end.map_or(*rows, |(_, other)| *rows.min(other));
        let from = Endpoints {
            start: start.clone(),
            end: end.map(|(source, _)| source.clone()),
        };
        // No more than a batch: an evaluation then costs less than a step.
        (from, rows.min(train.batch))
    });
    let mut trainer = Trainer::new(&content.spec, train, endpoints, held_out, pool, isa)?
        .with_truth(truth(&content, &origins)?);
    if let Some(state) = state {
        trainer.resume(state)?;
    }
    let (log, seconds) = folder.log(trainer.state().step)?;
    Session {
        folder: &folder,
        content: &content,
        log,
        log_every,
        seconds,
        checkpoint_every: job.checkpoint_every,
        quiet: job.quiet,
    }
    .train(trainer)
}

/// The exact densities of the data in the model's coordinates, if an objective compares with them.
fn truth(content: &Content, origins: &[Origin]) -> Result<Option<Arc<dyn Energy>>> {
    let mut terms = content
        .record
        .settings
        .stages
        .iter()
        .flat_map(|stage| &stage.objectives);
    let Some(term) = terms.find(|t| t.objective.objective().needs_truth(&content.spec)) else {
        return Ok(None);
    };
    let coordinates = Coordinates::of(content);
    let mut mixtures = Vec::with_capacity(origins.len());
    for origin in origins {
        let Some(mixture) = origin.mixture() else {
            return Err(Error::Usage(format!(
                "the objective {} compares with exact densities, but those of {} are not known; train on a mixture \
                 (--system mog40, mog2 or two-modes) or choose another objective",
                term.objective,
                origin.record().name
            )));
        };
        mixtures.push(coordinates.mixture(mixture)?);
    }
    let end = if mixtures.len() > 1 {
        mixtures.pop()
    } else {
        None
    };
    match mixtures.pop() {
        Some(start) => Ok(Some(Arc::new(ExactPath::new(
            content.spec.process,
            start,
            end,
        )?))),
        None => Err(Error::Usage(NOTHING.into())),
    }
}

/// A file that takes a while to read deserves a word.
fn say_if_large(path: &Path) {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if bytes > 1 << 28 {
        let size = bytes as f64 / 1e9;
        note(&format!(
            "reading {} ({size:.1} GB) for its checksum and statistics",
            path.display()
        ));
    }
}

/// The kernels of a run, which its settings remember.
fn isa_of(settings: &Settings) -> Result<Isa> {
    Machine {
        threads: None,
        kernel: settings.kernel.clone(),
    }
    .isa()
}

fn checkpoint_pause(seconds: f64) -> Result<Duration> {
    // A year is as good as never.
    if (0.0..=3.2e7).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(Error::Usage(format!(
            "--checkpoint-every is {seconds}, expected a number of seconds"
        )))
    }
}

/// Where the run goes: as asked, or named after the data.
fn run_path(args: &Args) -> Result<PathBuf> {
    if let Some(path) = &args.output {
        return Ok(path.clone());
    }
    let name = match (&args.settings.data, &args.settings.system) {
        (Some(data), _) => data
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned()),
        (None, system) => system.clone(),
    };
    match name {
        Some(name) => Ok(Path::new("runs").join(name)),
        None => Err(Error::Usage(
            "nothing to learn from: give a .npy file, or a built-in system with --system NAME --dim D".into(),
        )),
    }
}

/// Opens both endpoints.
fn open_origins(settings: &Settings) -> Result<Vec<Origin>> {
    let s = settings;
    let (files, systems) = ([&s.data, &s.end], [&s.system, &s.end_system]);
    let count = if s.has_end() { 2 } else { 1 };
    let mut origins = [None, None];
    for k in 0..count {
        let flag = ["--system", "--end-system"][k];
        origins[k] = match (files[k], systems[k]) {
            (Some(path), None) => Some(Origin::file(path)?),
            (None, Some(_)) => None,
            (Some(_), Some(_)) => {
                return Err(Error::Usage(format!(
                    "both a file and {flag} are given, expected one of them"
                )));
            }
            (None, None) => return Err(Error::Usage(NOTHING.into())),
        };
    }
    let of_file = origins
        .iter()
        .flatten()
        .map(Origin::dim)
        .next()
        .transpose()?;
    if let (Some(dim), Some(found)) = (s.dim, of_file)
        && dim != found
    {
        return Err(Error::Usage(format!(
            "--dim is {dim}, but the data have {found} columns; leave it out for a file"
        )));
    }
    let of_system = systems
        .iter()
        .any(|name| name.as_deref().is_some_and(System::is_planar))
        .then_some(2);
    let (seed, system_seed) = (s.seed.unwrap_or(0), s.system_seed.unwrap_or(0));
    let mut opened = Vec::with_capacity(count);
    for (k, origin) in origins.into_iter().take(count).enumerate() {
        let origin = match (origin, systems[k]) {
            (None, Some(name)) => {
                let Some(dim) = s.dim.or(of_file).or(of_system) else {
                    return Err(Error::Usage(format!(
                        "{name} exists in every dimension; choose one with --dim D"
                    )));
                };
                let system = System::by_name(name, dim, system_seed)?;
                Origin::system(k, system, system_seed, s.samples, seed)?
            }
            (Some(origin), _) => origin,
            (None, None) => return Err(Error::Usage(NOTHING.into())),
        };
        opened.push(origin);
    }
    if let [start, end] = &opened[..]
        && start.dim()? != end.dim()?
    {
        return Err(Error::Usage(format!(
            "the first endpoint has dimension {} and the second {}, expected the same; check the data files",
            start.dim()?,
            end.dim()?
        )));
    }
    Ok(opened)
}

/// Rows of the smaller endpoint; none if one is sampled afresh.
fn rows(origins: &[Origin]) -> Option<usize> {
    let rows: Option<Vec<usize>> = origins.iter().map(|origin| origin.record().rows).collect();
    rows?.into_iter().min()
}

/// Paths that still lead to the data when the run is resumed from another folder.
fn absolute(mut settings: Settings) -> Result<Settings> {
    for path in [&mut settings.data, &mut settings.end]
        .into_iter()
        .flatten()
    {
        *path = std::fs::canonicalize(&*path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
    }
    Ok(settings)
}

impl Plan {
    /// A run from the start.
    fn new(settings: &mut Settings, origins: &[Origin]) -> Result<Self> {
        let (train, mut notices) = settings.train(rows(origins))?;
        let mut notice = |text| notices.push(text);
        let mut moments = origins[0].moments(&mut notice)?;
        if let Some(end) = origins.get(1) {
            moments = moments.pooled(end.moments(&mut notice)?);
        }
        let dim = moments.mean.len();
        let (standardisation, spec) = if *settings.standardise.get_or_insert(true) {
            (
                moments.standardisation(),
                settings.spec(vec![0.0; dim], 1.0)?,
            )
        } else {
            let Moments { mean, variance } = moments;
            (
                Standardisation::identity(dim),
                settings.spec(mean, variance)?,
            )
        };
        train.validate(&spec)?;
        let content = content(spec, standardisation, train, origins);
        // Refused before there is a folder.
        truth(&content, origins)?;
        Ok(Self {
            content,
            state: None,
            log_every: settings.log_every.unwrap_or(1),
            notices,
        })
    }

    /// A run from its last checkpoint. The checkpoint, the settings and the data must be those of one run.
    fn resumed(
        settings: &mut Settings,
        origins: &[Origin],
        checkpoint: Checkpoint,
        folder: &Path,
    ) -> Result<Self> {
        let Checkpoint {
            content: saved,
            state,
        } = checkpoint;
        let (train, notices) = settings.train(rows(origins))?;
        for (found, expected) in origins.iter().zip(&saved.record.data) {
            if found.record().sha256 != expected.sha256 {
                return Err(Error::Usage(format!(
                    "{} is not the file that the run in {} was trained on (its content differs); give the original file, or \
                     train into another folder",
                    found.record().name,
                    folder.display()
                )));
            }
        }
        let spec = settings.spec(saved.spec.mean.clone(), saved.spec.variance)?;
        let fits = spec == saved.spec
            && train == saved.record.settings
            && origins.len() == saved.record.data.len()
            && origins[0].dim()? == spec.dim;
        if !fits {
            return Err(Error::Usage(format!(
                "config.toml in {} does not belong to the checkpoint beside it; undo the change, or train into another folder",
                folder.display()
            )));
        }
        Ok(Self {
            content: saved,
            state: Some(state),
            log_every: settings.log_every.unwrap_or(1),
            notices,
        })
    }
}

fn content(
    spec: ModelSpec,
    standardisation: Standardisation,
    settings: TrainSettings,
    origins: &[Origin],
) -> Content {
    Content {
        spec,
        standardisation,
        record: Record {
            version: env!("CARGO_PKG_VERSION").into(),
            settings,
            steps: 0,
            data: origins
                .iter()
                .map(|origin| origin.record().clone())
                .collect(),
            units: "kT".into(),
            streams: STREAMS,
        },
    }
}
