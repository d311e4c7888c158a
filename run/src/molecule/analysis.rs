//! What a simulation says: weights of the basins of phi, and free energies between solvents by MBAR over all states, with errors that know
//! of the series' memory.

use crate::error::Result;
use diffclf::engine::Isa;
use diffclf::free_energy::{Ensemble, Matrix, Mbar, MbarSettings, statistical_inefficiency};
use diffclf::metric::Estimate;
use diffclf::molecule::{EnergyTerms, Solvent, ThermoState};
use serde::Serialize;

/// Pieces of the run whose spread gives the errors.
const PIECES: usize = 10;
/// Frames of the shortest piece.
const LEAST_PIECE: usize = 20;
/// Frames that MBAR sees at most; more of them would not be independent.
const MOST_FRAMES: usize = 20_000;

/// Energies (vacuum, polar, surface) and angles (phi, psi) of every frame, ladder and state.
pub(super) struct Series<'a> {
    pub states: &'a [ThermoState],
    pub ladders: usize,
    pub energies: &'a [f64],
    pub angles: &'a [f64],
    /// Temperatures of a ladder; the first state of each solvent is the coldest.
    pub temperatures: usize,
    /// Whether polar and surface energies are known.
    pub solvated: bool,
}

/// The share of phi > 0 at the lowest temperature.
#[derive(Debug, Clone, Serialize)]
pub struct Basin {
    /// The solvent.
    pub solvent: Solvent,
    /// Share of the frames, with its error from their correlation.
    pub direct: Estimate,
    /// Share by MBAR out of all states; its error is the spread over pieces of the run.
    pub reweighted: Estimate,
    /// Times that phi changed its sign from one frame to the next.
    pub changes: usize,
}

/// log(Z_to / Z_from) at the lowest temperature, in kT.
#[derive(Debug, Clone, Serialize)]
pub struct Difference {
    /// From this solvent.
    pub from: Solvent,
    /// To this one.
    pub to: Solvent,
    /// The value, and its error from the spread over pieces of the run.
    pub delta: Estimate,
    /// MBAR's own error with as many samples as are independent.
    pub mbar_error: f64,
    /// Whether both ends were simulated; if not, one is reached by reweighting alone.
    pub simulated: bool,
}

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// Pieces of the run that gave the errors.
    pub pieces: usize,
    /// Statistical inefficiency of the worst energy series, in frames.
    pub inefficiency: f64,
    /// Basins of phi; empty for molecules without backbone.
    pub basins: Vec<Basin>,
    /// Free energies.
    pub differences: Vec<Difference>,
}

/// What one solution of MBAR says.
struct Solved {
    /// log Z of the coldest state of each target, relative to the first, with MBAR's error if asked for.
    deltas: Vec<Estimate>,
    shares: Vec<f64>,
}

impl Series<'_> {
    fn rows(&self) -> usize {
        self.energies.len() / 3 / self.states.len()
    }

    fn terms(&self, row: usize, state: usize) -> EnergyTerms {
        let at = 3 * (row * self.states.len() + state);
        EnergyTerms {
            bonds: self.energies[at],
            polar: self.energies[at + 1],
            surface: self.energies[at + 2],
            ..EnergyTerms::default()
        }
    }

    fn phi(&self, row: usize, state: usize) -> f64 {
        self.angles[2 * (row * self.states.len() + state)]
    }

    /// Coldest states whose free energies are told: those simulated, then vacuum where it was not and can be reached.
    fn targets(&self) -> Vec<ThermoState> {
        let mut targets: Vec<ThermoState> = self
            .states
            .iter()
            .copied()
            .step_by(self.temperatures)
            .collect();
        let vacuum = ThermoState {
            temperature: self.states[0].temperature,
            solvent: Solvent::Vacuum,
        };
        if self.solvated && !targets.contains(&vacuum) {
            targets.push(vacuum);
        }
        targets
    }

    /// MBAR over the states with the given rows.
    fn solve(
        &self,
        rows: &[usize],
        targets: &[ThermoState],
        phi: bool,
        isa: Isa,
    ) -> Result<Solved> {
        let simulated = self.states.len();
        let vacuum = targets.len() > simulated / self.temperatures;
        let mut all = self.states.to_vec();
        if vacuum {
            all.push(targets[targets.len() - 1]);
        }
        let samples = rows.len() * simulated;
        let mut values = Vec::with_capacity(all.len() * samples);
        for held in &all {
            for origin in 0..simulated {
                values.extend(
                    rows.iter()
                        .map(|&row| held.reduced(&self.terms(row, origin))),
                );
            }
        }
        let mut counts = vec![rows.len(); simulated];
        counts.resize(all.len(), 0);
        let matrix = Matrix::new(&values, all.len())?;
        let mbar = Mbar::solve(
            &matrix,
            &counts,
            &MbarSettings {
                isa,
                ..MbarSettings::default()
            },
        )?;
        let number = |k: usize| {
            if k * self.temperatures < simulated {
                k * self.temperatures
            } else {
                all.len() - 1
            }
        };
        let mut shares = Vec::new();
        if phi {
            let inside: Vec<f64> = (0..simulated)
                .flat_map(|origin| rows.iter().map(move |&row| (origin, row)))
                .map(|(origin, row)| f64::from(self.phi(row, origin) > 0.0))
                .collect();
            for k in 0..targets.len() {
                shares.push(mbar.expectations(Ensemble::State(number(k)), &[&inside])?[0].mean);
            }
        }
        Ok(Solved {
            deltas: (0..targets.len())
                .map(|k| mbar.difference(0, number(k)))
                .collect(),
            shares,
        })
    }
}

