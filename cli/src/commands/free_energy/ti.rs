//! `diffclf free-energy ti`: thermodynamic integration of measured slopes.

use super::input::{numbers, read_series};
use super::output::{Output, differences, effort, facts, integrand_figure};
use diffclf::free_energy::{Rule, integrate, statistical_inefficiency};
use diffclf::metric::Estimate;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::MappedNpy;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy ti dudl.npy --lambdas 0,0.25,0.5,0.75,1
  diffclf free-energy ti l0.npy l1.npy l2.npy --lambdas 0,0.5,1 --page integrand.html

One file holds one row of samples of du/dlambda (kT) per lambda, or each lambda has a file of its own. Errors are widened by
the statistical inefficiency of each series. delta = -integral of <du/dlambda>; where the rules differ by more than the
error, add points.";

/// Thermodynamic integration: trapezoid, Simpson and spline.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Samples of du/dlambda
    #[arg(value_name = "DUDL.npy", required = true)]
    slopes: Vec<PathBuf>,
    /// The values of lambda, rising
    #[arg(long, value_name = "L0,L1,...")]
    lambdas: String,
    /// The samples are independent: do not look for correlation
    #[arg(long)]
    independent: bool,
    /// Wanted error in kT, for the number of samples it needs
    #[arg(long, value_name = "KT", default_value_t = 0.1)]
    error: f64,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.output.check()?;
    let lambdas =
        numbers(&args.lambdas).map_err(|text| Error::Usage(format!("--lambdas: {text}")))?;
    let series: Vec<Vec<f64>> = if let [path] = &args.slopes[..] {
        let mapped = MappedNpy::open(path)?;
        let view = mapped.view()?;
        let mut row = vec![0.0; view.dim()];
        (0..view.rows())
            .map(|i| {
                view.copy_row_f64(i, &mut row);
                row.clone()
            })
            .collect()
    } else {
        args.slopes
            .iter()
            .map(|path| read_series(path))
            .collect::<Result<_>>()?
    };
    if series.len() != lambdas.len() {
        return Err(Error::Usage(format!(
            "--lambdas has {} values, but there are {} series of slopes; expected one for each (one row of the file, or one file)",
            lambdas.len(),
            series.len()
        )));
    }
    let mut slopes = Vec::with_capacity(series.len());
    let mut inefficiency = Vec::with_capacity(series.len());
    for (values, lambda) in series.iter().zip(&lambdas) {
        if values.len() < 2 || values.iter().any(|x| !x.is_finite()) {
            return Err(Error::Usage(format!(
                "the slopes at lambda {lambda} are {} numbers, expected at least two, all finite",
                values.len()
            )));
        }
        let g = if args.independent {
            1.0
        } else {
            statistical_inefficiency(values)
        };
        let plain = Estimate::of(values);
        slopes.push(Estimate {
            mean: plain.mean,
            error: plain.error * g.sqrt(),
        });
        inefficiency.push(g);
    }
    let results = Rule::ALL
        .into_iter()
        .map(|rule| {
            Ok((
                rule.name().to_string(),
                integrate(&lambdas, &slopes, rule)?.delta,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    let spread = {
        let values = || results.iter().map(|(_, e)| e.mean);
        values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
    };
    let error = results[2].1.error;
    let mut notices = Vec::new();
    if spread > 2.0 * error {
        notices.push(format!(
            "the rules differ by {spread:.4} kT, more than twice the statistical error: add values of lambda where the slope bends"
        ));
    }
    let record = json!({
        "method": "ti",
        "lambdas": lambdas,
        "slopes": slopes,
        "statistical_inefficiency": inefficiency,
        "results": results.iter().map(|(name, e)| json!({ "rule": name, "delta": e })).collect::<Vec<_>>(),
        "spread_of_rules": spread,
    });
    let tables = [
        differences("Thermodynamic integration", &results),
        facts(
            "Quality",
            &[
                ("spread of the rules (kT)", format!("{spread:.4}")),
                ("for the wanted error", effort(error, args.error)),
            ],
        ),
    ];
    let figure = integrand_figure(&lambdas, &slopes);
    args.output.give(
        "Thermodynamic integration",
        &tables,
        &notices,
        &[figure],
        record,
    )
}
