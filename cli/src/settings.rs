//! The settings of a training run: one list of keys, the same on the command line, in a TOML file and in `config.toml`.

use crate::error::{Error, Result};
use crate::named::{Named, word};
use diffclf::energy::{Form, ModelSpec, NetworkSpec};
use diffclf::objective::{ObjectiveName, Term, closeness, parse_terms};
use diffclf::process::sampler::Close;
use diffclf::process::{Process, Spacing, TimeGrid, TimeSampler};
use diffclf::system::System;
use diffclf::train::{Adam, Decay, HeldOut, Rate, StageSettings, TrainSettings};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Seeds go through TOML, whose integers are signed.
const LARGEST_SEED: u64 = i64::MAX as u64;
/// Without being asked for, rows are held out only where at least so many remain to judge by.
const FEWEST_HELD_OUT: usize = 32;
/// Share of the rows that is held out unless asked otherwise.
const HELD_OUT: f64 = 0.05;

fn system_help() -> String {
    format!(
        "Learn a built-in system instead of a file: {}",
        System::NAMES.join(", ")
    )
}

/// Everything that defines a run. A key that is absent has its default; [`Settings::train`] and [`Settings::spec`] fill
/// the defaults in, so that the configuration written to the run folder is complete.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Samples to learn from: a .npy file whose first axis counts them
    #[arg(value_name = "DATA.npy", help_heading = "Data")]
    pub data: Option<PathBuf>,
    /// Samples of the second endpoint, for an interpolant
    #[arg(long, value_name = "DATA1.npy", help_heading = "Data")]
    pub end: Option<PathBuf>,
    /// Learn a built-in system instead of a file
    #[arg(long, value_name = "NAME", help_heading = "Data", help = system_help())]
    pub system: Option<String>,
    /// Built-in system at the second endpoint, for an interpolant
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    pub end_system: Option<String>,
    /// Dimension of the system (mog40, mog2 and the pair take any; the others live in the plane)
    #[arg(long, value_name = "D", help_heading = "Data")]
    pub dim: Option<usize>,
    /// Seed of the system's own parameters (the means of mog40) [default: 0]
    #[arg(long, value_name = "SEED", help_heading = "Data", value_parser = clap::value_parser!(u64).range(..=LARGEST_SEED))]
    pub system_seed: Option<u64>,
    /// Draw a fixed set of N rows from the system, as the paper does with 60000 [default: fresh rows at every step]
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub samples: Option<usize>,
    /// Shift and scale the data to mean 0 and scalar variance 1 (see --no-standardise)
    #[arg(skip)]
    pub standardise: Option<bool>,
    /// Share of the rows that is never trained on, 0 for none [default: 0.05 of a file, where that gives 32 rows]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "SHARE",
        help_heading = "Data"
    )]
    pub held_out: Option<f64>,
    /// Steps between two evaluations on the held-out rows [default: 100]
    #[arg(long, value_name = "STEPS", help_heading = "Data")]
    pub held_out_every: Option<u64>,
    /// End a stage after so many held-out evaluations without a new best, and keep the best; 0 never stops [default: 20]
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub patience: Option<u64>,

    /// Levels of the time grid [default: 512]
    #[arg(long, value_name = "LEVELS", help_heading = "Model")]
    pub grid_levels: Option<usize>,
    /// Smallest time of the grid [default: follows the process, 1e-4 for vp]
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
    /// Columns of a hidden layer [default: 128]
    #[arg(long, value_name = "COLUMNS", help_heading = "Model")]
    pub width: Option<usize>,
    /// Hidden layers [default: 4]
    #[arg(long, value_name = "LAYERS", help_heading = "Model")]
    pub depth: Option<usize>,
    /// Sinusoidal time features [default: 64]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub features: Option<usize>,
    /// Number of particles: the energy becomes a sum over pairs of a function of their distance
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub particles: Option<usize>,
    /// How the network gives the energy: inner-product, inner-product-plus-scalar, squared-norm, residual-squared-norm,
    /// scalar [default: follows process and network]
    #[arg(long, value_name = "FORM", help_heading = "Model", value_parser = word::<Form>)]
    pub form: Option<Form>,

    /// Weighted sum of losses, such as dsm+0.5*diffclf; all names below [default: dsm+diffclf]
    #[arg(long, value_name = "SUM", help_heading = "Training")]
    pub objective: Option<String>,
    /// Times of one row, N of DiffCLF [default: 4; 2 for the binary losses; 1 where no levels are compared]
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub levels: Option<usize>,
    /// Rows per step [default: 2048, or all rows if there are fewer]
    #[arg(long, value_name = "ROWS", help_heading = "Training")]
    pub batch: Option<usize>,
    /// Steps on the objective [default: 2000]
    #[arg(long, value_name = "STEPS", help_heading = "Training")]
    pub steps: Option<u64>,
    /// Steps of a first stage with dsm alone, 0 for none [default: 2000; 0 if the objective is dsm]
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
    /// Learning rate after the warm-up: constant or cosine, in each stage [default: cosine]
    #[arg(long, value_name = "SHAPE", help_heading = "Training", value_parser = word::<Decay>)]
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

    /// Noising process: vp, ve, edm, linear, trigonometric, or with parameters '{kind = "vp", beta_max = 10.0}'
    /// [default: vp; linear if there is a second endpoint]
    #[arg(long, value_name = "PROCESS", help_heading = "Model")]
    pub process: Option<Named<Process>>,
    /// Spacing of the time grid: linear, power, or '{kind = "power", rho = 7.0}' [default: follows the process]
    #[arg(long, value_name = "SPACING", help_heading = "Model")]
    pub spacing: Option<Named<Spacing>>,
    /// How times are drawn: multiscale, close, grid, grid-stratified, uniform, stratified, log-snr-normal [default: multiscale;
    /// close for losses that contain density ratios]
    #[arg(long, value_name = "SAMPLER", help_heading = "Training")]
    pub times: Option<Named<TimeSampler>>,
}

