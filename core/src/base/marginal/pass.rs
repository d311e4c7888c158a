//! The innermost loops of a marginal: a block of points along the axes, and one level of all of them.

use super::super::lanes::{LANES, Lane, ln, multiply, shares};
use super::super::wrapped::Images;
use super::{Frame, Marginal, NUMBERS, Scratch};
use crate::engine::Real;
use crate::engine::kernel::dispatch::Loop;

/// The points of a block along all axes.
pub(super) struct Project<'a, T> {
    pub marginal: &'a Marginal<T>,
    pub scratch: &'a mut Scratch<T>,
}

impl<T: Real> Loop for Project<'_, T> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (m, points) = (self.marginal, &self.scratch.points);
        let out = &mut self.scratch.projected;
        match &m.frame {
            Frame::Shared(None) => out.copy_from_slice(points),
            Frame::Shared(Some([basis, _])) => multiply::<T, FMA, false>(basis, points, out),
            Frame::Own { rank, matrices } => {
                if m.common == 0 {
                    multiply::<T, FMA, false>(&matrices[0], points, out);
                    return;
                }
                let size = rank * points.len();
                let blocks = out.chunks_exact_mut(rank + m.common);
                let matrices = matrices[0]
                    .chunks_exact(size)
                    .zip(matrices[1].chunks_exact(size));
                for ((axes, transposed), out) in matrices.zip(blocks) {
                    let (along, left) = out.split_at_mut(*rank);
                    multiply::<T, FMA, false>(axes, points, along);
                    multiply::<T, FMA, false>(transposed, along, left);
                    for (left, point) in left.iter_mut().zip(points) {
                        for lane in 0..LANES {
                            left[lane] = point[lane] - left[lane];
                        }
                    }
                }
            }
        }
    }
}

/// Results of one block, except the score.
pub(super) struct Block {
    pub log_density: Lane<f64>,
    pub time_score: Lane<f64>,
    pub laplacian: Lane<f64>,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            log_density: [0.0; LANES],
            time_score: [0.0; LANES],
            laplacian: [0.0; LANES],
        }
    }
}

/// One level of every point of a block.
pub(super) struct Pass<'a, T> {
    pub marginal: &'a Marginal<T>,
    pub level: &'a [Lane<T>; NUMBERS],
    /// Score, time score, Laplacian.
    pub need: [bool; 3],
    pub scratch: &'a mut Scratch<T>,
    pub out: &'a mut Block,
}

impl<T: Real> Loop for Pass<'_, T> {
    #[inline(always)]
    fn run<const FMA: bool>(mut self) {
        let m = self.marginal;
        for c in 0..m.components() {
            match (m.end.is_some(), self.need[1] || self.need[2]) {
                (false, false) => self.component::<FMA, false, false>(c),
                (false, true) => self.component::<FMA, false, true>(c),
                (true, false) => self.component::<FMA, true, false>(c),
                (true, true) => self.component::<FMA, true, true>(c),
            }
        }
        // Smaller shares add nothing at the precision of T; they are zero for good, whatever the neighbours are.
        let least = if size_of::<T>() == 4 { 1e-10 } else { 1e-18 };
        let [score, time, laplacian] = self.need;
        self.out.log_density = shares::<FMA>(&mut self.scratch.terms, least);
        if score {
            self.score::<FMA>();
        }
        if time {
            self.out.time_score = average(&self.scratch.terms, &self.scratch.rates);
        }
        if laplacian {
            self.out.laplacian = average(&self.scratch.terms, &self.scratch.traces);
            for score in &self.scratch.score {
                for (out, s) in self.out.laplacian.iter_mut().zip(score) {
                    *out -= s.to_f64() * s.to_f64();
                }
            }
        }
    }
}

/// sum_k shares_k values_k.
#[inline(always)]
fn average<T: Real>(shares: &[Lane<f64>], values: &[Lane<T>]) -> Lane<f64> {
    let mut sum = [0.0; LANES];
    for (share, value) in shares.iter().zip(values) {
        for lane in 0..LANES {
            sum[lane] += share[lane] * value[lane].to_f64();
        }
    }
    sum
}

