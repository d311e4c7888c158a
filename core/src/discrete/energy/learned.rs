//! A learned energy of states: the network's programs, for values and for the ratios of all changes of a row.

use super::{Energy, Nodes, coupling, features_of};
use crate::discrete::model::StatesSpec;
use crate::discrete::network::ChangeSlots;
use crate::discrete::{Process, Space};
use crate::engine::{Isa, Pool, Program, Rows};
use crate::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module's text.
pub struct LearnedStates {
    spec: StatesSpec,
    params: Vec<f32>,
    free_energy: std::ops::Range<usize>,
    values: Mutex<Evaluation>,
    ratios: Mutex<Evaluation>,
}

/// A program and the slots it is filled through.
struct Evaluation {
    program: Program<f32>,
    features: usize,
    points: usize,
    /// Slots of changed rows.
    change: Option<ChangeSlots>,
}

impl LearnedStates {
    /// The energy of these parameters.
    pub fn new(
        spec: StatesSpec,
        params: Vec<f32>,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<LearnedStates> {
        spec.validate()?;
        let layout = spec.layout();
        if params.len() != layout.len() {
            return Err(Error::Shape {
                what: "the parameters".into(),
                found: format!("{} numbers", params.len()),
                expected: layout.len().to_string(),
            });
        }
        let build = |change: bool| {
            let mut nodes = Nodes::new(&spec, 1);
            let width = nodes.width();
            let (points, slot) = nodes.graph.input(Rows::Unit(1), width);
            let first = nodes.first(points, None, None);
            let (first, change) = if change {
                let slots = nodes.change_slots(width);
                let changed = nodes.changed(first, &vec![0; width], slots, None);
                (changed, Some(slots))
            } else {
                (first, None)
            };
            let out = nodes.output(first);
            Mutex::new(Evaluation {
                program: Program::new(&nodes.graph, &[out], pool.clone(), isa),
                features: nodes.features,
                points: slot,
                change,
            })
        };
        Ok(LearnedStates {
            values: build(false),
            ratios: build(true),
            free_energy: layout.get("free_energy").map_or(0..0, |e| e.range()),
            params,
            spec,
        })
    }

    /// The definition.
    pub fn spec(&self) -> &StatesSpec {
        &self.spec
    }

    /// The network's numbers: one for each row, or one for each change of each row.
    fn network(&self, of: &Mutex<Evaluation>, time: f64, rows: &[u8], out: &mut [f64]) {
        let Space { sites, .. } = self.spec.space;
        let symbols = self.spec.symbols();
        let mut evaluation: MutexGuard<'_, Evaluation> =
            of.lock().unwrap_or_else(PoisonError::into_inner);
        let Evaluation {
            program,
            features,
            points,
            change,
        } = &mut *evaluation;
        let mut table = vec![0.0; self.spec.features];
        features_of(&self.spec, time, &mut table);
        let table: Vec<f32> = table.iter().map(|x| *x as f32).collect();
        program.set_global(*features, &table);
        let count = rows.len() / sites;
        let width = out.len() / count.max(1);
        let out = Mutex::new(out);
        program.run(
            &self.params,
            count,
            &|units, inputs| {
                let rows = &rows[units.start * sites..units.end * sites];
                fill_one_hot(rows, symbols, inputs.numbers(*points));
                if let Some(slots) = *change {
                    for (k, row) in rows.chunks_exact(sites).enumerate() {
                        for place in 0..sites * symbols {
                            let change = (place / symbols, (place % symbols) as u8);
                            slots.fill(inputs, k * sites * symbols + place, row, change, symbols);
                        }
                    }
                }
            },
            &|_, units, outputs| {
                let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
                let place = &mut out[units.start * width..units.end * width];
                for (out, value) in place.iter_mut().zip(outputs.numbers(0)) {
                    *out = f64::from(*value);
                }
            },
        );
    }
}

/// Rows of symbols as one-hot sites.
pub(crate) fn fill_one_hot<T: crate::engine::Real>(rows: &[u8], symbols: usize, out: &mut [T]) {
    out.fill(T::ZERO);
    for (symbol, site) in rows.iter().zip(out.chunks_exact_mut(symbols)) {
        site[usize::from(*symbol)] = T::from_f64(1.0);
    }
}

impl Energy for LearnedStates {
    fn space(&self) -> Space {
        self.spec.space
    }

    fn process(&self) -> &Process {
        &self.spec.process
    }

    /// Linear between the levels of the grid.
    fn free_energy(&self, time: f64) -> f64 {
        let (cell, weight) = self.spec.grid.locate(time);
        let table = &self.params[self.free_energy.clone()];
        (1.0 - weight) * f64::from(table[cell]) + weight * f64::from(table[cell + 1])
    }

    fn energy(&self, time: f64, rows: &[u8], out: &mut [f64]) {
        self.network(&self.values, time, rows, out);
        let base = self.spec.log_laws(time);
        let (symbols, factor) = (self.spec.symbols(), coupling(&self.spec, time));
        for (row, out) in rows.chunks_exact(self.spec.space.sites).zip(out) {
            let sites = row.iter().zip(base.chunks_exact(symbols));
            let log_base: f64 = sites.map(|(s, law)| law[usize::from(*s)]).sum();
            *out = -log_base - factor * *out;
        }
    }

    fn log_ratios(&self, time: f64, rows: &[u8], out: &mut [f64]) {
        let (sites, symbols) = (self.spec.space.sites, self.spec.symbols());
        self.network(&self.ratios, time, rows, out);
        let base = self.spec.log_laws(time);
        let factor = coupling(&self.spec, time);
        for (row, out) in rows
            .chunks_exact(sites)
            .zip(out.chunks_exact_mut(sites * symbols))
        {
            let own = out[usize::from(row[0])];
            let laws = base.chunks_exact(symbols);
            for ((&now, law), out) in row.iter().zip(laws).zip(out.chunks_exact_mut(symbols)) {
                for (value, log_law) in out.iter_mut().zip(law) {
                    *value = log_law - law[usize::from(now)] + factor * (*value - own);
                }
                // The row itself, whatever the order of its sums.
                out[usize::from(now)] = 0.0;
            }
        }
    }
}