impl Findings {
    pub(super) fn of(series: &Series<'_>, phi: bool) -> Result<Self> {
        let isa = Isa::detect();
        let rows = series.rows();
        let thin = rows.div_ceil(MOST_FRAMES).max(1);
        let kept: Vec<usize> = (0..rows).step_by(thin).collect();
        let targets = series.targets();
        // The slowest thing that is seen: energies of the states, and the basin of the coldest ones.
        let mut worst: f64 = 1.0;
        for state in 0..series.states.len() {
            for ladder in 0..series.ladders {
                let own = (ladder..rows).step_by(series.ladders);
                let energy: Vec<f64> = own
                    .map(|row| series.states[state].reduced(&series.terms(row, state)))
                    .collect();
                worst = worst.max(statistical_inefficiency(&energy));
            }
        }
        let whole = series.solve(&kept, &targets, phi, isa)?;
        let pieces = PIECES.min(kept.len() / LEAST_PIECE);
        let mut parts = Vec::new();
        if pieces >= 2 {
            for piece in kept.chunks_exact(kept.len() / pieces).take(pieces) {
                parts.push(series.solve(piece, &targets, phi, isa)?);
            }
        }
        // Of fewer than two pieces it is not known.
        let error = |of: &dyn Fn(&Solved) -> f64| {
            Estimate::of(&parts.iter().map(of).collect::<Vec<_>>()).error
        };
        let mut basins = Vec::new();
        if phi {
            for (k, target) in targets
                .iter()
                .enumerate()
                .take(series.states.len() / series.temperatures)
            {
                let state = k * series.temperatures;
                let mut changes = 0;
                let (mut sum, mut independent) = (0.0, 0.0);
                for ladder in 0..series.ladders {
                    let own = (ladder..rows).step_by(series.ladders);
                    let inside: Vec<f64> = own
                        .map(|row| f64::from(series.phi(row, state) > 0.0))
                        .collect();
                    changes += inside.windows(2).filter(|pair| pair[0] != pair[1]).count();
                    sum += inside.iter().sum::<f64>();
                    independent += inside.len() as f64 / statistical_inefficiency(&inside);
                }
                let share = sum / rows as f64;
                // Where all frames are on one side, nothing is known of the other.
                let known = |error: f64| if changes > 0 { error } else { f64::NAN };
                let own = known((share * (1.0 - share) / independent).sqrt());
                basins.push(Basin {
                    solvent: target.solvent,
                    direct: Estimate {
                        mean: share,
                        error: own,
                    },
                    reweighted: Estimate {
                        mean: whole.shares[k],
                        error: known(error(&|part| part.shares[k])),
                    },
                    changes,
                });
            }
        }
        let mut differences = Vec::new();
        for (k, target) in targets.iter().enumerate().skip(1) {
            let delta = whole.deltas[k];
            differences.push(Difference {
                from: targets[0].solvent,
                to: target.solvent,
                delta: Estimate {
                    mean: delta.mean,
                    error: error(&|part| part.deltas[k].mean),
                },
                mbar_error: delta.error * (worst / thin as f64).max(1.0).sqrt(),
                simulated: k < series.states.len() / series.temperatures,
            });
        }
        Ok(Findings {
            pieces: parts.len(),
            inefficiency: worst,
            basins,
            differences,
        })
    }
}
