//! `resolve`: from settings and the facts of the data to a complete definition of the run, as a pure function.

use crate::base::{BaseKind, FoundBase};
use crate::columns::Columns;
use crate::edges;
use crate::error::{Error, Result};
use crate::named::Named;
use crate::network::NetworkChoice;
use crate::notice::Notice;
use crate::particles::Treatment;
use crate::settings::{ScaleKind, Settings};
use crate::smallest_time;
use crate::springs;
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Coordinates, Form, Kind, ModelSpec, Moments};
use diffclf::model::Content;
use diffclf::objective::{ObjectiveName, Term, closeness, parse_terms};
use diffclf::process::sampler::Close;
use diffclf::process::{Process, TimeSampler, VarianceExploding};
use diffclf::train::{Adam, Decay, HeldOut, Rate, StageSettings, TrainSettings};

/// Without being asked for, rows are held out only of at least so many.
const FEWEST_ROWS: usize = 60;
/// Rows that are held out where a twentieth is fewer, up to a fifth of all.
const ENOUGH_HELD_OUT: f64 = 100.0;
/// Steps on the objective.
const STEPS: u64 = 2000;
/// Held-out evaluations without a new best that end a stage.
const PATIENCE: u64 = 10;
/// Rows per step on a mixture, which leaves little to learn.
const BATCH_ON_MIXTURE: usize = 512;

/// Share of so many rows that is held out unless asked otherwise.
fn usual_share(rows: usize) -> f64 {
    (ENOUGH_HELD_OUT / rows as f64).clamp(0.05, 0.2)
}

/// Columns of a hidden layer for so many given rows: few rows cannot fix many numbers.
fn usual_width(rows: Option<usize>) -> usize {
    match rows {
        Some(0..500) => 32,
        Some(500..3000) => 64,
        _ => 128,
    }
}

/// What the settings need to know of the data.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Rows, of the smaller of two endpoints; none if they are drawn afresh at every step.
    pub rows: Option<usize>,
    /// Equally weighted rows that they are worth, where they have weights.
    pub effective: Option<usize>,
    /// The rows were given, in a file or an array, and not drawn from a built-in system.
    pub given: bool,
    /// There is a second endpoint.
    pub has_end: bool,
    /// Where the rows lie.
    pub place: Place,
    /// Where the columns of rows that are given lie.
    pub columns: Option<Columns>,
    /// Kinds of the columns; none if all are real.
    pub kinds: Vec<Kind>,
    /// The mixture that was fitted to the rows, if one was asked for.
    pub base: Option<FoundBase>,
}

/// Where the rows lie.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// Mean and variance of the data; the model's coordinates are to be chosen.
    Measured(Moments),
    /// The coordinates are chosen already, by the run that is resumed.
    Chosen {
        /// The map to the model's coordinates.
        standardisation: Coordinates,
        /// Mean and variance in them.
        moments: Moments,
    },
}

impl Place {
    /// That of a run.
    pub fn of(content: &Content) -> Self {
        Self::Chosen {
            standardisation: content.standardisation.clone(),
            moments: Moments {
                mean: content.spec.mean.clone(),
                variance: content.spec.variance,
            },
        }
    }
}

impl Facts {
    /// Whether a column is periodic.
    fn periodic(&self) -> bool {
        self.kinds.iter().any(|kind| kind.period().is_some())
    }
}

/// A run, completely defined.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The settings with all defaults: `config.toml`. Resolved again, they give the same run.
    pub settings: Settings,
    /// Of the training loop.
    pub train: TrainSettings,
    /// Of the model.
    pub spec: ModelSpec,
    /// The map from the user's coordinates to the model's.
    pub standardisation: Coordinates,
    /// Steps between two lines of the log.
    pub log_every: u64,
    /// What a person should know of it.
    pub notices: Vec<Notice>,
}

/// What a base is fitted with: decided before there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// The kind that is asked for.
    pub base: BaseKind,
    /// The map to the model's coordinates.
    pub coordinates: Coordinates,
    /// Share of the rows that is held out.
    pub held_out: f64,
    /// Seed.
    pub seed: u64,
}

