//! One pass over all samples: the heart of MBAR. Everything the solver and the error bars need comes out of it as sums.

use crate::engine::kernel::gemm::{add_gram, packed_len};
use crate::engine::kernel::softmax::{TILE, exp_row, softmax_columns};
use crate::engine::{Isa, Pool, company};
use crate::free_energy::ReducedEnergies;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Shares of the samples that are summed apart. Fixed by the shape of the problem, never by the number of threads or processes.
const MOST_SHARES: usize = 256;
/// Fewer samples than this are not worth another share.
const SMALLEST_SHARE: usize = 2048;
/// Numbers that the Gram matrices of all shares may hold together (128 MB).
const GRAM_BUDGET: usize = 1 << 24;

/// The mixture of the sampled states, as one pass sees it.
pub(super) struct Pass<'a> {
    pub energies: &'a dyn ReducedEnergies,
    /// The states with samples.
    pub sampled: &'a [usize],
    /// `ln N_k + f_k` of each of them.
    pub offsets: Vec<f64>,
    /// How often each sample counts (bootstrap); once if absent.
    pub weights: Option<&'a [f64]>,
    pub pool: &'a Pool,
    pub isa: Isa,
}

/// Further columns of the weight matrix: `fill(samples, log_denominators, rows)` writes rows of [`TILE`] numbers, one row
/// per column.
pub(super) struct Columns<'a> {
    pub count: usize,
    #[allow(clippy::type_complexity)]
    pub fill: &'a (dyn Fn(Range<usize>, &[f64; TILE], &mut [f64]) + Sync),
}

/// Sums over all samples, first the sampled states (`p_nk = N_k W_nk`), then the further columns.
#[derive(Clone, Default)]
pub(super) struct Sums {
    /// Sum of the log-denominators.
    pub log_denominators: f64,
    /// Sum of each column.
    pub totals: Vec<f64>,
    /// Scalar products of all columns; empty unless asked for.
    pub gram: Vec<f64>,
}

/// Where a running log-sum-exp stands: the largest term and the sum of exp(term - largest).
#[derive(Clone, Copy)]
struct LogSum {
    largest: f64,
    sum: f64,
}

impl LogSum {
    const EMPTY: LogSum = LogSum {
        largest: f64::NEG_INFINITY,
        sum: 0.0,
    };

    fn join(self, other: LogSum) -> LogSum {
        let largest = self.largest.max(other.largest);
        if largest == f64::NEG_INFINITY {
            return LogSum::EMPTY;
        }
        LogSum {
            largest,
            sum: self.sum * (self.largest - largest).exp()
                + other.sum * (other.largest - largest).exp(),
        }
    }
}