impl<T: Real> Pass<'_, T> {
    /// log weight + log N of one component, its pulls a/v, and, if needed, its time derivative and the trace of its second derivatives
    /// plus its squared score.
    #[inline(always)]
    fn component<const FMA: bool, const ENDS: bool, const RATES: bool>(&mut self, c: usize) {
        let m = self.marginal;
        let [
            alpha,
            beta,
            start,
            end,
            noise,
            alpha_rate,
            beta_rate,
            start_rate,
            end_rate,
            noise_rate,
        ] = self.level;
        let width = m.varied + m.common;
        let coordinates = &m.coordinates[c * width..][..width];
        let projected = &self.scratch.projected[m.offsets[c]..][..width];
        let pulls = &mut self.scratch.pulls[c * width..][..width];
        let half = T::from_f64(0.5);
        // The coordinate of y - mean, and how fast the mean moves.
        let away = |p: T, [x, y, ..]: &[T; 4], lane: usize| {
            let a = (-alpha[lane]).mul_add::<FMA>(*x, p);
            if ENDS {
                (-beta[lane]).mul_add::<FMA>(*y, a)
            } else {
                a
            }
        };
        let motion = |[x, y, ..]: &[T; 4], lane: usize| {
            let a = alpha_rate[lane] * *x;
            if ENDS {
                beta_rate[lane].mul_add::<FMA>(*y, a)
            } else {
                a
            }
        };
        let variance = |[_, _, s, e]: &[T; 4], [start, end, noise]: [T; 3]| {
            let v = start.mul_add::<FMA>(*s, noise);
            if ENDS { end.mul_add::<FMA>(*e, v) } else { v }
        };
        let (mut sum, mut rate, mut trace) = ([0.0; LANES], [T::ZERO; LANES], [T::ZERO; LANES]);
        let mut periods = m.periods.iter();
        let varied = coordinates[..m.varied].chunks(8).zip(projected.chunks(8));
        for ((coordinates, projected), pulls) in varied.zip(pulls.chunks_mut(8)) {
            // One logarithm for eight variances; products of two stay within the range of single precision.
            let mut product = [1.0; LANES];
            let twos = coordinates.chunks(2).zip(projected.chunks(2));
            for ((coordinates, projected), pulls) in twos.zip(pulls.chunks_mut(2)) {
                let (mut two, mut square) = ([T::ONE; LANES], [T::ZERO; LANES]);
                for ((x, p), pull) in coordinates.iter().zip(projected).zip(pulls) {
                    if let Some(period) = periods.next().filter(|p| **p > 0.0) {
                        let a = std::array::from_fn(|lane| away(p[lane], x, lane).to_f64());
                        let v = std::array::from_fn(|lane| {
                            variance(x, [start[lane], end[lane], noise[lane]]).to_f64()
                        });
                        let images = Images::of::<FMA>(&a, &v, *period);
                        for lane in 0..LANES {
                            let inverse = 1.0 / images.variance[lane];
                            sum[lane] += images.cost[lane];
                            pull[lane] = T::from_f64(images.first[lane] * inverse);
                            if RATES {
                                let curvature = (images.second[lane] * inverse - 1.0) * inverse;
                                let curvature = T::from_f64(curvature);
                                trace[lane] += curvature;
                                let rates = [start_rate[lane], end_rate[lane], noise_rate[lane]];
                                rate[lane] += half * variance(x, rates) * curvature;
                            }
                        }
                        continue;
                    }
                    for lane in 0..LANES {
                        let a = away(p[lane], x, lane);
                        let v = variance(x, [start[lane], end[lane], noise[lane]]);
                        let inverse = T::ONE / v;
                        let w = a * inverse;
                        pull[lane] = w;
                        square[lane] = a.mul_add::<FMA>(w, square[lane]);
                        two[lane] = two[lane] * v;
                        if RATES {
                            let curvature = w.mul_add::<FMA>(w, -inverse);
                            trace[lane] += curvature;
                            let rates = [start_rate[lane], end_rate[lane], noise_rate[lane]];
                            let moved = w * motion(x, lane);
                            rate[lane] +=
                                (half * variance(x, rates)).mul_add::<FMA>(curvature, moved);
                        }
                    }
                }
                for lane in 0..LANES {
                    product[lane] *= two[lane].to_f64();
                    sum[lane] += square[lane].to_f64();
                }
            }
            for lane in 0..LANES {
                sum[lane] += ln(product[lane]);
            }
        }
        if m.common > 0 {
            // All directions that are no axis: one variance, and the part of y - mean in them.
            let others = T::from_f64((m.common - m.varied) as f64);
            let x = &coordinates[m.varied..];
            let (mut square, mut drift) = ([T::ZERO; LANES], [T::ZERO; LANES]);
            let v: Lane<T> =
                std::array::from_fn(|lane| variance(&x[0], [start[lane], end[lane], noise[lane]]));
            let inverse: Lane<T> = std::array::from_fn(|lane| T::ONE / v[lane]);
            let left = x.iter().zip(&projected[m.varied..]);
            for ((x, p), pull) in left.zip(&mut pulls[m.varied..]) {
                for lane in 0..LANES {
                    let a = away(p[lane], x, lane);
                    pull[lane] = a * inverse[lane];
                    square[lane] = a.mul_add::<FMA>(a, square[lane]);
                    drift[lane] = a.mul_add::<FMA>(motion(x, lane), drift[lane]);
                }
            }
            for lane in 0..LANES {
                let q = square[lane] * inverse[lane];
                sum[lane] += q.to_f64() + others.to_f64() * ln(v[lane].to_f64());
                let curvature = inverse[lane] * (q - others);
                trace[lane] += curvature;
                let rates = [start_rate[lane], end_rate[lane], noise_rate[lane]];
                rate[lane] +=
                    inverse[lane] * drift[lane] + half * variance(&x[0], rates) * curvature;
            }
        }
        let term = &mut self.scratch.terms[c];
        for lane in 0..LANES {
            term[lane] = m.constants[c] - 0.5 * sum[lane];
        }
        self.scratch.rates[c] = rate;
        self.scratch.traces[c] = trace;
    }

    /// -sum_k share_k sum_i pull_ki u_ki. Components whose share is zero in all lanes are left out.
    #[inline(always)]
    fn score<const FMA: bool>(&mut self) {
        let m = self.marginal;
        let width = m.varied + m.common;
        let Scratch {
            pulls,
            terms,
            score,
            weighted,
            ..
        } = &mut *self.scratch;
        score.fill([T::ZERO; LANES]);
        let shared = matches!(m.frame, Frame::Shared(_));
        if shared {
            weighted.fill([T::ZERO; LANES]);
        }
        for (c, (shares, pulls)) in terms.iter().zip(pulls.chunks_exact(width)).enumerate() {
            if shares.iter().all(|share| *share == 0.0) {
                continue;
            }
            let shares = shares.map(|share| T::from_f64(-share));
            for (weighted, pull) in weighted.iter_mut().zip(pulls) {
                for lane in 0..LANES {
                    let old = if shared { weighted[lane] } else { T::ZERO };
                    weighted[lane] = shares[lane].mul_add::<FMA>(pull[lane], old);
                }
            }
            if let Frame::Own { rank, matrices } = &m.frame {
                let size = rank * score.len();
                let which = m.offsets[c] / width;
                let transposed = &matrices[1][which * size..][..size];
                multiply::<T, FMA, true>(transposed, &weighted[..*rank], score);
                for (score, left) in score.iter_mut().zip(&weighted[*rank..]) {
                    for lane in 0..LANES {
                        score[lane] += left[lane];
                    }
                }
            }
        }
        match &m.frame {
            Frame::Shared(None) => score.copy_from_slice(weighted),
            Frame::Shared(Some([_, transposed])) => {
                multiply::<T, FMA, false>(transposed, weighted, score);
            }
            Frame::Own { .. } => (),
        }
    }
}
