//! Exact samples of a path: of its marginal at a time, and of its endpoints.

use super::batch::{launch, threads_for};
use super::{Coefficients, ExactPath};
use crate::rng::{Purpose, Stream};
use crate::system::GaussianMixture;
use std::thread;

impl ExactPath {
    /// `n` samples of Y_t, row after row. Row i depends on (seed, time, i) alone.
    pub fn sample(&self, time: f64, n: usize, seed: u64) -> Vec<f64> {
        self.sample_for(Purpose::Evaluate, time, n, seed)
    }

    /// As [`ExactPath::sample`], with draws for a purpose of the caller's.
    pub fn sample_for(&self, purpose: Purpose, time: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut out = vec![0.0; n * self.start.dim()];
        self.fill_sample(purpose, time, seed, &mut out);
        out
    }

    fn fill_sample(&self, purpose: Purpose, time: f64, seed: u64, out: &mut [f64]) {
        let dim = self.start.dim();
        let c = Coefficients::at(&self.process, time);
        let gamma = c.gamma_squared.sqrt();
        let rows = out.len() / dim;
        let chunk = rows.div_ceil(threads_for(rows * dim * 3)).max(1);
        thread::scope(|scope| {
            for (block, part) in out.chunks_mut(chunk * dim).enumerate() {
                let work = move || {
                    let mut end_point = vec![0.0; dim];
                    for (row, point) in part.chunks_exact_mut(dim).enumerate() {
                        let row = (block * chunk + row) as u64;
                        // The bits of the time are the step: other times get other, independent draws.
                        let mut stream = Stream::new(seed, purpose, time.to_bits(), row);
                        self.start.sample_point(&mut stream, point);
                        if let Some(end) = &self.end {
                            end.sample_point(&mut stream, &mut end_point);
                        }
                        for (value, other) in point.iter_mut().zip(&end_point) {
                            *value = c.alpha * *value + c.beta * other + gamma * stream.normal();
                        }
                    }
                };
                launch(scope, rows > chunk, work);
            }
        });
    }

    /// `n` independent endpoints: samples of X_0 and, for interpolants, of X_1.
    pub fn sample_endpoints(&self, n: usize, seed: u64) -> (Vec<f64>, Option<Vec<f64>>) {
        let dim = self.start.dim();
        let draw = |mixture: &GaussianMixture, purpose| {
            let mut points = vec![0.0; n * dim];
            for (row, point) in points.chunks_exact_mut(dim).enumerate() {
                mixture.sample_point(&mut Stream::new(seed, purpose, 0, row as u64), point);
            }
            points
        };
        (
            draw(&self.start, Purpose::Data),
            self.end.as_ref().map(|end| draw(end, Purpose::End)),
        )
    }
}
