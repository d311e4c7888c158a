//! Filling what an energy on a mixture needs of it: log-density, score, time score and Laplacian of the exact marginal at the points
//! of a tile.

use std::sync::{Mutex, PoisonError};

use super::spec::ModelSpec;
use super::wiring::{BaseSlots, Wiring};
use crate::Result;
use crate::base::{Level, Marginal, Scratch, Wanted};
use crate::engine::kernel::FlushDenormals;
use crate::engine::{Inputs, Isa, Real};

/// The times of a tile's units, as a base knows them.
#[derive(Debug, Clone, Copy)]
pub enum UnitLevels<'a> {
    /// Every unit has these.
    Same(&'a [Level]),
    /// Unit after unit, so many each.
    Each(&'a [Level], usize),
}

impl UnitLevels<'_> {
    fn at(&self, unit: usize, time: u32) -> Level {
        match *self {
            UnitLevels::Same(levels) => levels[time as usize],
            UnitLevels::Each(levels, count) => levels[unit * count + time as usize],
        }
    }
}

/// What a thread needs while it fills.
struct Desk<T> {
    scratch: Scratch<T>,
    levels: Vec<Level>,
    points: Vec<T>,
    /// Log-densities, scores, time scores, Laplacians.
    out: [Vec<T>; 4],
}

/// See the module's text.
pub struct BaseInputs<T> {
    marginal: Marginal<T>,
    desks: Mutex<Vec<Desk<T>>>,
}

impl<T: Real> BaseInputs<T> {
    /// For the mixture of a model, if it stands on one.
    pub fn new(spec: &ModelSpec, isa: Isa) -> Result<Option<BaseInputs<T>>> {
        let Some(base) = &spec.base else {
            return Ok(None);
        };
        Ok(Some(BaseInputs {
            marginal: base.marginal(isa)?,
            desks: Mutex::new(Vec::new()),
        }))
    }

    /// Prepares for so many threads and tiles of so many units, so that filling allocates nothing.
    pub fn prepare(&self, wiring: &Wiring, units: usize, threads: usize) {
        let (dim, mut rows) = (self.marginal.dim(), 0);
        for base in &wiring.base {
            rows = rows.max(units * wiring.groups[base.group].time_of_row.len());
        }
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        desks.resize_with(threads, || {
            let mut desk = self.desk();
            desk.levels.reserve(rows);
            desk.points.reserve(rows * dim);
            for (out, width) in desk.out.iter_mut().zip([1, dim, 1, 1]) {
                out.reserve(rows * width);
            }
            desk
        });
    }

    fn desk(&self) -> Desk<T> {
        Desk {
            scratch: self.marginal.scratch(),
            levels: Vec::new(),
            points: Vec::new(),
            out: Default::default(),
        }
    }

    /// Fills the base's inputs of a tile of so many units whose points are there already.
    pub fn fill(
        &self,
        wiring: &Wiring,
        inputs: &mut Inputs<'_, T>,
        units: usize,
        levels: UnitLevels<'_>,
    ) {
        let taken = {
            let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
            desks.pop()
        };
        let mut desk = taken.unwrap_or_else(|| self.desk());
        for base in &wiring.base {
            let times = &wiring.groups[base.group].time_of_row;
            desk.levels.clear();
            match levels {
                UnitLevels::Same(same) if times.len() == 1 => {
                    desk.levels.push(same[times[0] as usize])
                }
                _ => {
                    let each = |unit| times.iter().map(move |&time| levels.at(unit, time));
                    desk.levels.extend((0..units).flat_map(each));
                }
            }
            self.fill_one(base, units * times.len(), inputs, &mut desk);
        }
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        desks.push(desk);
    }

    fn fill_one(
        &self,
        base: &BaseSlots,
        rows: usize,
        inputs: &mut Inputs<'_, T>,
        desk: &mut Desk<T>,
    ) {
        let dim = self.marginal.dim();
        desk.points.clear();
        desk.points.extend_from_slice(inputs.numbers(base.points));
        let slots = [
            Some(base.log_density),
            base.score,
            base.time_score,
            base.laplacian,
        ];
        let widths = [1, dim, 1, 1];
        for ((out, slot), width) in desk.out.iter_mut().zip(slots).zip(widths) {
            out.resize(if slot.is_some() { rows * width } else { 0 }, T::ZERO);
        }
        let [log_density, score, time_score, laplacian] = &mut desk.out;
        let some = |slot: Option<usize>, out| slot.map(|_| out);
        let wanted = Wanted {
            log_density,
            score: some(base.score, score.as_mut_slice()),
            time_score: some(base.time_score, time_score.as_mut_slice()),
            laplacian: some(base.laplacian, laplacian.as_mut_slice()),
        };
        // As in the kernels that take these numbers.
        let _flush = FlushDenormals::new();
        self.marginal
            .evaluate(&desk.points, &desk.levels, wanted, &mut desk.scratch);
        for (slot, out) in slots.into_iter().zip(&desk.out) {
            if let Some(slot) = slot {
                inputs.numbers(slot).copy_from_slice(out);
            }
        }
    }
}

/// A base in double precision, for what is taken from it outside of a graph.
pub(super) fn precise(spec: &ModelSpec, isa: Isa) -> Result<Option<Marginal<f64>>> {
    match &spec.base {
        Some(base) => base.marginal(isa).map(Some),
        None => Ok(None),
    }
}
