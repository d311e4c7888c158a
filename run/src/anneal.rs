//! A model's path run by sequential Monte Carlo, annealed importance sampling or replica exchange; with a target, a Boltzmann generator.

mod between;

use crate::bridge::{Bridge, BridgeChoice};
use crate::endpoints::with_density;
use crate::error::{Error, Result};
use crate::memory;
use crate::own_table::OwnTable;
use crate::questions::names;
use crate::straight::Departure;
use crate::table::is_table;
use crate::watch::{Bar, Done, Watch};
use crate::words;
use crate::words::Setting;
use diffclf::energy::{
    Closure, Coordinates, Ending, Energy, InDataCoordinates, Kind, LearnedEnergy, OfPoints, Prior,
    Straightened, SystemEnergy,
};
use diffclf::expression::Expression;
use diffclf::model::Content;
use diffclf::process::TimeGrid;
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::{
    Boltzmann, DataTransport, DiffusionKernels, Diffusivity, Exchange, Exchanged,
    InterpolantKernels, Ladder, Particles, Path, Smc, SmcLevel, Start, Transport,
};
use diffclf::system::System;
use serde::{Deserialize, Serialize};

/// How particles are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnnealMethod {
    /// Sequential Monte Carlo.
    Smc,
    /// Annealed importance sampling: never resampled.
    Ais,
    /// Replica exchange over time.
    Exchange,
}

/// An energy of the user's own (kT) as a target: a number made of the model's columns, or the name of a table of its values on a grid of them.
pub fn own_target(text: &str, content: &Content) -> Result<Box<dyn Energy>> {
    if content.spec.process.is_interpolant() {
        return Err(Error::Refused(words!(
            "an interpolant is annealed between the two data sets it was trained on; leave out ",
            Setting::new("target_energy")
        )));
    }
    let dim = content.spec.dim;
    let path = std::path::Path::new(text);
    if is_table(path) {
        let kinds = &content.standardisation.kinds;
        let period = |k: usize| kinds.get(k).and_then(Kind::period).unwrap_or(0.0);
        let periods: Vec<f64> = (0..dim).map(period).collect();
        let own = OwnTable::read(path, names(content), &periods)?;
        return Ok(of_own(dim, move |y, slope| {
            own.value_and_gradient(y, slope)
        }));
    }
    let own = Expression::number(text, names(content), dim)?;
    Ok(of_own(dim, move |y, slope| {
        own.value_and_gradient(y, slope)
    }))
}

/// An energy with its gradient.
fn of_own(
    dim: usize,
    own: impl Fn(&[f64], &mut [f64]) -> f64 + Send + Sync + 'static,
) -> Box<dyn Energy> {
    Box::new(Closure::new(dim, move |_, y: &[f64], score: &mut [f64]| {
        let energy = own(y, score);
        score.iter_mut().for_each(|s| *s = -*s);
        energy
    }))
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Annealing {
    /// How particles are run.
    pub method: AnnealMethod,
    /// System whose exact density takes the place of the last marginal.
    pub target: Option<String>,
    /// Seed of the target's own parameters.
    pub system_seed: u64,
    /// Whether particles are moved between levels by the reverse diffusion, not by MCMC alone.
    pub diffusion: bool,
    /// Whether importance sampling and annealed importance sampling are run too; needs a target.
    pub contest: bool,
    /// Whether weights are to be kept, which replica exchange does not have.
    pub weights: bool,
    /// How an interpolant is run.
    pub bridge: BridgeChoice,
    /// Sweeps of replica exchange after as many for warming up.
    pub sweeps: usize,
    /// Particles, or ladders of replica exchange.
    pub particles: usize,
    /// Levels of the path; those of the model's grid if absent.
    pub levels: Option<usize>,
    /// Kernel, steps, resampling and seed.
    pub smc: Smc,
}

/// What was found, in the coordinates of the data.
pub enum Annealed {
    /// Particles from noise to the model's density or to the target: the method asked for first, then those of a contest.
    Descent {
        /// Method and particles.
        runs: Vec<(&'static str, Particles)>,
        /// The settings of the first.
        smc: Smc,
    },
    /// Particles from one endpoint of an interpolant to the other.
    Crossing {
        /// The particles.
        particles: Box<Particles>,
        /// The endpoints' names, from where to where.
        names: [String; 2],
        /// Noise of the SDE; none where MCMC alone moves the particles.
        g: Option<Diffusivity>,
        /// The settings.
        smc: Smc,
    },
    /// Draws of replica exchange.
    Exchanged {
        /// The draws and how they came.
        found: Box<Exchanged>,
        /// The settings.
        settings: Exchange,
        /// Ladders side by side.
        ladders: usize,
        /// Levels of each, the target among them.
        levels: usize,
        /// The model's levels.
        grid: TimeGrid,
    },
}

impl AnnealMethod {
    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            AnnealMethod::Smc => "sequential Monte Carlo",
            AnnealMethod::Ais => "annealed importance sampling: never resampled",
            AnnealMethod::Exchange => "replica exchange over time",
        }
    }
}

