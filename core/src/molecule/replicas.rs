//! Replica exchange over temperature and solvent (Hukushima and Nemoto 1996; Sugita and Okamoto 1999): copies of a molecule in Langevin
//! dynamics, whose states are swapped between neighbours so that the cold ones profit from the mobility of the hot.
//!
//! A state is a temperature and a solvent; a ladder has one copy in every state, and ladders run side by side. What a copy draws depends on
//! the seed and its number alone, so results do not depend on threads. Swapped copies keep their coordinates and exchange their states;
//! velocities are scaled to the new temperature.

use super::force_field::{COPIES, EnergyTerms, ForceField};
use super::langevin::{Block, Integrator};
use super::solvent::Solvent;
use super::topology::Topology;
use crate::engine::company::{gather, share};
use crate::engine::{Company, Isa, Pool};
use crate::rng::{Purpose, Stream};
use crate::sample::trips::Trips;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

mod settings;

pub use settings::{ReplicaSettings, ThermoState};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["hukushima1996exchange", "sugita1999replica"];

/// Swaps between two neighbouring states, over all ladders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapCount {
    /// The two states, by number.
    pub states: [usize; 2],
    /// Swaps tried.
    pub tried: u64,
    /// Swaps taken.
    pub taken: u64,
}

/// All that a run needs to go on: what [`Replicas::state`] gives and [`Replicas::resume`] takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaState {
    /// Sweeps done.
    pub sweep: u64,
    /// nm, copy after copy.
    pub positions: Vec<f64>,
    /// nm/ps.
    pub velocities: Vec<f64>,
    /// The state that each copy is in.
    pub states: Vec<usize>,
    /// Swaps so far.
    pub swaps: Vec<SwapCount>,
    heating: Trips,
    drying: Trips,
}

/// Copies of a molecule in motion.
pub struct Replicas<'a> {
    settings: ReplicaSettings,
    field: &'a ForceField,
    integrator: Integrator,
    states: Vec<ThermoState>,
    blocks: Vec<Mutex<Block>>,
    /// The state of each replica, by number within its ladder.
    state_of: Vec<usize>,
    /// The replica in each state, ladder after ladder.
    replica_at: Vec<usize>,
    terms: Vec<EnergyTerms>,
    swaps: Vec<SwapCount>,
    heating: Trips,
    drying: Trips,
    sweep: u64,
}

impl<'a> Replicas<'a> {
    /// Copies at rest at `starts` (rows of coordinates, taken in turn) get velocities of their temperatures.
    pub fn new(
        field: &'a ForceField,
        topology: &Topology,
        settings: ReplicaSettings,
        starts: &[f64],
        isa: Isa,
    ) -> Result<Self> {
        settings.validate()?;
        let dim = 3 * field.atoms();
        if starts.is_empty() || !starts.len().is_multiple_of(dim) {
            return Err(Error::Shape {
                what: "the first coordinates".into(),
                found: format!("{} numbers", starts.len()),
                expected: format!("rows of {dim} numbers, three for each atom of the topology"),
            });
        }
        let (states, count) = (settings.states(), settings.replicas());
        let mut run = Self::assemble(field, topology, settings, isa)?;
        for replica in 0..count {
            let row = replica % (starts.len() / dim);
            let velocities = run
                .integrator
                .velocities(replica, states[replica % states.len()].kt());
            run.place(replica, &starts[row * dim..][..dim], &velocities);
        }
        Ok(run)
    }

