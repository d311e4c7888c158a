//! From the user's coordinates to the model's and back: `y_model = (y - c(t) shift) / scale`, `c(t) = alpha(t) + beta(t)`.
//!
//! A model learns standardised data `(x - shift) / scale`. With `Y_t = alpha X_0 + beta X_1 + gamma Z` the same noise in the
//! user's coordinates is `scale` times larger, and the density there is `p(t, y) = p_model(t, y_model) / scale^d`.

use diffclf::energy::Energy;
use diffclf::model::Content;
use diffclf::process::Process;
use diffclf::system::{Covariance, GaussianMixture};
use diffclf::train::Standardisation;

/// The two coordinate systems of a model.
pub struct Coordinates<'a> {
    process: &'a Process,
    standardisation: &'a Standardisation,
}

impl<'a> Coordinates<'a> {
    /// Those of a model.
    pub fn of(content: &'a Content) -> Self {
        Self {
            process: &content.spec.process,
            standardisation: &content.standardisation,
        }
    }

    /// d ln(scale): what energies gain and log-densities lose.
    fn log_volume(&self) -> f64 {
        let Standardisation { shift, scale } = self.standardisation;
        shift.len() as f64 * scale.ln()
    }

    /// Points at `time`, in place, to the model's coordinates.
    pub fn points_to_model(&self, time: f64, points: &mut [f64]) {
        let Standardisation { shift, scale } = self.standardisation;
        let factor = self.process.x0_scale(time) + self.process.x1_scale(time);
        for row in points.chunks_exact_mut(shift.len()) {
            for (y, shift) in row.iter_mut().zip(shift) {
                *y = (*y - factor * shift) / scale;
            }
        }
    }

    /// Points at `time`, in place, to the user's coordinates.
    pub fn points_to_user(&self, time: f64, points: &mut [f64]) {
        let Standardisation { shift, scale } = self.standardisation;
        let factor = self.process.x0_scale(time) + self.process.x1_scale(time);
        for row in points.chunks_exact_mut(shift.len()) {
            for (y, shift) in row.iter_mut().zip(shift) {
                *y = factor * shift + scale * *y;
            }
        }
    }

    /// Points at time 0, in place, to the user's coordinates.
    pub fn data_to_user(&self, points: &mut [f64]) {
        let Standardisation { shift, scale } = self.standardisation;
        for row in points.chunks_exact_mut(shift.len()) {
            for (x, shift) in row.iter_mut().zip(shift) {
                *x = shift + scale * *x;
            }
        }
    }

    /// U, with points in the model's coordinates and the value in the user's: log p = -U + F holds there too.
    pub fn energy(&self, energy: &dyn Energy, time: f64, points: &[f64], out: &mut [f64]) {
        energy.energy(&[time], points, out);
        let volume = self.log_volume();
        out.iter_mut().for_each(|value| *value += volume);
    }

    /// log p.
    pub fn log_density(&self, energy: &dyn Energy, time: f64, points: &[f64], out: &mut [f64]) {
        energy.log_density(&[time], points, out);
        let volume = self.log_volume();
        out.iter_mut().for_each(|value| *value -= volume);
    }

    /// The gradient of log p in the user's coordinates.
    pub fn score(&self, energy: &dyn Energy, time: f64, points: &[f64], out: &mut [f64]) {
        energy.score(&[time], points, out);
        let scale = self.standardisation.scale;
        out.iter_mut().for_each(|value| *value /= scale);
    }

    /// d/dt log p at a fixed point of the user's coordinates, which moves in the model's:
    /// `time_score - c'(t) shift . score_model / scale`.
    pub fn time_score(&self, energy: &dyn Energy, time: f64, points: &[f64], out: &mut [f64]) {
        let Standardisation { shift, scale } = self.standardisation;
        let rate = self.process.x0_rate(time) + self.process.x1_rate(time);
        energy.time_score(&[time], points, out);
        if shift.iter().all(|x| *x == 0.0) {
            return;
        }
        let mut score = vec![0.0; points.len()];
        energy.score(&[time], points, &mut score);
        for (value, score) in out.iter_mut().zip(score.chunks_exact(shift.len())) {
            let along: f64 = score.iter().zip(shift).map(|(a, b)| a * b).sum();
            *value -= rate * along / scale;
        }
    }