impl Annealing {
    /// Runs it.
    pub fn run(
        &self,
        content: &Content,
        learned: &LearnedEnergy,
        watch: &dyn Watch,
    ) -> Result<Done<Annealed>> {
        let target = self.target(content.columns())?;
        let target = target.as_ref().map(|target| target as &dyn Energy);
        self.run_to(target, (content, learned), watch)
    }

    /// Runs it to a target that need not have a name.
    pub fn run_to(
        &self,
        target: Option<&dyn Energy>,
        (content, learned): (&Content, &LearnedEnergy),
        watch: &dyn Watch,
    ) -> Result<Done<Annealed>> {
        let spec = &content.spec;
        let smc = self.checked_smc(content)?;
        if spec.process.is_interpolant() {
            if target.is_some() {
                return Err(interpolants_alone());
            }
            return self.cross(content, learned, smc, watch);
        }
        if let Some(target) = target
            && target.dim() != content.columns()
        {
            return Err(Error::setting(
                "target",
                format!("an energy of {} columns", target.dim()),
                format!("one of {}, those of the model", content.columns()),
            ));
        }
        self.bridge.refuse_for_diffusion(content)?;
        let grid = match self.levels {
            Some(levels) => spec.grid.with_levels(levels)?,
            None => spec.grid.clone(),
        };
        let mut times: Vec<f64> = grid.times().iter().rev().copied().collect();
        if target.is_some() {
            times.push(0.0);
        }
        // Particles move in straightened columns, which know no bounds.
        let map = &content.standardisation;
        let straight = map.straight();
        let energy = InDataCoordinates {
            inner: learned,
            map: straight.clone(),
        };
        let straightened = target
            .filter(|_| !map.kinds.is_empty())
            .map(|inner| Straightened {
                inner,
                map: map.clone(),
            });
        let target = match &straightened {
            Some(target) => Some(target as &dyn Energy),
            None => target,
        };
        // Rows of particles without a centre: the target is asked at rows, the particles move inside.
        let inside = target
            .zip(content.view())
            .map(|(inner, view)| OfPoints { inner, view });
        let target = inside
            .as_ref()
            .map_or(target, |target| Some(target as &dyn Energy));
        let descent = Descent {
            content,
            learned,
            energy: &energy,
            straight: &straight,
            prior: energy.prior(&Prior::of(spec)),
            target,
            times: &times,
        };
        let mut done = if self.method == AnnealMethod::Exchange {
            self.exchange(&descent, grid, watch)?
        } else {
            self.descend(&descent, smc, watch)?
        };
        match &mut done.found {
            Annealed::Descent { runs, .. } => {
                runs.iter_mut()
                    .for_each(|(_, run)| map.bend(&mut run.points));
            }
            Annealed::Exchanged { found, .. } => map.bend(&mut found.draws),
            Annealed::Crossing { .. } => {}
        }
        Ok(done)
    }

