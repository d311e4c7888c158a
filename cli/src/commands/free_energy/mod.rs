//! `diffclf free-energy`: free-energy differences with error bars; each way to get them is a file of its own.

mod bar;
mod fep;
mod input;
mod learn;
mod levels;
mod mbar;
mod output;
mod ti;

use diffclf_run::error::Result;
use diffclf_run::free_energy::Resample;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy fep forward_works.npy --reverse reverse_works.npy
  diffclf free-energy bar forward_works.npy reverse_works.npy --bootstrap 200
  diffclf free-energy mbar u_kn.npy --counts 500,500,500 --page overlap.html
  diffclf free-energy ti dudl.npy --lambdas 0,0.25,0.5,0.75,1
  diffclf free-energy learn a.npy b.npy --energy-a u_a.npy --energy-b u_b.npy
  diffclf free-energy levels model.safetensors samples.npy

All energies and works are reduced (in kT). Results are delta = log(Z_B/Z_A), Z being the integral
of exp(-u): positive if B has more weight. The free energy difference f_B - f_A (pymbar's Delta_f,
in kT) is minus that; tables show both.";

/// Free-energy differences with error bars.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// How far an estimate is to be trusted.
#[derive(Debug, clap::Args)]
struct Trust {
    /// Bootstrap replicas for a second error bar
    #[arg(long, value_name = "N")]
    bootstrap: Option<usize>,
    /// Wanted error in kT, for the number of samples it needs
    #[arg(long, value_name = "KT", default_value_t = 0.1)]
    error: f64,
    /// Seed of the bootstrap
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
}

impl Trust {
    fn resample(&self) -> Resample {
        Resample {
            replicas: self.bootstrap,
            seed: self.seed,
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Fep(fep::Args),
    Bar(bar::Args),
    Mbar(Box<mbar::Args>),
    Ti(ti::Args),
    Learn(Box<learn::Args>),
    Levels(levels::Args),
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Fep(args) => fep::run(args),
        Command::Bar(args) => bar::run(args),
        Command::Mbar(args) => mbar::run(*args),
        Command::Ti(args) => ti::run(args),
        Command::Learn(args) => learn::run(*args),
        Command::Levels(args) => levels::run(args),
    }
}
