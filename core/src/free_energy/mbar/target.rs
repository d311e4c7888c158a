//! What else the samples tell: states that were never simulated, expectations, and free-energy surfaces along a coordinate.

use super::Mbar;
use super::covariance::difference_error;
use crate::engine::kernel::softmax::TILE;
use crate::free_energy::{Matrix, ReducedEnergies};
use crate::metric::Estimate;
use crate::{Error, Result};
use serde::Serialize;
use std::ops::Range;

/// The distribution an expectation is taken in.
#[derive(Debug, Clone, Copy)]
pub enum Ensemble<'a> {
    /// One of the states.
    State(usize),
    /// Any other, by its reduced energy at every sample.
    Energies(&'a [f64]),
}

/// Free energies of states that were not part of the equations.
#[derive(Debug, Clone)]
pub struct Perturbed {
    /// log(Z / Z_0), that of state 0 itself first.
    log_z: Vec<f64>,
    theta: Vec<f64>,
}

impl Perturbed {
    /// `delta = log(Z_k / Z_0)` of new state k, relative to state 0 of the equations.
    pub fn relative(&self, k: usize) -> Estimate {
        self.between(0, k + 1)
    }

    /// `delta = log(Z_to / Z_from)` between two new states.
    pub fn difference(&self, from: usize, to: usize) -> Estimate {
        self.between(from + 1, to + 1)
    }

    fn between(&self, from: usize, to: usize) -> Estimate {
        Estimate {
            mean: self.log_z[to] - self.log_z[from],
            error: difference_error(&self.theta, self.log_z.len(), from, to),
        }
    }
}

/// Free energy along a coordinate, `-log` of the probability density in each bin, in kT; the lowest bin is zero.
#[derive(Debug, Clone, Serialize)]
pub struct Surface {
    /// Edges of the bins.
    pub edges: Vec<f64>,
    /// Probability of each bin.
    pub probability: Vec<Estimate>,
    /// Free energy of each bin relative to the lowest, with the error of that difference; none where no sample fell.
    pub free_energy: Vec<Option<Estimate>>,
    /// Samples in each bin.
    pub samples: Vec<usize>,
}

/// A target with its normaliser: gives weights of samples.
struct Weighting<'a> {
    energies: &'a dyn ReducedEnergies,
    state: usize,
    f: f64,
}

impl Weighting<'_> {
    /// W_n of the samples.
    fn weights(&self, samples: Range<usize>, log_denominators: &[f64; TILE], out: &mut [f64]) {
        self.energies.read(self.state, samples.start, out);
        for (x, denominator) in out.iter_mut().zip(log_denominators) {
            *x = (self.f - *x - denominator).exp();
        }
    }
}

