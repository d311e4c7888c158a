//! How much states share: the overlap matrix, one number for the whole, and the weakest links.

use crate::system::matrix::symmetric_eigen;
use serde::Serialize;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["klimovich2015guidelines"];

/// Neighbours that share less than this deserve a warning (Klimovich, Shirts, Mobley 2015, section 4.1).
pub const LOW_OVERLAP: f64 = 0.03;

/// Two states and what they share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// One state.
    pub from: usize,
    /// The other.
    pub to: usize,
    /// Overlap of these two alone, the smaller of `O_ij / (O_ii + O_ij)` and its counterpart: the entry of the matrix if there
    /// are no other states, and at most about one half. In a matrix of many states each entry is small, for near states too.
    pub overlap: f64,
}

/// Overlap between sampled states.
///
/// `O_ij = N_j sum_n W_ni W_nj` is the probability that a sample of state i, given all samples and not its origin, would be
/// assigned to state j (Klimovich, Shirts, Mobley, J. Comput.-Aided Mol. Des. 29, 397 (2015)).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overlap {
    /// Which states: those with samples.
    pub states: Vec<usize>,
    /// The matrix, row-major. Its rows sum to 1.
    pub matrix: Vec<f64>,
    /// Its eigenvalues, from 1 downwards.
    pub eigenvalues: Vec<f64>,
    /// 1 minus the second largest eigenvalue: 0 when some states are cut off from the others, 1 when all are the same.
    pub scalar: f64,
    /// Largest deviation of a row's sum from 1; beyond rounding, the equations were not solved.
    pub row_error: f64,
    /// The links that hold the states together (a tree of largest overlaps), weakest first.
    pub links: Vec<Link>,
}

impl Overlap {
    /// From `gram[i][j] = sum_n p_ni p_nj`, `p = N W`.
    pub(super) fn new(states: Vec<usize>, gram: &[f64], counts: &[f64]) -> Self {
        let size = states.len();
        let entry = |i: usize, j: usize| gram[i * size + j];
        let matrix: Vec<f64> = (0..size * size)
            .map(|at| entry(at / size, at % size) / counts[at / size])
            .collect();
        let symmetric: Vec<f64> = (0..size * size)
            .map(|at| {
                let (i, j) = (at / size, at % size);
                0.5 * (entry(i, j) + entry(j, i)) / (counts[i] * counts[j]).sqrt()
            })
            .collect();
        let (mut eigenvalues, _) = symmetric_eigen(&symmetric, size);
        eigenvalues.sort_by(|a, b| b.total_cmp(a));
        let row_error = matrix
            .chunks_exact(size)
            .map(|row| (row.iter().sum::<f64>() - 1.0).abs())
            .fold(0.0, f64::max);
        let alone = |i: usize, j: usize| {
            let (own, other) = (matrix[i * size + i], matrix[i * size + j]);
            other / (own + other)
        };
        let mutual = |i: usize, j: usize| alone(i, j).min(alone(j, i));
        let mut links = Vec::with_capacity(size.saturating_sub(1));
        // Prim, from the first state, along the largest overlaps.
        let mut open: Vec<Option<(f64, usize)>> = (0..size)
            .map(|k| (k > 0).then(|| (mutual(0, k), 0)))
            .collect();
        while let Some((k, (overlap, member))) = open
            .iter()
            .enumerate()
            .filter_map(|(k, entry)| entry.map(|entry| (k, entry)))
            .max_by(|a, b| a.1.0.total_cmp(&b.1.0))
        {
            links.push(Link {
                from: states[member.min(k)],
                to: states[member.max(k)],
                overlap,
            });
            open[k] = None;
            for (other, entry) in open.iter_mut().enumerate() {
                if let Some((best, member)) = entry
                    && mutual(k, other) > *best
                {
                    (*best, *member) = (mutual(k, other), k);
                }
            }
        }
        links.sort_by(|a, b| a.overlap.total_cmp(&b.overlap));
        Self {
            scalar: 1.0 - eigenvalues.get(1).copied().unwrap_or(0.0),
            states,
            matrix,
            eigenvalues,
            row_error,
            links,
        }
    }

    /// Links below [`LOW_OVERLAP`]: the differences that rest on them are not to be trusted.
    pub fn weak_links(&self) -> &[Link] {
        let count = self
            .links
            .partition_point(|link| link.overlap < LOW_OVERLAP);
        &self.links[..count]
    }
}
