//! What commands on a model have in common: the model itself, and the record they leave as JSON.

use crate::machine::MachineArgs;
use diffclf::energy::LearnedEnergy;
use diffclf::engine::{Isa, Pool};
use diffclf::model::Model;
use diffclf_run::error::Result;
use diffclf_run::files::read_model;
use diffclf_run::outputs;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The model, and what computes with it.
#[derive(Debug, Clone, clap::Args)]
pub struct ModelArgs {
    /// Model file, or the run folder that holds it
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    #[command(flatten)]
    machine: MachineArgs,
}

impl ModelArgs {
    /// The model and its energy in its own coordinates.
    pub fn open(&self) -> Result<(Model, LearnedEnergy)> {
        let model = read_model(&self.model)?;
        let energy = model.energy(self.machine.pool()?, self.machine.isa()?)?;
        Ok((model, energy))
    }

    /// Threads and kernels.
    pub fn machine(&self) -> Result<(Arc<Pool>, Isa)> {
        Ok((self.machine.pool()?, self.machine.isa()?))
    }

    /// The path as it was given.
    pub fn name(&self) -> String {
        self.model.display().to_string()
    }
}

/// Weights of the rows that a model is judged by.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WeightArgs {
    /// Weights of the rows: a .npy file with one number each [default: those of the training, for the very rows of the training]
    #[arg(long, value_name = "WEIGHTS.npy")]
    pub weights: Option<PathBuf>,
    /// Weights of the rows of the second endpoint
    #[arg(long, value_name = "WEIGHTS1.npy")]
    pub end_weights: Option<PathBuf>,
}

impl WeightArgs {
    /// Those of both endpoints.
    pub fn both(&self) -> [Option<PathBuf>; 2] {
        [self.weights.clone(), self.end_weights.clone()]
    }
}

/// The record of a command.
#[derive(Debug, Clone, clap::Args)]
pub struct RecordArgs {
    /// Write what was done and found as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// No progress on the terminal
    #[arg(long)]
    pub quiet: bool,
}

impl RecordArgs {
    /// Refuses, before any work, what could not be written after it: the record and these files.
    pub fn check<'a>(&'a self, others: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        outputs::plan(others.into_iter().chain(self.json.as_deref()), self.force)
    }

    /// Writes the record, if it is asked for.
    pub fn write(&self, document: impl FnOnce() -> Value) -> Result<()> {
        match &self.json {
            Some(path) => {
                let document = document();
                outputs::write(path, self.force, |writer| {
                    Ok(writeln!(writer, "{document:#}")?)
                })
            }
            None => Ok(()),
        }
    }
}