impl Settings {
    /// Reads a TOML file. An unknown key is an error that names it and its line.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_path_buf(),
            source,
        })?;
        toml::from_str(&text)
            .map_err(|error| Error::Usage(format!("{}: {error}", path.display()).trim_end().into()))
    }

    /// The text of a configuration file with these settings.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self)
            .map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))
    }

    fn table(&self) -> Result<toml::Table> {
        toml::Table::try_from(self)
            .map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))
    }

    /// These settings, with those of `flags` in their place where it has them.
    pub fn overridden_by(mut self, flags: &Settings) -> Result<Self> {
        // Another origin of the rows replaces the file's, whichever of the two kinds it is.
        if flags.data.is_some() || flags.system.is_some() {
            (self.data, self.system) = (None, None);
        }
        if flags.end.is_some() || flags.end_system.is_some() {
            (self.end, self.end_system) = (None, None);
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
            let same = saved.get(key) == Some(value) || ["data", "end"].contains(&key.as_str());
            if !same {
                let saved = saved.get(key).map_or("absent".into(), |v| v.to_string());
                return Err(Error::Usage(format!(
                    "{key} is {value}, but the run in {} has {saved}; a resumed run keeps its settings: leave the setting \
                     out, or train into another folder",
                    folder.display()
                )));
            }
        }
        Ok(())
    }

    /// Whether the run joins two endpoints.
    pub fn has_end(&self) -> bool {
        self.end.is_some() || self.end_system.is_some()
    }

    /// Lowers the batch to the rows there are to train on; says so.
    pub fn shrink_batch(&mut self, rows: Option<usize>) -> Option<String> {
        let rows = rows? - held_out_rows(rows?, self.held_out.unwrap_or(0.0));
        let batch = self.batch.as_mut().filter(|batch| **batch > rows)?;
        let wanted = std::mem::replace(batch, rows);
        Some(format!(
            "batch lowered from {wanted} to {rows}: there are no more rows to train on"
        ))
    }

    /// The settings of the training loop, for data of so many rows (the smaller of two endpoints; none if they are drawn
    /// afresh). Fills in the defaults and returns what a person should know about them.
    pub fn train(&mut self, rows: Option<usize>) -> Result<(TrainSettings, Vec<String>)> {
        let mut notices = Vec::new();
        let terms = parse_terms(self.objective.get_or_insert_with(|| "dsm+diffclf".into()))
            .map_err(Error::from)?;
        let score_only = terms
            .iter()
            .all(|term| term.objective == ObjectiveName::Dsm);
        let most = terms
            .iter()
            .map(|t| t.objective.objective().most_levels())
            .min();
        let compares = terms
            .iter()
            .any(|t| t.objective.objective().compares_levels());
        let default_levels = if compares {
            most.unwrap_or(1).min(4)
        } else {
            1
        };
        let levels = *self.levels.get_or_insert(default_levels);
        let default_times = match closeness(&terms) {
            Some(share) => TimeSampler::Close(Close { share }),
            None => TimeSampler::default(),
        };
        let steps = *self.steps.get_or_insert(2000);
        let score_steps = *self
            .score_steps
            .get_or_insert(if score_only { 0 } else { 2000 });
        let rate = Rate {
            peak: *self.rate.get_or_insert(1e-3),
            decay: *self.decay.get_or_insert(Decay::Cosine),
            warm_up: *self.warm_up.get_or_insert(0),
        };
        let stage = |steps, objectives| StageSettings {
            steps,
            levels,
            objectives,
            rate,
        };
        let score = vec![Term {
            objective: ObjectiveName::Dsm,
            weight: 1.0,
        }];
        let mut stages = vec![stage(steps, terms)];
        if score_steps > 0 {
            stages.insert(0, stage(score_steps, score));
        }

        let held_out = self.held_out(rows, &mut notices)?;
        self.batch.get_or_insert(2048);
        notices.extend(self.shrink_batch(rows));
        if *self.log_every.get_or_insert(10) == 0 {
            return Err(Error::Usage("log_every is 0, expected at least 1".into()));
        }
        let positive = |value: f64| if value == 0.0 { None } else { Some(value) };
        let settings = TrainSettings {
            seed: *self.seed.get_or_insert(0),
            batch: self.batch.unwrap_or(0),
            times: self.times.get_or_insert(Named(default_times)).0,
            clip: positive(*self.clip.get_or_insert(1.0)),
            adam: Adam::default(),
            average: positive(*self.average.get_or_insert(0.999)),
            held_out,
            stages,
        };
        Ok((settings, notices))
    }

    fn held_out(
        &mut self,
        rows: Option<usize>,
        notices: &mut Vec<String>,
    ) -> Result<Option<HeldOut>> {
        let Some(rows) = rows else {
            if self.held_out.is_some_and(|share| share != 0.0) {
                return Err(Error::Usage(
                    "--held-out needs a fixed set of rows, but the system is sampled afresh at every step; add --samples N"
                        .into(),
                ));
            }
            return Ok(None);
        };
        // A fixed set drawn from a system stands for an experiment of the paper, which trains on all of it.
        let enough = held_out_rows(rows, HELD_OUT) >= FEWEST_HELD_OUT && self.data.is_some();
        if self.held_out.is_none() && self.data.is_some() && !enough {
            notices.push(format!(
                "no rows held out: 5 % of {rows} rows are too few to judge by (choose a share with --held-out)"
            ));
        }
        let share = *self
            .held_out
            .get_or_insert(if enough { HELD_OUT } else { 0.0 });
        if share == 0.0 {
            return Ok(None);
        }
        if !(share > 0.0 && share < 1.0) || rows < 2 {
            return Err(Error::Usage(format!(
                "held_out is {share} of {rows} rows, expected a share between 0 and 1 and at least two rows"
            )));
        }
        Ok(Some(HeldOut {
            share,
            every: *self.held_out_every.get_or_insert(100),
            patience: *self.patience.get_or_insert(20),
        }))
    }

    /// The definition of the model, for data of this dimension, mean and scalar variance in the model's coordinates. Fills
    /// in the defaults.
    pub fn spec(&mut self, mean: Vec<f64>, variance: f64) -> Result<ModelSpec> {
        let process = self.process()?;
        let mut spec = ModelSpec::new(mean.len(), process);
        (spec.mean, spec.variance) = (mean, variance);
        spec.grid = TimeGrid::new(
            *self.grid_levels.get_or_insert(spec.grid.levels()),
            *self.t_min.get_or_insert(spec.grid.t_min()),
            *self.t_max.get_or_insert(spec.grid.t_max()),
            self.spacing.get_or_insert(Named(spec.grid.spacing())).0,
        )?;
        let width = *self.width.get_or_insert(128);
        let depth = *self.depth.get_or_insert(4);
        spec.network = match self.particles {
            None => NetworkSpec::Mlp { width, depth },
            Some(particles) => {
                spec.form = Form::Scalar;
                NetworkSpec::Pairs {
                    particles,
                    width,
                    depth,
                }
            }
        };
        spec.form = *self.form.get_or_insert(spec.form);
        if let Some(objective) = &self.objective {
            let velocity = |term: &Term| term.objective.objective().needs_velocity();
            spec.velocity = parse_terms(objective)?.iter().any(velocity);
        }
        spec.features = *self.features.get_or_insert(spec.features);
        spec.validate()?;
        Ok(spec)
    }

    /// The process; one endpoint needs a diffusion, two an interpolant.
    fn process(&mut self) -> Result<Process> {
        let has_end = self.has_end();
        let default = if has_end { "linear" } else { "vp" };
        let process = match self.process {
            Some(Named(process)) => process,
            None => Process::by_name(default)?,
        };
        if process.is_interpolant() != has_end {
            let name = process.name();
            return Err(Error::Usage(if has_end {
                format!(
                    "the {name} process noises one data set, but two are given; choose --process linear or trigonometric, or \
                     leave --end out"
                )
            } else {
                format!(
                    "the {name} process joins two data sets; give the second with --end DATA1.npy or --end-system NAME"
                )
            }));
        }
        Ok(self.process.insert(Named(process)).0)
    }
}

