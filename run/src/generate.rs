//! New samples from a model: by a diffusion's samplers, along the flow, or across an interpolant's bridge.

use crate::bridge::{Bridge, BridgeChoice};
use crate::error::{Error, Result};
use crate::memory;
use crate::watch::{Done, Watch};
use crate::words;
use crate::words::Setting;
use diffclf::Error as CoreError;
use diffclf::energy::{LearnedEnergy, Prior};
use diffclf::model::Content;
use diffclf::process::TimeGrid;
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::{
    Ddim, Diffusivity, Divergence, Flow, Integrator, InterpolantSde, ReverseSde, Sampler, Solver,
    Task, times_of,
};

/// Particles of one piece: bounds the memory besides the result.
const PIECE: usize = 1 << 17;
/// Particles of one piece where every evaluation needs several buffers.
const SMALL_PIECE: usize = 1 << 13;

/// What is asked for. A setting that the method does not have is refused.
#[derive(Debug, Clone, Default)]
pub struct Generation {
    /// Number of samples; one for each row of a bridge if absent.
    pub number: Option<usize>,
    /// One of [`Generation::methods`]; if absent, ddim, and flow for an interpolant.
    pub method: Option<String>,
    /// Steps from noise to data; the levels of the model's grid if absent.
    pub steps: Option<usize>,
    /// Share of fresh noise in ddim.
    pub eta: Option<f64>,
    /// Steps of reverse-sde.
    pub integrator: Option<Integrator>,
    /// Error of a step of flow, which then chooses its steps.
    pub tolerance: Option<f64>,
    /// Whether flow tells the log-density of every sample.
    pub log_density: bool,
    /// Random directions for that log-density instead of all axes.
    pub probes: Option<usize>,
    /// How an interpolant is run.
    pub bridge: BridgeChoice,
    /// Seed.
    pub seed: u64,
}

/// Samples in the coordinates of the data.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The samples, row by row.
    pub points: Vec<f64>,
    /// How many.
    pub number: usize,
    /// Their log-densities, if asked for.
    pub log_density: Option<Vec<f64>>,
    /// The method's name.
    pub method: String,
    /// Noise of the SDE, if the method has it.
    pub g: Option<Diffusivity>,
    /// The times.
    pub grid: TimeGrid,
}

/// What the request means.
enum Method {
    Diffusion(Sampler),
    Flow(Solver),
    InterpolantSde(Diffusivity),
}

/// Samples in the model's coordinates, and their log-densities there if asked for.
struct Drawn {
    points: Vec<f64>,
    log_density: Vec<f64>,
}