    /// A mixture of the user's coordinates in those of the model.
    pub fn mixture(&self, mixture: &GaussianMixture) -> diffclf::Result<GaussianMixture> {
        let Standardisation { shift, scale } = self.standardisation;
        let mut means = mixture.means().to_vec();
        for row in means.chunks_exact_mut(shift.len()) {
            for (x, shift) in row.iter_mut().zip(shift) {
                *x = (*x - shift) / scale;
            }
        }
        let shrink = |values: &[f64]| values.iter().map(|v| v / (scale * scale)).collect();
        let covariance = match mixture.covariance() {
            Covariance::Isotropic(values) => Covariance::Isotropic(shrink(values)),
            Covariance::Diagonal(values) => Covariance::Diagonal(shrink(values)),
            Covariance::Full(values) => Covariance::Full(shrink(values)),
        };
        GaussianMixture::new(mixture.dim(), mixture.weights().to_vec(), means, covariance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::energy::exact::ExactPath;
    use diffclf::process::Linear;

    fn mixture(means: &[f64]) -> GaussianMixture {
        let covariance = Covariance::Diagonal(vec![0.4, 1.3, 2.0, 0.7]);
        GaussianMixture::new(2, vec![2.0, 1.0], means.to_vec(), covariance).unwrap()
    }

    /// An interpolant between mixtures far from zero: the density in the user's coordinates, taken through the model's,
    /// must have the score and time score that differences of its logarithm give.
    #[test]
    fn densities_agree_with_their_derivatives_in_the_users_coordinates() {
        let process = Process::Linear(Linear { a: 0.7 });
        let standardisation = Standardisation {
            shift: vec![5.0, -3.0],
            scale: 2.5,
        };
        let map = Coordinates {
            process: &process,
            standardisation: &standardisation,
        };
        let (start, end) = (
            mixture(&[4.0, -2.0, 7.0, -5.0]),
            mixture(&[6.0, 0.0, 3.0, -4.0]),
        );
        let path = ExactPath::new(
            process,
            map.mixture(&start).unwrap(),
            Some(map.mixture(&end).unwrap()),
        )
        .unwrap();
        let log_density = |time: f64, y: [f64; 2]| {
            let (mut points, mut out) = (y.to_vec(), [0.0]);
            map.points_to_model(time, &mut points);
            map.log_density(&path, time, &points, &mut out);
            out[0]
        };
        let (time, y, h) = (0.3, [5.5, -1.0], 1e-5);
        let mut points = y.to_vec();
        map.points_to_model(time, &mut points);
        let (mut score, mut rate, mut energy) = ([0.0; 2], [0.0], [0.0]);
        map.score(&path, time, &points, &mut score);
        map.time_score(&path, time, &points, &mut rate);
        map.energy(&path, time, &points, &mut energy);
        let differences = [
            (log_density(time, [y[0] + h, y[1]]) - log_density(time, [y[0] - h, y[1]])) / (2.0 * h),
            (log_density(time, [y[0], y[1] + h]) - log_density(time, [y[0], y[1] - h])) / (2.0 * h),
            (log_density(time + h, y) - log_density(time - h, y)) / (2.0 * h),
        ];
        for (found, expected) in [score[0], score[1], rate[0]].iter().zip(differences) {
            assert!(
                (found - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                "{found} {expected}"
            );
        }
        assert!((energy[0] + log_density(time, y)).abs() < 1e-12);
        // Near time 0 the density is the start's own, in the user's coordinates.
        assert!((log_density(1e-12, y) - start.log_density(&y)).abs() < 1e-9);
        map.points_to_user(time, &mut points);
        assert!((points[0] - y[0]).abs() < 1e-12 && (points[1] - y[1]).abs() < 1e-12);
        let mut back = [0.4, 0.6];
        map.data_to_user(&mut back);
        map.points_to_model(0.0, &mut back);
        assert!((back[0] - 0.4).abs() < 1e-15 && (back[1] - 0.6).abs() < 1e-15);
    }
}