    /// How particles are run, if there is room for them.
    fn checked_smc(&self, content: &Content) -> Result<Smc> {
        let dim = content.spec.dim;
        // Points, proposals, their scores and energies.
        memory::refuse_rows("particles", self.particles, dim, 64)?;
        if self.method == AnnealMethod::Exchange {
            let numbers = self.particles.saturating_mul(dim);
            memory::refuse_rows("sweeps", self.sweeps, numbers, 8)?;
        }
        Ok(match self.method {
            AnnealMethod::Ais => Smc {
                least_overlap: 0.0,
                ..self.smc.clone().annealed_importance_sampling()
            },
            _ => self.smc.clone(),
        })
    }

    /// Refuses what an interpolant has no use for.
    fn refuse_for_interpolants(&self, smc: &Smc) -> Result<()> {
        let strange = self.method == AnnealMethod::Exchange
            || self.target.is_some()
            || self.diffusion
            || smc.adaptive.is_some();
        match strange {
            true => Err(interpolants_alone()),
            false => Ok(()),
        }
    }

    /// Levels of an interpolant.
    fn levels_of(&self, content: &Content) -> Result<usize> {
        let count = self.levels.unwrap_or(content.spec.grid.levels());
        match count < 2 {
            true => Err(Error::setting("levels", count, "at least 2")),
            false => Ok(count),
        }
    }

    fn descend(&self, way: &Descent<'_>, smc: Smc, watch: &dyn Watch) -> Result<Done<Annealed>> {
        let kinds = &way.content.standardisation.kinds;
        let departure = Departure::new(way.prior.mixture()?, kinds, self.particles, smc.seed)?;
        let process = way.content.spec.process;
        let kernels = DataTransport {
            inner: &DiffusionKernels {
                process,
                energy: way.learned,
            },
            map: way.straight,
        };
        let transport = self.diffusion.then_some(&kernels as &dyn Transport);
        let start = departure.start();
        let (times, n) = (way.times, self.particles);
        let mut levels = Levels::new("anneal", times, &smc, watch);
        let mut see = |level: &SmcLevel| levels.see(level);
        let name = match self.method {
            AnnealMethod::Ais => "ais",
            _ => "smc",
        };
        let mut runs = match way.target {
            None => {
                let path = Path {
                    energy: way.energy,
                    times,
                    start,
                    transport,
                };
                vec![(name, smc.run(&path, n, &mut see)?)]
            }
            Some(target) => {
                let generator = Boltzmann {
                    path: way.energy,
                    target,
                    times,
                    start,
                    transport,
                };
                if self.contest {
                    let contest = generator.contest(&smc, n, &mut see)?;
                    let mut runs = vec![(name, contest.smc), ("ais", contest.ais)];
                    runs.extend(contest.importance.map(|run| ("importance sampling", run)));
                    runs
                } else {
                    vec![(name, generator.run(&smc, n, &mut see)?)]
                }
            }
        };
        for (_, run) in &mut runs {
            run.points = way.content.rows_outward(std::mem::take(&mut run.points));
        }
        Ok(levels.done(Annealed::Descent { runs, smc }))
    }