impl Generation {
    /// The names of all methods.
    pub fn methods() -> Vec<&'static str> {
        let other = ["flow", "interpolant-sde"];
        Sampler::NAMES.into_iter().chain(other).collect()
    }

    /// Makes the samples. One depends on its number and the seed alone.
    pub fn run(
        &self,
        content: &Content,
        energy: &LearnedEnergy,
        watch: &dyn Watch,
    ) -> Result<Done<Generated>> {
        let spec = &content.spec;
        let interpolant = spec.process.is_interpolant();
        let name = match (&self.method, interpolant) {
            (Some(name), _) => name.as_str(),
            (None, false) => "ddim",
            (None, true) => "flow",
        };
        let method = self.method(name)?;
        let grid = self.grid(&spec.grid)?;
        let number = self.number.unwrap_or(1);
        self.check_number(number, spec.dim)?;
        let bridge = if interpolant {
            Some(Bridge::open(&self.bridge, content, energy)?)
        } else {
            self.bridge.refuse_for_diffusion(content)?;
            None
        };
        let mut bar = watch.begin("sample", 1000, 0);
        let mut tell = |share: f64| bar.set((1000.0 * share) as u64, &|| "per mille".into());
        let run = Run {
            asked: self,
            content,
            energy,
            grid: &grid,
            bridge: bridge.as_ref(),
            number,
        };
        let unfit = |kind: &str, fitting: &str| {
            Err(Error::Usage(format!(
                "{name} is for {kind}, and the model's process is {}; use {fitting}",
                spec.process.name()
            )))
        };
        let mut drawn = match (&method, &bridge) {
            (Method::Diffusion(sampler), None) => run.diffusion(sampler, &mut tell)?,
            (Method::Flow(solver), _) => run.flow(*solver, &mut tell)?,
            (Method::InterpolantSde(g), Some(bridge)) => run.stochastic(bridge, *g, &mut tell)?,
            (Method::Diffusion(_), Some(_)) => {
                return unfit("a diffusion", "flow or interpolant-sde");
            }
            (Method::InterpolantSde(_), None) => return unfit("interpolants", "reverse-sde"),
        };
        let map = &content.standardisation;
        let log_density = self.log_density.then(|| {
            let values = drawn.log_density.iter();
            let rows = values.zip(drawn.points.chunks_exact(spec.dim));
            rows.map(|(value, point)| value - map.log_volume_at(point))
                .collect()
        });
        refuse_non_finite(&drawn, spec.dim, name, grid.t_min())?;
        map.to_data(&mut drawn.points);
        whole(content, &mut drawn.points);
        let found = Generated {
            number: drawn.points.len() / spec.dim,
            points: content.rows_outward(drawn.points),
            log_density,
            method: name.into(),
            g: match method {
                Method::InterpolantSde(g) => Some(g),
                _ => None,
            },
            grid,
        };
        Ok(Done::new(found, bar))
    }

    /// The method of this name, with its settings.
    fn method(&self, name: &str) -> Result<Method> {
        for (key, given, owner) in [
            ("eta", self.eta.is_some(), "ddim"),
            ("integrator", self.integrator.is_some(), "reverse-sde"),
            ("tolerance", self.tolerance.is_some(), "flow"),
            ("log_density", self.log_density, "flow"),
        ] {
            if given && owner != name {
                return Err(Error::Refused(words!(
                    Setting::new(key),
                    " belongs to ",
                    owner,
                    ", and the method is ",
                    name,
                    "; leave it out"
                )));
            }
        }
        if name == "interpolant-sde" {
            return Ok(Method::InterpolantSde(self.bridge.g_or(0.5)));
        }
        self.bridge.refuse_g(name)?;
        if name == "flow" {
            return Ok(Method::Flow(match self.tolerance {
                Some(tolerance) => Solver::Adaptive { tolerance },
                None => Solver::Heun,
            }));
        }
        match Sampler::by_name(name) {
            Ok(Sampler::Ddim(_)) => Ok(Method::Diffusion(Sampler::Ddim(Ddim {
                eta: self.eta.unwrap_or(0.0),
            }))),
            Ok(Sampler::ReverseSde(_)) => Ok(Method::Diffusion(Sampler::ReverseSde(ReverseSde {
                integrator: self.integrator.unwrap_or_default(),
            }))),
            Err(_) => Err(Error::setting(
                "method",
                format!("'{name}'"),
                format!("one of {}", Self::methods().join(", ")),
            )),
        }
    }

    fn grid(&self, grid: &TimeGrid) -> Result<TimeGrid> {
        match self.steps {
            Some(steps) if steps < 2 => Err(Error::setting("steps", steps, "at least 2")),
            Some(steps) => Ok(grid.with_levels(steps)?),
            None => Ok(grid.clone()),
        }
    }

    fn check_number(&self, number: usize, dim: usize) -> Result<()> {
        if number == 0 {
            return Err(Error::setting("number", 0, "at least 1 sample"));
        }
        // In the model's coordinates, and once more as a file.
        memory::refuse_rows("number", number, dim, 16)?;
        match self.probes {
            Some(probes) => memory::refuse_rows("probes", probes, dim, 8),
            None => Ok(()),
        }
    }
}

/// Rounds columns of whole numbers (or of those with a common fraction), which were learned spread over their steps.
fn whole(content: &Content, points: &mut [f64]) {
    let Some(data) = content.record.data.first() else {
        return;
    };
    for point in points.chunks_exact_mut(content.spec.dim) {
        for (j, (x, step)) in point.iter_mut().zip(&data.steps).enumerate() {
            if *step == 1.0 {
                let origin = data.origins.get(j).copied().unwrap_or(0.0);
                *x = (*x - origin).round() + origin;
            }
        }
    }
}

/// Samples that are no numbers are no samples.
fn refuse_non_finite(drawn: &Drawn, dim: usize, name: &str, time: f64) -> Result<()> {
    if let Some(at) = drawn.points.iter().position(|x| !x.is_finite()) {
        return Err(Error::Core(CoreError::Diverged {
            sampler: Generation::methods()
                .into_iter()
                .find(|method| *method == name)
                .unwrap_or("flow"),
            particle: (at / dim) as u64,
            time,
        }));
    }
    if drawn.log_density.iter().any(|x| !x.is_finite()) {
        let what = "log-density along the flow";
        return Err(Error::Core(CoreError::ModelNotFinite { what, time }));
    }
    Ok(())
}

