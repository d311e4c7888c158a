//! Weighted rows and log Z of a model of states, or of the lattice it was trained on.

use crate::error::{Error, Result};
use crate::memory;
use crate::watch::{Done, Watch};
use diffclf::discrete::model::Content;
use diffclf::discrete::sample::{Anneal, Annealed, Kernel, LogWeight, annealing_times};
use diffclf::discrete::system::{Lattice, LogWeights};
use diffclf::discrete::{Energy, LearnedStates, Space};
use diffclf::process::TimeGrid;

/// How to anneal.
#[derive(Debug, Clone)]
pub struct StatesAnnealing {
    /// `ising` or `potts`: log Z of that lattice; none: of the model's smallest level.
    pub target: Option<String>,
    /// Particles of all runs.
    pub particles: usize,
    /// Independent runs.
    pub runs: usize,
    /// Sweeps at each level.
    pub sweeps: usize,
    /// Levels; none: the model's own.
    pub levels: Option<usize>,
    /// Resample below this effective share; 0 for AIS.
    pub resample_below: f64,
    /// The move.
    pub kernel: Kernel,
    /// Seed.
    pub seed: u64,
}

/// What came of it.
pub type StatesFound = Annealed;

impl StatesAnnealing {
    /// Anneals.
    pub fn run(
        &self,
        (content, energy): (&Content, &LearnedStates),
        watch: &dyn Watch,
    ) -> Result<Done<StatesFound>> {
        let space = content.spec.space;
        let side = space.sites.isqrt();
        let lattice = match self.target.as_deref() {
            None => None,
            Some("ising") if space.states == 2 && side * side == space.sites => {
                Some(Lattice::named_ising(side))
            }
            Some("potts") if space.states == 3 && side * side == space.sites => {
                Some(Lattice::named_potts(side))
            }
            Some(other) => {
                return Err(Error::setting(
                    "target",
                    format!(
                        "{other:?} for {} sites of {} states",
                        space.sites, space.states
                    ),
                    "ising (2 states) or potts (3 states), on a square number of sites",
                ));
            }
        };
        let weight = |row: &[u8]| {
            lattice
                .as_ref()
                .map_or(0.0, |lattice| lattice.log_weight(row))
        };
        let target = lattice.is_some().then_some(&weight as LogWeight<'_>);
        self.lead(energy, &content.spec.grid, target, watch)
    }

    /// Leads particles from noise over the range of a grid, and on to a target.
    pub fn lead(
        &self,
        energy: &dyn Energy,
        grid: &TimeGrid,
        target: Option<LogWeight<'_>>,
        watch: &dyn Watch,
    ) -> Result<Done<StatesFound>> {
        let Space { sites, states } = energy.space();
        let symbols = energy.process().symbols(states);
        memory::refuse_rows("particles", self.particles, sites * (8 + symbols), 1)?;
        let times = annealing_times(energy.process(), grid, self.levels)?;
        let anneal = Anneal {
            energy,
            times: &times,
            target,
            kernel: self.kernel,
            sweeps: self.sweeps,
            resample_below: self.resample_below,
            particles: self.particles.div_ceil(self.runs.max(1)),
            runs: self.runs,
            seed: self.seed,
        };
        let mut bar = watch.begin("anneal", (self.runs * times.len()) as u64, 0);
        let found = anneal.run(&mut |level| bar.set(level as u64, &|| "levels".into()))?;
        Ok(Done::new(found, bar))
    }
}
