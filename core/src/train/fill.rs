//! Filling the inputs of a step, tile by tile: source rows, times and noisy points; then whatever the objectives asked for, by what
//! they asked with.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::step::{Endpoints, StepSpec};
use crate::Result;
use crate::base::Level;
use crate::energy::{BaseInputs, Energy, ModelSpec, TimeTable, UnitLevels, Wiring};
use crate::engine::{Inputs, Isa, Real};
use crate::objective::{
    Fill, MAX_LEVELS, Mixing, RowSlots, Scratch, Setup, Slots, Tile, TimeWeight,
};
use crate::rng::{Purpose, Stream};

pub(super) fn time_stream(plan: &StepSpec, step: u64, unit: usize) -> Stream {
    Stream::new(plan.seed, Purpose::Time(plan.part), step, unit as u64)
}

pub(super) fn draw_levels(
    plan: &StepSpec,
    spec: &ModelSpec,
    stream: &mut Stream,
    levels: &mut [u32],
) {
    let drawn = plan
        .times
        .fill_levels(&spec.process, &spec.grid, stream, levels);
    if drawn.is_err() {
        // The sampler was tried when the step was made: this happens less than once in the life of the universe.
        levels.iter_mut().zip(0..).for_each(|(level, k)| *level = k);
    }
}

pub(super) fn draw_times(
    plan: &StepSpec,
    spec: &ModelSpec,
    stream: &mut Stream,
    times: &mut [f64],
) {
    let drawn = plan
        .times
        .fill_times(&spec.process, &spec.grid, spec.dim, stream, times);
    if drawn.is_err() {
        // As above.
        let (first, count) = (spec.grid.t_min(), times.len() as f64);
        let step = (spec.grid.t_max() - first) / count;
        let spread = (0..).map(|k| first + step * f64::from(k));
        times.iter_mut().zip(spread).for_each(|(time, t)| *time = t);
    }
    if plan.times.on_grid() {
        for time in times {
            *time = TimeWeight::inside_cell(spec, *time, stream.uniform());
        }
    }
}

/// What a thread needs while it fills a tile.
struct Desk<T> {
    times: Vec<f64>,
    levels: Vec<u32>,
    mixing: Vec<Mixing<T>>,
    /// All times of each unit, those of partners too, for a base.
    base_levels: Vec<Level>,
    scratch: Scratch,
}

/// What is made once for a step: tables, objects that fill, and desks for as many threads as there are.
pub(super) struct Fillers<T> {
    /// Coefficients at the levels of the grid; empty for continuous times.
    mixing: Vec<Mixing<T>>,
    fills: Vec<Box<dyn Fill<T>>>,
    /// The mixture that the energy stands on, and its coefficients at the levels of the grid.
    base: Option<(BaseInputs<T>, Vec<Level>)>,
    desks: Mutex<Vec<Desk<T>>>,
}

impl<T: Real> Fillers<T> {
    /// For tiles of at most `units` rows of `levels` times, on so many threads.
    pub(super) fn new(
        spec: &ModelSpec,
        (wiring, slots): (&Wiring, &Slots),
        times: &[f64],
        (units, levels, threads): (usize, usize, usize),
        isa: Isa,
    ) -> Result<Fillers<T>> {
        let rows = units * levels;
        // Known ends add at most two points to the N of a row.
        let numbers = if slots.filled.is_empty() {
            0
        } else {
            units * (levels + 2) * spec.dim
        };
        let desk = || Desk {
            times: Vec::with_capacity(rows),
            levels: Vec::with_capacity(rows),
            mixing: Vec::with_capacity(rows),
            base_levels: Vec::with_capacity(2 * rows),
            scratch: Scratch::with_capacity(numbers),
        };
        let base = BaseInputs::new(spec, isa)?.map(|base| {
            base.prepare(wiring, units, threads);
            let at = |&time: &f64| Level::at(&spec.process, time);
            (base, times.iter().map(at).collect())
        });
        let setup = Setup {
            spec,
            times,
            isa,
            threads,
        };
        Ok(Fillers {
            base,
            mixing: times.iter().map(|&t| Mixing::at(spec, t)).collect(),
            fills: slots.filled.iter().map(|f| f.build(&setup)).collect(),
            desks: Mutex::new((0..threads).map(|_| desk()).collect()),
        })
    }

    fn take_desk(&self) -> Desk<T> {
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        desks.pop().unwrap_or_else(|| Desk {
            times: Vec::new(),
            levels: Vec::new(),
            mixing: Vec::new(),
            base_levels: Vec::new(),
            scratch: Scratch::default(),
        })
    }

    fn return_desk(&self, desk: Desk<T>) {
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        desks.push(desk);
    }
}

/// Fills the inputs of tiles.
pub(super) struct TileFiller<'a, T> {
    pub(super) spec: &'a ModelSpec,
    pub(super) plan: &'a StepSpec,
    pub(super) wiring: &'a Wiring,
    pub(super) slots: &'a Slots,
    pub(super) schedule: &'a TimeTable<T>,
    pub(super) fillers: &'a Fillers<T>,
    pub(super) truth: Option<&'a dyn Energy>,
    pub(super) step: u64,
    pub(super) from: &'a Endpoints,
}

