//! The kernels of a diffusion in the coordinates of the data.

use crate::coordinates::Coordinates;
use diffclf::sample::{DiffusionKernels, Transport};

/// Kernels of the model's coordinates, moved to those of its data.
pub struct Moved<'a> {
    /// The kernels in the model's coordinates.
    pub inner: DiffusionKernels<'a>,
    /// The two coordinate systems.
    pub map: Coordinates<'a>,
    /// What a unit of the model's coordinates is in those of the data.
    pub scale: f64,
}

impl Moved<'_> {
    fn inward(&self, time: f64, points: &[f64]) -> Vec<f64> {
        let mut points = points.to_vec();
        self.map.points_to_model(time, &mut points);
        points
    }
}

impl Transport for Moved<'_> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn forth(&self, from: f64, to: f64, points: &[f64], mean: &mut [f64]) -> f64 {
        let variance = self.inner.forth(from, to, &self.inward(from, points), mean);
        self.map.points_to_user(to, mean);
        variance * self.scale.powi(2)
    }

    fn back(&self, from: f64, to: f64, proposed: &[f64], mean: &mut [f64]) -> f64 {
        let variance = self.inner.back(from, to, &self.inward(to, proposed), mean);
        self.map.points_to_user(from, mean);
        variance * self.scale.powi(2)
    }
}
