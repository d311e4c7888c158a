//! `diffclf free-energy ti`: thermodynamic integration of measured slopes.

use super::input::numbers;
use super::output::Output;
use crate::help;
use diffclf_report::free_energy::ti;
use diffclf_run::error::{Error, Result};
use diffclf_run::free_energy::ti::from_files;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy ti dudl.npy --lambdas 0,0.25,0.5,0.75,1
  diffclf free-energy ti l0.npy l1.npy l2.npy --lambdas 0,0.5,1 --page integrand.html

One file holds one row of samples of du/dlambda (kT) per lambda, or each lambda has a file of its
own. Errors are widened by the statistical inefficiency of each series. delta = -integral of
<du/dlambda>; where the rules differ by more than the error, add points.";

/// Thermodynamic integration.
#[derive(Debug, clap::Args)]
#[command(about = help::integration(), after_help = EXAMPLES)]
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
    let found = from_files(&args.slopes, lambdas, args.independent)?;
    args.output.give(&ti(&found, args.error))
}
