//! The exact law of Y_t = alpha X_0 + beta X_1 + gamma Z for a base: log b_t, score, time score and Laplacian, block by block of rows.
//!
//! With X_0 from sum_k w_k N(mu_k, Sigma_k) and X_1 from sum_l v_l N(nu_l, Lambda_l) the law of Y_t is the mixture over pairs of
//! `N(alpha mu_k + beta nu_l, alpha^2 Sigma_k + beta^2 Lambda_l + gamma^2 I)`; a diffusion has one absent second component. In axes
//! that both covariances share, with coordinates `a_i` of `y - mean` and variances `v_i`,
//!
//! ```text
//! log N   = -1/2 sum_i (a_i^2 / v_i + log 2 pi v_i)        score   = -sum_i (a_i / v_i) u_i
//! d/dt    = sum_i a_i m_i' / v_i + 1/2 v_i' (a_i^2/v_i^2 - 1/v_i)
//! laplace = sum_i (-1/v_i)                                 of the mixture: sum_k r_k (laplace_k + |score_k|^2) - |score|^2
//! ```
//!
//! Periodic coordinates take the moments over all images ([`Images`](super::wrapped::Images)) in the place of `a_i` and `a_i^2`; their means
//! must not move, so that the process has alpha = 1.
//!
//! The projection of a point on the axes does not depend on time: it is made once and serves all times at which the point is
//! asked for. A time then costs one division per axis.

mod pass;

use super::lanes::{LANES, Lane, load};
use super::mixture::MixtureBase;
use crate::engine::kernel::dispatch::dispatch;
use crate::engine::{Isa, Real};
use crate::process::Process;
use crate::rng::Stream;
use crate::system::matrix::{add, dot};
use crate::{Error, Result};
use pass::{Block, Pass, Project};
use std::f64::consts::TAU;

/// Most pairs of components of an interpolant: each point pays for all of them.
pub const MOST_PAIRS: usize = 1024;

/// The coefficients of a process at one time, with rates. Variances are `start Sigma + end Lambda + noise I`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// alpha, beta: factors of the means.
    means: [f64; 2],
    /// alpha^2, beta^2, gamma^2, each times the square of the inflation.
    variances: [f64; 3],
    mean_rates: [f64; 2],
    variance_rates: [f64; 3],
}

impl Level {
    /// The coefficients at `time`.
    pub fn at(process: &Process, time: f64) -> Level {
        let (alpha, beta) = (process.x0_scale(time), process.x1_scale(time));
        let rates = [process.x0_rate(time), process.x1_rate(time)];
        Level {
            means: [alpha, beta],
            variances: [alpha * alpha, beta * beta, process.noise(time).powi(2)],
            mean_rates: rates,
            variance_rates: [
                2.0 * alpha * rates[0],
                2.0 * beta * rates[1],
                2.0 * process.noise_times_rate(time),
            ],
        }
    }

    /// The base itself, without noise.
    pub fn data() -> Level {
        Level {
            means: [1.0, 0.0],
            variances: [1.0, 0.0, 0.0],
            mean_rates: [0.0; 2],
            variance_rates: [0.0; 3],
        }
    }

    /// The same means with every covariance multiplied by `inflation^2`: a density with known normalisation that reaches farther out.
    pub fn inflated(self, inflation: f64) -> Level {
        let square = inflation * inflation;
        Level {
            variances: self.variances.map(|v| v * square),
            variance_rates: self.variance_rates.map(|v| v * square),
            ..self
        }
    }

    fn numbers(&self) -> [f64; NUMBERS] {
        let ([a, b], [s, e, n]) = (self.means, self.variances);
        let ([ar, br], [sr, er, nr]) = (self.mean_rates, self.variance_rates);
        [a, b, s, e, n, ar, br, sr, er, nr]
    }
}

const NUMBERS: usize = 10;

/// What to write: one number per point and level, `dim` for the score. Lengths are checked.
pub struct Wanted<'a, T> {
    /// log b_t(y).
    pub log_density: &'a mut [T],
    /// grad_y log b_t(y).
    pub score: Option<&'a mut [T]>,
    /// d/dt log b_t(y).
    pub time_score: Option<&'a mut [T]>,
    /// Sum of the second derivatives of log b_t in y.
    pub laplacian: Option<&'a mut [T]>,
}

