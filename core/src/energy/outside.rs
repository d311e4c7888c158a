//! Which points lie outside of the data, as far as the density that an energy stands on can tell: farther out than all of ten thousand
//! draws of it. There a density is extrapolated, whatever the network.

use super::{LearnedEnergy, Prior};
use crate::base::{Level, Marginal, Wanted};
use crate::engine::Real;
use crate::rng::{Purpose, Stream};
use crate::system::GaussianMixture;

/// Draws, of which every point outside is less likely than the least likely.
pub const DRAWS: usize = 10_000;

enum Law<'a> {
    Mixture(&'a Marginal<f64>, Level),
    Gaussian(Box<GaussianMixture>),
}

/// See the module's text.
pub struct Outside<'a> {
    law: Law<'a>,
    dim: usize,
    least: f64,
}

impl<T: Real> LearnedEnergy<T> {
    /// The outside at a time: of the noised mixture, or of the Gaussian of a diffusion. None for an interpolant on no mixture, which
    /// stands on nothing that is like the data.
    pub fn outside(&self, time: f64) -> Option<Outside<'_>> {
        let spec = self.spec();
        let law = match self.precise_base() {
            Some(base) => Law::Mixture(base, Level::at(&spec.process, time)),
            None if spec.process.is_interpolant() => return None,
            None => {
                let prior = Prior::new(&spec.process, time, &spec.mean, spec.variance);
                Law::Gaussian(Box::new(prior.mixture().ok()?))
            }
        };
        let mut outside = Outside {
            law,
            dim: spec.dim,
            least: 0.0,
        };
        let drawn = outside.draws();
        outside.least = outside
            .log_density(&drawn)
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        Some(outside)
    }
}

impl Outside<'_> {
    fn draws(&self) -> Vec<f64> {
        let mut points = vec![0.0; DRAWS * self.dim];
        let mut room = vec![0.0; 2 * self.dim];
        for (k, point) in points.chunks_exact_mut(self.dim).enumerate() {
            let mut stream = Stream::new(0, Purpose::Outside, 0, k as u64);
            match &self.law {
                Law::Mixture(base, level) => base.sample(level, &mut stream, point, &mut room),
                Law::Gaussian(law) => {
                    law.sample_point(&mut stream, point);
                }
            }
        }
        points
    }

    fn log_density(&self, points: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; points.len() / self.dim];
        match &self.law {
            Law::Mixture(base, level) => {
                let wanted = Wanted {
                    log_density: &mut out,
                    score: None,
                    time_score: None,
                    laplacian: None,
                };
                base.evaluate(points, &[*level], wanted, &mut base.scratch());
            }
            Law::Gaussian(law) => {
                for (out, point) in out.iter_mut().zip(points.chunks_exact(self.dim)) {
                    *out = law.log_density(point);
                }
            }
        }
        out
    }

    /// Whether each point, in the model's coordinates, lies outside.
    pub fn marks(&self, points: &[f64]) -> Vec<bool> {
        let inside = |log: f64| log >= self.least;
        self.log_density(points)
            .into_iter()
            .map(|log| !inside(log))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::energy::tests::{base, diffusions, learned, params, spec};
    use crate::energy::{Form, ModelSpec};
    use crate::engine::Isa;

    /// Fresh draws of the law are hardly ever outside, points beyond it and between its modes are.
    #[test]
    fn what_is_far_is_outside() {
        for process in diffusions() {
            for on_mixture in [true, false] {
                let spec = ModelSpec {
                    base: on_mixture.then(|| base(false)),
                    ..spec(process, Some(Form::Scalar), false)
                };
                let model = learned::<f64>(&spec, &params(&spec, 3), Isa::detect());
                let time = spec.grid.t_min();
                let outside = model.outside(time).unwrap();
                let law = match &spec.base {
                    Some(base) => base.start.to_gaussian_mixture().unwrap(),
                    None => crate::energy::Prior::new(&process, time, &spec.mean, spec.variance)
                        .mixture()
                        .unwrap(),
                };
                // One in ten thousand is expected to be below the least of as many draws: more than 10 of 10,000 would be nine
                // standard errors off.
                let (points, _) = law.sample(10_000, 5);
                let far = outside.marks(&points).iter().filter(|far| **far).count();
                assert!(far <= 10, "{far}");
                let beyond: Vec<f64> = (0..spec.dim).map(|i| 30.0 + i as f64).collect();
                assert_eq!(outside.marks(&beyond), [true]);
                assert_eq!(outside.marks(&vec![f64::NAN; spec.dim]), [true]);
            }
        }
    }
}
