//! `diffclf free-energy fep`: exponential averages of works, one direction or both.

use super::Trust;
use super::output::Output;
use diffclf_report::free_energy::fep;
use diffclf_run::error::Result;
use diffclf_run::free_energy::fep::from_files;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy fep works.npy
  diffclf free-energy fep forward.npy --reverse reverse.npy --correlated
  diffclf free-energy fep ais_works.npy --bootstrap 500 --json delta.json

Forward works are w = u_B - u_A (kT) at samples of A (or the works of a driven process from A to B,
or minus the log-weights of annealed importance sampling); reverse works are u_A - u_B at samples of
B. delta = log <exp(-w)>. The second-order cumulant estimate is exact for Gaussian works: where the
two differ by more than their errors, neither is to be trusted.";

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
    let resample = args.trust.resample();
    let reverse = args.reverse.as_deref();
    let found = from_files(&args.forward, reverse, args.correlated, resample)?;
    args.output.give(&fep(&found, args.trust.error))
}
