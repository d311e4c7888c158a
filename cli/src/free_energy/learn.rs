//! `diffclf free-energy learn`: from samples of two states, through a learned path between them, to their free-energy difference.

use super::levels::{endpoint_rows, trained_system};
use super::output::{
    Output, differences, facts, integrand_figure, overlap_figure, overlap_notices,
};
use crate::error::{Error, Result};
use crate::files::{MappedNpy, read_model};
use crate::machine::Machine;
use crate::run_folder::RunFolder;
use crate::settings::Settings;
use crate::train::{Job, train};
use diffclf::free_energy::{
    MbarSettings, PathEstimate, PathSamples, Perturbation, Rule, bar, end_correction,
};
use diffclf::metric::Estimate;
use diffclf::model::{Content, Model};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy learn a.npy b.npy --energy-a u_a.npy --energy-b u_b.npy -o runs/ab
  diffclf free-energy learn a.npy b.npy --energy-a u_a.npy --energy-b u_b.npy --objective dsm -o runs/dsm
  diffclf free-energy learn --system pair-a --end-system pair-b --dim 8 -o runs/pair
  diffclf free-energy learn a.npy b.npy --model runs/ab/model.safetensors --energy-a u_a.npy --energy-b u_b.npy

a.npy and b.npy hold samples of the two states; u_a.npy the reduced energy of state A (kT) at the samples of A, u_b.npy that
of B at the samples of B. An interpolant energy between them is trained (any objective of diffclf train), and then
  log(Z_B/Z_A) = log(Z_0/Z_A) - integral of <dU/dt> dt + log(Z_B/Z_1)
with one-sided perturbations at the ends. BAR directly between A and B needs the crossed energies as well
(--energy-b-at-a, --energy-a-at-b). Without energies, the learned path alone is reported. Built-in systems know theirs.

The model's error is not statistical: it is estimated by the disagreement of the routes through the path (integration by two
rules, MBAR, the learned F) and is part of the last line of the table.";

/// Time between two checkpoints of the training.
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(10);

/// Free-energy difference of two sample sets through a learned path.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    /// Samples of state B (the same as --end)
    #[arg(value_name = "B.npy", help_heading = "Data")]
    second: Option<PathBuf>,
    /// Energies of A at the samples of A
    #[arg(long, value_name = "U.npy", help_heading = "Energies")]
    energy_a: Option<PathBuf>,
    /// Energies of B at the samples of B
    #[arg(long, value_name = "U.npy", help_heading = "Energies")]
    energy_b: Option<PathBuf>,
    /// Energies of B at the samples of A
    #[arg(long, value_name = "U.npy", help_heading = "Energies")]
    energy_b_at_a: Option<PathBuf>,
    /// Energies of A at the samples of B
    #[arg(long, value_name = "U.npy", help_heading = "Energies")]
    energy_a_at_b: Option<PathBuf>,
    /// Use this model instead of training one
    #[arg(long, value_name = "MODEL", help_heading = "Run")]
    model: Option<PathBuf>,
    /// Run folder of the training [default: runs/free-energy]
    #[arg(short, long = "output", value_name = "RUNDIR", help_heading = "Run")]
    output_folder: Option<PathBuf>,
    /// Continue the training in the folder (or start it)
    #[arg(long, help_heading = "Run")]
    resume: bool,
    /// Times along the path
    #[arg(long, value_name = "L", default_value_t = 65, help_heading = "Path")]
    path_levels: usize,
    /// Samples at each time
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "Path")]
    path_samples: usize,
    /// Samples of each built-in system at the ends
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20_000,
        help_heading = "Path"
    )]
    end_samples: usize,
    /// No progress on the terminal
    #[arg(long, help_heading = "Run")]
    quiet: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    machine: Machine,
}

/// What is known of a state: its samples in the model's coordinates, and energies at them.
struct End {
    rows: Vec<f64>,
    own: Option<Vec<f64>>,
    /// The other state's energy.
    other: Option<Vec<f64>>,
}

