//! The settings of a training run as flags: a mirror of [`diffclf_run::settings::Settings`], key by key.

use crate::help;
use diffclf::energy::Form;
use diffclf::process::{Process, Spacing, TimeSampler};
use diffclf::train::Decay;
use diffclf_run::base::BaseKind;
use diffclf_run::coupling::CouplingChoice;
use diffclf_run::molecule::MoleculeChoice;
use diffclf_run::named::{Named, word};
use diffclf_run::network::NetworkChoice;
use diffclf_run::particles::CentreKind;
use diffclf_run::settings::{LARGEST_SEED, ScaleKind, Settings};
use diffclf_run::{Error, Result};
use serde::Serialize;
use std::path::PathBuf;

/// Flags of a training run; one that is absent leaves its setting to the configuration file or the default.
#[derive(Debug, Clone, Default, clap::Args, Serialize)]
pub struct SettingsArgs {
    /// Samples to learn from: a .npy file whose first axis counts them, a .csv or .tsv table, or an array of an archive, data.npz:key
    #[arg(value_name = "DATA.npy", help_heading = "Data")]
    pub data: Option<PathBuf>,
    /// Samples of the second endpoint, for an interpolant
    #[arg(long, value_name = "DATA1.npy", help_heading = "Data")]
    pub end: Option<PathBuf>,
    /// Weights of the samples, one number for each: a sample counts in proportion to its weight [default: all count the same]
    #[arg(long, value_name = "WEIGHTS.npy", help_heading = "Data")]
    pub weights: Option<PathBuf>,
    /// Weights of the samples of the second endpoint
    #[arg(long, value_name = "WEIGHTS1.npy", help_heading = "Data")]
    pub end_weights: Option<PathBuf>,
    #[arg(long, help = help::system(), value_name = "NAME", help_heading = "Data")]
    pub system: Option<String>,
    /// Built-in system at the second endpoint, for an interpolant
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    pub end_system: Option<String>,
    #[arg(long, help = help::dim(), value_name = "D", help_heading = "Data")]
    pub dim: Option<usize>,
    /// Seed of the system's own parameters (the means of mog40) [default: 0]
    #[arg(long, value_name = "SEED", help_heading = "Data", value_parser = clap::value_parser!(u64).range(..=LARGEST_SEED))]
    pub system_seed: Option<u64>,
    /// Draw a fixed set of N rows from the system, as the paper does with 60000 [default: fresh rows at every step]
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub samples: Option<usize>,
    /// States of each site, for rows of symbols 0 to K - 1; 0 for rows of numbers [default: recognised where a file holds small whole numbers of an integer type]
    #[arg(long, value_name = "K", help_heading = "Data")]
    pub states: Option<usize>,
    /// Noise on states: uniform, a site that is hit becomes any state; masked, it is masked and stays so [default: uniform]
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub noise: Option<String>,
    /// Shift and scale the data to mean 0 and scalar variance 1 (see --no-standardise)
    #[arg(skip)]
    pub standardise: Option<bool>,
    /// How columns are scaled: column, each by its own spread; whiten, by their covariance; common, all by one; none [default: column; common for particles, two endpoints and systems]
    #[arg(long, value_name = "SCALE", help_heading = "Data", value_parser = word::<ScaleKind>)]
    pub scale: Option<ScaleKind>,
    /// Columns that are periodic, by number (from 0) or name, with their periods: 0,1 or phi,psi or 4:24 [default: recognised where values fill a circle of 2 pi or 360; none for none]
    #[arg(long, value_name = "COLUMNS", help_heading = "Data")]
    pub periodic: Option<String>,
    /// Columns that are positive, learned as logarithms [default: recognised where values are skewed and reach down to zero; none for none]
    #[arg(long, value_name = "COLUMNS", help_heading = "Data")]
    pub positive: Option<String>,
    /// Columns that lie between bounds, COLUMN:LOW:HIGH, such as 2:0:1 [default: none]
    #[arg(long, value_name = "COLUMNS", help_heading = "Data")]
    pub bounded: Option<String>,
    /// Add uniform noise as wide as one step to columns whose values are rounded: integers and grids have no density [default: to columns of whole numbers that are no angles]
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = "Data"
    )]
    pub dequantise: Option<bool>,
    /// Share of the rows that is never trained on, 0 for none [default: 100 rows of those given, no less than 0.05 and no more than 0.2 of them; none of fewer than 60]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "SHARE",
        help_heading = "Data"
    )]
    pub held_out: Option<f64>,
    /// Steps between two evaluations on the held-out rows [default: steps/40, at least 50]
    #[arg(long, value_name = "STEPS", help_heading = "Data")]
    pub held_out_every: Option<u64>,
    /// End a stage after so many held-out evaluations without a new best, and keep the best; 0 never stops [default: 10]
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub patience: Option<u64>,

    /// Levels of the time grid [default: 512]
    #[arg(long, value_name = "LEVELS", help_heading = "Model")]
    pub grid_levels: Option<usize>,
    /// Smallest time of the grid [default: follows the finest structure of given rows, else the process, 1e-4 for vp]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "TIME",
        help_heading = "Model"
    )]
    pub t_min: Option<f64>,
    /// Largest time of the grid [default: follows the process, 0.9999 for vp]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "TIME",
        help_heading = "Model"
    )]
    pub t_max: Option<f64>,
    /// Columns of a hidden layer [default: 128; 32 or 64 for few given rows]
    #[arg(long, value_name = "COLUMNS", help_heading = "Model")]
    pub width: Option<usize>,
    /// Hidden layers [default: 4; 2 for a transformer]
    #[arg(long, value_name = "LAYERS", help_heading = "Model")]
    pub depth: Option<usize>,
    /// Sinusoidal time features [default: 64]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub features: Option<usize>,
    /// Number of particles in a row: the energy knows neither their frame nor, where they are alike, their names
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub particles: Option<usize>,
    /// The particles by a file (docs/molecules.md): a .pdb structure, or a .toml file. Their number, and for egnn (the default with it) and
    /// transformer their types and bonds
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub topology: Option<PathBuf>,
    /// The centre of all particles: free, no part of the model, whose log-densities have three dimensions less in space; or kept, as any other
    /// column [default: free for egnn and transformer]
    #[arg(long, value_name = "CENTRE", help_heading = "Model", value_parser = word::<CentreKind>)]
    pub centre: Option<CentreKind>,
    /// Turn each row of particles at random when it is trained on [default: for a transformer, unless rows are aligned]
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = "Data"
    )]
    pub rotate: Option<bool>,
    /// When the training ends, solve for F(t) of all levels by MBAR, and keep it if it tells levels of other rows apart better [default: true, where an objective compares the levels of a diffusion on a Gaussian]
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = "Training"
    )]
    pub levelling: Option<bool>,
    /// Turn each row of particles onto the first one, without a reflection; so are rows that the model is asked about
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        help_heading = "Data"
    )]
    pub align: Option<bool>,
    #[arg(long, help = help::form(), value_name = "FORM", help_heading = "Model", value_parser = word::<Form>)]
    pub form: Option<Form>,
    /// What the energy stands on: gaussian, mixture (fitted to the rows), springs (bonds, angles, torsions and pairs of particles, fitted to the rows) or auto [default: auto: a mixture for rows that are given, springs for particles with bonds]
    #[arg(long, value_name = "BASE", help_heading = "Model", value_parser = word::<BaseKind>)]
    pub base: Option<BaseKind>,
    /// Pairs of particles with a bond, 0-1,1-2, from which springs follow [default: those of the topology or of the network]
    #[arg(long, value_name = "PAIRS", help_heading = "Model")]
    pub bonds: Option<String>,

    /// Weighted sum of losses, such as dsm+0.5*diffclf; all names below [default: dsm+diffclf]
    #[arg(long, value_name = "SUM", help_heading = "Training")]
    pub objective: Option<String>,
    /// Times of one row, N of DiffCLF [default: 4; 2 for the binary losses; 1 where no levels are compared]
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub levels: Option<usize>,
    /// Rows per step [default: 2048, 512 on a mixture, or all rows if there are fewer]
    #[arg(long, value_name = "ROWS", help_heading = "Training")]
    pub batch: Option<usize>,
    /// Steps on the objective [default: 2000]
    #[arg(long, value_name = "STEPS", help_heading = "Training")]
    pub steps: Option<u64>,
    /// Steps of further stages on the objective, each with a learning rate of its own: 6000 or 6000,2000 [default: none; --resume --steps N adds one to a run of fewer steps]
    #[arg(
        long,
        value_name = "STEPS",
        value_delimiter = ',',
        help_heading = "Training"
    )]
    pub more_steps: Option<Vec<u64>>,
    /// Steps of a first stage with dsm alone, 0 for none [default: 2000, 1000 on a mixture; 0 if the objective is dsm]
    #[arg(long, value_name = "STEPS", help_heading = "Training")]
    pub score_steps: Option<u64>,
    /// Largest learning rate [default: 0.001]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "RATE",
        help_heading = "Training"
    )]
    pub rate: Option<f64>,
    #[arg(long, help = help::decay(), value_name = "SHAPE", help_heading = "Training", value_parser = word::<Decay>)]
    pub decay: Option<Decay>,
    /// Steps in which each stage's learning rate grows from 0 [default: 0]
    #[arg(long, value_name = "STEPS", help_heading = "Training")]
    pub warm_up: Option<u64>,
    /// Largest norm of a gradient, 0 for no limit [default: 1]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "NORM",
        help_heading = "Training"
    )]
    pub clip: Option<f64>,
    /// Decay of the moving average of the parameters, 0 for none [default: 0.999]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "DECAY",
        help_heading = "Training"
    )]
    pub average: Option<f64>,
    /// Seed of everything random [default: 0]
    #[arg(long, value_name = "SEED", help_heading = "Training", value_parser = clap::value_parser!(u64).range(..=LARGEST_SEED))]
    pub seed: Option<u64>,
    /// Steps between two lines of log.jsonl [default: 10]
    #[arg(long, value_name = "STEPS", help_heading = "Training")]
    pub log_every: Option<u64>,
    /// Instruction set of the kernels (see --kernel); kept here because it decides the last bits.
    #[arg(skip)]
    pub kernel: Option<String>,

    /// The network: mlp, pairs, egnn, transformer, or with parameters '{kind = "egnn", types = [0, 1, 0], bonds = [[0, 1]], cross = true}'
    /// or '{kind = "transformer", types = [0, 1, 2], heads = 8, head_width = 64}' [default: mlp; pairs if there are particles]
    #[arg(long, value_name = "NETWORK", help_heading = "Model")]
    pub network: Option<Named<NetworkChoice>>,
    /// The molecule that the rows are frames of (nm), for objectives that compare with its exact energies:
    /// '{topology = "aldp.prmtop", solvents = ["1", "0"], temperature = 300.0}', one solvent for each endpoint
    #[arg(long, value_name = "MOLECULE", help_heading = "Data")]
    pub molecule: Option<MoleculeChoice>,
    #[arg(long, help = help::process(), value_name = "PROCESS", help_heading = "Model")]
    pub process: Option<Named<Process>>,
    /// Which rows of two endpoints are paired: independent, or optimal-transport (those whose squared distances are least among 256 of each; particles are turned onto their partners, and exchanged
    /// where they are alike), '{kind = "optimal-transport", rows = 1024}' [default: independent]
    #[arg(long, value_name = "COUPLING", help_heading = "Data")]
    pub coupling: Option<Named<CouplingChoice>>,
    #[arg(long, help = help::spacing(), value_name = "SPACING", help_heading = "Model")]
    pub spacing: Option<Named<Spacing>>,
    #[arg(long, help = help::times(), value_name = "SAMPLER", help_heading = "Training")]
    pub times: Option<Named<TimeSampler>>,
}

