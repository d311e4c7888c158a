//! Expectation maximisation for Gaussian mixtures with a ridge: E-step and M-step as sums over fixed shares of the rows.
//!
//! The M-step is a maximum a posteriori one. With counts N_k and scatter S_k about the mean, and the pooled covariance
//! `P = sum_k S_k / n` (shrunk towards its diagonal by d rows' worth),
//! `Sigma_k = (S_k + nu P) / (N_k + nu) + diag(floor)`: a component with few rows borrows its shape from all, and no direction is
//! narrower than the data resolve. Low rank: the leading axes of Sigma_k by a few steps of subspace iteration, one variance for the rest.

use super::super::lanes::{AddGram, LANES, Lane, Shares, Whiten, WhitenColumns, load};
use super::super::wrapped::WrapColumns;
use super::axes::leading_axes;
use super::{Shape, lower_inverse};
use crate::energy::nearest;
use crate::engine::kernel::dispatch::dispatch;
use crate::engine::kernel::gemm::{add_gram, packed_len};
use crate::engine::{Isa, Pool};
use crate::system::matrix::{add, cholesky, dot};
use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Rows whose scatter is added at once.
const GROUP: usize = 128;
/// Columns up to which plain scalar products beat a packed matrix product.
const NARROW: usize = 24;
/// Most shares of the rows; fixed by the problem, never by the number of threads.
const MOST_SHARES: usize = 16;
/// Numbers that the sums of all shares may hold together (128 MB).
const BUDGET: usize = 1 << 24;
/// A smaller share of a row does not count towards a component.
const LEAST_SHARE: f64 = 1e-6;

/// A mixture while it is fitted.
#[derive(Clone)]
pub(super) struct Model {
    pub shape: Shape,
    pub dim: usize,
    pub weights: Vec<f64>,
    pub means: Vec<f64>,
    /// A matrix per component, or its diagonal.
    pub covariances: Vec<f64>,
    /// Inverse Cholesky factors, or inverse variances.
    whitening: Vec<f64>,
    /// log weight - 1/2 log det(2 pi Sigma).
    constants: Vec<f64>,
    /// Leading axes, where few are kept.
    axes: Vec<f64>,
    /// Period of each column, 0 for none; empty if none has one.
    periods: Vec<f64>,
}

/// Where the rows are and how they are summed.
#[derive(Clone, Copy)]
pub(super) struct Em<'a> {
    pub rows: &'a [f64],
    /// Weights of the rows; empty if all count the same.
    pub weights: &'a [f64],
    pub dim: usize,
    pub floor: &'a [f64],
    /// Period of each column, 0 for none; empty if none has one.
    pub periods: &'a [f64],
    /// nu, in rows.
    pub prior: f64,
    pub pool: Option<&'a Pool>,
    pub isa: Isa,
}

/// Sums of one pass, about the means of the model that made the shares.
struct Sums {
    log_likelihood: f64,
    counts: Vec<f64>,
    firsts: Vec<f64>,
    seconds: Vec<f64>,
}

impl Model {
    fn per_component(&self) -> usize {
        match self.shape {
            Shape::Diagonal => self.dim,
            _ => self.dim * self.dim,
        }
    }

    /// Brings whitening and constants in line with weights and covariances; false where a covariance is not positive definite.
    fn refresh(&mut self) -> bool {
        let (dim, size) = (self.dim, self.per_component());
        self.whitening.clear();
        self.constants.clear();
        for (weight, covariance) in self.weights.iter().zip(self.covariances.chunks_exact(size)) {
            let log_det: f64 = if !self.periods.is_empty() {
                // Part of the cost of each column.
                0.0
            } else if self.shape == Shape::Diagonal {
                self.whitening.extend(covariance.iter().map(|v| 1.0 / v));
                covariance.iter().map(|v| v.ln()).sum()
            } else {
                let Some(factor) = cholesky(covariance, dim) else {
                    return false;
                };
                self.whitening.append(&mut lower_inverse(&factor, dim));
                (0..dim).map(|i| 2.0 * factor[i * dim + i].ln()).sum()
            };
            let constant = weight.ln() - 0.5 * (log_det + dim as f64 * TAU.ln());
            self.constants.push(constant);
        }
        self.constants.iter().all(|c| c.is_finite())
    }

