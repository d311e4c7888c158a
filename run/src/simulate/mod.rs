//! Langevin dynamics on a learned, exact or composed energy: many chains side by side, with masses, friction, temperature and time step
//! in stated units. The force is `kT score` in the data's coordinates.

mod asking;
mod bounds;
mod keeping;
mod landscape;
mod units;

pub use asking::{Asking, Given, Settled, in_space};
pub use bounds::{Bounds, Departure};
pub use keeping::Keeping;
pub use landscape::{GO, Landscape};
pub use units::{Units, masses_over_kt};

use crate::company;
use crate::error::{Error, Result};
use crate::memory;
use crate::watch::{Done, Watch};
use crate::words;
use crate::words::Setting;
use diffclf::engine::Isa;
use diffclf::rng::Purpose;
use diffclf::sample::mcmc::{HeldEnergy, Kernel, Langevin};
use diffclf::sample::{Dynamics, Ensemble};
use diffclf::system::System;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How chains move from one step to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// BAOAB splitting: configurations nearly exact at large steps.
    #[default]
    Baoab,
    /// The Langevin leapfrog, the scheme of the paper and of OpenMM's LangevinIntegrator.
    LangevinLeapfrog,
    /// Langevin steps with an acceptance test: configurations exact at any step.
    Ghmc,
}

impl Scheme {
    fn kernel(self, friction: f64) -> Kernel {
        let langevin = Langevin {
            friction,
            mass: 1.0,
        };
        match self {
            Scheme::Baoab => Kernel::Baoab(langevin),
            Scheme::LangevinLeapfrog => Kernel::LangevinLeapfrog(langevin),
            Scheme::Ghmc => Kernel::Ghmc(langevin),
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// How chains move.
    pub scheme: Scheme,
    /// What the numbers mean.
    pub units: Units,
    /// Time step.
    pub step: f64,
    /// Friction.
    pub friction: f64,
    /// Temperature; kT in reduced units.
    pub temperature: f64,
    /// One mass for all, one for each particle, or one for each coordinate.
    pub masses: Vec<f64>,
    /// Frames of each chain.
    pub frames: usize,
    /// Steps from one frame to the next.
    pub thin: usize,
    /// Time of the energy; the smallest if absent.
    pub time: Option<f64>,
    /// Bonds whose lengths are watched.
    pub bonds: Vec<[usize; 2]>,
    /// Whether rows are particles in space.
    pub particles: bool,
    /// Seed.
    pub seed: u64,
}

/// Finished chains.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// Points of all frames, chain after chain.
    pub points: Vec<f64>,
    /// U at them.
    pub energies: Vec<f64>,
    /// Number of chains.
    pub chains: usize,
    /// What the chains say of themselves.
    pub summary: Summary,
}

/// What chains say of themselves.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Time of the energy.
    pub time: f64,
    /// kT in mass length^2 / time^2, time in ps for molecules.
    pub thermal_energy: f64,
    /// Mean acceptance; 1 for schemes without a test.
    pub acceptance: f64,
    /// Mean of `m v^2 / kT` over all coordinates at the end: 1 in equilibrium.
    pub kinetic_temperature: f64,
    /// The data's own ranges.
    pub bounds: Bounds,
    /// Chains that left the data.
    pub departures: Vec<Departure>,
}

/// Longest time between two looks at whoever watches.
const LOOK: Duration = Duration::from_millis(300);

