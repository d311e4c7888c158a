//! `diffclf free-energy fep`: exponential averages of works, one direction or both.

use super::Trust;
use super::input::read_series;
use super::output::{Output, differences, effort, facts};
use diffclf::free_energy::{Blocks, Perturbation, bootstrap, perturbation};
use diffclf::metric::Estimate;
use diffclf_run::error::Result;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy fep works.npy
  diffclf free-energy fep forward.npy --reverse reverse.npy --correlated
  diffclf free-energy fep ais_works.npy --bootstrap 500 --json delta.json

Forward works are w = u_B - u_A (kT) at samples of A (or the works of a driven process from A to B, or minus the log-weights
of annealed importance sampling); reverse works are u_A - u_B at samples of B. delta = log <exp(-w)>. The second-order
cumulant estimate is exact for Gaussian works: where the two differ by more than their errors, neither is to be trusted.";

/// Free-energy perturbation, Jarzynski's equality, annealed importance sampling.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Forward works: a .npy file of numbers in kT
    #[arg(value_name = "FORWARD.npy")]
    forward: PathBuf,
    /// Reverse works
    #[arg(long, value_name = "REVERSE.npy")]
    reverse: Option<PathBuf>,
    /// The works are a time series: widen the errors by its statistical inefficiency
    #[arg(long)]
    correlated: bool,
    #[command(flatten)]
    trust: Trust,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.output.check()?;
    let mut rows = Vec::new();
    let mut notices = Vec::new();
    let mut record = json!({ "method": "fep" });
    let mut found: Vec<Perturbation> = Vec::new();
    let directions = [
        ("forward", Some(&args.forward), 1.0),
        ("reverse", args.reverse.as_ref(), -1.0),
    ];
    for (name, path, sign) in directions {
        let Some(path) = path else { continue };
        let works = read_series(path)?;
        let result = perturbation(&works, args.correlated)?;
        let turned = |e: Estimate| Estimate {
            mean: sign * e.mean,
            error: e.error,
        };
        rows.push((
            format!("{name}, exponential average"),
            turned(result.exponential),
        ));
        rows.push((
            format!("{name}, second-order cumulant"),
            turned(result.cumulant),
        ));
        if let Some(replicas) = args.trust.bootstrap {
            let blocks = if args.correlated {
                Blocks::of_series(&works)
            } else {
                Blocks::SINGLE
            };
            let mut estimate = |weights: &[f64]| Ok(weighted(&works, weights));
            let resampled = bootstrap(
                works.len(),
                blocks,
                replicas,
                args.trust.seed,
                &mut estimate,
            )?;
            rows.push((
                format!("{name}, bootstrap error"),
                Estimate {
                    mean: sign * result.exponential.mean,
                    error: resampled.error,
                },
            ));
            record[name]["bootstrap_error"] = resampled.error.into();
        }
        if result.tension() > 3.0 {
            notices.push(format!(
                "{name}: the exponential and the cumulant estimate differ by {:.1} errors: the works are far from Gaussian, or \
                 the rare works that carry the average are missing",
                result.tension()
            ));
        }
        if result.effective_samples < 50.0 {
            notices.push(format!(
                "{name}: only {:.1} of {} samples carry the average; use works in both directions (bar), or states in between",
                result.effective_samples,
                works.len()
            ));
        }
        record[name]["result"] = json!(result);
        record[name]["samples"] = works.len().into();
        found.push(result);
    }
    if let [forward, reverse] = &found[..] {
        let gap = forward.exponential.mean + reverse.exponential.mean;
        let error = forward.exponential.error.hypot(reverse.exponential.error);
        if gap.abs() > 3.0 * error {
            notices.push(format!(
                "the two directions differ by {:.1} errors (hysteresis {gap:.3} kT): use bar",
                gap.abs() / error
            ));
        }
        record["hysteresis"] = gap.into();
    }
    let tables = [
        differences("Free-energy perturbation", &rows),
        facts(
            "Samples",
            &[
                (
                    "effective samples, forward",
                    format!("{:.1}", found[0].effective_samples),
                ),
                (
                    "statistical inefficiency",
                    format!("{:.2}", found[0].inefficiency),
                ),
                (
                    "for the wanted error",
                    effort(found[0].exponential.error, args.trust.error),
                ),
            ],
        ),
    ];
    args.output
        .give("Free-energy perturbation", &tables, &notices, &[], record)
}

/// log <exp(-w)> with weights.
fn weighted(works: &[f64], weights: &[f64]) -> f64 {
    let lowest = works.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = works
        .iter()
        .zip(weights)
        .map(|(w, n)| n * (lowest - w).exp())
        .sum();
    (sum / works.len() as f64).ln() - lowest
}
