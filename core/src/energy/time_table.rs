//! The time table: fills the time inputs of a built graph, from tables when times are levels of a grid.

use super::chart::matrices;
use super::column::{Column, Coordinate, features, frequency};
use super::spec::ModelSpec;
use super::wiring::{Group, Wiring};
use crate::base::Springs;
use crate::engine::{Inputs, Program, Real};

/// Values of the columns of a wiring, tabulated at a list of times.
#[derive(Debug, Clone)]
pub struct TimeTable<T> {
    coordinate: Coordinate,
    /// For each group and column, the value at each tabulated time.
    tables: Vec<Vec<Vec<T>>>,
    times: Vec<f64>,
    /// The grid's cell of each of the times.
    cells: Vec<u32>,
    /// The springs' numbers at each of the times, and their derivatives; empty without springs.
    springs: [Vec<T>; 2],
}

impl<T: Real> TimeTable<T> {
    /// Tables for `times` (none are needed for continuous times).
    pub fn new(spec: &ModelSpec, wiring: &Wiring, times: &[f64]) -> TimeTable<T> {
        let mut table = TimeTable {
            coordinate: Coordinate::new(spec),
            tables: Vec::new(),
            times: Vec::new(),
            cells: Vec::new(),
            springs: [Vec::new(), Vec::new()],
        };
        table.tabulate(spec, wiring, times);
        table
    }

    /// Replaces the tabulated times.
    pub fn tabulate(&mut self, spec: &ModelSpec, wiring: &Wiring, times: &[f64]) {
        let value = |c: &(usize, Column, bool), t: f64| {
            T::from_f64(self.value(spec, wiring, (c.1, c.2), t))
        };
        let table = |c: &(usize, Column, bool)| times.iter().map(|&t| value(c, t)).collect();
        self.tables = wiring
            .groups
            .iter()
            .map(|g| g.columns.iter().map(table).collect())
            .collect();
        self.times = times.to_vec();
        let cell = |&t: &f64| spec.grid.locate(t).0 as u32;
        self.cells = times.iter().map(cell).collect();
        self.springs = [Vec::new(), Vec::new()];
        if let Some(springs) = &spec.springs {
            let width = springs.columns();
            for (part, table) in self.springs.iter_mut().enumerate() {
                table.resize(width * times.len(), T::from_f64(0.0));
                for (row, &time) in table.chunks_exact_mut(width).zip(times) {
                    fill_springs(springs, time, part, row);
                }
            }
        }
    }