/// The first part of [`resolve`], which no base enters.
pub fn outline(settings: &Settings, facts: &Facts) -> Result<Outline> {
    let mut filling = Filling {
        settings: settings.clone(),
        notices: Vec::new(),
    };
    let held_out = filling
        .held_out(facts.effective.or(facts.rows), facts.given)?
        .map_or(0.0, |rule| rule.share);
    Ok(Outline {
        base: filling.base(facts)?,
        coordinates: filling.coordinates(facts)?.0,
        held_out,
        seed: settings.seed.unwrap_or(0),
    })
}

/// Fills in the defaults, which follow the data, and refuses what does not fit.
pub fn resolve(settings: &Settings, facts: &Facts) -> Result<Resolved> {
    let mut filling = Filling {
        settings: settings.clone(),
        notices: Vec::new(),
    };
    filling.settle_base(facts)?;
    let train = filling.train(facts)?;
    let (standardisation, moments) = filling.coordinates(facts)?;
    let spec = filling.spec(facts, &standardisation, moments)?;
    train.validate(&spec)?;
    let log_every = filling.log_every()?;
    Ok(Resolved {
        log_every,
        train,
        spec,
        standardisation,
        settings: filling.settings,
        notices: filling.notices,
    })
}

/// Settings while their defaults are filled in.
pub(crate) struct Filling {
    pub(crate) settings: Settings,
    pub(crate) notices: Vec<Notice>,
}

/// The learning rate, with this peak unless told otherwise.
pub(crate) fn rate(s: &mut Settings, peak: f64) -> Rate {
    Rate {
        peak: *s.rate.get_or_insert(peak),
        decay: *s.decay.get_or_insert(Decay::Cosine),
        warm_up: *s.warm_up.get_or_insert(0),
    }
}

impl Filling {
    fn train(&mut self, facts: &Facts) -> Result<TrainSettings> {
        let held_out = self.held_out(facts.effective.or(facts.rows), facts.given)?;
        let usual = match self.settings.base {
            Some(BaseKind::Mixture) => BATCH_ON_MIXTURE,
            _ => 2048,
        };
        let batch = self.batch(usual, facts.rows);
        let s = &mut self.settings;
        let usual = match s.base {
            Some(BaseKind::Mixture) => "dsm+diffclf+0.5*anchor",
            _ => "dsm+diffclf",
        };
        let terms = parse_terms(s.objective.get_or_insert_with(|| usual.into()))?;
        let members = || terms.iter().map(|term| term.objective.objective());
        let score_only = terms
            .iter()
            .all(|term| term.objective == ObjectiveName::Dsm);
        let default_levels = if members().any(|objective| objective.compares_levels()) {
            let most = members().map(|objective| objective.most_levels()).min();
            most.unwrap_or(1).min(4)
        } else {
            1
        };
        let levels = *s.levels.get_or_insert(default_levels);
        let default_times = match closeness(&terms) {
            Some(share) => TimeSampler::Close(Close { share }),
            None => TimeSampler::default(),
        };
        let steps = *s.steps.get_or_insert(STEPS);
        // A mixture has the score nearly right before the first step.
        let score = match s.base {
            Some(BaseKind::Mixture) => 1000,
            _ => 2000,
        };
        let score_steps = *s
            .score_steps
            .get_or_insert(if score_only { 0 } else { score });
        let rate = rate(s, 1e-3);
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
        let mut stages = vec![stage(steps, terms.clone())];
        for more in s.more_steps.iter().flatten() {
            stages.push(stage(*more, terms.clone()));
        }
        if score_steps > 0 {
            stages.insert(0, stage(score_steps, score));
        }
        let levelling = *s.levelling.get_or_insert(true);
        let positive = |value: f64| if value == 0.0 { None } else { Some(value) };
        Ok(TrainSettings {
            seed: *s.seed.get_or_insert(0),
            batch,
            times: s.times.get_or_insert(Named(default_times)).0,
            clip: positive(*s.clip.get_or_insert(1.0)),
            adam: Adam::default(),
            average: positive(*s.average.get_or_insert(0.999)),
            held_out,
            rotate: Treatment::of(&self.settings)?.is_some_and(|of| of.rotate),
            levelling,
            stages,
        })
    }

    pub(crate) fn log_every(&mut self) -> Result<u64> {
        match *self.settings.log_every.get_or_insert(10) {
            0 => Err(Error::setting("log_every", 0, "at least 1")),
            steps => Ok(steps),
        }
    }

