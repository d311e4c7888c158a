//! `diffclf free-energy mbar`: all states from all samples, with everything that tells whether to trust it.

use super::input::{counts, numbers};
use super::output::Output;
use crate::machine::MachineArgs;
use crate::terminal::Terminal;
use diffclf_report::free_energy::mbar;
use diffclf_run::error::{Error, Result};
use diffclf_run::free_energy::Resample;
use diffclf_run::free_energy::mbar::{MbarRequest, MbarTargets};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy mbar u_kn.npy --counts 500,500,0,500
  diffclf free-energy mbar u_nk.npy --transposed --counts 1000x12 --subsample --page overlap.html
  diffclf free-energy mbar u_kn.npy --counts 500x4 --observable x.npy --state 2
  diffclf free-energy mbar u_kn.npy --counts 500x4 --coordinate x.npy --bins -2,2,40 \\
      --json surface.json
  diffclf free-energy mbar u_kn.npy --counts 500x4 --perturbed u_new.npy --bootstrap 100

u_kn.npy holds the reduced energy (kT) of every sample in every state, one row per state; samples
are ordered by the state they come from, as --counts says. A state may have no samples. The file is
read in place: it may be larger than memory. pymbar's u_kn and N_k are the same arrays.";

/// MBAR: free energies of many states from all their samples.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Reduced energies: a .npy file of shape (states, samples)
    #[arg(value_name = "U_KN.npy")]
    energies: PathBuf,
    /// Samples of each state: 500,500,0,500 or 500x4
    #[arg(long, value_name = "N0,N1,...")]
    counts: String,
    /// The file has shape (samples, states)
    #[arg(long)]
    transposed: bool,
    /// Leave out the start of each state's series, before it has equilibrated
    #[arg(long)]
    equilibrate: bool,
    /// Keep only as many samples of each state's series as are independent
    #[arg(long)]
    subsample: bool,
    /// Bootstrap replicas for a second error bar
    #[arg(long, value_name = "N")]
    bootstrap: Option<usize>,
    /// Seed of the bootstrap
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Estimates from growing shares of the data, forward and backward
    #[arg(long)]
    convergence: bool,
    /// Wanted error of the last state relative to the first, in kT, for the number of samples it needs
    #[arg(long, value_name = "KT", default_value_t = 0.1)]
    error: f64,
    /// State for expectations and surfaces
    #[arg(long, value_name = "K", default_value_t = 0, help_heading = "Targets")]
    state: usize,
    /// Values of an observable at every sample: its mean in --state
    #[arg(long, value_name = "A.npy", help_heading = "Targets")]
    observable: Vec<PathBuf>,
    /// Energies of further states at every sample: their free energies
    #[arg(long, value_name = "U_NEW.npy", help_heading = "Targets")]
    perturbed: Option<PathBuf>,
    /// Values of a coordinate at every sample: the free-energy surface of --state along it
    #[arg(long, value_name = "X.npy", help_heading = "Targets")]
    coordinate: Option<PathBuf>,
    /// Bins of the surface: lowest edge, highest edge, number
    #[arg(
        long,
        value_name = "LOW,HIGH,N",
        allow_hyphen_values = true,
        help_heading = "Targets",
        requires = "coordinate"
    )]
    bins: Option<String>,
    /// Tolerance of the solution
    #[arg(long, value_name = "TOL", default_value_t = 1e-12)]
    tolerance: f64,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.output.check()?;
    let asked = MbarRequest {
        counts: counts(&args.counts).map_err(|text| Error::Usage(format!("--counts: {text}")))?,
        energies: args.energies,
        transposed: args.transposed,
        equilibrate: args.equilibrate,
        subsample: args.subsample,
        resample: Resample {
            replicas: args.bootstrap,
            seed: args.seed,
        },
        convergence: args.convergence,
        targets: MbarTargets {
            state: args.state,
            observables: args.observable,
            perturbed: args.perturbed,
            coordinate: args.coordinate,
            bins: args.bins.as_deref().map(bins).transpose()?,
        },
        tolerance: args.tolerance,
    };
    let found = asked.run(&args.machine.machine(), &Terminal::new(args.quiet))?;
    args.output.give(&mbar(&found, args.error))
}

/// Lowest edge, highest edge, number.
fn bins(text: &str) -> Result<[f64; 3]> {
    match numbers(text).as_deref() {
        Ok([low, high, bins]) => Ok([*low, *high, *bins]),
        _ => Err(Error::Usage(format!(
            "--bins is '{text}', expected three numbers: lowest edge, highest edge, number of bins"
        ))),
    }
}
