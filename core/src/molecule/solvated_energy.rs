//! The force field as an energy in kT: a target for samplers, and the truth at the ends of an interpolant.

use super::force_field::{EnergyTerms, ForceField};
use super::replicas::ThermoState;
use super::solvent::Solvent;
use crate::energy::Energy;
use crate::engine::Isa;
use crate::{Error, Result};
use std::sync::Arc;

/// `U(t, y)` of a molecule at coordinates `y = unit x`, x in nm, in kT.
///
/// With one solvent it does not depend on time. With two it is the first up to time 0, the second from time 1 on, and between them the
/// mixture of the energies, `(1 - t) U_0 + t U_1`. Both have the temperature of their state. F(t) is 0: the normaliser is not known.
pub struct SolvatedEnergy {
    field: Arc<ForceField>,
    isa: Isa,
    start: ThermoState,
    end: ThermoState,
    unit: f64,
}

impl SolvatedEnergy {
    /// Refuses states that the force field cannot compute.
    pub fn new(
        field: Arc<ForceField>,
        start: ThermoState,
        end: Option<ThermoState>,
        unit: f64,
        isa: Isa,
    ) -> Result<Self> {
        let end = end.unwrap_or(start);
        for state in [start, end] {
            state.solvent.validate()?;
            let solvated = state.solvent != Solvent::Vacuum;
            if !(state.temperature > 0.0 && state.temperature.is_finite())
                || solvated && !field.solvates()
            {
                return Err(Error::Value {
                    name: "state of the molecule",
                    found: format!("{} K, {:?}", state.temperature, state.solvent),
                    expected: "a positive temperature, and a force field with a solvent model where there is a solvent".into(),
                });
            }
        }
        if !(unit > 0.0 && unit.is_finite()) {
            return Err(Error::Value {
                name: "unit of length",
                found: unit.to_string(),
                expected: "a positive number per nm".into(),
            });
        }
        Ok(SolvatedEnergy {
            field,
            isa,
            start,
            end,
            unit,
        })
    }

    /// Terms of all rows, and forces in the mixture of the two ends that belongs to each row's time.
    fn evaluate(&self, times: &[f64], points: &[f64], score: &mut [f64]) -> Vec<EnergyTerms> {
        let (dim, rows) = (self.dim(), points.len() / self.dim());
        let positions: Vec<f64> = points.iter().map(|y| y / self.unit).collect();
        let mut terms = vec![EnergyTerms::default(); rows];
        let mut forces = vec![0.0; points.len()];
        score.fill(0.0);
        for (state, share) in [(self.start, false), (self.end, true)] {
            let shares: Vec<f64> = (0..rows).map(|row| self.share(times, row, share)).collect();
            if shares.iter().all(|share| *share == 0.0) {
                continue;
            }
            // Shapes and solvents were checked when this was made.
            let done = self.field.energies_and_forces(
                self.isa,
                &positions,
                &[state.solvent],
                &mut terms,
                &mut forces,
            );
            debug_assert!(done.is_ok());
            for (row, share) in shares.iter().enumerate() {
                let factor = share / (state.kt() * self.unit);
                for (score, force) in score[row * dim..][..dim]
                    .iter_mut()
                    .zip(&forces[row * dim..])
                {
                    *score += factor * force;
                }
            }
        }
        terms
    }

    /// The weight of an end in the energy of a row.
    fn share(&self, times: &[f64], row: usize, end: bool) -> f64 {
        let time = times[if times.len() == 1 { 0 } else { row }];
        let share = if self.start == self.end {
            0.0
        } else {
            time.clamp(0.0, 1.0)
        };
        if end { share } else { 1.0 - share }
    }

    fn mixed(&self, times: &[f64], row: usize, terms: &EnergyTerms) -> f64 {
        self.share(times, row, false) * self.start.reduced(terms)
            + self.share(times, row, true) * self.end.reduced(terms)
    }
}

impl Energy for SolvatedEnergy {
    fn dim(&self) -> usize {
        3 * self.field.atoms()
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let mut score = vec![0.0; points.len()];
        self.energy_and_score(times, points, out, &mut score);
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.evaluate(times, points, out);
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        let terms = self.evaluate(times, points, score);
        for (row, (out, terms)) in energy.iter_mut().zip(&terms).enumerate() {
            *out = self.mixed(times, row, terms);
        }
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.energy_rate(times, points, out);
        out.iter_mut().for_each(|rate| *rate = -*rate);
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let mut score = vec![0.0; points.len()];
        let terms = self.evaluate(times, points, &mut score);
        for (row, (out, terms)) in out.iter_mut().zip(&terms).enumerate() {
            let time = times[if times.len() == 1 { 0 } else { row }];
            let inside = self.start != self.end && (0.0..=1.0).contains(&time);
            *out = if inside {
                self.end.reduced(terms) - self.start.reduced(terms)
            } else {
                0.0
            };
        }
    }
}