    /// The tabulated times.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    fn value(
        &self,
        spec: &ModelSpec,
        wiring: &Wiring,
        (column, rate): (Column, bool),
        time: f64,
    ) -> f64 {
        match column {
            Column::Given(number) => wiring.given[number as usize].value(spec, time),
            _ if rate => column.rate(spec, &self.coordinate, time),
            _ => column.value(spec, &self.coordinate, time),
        }
    }

    /// Sets the global inputs: mean, frequencies, time features at the tabulated times.
    pub fn set_globals(&self, spec: &ModelSpec, wiring: &Wiring, program: &mut Program<T>) {
        let numbers = |x: &[f64]| x.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
        if let Some(slot) = wiring.mean {
            program.set_global(slot, &numbers(&spec.seen_mean()));
        }
        if let Some(slots) = wiring.chart {
            for (slot, (matrix, ..)) in slots.into_iter().zip(matrices(spec.periods())) {
                program.set_global(slot, &numbers(&matrix));
            }
        }
        if let Some(springs) = &spec.springs {
            for &(particles, function, slot) in &wiring.leaning {
                program.set_global(slot, &numbers(&springs.leaning_of(particles, function)));
            }
        }
        if let Some(slot) = wiring.frequencies {
            let half = spec.features / 2;
            program.set_global(
                slot,
                &numbers(&(0..half).map(|k| frequency(k, half)).collect::<Vec<_>>()),
            );
        }
        let f = spec.features;
        let (mut table, mut rates) = (
            vec![0.0; f * self.times.len()],
            vec![0.0; f * self.times.len()],
        );
        for ((values, rates), &time) in table
            .chunks_mut(f)
            .zip(rates.chunks_mut(f))
            .zip(&self.times)
        {
            features(spec, &self.coordinate, time, values, rates);
        }
        for (slot, table) in [(wiring.features, table), (wiring.feature_rates, rates)] {
            if let Some(slot) = slot {
                program.set_global(slot, &numbers(&table));
            }
        }
    }

    /// Fills the time inputs of one unit of a tile; its times are these tabulated ones.
    pub fn fill_levels(
        &self,
        wiring: &Wiring,
        inputs: &mut Inputs<'_, T>,
        unit: usize,
        levels: &[u32],
    ) {
        for (group, tables) in wiring.groups.iter().zip(&self.tables) {
            for (&(slot, ..), table) in group.columns.iter().zip(tables) {
                spread(group, inputs.numbers(slot), unit, levels, |k| {
                    table[k as usize]
                });
            }
            if let Some(slot) = group.level {
                spread(group, inputs.index(slot), unit, levels, |k| k);
            }
            for (slot, table) in group.springs.iter().zip(&self.springs) {
                let Some(slot) = slot else { continue };
                let width = table.len() / self.times.len();
                spread_rows(group, inputs.numbers(*slot), unit, width, |k, out| {
                    out.copy_from_slice(&table[levels[k] as usize * width..][..width]);
                });
            }
            if let Some((low, high)) = group.cell {
                let cell = |k: u32| self.cells[k as usize];
                spread(group, inputs.index(low), unit, levels, cell);
                spread(group, inputs.index(high), unit, levels, |k| cell(k) + 1);
            }
        }
    }

    /// Fills the time inputs of one unit of a tile; its times are these.
    pub fn fill_times(
        &self,
        spec: &ModelSpec,
        wiring: &Wiring,
        inputs: &mut Inputs<'_, T>,
        unit: usize,
        times: &[f64],
    ) {
        for group in &wiring.groups {
            for &(slot, column, rate) in &group.columns {
                let value = |t| T::from_f64(self.value(spec, wiring, (column, rate), t));
                spread(group, inputs.numbers(slot), unit, times, value);
            }
            if let Some(springs) = &spec.springs {
                let slots = group.springs.iter().enumerate();
                for (part, slot) in slots.filter_map(|(part, slot)| Some((part, (*slot)?))) {
                    let width = springs.columns();
                    spread_rows(group, inputs.numbers(slot), unit, width, |k, out| {
                        fill_springs(springs, times[k], part, out);
                    });
                }
            }
            if let Some((low, high)) = group.cell {
                let cell = |t| spec.grid.locate(t).0 as u32;
                spread(group, inputs.index(low), unit, times, cell);
                let last = spec.grid.levels() as u32 - 1;
                spread(group, inputs.index(high), unit, times, |t| {
                    (cell(t) + 1).min(last)
                });
            }
        }
    }
}

/// The springs' numbers at a time (part 0), or their derivatives (part 1).
fn fill_springs<T: Real>(springs: &Springs, time: f64, part: usize, out: &mut [T]) {
    let at = springs.at(time);
    for (column, out) in out.iter_mut().enumerate() {
        let (value, rate) = at.number(column);
        *out = T::from_f64([value, rate][part]);
    }
}

/// `out[unit, r]` by `fill(time_of_row[r], .)`, rows of so many numbers.
fn spread_rows<T>(
    group: &Group,
    out: &mut [T],
    unit: usize,
    width: usize,
    fill: impl Fn(usize, &mut [T]),
) {
    let rows = group.time_of_row.len();
    let out = out[unit * rows * width..][..rows * width].chunks_exact_mut(width);
    for (out, &k) in out.zip(&group.time_of_row) {
        fill(k as usize, out);
    }
}

/// `out[unit, r] = f(of[time_of_row[r]])`.
fn spread<A: Copy, B>(group: &Group, out: &mut [B], unit: usize, of: &[A], f: impl Fn(A) -> B) {
    let rows = group.time_of_row.len();
    for (out, &k) in out[unit * rows..][..rows]
        .iter_mut()
        .zip(&group.time_of_row)
    {
        *out = f(of[k as usize]);
    }
}