/// Runs the command.
pub fn run(mut args: Args) -> Result<()> {
    args.output.check()?;
    if args.settings.end.is_some() && args.second.is_some() {
        return Err(Error::Usage(
            "state B is given twice, as the second file and with --end; leave one out".into(),
        ));
    }
    args.settings.end = args.settings.end.take().or(args.second.take());
    if !args.settings.has_end() {
        return Err(Error::Usage(
            "a free-energy difference needs two states: give A.npy and B.npy, or --system and --end-system".into(),
        ));
    }
    let model = obtain(&args)?;
    let content = &model.content;
    let spec = &content.spec;
    if !spec.process.is_interpolant() {
        return Err(Error::Usage(format!(
            "the model has the {} process of one data set; expected an interpolant between two",
            spec.process.name()
        )));
    }
    let seed = args.settings.seed.unwrap_or(0);
    let a = end(&args, content, 0, seed)?;
    let b = end(&args, content, 1, seed)?;
    let (pool, isa) = (args.machine.pool()?, args.machine.isa()?);
    let energy = model.energy(pool.clone(), isa)?;
    let times = spec.grid.with_levels(args.path_levels)?;
    let samples = PathSamples::new(
        &spec.process,
        spec.dim,
        times.times(),
        (&a.rows, Some(&b.rows)),
        args.path_samples,
        seed,
    )?;
    let settings = MbarSettings {
        pool: Some(pool),
        isa,
        ..MbarSettings::default()
    };
    let path = PathEstimate::new(&energy, &samples, &settings)?;
    let stages = &content.record.settings.stages;
    let classified = stages
        .iter()
        .flat_map(|stage| &stage.objectives)
        .any(|term| term.objective.objective().teaches().free_energy());
    let corrections = match (&a.own, &b.own) {
        (Some(own_a), Some(own_b)) => Some((
            end_correction(&energy, spec.grid.t_min(), &a.rows, own_a)?,
            end_correction(&energy, spec.grid.t_max(), &b.rows, own_b)?,
        )),
        _ => None,
    };
    report(
        &args,
        content,
        &path,
        corrections,
        classified,
        direct(&a, &b),
    )
}

/// BAR between the states themselves, where all energies are known.
fn direct(a: &End, b: &End) -> Option<diffclf::Result<diffclf::free_energy::Bar>> {
    let works = |end: &End| -> Option<Vec<f64>> {
        let (own, other) = (end.own.as_ref()?, end.other.as_ref()?);
        Some(
            other
                .iter()
                .zip(own)
                .map(|(other, own)| other - own)
                .collect(),
        )
    };
    Some(bar(&works(a)?, &works(b)?))
}

/// The model: given, or trained now.
fn obtain(args: &Args) -> Result<Model> {
    if let Some(path) = &args.model {
        return read_model(path);
    }
    let folder = args
        .output_folder
        .clone()
        .unwrap_or_else(|| Path::new("runs").join("free-energy"));
    let mut settings = args.settings.clone();
    settings.kernel = args.machine.kernel.clone();
    train(Job {
        settings,
        path: folder.clone(),
        first_stage: None,
        resume: args.resume,
        force: args.output.force,
        checkpoint_every: CHECKPOINT_PAUSE,
        pool: args.machine.pool()?,
        quiet: args.quiet,
    })?;
    read_model(&RunFolder::take(&folder)?.model_path())
}

/// Samples and energies of an endpoint.
fn end(args: &Args, content: &Content, endpoint: usize, seed: u64) -> Result<End> {
    let s = &args.settings;
    let file = [&s.data, &s.end][endpoint].as_deref();
    let read = |path: &Option<PathBuf>, rows: usize| -> Result<Option<Vec<f64>>> {
        let Some(path) = path else { return Ok(None) };
        let values = MappedNpy::open(path)?.view()?.to_vec_f64();
        if values.len() != rows {
            return Err(Error::Usage(format!(
                "{}: {} energies for {rows} samples, expected one for each",
                path.display(),
                values.len()
            )));
        }
        Ok(Some(values))
    };
    let rows = endpoint_rows(content, endpoint, file, args.end_samples, seed)?;
    let count = rows.len() / content.spec.dim;
    if file.is_some() {
        let (own, other) = [
            (&args.energy_a, &args.energy_b_at_a),
            (&args.energy_b, &args.energy_a_at_b),
        ][endpoint];
        return Ok(End {
            own: read(own, count)?,
            other: read(other, count)?,
            rows,
        });
    }
    let systems = [trained_system(content, 0), trained_system(content, 1)];
    let mut data = rows.clone();
    crate::coordinates::Coordinates::of(content).data_to_user(&mut data);
    let energies = |system: &Result<diffclf::system::System>| -> Option<Vec<f64>> {
        let system = system.as_ref().ok()?;
        data.chunks_exact(content.spec.dim)
            .map(|x| system.log_density(x).map(|value| -value))
            .collect()
    };
    Ok(End {
        own: energies(&systems[endpoint]),
        other: energies(&systems[1 - endpoint]),
        rows,
    })
}