impl Simulation {
    /// Refuses settings that cannot be.
    pub fn check(&self, chains: usize, dim: usize) -> Result<()> {
        for (name, value) in [
            ("step", self.step),
            ("friction", self.friction),
            ("temperature", self.temperature),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::setting(name, value, "a positive finite number"));
            }
        }
        for (name, value) in [
            ("frames", self.frames),
            ("thin", self.thin),
            ("chains", chains),
        ] {
            if value == 0 {
                return Err(Error::setting(name, value, "at least 1"));
            }
        }
        if self.particles && !dim.is_multiple_of(3) {
            return Err(Error::setting(
                "bonds",
                self.bonds.len(),
                format!("none: rows of {dim} numbers are no particles in space"),
            ));
        }
        if let Some([a, b]) = self
            .bonds
            .iter()
            .find(|[a, b]| a == b || 3 * a.max(b) >= dim)
        {
            return Err(Error::setting(
                "bonds",
                format!("{a}-{b}"),
                format!("two different particles below {}", dim / 3),
            ));
        }
        let steps = self.frames.checked_mul(self.thin);
        if steps.is_none_or(|steps| steps as u64 > 1 << 53) {
            return Err(Error::setting(
                "thin",
                self.thin,
                "fewer steps in all: frames times thin must stay below 9e15",
            ));
        }
        let rows = self.frames.saturating_mul(chains);
        memory::refuse_rows("frames", rows, dim.saturating_add(1), 16)
    }

    /// Moves the chains from `start`, rows of the energy's dimension. `data` are rows by which chains that leave the data are noticed.
    /// `keeping` makes an interrupted run go on where it stopped, to the same bytes.
    pub fn run(
        &self,
        landscape: &Landscape<'_>,
        start: &[f64],
        data: &[f64],
        machine: (usize, Isa),
        keeping: Option<(&Keeping, Duration)>,
        watch: &dyn Watch,
    ) -> Result<Done<Simulated>> {
        let time = landscape.time(self.time)?;
        let dim = landscape.dim()?;
        let chains = start.len() / dim;
        self.check(chains, dim)?;
        let thermal_energy = self.units.thermal_energy(self.temperature);
        let dynamics = Dynamics {
            kernel: self.scheme.kernel(self.friction),
            step: self.units.time(self.step),
            masses: masses_over_kt(&self.masses, dim, thermal_energy)?,
            thin: self.thin,
            seed: self.seed,
        };
        let (threads, isa) = machine;
        landscape.held(time, threads.min(chains), isa, |targets| {
            let bounds = Bounds::of(data, &self.bonds, self.particles, targets);
            let mut bar = watch.begin("simulate", (self.frames * self.thin) as u64, 0);
            let (numbers, acceptance, kinetic) =
                self.frames_of(&dynamics, targets, start, keeping, &mut |ensemble, top| {
                    bar.set(ensemble.steps(), &|| format!("largest energy {top:.1} kT"));
                    watch.stopped()
                })?;
            let block = chains * (dim + 1);
            let (mut frames, mut energies) = (Vec::new(), Vec::new());
            for block in numbers.chunks_exact(block) {
                frames.extend_from_slice(&block[..chains * dim]);
                energies.extend_from_slice(&block[chains * dim..]);
            }
            drop(numbers);
            let departures = bounds.departures(&frames, &energies, chains);
            Ok(Done::new(
                Simulated {
                    points: by_chain(&frames, chains, dim),
                    energies: by_chain(&energies, chains, 1),
                    chains,
                    summary: Summary {
                        time,
                        thermal_energy,
                        acceptance,
                        kinetic_temperature: kinetic,
                        bounds,
                        departures,
                    },
                },
                bar,
            ))
        })
    }

    /// All frames: each frame's points, then its energies. With the mean acceptance and the kinetic temperature at the end.
    fn frames_of(
        &self,
        dynamics: &Dynamics,
        targets: &[HeldEnergy<'_>],
        start: &[f64],
        keeping: Option<(&Keeping, Duration)>,
        look: &mut dyn FnMut(&Ensemble<'_>, f64) -> bool,
    ) -> Result<(Vec<f64>, f64, f64)> {
        let dim = targets[0].energy.dim();
        let chains = start.len() / dim;
        let size = chains * (dim + 1);
        let kept = match keeping {
            Some((keeping, _)) => keeping.open(size, self.thin)?,
            None => None,
        };
        let (mut ensemble, mut numbers) = match kept {
            Some(kept) => (
                Ensemble::resume(dynamics, targets, kept.snapshot)?,
                kept.numbers,
            ),
            None => {
                if let Some((keeping, _)) = keeping {
                    keeping.begin()?;
                }
                (
                    Ensemble::start(dynamics, targets, start.to_vec())?,
                    Vec::new(),
                )
            }
        };
        let (mut saved, mut last_save) = (numbers.len(), Instant::now());
        // As many frames at once as take a look's time, found by doing.
        let mut together = 1;
        while numbers.len() / size < self.frames {
            let count = together.min(self.frames - numbers.len() / size);
            let began = Instant::now();
            let (mut points, mut energies) =
                (vec![0.0; count * chains * dim], vec![0.0; count * chains]);
            ensemble.advance(count, &mut points, &mut energies);
            for frame in 0..count {
                numbers.extend_from_slice(&points[frame * chains * dim..][..chains * dim]);
                numbers.extend_from_slice(&energies[frame * chains..][..chains]);
            }
            let spent = company::elapsed(began);
            together = match spent < LOOK / 2 {
                true => (2 * together).min(1 << 16),
                false if spent > 2 * LOOK => (together / 2).max(1),
                false => together,
            };
            let top = energies[(count - 1) * chains..]
                .iter()
                .fold(f64::NEG_INFINITY, |m, u| m.max(*u));
            let stop = look(&ensemble, top);
            if let Some((keeping, every)) = keeping
                && (stop || company::elapsed(last_save) >= every)
                && numbers.len() / size < self.frames
            {
                keeping.save(&numbers[saved..], &ensemble.snapshot())?;
                (saved, last_save) = (numbers.len(), Instant::now());
            }
            if stop && numbers.len() / size < self.frames {
                let done = numbers.len() / size;
                return Err(Error::Interrupted(match keeping {
                    Some(_) => format!(
                        "{done} of {} frames are kept; the same command goes on where it stopped",
                        self.frames
                    ),
                    None => format!("{done} of {} frames were made", self.frames),
                }));
            }
        }
        let kinetic = ensemble.kinetic_temperature().unwrap_or(f64::NAN);
        Ok((numbers, ensemble.acceptance(), kinetic))
    }
}

/// Rows to start from where none are given: draws of the system that the first model was trained on, or of the first system; the native
/// structure again and again, if that is a Go model.
pub fn start_of(landscape: &Landscape<'_>, chains: usize, seed: u64) -> Result<Vec<f64>> {
    let trained = landscape.models.first().and_then(|(_, model)| {
        let data = model.content.record.data.first()?;
        Some((data.name.as_str(), data.system_seed?))
    });
    let first = landscape.systems.first();
    let named = first.map(|(_, system)| (*system, landscape.system_seed));
    let Some((name, system_seed)) = trained.or(named) else {
        return Err(Error::Refused(words!(
            "there is nothing to start from: the model was trained on a file; give rows with ",
            Setting::new("start")
        )));
    };
    if let Some(model) = landscape::go_model(name) {
        return Ok(model?.native().repeat(chains));
    }
    let system = System::by_name(name, landscape.dim()?, system_seed)?;
    let rows = system.sample_for(Purpose::Departure(0), chains, seed);
    Ok(rows.into_iter().map(f64::from).collect())
}

/// Rows of all chains of the first frame, then of the second: chain after chain instead.
fn by_chain(rows: &[f64], chains: usize, width: usize) -> Vec<f64> {
    let frames = rows.len() / (chains * width);
    let mut out = Vec::with_capacity(rows.len());
    for chain in 0..chains {
        for frame in 0..frames {
            let at = (frame * chains + chain) * width;
            out.extend_from_slice(&rows[at..at + width]);
        }
    }
    out
}

#[cfg(test)]
mod tests;