    /// Rows per step, no more than there are to train on.
    pub(crate) fn batch(&mut self, usual: usize, rows: Option<usize>) -> usize {
        let from = self.settings.batch.unwrap_or(usual);
        let to = lowered_batch(from, rows, self.settings.held_out);
        if to < from {
            self.notices.push(Notice::BatchLowered { from, to });
        }
        *self.settings.batch.insert(to)
    }

    /// Rows that are held out of so many (as equal ones, where they have weights), which are given or drawn from a system.
    pub(crate) fn held_out(&mut self, rows: Option<usize>, given: bool) -> Result<Option<HeldOut>> {
        let s = &mut self.settings;
        let Some(worth) = rows else {
            if s.held_out.is_some_and(|share| share != 0.0) {
                return Err(Error::Refused(words!(
                    Setting::new("held_out"),
                    " needs a fixed set of rows, but the system is sampled afresh at every step; add ",
                    Setting::to("samples", "N")
                )));
            }
            return Ok(None);
        };
        // A fixed set drawn from a system stands for an experiment of the paper, which trains on all of it.
        let enough = worth >= FEWEST_ROWS && given;
        if s.held_out.is_none() && given && !enough {
            self.notices.push(Notice::NothingHeldOut { rows: worth });
        }
        let share = *s
            .held_out
            .get_or_insert(if enough { usual_share(worth) } else { 0.0 });
        if share == 0.0 {
            return Ok(None);
        }
        if !(share > 0.0 && share < 1.0) || worth < 2 {
            return Err(Error::setting(
                "held_out",
                format!("{share} of {worth} rows"),
                "a share between 0 and 1 and at least two rows",
            ));
        }
        // A quarter of the last stage without a new best ends a stage.
        let every = (s.steps.unwrap_or(STEPS) / (4 * PATIENCE)).max(50);
        Ok(Some(HeldOut {
            share,
            every: *s.held_out_every.get_or_insert(every),
            patience: *s.patience.get_or_insert(PATIENCE),
        }))
    }

    /// The base that is asked for. A mixture has places of its own, so it suits no particles; these get springs where they have bonds. A Gaussian is the paper's choice, and that
    /// of rows drawn from a built-in system.
    fn base(&self, facts: &Facts) -> Result<BaseKind> {
        let particles = self.settings.particles.is_some();
        let asked = self.settings.base == Some(BaseKind::Springs);
        springs::check(&self.settings, asked)?;
        if facts.periodic() {
            return match self.settings.base {
                Some(BaseKind::Gaussian) => Err(Error::Refused(words!(
                    Setting::to("base", "gaussian"),
                    " has no periods, and columns are periodic; leave it out, or say ",
                    Setting::to("periodic", "none")
                ))),
                _ => Ok(BaseKind::Mixture),
            };
        }
        match self.settings.base {
            Some(BaseKind::Mixture) if particles => Err(Error::Refused(words!(
                Setting::to("base", "mixture"),
                " knows the places and names of particles, and ",
                Setting::new("particles"),
                " asks for an energy that does not; leave one of them out"
            ))),
            Some(BaseKind::Auto) | None
                if facts.given && particles && !springs::bonds(&self.settings)?.is_empty() =>
            {
                Ok(BaseKind::Springs)
            }
            Some(BaseKind::Auto) | None if particles || facts.has_end || !facts.given => {
                Ok(BaseKind::Gaussian)
            }
            None => Ok(BaseKind::Auto),
            Some(kind) => Ok(kind),
        }
    }

    /// Which base it is in the end, with a word about it.
    fn settle_base(&mut self, facts: &Facts) -> Result<()> {
        if let Some(notice) = edges::recognised(&self.settings, facts) {
            edges::serve(&mut self.settings);
            self.notices.push(notice);
            return Ok(());
        }
        let asked = self.base(facts)?;
        let settled = match (&facts.base, asked) {
            (_, BaseKind::Springs) => BaseKind::Springs,
            (None, _) | (_, BaseKind::Gaussian) => BaseKind::Gaussian,
            (Some(_), BaseKind::Mixture) => BaseKind::Mixture,
            (Some(base), BaseKind::Auto) => {
                // The Gaussian of the model's coordinates, on the data that gave it mean 0 and variance 1.
                let dim = base.ends.start.dim() as f64;
                let gaussian = -0.5 * dim * (std::f64::consts::TAU.ln() + 1.0);
                if base.nats.0 > gaussian {
                    BaseKind::Mixture
                } else {
                    BaseKind::Gaussian
                }
            }
        };
        self.settings.base = Some(settled);
        if let (Some(base), BaseKind::Mixture) = (&facts.base, settled) {
            self.notices.push(Notice::Base {
                shape: base.shape.clone(),
            });
        }
        Ok(())
    }