    /// Goes on from a state, exactly as if there had been no break.
    pub fn resume(
        field: &'a ForceField,
        topology: &Topology,
        settings: ReplicaSettings,
        from: &ReplicaState,
        isa: Isa,
    ) -> Result<Self> {
        settings.validate()?;
        let mut run = Self::assemble(field, topology, settings, isa)?;
        let (dim, count, states) = (3 * field.atoms(), run.state_of.len(), run.states.len());
        let mut sorted: Vec<usize> = Vec::with_capacity(count);
        for ladder in from.states.chunks(states) {
            let mut ladder = ladder.to_vec();
            ladder.sort_unstable();
            sorted.extend(ladder);
        }
        let whole = sorted.iter().copied().eq((0..count).map(|k| k % states))
            && from.positions.len() == count * dim
            && from.velocities.len() == count * dim
            && from
                .positions
                .iter()
                .chain(&from.velocities)
                .all(|x| x.is_finite())
            && from
                .swaps
                .iter()
                .map(|s| s.states)
                .eq(run.swaps.iter().map(|s| s.states))
            && [&from.heating, &from.drying]
                .iter()
                .all(|trips| trips.points() == count);
        if !whole {
            return Err(Error::Value {
                name: "state of the replicas",
                found: format!(
                    "{} copies of {} coordinates",
                    from.states.len(),
                    from.positions.len()
                ),
                expected: format!(
                    "{count} copies of {dim} finite coordinates, one in every state; it is damaged, or of another run"
                ),
            });
        }
        run.state_of.clone_from(&from.states);
        for (replica, &state) in run.state_of.iter().enumerate() {
            run.replica_at[replica / states * states + state] = replica;
        }
        for replica in 0..count {
            let at = replica * dim..(replica + 1) * dim;
            run.place(replica, &from.positions[at.clone()], &from.velocities[at]);
        }
        run.swaps.clone_from(&from.swaps);
        (run.heating, run.drying) = (from.heating.clone(), from.drying.clone());
        run.sweep = from.sweep;
        Ok(run)
    }

    fn assemble(
        field: &'a ForceField,
        topology: &Topology,
        settings: ReplicaSettings,
        isa: Isa,
    ) -> Result<Self> {
        let solvated = settings
            .solvents
            .iter()
            .any(|solvent| *solvent != Solvent::Vacuum);
        if topology.atoms() != field.atoms() || solvated && !field.solvates() {
            return Err(Error::Value {
                name: "force field",
                found: format!(
                    "{} atoms, {} solvent",
                    field.atoms(),
                    if field.solvates() { "with" } else { "without" }
                ),
                expected:
                    "one made of this topology, with a solvent model where a solvent is asked for"
                        .into(),
            });
        }
        let (states, count) = (settings.states(), settings.replicas());
        let integrator = Integrator::new(
            isa,
            settings.seed,
            &topology.masses,
            settings.step,
            settings.friction,
        );
        let blocks = (0..count)
            .step_by(COPIES)
            .map(|first| Mutex::new(Block::new(field, first)))
            .collect();
        let pairs = neighbours(settings.temperatures.len(), settings.solvents.len());
        let swap = |states: &[usize; 2]| SwapCount {
            states: *states,
            tried: 0,
            taken: 0,
        };
        Ok(Replicas {
            swaps: pairs.iter().flatten().map(swap).collect(),
            field,
            integrator,
            blocks,
            state_of: (0..count).map(|replica| replica % states.len()).collect(),
            replica_at: (0..count).collect(),
            terms: vec![EnergyTerms::default(); count],
            heating: Trips::new(count),
            drying: Trips::new(count),
            sweep: 0,
            states,
            settings,
        })
    }

    fn block(&mut self, replica: usize) -> (&mut Block, usize) {
        let block = self.blocks[replica / COPIES]
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        (block, replica % COPIES)
    }

    /// Puts a copy into its lane; the last copy also fills the lanes that nobody needs.
    fn place(&mut self, replica: usize, positions: &[f64], velocities: &[f64]) {
        let state = self.states[self.state_of[replica]];
        let last = replica + 1 == self.state_of.len();
        let (block, lane) = self.block(replica);
        let lanes = if last { lane..COPIES } else { lane..lane + 1 };
        for lane in lanes {
            block.place(lane, positions, velocities);
            block.hold(lane, state.kt(), state.solvent);
        }
    }

