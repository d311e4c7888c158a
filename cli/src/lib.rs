//! The diffclf program: this file is the map, each command is a file of its own. A library, so that the Python package has the same command.

mod annealing;
mod bridge;
mod commands;
mod error;
mod help;
mod machine;
mod opened;
mod print;
mod processes;
mod progress;
mod settings;
mod signals;
mod states;
mod stop;
mod terminal;

use clap::{Parser, Subcommand};
use commands::{
    anneal, compare, compose, convert, demo, density, diagnose, evaluate, free_energy, inspect,
    molecule, observe, report, reproduce, rows, sample, selftest, simulate, surface, train, weight,
};
use diffclf_run::company::company;
use std::ffi::OsString;

const EXAMPLES: &str = "\
Start here:
  diffclf demo                                            what it is about, in two minutes
  diffclf train samples.npy -o runs/mine                  learn from your own samples
  diffclf density runs/mine/model.safetensors points.npy -o log_density.npy
  diffclf diagnose runs/mine samples.npy                  is it any good?
  diffclf sample runs/mine/model.safetensors -n 10000 -o new.npy

Each command explains itself: diffclf train --help
Exit codes: 0 success, 1 failed run or check, 2 wrong usage or input, 3 numerical failure, 4 passed
with warnings (diagnose), 130 interrupted.";

/// Learn energies (log-densities, mode weights included) from samples.
#[derive(Debug, Parser)]
#[command(name = "diffclf", version, after_help = EXAMPLES, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Train(Box<train::Args>),
    Evaluate(evaluate::Args),
    Diagnose(diagnose::Args),
    Report(report::Args),
    FreeEnergy(free_energy::Args),
    Density(density::Args),
    Weight(weight::Args),
    Surface(surface::Args),
    Rows(rows::Args),
    Sample(sample::Args),
    Compose(Box<compose::Args>),
    Anneal(Box<anneal::Args>),
    Compare(compare::Args),
    Simulate(Box<simulate::Args>),
    Observe(observe::Args),
    Convert(convert::Args),
    Inspect(inspect::Args),
    Molecule(molecule::Args),
    Reproduce(reproduce::Args),
    Selftest(selftest::Args),
}

/// Runs the program with these arguments, its own name among them, and returns its exit code.
pub fn main_with(args: impl IntoIterator<Item = OsString>) -> u8 {
    signals::explain_lost_data();
    let command = match Cli::try_parse_from(args) {
        Ok(cli) => cli.command,
        Err(refusal) => {
            // Help and version go to the output, refusals to standard error. A closed pipe is no failure.
            if processes::is_first() {
                let _ = refusal.print();
            }
            return u8::try_from(refusal.exit_code()).unwrap_or(error::EXIT_USAGE);
        }
    };
    let told = |error: diffclf_run::Error| {
        print::note(&format!("{}: {}", error::kind(&error), error::told(&error)));
        error::exit_code(&error)
    };
    let processes = match processes::Processes::join() {
        Ok(processes) => processes,
        Err(error) if processes::is_first() => return told(error),
        Err(error) => return error::exit_code(&error),
    };
    processes.leave(run(command).map_or_else(told, |()| 0))
}

fn run(command: Command) -> diffclf_run::Result<()> {
    let alone = matches!(command, Command::Reproduce(_) | Command::Demo(_));
    if alone && company().is_some() {
        return Err(diffclf_run::Error::Usage(
            "this command is for one process; give it more --threads, or share the cells of reproduce between jobs with --cells 2/8".into(),
        ));
    }
    match command {
        Command::Demo(args) => demo::run(args),
        Command::Train(args) => train::run(*args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Diagnose(args) => diagnose::run(args),
        Command::Report(args) => report::run(args),
        Command::FreeEnergy(args) => free_energy::run(args),
        Command::Density(args) => density::run(args),
        Command::Weight(args) => weight::run(args),
        Command::Surface(args) => surface::run(args),
        Command::Rows(args) => rows::run(args),
        Command::Sample(args) => sample::run(args),
        Command::Compose(args) => compose::run(*args),
        Command::Anneal(args) => anneal::run(*args),
        Command::Compare(args) => compare::run(args),
        Command::Simulate(args) => simulate::run(*args),
        Command::Observe(args) => observe::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Molecule(args) => molecule::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Selftest(args) => selftest::run(args),
    }
}