impl<T: Real> TileFiller<'_, T> {
    pub(super) fn fill(&self, units: Range<usize>, inputs: &mut Inputs<'_, T>) {
        let (plan, d, n) = (self.plan, self.spec.dim, self.plan.levels);
        let noise = inputs.numbers(self.slots.rows.noise);
        let (purpose, first) = (Purpose::Noise(plan.part), units.start as u64);
        T::fill_normal_rows(plan.seed, purpose, self.step, first, n * d, noise);
        let mut desk = self.fillers.take_desk();
        desk.times.clear();
        desk.levels.clear();
        desk.mixing.clear();
        desk.base_levels.clear();
        for (k, unit) in units.clone().enumerate() {
            self.read_sources(inputs, k, unit);
            self.draw_times(inputs, k, unit, &mut desk);
        }
        let on_grid = plan.on_grid();
        let mut tile = Tile {
            spec: self.spec,
            levels: n,
            units,
            seed: plan.seed,
            part: plan.part,
            step: self.step,
            times: &desk.times,
            grid_levels: on_grid.then_some(&desk.levels),
            mixing: &desk.mixing,
            rows: self.slots.rows,
            truth: self.truth,
            scratch: &mut desk.scratch,
            inputs,
        };
        place_points(&mut tile);
        for fill in &self.fillers.fills {
            fill.fill(&mut tile);
        }
        if let Some((base, _)) = &self.fillers.base {
            let units = desk.times.len() / n;
            let levels = UnitLevels::Each(&desk.base_levels, desk.base_levels.len() / units);
            base.fill(self.wiring, inputs, units, levels);
        }
        self.fillers.return_desk(desk);
    }

    /// Times of one unit. Times of partners whose energy is needed follow the unit's own.
    fn draw_times(&self, inputs: &mut Inputs<'_, T>, k: usize, unit: usize, desk: &mut Desk<T>) {
        let (n, spec, behind) = (self.plan.levels, self.spec, self.slots.behind);
        let count = if behind.is_some() { 2 * n } else { n };
        let mut stream = time_stream(self.plan, self.step, unit);
        if self.plan.on_grid() {
            let mut levels = [0u32; 2 * MAX_LEVELS];
            draw_levels(self.plan, spec, &mut stream, &mut levels[..n]);
            if let Some(partner) = behind {
                for i in 0..n {
                    levels[n + i] = partner.level(levels[i]);
                }
            }
            let schedule = self.schedule;
            schedule.fill_levels(self.wiring, inputs, k, &levels[..count]);
            desk.levels.extend_from_slice(&levels[..n]);
            if let Some((_, grid)) = &self.fillers.base {
                let at = levels[..count].iter().map(|&level| grid[level as usize]);
                desk.base_levels.extend(at);
            }
            for &level in &levels[..n] {
                desk.times.push(spec.grid.times()[level as usize]);
                desk.mixing.push(self.fillers.mixing[level as usize]);
            }
        } else {
            let mut times = [0.0; 2 * MAX_LEVELS];
            draw_times(self.plan, spec, &mut stream, &mut times[..n]);
            if let Some(partner) = behind {
                for i in 0..n {
                    times[n + i] = partner.time(spec, times[i]);
                }
            }
            let schedule = self.schedule;
            schedule.fill_times(spec, self.wiring, inputs, k, &times[..count]);
            desk.times.extend_from_slice(&times[..n]);
            if self.fillers.base.is_some() {
                let at = times[..count].iter().map(|&t| Level::at(&spec.process, t));
                desk.base_levels.extend(at);
            }
            desk.mixing
                .extend(times[..n].iter().map(|&t| Mixing::at(spec, t)));
        }
    }

    /// Reads the source rows of one unit.
    fn read_sources(&self, inputs: &mut Inputs<'_, T>, k: usize, unit: usize) {
        let d = self.spec.dim;
        let row = k * d..(k + 1) * d;
        let RowSlots { start, end, .. } = self.slots.rows;
        let start = &mut inputs.numbers(start)[row.clone()];
        T::read_row(start, &mut |out| self.from.start.fill(self.step, unit, out));
        if let (Some(source), Some(slot)) = (&self.from.end, end) {
            let end = &mut inputs.numbers(slot)[row];
            T::read_row(end, &mut |out| source.fill(self.step, unit, out));
        }
    }
}

/// Places the noisy points `y = alpha x_0 + beta x_1 + gamma z`.
fn place_points<T: Real>(tile: &mut Tile<'_, '_, T>) {
    let (d, n, mixing, rows) = (tile.spec.dim, tile.levels, tile.mixing, tile.rows);
    let [x0, z, y] = tile.inputs.many([rows.start, rows.noise, rows.points]);
    for (row, c) in mixing.iter().enumerate() {
        let (z, y) = (&z[row * d..][..d], &mut y[row * d..][..d]);
        for ((y, &x0), &z) in y.iter_mut().zip(&x0[row / n * d..][..d]).zip(z) {
            *y = c.alpha * x0 + c.gamma * z;
        }
    }
    tile.add_end(rows.points, |row| mixing[row].beta);
}
