//! `diffclf free-energy levels`: MBAR over the learned energies of a model against the F(t) it learned.

use super::output::{Output, facts, integrand_figure, overlap_figure, overlap_notices};
use crate::machine::MachineArgs;
use diffclf::free_energy::{MbarSettings, PathEstimate, PathSamples};
use diffclf::model::Content;
use diffclf::rng::Purpose;
use diffclf::system::System;
use diffclf_report::curve::{Curve, Series};
use diffclf_report::page::{Figure, Table};
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{MappedNpy, read_model};
use diffclf_run::judging::Judging;
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy levels runs/mog40/model.safetensors
  diffclf free-energy levels model.safetensors samples.npy --levels 64 --page levels.html
  diffclf free-energy levels bridge.safetensors a.npy --end b.npy

The data are noised as the process does, and MBAR over the learned energies at these levels says what F(t) should be. The gap
log Z_t + F(t), zero for a perfect model, is the model's own error bar: by so much the levels' weights are off. Rows that were
trained on are left out where they are known; errors hold for rows that all levels share.";

/// Check a model's F(t) by MBAR over its own energies.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Samples of the data [default: drawn from the system the model was trained on]
    #[arg(value_name = "DATA.npy")]
    data: Option<PathBuf>,
    /// Samples of the second endpoint of an interpolant
    #[arg(long, value_name = "DATA1.npy")]
    end: Option<PathBuf>,
    /// Levels, evenly over the grid of the model
    #[arg(long, value_name = "L", default_value_t = 48)]
    levels: usize,
    /// Samples at each level
    #[arg(long, value_name = "N", default_value_t = 500)]
    samples: usize,
    /// Seed of the samples
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Rows of an endpoint in the model's coordinates.
pub fn endpoint_rows(
    content: &Content,
    endpoint: usize,
    file: Option<&Path>,
    draws: usize,
    seed: u64,
) -> Result<Vec<f64>> {
    let spec = &content.spec;
    let mut rows = match file {
        Some(path) => {
            let mapped = MappedNpy::open(path)?;
            let view = mapped.view()?;
            if view.dim() != spec.dim {
                return Err(Error::Usage(format!(
                    "{}: the samples have {} coordinates, but the model has {}",
                    path.display(),
                    view.dim(),
                    spec.dim
                )));
            }
            view.to_vec_f64()
        }
        None => {
            let system = trained_system(content, endpoint)?;
            system
                .sample_for(Purpose::State(endpoint as u32), draws, seed)
                .iter()
                .map(|x| f64::from(*x))
                .collect()
        }
    };
    // Both endpoints are data: their coordinates change as at time 0, where one of them stands alone.
    content.points_to_model(0.0, &mut rows);
    Ok(rows)
}

/// The system an endpoint was trained on.
pub fn trained_system(content: &Content, endpoint: usize) -> Result<System> {
    let record = content.record.data.get(endpoint);
    match record.and_then(|record| record.system_seed.map(|seed| (&record.name, seed))) {
        Some((name, seed)) => Ok(System::by_name(name, content.spec.dim, seed)?),
        None => Err(Error::Usage(format!(
            "the model was trained on a file: give samples of {} as .npy",
            ["the data", "the second endpoint (--end)"][endpoint.min(1)]
        ))),
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.output.check()?;
    let model = read_model(&args.model)?;
    let content = &model.content;
    let spec = &content.spec;
    // Rows the model was not trained on, where there are any: on its own rows a model that knows them by heart looks right.
    let judging = Judging::gather(
        content,
        [args.data.as_deref(), args.end.as_deref()],
        &args.model,
    )?;
    let rows = judging.rows();
    let (pool, isa) = (args.machine.pool()?, args.machine.isa()?);
    let energy = model.energy(pool.clone(), isa)?;
    let times = spec.grid.with_levels(args.levels)?;
    let samples = PathSamples::new(
        &spec.process,
        spec.dim,
        times.times(),
        (rows.start, rows.end),
        args.samples,
        args.seed,
    )?;
    let settings = MbarSettings {
        pool: Some(pool),
        isa,
        ..MbarSettings::default()
    };
    let found = PathEstimate::new(&energy, &samples, &settings)?;
    let largest = found
        .gaps
        .iter()
        .map(|gap| gap.mean.abs())
        .fold(0.0, f64::max);
    let mut notices = overlap_notices(&found.overlap);
    if judging.only_trained {
        notices.push(
            "these rows were trained on and there are no others: gaps may look smaller than they are; train with rows held out".into(),
        );
    }
    let last = found.gaps[found.gaps.len() - 1];
    if largest > 0.5 {
        notices.push(format!(
            "F(t) is off by up to {largest:.2} kT: train longer, with a classification term in the objective"
        ));
    }
    let chosen: Vec<usize> = (0..9).map(|i| i * (found.times.len() - 1) / 8).collect();
    let table = Table {
        caption:
            "Gap log Z_t + F(t) between MBAR and the learned F, relative to the first level (kT)"
                .into(),
        header: ["time", "gap", "error"].map(String::from).to_vec(),
        rows: chosen
            .iter()
            .map(|&k| {
                let gap = found.gaps[k];
                vec![
                    format!("{:.4}", found.times[k]),
                    format!("{:.4}", gap.mean),
                    format!("{:.4}", gap.error),
                ]
            })
            .collect(),
    };
    let summary = facts(
        "First to last level",
        &[
            ("log(Z_1/Z_0) by MBAR", format!("{:.4}", found.mbar)),
            ("as learned, F(0) - F(1)", format!("{:.4}", found.learned)),
            ("gap", format!("{last:.4}")),
            ("largest gap of a level", format!("{largest:.4}")),
            ("scalar overlap", format!("{:.4}", found.overlap.scalar)),
        ],
    );
    let line = Series {
        name: "gap".into(),
        points: found
            .times
            .iter()
            .zip(&found.gaps)
            .map(|(t, gap)| (*t, gap.mean))
            .collect(),
    };
    let curve = Curve {
        alt: "gap between MBAR and the learned F along the levels",
        x_label: "time",
        y_label: "gap (kT)",
        x_logarithmic: false,
        y_logarithmic: false,
        series: &[line],
    };
    let figures = [
        overlap_figure(&found.overlap),
        Figure {
            svg: curve.svg(),
            caption: "What the learned F(t) misses at each level.".into(),
        },
        integrand_figure(&found.times, &found.slopes),
    ];
    let record =
        json!({ "method": "levels", "model": args.model.display().to_string(), "result": found });
    args.output.give(
        "Free energies of a model's levels",
        &[summary, table],
        &notices,
        &figures,
        record,
    )
}
