//! What springs are fitted to: rows of the data, and noisy particles made of them.

use crate::particles::Subspace;
use crate::process::Process;
use crate::rng::{Purpose, Stream};

/// Rows that springs are fitted to, in the model's coordinates.
#[derive(Debug, Clone, Copy)]
pub struct SpringRows<'a> {
    /// Rows of the data.
    pub start: &'a [f64],
    /// Rows of the second endpoint of an interpolant.
    pub end: Option<&'a [f64]>,
    /// Exact scores of the data at both kinds of rows, where they are known.
    pub scores: [Option<&'a [f64]>; 2],
    /// What the rows' points are of, if particles come without their centre.
    pub subspace: Option<Subspace>,
    /// Numbers of a row.
    pub dim: usize,
    /// Particles of a row.
    pub particles: usize,
    /// Mean and variance of the data, for the Gaussian that a diffusion has below the springs.
    pub mean: &'a [f64],
    /// See there.
    pub variance: f64,
    /// Whether mirror images may differ.
    pub chiral: bool,
}

/// Noisy particles at a time.
pub(super) struct Samples {
    pub(super) columns: usize,
    pub(super) space: usize,
    pub(super) rows: Vec<f64>,
    /// Slope of the Gaussian below the springs; empty if there is none.
    pub(super) gaussian: Vec<f64>,
    /// Exact scores of the sources divided by their share; empty if unknown.
    pub(super) scores: Vec<f64>,
}

impl Samples {
    pub(super) fn count(&self) -> usize {
        self.rows.len() / self.columns
    }

    /// Draws: the same rows and noise at all times. Even samples are of the first half of the rows, odd ones of the second.
    pub(super) fn at(
        process: &Process,
        time: f64,
        of: &SpringRows<'_>,
        count: usize,
        seed: u64,
    ) -> Samples {
        let dim = of.dim;
        let columns = of.subspace.map_or(dim, |of| of.columns());
        let (a, b, noise) = (
            process.x0_scale(time),
            process.x1_scale(time),
            process.noise(time),
        );
        let (share, known) = if a >= b {
            (a, of.scores[0])
        } else {
            (b, of.scores[1])
        };
        let below = (!process.is_interpolant()).then_some(a * a * of.variance + noise * noise);
        let outward = |point: &[f64], out: &mut Vec<f64>| {
            let from = out.len();
            out.resize(from + columns, 0.0);
            match of.subspace {
                Some(subspace) => subspace.outward(point, &mut out[from..]),
                None => out[from..].copy_from_slice(point),
            }
        };
        let mut samples = Samples {
            columns,
            space: columns / of.particles,
            rows: Vec::with_capacity(count * columns),
            gaussian: Vec::new(),
            scores: Vec::new(),
        };
        let mut point = vec![0.0; dim];
        for number in 0..count {
            let mut stream = Stream::new(seed, Purpose::Springs, 0, number as u64);
            let mut pick = |rows: &[f64]| {
                let all = rows.len() / dim;
                let (from, to) = match number % 2 {
                    0 => (0, all / 2),
                    _ => (all / 2, all),
                };
                (from + stream.below((to - from) as u64) as usize) * dim
            };
            let first = pick(of.start);
            let second = of.end.map(|end| (end, pick(end)));
            for (i, y) in point.iter_mut().enumerate() {
                let other = second.map_or(0.0, |(end, at)| end[at + i]);
                *y = a * of.start[first + i] + b * other + noise * stream.normal();
            }
            outward(&point, &mut samples.rows);
            if let Some(below) = below {
                let slope = point.iter().zip(of.mean).map(|(y, m)| (y - a * m) / below);
                outward(&slope.collect::<Vec<_>>(), &mut samples.gaussian);
            }
            if let Some(known) = known {
                let at = if a >= b {
                    first
                } else {
                    second.map_or(0, |(_, at)| at)
                };
                let score = known[at..at + dim].iter().map(|s| s / share);
                outward(&score.collect::<Vec<_>>(), &mut samples.scores);
            }
        }
        samples
    }
}