/// The axes in which a component is diagonal.
enum Frame<T> {
    /// One basis (or the coordinates) for all.
    Shared(Option<[Vec<T>; 2]>),
    /// A basis per component: matrices and their transposes.
    Own { rank: usize, matrices: [Vec<T>; 2] },
}

/// Room for one thread's work. Made by [`Marginal::scratch`].
pub struct Scratch<T> {
    points: Vec<Lane<T>>,
    projected: Vec<Lane<T>>,
    /// a_i / v_i of every component and coordinate.
    pulls: Vec<Lane<T>>,
    terms: Vec<Lane<f64>>,
    rates: Vec<Lane<T>>,
    traces: Vec<Lane<T>>,
    score: Vec<Lane<T>>,
    weighted: Vec<Lane<T>>,
}

/// The marginals of a base under a process. Evaluation allocates nothing; see the module's text for the formulas.
///
/// ```
/// use diffclf::base::{Level, Marginal, MixtureBase, Wanted};
/// use diffclf::engine::Isa;
/// use diffclf::process::Process;
/// let base = MixtureBase::try_from(&diffclf::system::two_modes()?)?;
/// let process = Process::by_name("vp")?;
/// let marginal = Marginal::<f32>::new(&base, None, Isa::detect())?;
/// let mut scratch = marginal.scratch();
/// let levels = [0.1, 0.4].map(|time| Level::at(&process, time));
/// let (mut log_density, mut score) = ([0.0; 2], [0.0; 4]);
/// let wanted = Wanted { log_density: &mut log_density, score: Some(&mut score), time_score: None, laplacian: None };
/// // One point at two times.
/// marginal.evaluate(&[0.3, -0.2], &levels, wanted, &mut scratch);
/// # Ok::<(), diffclf::Error>(())
/// ```
pub struct Marginal<T> {
    start: MixtureBase,
    end: Option<MixtureBase>,
    isa: Isa,
    frame: Frame<T>,
    /// Period of each coordinate, 0 for none; empty if none has one.
    periods: Vec<f64>,
    /// Coordinates of a component: those with a variance of their own, then those that share one.
    varied: usize,
    common: usize,
    /// Where each component's projection begins.
    offsets: Vec<usize>,
    /// log weight - d/2 log 2 pi.
    constants: Vec<f64>,
    /// Of every component and coordinate: start mean, end mean, start variance, end variance.
    coordinates: Vec<[T; 4]>,
}

impl<T: Real> Marginal<T> {
    /// The marginals of a diffusion from `start` (no `end`) or of an interpolant from `start` to `end`.
    ///
    /// The two ends of an interpolant must share their axes: both diagonal in the same basis, or one of them isotropic.
    pub fn new(start: &MixtureBase, end: Option<&MixtureBase>, isa: Isa) -> Result<Self> {
        let dim = start.dim();
        let ends = end.map_or(1, MixtureBase::components);
        let pairs = start.components() * ends;
        if end.is_some_and(|end| end.dim() != dim) || pairs > MOST_PAIRS.max(start.components()) {
            return Err(Error::Value {
                name: "end of the base",
                found: format!(
                    "{pairs} pairs of components, dimension {:?}",
                    end.map(|e| e.dim())
                ),
                expected: format!(
                    "dimension {dim} and at most {MOST_PAIRS} pairs; fit both ends with fewer components"
                ),
            });
        }
        if let Some(end) = end
            && !(start.periods().is_empty() && end.periods().is_empty())
        {
            return Err(Error::Value {
                name: "ends of the base",
                found: "a periodic column between two ends".into(),
                expected: "a diffusion: a point between two ends of a circle is not known".into(),
            });
        }
        let owner = owner_of_axes(start, end)?;
        let axes_of = |pair: usize| match owner {
            Owner::Start => start.component(pair / ends),
            Owner::End => end.map_or(start.component(0), |end| end.component(pair % ends)),
        };
        let host = match (owner, end) {
            (Owner::End, Some(end)) => end,
            _ => start,
        };
        let varied = host.component(0).1.len();
        let common = if varied < dim { dim } else { 0 };
        let shared = matches!(host.spread(), super::Spread::Diagonal { .. });
        let mut marginal = Marginal {
            frame: frame_of(host, shared),
            start: start.clone(),
            end: end.cloned(),
            isa,
            periods: start.periods().to_vec(),
            varied,
            common,
            offsets: vec![],
            constants: vec![],
            coordinates: Vec::with_capacity(pairs * (varied + common)),
        };
        let zeros = vec![0.0; dim];
        for pair in 0..pairs {
            let (k, l) = (pair / ends, pair % ends);
            let index = if owner == Owner::Start { k } else { l };
            let width = if shared { 0 } else { varied + common };
            marginal.offsets.push(index * width);
            let weight = start.weights()[k] * end.map_or(1.0, |end| end.weights()[l]);
            let constant = weight.ln() - 0.5 * dim as f64 * TAU.ln();
            marginal.constants.push(constant);
            let end_mean = end.map_or(zeros.as_slice(), |end| end.component_mean(l));
            let (axes, ..) = axes_of(pair);
            let means =
                [start.component_mean(k), end_mean].map(|mean| projected(axes, mean, common > 0));
            // A mixture that is not the host of the axes is isotropic, or diagonal in the same basis.
            let variance = |mixture: Option<&MixtureBase>, k: usize, i: usize| {
                mixture.map_or(0.0, |mixture| {
                    let (_, variances, rest) = mixture.component(k);
                    let last = if rest > 0.0 { rest } else { variances[0] };
                    *variances.get(i).unwrap_or(&last)
                })
            };
            for (i, (mu, nu)) in means[0].iter().zip(&means[1]).enumerate() {
                let (a, b) = (variance(Some(start), k, i), variance(end, l, i));
                let numbers = [*mu, *nu, a, b].map(T::from_f64);
                marginal.coordinates.push(numbers);
            }
        }
        Ok(marginal)
    }