impl Mbar<'_> {
    /// Log-normalisers of other states of the same samples.
    fn log_z_of(&self, others: &dyn ReducedEnergies) -> Result<Vec<f64>> {
        if others.samples() != self.energies.samples() {
            return Err(Error::Shape {
                what: "the energies of the target".into(),
                found: format!("{} samples", others.samples()),
                expected: format!(
                    "one number for each of the {} samples",
                    self.energies.samples()
                ),
            });
        }
        let counts = self.sampled_counts();
        let f: Vec<f64> = self.sampled.iter().map(|&k| self.f[k]).collect();
        let which: Vec<usize> = (0..others.states()).collect();
        let log_z = self.problem(&counts).pass(&f).log_sums(others, &which);
        match log_z.iter().position(|z| !z.is_finite()) {
            None => Ok(log_z),
            Some(state) => Err(Error::BadEnergy {
                state,
                sample: 0,
                found: log_z[state],
                expected: "energies that allow at least one sample, none of them NaN or minus infinity",
            }),
        }
    }

    /// Free energies of further states, given their reduced energies at every sample.
    ///
    /// # Errors
    /// [`Error::Shape`], and [`Error::BadEnergy`] where a state forbids every sample.
    pub fn perturbed(&self, others: &dyn ReducedEnergies) -> Result<Perturbed> {
        let log_z = self.log_z_of(others)?;
        let first = Weighting {
            energies: self.energies,
            state: 0,
            f: self.f[0],
        };
        let count = log_z.len() + 1;
        let sums = self.further_sums(count, &|samples, denominators, rows| {
            for (k, row) in rows.chunks_exact_mut(TILE).enumerate() {
                let row = &mut row[..samples.len()];
                if k == 0 {
                    first.weights(samples.clone(), denominators, row);
                } else {
                    let weighting = Weighting {
                        energies: others,
                        state: k - 1,
                        f: -log_z[k - 1],
                    };
                    weighting.weights(samples.clone(), denominators, row);
                }
            }
        });
        let columns: Vec<_> = (0..count)
            .map(|k| vec![(self.sampled.len() + k, 1.0)])
            .collect();
        let theta = self.covariance.matrix(&sums, &columns);
        Ok(Perturbed {
            log_z: [vec![0.0], log_z].concat(),
            theta,
        })
    }

    /// Calls `work` with the weights of the target.
    fn with_weighting<R>(
        &self,
        target: Ensemble<'_>,
        work: &mut dyn FnMut(&Weighting<'_>) -> R,
    ) -> Result<R> {
        match target {
            Ensemble::State(state) if state < self.states() => Ok(work(&Weighting {
                energies: self.energies,
                state,
                f: self.f[state],
            })),
            Ensemble::State(state) => Err(Error::Value {
                name: "state",
                found: state.to_string(),
                expected: format!("below the number of states, {}", self.states()),
            }),
            Ensemble::Energies(values) => {
                let energies = Matrix::new(values, 1)?;
                let f = -self.log_z_of(&energies)?[0];
                Ok(work(&Weighting {
                    energies: &energies,
                    state: 0,
                    f,
                }))
            }
        }
    }

    /// Expectations of observables, each given by its value at every sample.
    ///
    /// The variance is `Theta(x, x)` of the column `x_n = W_n (A_n - <A>)` (Shirts and Chodera 2008, section IV).
    ///
    /// # Errors
    /// [`Error::Shape`] for observables of the wrong length, and as [`Mbar::perturbed`].
    pub fn expectations(
        &self,
        target: Ensemble<'_>,
        observables: &[&[f64]],
    ) -> Result<Vec<Estimate>> {
        for values in observables {
            self.check_values("an observable", values)?;
        }
        let count = observables.len();
        self.with_weighting(target, &mut |weighting| {
            let columns = |shifts: &[f64]| {
                self.further_sums(count, &|samples, denominators, rows| {
                    let mut weights = [0.0; TILE];
                    let weights = &mut weights[..samples.len()];
                    weighting.weights(samples.clone(), denominators, weights);
                    for ((row, values), shift) in
                        rows.chunks_exact_mut(TILE).zip(observables).zip(shifts)
                    {
                        for ((x, value), w) in
                            row.iter_mut().zip(&values[samples.clone()]).zip(&*weights)
                        {
                            *x = w * (value - shift);
                        }
                    }
                })
            };
            let first = self.sampled.len();
            let means = columns(&vec![0.0; count]).totals[first..].to_vec();
            let sums = columns(&means);
            let matrix: Vec<_> = (0..count).map(|k| vec![(first + k, 1.0)]).collect();
            let theta = self.covariance.matrix(&sums, &matrix);
            (0..count)
                .map(|k| Estimate {
                    mean: means[k],
                    error: theta[k * count + k].max(0.0).sqrt(),
                })
                .collect()
        })
    }

    /// The free-energy surface along a coordinate, given by its value at every sample, in bins between `edges`.
    ///
    /// # Errors
    /// [`Error::Value`] for edges that do not rise, [`Error::Shape`], and as [`Mbar::perturbed`].
    pub fn surface(
        &self,
        target: Ensemble<'_>,
        coordinate: &[f64],
        edges: &[f64],
    ) -> Result<Surface> {
        self.check_values("the coordinate", coordinate)?;
        if edges.len() < 2 || !edges.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(Error::Value {
                name: "edges of the bins",
                found: format!("{edges:?}"),
                expected: "at least two rising numbers".into(),
            });
        }
        let bins = edges.len() - 1;
        let bin = |x: f64| {
            let at = edges.partition_point(|edge| *edge <= x);
            (at > 0 && at < edges.len()).then(|| at - 1)
        };
        let mut samples = vec![0; bins];
        for x in coordinate {
            if let Some(bin) = bin(*x) {
                samples[bin] += 1;
            }
        }
        let filled: Vec<usize> = (0..bins).filter(|b| samples[*b] > 0).collect();
        let mut row_of = vec![0; bins];
        filled
            .iter()
            .enumerate()
            .for_each(|(row, bin)| row_of[*bin] = row);
        // One column per bin with samples, and the target's own.
        let count = filled.len() + 1;
        let first = self.sampled.len();
        let (theta, sums) = self.with_weighting(target, &mut |weighting| {
            let sums = self.further_sums(count, &|samples, denominators, rows| {
                let mut weights = [0.0; TILE];
                let weights = &mut weights[..samples.len()];
                weighting.weights(samples.clone(), denominators, weights);
                for (n, w) in weights.iter().enumerate() {
                    rows[(count - 1) * TILE + n] = *w;
                    if let Some(bin) = bin(coordinate[samples.start + n]) {
                        rows[row_of[bin] * TILE + n] = *w;
                    }
                }
            });
            let columns: Vec<_> = (0..count).map(|k| vec![(first + k, 1.0)]).collect();
            (self.covariance.matrix(&sums, &columns), sums)
        })?;
        let share = |row: usize| sums.totals[first + row];
        let form = |a: usize, b: usize| theta[a * count + b];
        let density = |row: usize| share(row) / (edges[filled[row] + 1] - edges[filled[row]]);
        let lowest = (0..filled.len()).max_by(|a, b| density(*a).total_cmp(&density(*b)));
        let Some(lowest) = lowest else {
            return Err(Error::Value {
                name: "edges of the bins",
                found: "no sample between them".into(),
                expected: "a range that holds samples".into(),
            });
        };
        let mut probability = vec![
            Estimate {
                mean: 0.0,
                error: f64::NAN
            };
            bins
        ];
        let mut free_energy = vec![None; bins];
        for (row, &bin) in filled.iter().enumerate() {
            let (p, own) = (share(row), count - 1);
            let variance = form(row, row) - 2.0 * p * form(row, own) + p * p * form(own, own);
            probability[bin] = Estimate {
                mean: p,
                error: variance.max(0.0).sqrt(),
            };
            let q = share(lowest);
            let variance = form(row, row) / (p * p) + form(lowest, lowest) / (q * q)
                - 2.0 * form(row, lowest) / (p * q);
            free_energy[bin] = (p > 0.0).then(|| Estimate {
                mean: (density(lowest) / density(row)).ln(),
                error: variance.max(0.0).sqrt(),
            });
        }
        Ok(Surface {
            edges: edges.to_vec(),
            probability,
            free_energy,
            samples,
        })
    }

    fn check_values(&self, what: &str, values: &[f64]) -> Result<()> {
        if values.len() != self.energies.samples() {
            return Err(Error::Shape {
                what: what.into(),
                found: format!("{} numbers", values.len()),
                expected: format!("one for each of the {} samples", self.energies.samples()),
            });
        }
        match values.iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(at) => Err(Error::Value {
                name: "value at a sample",
                found: format!("{} at sample {at}", values[at]),
                expected: "a finite number".into(),
            }),
        }
    }
}