    /// From rows of one endpoint to the model's density at the other, by the kernels of the interpolant's SDE with learned velocity
    /// and score; the model's energies give the weights. With the exact velocity, the paper's Boltzmann generator: exact samples, exact
    /// kernels, and the exact law at the end.
    fn cross(
        &self,
        content: &Content,
        learned: &LearnedEnergy,
        smc: Smc,
        watch: &dyn Watch,
    ) -> Result<Done<Annealed>> {
        self.refuse_for_interpolants(&smc)?;
        let bridge = Bridge::open(&self.bridge, content, learned)?;
        let count = self.levels_of(content)?;
        let known = bridge.times(&content.spec.grid);
        let exact = bridge.exact().map(|path| path as &dyn Energy);
        // To the model's last time; or, if an exact law waits there, to the endpoint itself: beyond its last time the model is then
        // asked for what its network says there, and only at the endpoint does the target take its place.
        let last = exact.map_or(known[known.len() - 1], |_| bridge.ends().1);
        let times = angular_times(known[0], last, count);
        let kernels = InterpolantKernels {
            process: content.spec.process,
            velocity: bridge.velocity(),
            energy: exact.unwrap_or(learned),
            // The paper's with exact fields; learned ones do not obey the continuity equation exactly, and noise makes up for it.
            g: self.bridge.g_or(if exact.is_some() { 0.01 } else { 0.5 }),
        };
        if kernels.g.at(&content.spec.process, 0.5) == 0.0 {
            return Err(Error::setting(
                "g",
                0,
                "a positive number: without noise a way back has no density",
            ));
        }
        let ending = exact.map(|target| Ending {
            path: learned,
            target,
            time: times[count - 1],
        });
        let points = bridge.departures(times[0], Some(self.particles), smc.seed)?;
        let path = Path {
            energy: ending
                .as_ref()
                .map_or(learned as &dyn Energy, |ending| ending),
            times: &times,
            // Exact draws are weighted by the model's first level against their own density; of other rows none is known.
            start: match exact {
                Some(density) if !bridge.has_rows() => Start::Draws {
                    points: &points,
                    density,
                    time: times[0],
                },
                _ => Start::Points(&points),
            },
            transport: Some(&kernels),
        };
        let mut levels = Levels::new("anneal", &times, &smc, watch);
        let mut particles = smc.run(&path, self.particles, &mut |level| levels.see(level))?;
        content.standardisation.to_data(&mut particles.points);
        particles.points = content.rows_outward(std::mem::take(&mut particles.points));
        Ok(levels.done(Annealed::Crossing {
            particles: Box::new(particles),
            names: bridge.names(),
            g: Some(kernels.g),
            smc,
        }))
    }

    fn target(&self, dim: usize) -> Result<Option<SystemEnergy>> {
        let Some(name) = &self.target else {
            return Ok(None);
        };
        match SystemEnergy::new(System::by_name(name, dim, self.system_seed)?) {
            Some(energy) => Ok(Some(energy)),
            None => Err(Error::Usage(format!(
                "the density of {name} is not known exactly, so it cannot be a target; choose one of {}",
                with_density().join(", ")
            ))),
        }
    }

    fn exchange(
        &self,
        way: &Descent<'_>,
        grid: TimeGrid,
        watch: &dyn Watch,
    ) -> Result<Done<Annealed>> {
        if self.weights || self.contest || self.diffusion || self.smc.adaptive.is_some() {
            return Err(Error::Refused(words!(
                Setting::new("weights"),
                ", ",
                Setting::new("contest"),
                ", ",
                Setting::new("diffusion"),
                " and ",
                Setting::new("adaptive"),
                " belong to smc and ais; leave them out with exchange"
            )));
        }
        let ending = way.target.map(|target| Ending {
            path: way.energy,
            target,
            time: 0.0,
        });
        let energy = ending
            .as_ref()
            .map_or(way.energy, |ending| ending as &dyn Energy);
        let (ladders, dim) = (self.particles, energy.dim());
        let settings = Exchange {
            kernel: self.smc.kernel,
            moves: self.smc.moves,
            step: self.smc.step,
            warm_up: self.sweeps,
            sweeps: self.sweeps,
            seed: self.smc.seed,
        };
        // All levels start from draws of the hot end; the warm-up brings them down.
        let mut points = vec![0.0; way.times.len() * ladders * dim];
        for (row, point) in points.chunks_exact_mut(dim).enumerate() {
            let mut stream = Stream::new(settings.seed, Purpose::Sample, 0, row as u64);
            let noise: Vec<f64> = (0..dim).map(|_| stream.normal()).collect();
            way.prior.points(&noise, point);
        }
        let mut bar = watch.begin("exchange", 2 * self.sweeps as u64, 0);
        let times = way.times;
        let mut found = settings.run(Ladder { energy, times }, &points, &mut |done| {
            bar.set(done as u64, &|| "sweeps".into());
        })?;
        found.draws = way.content.rows_outward(std::mem::take(&mut found.draws));
        let found = Annealed::Exchanged {
            found: Box::new(found),
            settings,
            ladders,
            levels: times.len(),
            grid,
        };
        Ok(Done::new(found, bar))
    }
}

