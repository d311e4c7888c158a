//! A mixture as an energy, the same at every time; around circles where it has periods.

use super::Energy;
use crate::Result;
use crate::base::{Level, Marginal, MixtureBase, Wanted};
use crate::engine::Isa;

/// See the module's text.
pub struct MixtureLaw(Marginal<f64>);

impl MixtureLaw {
    /// The law of a mixture.
    pub fn new(mixture: &MixtureBase) -> Result<MixtureLaw> {
        Ok(MixtureLaw(Marginal::new(mixture, None, Isa::detect())?))
    }

    fn evaluate(&self, points: &[f64], log_density: &mut [f64], score: Option<&mut [f64]>) {
        let wanted = Wanted {
            log_density,
            score,
            time_score: None,
            laplacian: None,
        };
        let scratch = &mut self.0.scratch();
        self.0.evaluate(points, &[Level::data()], wanted, scratch);
    }
}

impl Energy for MixtureLaw {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn free_energy(&self, _: f64) -> f64 {
        0.0
    }

    fn energy(&self, _: &[f64], points: &[f64], out: &mut [f64]) {
        self.evaluate(points, out, None);
        out.iter_mut().for_each(|u| *u = -*u);
    }

    fn score(&self, _: &[f64], points: &[f64], out: &mut [f64]) {
        let mut log_density = vec![0.0; points.len() / self.dim()];
        self.evaluate(points, &mut log_density, Some(out));
    }

    fn time_score(&self, _: &[f64], _: &[f64], out: &mut [f64]) {
        out.fill(0.0);
    }
}
