//! A cluster of Lennard-Jones particles held together by a weak spring: an energy of particles without exact samples, the usual test of
//! generators of molecules (Koehler, Klein, Noe 2020).

use crate::particles::centre;
use crate::{Error, Result};

/// `u(x) = depth sum_{i<j} (r_ij^-12 - 2 r_ij^-6) + spring / 2 sum_i |x_i - x_mean|^2` in kT, lengths in units of the best distance.
///
/// For samples of `exp(-u)` without their centre, `<x . grad u> = 3 n - 3` (the virial theorem), whatever the depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LennardJones {
    particles: usize,
    depth: f64,
    spring: f64,
}

impl LennardJones {
    /// So many particles, with the depth of a pair's well and the strength of the spring.
    pub fn new(particles: usize, depth: f64, spring: f64) -> Result<LennardJones> {
        let sane = |x: f64| x.is_finite() && x > 0.0;
        if particles >= 2 && sane(depth) && sane(spring) {
            return Ok(LennardJones {
                particles,
                depth,
                spring,
            });
        }
        Err(Error::Value {
            name: "Lennard-Jones cluster",
            found: format!("{particles} particles, depth {depth}, spring {spring}"),
            expected: "at least two particles, a positive depth and a positive spring".into(),
        })
    }

    /// Numbers of a row.
    pub fn columns(&self) -> usize {
        3 * self.particles
    }

    /// u at a row; `-grad u` is written to `score`. Particles on one another have infinite energy.
    pub fn energy_and_score(&self, row: &[f64], score: &mut [f64]) -> f64 {
        score.copy_from_slice(row);
        centre(score, 3);
        let mut energy = 0.0;
        for x in score.iter_mut() {
            energy += 0.5 * self.spring * *x * *x;
            *x *= -self.spring;
        }
        for i in 0..self.particles {
            for j in 0..i {
                let gap: [f64; 3] = std::array::from_fn(|c| row[3 * i + c] - row[3 * j + c]);
                let square: f64 = gap.iter().map(|x| x * x).sum();
                let sixth = square.powi(-3);
                energy += self.depth * sixth * (sixth - 2.0);
                // -du/dr over r.
                let pull = 12.0 * self.depth * sixth * (sixth - 1.0) / square;
                for c in 0..3 {
                    score[3 * i + c] += pull * gap[c];
                    score[3 * j + c] -= pull * gap[c];
                }
            }
        }
        energy
    }

    /// Thirteen particles near their best place: one in the middle, twelve on the corners of an icosahedron.
    pub fn icosahedron() -> [f64; 39] {
        let golden = 0.5 * (1.0 + 5f64.sqrt());
        let radius = 0.964 / (1.0 + golden * golden).sqrt();
        let mut row = [0.0; 39];
        for corner in 0..12 {
            let axis = corner / 4;
            let [a, b] =
                [corner % 2, corner / 2 % 2].map(|sign| if sign == 0 { radius } else { -radius });
            row[3 + 3 * corner + axis] = a;
            row[3 + 3 * corner + (axis + 1) % 3] = b * golden;
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::Closure;
    use crate::sample::mcmc::{HeldEnergy, Kernel};
    use crate::sample::{Dynamics, Ensemble};

    #[test]
    fn scores_are_slopes_and_the_icosahedron_is_a_minimum() {
        let cluster = LennardJones::new(13, 1.3, 0.5).unwrap();
        let mut row = LennardJones::icosahedron();
        let mut score = [0.0; 39];
        let energy = cluster.energy_and_score(&row, &mut score);
        assert!(energy < -1.3 * 40.0, "{energy}");
        assert!(score.iter().all(|s| s.abs() < 3.0), "{score:?}");
        for (k, x) in row.iter_mut().enumerate() {
            *x += 0.05 * ((7 * k) as f64).sin();
        }
        cluster.energy_and_score(&row, &mut score);
        let mut unused = [0.0; 39];
        for k in 0..39 {
            let mut at = |by: f64| {
                let mut moved = row;
                moved[k] += by;
                cluster.energy_and_score(&moved, &mut unused)
            };
            let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!((slope + score[k]).abs() < 1e-5 * (1.0 + slope.abs()), "{k}");
        }
        assert!(LennardJones::new(1, 1.0, 1.0).is_err() && LennardJones::new(3, 0.0, 1.0).is_err());
    }

    #[test]
    fn chains_obey_the_virial_theorem() {
        let cluster = LennardJones::new(13, 1.0, 1.0).unwrap();
        let energy = Closure::new(39, move |_, row: &[f64], score: &mut [f64]| {
            cluster.energy_and_score(row, score)
        });
        let dynamics = Dynamics {
            kernel: Kernel::by_name("mala").unwrap(),
            step: 0.001,
            masses: Vec::new(),
            thin: 100,
            seed: 3,
        };
        let (chains, frames) = (16, 120);
        let start = LennardJones::icosahedron().repeat(chains);
        let target = HeldEnergy {
            energy: &energy,
            time: 0.0,
        };
        let mut ensemble = Ensemble::start(&dynamics, &[target], start).unwrap();
        let mut points = vec![0.0; frames * chains * 39];
        ensemble.advance(frames, &mut points, &mut vec![0.0; frames * chains]);
        assert!(
            (0.3..0.99).contains(&ensemble.acceptance()),
            "{}",
            ensemble.acceptance()
        );
        // One mean for each chain, of its later two thirds.
        let mut score = [0.0; 39];
        let means: Vec<f64> = (0..chains)
            .map(|chain| {
                let rows = (frames / 3..frames).map(|f| &points[(f * chains + chain) * 39..][..39]);
                let virial = rows.map(|row| {
                    cluster.energy_and_score(row, &mut score);
                    -row.iter().zip(&score).map(|(x, s)| x * s).sum::<f64>()
                });
                virial.sum::<f64>() / (frames - frames / 3) as f64
            })
            .collect();
        let mean = means.iter().sum::<f64>() / chains as f64;
        let spread = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>();
        let error = (spread / (chains * (chains - 1)) as f64).sqrt();
        assert!(
            error < 2.0 && (mean - 36.0).abs() < 4.0 * error,
            "{mean} +- {error}"
        );
    }
}
