//! Particles in straightened columns: where they start, around circles too, and their way back into the coordinates of the data.

use crate::error::Result;
use diffclf::base::MixtureBase;
use diffclf::energy::{Coordinates, Kind, MixtureLaw};
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::Start;
use diffclf::system::GaussianMixture;

/// Where particles come from. A Gaussian around a circle has a density of its own: that of all its images.
pub struct Departure {
    mixture: GaussianMixture,
    wrapped: Option<(Vec<f64>, MixtureLaw)>,
}

impl Departure {
    /// So many particles from a mixture of straightened columns of these kinds.
    pub fn new(
        mixture: GaussianMixture,
        kinds: &[Kind],
        particles: usize,
        seed: u64,
    ) -> Result<Departure> {
        let periods: Vec<f64> = kinds
            .iter()
            .map(|kind| kind.period().unwrap_or(0.0))
            .collect();
        let wrapped = if periods.iter().any(|period| *period > 0.0) {
            let law = MixtureBase::try_from(&mixture)?.with_periods(periods)?;
            let mut points = vec![0.0; particles * mixture.dim()];
            for (row, point) in points.chunks_exact_mut(mixture.dim()).enumerate() {
                let mut stream = Stream::new(seed, Purpose::Sample, 0, row as u64);
                mixture.sample_point(&mut stream, point);
            }
            Some((points, MixtureLaw::new(&law)?))
        } else {
            None
        };
        Ok(Departure { mixture, wrapped })
    }

    /// As a path takes it.
    pub fn start(&self) -> Start<'_> {
        match &self.wrapped {
            None => Start::Mixture(&self.mixture),
            Some((points, density)) => Start::Draws {
                points,
                density,
                time: 0.0,
            },
        }
    }
}

/// Whether all maps have columns of the same kinds; where values of a period begin does not matter.
pub fn alike(a: &Coordinates, b: &Coordinates) -> bool {
    let same = |j: usize| match (a.kind(j), b.kind(j)) {
        (Kind::Periodic { period, .. }, Kind::Periodic { period: other, .. }) => period == other,
        (a, b) => a == b,
    };
    a.dim() == b.dim() && (0..a.dim()).all(same)
}