impl Pass<'_> {
    /// Samples of each share.
    fn shares(&self, columns: usize) -> Vec<Range<usize>> {
        let n = self.energies.samples();
        let most = MOST_SHARES.min((GRAM_BUDGET / (columns * columns)).max(4));
        let count = (n / SMALLEST_SHARE).clamp(1, most);
        // Whole tiles, so that only the last one is not full.
        let length = n.div_ceil(count).next_multiple_of(TILE);
        (0..n.div_ceil(length))
            .map(|i| i * length..n.min((i + 1) * length))
            .collect()
    }

    /// Fills the tile's rows with `p_nk` of the samples and gives the log-denominators; columns beyond the samples are 0.
    fn posterior(
        &self,
        samples: &Range<usize>,
        tile: &mut [f64],
        log_denominators: &mut [f64; TILE],
    ) {
        let width = samples.len();
        for ((row, &state), offset) in tile
            .chunks_exact_mut(TILE)
            .zip(self.sampled)
            .zip(&self.offsets)
        {
            self.energies.read(state, samples.start, &mut row[..width]);
            row[..width].iter_mut().for_each(|u| *u = offset - *u);
            row[width..].fill(0.0);
        }
        softmax_columns(self.isa, tile, log_denominators);
        if width < TILE {
            for row in tile.chunks_exact_mut(TILE) {
                row[width..].fill(0.0);
            }
        }
    }

    /// Runs `job` for every share, on all threads and processes, and gives its `width` numbers for each, in the order of the shares.
    fn each_share(
        &self,
        columns: usize,
        width: usize,
        job: &(dyn Fn(Range<usize>, &mut [f64]) + Sync),
    ) -> Vec<f64> {
        let shares = self.shares(columns);
        let company = self.pool.company().map(|company| &**company);
        let count = shares.len();
        let own = company.map_or(0..count, |company| company::share(company, count));
        let mut results = vec![0.0; count * width];
        let parts = results[own.start * width..own.end * width].chunks_exact_mut(width.max(1));
        let parts: Vec<Mutex<&mut [f64]>> = parts.map(Mutex::new).collect();
        self.pool.run(parts.len(), &|_, i| {
            let mut part = parts[i].lock().unwrap_or_else(PoisonError::into_inner);
            job(shares[own.start + i].clone(), &mut part);
        });
        if let Some(company) = company {
            company::gather(company, count, &|share| share * width, &mut results);
        }
        results
    }

    /// The sums over all samples.
    pub fn sums(&self, gram: bool, columns: Option<&Columns<'_>>) -> Sums {
        let states = self.sampled.len();
        let all = states + columns.map_or(0, |columns| columns.count);
        let width = 1 + all + if gram { all * all } else { 0 };
        let parts = self.each_share(all, width, &|share, out| {
            let sums = self.share_sums(share, gram, columns);
            out[0] = sums.log_denominators;
            out[1..=all].copy_from_slice(&sums.totals);
            out[1 + all..].copy_from_slice(&sums.gram);
        });
        let mut total = vec![0.0; width];
        for part in parts.chunks_exact(width) {
            for (sum, x) in total.iter_mut().zip(part) {
                *sum += x;
            }
        }
        Sums {
            log_denominators: total[0],
            gram: total.split_off(1 + all),
            totals: total.split_off(1),
        }
    }

    fn share_sums(&self, share: Range<usize>, gram: bool, columns: Option<&Columns<'_>>) -> Sums {
        let states = self.sampled.len();
        let all = states + columns.map_or(0, |columns| columns.count);
        let mut tile = vec![0.0; all * TILE];
        let mut weighted = vec![
            0.0;
            if self.weights.is_some() {
                all * TILE
            } else {
                0
            }
        ];
        let mut packed = vec![
            0.0;
            if gram {
                packed_len(self.isa, TILE, all)
            } else {
                0
            }
        ];
        let mut log_denominators = [0.0; TILE];
        let mut sums = Sums {
            log_denominators: 0.0,
            totals: vec![0.0; all],
            gram: vec![0.0; if gram { all * all } else { 0 }],
        };
        for first in share.clone().step_by(TILE) {
            let samples = first..share.end.min(first + TILE);
            let (own, further) = tile.split_at_mut(states * TILE);
            self.posterior(&samples, own, &mut log_denominators);
            if let Some(columns) = columns {
                further.fill(0.0);
                (columns.fill)(samples.clone(), &log_denominators, further);
            }
            let weights = self.weights.map(|weights| &weights[samples.clone()]);
            let terms = log_denominators[..samples.len()].iter();
            sums.log_denominators += match weights {
                None => terms.sum::<f64>(),
                Some(weights) => terms.zip(weights).map(|(x, w)| w * x).sum(),
            };
            let left = match weights {
                None => &tile,
                Some(weights) => {
                    for (out, row) in weighted.chunks_exact_mut(TILE).zip(tile.chunks_exact(TILE)) {
                        for ((out, x), w) in out.iter_mut().zip(row).zip(weights) {
                            *out = w * x;
                        }
                        out[weights.len()..].fill(0.0);
                    }
                    &weighted
                }
            };
            for (total, row) in sums.totals.iter_mut().zip(left.as_chunks::<TILE>().0) {
                *total += lane_sum(row);
            }
            if gram {
                add_gram(
                    self.isa,
                    (all, TILE),
                    left,
                    &tile,
                    &mut packed,
                    &mut sums.gram,
                );
            }
        }
        sums
    }

    /// `log sum_n exp(-u_n - log_denominator_n)` of other states: the logarithm of their normalisers.
    pub fn log_sums(&self, others: &dyn ReducedEnergies, which: &[usize]) -> Vec<f64> {
        let states = self.sampled.len();
        let width = 2 * which.len();
        let parts = self.each_share(states, width, &|share, out| {
            let mut tile = vec![0.0; states * TILE];
            let mut row = [0.0; TILE];
            let mut log_denominators = [0.0; TILE];
            let mut sums = vec![LogSum::EMPTY; which.len()];
            for first in share.clone().step_by(TILE) {
                let samples = first..share.end.min(first + TILE);
                self.posterior(&samples, &mut tile, &mut log_denominators);
                for (sum, &state) in sums.iter_mut().zip(which) {
                    others.read(state, first, &mut row[..samples.len()]);
                    row[samples.len()..].fill(f64::INFINITY);
                    for (t, denominator) in row.iter_mut().zip(&log_denominators) {
                        *t = -*t - denominator;
                    }
                    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    if largest == f64::NEG_INFINITY {
                        continue;
                    }
                    exp_row(self.isa, &mut row, largest);
                    let total = match self.weights {
                        None => lane_sum(&row),
                        Some(weights) => row
                            .iter()
                            .zip(&weights[samples.clone()])
                            .map(|(x, w)| w * x)
                            .sum(),
                    };
                    *sum = sum.join(LogSum {
                        largest,
                        sum: total,
                    });
                }
            }
            for (out, LogSum { largest, sum }) in out.as_chunks_mut().0.iter_mut().zip(sums) {
                *out = [largest, sum];
            }
        });
        let mut all = vec![LogSum::EMPTY; which.len()];
        for part in parts.chunks_exact(width.max(1)) {
            for (total, &[largest, sum]) in all.iter_mut().zip(part.as_chunks().0) {
                *total = total.join(LogSum { largest, sum });
            }
        }
        all.iter().map(|sum| sum.largest + sum.sum.ln()).collect()
    }
}

/// Eight partial sums in a fixed order, so that one addition need not wait for the other.
fn lane_sum(row: &[f64; TILE]) -> f64 {
    let lanes = row.as_chunks::<8>().0.iter().fold([0.0; 8], |sum, part| {
        std::array::from_fn::<f64, 8, _>(|i| sum[i] + part[i])
    });
    lanes.iter().sum()
}