    /// One sweep: the moves of every copy, then swaps between neighbours. `counts` tells whether journeys and swaps are counted.
    pub fn advance(&mut self, pool: &Pool, counts: bool) -> Result<()> {
        let (field, integrator, blocks) = (self.field, &self.integrator, &self.blocks);
        let (from, moves) = (self.sweep * self.settings.moves, self.settings.moves);
        let company = pool.company();
        let mine = match company {
            Some(company) => share(&**company, blocks.len()),
            None => 0..blocks.len(),
        };
        pool.run(mine.len(), &|_, index| {
            let block = &blocks[mine.start + index];
            let mut block = block.lock().unwrap_or_else(PoisonError::into_inner);
            block.advance(field, integrator, from, moves);
        });
        if let Some(company) = company {
            self.meet(&**company, mine);
        }
        self.sweep += 1;
        for replica in 0..self.state_of.len() {
            let (block, lane) = self.block(replica);
            let terms = block.copies.terms(lane);
            self.terms[replica] = terms;
            if !terms.total(Solvent::WATER).is_finite() {
                return Err(Error::Unstable {
                    replica,
                    time: self.time(),
                });
            }
        }
        self.swap(counts);
        Ok(())
    }

    /// Every process has moved its blocks: all get all.
    fn meet(&mut self, company: &dyn Company, mine: Range<usize>) {
        let blocks = self.blocks.iter_mut().map(|block| block.get_mut());
        let mut blocks: Vec<&mut Block> = blocks
            .map(|block| block.unwrap_or_else(PoisonError::into_inner))
            .collect();
        let size = blocks.first().map_or(0, |block| block.size());
        let mut numbers = vec![0.0; size * blocks.len()];
        for (block, out) in blocks.iter().zip(numbers.chunks_exact_mut(size.max(1))) {
            block.pack(out);
        }
        gather(company, blocks.len(), &|block| block * size, &mut numbers);
        for (k, from) in numbers.chunks_exact(size.max(1)).enumerate() {
            if !mine.contains(&k) {
                blocks[k].unpack(from);
            }
        }
    }

    /// Pairs of neighbours take turns: even and odd ones along the temperatures, then along the solvents. A swap of copies x and y between
    /// states a and b is taken with probability `min(1, exp(u_a(x) + u_b(y) - u_a(y) - u_b(x)))`.
    fn swap(&mut self, counts: bool) {
        let kinds = neighbours(
            self.settings.temperatures.len(),
            self.settings.solvents.len(),
        );
        let busy: Vec<usize> = (0..kinds.len()).filter(|&k| !kinds[k].is_empty()).collect();
        let states = self.states.len();
        if !busy.is_empty() {
            let kind = busy[(self.sweep % busy.len() as u64) as usize];
            let before: usize = kinds[..kind].iter().map(Vec::len).sum();
            for ladder in 0..self.settings.ladders {
                for (number, [a, b]) in kinds[kind].iter().copied().enumerate() {
                    let [x, y] = [a, b].map(|state| self.replica_at[ladder * states + state]);
                    let [first, second] = [self.states[a], self.states[b]];
                    let stay = first.reduced(&self.terms[x]) + second.reduced(&self.terms[y]);
                    let go = first.reduced(&self.terms[y]) + second.reduced(&self.terms[x]);
                    let row = (ladder * kinds[kind].len() + number) as u64;
                    let uniform =
                        Stream::new(self.settings.seed, Purpose::Swap, self.sweep, row).uniform();
                    let taken = stay - go > uniform.ln();
                    if taken {
                        let root = (second.temperature / first.temperature).sqrt();
                        for (replica, state, factor) in [(x, b, root), (y, a, 1.0 / root)] {
                            self.state_of[replica] = state;
                            self.replica_at[ladder * states + state] = replica;
                            let held = self.states[state];
                            let (block, lane) = self.block(replica);
                            block.rescale(lane, factor);
                            block.hold(lane, held.kt(), held.solvent);
                        }
                    }
                    if counts {
                        self.swaps[before + number].tried += 1;
                        self.swaps[before + number].taken += u64::from(taken);
                    }
                }
            }
        }
        let (temperatures, solvents) = (
            self.settings.temperatures.len(),
            self.settings.solvents.len(),
        );
        for (replica, &state) in self.state_of.iter().enumerate() {
            let (temperature, solvent) = (state % temperatures, state / temperatures);
            // Two ends that are one are no ladder.
            for (trips, place, last) in [
                (&mut self.heating, temperature, temperatures - 1),
                (&mut self.drying, solvent, solvents - 1),
            ] {
                if last > 0 && place == last {
                    trips.at_hot(replica, counts);
                } else if last > 0 && place == 0 {
                    trips.at_cold(replica);
                }
            }
        }
    }