    /// Dimension of a point.
    pub fn dim(&self) -> usize {
        self.start.dim()
    }

    /// Number of components, pairs counted.
    pub fn components(&self) -> usize {
        self.constants.len()
    }

    /// The base at time 0.
    pub fn start(&self) -> &MixtureBase {
        &self.start
    }

    /// The base at the other end of an interpolant.
    pub fn end(&self) -> Option<&MixtureBase> {
        self.end.as_ref()
    }

    /// Room for one thread.
    pub fn scratch(&self) -> Scratch<T> {
        let (zero, dim, count) = ([T::ZERO; LANES], self.dim(), self.components());
        let width = self.varied + self.common;
        let projected = match &self.frame {
            Frame::Shared(_) => dim,
            Frame::Own { matrices, rank } => matrices[0].len() / (rank * dim) * width,
        };
        Scratch {
            points: vec![zero; dim],
            projected: vec![zero; projected],
            pulls: vec![zero; count * width],
            terms: vec![[0.0; LANES]; count],
            rates: vec![zero; count],
            traces: vec![zero; count],
            score: vec![zero; dim],
            weighted: vec![zero; width],
        }
    }

    /// Evaluates each point at its levels: `levels` holds the same number for every point, point after point, or one for all.
    ///
    /// # Panics
    /// If a length does not fit.
    pub fn evaluate(
        &self,
        points: &[T],
        levels: &[Level],
        mut wanted: Wanted<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let dim = self.dim();
        let count = points.len() / dim;
        let each = if levels.len() == 1 {
            1
        } else {
            levels.len() / count.max(1)
        };
        assert!(
            points.len() == count * dim && (levels.len() == 1 || levels.len() == count * each),
            "{} numbers and {} levels for points of dimension {dim}",
            points.len(),
            levels.len()
        );
        let rows = count * each;
        assert_eq!(wanted.log_density.len(), rows, "log-densities");
        assert!(wanted.score.as_ref().is_none_or(|s| s.len() == rows * dim));
        assert!(wanted.time_score.as_ref().is_none_or(|s| s.len() == rows));
        assert!(wanted.laplacian.as_ref().is_none_or(|s| s.len() == rows));
        for (block, points) in points.chunks(LANES * dim).enumerate() {
            let (first, filled) = (block * LANES, points.len() / dim);
            load(points, dim, &mut scratch.points);
            dispatch(
                self.isa,
                Project {
                    marginal: self,
                    scratch,
                },
            );
            for which in 0..each {
                let at = |lane: usize| {
                    let row = (first + lane.min(filled - 1)) * each + which;
                    &levels[row.min(levels.len() - 1)]
                };
                let mut numbers = [[T::ZERO; LANES]; NUMBERS];
                for lane in 0..LANES {
                    for (numbers, x) in numbers.iter_mut().zip(at(lane).numbers()) {
                        numbers[lane] = T::from_f64(x);
                    }
                }
                let mut out = Block::default();
                dispatch(
                    self.isa,
                    Pass {
                        marginal: self,
                        level: &numbers,
                        need: [
                            wanted.score.is_some() || wanted.laplacian.is_some(),
                            wanted.time_score.is_some(),
                            wanted.laplacian.is_some(),
                        ],
                        scratch,
                        out: &mut out,
                    },
                );
                for lane in 0..filled {
                    let row = (first + lane) * each + which;
                    wanted.log_density[row] = T::from_f64(out.log_density[lane]);
                    if let Some(out) = &mut wanted.score {
                        for (out, score) in out[row * dim..][..dim].iter_mut().zip(&scratch.score) {
                            *out = score[lane];
                        }
                    }
                    if let Some(to) = &mut wanted.time_score {
                        to[row] = T::from_f64(out.time_score[lane]);
                    }
                    if let Some(to) = &mut wanted.laplacian {
                        to[row] = T::from_f64(out.laplacian[lane]);
                    }
                }
            }
        }
    }