    /// Writes log weight + log N of every component for a block of rows.
    fn terms(&self, isa: Isa, x: &[Lane<f64>], room: &mut [Lane<f64>], terms: &mut [Lane<f64>]) {
        let (dim, size) = (self.dim, self.per_component());
        if !self.periods.is_empty() {
            return self.wrapped_terms(isa, x, terms, None);
        }
        for (k, term) in terms.iter_mut().enumerate() {
            let (mean, whitening) = (
                &self.means[k * dim..][..dim],
                &self.whitening[k * size..][..size],
            );
            if self.shape == Shape::Diagonal {
                let work = WhitenColumns {
                    inverse: whitening,
                    mean,
                    x,
                    out: term,
                };
                dispatch(isa, work);
            } else {
                let work = Whiten {
                    matrix: whitening,
                    mean,
                    x,
                    centred: room,
                    out: term,
                };
                dispatch(isa, work);
            }
            for value in term {
                *value = self.constants[k] - 0.5 * *value;
            }
        }
    }

    /// The same where columns are periodic; `moments` gets the first and second moments of all components and columns over the images.
    fn wrapped_terms(
        &self,
        isa: Isa,
        x: &[Lane<f64>],
        terms: &mut [Lane<f64>],
        mut moments: Option<&mut [[Lane<f64>; 2]]>,
    ) {
        let dim = self.dim;
        for (k, term) in terms.iter_mut().enumerate() {
            let part = k * dim..(k + 1) * dim;
            let work = WrapColumns {
                variances: &self.covariances[part.clone()],
                mean: &self.means[part.clone()],
                periods: &self.periods,
                x,
                out: term,
                moments: moments.as_deref_mut().map(|m| &mut m[part]),
            };
            dispatch(isa, work);
            for value in term {
                *value = self.constants[k] - 0.5 * *value;
            }
        }
    }

    /// log p of every row.
    pub fn log_densities(&self, isa: Isa, rows: &[f64]) -> Vec<f64> {
        let (dim, count) = (self.dim, self.weights.len());
        let (mut x, mut room) = (vec![[0.0; LANES]; dim], vec![[0.0; LANES]; dim]);
        let (mut terms, mut log_sum) = (vec![[0.0; LANES]; count], [0.0; LANES]);
        let mut out = Vec::with_capacity(rows.len() / dim);
        for block in rows.chunks(LANES * dim) {
            load(block, dim, &mut x);
            self.terms(isa, &x, &mut room, &mut terms);
            let work = Shares {
                terms: &mut terms,
                least: 0.0,
                log_sum: &mut log_sum,
            };
            dispatch(isa, work);
            out.extend_from_slice(&log_sum[..block.len() / dim]);
        }
        out
    }

    /// The mixture `weight self + (1 - weight) other`.
    pub fn joined(mut self, weight: f64, other: &Model) -> Model {
        self.weights.iter_mut().for_each(|w| *w *= weight);
        let others = other.weights.iter().map(|w| w * (1.0 - weight));
        self.weights.extend(others);
        self.means.extend_from_slice(&other.means);
        self.covariances.extend_from_slice(&other.covariances);
        self.axes.extend_from_slice(&other.axes);
        self.refresh();
        self
    }

    /// The same model with every covariance multiplied by `factor`.
    pub fn inflated(&self, factor: f64) -> Option<Model> {
        let mut model = self.clone();
        model.covariances.iter_mut().for_each(|v| *v *= factor);
        model.refresh().then_some(model)
    }
}