    /// Time since the start, ps.
    pub fn time(&self) -> f64 {
        (self.sweep * self.settings.moves) as f64 * self.settings.step
    }

    /// Sweeps done.
    pub fn sweeps(&self) -> u64 {
        self.sweep
    }

    /// The states of a ladder.
    pub fn states(&self) -> &[ThermoState] {
        &self.states
    }

    /// The settings.
    pub fn settings(&self) -> &ReplicaSettings {
        &self.settings
    }

    /// The energies of the copy that a ladder has in a state, after the last sweep.
    pub fn terms(&self, ladder: usize, state: usize) -> EnergyTerms {
        self.terms[self.replica_at[ladder * self.states.len() + state]]
    }

    /// The coordinates (nm) of the copy that a ladder has in a state.
    pub fn positions(&mut self, ladder: usize, state: usize, out: &mut [f64]) {
        let replica = self.replica_at[ladder * self.states.len() + state];
        let (block, lane) = self.block(replica);
        for (out, lanes) in out.iter_mut().zip(&block.copies.positions) {
            *out = lanes.0[lane];
        }
    }

    /// Swaps between neighbouring states.
    pub fn swaps(&self) -> &[SwapCount] {
        &self.swaps
    }

    /// Journeys of copies from the hottest to the coldest temperature and back, and likewise between the last and the first solvent.
    pub fn round_trips(&self) -> [usize; 2] {
        [self.heating.round_trips(), self.drying.round_trips()]
    }

    /// All that is needed to go on.
    pub fn state(&mut self) -> ReplicaState {
        let (count, dim) = (self.state_of.len(), 3 * self.field.atoms());
        let (mut positions, mut velocities) = (
            Vec::with_capacity(count * dim),
            Vec::with_capacity(count * dim),
        );
        for replica in 0..count {
            let (block, lane) = self.block(replica);
            positions.extend(block.copies.positions.iter().map(|x| x.0[lane]));
            velocities.extend(block.velocities(lane));
        }
        ReplicaState {
            sweep: self.sweep,
            positions,
            velocities,
            states: self.state_of.clone(),
            swaps: self.swaps.clone(),
            heating: self.heating.clone(),
            drying: self.drying.clone(),
        }
    }
}

/// Pairs of neighbouring states that can be swapped at once: even and odd pairs of temperatures, even and odd pairs of solvents.
fn neighbours(temperatures: usize, solvents: usize) -> [Vec<[usize; 2]>; 4] {
    let mut kinds: [Vec<[usize; 2]>; 4] = Default::default();
    for solvent in 0..solvents {
        for temperature in 0..temperatures {
            let state = solvent * temperatures + temperature;
            if temperature + 1 < temperatures {
                kinds[temperature % 2].push([state, state + 1]);
            }
            if solvent + 1 < solvents {
                kinds[2 + solvent % 2].push([state, state + temperatures]);
            }
        }
    }
    kinds
}

#[cfg(test)]
mod tests;
