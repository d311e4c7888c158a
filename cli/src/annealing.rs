//! What `compose` and `anneal` share: the flags of sequential Monte Carlo and of its results.

use crate::help;
use diffclf::format::npy::write_npy;
use diffclf::sample::mcmc::Kernel;
use diffclf::sample::{Particles, Resampling, Smc};
use diffclf_run::error::{Error, Result};
use diffclf_run::named::word;
use diffclf_run::outputs;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Flags of sequential Monte Carlo.
#[derive(Debug, Clone, clap::Args)]
pub struct SmcArgs {
    /// Particles
    #[arg(short = 'n', long, value_name = "N", default_value_t = 8192)]
    pub particles: usize,
    /// Levels of the path [default: those of the model's grid]
    #[arg(long, value_name = "LEVELS")]
    pub levels: Option<usize>,
    #[arg(long, help = help::moving(), value_name = "NAME", default_value = "mala")]
    pub moving: String,
    /// Its steps at each level
    #[arg(long, value_name = "STEPS", default_value_t = 64)]
    pub moves: usize,
    /// Its first step size; tuned to the kernel's acceptance (75 % for mala)
    #[arg(long, value_name = "SIZE", default_value_t = 0.1)]
    pub step: f64,
    /// Resample when the effective sample size falls below this share
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    pub threshold: f64,
    #[arg(long, help = help::resampling(), value_name = "SCHEME", default_value = "systematic", value_parser = word::<Resampling>)]
    pub resampling: Resampling,
    /// Choose the levels so that neighbours have this conditional effective sample size
    #[arg(long, value_name = "SHARE")]
    pub adaptive: Option<f64>,
    /// Refuse a path on which the conditional effective sample size of neighbours falls below this share
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub least_overlap: f64,
    /// Share the particles between so many independent runs, whose spread tells the error of log Z: eight do so well, fewer than four hardly
    #[arg(long, value_name = "RUNS", default_value_t = 1)]
    pub runs: usize,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
}

impl SmcArgs {
    /// The library's settings.
    pub fn smc(&self) -> Result<Smc> {
        let smc = Smc {
            kernel: Kernel::by_name(&self.moving)?,
            moves: self.moves,
            step: self.step,
            frozen_steps: None,
            threshold: self.threshold,
            resampling: self.resampling,
            adaptive: self.adaptive,
            least_overlap: self.least_overlap,
            genealogy: false,
            runs: self.runs,
            seed: self.seed,
        };
        smc.validate()?;
        Ok(smc)
    }
}

/// Where results go: samples, weights if asked for, and the record beside the samples.
#[derive(Debug, Clone, clap::Args)]
pub struct OutputArgs {
    /// Result: a .npy file of float64; the record goes beside it, as .json
    #[arg(short, long, value_name = "OUT.npy")]
    pub output: PathBuf,
    /// Keep the particles as they are and write their weights to this .npy file [default: draw equally weighted samples]
    #[arg(long, value_name = "W.npy")]
    pub weights: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// No progress on the terminal
    #[arg(long)]
    pub quiet: bool,
}

impl OutputArgs {
    /// The record's path.
    pub fn record(&self) -> PathBuf {
        self.output.with_extension("json")
    }

    /// Refuses before any work.
    pub fn check(&self) -> Result<()> {
        if self.record() == self.output {
            return Err(Error::Usage(format!(
                "-o is {}, expected a name that ends in .npy: the record takes the name with .json",
                self.output.display()
            )));
        }
        let record = self.record();
        let paths = [Some(&self.output), Some(&record), self.weights.as_ref()];
        outputs::plan(
            paths.into_iter().flatten().map(PathBuf::as_path),
            self.force,
        )
    }

    /// Writes samples (equally weighted, unless weights are asked for).
    pub fn write(&self, particles: &Particles, seed: u64) -> Result<()> {
        let rows = particles.weights.len();
        let points = match &self.weights {
            Some(path) => {
                outputs::write(path, self.force, |writer| {
                    write_npy(&[rows], &particles.weights, writer)
                })?;
                particles.points.clone()
            }
            None => particles.equally_weighted(rows, seed),
        };
        write_rows(&self.output, &points, rows, self.force)
    }

    /// Writes the record.
    pub fn write_record(&self, record: &Value) -> Result<()> {
        outputs::write(&self.record(), self.force, |writer| {
            Ok(writeln!(writer, "{record:#}")?)
        })
    }
}

/// Rows in double precision: the user's coordinates may lie far from zero, where single precision has no digits left.
pub fn write_rows(path: &Path, points: &[f64], rows: usize, force: bool) -> Result<()> {
    outputs::write(path, force, |writer| {
        write_npy(&[rows, points.len() / rows], points, writer)
    })
}
