//! What springs are fitted to: rows of the data, and noisy particles made of them.

use crate::particles::Subspace;
use crate::process::Process;
use crate::rng::{Permutation, Purpose, Stream};

/// Rows that springs are fitted to, in the model's coordinates.
#[derive(Debug, Clone, Copy)]
pub struct SpringRows<'a> {
    /// Rows of the data.
    pub start: &'a [f64],
    /// Rows of the second endpoint of an interpolant.
    pub end: Option<&'a [f64]>,
    /// Each row of the start belongs to the one of the end with its number, instead of to any.
    pub paired: bool,
    /// Exact scores of the data at both kinds of rows, where they are known.
    pub scores: [Option<&'a [f64]>; 2],
    /// Exact energies of the data there, where scores are known.
    pub energies: [Option<&'a [f64]>; 2],
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
    /// Exact energies of the sources; empty if unknown.
    pub(super) energies: Vec<f64>,
    /// Square of the share by which known scores are off where rows belong together ([`Coupling::REACH`](crate::coupling::Coupling::REACH)).
    pub(super) bias: f64,
}

impl Samples {
    pub(super) fn count(&self) -> usize {
        self.rows.len() / self.columns
    }

    /// Draws: the same rows and noise at all times, each row before any comes again. Even samples are of the first half of the rows, odd ones of the second.
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
            energies: Vec::new(),
            bias: if of.paired {
                (a.min(b) / share).powi(2)
            } else {
                0.0
            },
        };
        let mut point = vec![0.0; dim];
        for number in 0..count {
            let mut stream = Stream::new(seed, Purpose::Springs, 0, number as u64);
            let half = number % 2;
            let pick = |rows: &[f64], end: usize| {
                let all = rows.len() / dim;
                let (from, to) = [(0, all / 2), (all / 2, all)][half];
                let (round, place) = (number / 2 / (to - from), number / 2 % (to - from));
                let order = Permutation::new(
                    seed,
                    Purpose::SpringRows(end as u32),
                    (2 * round + half) as u64,
                    (to - from) as u64,
                );
                (from + order.at(place as u64) as usize) * dim
            };
            let first = pick(of.start, 0);
            let second = of.end.map(|end| {
                let partner = if of.paired { first } else { pick(end, 1) };
                (end, partner)
            });
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
                let energies = of.energies[usize::from(a < b)];
                let energy = energies.map(|energies| energies[at / dim]);
                samples.energies.extend(energy);
                let score = known[at..at + dim].iter().map(|s| s / share);
                outward(&score.collect::<Vec<_>>(), &mut samples.scores);
            }
        }
        samples
    }
}
