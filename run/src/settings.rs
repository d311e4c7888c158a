//! The settings of a training run: one list of keys, the same on the command line, in a TOML file and in `config.toml`.

use crate::base::BaseKind;
use crate::coupling::CouplingChoice;
use crate::error::{Error, Result};
use crate::files::read_text;
use crate::molecule::MoleculeChoice;
use crate::named::Named;
use crate::network::NetworkChoice;
use crate::particles::CentreKind;
use diffclf::energy::Form;
use diffclf::process::{Process, Spacing, TimeSampler};
use diffclf::train::Decay;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Seeds go through TOML, whose integers are signed.
pub const LARGEST_SEED: u64 = i64::MAX as u64;

/// How columns are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleKind {
    /// Each by its own spread.
    Column,
    /// By the covariance of all, so that columns become uncorrelated.
    Whiten,
    /// All by their common spread.
    Common,
    /// Not at all.
    None,
}

/// Everything that defines a run. A key that is absent has its default; [`resolve`](crate::resolve::resolve) fills the defaults in,
/// so that the configuration written to the run folder is complete.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Samples to learn from: a .npy file whose first axis counts them, a .csv or .tsv table, or an array of an archive, data.npz:key
    pub data: Option<PathBuf>,
    /// Samples of the second endpoint, for an interpolant
    pub end: Option<PathBuf>,
    /// Weights of the samples, one number for each: a sample counts in proportion to its weight [default: all count the same]
    pub weights: Option<PathBuf>,
    /// Weights of the samples of the second endpoint
    pub end_weights: Option<PathBuf>,
    /// A built-in system instead of a file: one of [`System::NAMES`](diffclf::system::System::NAMES)
    pub system: Option<String>,
    /// Built-in system at the second endpoint, for an interpolant
    pub end_system: Option<String>,
    /// Dimension of the system; planar ones have 2
    pub dim: Option<usize>,
    /// Seed of the system's own parameters (the means of mog40) [default: 0]
    pub system_seed: Option<u64>,
    /// Draw a fixed set of N rows from the system, as the paper does with 60000 [default: fresh rows at every step]
    pub samples: Option<usize>,
    /// States of each site, for rows of symbols 0 to states - 1; 0 for rows of numbers [default: recognised where a file holds small whole
    /// numbers of an integer type]
    pub states: Option<usize>,
    /// Noise on states: uniform or masked [default: uniform]
    pub noise: Option<String>,
    /// Shift and scale the data to mean 0 and scalar variance 1 [default: true]
    pub standardise: Option<bool>,
    /// One scale for each column, their covariance (whiten), one for all (common), or none [default: column for rows that are given; common for particles, two
    /// endpoints and built-in systems]
    pub scale: Option<ScaleKind>,
    /// Columns that are periodic, by number or name, with their periods: "0,1", "phi,psi", "4:24" [default: recognised where values fill a circle
    /// of 2 pi or 360; none for none]
    pub periodic: Option<String>,
    /// Columns that are positive: learned as logarithms [default: recognised where values are skewed and reach down to zero; none for none]
    pub positive: Option<String>,
    /// Columns that lie between bounds, column:low:high, "2:0:1" [default: none]
    pub bounded: Option<String>,
    /// Add uniform noise as wide as one step to columns whose values are rounded [default: to columns of whole numbers that are no angles]
    pub dequantise: Option<bool>,
    /// Share of the rows that is never trained on, 0 for none [default: 100 rows of those given, no less than 0.05 and no more than 0.2 of them; none of fewer than 60]
    pub held_out: Option<f64>,
    /// Steps between two evaluations on the held-out rows [default: steps/40, at least 50]
    pub held_out_every: Option<u64>,
    /// End a stage after so many held-out evaluations without a new best, and keep the best; 0 never stops [default: 10]
    pub patience: Option<u64>,

    /// Levels of the time grid [default: 512]
    pub grid_levels: Option<usize>,
    /// Smallest time of the grid [default: follows the finest structure of given rows, else the process, 1e-4 for vp]
    pub t_min: Option<f64>,
    /// Largest time of the grid [default: follows the process, 0.9999 for vp]
    pub t_max: Option<f64>,
    /// Columns of a hidden layer [default: 128; 32 or 64 for few given rows]
    pub width: Option<usize>,
    /// Hidden layers [default: 4; 2 for a transformer]
    pub depth: Option<usize>,
    /// Sinusoidal time features [default: 64]
    pub features: Option<usize>,
    /// Number of particles in a row: the energy knows neither their frame nor, where they are alike, their names
    pub particles: Option<usize>,
    /// The particles by a .pdb or .toml file: their number, and for egnn (the default with it) and transformer their types and bonds
    pub topology: Option<PathBuf>,
    /// The centre of all particles is no part of the model (free), or one like any other (kept) [default: free for egnn and transformer]
    pub centre: Option<CentreKind>,
    /// Turn each row of particles at random when it is trained on [default: for a transformer, unless rows are aligned]
    pub rotate: Option<bool>,
    /// Solve for F(t) of all levels when the training ends [default: true, where an objective compares levels]
    pub levelling: Option<bool>,
    /// Turn each row of particles onto the first one, without a reflection [default: false]
    pub align: Option<bool>,
    /// How the network gives the energy [default: follows process and network]
    pub form: Option<Form>,
    /// What the energy stands on: a Gaussian, a mixture fitted to the rows, or springs between particles: bonds, angles, torsions, pairs [default: auto, a mixture for given rows
    /// where it makes held-out rows more likely; springs for particles with bonds]
    pub base: Option<BaseKind>,
    /// Pairs of particles with a bond, "0-1,1-2", from which springs follow [default: those of the topology or of the network]
    pub bonds: Option<String>,

    /// Weighted sum of losses, such as dsm+0.5*diffclf [default: dsm+diffclf; dsm+diffclf+0.5*anchor on a mixture]
    pub objective: Option<String>,
    /// Times of one row, N of DiffCLF [default: 4; 2 for the binary losses; 1 where no levels are compared]
    pub levels: Option<usize>,
    /// Rows per step [default: 2048, 512 on a mixture, or all rows if there are fewer]
    pub batch: Option<usize>,
    /// Steps on the objective [default: 2000]
    pub steps: Option<u64>,
    /// Steps of further stages on the objective, each with a learning rate of its own [default: none; a run that goes on with more steps gets one]
    pub more_steps: Option<Vec<u64>>,
    /// Steps of a first stage with dsm alone, 0 for none [default: 2000, 1000 on a mixture; 0 if the objective is dsm]
    pub score_steps: Option<u64>,
    /// Largest learning rate [default: 0.001]
    pub rate: Option<f64>,
    /// Learning rate after the warm-up: constant or cosine, in each stage [default: cosine]
    pub decay: Option<Decay>,
    /// Steps in which each stage's learning rate grows from 0 [default: 0]
    pub warm_up: Option<u64>,
    /// Largest norm of a gradient, 0 for no limit [default: 1]
    pub clip: Option<f64>,
    /// Decay of the moving average of the parameters, 0 for none [default: 0.999]
    pub average: Option<f64>,
    /// Seed of everything random [default: 0]
    pub seed: Option<u64>,
    /// Steps between two lines of log.jsonl [default: 10]
    pub log_every: Option<u64>,
    /// Instruction set of the kernels ; kept here because it decides the last bits.
    pub kernel: Option<String>,

    /// The network: mlp, pairs, egnn, transformer, or with parameters '{kind = "egnn", types = [0, 1, 0], bonds = [[0, 1]], cross = true}'
    /// or '{kind = "transformer", types = [0, 1, 2], heads = 8, head_width = 64}' [default: mlp; pairs if there are particles]
    pub network: Option<Named<NetworkChoice>>,
    /// The molecule that the rows are frames of (nm), for objectives that compare with its exact energies:
    /// '{topology = "aldp.prmtop", solvents = ["1", "0"], temperature = 300.0}', one solvent for each endpoint
    pub molecule: Option<MoleculeChoice>,
    /// Which rows of two endpoints are paired: independent, optimal-transport (those whose squared distances are least among 256 of each), or with their number
    /// '{kind = "optimal-transport", rows = 1024}' [default: independent]
    pub coupling: Option<Named<CouplingChoice>>,
    /// Noising process: a name of [`Process::NAMES`], or with parameters '{kind = "vp", beta_max = 10.0}'
    /// [default: vp; linear if there is a second endpoint]
    pub process: Option<Named<Process>>,
    /// Spacing of the time grid: linear, power, both-ends, or '{kind = "power", rho = 7.0}' [default: follows the process]
    pub spacing: Option<Named<Spacing>>,
    /// How times are drawn: the name of one of [`TimeSampler::ALL`], or with parameters [default: multiscale; close for losses that
    /// contain density ratios]
    pub times: Option<Named<TimeSampler>>,
}