/// What an interpolant is annealed by, and between what.
fn interpolants_alone() -> Error {
    Error::Refused(words!(
        "an interpolant is annealed by smc or ais between the two data sets it was trained on; leave out ",
        Setting::new("target"),
        ", ",
        Setting::new("diffusion"),
        ", ",
        Setting::new("adaptive"),
        " and ",
        Setting::to("method", "exchange")
    ))
}

/// The way of a diffusion from noise to data, or to a target.
struct Descent<'a> {
    content: &'a Content,
    /// In the model's coordinates.
    learned: &'a LearnedEnergy,
    /// In those of the data, straightened.
    energy: &'a dyn Energy,
    /// The map of those to the model's.
    straight: &'a Coordinates,
    prior: Prior,
    target: Option<&'a dyn Energy>,
    times: &'a [f64],
}

/// Progress through levels, by their number or, where that is not known, by time.
pub struct Levels {
    progress: Box<dyn Bar>,
    done: u64,
    span: Option<(f64, f64)>,
    /// Independent runs behind the present one.
    runs: u64,
    latest: Option<f64>,
}

impl Levels {
    /// Progress through `times` (their span, if levels are chosen), as often as there are independent runs.
    pub fn new(label: &str, times: &[f64], smc: &Smc, watch: &dyn Watch) -> Levels {
        let adaptive = smc.adaptive.is_some();
        let span = adaptive.then(|| (times[0], times[times.len() - 1]));
        let total = if adaptive { 1000 } else { times.len() as u64 };
        Levels {
            progress: watch.begin(label, total.saturating_mul(smc.runs as u64), 0),
            done: 0,
            span,
            runs: 0,
            latest: None,
        }
    }

    /// A level is done.
    pub fn see(&mut self, level: &SmcLevel) {
        self.done += 1;
        let position = match self.span {
            Some((from, to)) => {
                let way = |time: f64| (time - from) / (to - from);
                if self
                    .latest
                    .is_some_and(|latest| way(level.time) < way(latest))
                {
                    self.runs += 1;
                }
                self.latest = Some(level.time);
                1000 * self.runs + (1000.0 * way(level.time)) as u64
            }
            None => self.done,
        };
        self.progress.set(position, &|| {
            let mut text = format!(
                "time {:.4}, ESS {:.0} %, overlap {:.2}",
                level.time,
                100.0 * level.ess,
                level.conditional_ess,
            );
            // Without moves there is none.
            if level.acceptance.is_finite() {
                text += &format!(", acceptance {:.2}", level.acceptance);
            }
            text
        });
    }

    /// All are.
    pub fn done<T>(self, found: T) -> Done<T> {
        Done::new(found, self.progress)
    }
}

/// Levels of an interpolant between two times, fine at both ends, where the score is steepest: equal steps in the angle of t = sin^2.
pub fn angular_times(first: f64, last: f64, levels: usize) -> Vec<f64> {
    let angle = |time: f64| time.sqrt().asin();
    let share = |k: usize| k as f64 / (levels - 1) as f64;
    let at = |share: f64| (1.0 - share) * angle(first) + share * angle(last);
    let mut times: Vec<f64> = (0..levels).map(|k| at(share(k)).sin().powi(2)).collect();
    // Not a rounding error beyond the ends.
    (times[0], times[levels - 1]) = (first, last);
    times
}