/// What all methods use.
struct Run<'a> {
    asked: &'a Generation,
    content: &'a Content,
    energy: &'a LearnedEnergy,
    grid: &'a TimeGrid,
    bridge: Option<&'a Bridge<'a>>,
    number: usize,
}

impl Run<'_> {
    fn diffusion(&self, sampler: &Sampler, tell: &mut dyn FnMut(f64)) -> Result<Drawn> {
        let (spec, number) = (&self.content.spec, self.number);
        let (times, start) = (times_of(self.grid), Prior::of(spec));
        let total = (number * (times.len() - 1)) as f64;
        let mut points = Vec::with_capacity(number * spec.dim);
        for first in (0..number).step_by(PIECE) {
            let task = Task {
                energy: self.energy,
                process: &spec.process,
                times: &times,
                start: &start,
                particles: first as u64..number.min(first + PIECE) as u64,
                seed: self.asked.seed,
            };
            points.extend(sampler.run(&task, &mut |done| {
                tell((first * (times.len() - 1) + done) as f64 / total);
            })?);
        }
        Ok(Drawn {
            points,
            log_density: Vec::new(),
        })
    }

    /// Points at the first of the times; a bridge's rows, or draws of the noise.
    fn start(&self, times: &[f64]) -> Result<Vec<f64>> {
        if let Some(bridge) = self.bridge {
            return bridge.departures(times[0], self.asked.number, self.asked.seed);
        }
        let spec = &self.content.spec;
        let start = Prior::of(spec).mixture()?;
        let mut points = vec![0.0; self.number * spec.dim];
        for (row, point) in points.chunks_exact_mut(spec.dim).enumerate() {
            let mut stream = Stream::new(self.asked.seed, Purpose::Sample, 0, row as u64);
            start.sample_point(&mut stream, point);
        }
        Ok(points)
    }

    fn flow(&self, solver: Solver, tell: &mut dyn FnMut(f64)) -> Result<Drawn> {
        let (spec, asked) = (&self.content.spec, self.asked);
        let times = match self.bridge {
            Some(bridge) => bridge.times(self.grid),
            None => self.grid.times().iter().rev().copied().collect(),
        };
        let flow = Flow {
            energy: self.energy,
            process: &spec.process,
            velocity: self.bridge.map(Bridge::velocity),
            solver,
            divergence: asked.log_density.then_some(match asked.probes {
                Some(probes) => Divergence::Hutchinson { probes },
                None => Divergence::Exact,
            }),
            seed: asked.seed,
        };
        let known = spec.last_law()?;
        let mut drawn = Drawn {
            points: self.start(&times)?,
            log_density: Vec::new(),
        };
        let number = drawn.points.len() / spec.dim;
        for (piece, points) in drawn.points.chunks_mut(SMALL_PIECE * spec.dim).enumerate() {
            let rows = points.len() / spec.dim;
            let mut before = vec![0.0; rows];
            match self.bridge {
                Some(bridge) => bridge.log_density(times[0], points, &mut before),
                None => {
                    for (value, point) in before.iter_mut().zip(points.chunks_exact(spec.dim)) {
                        *value = known(point);
                    }
                }
            }
            let first = piece * SMALL_PIECE;
            let growth = flow.carry(&times, first as u64, points, &mut |share| {
                tell((first as f64 + share * rows as f64) / number as f64);
            })?;
            if let Some(growth) = growth {
                let values = before.iter().zip(growth).map(|(a, b)| a + b);
                drawn.log_density.extend(values);
            }
        }
        Ok(drawn)
    }

    fn stochastic(
        &self,
        bridge: &Bridge<'_>,
        g: Diffusivity,
        tell: &mut dyn FnMut(f64),
    ) -> Result<Drawn> {
        let spec = &self.content.spec;
        let times = bridge.times(self.grid);
        let sde = InterpolantSde {
            energy: self.energy,
            velocity: bridge.velocity(),
            process: &spec.process,
            g: &|time| g.at(&spec.process, time),
            seed: self.asked.seed,
        };
        let mut points = self.start(&times)?;
        let number = points.len() / spec.dim;
        for (piece, points) in points.chunks_mut(SMALL_PIECE * spec.dim).enumerate() {
            let (first, rows) = (piece * SMALL_PIECE, points.len() / spec.dim);
            sde.carry(&times, first as u64, points, &mut |done| {
                let share = done as f64 / (times.len() - 1) as f64;
                tell((first as f64 + share * rows as f64) / number as f64);
            })?;
        }
        Ok(Drawn {
            points,
            log_density: Vec::new(),
        })
    }
}
