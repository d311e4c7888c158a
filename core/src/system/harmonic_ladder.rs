//! Harmonic springs in any dimension, their energies at each other's samples, and their exact free energies.

use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// States `u_k(x) = K_k / 2 sum_i (x_i - O_k)^2` (kT) in d dimensions: `log Z_k = d/2 log(2 pi / K_k)`.
///
/// In one dimension these are the harmonic oscillators of pymbar's examples and tests.
#[derive(Debug, Clone)]
pub struct HarmonicLadder {
    dim: usize,
    centres: Vec<f64>,
    springs: Vec<f64>,
}

impl HarmonicLadder {
    /// Springs of strength `springs[k]` around the point whose coordinates all are `centres[k]`.
    pub fn new(dim: usize, centres: Vec<f64>, springs: Vec<f64>) -> Result<Self> {
        let wrong = |name, found: String, expected: &str| {
            Err(Error::Value {
                name,
                found,
                expected: expected.into(),
            })
        };
        if dim == 0 {
            return wrong("dimension of the ladder", "0".into(), "at least 1");
        }
        if centres.is_empty() || centres.len() != springs.len() {
            let found = format!("{} centres and {} springs", centres.len(), springs.len());
            return wrong(
                "states of the ladder",
                found,
                "as many of one as of the other, at least one",
            );
        }
        if let Some(k) = springs.iter().find(|k| !(**k > 0.0 && k.is_finite())) {
            return wrong("spring constant", k.to_string(), "a positive number");
        }
        Ok(Self {
            dim,
            centres,
            springs,
        })
    }

    /// `states` springs whose centres and (logarithmic) strengths rise evenly from the first to the last.
    pub fn even(
        dim: usize,
        states: usize,
        centres: (f64, f64),
        springs: (f64, f64),
    ) -> Result<Self> {
        let place = |k: usize| k as f64 / (states.max(2) - 1) as f64;
        let centre = |k: usize| centres.0 + place(k) * (centres.1 - centres.0);
        let spring = |k: usize| springs.0 * (springs.1 / springs.0).powf(place(k));
        Self::new(
            dim,
            (0..states).map(centre).collect(),
            (0..states).map(spring).collect(),
        )
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.springs.len()
    }

    /// Dimension of a point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// log Z_k, exact.
    pub fn log_z(&self, state: usize) -> f64 {
        0.5 * self.dim as f64 * (std::f64::consts::TAU / self.springs[state]).ln()
    }

    /// u_k(x).
    pub fn energy(&self, state: usize, point: &[f64]) -> f64 {
        let centre = self.centres[state];
        let square: f64 = point.iter().map(|x| (x - centre).powi(2)).sum();
        0.5 * self.springs[state] * square
    }

    /// `counts[k]` samples of each state, state after state, and the matrix u_kn of all of them in all states. Sample i of
    /// state k depends on the seed, k and i alone.
    pub fn sample(&self, counts: &[usize], seed: u64) -> (Vec<f64>, Vec<f64>) {
        let total: usize = counts.iter().sum();
        let mut points = Vec::with_capacity(total * self.dim);
        for (state, &count) in counts.iter().enumerate() {
            let width = self.springs[state].sqrt().recip();
            for row in 0..count {
                let mut stream = Stream::new(seed, Purpose::Data, state as u64, row as u64);
                points.extend((0..self.dim).map(|_| self.centres[state] + width * stream.normal()));
            }
        }
        (points.clone(), self.energies(&points))
    }

    /// u_kn of points, state after state.
    pub fn energies(&self, points: &[f64]) -> Vec<f64> {
        (0..self.states())
            .flat_map(|state| {
                points
                    .chunks_exact(self.dim)
                    .map(move |point| self.energy(state, point))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalisers_are_integrals_and_samples_have_their_variance() {
        let ladder = HarmonicLadder::even(1, 3, (-1.0, 2.0), (0.5, 8.0)).unwrap();
        for state in 0..3 {
            let h = 1e-3;
            let sum: f64 = (-20_000..20_000)
                .map(|i| (-ladder.energy(state, &[f64::from(i) * h])).exp() * h)
                .sum();
            assert!((sum.ln() - ladder.log_z(state)).abs() < 1e-9);
        }
        let cube = HarmonicLadder::even(3, 3, (-1.0, 2.0), (0.5, 8.0)).unwrap();
        assert!((cube.log_z(1) - 3.0 * ladder.log_z(1)).abs() < 1e-12);
        let n = 20_000;
        let (points, energies) = cube.sample(&[0, n, 0], 4);
        assert_eq!((points.len(), energies.len()), (3 * n, 3 * n));
        // 2 u is chi-squared with 3 degrees of freedom: mean 1.5 and variance 1.5 for u.
        let mean = energies[n..2 * n].iter().sum::<f64>() / n as f64;
        assert!((mean - 1.5).abs() < 4.0 * (1.5 / n as f64).sqrt(), "{mean}");
        assert_eq!(cube.sample(&[0, 5, 0], 4).0, points[..15]);
        assert_eq!((cube.dim(), cube.states()), (3, 3));
    }

    #[test]
    fn impossible_ladders_are_refused() {
        assert!(HarmonicLadder::new(0, vec![0.0], vec![1.0]).is_err());
        assert!(HarmonicLadder::new(1, vec![], vec![]).is_err());
        assert!(HarmonicLadder::new(1, vec![0.0], vec![1.0, 2.0]).is_err());
        assert!(HarmonicLadder::new(1, vec![0.0], vec![-1.0]).is_err());
    }
}