    /// Draws a point of the marginal at a level (inflated, if the level is); `room` has twice as many numbers as `out`.
    pub fn sample(&self, level: &Level, stream: &mut Stream, out: &mut [f64], room: &mut [f64]) {
        let ([alpha, beta], [start, end, noise]) = (level.means, level.variances);
        let (room, shift) = room.split_at_mut(out.len());
        let k = self.start.sample_component(stream);
        out.fill(0.0);
        add(alpha, self.start.component_mean(k), out);
        self.start
            .add_deviation(k, (start, noise), stream, out, room);
        if let Some(other) = &self.end {
            let l = other.sample_component(stream);
            shift.fill(0.0);
            add(beta, other.component_mean(l), shift);
            other.add_deviation(l, (end, 0.0), stream, shift, room);
            add(1.0, shift, out);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Start,
    End,
}

/// Which end's axes serve both.
fn owner_of_axes(start: &MixtureBase, end: Option<&MixtureBase>) -> Result<Owner> {
    use super::Spread::Diagonal;
    let Some(end) = end else {
        return Ok(Owner::Start);
    };
    if let (Diagonal { basis: a, .. }, Diagonal { basis: b, .. }) = (start.spread(), end.spread())
        && a == b
    {
        return Ok(Owner::Start);
    }
    if end.isotropic().is_some() {
        Ok(Owner::Start)
    } else if start.isotropic().is_some() {
        Ok(Owner::End)
    } else {
        Err(Error::Value {
            name: "ends of the base",
            found: format!("{} and {} covariances", start.spread_name(), end.spread_name()),
            expected: "axes that both ends share: fit both with diagonal covariances, or make one of them isotropic".into(),
        })
    }
}

fn frame_of<T: Real>(host: &MixtureBase, shared: bool) -> Frame<T> {
    let dim = host.dim();
    let count = if shared { 1 } else { host.components() };
    let both = |rank: usize| {
        let mut matrices = [vec![], vec![]];
        for k in 0..count {
            let axes = host.component(k).0.unwrap_or(&[]);
            matrices[0].extend(axes.iter().map(|a| T::from_f64(*a)));
            for j in 0..dim {
                matrices[1].extend((0..rank).map(|i| T::from_f64(axes[i * dim + j])));
            }
        }
        matrices
    };
    let (axes, variances, _) = host.component(0);
    match (shared, axes) {
        (true, None) => Frame::Shared(None),
        (true, Some(_)) => Frame::Shared(Some(both(dim))),
        (false, _) => Frame::Own {
            rank: variances.len(),
            matrices: both(variances.len()),
        },
    }
}

/// The coordinates of a vector along the axes and, if asked, what is left of it.
fn projected(axes: Option<&[f64]>, vector: &[f64], rest: bool) -> Vec<f64> {
    let Some(axes) = axes else {
        return vector.to_vec();
    };
    let mut left = vector.to_vec();
    let mut out: Vec<f64> = axes
        .chunks_exact(vector.len())
        .map(|axis| dot(axis, vector))
        .collect();
    if rest {
        for (axis, along) in axes.chunks_exact(vector.len()).zip(&out) {
            add(-along, axis, &mut left);
        }
        out.append(&mut left);
    }
    out
}

#[cfg(test)]
mod tests;