fn report(
    args: &Args,
    content: &Content,
    path: &PathEstimate,
    corrections: Option<(Perturbation, Perturbation)>,
    classified: bool,
    direct: Option<diffclf::Result<diffclf::free_energy::Bar>>,
) -> Result<()> {
    let mut notices = overlap_notices(&path.overlap);
    let ends = corrections.map_or(
        Estimate {
            mean: 0.0,
            error: 0.0,
        },
        |(a, b)| Estimate {
            mean: a.exponential.mean - b.exponential.mean,
            error: a.exponential.error.hypot(b.exponential.error),
        },
    );
    let with_ends = |e: Estimate| Estimate {
        mean: e.mean + ends.mean,
        error: e.error.hypot(ends.error),
    };
    let simpson = path.integral(Rule::Simpson).unwrap_or(path.mbar);
    let integration = with_ends(simpson);
    let mbar = with_ends(path.mbar);
    let learned = with_ends(Estimate {
        mean: path.learned,
        error: 0.0,
    });
    let model_error = path.disagreement(classified);
    let stated = Estimate {
        mean: integration.mean,
        error: integration.error.hypot(model_error),
    };
    let half = 1.96 * stated.error;
    let interval = [stated.mean - half, stated.mean + half];
    let mut rows = Vec::new();
    let mut record = json!({
        "method": "learn",
        "path": path,
        "model_error": model_error,
        "integration": integration,
        "mbar": mbar,
        "learned_f": learned,
        "stated": stated,
        "interval_95": interval,
        "objective_teaches_f": classified,
        "steps": content.record.steps,
    });
    match direct {
        Some(Ok(found)) => {
            rows.push(("BAR, A and B directly".to_string(), found.delta));
            record["bar"] = json!(found);
        }
        Some(Err(error)) => notices.push(format!("BAR between A and B: {error}")),
        None => notices.push(
            "no BAR between A and B: it needs the energies of both states at both sample sets"
                .into(),
        ),
    }
    rows.push(("MBAR over the learned path".into(), mbar));
    rows.push(("TI over the learned path".into(), integration));
    if classified {
        rows.push(("learned F(t)".into(), learned));
    }
    rows.push(("TI, error of the model included".into(), stated));
    let mut lines = vec![
        (
            "95 % interval of the last row",
            format!("{:.4} to {:.4}", interval[0], interval[1]),
        ),
        (
            "disagreement of the routes (kT)",
            format!("{model_error:.4}"),
        ),
    ];
    match corrections {
        Some((a, b)) => {
            lines.push(("log(Z_0/Z_A), correction at A", format!("{:.4}", a.exponential)));
            lines.push(("log(Z_1/Z_B), correction at B", format!("{:.4}", b.exponential)));
            lines.push(("effective samples at A and B", format!("{:.0} and {:.0}", a.effective_samples, b.effective_samples)));
            record["corrections"] = json!({ "a": a, "b": b });
            for (name, end) in [("A", a), ("B", b)] {
                if end.effective_samples < 100.0 {
                    notices.push(format!(
                        "the learned energy at {name} is far from the state's own: {:.0} effective samples; train longer",
                        end.effective_samples
                    ));
                }
            }
        }
        None => notices.push(
            "no energies of the states are known: this is the difference between the learned energies at the two ends, whose \
             additive constants are arbitrary"
                .into(),
        ),
    }
    let known = trained_system(content, 0).is_ok() && trained_system(content, 1).is_ok();
    if known && corrections.is_some() {
        // Built-in systems are normalised.
        lines.push(("exact answer", "0 (both densities are normalised)".into()));
        record["exact"] = 0.0.into();
    }
    let tables = [
        differences("delta = log(Z_B/Z_A)", &rows),
        facts("Quality", &lines),
    ];
    let figures = [
        integrand_figure(&path.times, &path.slopes),
        overlap_figure(&path.overlap),
    ];
    args.output.give(
        "Free energy through a learned path",
        &tables,
        &notices,
        &figures,
        record,
    )
}
