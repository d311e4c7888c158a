//! `diffclf free-energy bar`: Bennett's acceptance ratio from works in both directions.

use super::Trust;
use super::output::Output;
use diffclf_report::free_energy::bar;
use diffclf_run::error::Result;
use diffclf_run::free_energy::bar::from_files;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy bar forward.npy reverse.npy
  diffclf free-energy bar forward.npy reverse.npy --subsample --bootstrap 200 --json delta.json

Forward works are u_B - u_A (kT) at samples of A, reverse works u_A - u_B at samples of B; works of
driven processes do as well (Crooks).";

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
    let resample = args.trust.resample();
    let found = from_files(&args.forward, &args.reverse, args.subsample, resample)?;
    args.output.give(&bar(&found, args.trust.error))
}
