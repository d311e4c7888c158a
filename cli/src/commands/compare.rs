//! `diffclf compare`: how far apart two samples are, beside how far apart two samples of the second's law are.

use crate::help;
use crate::print::print;
use diffclf::metric::ComparisonSettings;
use diffclf_report::comparison;
use diffclf_report::text::table_text;
use diffclf_run::compare::{Comparing, Reference};
use diffclf_run::error::{Error, Result};
use diffclf_run::outputs;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf compare new.npy data.npy
  diffclf compare exact.npy data.npy --weights w.npy --json distances.json
  diffclf compare new.npy --system mog40
  diffclf compare spins.npy --system ising

MMD²: squared maximum mean discrepancy, five Gaussian kernels around the median distance. Sliced W2:
Wasserstein-2 distance of projections. Sliced KS: Kolmogorov-Smirnov distance of projections. Energy
distance: 2E|x-y| - E|x-x'| - E|y-y'|. Mode weights: total variation of the shares of points nearest
to each mode, for systems that are mixtures.

Rows of states: total variations of the laws of sites, of pairs of sites (means over both) and of
the state that most sites show; MMD² and energy distance of the square root of the number of sites
that differ.

The floor is the same distance between two samples of the reference. From a file these are its two
halves, so that the distances use half of it; from a system they are exact samples. A value near its
floor cannot be told from zero.";

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
    #[arg(long, help = help::compared_system(), value_name = "NAME", conflicts_with = "reference")]
    system: Option<String>,
    /// Seed of the system's own parameters
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    system_seed: u64,
    /// Weights of the samples: a .npy file with one number each
    #[arg(long, value_name = "W.npy")]
    weights: Option<PathBuf>,
    /// Weights of the reference samples, likewise
    #[arg(long, value_name = "V.npy")]
    reference_weights: Option<PathBuf>,
    /// States of each site, for rows of symbols 0 to K - 1; 0 for rows of numbers [default: symbols, if both files hold small whole numbers of an integer type]
    #[arg(long, value_name = "K")]
    states: Option<usize>,
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
    outputs::plan(args.json.as_deref(), args.force)?;
    let asked = Comparing {
        sample: args.sample.clone(),
        weights: args.weights.clone(),
        reference_weights: args.reference_weights.clone(),
        reference: match (&args.system, &args.reference) {
            (Some(name), _) => Reference::System {
                name: name.clone(),
                seed: args.system_seed,
            },
            (None, Some(path)) => Reference::File(path.clone()),
            (None, None) => {
                return Err(Error::Usage(
                    "nothing to compare with; give a second file or --system NAME".into(),
                ));
            }
        },
        states: args.states,
        settings: ComparisonSettings {
            directions: args.directions,
            seed: args.seed,
        },
    };
    let found = asked.run()?;
    let name = args.sample.display().to_string();
    print(&table_text(&comparison::table(&name, &found)))?;
    if let Some(path) = &args.json {
        let document = json!({
            "command": "compare",
            "sample": name,
            "reference": found.reference,
            "rows": found.rows,
            "settings": asked.settings,
            "distances": found.distances,
        });
        outputs::write(path, args.force, |writer| {
            Ok(writeln!(writer, "{document:#}")?)
        })?;
    }
    Ok(())
}
