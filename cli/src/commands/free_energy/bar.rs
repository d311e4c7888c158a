//! `diffclf free-energy bar`: Bennett's acceptance ratio from works in both directions.

use super::Trust;
use super::input::read_series;
use super::output::{Output, convergence_figure, differences, effort, facts};
use diffclf::free_energy::{
    Blocks, LOW_OVERLAP, bar, bar_bootstrap, convergence, statistical_inefficiency, subsample,
};
use diffclf::metric::Estimate;
use diffclf_run::error::Result;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy bar forward.npy reverse.npy
  diffclf free-energy bar forward.npy reverse.npy --subsample --bootstrap 200 --json delta.json

Forward works are u_B - u_A (kT) at samples of A, reverse works u_A - u_B at samples of B; works of driven processes do as
well (Crooks).";

/// BAR: the best estimate from works in both directions.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Forward works: a .npy file of numbers in kT
    #[arg(value_name = "FORWARD.npy")]
    forward: PathBuf,
    /// Reverse works
    #[arg(value_name = "REVERSE.npy")]
    reverse: PathBuf,
    /// The works are time series: keep only as many as are independent
    #[arg(long)]
    subsample: bool,
    #[command(flatten)]
    trust: Trust,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.output.check()?;
    let mut series = [read_series(&args.forward)?, read_series(&args.reverse)?];
    let inefficiency = series
        .each_ref()
        .map(|works| statistical_inefficiency(works));
    if args.subsample {
        for (works, g) in series.iter_mut().zip(inefficiency) {
            *works = subsample(works.len(), g)
                .iter()
                .map(|n| works[*n])
                .collect();
        }
    }
    let [forward, reverse] = &series;
    let found = bar(forward, reverse)?;
    let mut rows = vec![
        ("Bennett's error".to_string(), found.delta),
        (
            "MBAR's error".to_string(),
            Estimate {
                error: found.mbar_error,
                ..found.delta
            },
        ),
    ];
    let mut record = json!({
        "method": "bar",
        "result": found,
        "samples": [forward.len(), reverse.len()],
        "statistical_inefficiency": inefficiency,
    });
    if let Some(replicas) = args.trust.bootstrap {
        let blocks = if args.subsample {
            [Blocks::SINGLE; 2]
        } else {
            [
                Blocks::of(forward.len(), inefficiency[0]),
                Blocks::of(reverse.len(), inefficiency[1]),
            ]
        };
        let resampled = bar_bootstrap(forward, reverse, blocks, replicas, args.trust.seed)?;
        rows.push((
            "bootstrap error".into(),
            Estimate {
                mean: found.delta.mean,
                error: resampled.error,
            },
        ));
        record["bootstrap_error"] = resampled.error.into();
    }
    let shares: Vec<f64> = (1..=10).map(|i| f64::from(i) / 10.0).collect();
    let mut notices = Vec::new();
    let mut figures = Vec::new();
    // Few works may not connect the ends in a tenth of them: then there is nothing to draw.
    let course = convergence(&shares, &mut |range| {
        let part = |works: &[f64]| works[range(works.len())].to_vec();
        Ok(bar(&part(forward), &part(reverse))?.delta)
    });
    match course {
        Ok(course) => {
            if course.tension() > 3.0 {
                notices.push(format!(
                    "the first and the last works disagree by {:.1} errors: the series have not settled",
                    course.tension()
                ));
            }
            figures.push(convergence_figure(&course));
            record["convergence"] = json!(course);
        }
        Err(error) => notices.push(format!("no convergence from shares of the works: {error}")),
    }
    if found.overlap < LOW_OVERLAP {
        notices.push(format!(
            "the overlap is {:.4}, below {LOW_OVERLAP}: the error bars cannot be trusted; put states in between",
            found.overlap
        ));
    }
    if !args.subsample && inefficiency.iter().any(|g| *g > 2.0) {
        notices.push(format!(
            "the works are correlated (statistical inefficiencies {:.1} and {:.1}): errors are too small unless --subsample is given",
            inefficiency[0], inefficiency[1]
        ));
    }
    let tables = [
        differences("BAR", &rows),
        facts(
            "Samples",
            &[
                (
                    "works, forward and reverse",
                    format!("{} and {}", forward.len(), reverse.len()),
                ),
                ("overlap (0 to 1)", format!("{:.4}", found.overlap)),
                (
                    "for the wanted error",
                    effort(found.delta.error, args.trust.error),
                ),
            ],
        ),
    ];
    args.output.give("BAR", &tables, &notices, &figures, record)
}
