//! `diffclf compare`: how far apart two samples are, beside how far apart two samples of the second's law are.

use crate::print::print;
use diffclf::metric::{Comparison, ComparisonSettings, Distance, Sample};
use diffclf::rng::Purpose;
use diffclf::system::System;
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::data::read_rows;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{refuse_overwrite, write_atomic};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf compare new.npy data.npy
  diffclf compare exact.npy data.npy --weights w.npy --json distances.json
  diffclf compare new.npy --system mog40

MMD²: squared maximum mean discrepancy, five Gaussian kernels around the median distance. Sliced W2: Wasserstein-2 distance
of projections. Sliced KS: Kolmogorov-Smirnov distance of projections. Energy distance: 2E|x-y| - E|x-x'| - E|y-y'|.
Mode weights: total variation of the shares of points nearest to each mode, for systems that are mixtures.

The floor is the same distance between two samples of the reference. From a file these are its odd and its even rows, so that the
distances use half of it; from a system they are exact samples. A value near its floor cannot be told from zero.";

/// Distances between two samples.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Samples: a .npy file whose first axis counts them
    #[arg(value_name = "A.npy")]
    sample: PathBuf,
    /// Reference samples
    #[arg(value_name = "B.npy", required_unless_present = "system")]
    reference: Option<PathBuf>,
    /// Compare with exact samples of a built-in system instead
    #[arg(long, value_name = "NAME", conflicts_with = "reference")]
    system: Option<String>,
    /// Seed of the system's own parameters
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    system_seed: u64,
    /// Weights of the samples: a .npy file with one number each
    #[arg(long, value_name = "W.npy")]
    weights: Option<PathBuf>,
    /// Random directions of the sliced distances
    #[arg(long, value_name = "N", default_value_t = 256)]
    directions: usize,
    /// Seed of directions and exact samples
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Write everything as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace an existing JSON file
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    if let Some(path) = &args.json {
        refuse_overwrite(path, args.force)?;
    }
    let (points, dim) = read_rows(&args.sample)?;
    let weights = match &args.weights {
        Some(path) => Some(read_rows(path)?.0),
        None => None,
    };
    let sample = Sample::new(&points, dim, weights.as_deref())?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut modes = None;
    let name;
    if let Some(system) = &args.system {
        let system = System::by_name(system, dim, args.system_seed)?;
        let draw = |half: u32| -> Vec<f64> {
            let values = system.sample_for(Purpose::Reference(half), sample.rows(), args.seed);
            values.iter().map(|x| f64::from(*x)).collect()
        };
        (first, second) = (draw(0), draw(1));
        modes = system.mixture().cloned();
        name = system.name().to_string();
    } else if let Some(path) = &args.reference {
        let (values, columns) = read_rows(path)?;
        if columns != dim {
            return Err(Error::Usage(format!(
                "{} has {columns} columns and {} has {dim}; compare samples of the same kind",
                path.display(),
                args.sample.display()
            )));
        }
        if values.len() < 4 * dim {
            return Err(Error::Usage(format!(
                "{} has {} rows, expected at least 4: half of them are needed for the floor",
                path.display(),
                values.len() / dim
            )));
        }
        // Halves, not even and odd rows: neighbours may be correlated.
        let half = values.len() / dim / 2 * dim;
        first.extend_from_slice(&values[..half]);
        second.extend_from_slice(&values[half..]);
        name = path.display().to_string();
    } else {
        return Err(Error::Usage(
            "nothing to compare with; give a second file or --system NAME".into(),
        ));
    }
    let settings = ComparisonSettings {
        directions: args.directions,
        seed: args.seed,
    };
    let (reference, other) = (
        Sample::new(&first, dim, None)?,
        Sample::new(&second, dim, None)?,
    );
    let found = Comparison::run(&sample, &reference, &other, modes.as_ref(), settings)?;
    let row = |name: &str, distance: Distance| {
        vec![
            name.to_string(),
            format!("{:.5}", distance.value),
            format!("{:.5}", distance.floor),
            format!("{:.3}", distance.p_value),
        ]
    };
    let mut table = Table {
        caption: format!(
            "{} ({} rows) against {name} ({} rows, {} more for the floor)",
            args.sample.display(),
            sample.rows(),
            reference.rows(),
            other.rows()
        ),
        header: ["distance", "value", "floor", "p-value"]
            .map(String::from)
            .to_vec(),
        rows: vec![
            row("MMD²", found.mmd_squared),
            row("sliced W2", found.sliced_wasserstein),
            row("sliced KS", found.sliced_kolmogorov_smirnov),
            row("energy distance", found.energy_distance),
        ],
    };
    if let Some((value, floor)) = found.mode_weights {
        let texts = [
            "mode weights".into(),
            format!("{value:.5}"),
            format!("{floor:.5}"),
            String::new(),
        ];
        table.rows.push(texts.to_vec());
    }
    print(&table_text(&table))?;
    if let Some(path) = &args.json {
        let document = json!({
            "command": "compare",
            "sample": args.sample.display().to_string(),
            "reference": name,
            "rows": [sample.rows(), reference.rows(), other.rows()],
            "settings": settings,
            "distances": found,
        });
        write_atomic(path, |writer| Ok(writeln!(writer, "{document:#}")?))?;
    }
    Ok(())
}
