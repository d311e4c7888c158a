//! How far the marginal at the noise end of a diffusion is from the isotropic Gaussian that stands for it.
//!
//! With mean m and covariance C of the data, the marginal at time t has mean `S m` and covariance `S^2 C + gamma^2 I`; it is taken for
//! `N(S mu, a^2 I)`, `a^2 = S^2 sd^2 + gamma^2`. The relative entropy splits in two (both have the same moments as what they are compared with):
//! `KL(p_t | N_iso) = KL(p_t | N_fit) + KL(N_fit | N_iso)`. The second is a formula; the first, for data that are not Gaussian, is not known, but
//! the whole is at most the capacity of a Gaussian channel, `E|S (x - mu)|^2 / (2 a^2) + d/2 (gamma^2/a^2 - 1 - log(gamma^2/a^2))`.

use crate::process::Process;
use crate::system::matrix::inverse_and_log_det;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = crate::citation::OURS;

/// Relative entropies in nats; the total variation is at most `sqrt(KL / 2)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseEnd {
    /// Of the Gaussian with the data's mean and covariance: what anisotropy and a shifted mean do. The real distance is at least that, but for
    /// chance: n rows add about `d^2 / (4 n) (S^2 sd^2 / a^2)^2`.
    pub at_least: f64,
    /// What the real distance is at most, whatever the data's shape.
    pub at_most: f64,
}

impl NoiseEnd {
    /// At `time`, for rows of the data; the Gaussian that stands for the marginal is that of a single point of spread `variance` at `mean`.
    ///
    /// # Errors
    /// [`Error::Value`] for an interpolant or a time without noise, [`Error::Shape`] for rows that do not fit the mean.
    pub fn of(
        process: &Process,
        time: f64,
        rows: &[f64],
        (mean, variance): (&[f64], f64),
    ) -> Result<NoiseEnd> {
        let d = mean.len();
        if d == 0 || rows.is_empty() || !rows.len().is_multiple_of(d) {
            return Err(Error::Shape {
                what: "the rows at the noise end".into(),
                found: format!("{} numbers", rows.len()),
                expected: format!("whole rows of {d} numbers, at least one"),
            });
        }
        let noise = process.noise(time).powi(2);
        if process.is_interpolant() || noise.is_nan() || noise <= 0.0 {
            return Err(Error::Value {
                name: "noise end",
                found: format!("time {time} of the {} process", process.name()),
                expected: "a diffusion, at a time with noise".into(),
            });
        }
        let signal = process.scale(time).powi(2);
        let total = signal * variance + noise;
        let n = (rows.len() / d) as f64;
        let mut centre = vec![0.0; d];
        for row in rows.chunks_exact(d) {
            centre.iter_mut().zip(row).for_each(|(c, x)| *c += x / n);
        }
        let mut moved = vec![0.0; d];
        let mut ratio = vec![0.0; d * d];
        for row in rows.chunks_exact(d) {
            for ((m, x), c) in moved.iter_mut().zip(row).zip(&centre) {
                *m = x - c;
            }
            for (i, line) in ratio.chunks_exact_mut(d).enumerate() {
                let factor = signal / total / n * moved[i];
                line.iter_mut()
                    .zip(&moved)
                    .for_each(|(r, m)| *r += factor * m);
            }
        }
        let shift: f64 = centre.iter().zip(mean).map(|(a, b)| (a - b).powi(2)).sum();
        let spread: f64 = (0..d).map(|i| ratio[i * d + i]).sum();
        for i in 0..d {
            ratio[i * d + i] += noise / total;
        }
        let (_, log_det) = inverse_and_log_det(&ratio, d).ok_or_else(|| Error::Value {
            name: "covariance at the noise end",
            found: "not positive".into(),
            expected: "finite rows".into(),
        })?;
        let dim = d as f64;
        let still = noise / total;
        let displaced = 0.5 * signal * shift / total;
        Ok(NoiseEnd {
            at_least: displaced + 0.5 * (spread + dim * still - dim - log_det),
            at_most: displaced + 0.5 * spread + 0.5 * dim * (still - 1.0 - still.ln()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    /// Rows of a Gaussian with other variances than their mean: the sum of `(r - 1 - log r) / 2` over the axes.
    #[test]
    fn anisotropic_data_are_told_from_an_isotropic_end() {
        let process = Process::default();
        let deviations = [0.1, 0.3, 2.5, 0.2];
        let (d, n) = (4, 20_000);
        let mut stream = Stream::new(1, Purpose::Test, 0, 0);
        let rows: Vec<f64> = (0..n * d)
            .map(|i| 0.7 + deviations[i % d] * stream.normal())
            .collect();
        let variance = deviations.iter().map(|s| s * s).sum::<f64>() / d as f64;
        for time in [0.3, 0.6, 0.999] {
            let found = NoiseEnd::of(&process, time, &rows, (&[0.7; 4], variance)).unwrap();
            let (s, g) = (process.scale(time).powi(2), process.noise(time).powi(2));
            let exact: f64 = deviations
                .iter()
                .map(|v| (s * v * v + g) / (s * variance + g))
                .map(|r| 0.5 * (r - 1.0 - r.ln()))
                .sum();
            // The covariance of 20000 rows is known to 1 %, so that each term errs by 4 (r - 1) / 2 times that, and chance adds 2e-4.
            assert!(
                (found.at_least - exact).abs() < 0.03 * exact + 2e-4,
                "{found:?} {exact}"
            );
            let capacity = 0.5 * d as f64 * (s * variance / g).ln_1p();
            assert!(
                (found.at_most / capacity - 1.0).abs() < 0.05 && found.at_most >= found.at_least
            );
        }
        // A mean elsewhere counts by its square.
        let off = NoiseEnd::of(&process, 0.6, &rows, (&[0.0; 4], variance)).unwrap();
        let on = NoiseEnd::of(&process, 0.6, &rows, (&[0.7; 4], variance)).unwrap();
        let (s, g) = (process.scale(0.6).powi(2), process.noise(0.6).powi(2));
        let expected = 0.5 * s * 4.0 * 0.49 / (s * variance + g);
        assert!((off.at_least - on.at_least - expected).abs() < 0.1 * expected);
        assert!(NoiseEnd::of(&process, 0.6, &rows[1..], (&[0.7; 4], 1.0)).is_err());
        let linear = Process::by_name("linear").unwrap();
        assert!(NoiseEnd::of(&linear, 0.6, &rows, (&[0.7; 4], 1.0)).is_err());
    }
}