impl Settings {
    /// Reads a TOML file. An unknown key is an error that names it and its line.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_text(path)?;
        toml::from_str(&text).map_err(|error| Error::Config {
            path: path.to_path_buf(),
            reason: error.to_string().trim_end().into(),
        })
    }

    /// The text of a configuration file with these settings.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self)
            .map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))
    }

    /// The keys of all settings, as files write them.
    pub fn keys() -> Vec<String> {
        match serde_json::to_value(Self::default()) {
            Ok(serde_json::Value::Object(settings)) => {
                settings.into_iter().map(|(key, _)| key).collect()
            }
            _ => Vec::new(),
        }
    }

    fn table(&self) -> Result<toml::Table> {
        toml::Table::try_from(self)
            .map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))
    }

    /// These settings, with those of `flags` in their place where it has them.
    pub fn overridden_by(mut self, flags: &Settings) -> Result<Self> {
        // Another origin of the rows replaces the file's, whichever of the two kinds it is.
        if flags.data.is_some() || flags.system.is_some() {
            (self.data, self.system, self.weights) = (None, None, None);
        }
        if flags.end.is_some() || flags.end_system.is_some() {
            (self.end, self.end_system, self.end_weights) = (None, None, None);
        }
        let mut table = self.table()?;
        table.extend(flags.table()?);
        table
            .try_into()
            .map_err(|error| Error::Failed(format!("the settings cannot be merged: {error}")))
    }

    /// Refuses flags that contradict the settings of a run to be resumed. Files may have moved: their content is compared
    /// elsewhere.
    pub fn refuse_conflicts(&self, given: &Settings, folder: &Path) -> Result<()> {
        let (saved, given) = (self.table()?, given.table()?);
        for (key, value) in &given {
            let moved = ["data", "end", "weights", "end_weights"].contains(&key.as_str());
            let same = saved.get(key) == Some(value) || moved;
            if !same {
                return Err(Error::Conflict {
                    name: key.clone(),
                    found: value.to_string(),
                    saved: saved.get(key).map(|value| value.to_string()),
                    folder: folder.to_path_buf(),
                });
            }
        }
        Ok(())
    }

    /// Whether the run joins two endpoints.
    pub fn has_end(&self) -> bool {
        self.end.is_some() || self.end_system.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<Settings, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn wrong_keys_and_values_are_named() {
        for (text, words) in [
            ("stepz = 3", "stepz"),
            ("[process]\nkind = \"vp\"\nbeta = 3", "beta"),
            ("process = \"vq\"", "vq"),
            ("times = \"sometimes\"", "grid-stratified"),
            ("decay = \"sine\"", "cosine"),
            ("batch = \"many\"", "batch"),
            ("steps = -3", "-3"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(words), "{text}: {message}");
        }
        assert!(
            "{kind = \"vp\", beta_max = 10.0}"
                .parse::<Named<Process>>()
                .is_ok()
        );
        assert!(
            "{kind = \"vp\", beta = 10.0}"
                .parse::<Named<Process>>()
                .is_err()
        );
        assert!("{".parse::<Named<Process>>().is_err());
    }

    #[test]
    fn every_key_is_listed() {
        let keys = Settings::keys();
        assert!(keys.len() > 30, "{keys:?}");
        assert!(
            ["data", "held_out", "times"]
                .iter()
                .all(|key| keys.iter().any(|k| k == key))
        );
    }

    #[test]
    fn flags_override_the_file_and_another_origin_replaces_it() {
        let file = parse("data = \"x.npy\"\nbatch = 64\nrate = 0.1").unwrap();
        let flags = parse("system = \"mog2\"\nrate = 0.2").unwrap();
        let both = file.overridden_by(&flags).unwrap();
        assert_eq!((both.batch, both.rate), (Some(64), Some(0.2)));
        assert_eq!((both.data, both.system), (None, Some("mog2".into())));
    }

    #[test]
    fn a_resumed_run_keeps_its_settings() {
        let saved = parse("data = \"x.npy\"\nbatch = 100\nclip = 1\nrate = 0.001").unwrap();
        let folder = Path::new("runs/a");
        let check = |text: &str| saved.refuse_conflicts(&parse(text).unwrap(), folder);
        check("data = \"moved/x.npy\"\nbatch = 100\nclip = 1").unwrap();
        let message = check("rate = 0.5").unwrap_err().to_string();
        assert!(
            message.contains("rate is 0.5") && message.contains("0.001"),
            "{message}"
        );
        assert!(check("system = \"mog2\"").is_err());
    }
}