/// Rows of a share, never none and never all.
pub fn held_out_rows(rows: usize, share: f64) -> usize {
    if share == 0.0 {
        return 0;
    }
    ((rows as f64 * share).round() as usize).clamp(1, rows.saturating_sub(1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<Settings, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_complete_configuration_reads_back_as_itself() {
        let mut settings = parse("data = \"x.npy\"\nprocess = \"edm\"").unwrap();
        settings.train(Some(100_000)).unwrap();
        settings.spec(vec![0.5; 3], 2.0).unwrap();
        let text = settings.to_toml().unwrap();
        let again = parse(&text).unwrap();
        assert_eq!(again, settings, "{text}");
        // Complete: a second round fills nothing in.
        let mut twice = again.clone();
        twice.train(Some(100_000)).unwrap();
        twice.spec(vec![0.5; 3], 2.0).unwrap();
        assert_eq!(twice, again);
        for key in [
            "batch = 2048",
            "held_out = 0.05",
            "kind = \"edm\"",
            "sigma_max",
            "rho = 7.0",
        ] {
            assert!(text.contains(key), "{key} is missing in\n{text}");
        }
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
    fn flags_override_the_file_and_another_origin_replaces_it() {
        let file = parse("data = \"x.npy\"\nbatch = 64\nrate = 0.1").unwrap();
        let flags = parse("system = \"mog2\"\nrate = 0.2").unwrap();
        let both = file.overridden_by(&flags).unwrap();
        assert_eq!((both.batch, both.rate), (Some(64), Some(0.2)));
        assert_eq!((both.data, both.system), (None, Some("mog2".into())));
    }

    #[test]
    fn few_rows_shrink_the_batch_and_hold_nothing_out() {
        let mut settings = parse("data = \"x.npy\"").unwrap();
        let (train, notices) = settings.train(Some(100)).unwrap();
        assert_eq!((train.batch, train.held_out), (100, None));
        assert!(
            notices.len() == 2 && notices.iter().any(|n| n.contains("2048 to 100")),
            "{notices:?}"
        );
        let mut settings = parse("data = \"x.npy\"\nheld_out = 0.1").unwrap();
        let (train, notices) = settings.train(Some(100)).unwrap();
        assert_eq!((train.batch, notices.len()), (90, 1));
        assert_eq!(
            (
                held_out_rows(100, 0.1),
                held_out_rows(3, 0.001),
                held_out_rows(3, 0.999)
            ),
            (10, 1, 2)
        );
    }

    #[test]
    fn stages_follow_the_objective() {
        let mut settings = parse("objective = \"dsm\"\nsteps = 7").unwrap();
        let (train, _) = settings.train(None).unwrap();
        assert_eq!(
            (train.stages.len(), train.stages[0].levels, train.steps()),
            (1, 1, 7)
        );
        let mut settings =
            parse("objective = \"dsm+0.5*binary-diffclf\"\nclip = 0\naverage = 0").unwrap();
        let (train, _) = settings.train(None).unwrap();
        assert_eq!((train.stages.len(), train.stages[1].levels), (2, 2));
        assert_eq!((train.clip, train.average), (None, None));
        assert_eq!(train.stages[1].objectives[1].weight, 0.5);
    }

    #[test]
    fn endpoints_and_process_must_fit() {
        let spec = |text: &str| {
            parse(text)
                .unwrap()
                .spec(vec![0.0; 2], 1.0)
                .map_err(|e| e.to_string())
        };
        assert_eq!(
            spec("end_system = \"mog2\"").unwrap().process.name(),
            "linear"
        );
        assert!(spec("process = \"linear\"").unwrap_err().contains("--end"));
        assert!(
            spec("end = \"b.npy\"\nprocess = \"vp\"")
                .unwrap_err()
                .contains("trigonometric")
        );
        assert!(spec("particles = 2").unwrap().form == Form::Scalar);
    }

    #[test]
    fn a_resumed_run_keeps_its_settings() {
        let mut saved = parse("data = \"x.npy\"").unwrap();
        saved.train(Some(100)).unwrap();
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