impl Em<'_> {
    fn len(&self) -> usize {
        self.rows.len() / self.dim
    }

    /// Sum of the weights.
    fn total(&self) -> f64 {
        match self.weights {
            [] => self.len() as f64,
            weights => weights.iter().sum(),
        }
    }

    /// Weight of a row.
    fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    /// A model from clusters: one M-step.
    pub fn start(&self, shape: Shape, clusters: &[usize], count: usize) -> Option<Model> {
        let dim = self.dim;
        let mut model = Model {
            shape,
            dim,
            weights: vec![1.0; count],
            means: vec![0.0; count * dim],
            covariances: vec![],
            whitening: vec![],
            constants: vec![],
            axes: vec![],
            periods: self.periods.to_vec(),
        };
        // Means of the clusters first, so that the scatter is about points nearby.
        let mut counts = vec![0.0_f64; count];
        for (i, (row, k)) in self.rows.chunks_exact(dim).zip(clusters).enumerate() {
            counts[*k] += self.weight(i);
            add(self.weight(i), row, &mut model.means[k * dim..][..dim]);
        }
        for (mean, count) in model.means.chunks_exact_mut(dim).zip(&counts) {
            let count = if *count > 0.0 { *count } else { 1.0 };
            mean.iter_mut().for_each(|m| *m /= count);
        }
        let sums = self.sums(&model, Some(clusters));
        self.maximise(&mut model, &sums)?;
        Some(model)
    }

    /// Iterates until the mean log-likelihood of a row rises by less than `tolerance`, at most `steps` times; gives that mean and
    /// the model. `None` where the numbers break down.
    pub fn run(&self, mut model: Model, (tolerance, steps): (f64, usize)) -> Option<(f64, Model)> {
        let mut last = f64::NEG_INFINITY;
        for _ in 0..steps {
            let sums = self.sums(&model, None);
            let mean = sums.log_likelihood / self.total();
            if !mean.is_finite() {
                return None;
            }
            let rise = mean - last;
            last = mean;
            if rise < tolerance {
                break;
            }
            self.maximise(&mut model, &sums)?;
        }
        Some((last, model))
    }

    /// The E-step and the sums that the M-step needs; with `clusters`, rows belong to theirs wholly.
    fn sums(&self, model: &Model, clusters: Option<&[usize]>) -> Sums {
        let n = self.len();
        let numbers = model.weights.len() * (model.per_component() + self.dim);
        let shares = (n / 1024).clamp(1, MOST_SHARES.min((BUDGET / numbers).max(1)));
        let length = n.div_ceil(shares).next_multiple_of(LANES);
        let ranges: Vec<Range<usize>> = (0..n.div_ceil(length))
            .map(|i| i * length..n.min((i + 1) * length))
            .collect();
        let results: Vec<Mutex<Option<Sums>>> = ranges.iter().map(|_| Mutex::new(None)).collect();
        let job = |_: usize, i: usize| {
            let sums = self.share_sums(model, ranges[i].clone(), clusters);
            *results[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(sums);
        };
        match self.pool {
            Some(pool) => pool.run(ranges.len(), &job),
            None => (0..ranges.len()).for_each(|i| job(0, i)),
        }
        let mut parts = results
            .into_iter()
            .filter_map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner));
        let mut total = parts
            .next()
            .unwrap_or_else(|| self.share_sums(model, 0..0, clusters));
        for part in parts {
            total.log_likelihood += part.log_likelihood;
            add(1.0, &part.counts, &mut total.counts);
            add(1.0, &part.firsts, &mut total.firsts);
            add(1.0, &part.seconds, &mut total.seconds);
        }
        total
    }

    fn share_sums(&self, model: &Model, range: Range<usize>, clusters: Option<&[usize]>) -> Sums {
        let (dim, count, size) = (self.dim, model.weights.len(), model.per_component());
        let rows = &self.rows[range.start * dim..range.end * dim];
        let n = range.len();
        if !self.periods.is_empty() {
            return self.wrapped_sums(model, range, clusters);
        }
        let mut shares = vec![0.0; count * n];
        let mut log_likelihood = 0.0;
        if let Some(clusters) = clusters {
            for (i, k) in clusters[range.clone()].iter().enumerate() {
                shares[k * n + i] = self.weight(range.start + i);
            }
        } else {
            let (mut x, mut room) = (vec![[0.0; LANES]; dim], vec![[0.0; LANES]; dim]);
            let (mut terms, mut log_sum) = (vec![[0.0; LANES]; count], [0.0; LANES]);
            for (b, block) in rows.chunks(LANES * dim).enumerate() {
                let filled = block.len() / dim;
                load(block, dim, &mut x);
                model.terms(self.isa, &x, &mut room, &mut terms);
                let work = Shares {
                    terms: &mut terms,
                    least: LEAST_SHARE,
                    log_sum: &mut log_sum,
                };
                dispatch(self.isa, work);
                let from = range.start + b * LANES;
                log_likelihood += self.weigh(from, filled, &mut terms, &mut log_sum);
                for (term, shares) in terms.iter().zip(shares.chunks_exact_mut(n)) {
                    shares[b * LANES..][..filled].copy_from_slice(&term[..filled]);
                }
            }
        }
        let mut sums = Sums {
            log_likelihood,
            counts: vec![0.0; count],
            firsts: vec![0.0; count * dim],
            seconds: vec![0.0; count * size],
        };
        let mut group = Group::new(self.isa, dim);
        for (k, shares) in shares.chunks_exact(n.max(1)).enumerate() {
            let mean = &model.means[k * dim..][..dim];
            let first = &mut sums.firsts[k * dim..][..dim];
            let second = &mut sums.seconds[k * size..][..size];
            for (row, share) in rows.chunks_exact(dim).zip(shares) {
                if *share == 0.0 {
                    continue;
                }
                sums.counts[k] += share;
                if model.shape == Shape::Diagonal {
                    for j in 0..dim {
                        let a = row[j] - mean[j];
                        first[j] += share * a;
                        second[j] += share * a * a;
                    }
                } else {
                    group.push(row, mean, *share, first, second);
                }
            }
            group.flush(second);
        }
        sums
    }

    /// The sums of rows with periodic columns: which image a value belongs to is a label like its component, so that the distances are
    /// those averaged over the images.
    fn wrapped_sums(&self, model: &Model, range: Range<usize>, clusters: Option<&[usize]>) -> Sums {
        let (dim, count) = (self.dim, model.weights.len());
        let rows = &self.rows[range.start * dim..range.end * dim];
        let mut sums = Sums {
            log_likelihood: 0.0,
            counts: vec![0.0; count],
            firsts: vec![0.0; count * dim],
            seconds: vec![0.0; count * dim],
        };
        if let Some(clusters) = clusters {
            for (i, row) in rows.chunks_exact(dim).enumerate() {
                let (k, weight) = (clusters[range.start + i], self.weight(range.start + i));
                sums.counts[k] += weight;
                for (j, x) in row.iter().enumerate() {
                    let a = x - model.means[k * dim + j];
                    let period = self.periods[j];
                    let a = if period > 0.0 { nearest(a, period) } else { a };
                    sums.firsts[k * dim + j] += weight * a;
                    sums.seconds[k * dim + j] += weight * a * a;
                }
            }
            return sums;
        }
        let mut x = vec![[0.0; LANES]; dim];
        let (mut terms, mut log_sum) = (vec![[0.0; LANES]; count], [0.0; LANES]);
        let mut moments = vec![[[0.0; LANES]; 2]; count * dim];
        for (b, block) in rows.chunks(LANES * dim).enumerate() {
            let filled = block.len() / dim;
            load(block, dim, &mut x);
            model.wrapped_terms(self.isa, &x, &mut terms, Some(&mut moments));
            let work = Shares {
                terms: &mut terms,
                least: LEAST_SHARE,
                log_sum: &mut log_sum,
            };
            dispatch(self.isa, work);
            let from = range.start + b * LANES;
            sums.log_likelihood += self.weigh(from, filled, &mut terms, &mut log_sum);
            for (k, (shares, moments)) in terms.iter().zip(moments.chunks_exact(dim)).enumerate() {
                let shares = &shares[..filled];
                if shares.iter().all(|share| *share == 0.0) {
                    continue;
                }
                sums.counts[k] += shares.iter().sum::<f64>();
                for (j, [first, second]) in moments.iter().enumerate() {
                    sums.firsts[k * dim + j] += dot(shares, &first[..filled]);
                    sums.seconds[k * dim + j] += dot(shares, &second[..filled]);
                }
            }
        }
        sums
    }

    /// Multiplies the shares of a block of rows by their weights, and gives the sum of their log-likelihoods.
    fn weigh(
        &self,
        from: usize,
        filled: usize,
        terms: &mut [Lane<f64>],
        log_sum: &mut Lane<f64>,
    ) -> f64 {
        if !self.weights.is_empty() {
            let weights = &self.weights[from..from + filled];
            for lane in terms.iter_mut().chain([&mut *log_sum]) {
                for (x, w) in lane.iter_mut().zip(weights) {
                    // A row of weight zero says nothing, however far away.
                    *x = if *w > 0.0 { *x * w } else { 0.0 };
                }
            }
        }
        log_sum[..filled].iter().sum()
    }

    /// The M-step.
    fn maximise(&self, model: &mut Model, sums: &Sums) -> Option<()> {
        let (dim, size, n) = (self.dim, model.per_component(), self.total());
        let diagonal = model.shape == Shape::Diagonal;
        let mut seconds = sums.seconds.clone();
        for (k, count) in sums.counts.iter().enumerate() {
            // A component that lost its rows stays where it is.
            if *count < 1e-6 {
                continue;
            }
            let second = &mut seconds[k * size..][..size];
            let step: Vec<f64> = sums.firsts[k * dim..][..dim]
                .iter()
                .map(|f| f / count)
                .collect();
            for i in 0..dim {
                if diagonal {
                    second[i] = (second[i] - count * step[i] * step[i]).max(0.0);
                } else {
                    add(-count * step[i], &step, &mut second[i * dim..][..dim]);
                }
            }
            add(1.0, &step, &mut model.means[k * dim..][..dim]);
        }
        let mut pooled = vec![0.0; size];
        for second in seconds.chunks_exact(size) {
            add(1.0 / n, second, &mut pooled);
        }
        if !diagonal {
            let keep = n / (n + dim as f64);
            for i in 0..dim {
                for j in (0..dim).filter(|j| *j != i) {
                    pooled[i * dim + j] *= keep;
                }
            }
        }
        for (second, count) in seconds.chunks_exact_mut(size).zip(&sums.counts) {
            add(self.prior, &pooled, second);
            second.iter_mut().for_each(|s| *s /= count + self.prior);
            for (i, floor) in self.floor.iter().enumerate() {
                second[if diagonal { i } else { i * dim + i }] += floor;
            }
        }
        model.covariances = seconds;
        // A tenth of a row for every component keeps all weights positive.
        let total = n + 0.1 * sums.counts.len() as f64;
        model.weights = sums.counts.iter().map(|c| (c + 0.1) / total).collect();
        if let Shape::LowRank(rank) = model.shape {
            self.reduce(model, rank);
        }
        model.refresh().then_some(())
    }

    /// Keeps the leading axes of every covariance and one variance for the rest.
    fn reduce(&self, model: &mut Model, rank: usize) {
        let dim = self.dim;
        let first = model.axes.is_empty();
        if first {
            // Axes of the coordinates with most variance are as good a start as any.
            for matrix in model.covariances.chunks_exact(dim * dim) {
                let mut order: Vec<usize> = (0..dim).collect();
                order.sort_by(|a, b| matrix[b * dim + b].total_cmp(&matrix[a * dim + a]));
                for i in &order[..rank] {
                    model
                        .axes
                        .extend((0..dim).map(|j| f64::from(u8::from(j == *i))));
                }
            }
        }
        let steps = if first { 30 } else { 4 };
        let axes = model.axes.chunks_exact_mut(rank * dim);
        for (matrix, axes) in model.covariances.chunks_exact_mut(dim * dim).zip(axes) {
            let variances = leading_axes(matrix, dim, axes, steps);
            let trace: f64 = (0..dim).map(|i| matrix[i * dim + i]).sum();
            let floor = self.floor.iter().fold(f64::INFINITY, |a, b| a.min(*b));
            let rest = (trace - variances.iter().sum::<f64>()) / (dim - rank) as f64;
            let rest = rest.max(floor);
            matrix.fill(0.0);
            for i in 0..dim {
                matrix[i * dim + i] = rest;
            }
            for (axis, v) in axes.chunks_exact(dim).zip(&variances) {
                for i in 0..dim {
                    add(
                        (v - rest).max(0.0) * axis[i],
                        axis,
                        &mut matrix[i * dim..][..dim],
                    );
                }
            }
        }
    }
}