impl SettingsArgs {
    /// The settings that are given.
    pub fn settings(&self) -> Result<Settings> {
        let wrong = |error: &dyn std::fmt::Display| Error::Usage(self.refusal(error));
        let table = toml::Table::try_from(self).map_err(|error| wrong(&error))?;
        table.try_into().map_err(|error| wrong(&error))
    }

    /// Words for flags that are no settings: the one thing that can be wrong is a number beyond those of a configuration file.
    fn refusal(&self, error: &dyn std::fmt::Display) -> String {
        let most = i64::MAX as u64;
        let flags = serde_json::to_value(self).unwrap_or_default();
        let beyond = |value: &serde_json::Value| value.as_u64().is_some_and(|number| number > most);
        let found = flags
            .as_object()
            .and_then(|flags| flags.iter().find(|(_, value)| beyond(value)));
        match found {
            Some((key, value)) => format!(
                "--{} is {value}, expected at most {most}, the largest whole number that settings hold",
                key.replace('_', "-")
            ),
            None => format!("the flags cannot be read: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::train;
    use clap::Args as _;
    use diffclf_run::settings::Settings;

    /// The flag of a key, where it is not the key itself.
    fn argument(key: &str) -> &str {
        match key {
            "standardise" => "no_standardise",
            key => key,
        }
    }

    #[test]
    fn every_setting_has_a_flag_and_every_flag_a_setting() {
        let mirror = serde_json::to_value(SettingsArgs::default()).unwrap();
        let mirrored: Vec<&String> = mirror.as_object().unwrap().keys().collect();
        let keys = Settings::keys();
        assert_eq!(mirrored, keys.iter().collect::<Vec<_>>());
        let command = train::Args::augment_args(clap::Command::new("train"));
        let flags: Vec<&str> = command
            .get_arguments()
            .map(|a| a.get_id().as_str())
            .collect();
        for key in &keys {
            assert!(flags.contains(&argument(key)), "{key} has no flag");
        }
        // What belongs to the call and not to the run.
        let call = [
            "config",
            "output",
            "quick",
            "time",
            "from",
            "resume",
            "force",
            "checkpoint_every",
            "no_report",
            "quiet",
            "threads",
        ];
        for flag in flags {
            let known = keys.iter().any(|key| argument(key) == flag) || call.contains(&flag);
            assert!(known, "{flag} is no setting");
        }
    }

    #[test]
    fn flags_are_written_as_they_are_taken() {
        use diffclf_run::words::Setting;
        let command = train::Args::augment_args(clap::Command::new("train"));
        for argument in command.get_arguments().filter(|a| !a.is_positional()) {
            let long = argument.get_long().unwrap();
            let name: &'static str = argument.get_id().as_str().to_string().leak();
            let told = crate::error::flag(&Setting::new(name));
            let short = argument.get_short().map(|short| format!("-{short}"));
            assert!(
                told == format!("--{long}") || Some(&told) == short.as_ref(),
                "{told}"
            );
        }
    }

    #[test]
    fn help_lists_every_member_of_the_families() {
        use diffclf::objective::ObjectiveName;
        use diffclf::system::System;
        let mut command = train::Args::augment_args(clap::Command::new("train"));
        let text = command.render_long_help().to_string();
        let words: Vec<&str> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '-'))
            .collect();
        let samplers = TimeSampler::ALL.map(|sampler| sampler.name());
        let objectives = ObjectiveName::ALL.map(|name| name.objective().name());
        let families: [&[&str]; 5] = [
            &System::NAMES,
            &Process::NAMES,
            &samplers,
            &objectives,
            diffclf_run::named::words_of::<Form>(),
        ];
        for name in families.into_iter().flatten() {
            assert!(words.contains(name), "{name} is missing in\n{text}");
        }
    }
}
