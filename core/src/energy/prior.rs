//! The Gaussian that a diffusion's marginal is at the noisiest level, `N(S mu, (S^2 sd^2 + gamma^2) I)`: where particles start.

use super::{ModelSpec, Scale};
use crate::Result;
use crate::process::Process;
use crate::system::GaussianMixture;

/// A Gaussian.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    /// Mean.
    pub mean: Vec<f64>,
    /// Standard deviation: one for all columns in a model's coordinates, in those of its data perhaps one for each, or a factor of the
    /// covariance.
    pub std: Scale,
}

impl Prior {
    /// `N(S mu, (S^2 sd^2 + gamma^2) I)`: mean and scalar variance of a diffusion at `time`, from those of its data.
    pub fn new(process: &Process, time: f64, mean: &[f64], variance: f64) -> Prior {
        let (scale, noise) = (process.scale(time), process.noise(time));
        Prior {
            mean: mean.iter().map(|m| scale * m).collect(),
            std: Scale::Common((scale * scale * variance + noise * noise).sqrt()),
        }
    }

    /// The start that belongs to a model: its own Gaussian at its last time.
    pub fn of(spec: &ModelSpec) -> Prior {
        Prior::new(&spec.process, spec.grid.t_max(), &spec.mean, spec.variance)
    }

    /// `mean + std z` for the rows of standard normals `noise`.
    pub fn points<T: Copy + Into<f64>>(&self, noise: &[T], points: &mut [f64]) {
        let dim = self.mean.len();
        for (point, z) in points.chunks_exact_mut(dim).zip(noise.chunks_exact(dim)) {
            point.iter_mut().zip(z).for_each(|(y, z)| *y = (*z).into());
            self.std.multiply(point);
            point.iter_mut().zip(&self.mean).for_each(|(y, m)| *y += m);
        }
    }

    /// The same law as a mixture of one component.
    pub fn mixture(&self) -> Result<GaussianMixture> {
        let (dim, mean) = (self.mean.len(), self.mean.clone());
        GaussianMixture::new(dim, vec![1.0], mean, self.std.covariance(dim))
    }
}
