//! The normaliser of an energy on a mixture, level by level: `log Z_t = log E_q[exp(-U(t, y)) / q_t(y)]` with draws of the exact
//! marginal `q_t` of its base, plain and inflated. A classification learns F(t) up to its own error; the integral knows it.

use super::{Energy, LearnedEnergy};
use crate::base::{INFLATIONS, Level, Marginal, Wanted};
use crate::engine::Real;
use crate::rng::{Purpose, Stream};
use crate::system::log_sum::log_add;

/// How often each inflation of the base is drawn from: mostly where the data are.
const SHARES: [f64; 4] = [0.7, 0.2, 0.08, 0.02];

/// A level's normaliser.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normaliser {
    /// The time.
    pub time: f64,
    /// `log Z_t = log of the integral of exp(-U)`; F(t) should be its negative.
    pub log_z: f64,
    /// Standard error.
    pub error: f64,
    /// Effective share of the draws.
    pub effective: f64,
}

/// Points that stand for the density at a time, each with a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedDraws {
    /// Points in the model's coordinates.
    pub points: Vec<f64>,
    /// Their weights, with mean 1 up to the error of the normaliser.
    pub weights: Vec<f64>,
}

/// Draws of the base at a level, plain and inflated, and the log-density of the mixture that they are draws of. `set` tells sets of draws
/// apart.
fn propose(
    base: &Marginal<f64>,
    level: Level,
    (seed, set): (u64, u64),
    points: &mut [f64],
    proposal: &mut [f64],
) {
    let (dim, draws) = (base.dim(), proposal.len());
    let (mut scratch, mut room) = (base.scratch(), vec![0.0; 2 * dim]);
    for (k, point) in points.chunks_exact_mut(dim).enumerate() {
        let mut stream = Stream::new(seed, Purpose::Normalise, set, k as u64);
        // Inflations in turn, not at random: their shares are then exact.
        let place = (k as f64 + 0.5) / draws as f64;
        let sums = SHARES.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let which = sums
            .take_while(|sum| *sum < place)
            .count()
            .min(SHARES.len() - 1);
        let level = level.inflated(INFLATIONS[which]);
        base.sample(&level, &mut stream, point, &mut room);
    }
    proposal.fill(f64::NEG_INFINITY);
    let mut part = vec![0.0; draws];
    for (inflation, share) in INFLATIONS.iter().zip(SHARES) {
        let wanted = Wanted {
            log_density: &mut part,
            score: None,
            time_score: None,
            laplacian: None,
        };
        base.evaluate(points, &[level.inflated(*inflation)], wanted, &mut scratch);
        for (sum, part) in proposal.iter_mut().zip(&part) {
            *sum = log_add(*sum, part + share.ln());
        }
    }
}

impl<T: Real> LearnedEnergy<T> {
    /// Draws that stand for the density at a time: those of the base, weighted by what the network makes of them. None where the energy stands
    /// on no mixture.
    pub fn weighted_draws(&self, time: f64, draws: usize, seed: u64) -> Option<WeightedDraws> {
        let base = self.precise_base()?;
        let (mut points, mut proposal) = (vec![0.0; draws * self.dim()], vec![0.0; draws]);
        let level = Level::at(&self.spec().process, time);
        propose(base, level, (seed, 1), &mut points, &mut proposal);
        let mut weights = vec![0.0; draws];
        self.log_density(&[time], &points, &mut weights);
        for (weight, proposal) in weights.iter_mut().zip(&proposal) {
            *weight = (*weight - proposal).exp();
        }
        Some(WeightedDraws { points, weights })
    }

    /// The normaliser at each of these times from so many draws, the same for all times so that neighbours err alike; none where the
    /// energy stands on no mixture.
    pub fn normalisers(&self, times: &[f64], draws: usize, seed: u64) -> Option<Vec<Normaliser>> {
        let base = self.precise_base()?;
        let (dim, process) = (self.dim(), self.spec().process);
        let (mut points, mut energies) = (vec![0.0; draws * dim], vec![0.0; draws]);
        let mut proposal = vec![0.0; draws];
        let one = |&time: &f64| {
            let level = Level::at(&process, time);
            propose(base, level, (seed, 0), &mut points, &mut proposal);
            self.energy(&[time], &points, &mut energies);
            for (energy, proposal) in energies.iter_mut().zip(&proposal) {
                *energy = -*energy - proposal;
            }
            let most = energies.iter().fold(f64::NEG_INFINITY, |m, x| m.max(*x));
            let weights = || energies.iter().map(|x| (x - most).exp());
            let (sum, square): (f64, f64) =
                weights().fold((0.0, 0.0), |(sum, square), w| (sum + w, square + w * w));
            let count = draws as f64;
            let effective = sum * sum / square / count;
            Normaliser {
                time,
                log_z: most + (sum / count).ln(),
                error: ((1.0 / effective - 1.0).max(0.0) / count).sqrt(),
                effective,
            }
        };
        Some(times.iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::energy::Energy;
    use crate::energy::tests::{base, learned, params, spec};
    use crate::energy::{Form, ModelSpec};
    use crate::engine::Isa;

    /// A network on the line whose integral is known by quadrature, and one that adds nothing.
    #[test]
    fn normalisers_are_integrals() {
        for process in crate::energy::tests::diffusions() {
            let spec = ModelSpec {
                base: Some(base(false)),
                ..spec(process, Some(Form::Scalar), false)
            };
            let zeros = vec![0.0; spec.layout().len()];
            let times = [spec.grid.t_min(), 0.5 * spec.grid.t_max()];
            let energy = learned::<f64>(&spec, &zeros, Isa::detect());
            for found in energy.normalisers(&times, 4000, 1).unwrap() {
                assert!(found.log_z.abs() < 4.0 * found.error, "{found:?}");
                assert!(found.effective > 0.5 && found.error < 0.02, "{found:?}");
            }
            // Against plain draws of the base: E_b[exp(correction)].
            let values = params::<f64>(&spec, 5);
            let model = learned::<f64>(&spec, &values, Isa::detect());
            let found = model.normalisers(&times[..1], 8000, 2).unwrap()[0];
            let mixture = &spec.base.as_ref().unwrap().start;
            let path = crate::energy::exact::ExactPath::new(
                spec.process,
                mixture.to_gaussian_mixture().unwrap(),
                None,
            )
            .unwrap();
            let points = path.sample(times[0], 8000, 3);
            let (mut own, mut exact) = (vec![0.0; 8000], vec![0.0; 8000]);
            model.energy(&times[..1], &points, &mut own);
            path.log_density(&times[..1], &points, &mut exact);
            let ratios: Vec<f64> = own
                .iter()
                .zip(&exact)
                .map(|(u, b)| (-u - b).exp())
                .collect();
            let mean = ratios.iter().sum::<f64>() / 8000.0;
            let square = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 8000.0;
            let error = (square / 8000.0).sqrt() / mean;
            let gap = (found.log_z - mean.ln()).abs();
            assert!(
                gap < 4.0 * (error * error + found.error * found.error).sqrt(),
                "{found:?}, {mean} +- {error}"
            );
            assert!(gap < 0.1);
        }
    }
}