    /// The base of the model.
    fn found<'f>(&self, facts: &'f Facts) -> Option<&'f FoundBase> {
        let mixture = self.settings.base == Some(BaseKind::Mixture);
        facts.base.as_ref().filter(|_| mixture)
    }

    /// How columns are scaled.
    fn scale(&mut self, facts: &Facts) -> Result<ScaleKind> {
        let s = &mut self.settings;
        let standardise = *s.standardise.get_or_insert(true);
        let particles = s.particles.is_some();
        let usual = if !standardise {
            ScaleKind::None
        } else if particles || facts.has_end || facts.columns.is_none() {
            ScaleKind::Common
        } else {
            ScaleKind::Column
        };
        let scale = *s.scale.get_or_insert(usual);
        let mixed = scale == ScaleKind::Whiten && facts.periodic();
        if !facts.kinds.is_empty()
            && (mixed || matches!(scale, ScaleKind::Common | ScaleKind::None))
        {
            return Err(Error::Refused(words!(
                Setting::new("scale"),
                " and columns of a kind of their own (",
                Setting::new("periodic"),
                ", ",
                Setting::new("positive"),
                ", ",
                Setting::new("bounded"),
                ") contradict each other: these are scaled each by its own spread; choose ",
                Setting::to("scale", "column"),
                ", or none of the others"
            )));
        }
        let refused = match scale {
            ScaleKind::Column | ScaleKind::Whiten if particles => "particles",
            ScaleKind::None => return Ok(scale),
            _ if !standardise => "standardise",
            _ => return Ok(scale),
        };
        Err(Error::Refused(words!(
            Setting::new("scale"),
            " and ",
            Setting::new(refused),
            " contradict each other: particles share one scale, and data that are not standardised have none"
        )))
    }

    /// The model's coordinates, and mean and variance of the data in them.
    fn coordinates(&mut self, facts: &Facts) -> Result<(Coordinates, Moments)> {
        let scale = self.scale(facts)?;
        let moments = match &facts.place {
            Place::Chosen {
                standardisation,
                moments,
            } => return Ok((standardisation.clone(), moments.clone())),
            Place::Measured(moments) => moments.clone(),
        };
        let moments = match Treatment::of(&self.settings)? {
            Some(treatment) if treatment.without_centre => moments.about_zero(),
            Some(treatment) => moments.of_particles(treatment.particles)?,
            None => moments,
        };
        let dim = moments.mean.len();
        let standard = Moments {
            mean: vec![0.0; dim],
            variance: 1.0,
        };
        match (scale, &facts.columns) {
            (ScaleKind::None, _) => Ok((Coordinates::identity(dim), moments)),
            (ScaleKind::Common, _) => Ok((moments.coordinates(), standard)),
            (ScaleKind::Column, Some(columns)) => Ok((columns.apart(), standard)),
            (ScaleKind::Whiten, Some(columns)) => Ok((columns.whitened()?, standard)),
            (_, None) => Err(Error::Refused(words!(
                Setting::new("scale"),
                " by columns needs one set of rows that are given; choose ",
                Setting::to("scale", "common")
            ))),
        }
    }

    /// The model, for data of these moments in its coordinates.
    fn spec(
        &mut self,
        facts: &Facts,
        standardisation: &Coordinates,
        moments: Moments,
    ) -> Result<ModelSpec> {
        let process = self.process(facts.has_end, &standardisation.model_periods())?;
        let found = self.found(facts);
        let s = &mut self.settings;
        let mut spec = ModelSpec::new(moments.mean.len(), process);
        (spec.mean, spec.variance) = (moments.mean, moments.variance);
        spec.base = found.map(|base| base.ends.clone());
        let finest = found.map_or(f64::INFINITY, |base| base.finest);
        let notice = smallest_time::fill(s, &process, finest, spec.variance.sqrt());
        self.notices.extend(notice);
        let s = &mut self.settings;
        spec.grid = smallest_time::grid(s, &process, finest)?;
        let rows = facts.effective.or(facts.rows);
        let rows = rows.filter(|_| facts.given && s.particles.is_none());
        let network = NetworkChoice::of(s)?;
        let usual = network.usual_width().unwrap_or(usual_width(rows));
        let (width, depth) = (
            *s.width.get_or_insert(usual),
            *s.depth.get_or_insert(network.usual_depth()),
        );
        if s.particles.is_some() {
            spec.form = Form::Scalar;
        }
        let treatment = Treatment::of(s)?;
        spec.without_centre = treatment.is_some_and(|of| of.without_centre);
        if let Some(treatment) = treatment {
            treatment.fill(s);
        }
        s.network = Some(Named(network.clone()));
        spec.network = network.spec(s.particles.unwrap_or(1), width, depth);
        spec.form = *s.form.get_or_insert(spec.form);
        if let Some(objective) = &s.objective {
            let velocity = |term: &Term| term.objective.objective().needs_velocity();
            spec.velocity = parse_terms(objective)?.iter().any(velocity);
        }
        spec.features = *s.features.get_or_insert(spec.features);
        if let Some(Named(choice)) = s.coupling {
            let bonds = springs::bonds(s)?;
            let rotate = treatment.is_some_and(|of| of.rotate);
            spec.coupling = choice.settle(&spec, &bonds, rotate, facts.rows)?;
        }
        spec.validate()?;
        Ok(spec)
    }

    /// The process; one endpoint needs a diffusion, two an interpolant.
    fn process(&mut self, has_end: bool, periods: &[f64]) -> Result<Process> {
        let process = match self.settings.process {
            Some(Named(process)) => process,
            None if has_end => Process::by_name("linear")?,
            None if periods.is_empty() => Process::by_name("vp")?,
            None => around_circles(periods),
        };
        if !periods.is_empty() && process.x0_scale(process.horizon()) != 1.0 {
            return Err(Error::Refused(words!(
                Setting::to("process", process.name()),
                " shrinks the data, and a period that shrinks is none; choose ",
                Setting::to("process", "ve"),
                " or edm, or say ",
                Setting::to("periodic", "none")
            )));
        }
        if process.is_interpolant() == has_end {
            return Ok(self.settings.process.insert(Named(process)).0);
        }
        let name = process.name();
        Err(Error::Refused(if has_end {
            let joining: Vec<_> = Process::NAMES
                .into_iter()
                .filter(|name| Process::by_name(name).is_ok_and(|p| p.is_interpolant()))
                .collect();
            words!(
                "the ",
                name,
                " process noises one data set, but two are given; choose ",
                Setting::to("process", joining.join(" or ")),
                ", or leave ",
                Setting::new("end"),
                " out"
            )
        } else {
            words!(
                "the ",
                name,
                " process joins two data sets; give the second with ",
                Setting::to("end", "DATA1.npy"),
                " or ",
                Setting::to("end_system", "NAME")
            )
        }))
    }
}

/// The process of periodic columns: noise that does not shrink them. Where all are periodic it ends a period wide, uniform to 1e-8.
fn around_circles(periods: &[f64]) -> Process {
    let mut process = VarianceExploding::default();
    if periods.iter().all(|period| *period > 0.0) {
        // Three digits are enough, and people read them.
        let widest = periods.iter().fold(0.0_f64, |a, b| a.max(*b));
        process.sigma_max = (widest * 100.0).ceil() / 100.0;
    }
    Process::VarianceExploding(process)
}

/// Rows of a share, never none and never all.
pub fn held_out_rows(rows: usize, share: f64) -> usize {
    if share == 0.0 {
        return 0;
    }
    ((rows as f64 * share).round() as usize).clamp(1, rows.saturating_sub(1).max(1))
}

/// The batch, no larger than the rows there are to train on.
pub fn lowered_batch(batch: usize, rows: Option<usize>, held_out: Option<f64>) -> usize {
    match rows {
        Some(rows) => batch.min(rows - held_out_rows(rows, held_out.unwrap_or(0.0))),
        None => batch,
    }
}

#[cfg(test)]
mod tests;