/// Rows of one component, centred and weighted, that wait until their scatter is worth a matrix product.
struct Group {
    isa: Isa,
    dim: usize,
    filled: usize,
    values: Vec<f64>,
    packed: Vec<f64>,
}

impl Group {
    fn new(isa: Isa, dim: usize) -> Group {
        Group {
            isa,
            dim,
            filled: 0,
            values: vec![0.0; dim * GROUP],
            packed: vec![0.0; packed_len(isa, GROUP, dim)],
        }
    }

    fn push(
        &mut self,
        row: &[f64],
        mean: &[f64],
        share: f64,
        first: &mut [f64],
        second: &mut [f64],
    ) {
        let root = share.sqrt();
        for (j, first) in first.iter_mut().enumerate() {
            let a = row[j] - mean[j];
            *first += share * a;
            self.values[j * GROUP + self.filled] = root * a;
        }
        self.filled += 1;
        if self.filled == GROUP {
            self.flush(second);
        }
    }

    fn flush(&mut self, second: &mut [f64]) {
        if self.filled == 0 {
            return;
        }
        for line in self.values.chunks_exact_mut(GROUP) {
            line[self.filled..].fill(0.0);
        }
        self.filled = 0;
        if self.dim <= NARROW {
            let work = AddGram {
                lines: self.values.as_chunks::<LANES>().0,
                dim: self.dim,
                out: second,
            };
            return dispatch(self.isa, work);
        }
        let shape = (self.dim, GROUP);
        add_gram(
            self.isa,
            shape,
            &self.values,
            &self.values,
            &mut self.packed,
            second,
        );
    }
}

#[cfg(test)]
mod tests;
