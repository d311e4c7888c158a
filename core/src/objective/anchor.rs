//! Anchor: is a point at level t a noisy datum, or a draw from a density `q_t` that is known and reaches farther out? A logistic loss,
//! `-log sigmoid(log p_t(y) - log q_t(y)) - log sigmoid(log q_t(a) - log p_t(a))` with `a` from `q_t`: noise-contrastive estimation
//! (Gutmann and Hyvarinen 2010) at every level. It is least at the true density, so that the minimiser of a sum with it does not
//! change, and `q_t` is normalised, so that F is pinned at every level and the density is held down where there are no data.
//!
//! `q_t` is the equal mixture of the noised base, inflated 1, 1.5, 2 and 3 times.

use super::fill::{Fill, Filler, Setup, Tile};
use super::{Objective, Scene, Teaches};
use crate::base::{BaseEnds, INFLATIONS, Level, Marginal, MixtureBase, Scratch, Spread, Wanted};
use crate::energy::ModelSpec;
use crate::engine::{Function, Isa, Node, Real};
use crate::rng::{Purpose, Stream};
use crate::system::log_sum::log_add;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor;

impl Objective for Anchor {
    fn name(&self) -> &'static str {
        "anchor"
    }

    fn about(&self) -> &'static str {
        "noisy datum or draw from the inflated base? F(t) absolutely, tails held down"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Levels
    }

    fn cites(&self) -> &'static [&'static str] {
        &["gutmann2010nce"]
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        if spec.process.is_interpolant() && spec.base.is_none() {
            return Err(Error::Value {
                name: "objective",
                found: format!(
                    "anchor with the {} process on no mixture",
                    spec.process.name()
                ),
                expected: "a base that is a mixture: between two ends nothing else is known".into(),
            });
        }
        Ok(())
    }

    fn fixes_free_energy(&self) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let slots = scene.filled(*self);
        let [anchors, of_points, of_anchors] = [slots[0], slots[1], slots[2]];
        let own = scene.own_log_density();
        let there = scene.log_density_at(anchors);
        let g = scene.graph();
        // -log sigmoid(z) = softplus(-z).
        let first = g.sub(of_points, own);
        let first = g.unary(Function::Softplus, first);
        let second = g.sub(there, of_anchors);
        let second = g.unary(Function::Softplus, second);
        let sum = g.add(first, second);
        scene.mean_over_levels(sum)
    }
}

/// Slots: N points from `q_t`, one for each level of the row, and `log q_t` at the noisy points and at these.
impl Filler for Anchor {
    fn shapes(&self, spec: &ModelSpec, levels: usize) -> Vec<(usize, usize)> {
        vec![(levels, spec.dim), (levels, 1), (levels, 1)]
    }

    fn build<T: Real>(&self, setup: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>> {
        let Setup { spec, times, .. } = *setup;
        let Ok(marginal) = anchor_base(spec).and_then(|base| base.marginal(setup.isa)) else {
            unreachable!("the base was tried when the model was validated")
        };
        let desks = (0..setup.threads).map(|_| Desk::new(&marginal)).collect();
        Box::new(Anchors {
            marginal,
            grid: times.iter().map(|&t| Level::at(&spec.process, t)).collect(),
            slots: [slots[0], slots[1], slots[2]],
            desks: Mutex::new(desks),
        })
    }
}

/// The mixture that anchors are drawn from: the model's own, or the Gaussian that its energy stands on.
fn anchor_base(spec: &ModelSpec) -> Result<BaseEnds> {
    if let Some(base) = &spec.base {
        return Ok(base.clone());
    }
    let spread = Spread::Diagonal {
        variances: vec![spec.variance; spec.dim],
        basis: None,
    };
    Ok(BaseEnds {
        start: MixtureBase::new(spec.dim, vec![1.0], spec.mean.clone(), spread)?,
        end: None,
    })
}

/// Draws a row's points from `q_t`, one for each of its levels; `room` has twice as many numbers as a point.
fn draw_row(
    marginal: &Marginal<f64>,
    levels: &[Level],
    stream: &mut Stream,
    points: &mut [f64],
    room: &mut [f64],
) {
    let dim = marginal.dim();
    for (level, point) in levels.iter().zip(points.chunks_exact_mut(dim)) {
        let which = stream.below(INFLATIONS.len() as u64) as usize;
        let level = level.inflated(INFLATIONS[which]);
        marginal.sample(&level, stream, point, room);
    }
}

/// The anchors of a row at these times, for an independent implementation to check; none where the model has none.
pub(crate) fn anchors(spec: &ModelSpec, times: &[f64], mut stream: Stream) -> Vec<f64> {
    if Anchor.validate(spec).is_err() {
        return Vec::new();
    }
    let Ok(marginal) = anchor_base(spec).and_then(|base| base.marginal(Isa::detect())) else {
        return Vec::new();
    };
    let levels: Vec<Level> = times.iter().map(|&t| Level::at(&spec.process, t)).collect();
    let (mut points, mut room) = (vec![0.0; times.len() * spec.dim], vec![0.0; 2 * spec.dim]);
    draw_row(&marginal, &levels, &mut stream, &mut points, &mut room);
    points
}

/// Rows that are evaluated at once: a desk has room for so many, and no tile asks for more.
const PIECE: usize = 64;

/// What a thread needs while it fills.
struct Desk {
    scratch: Scratch<f64>,
    levels: Vec<Level>,
    inflated: Vec<Level>,
    points: Vec<f64>,
    room: Vec<f64>,
    /// One inflation, and the sum over all.
    parts: [Vec<f64>; 2],
}

impl Desk {
    fn new(marginal: &Marginal<f64>) -> Desk {
        let dim = marginal.dim();
        Desk {
            scratch: marginal.scratch(),
            levels: Vec::with_capacity(PIECE),
            inflated: Vec::with_capacity(PIECE),
            points: Vec::with_capacity(PIECE * dim),
            room: vec![0.0; 2 * dim],
            parts: [Vec::with_capacity(PIECE), Vec::with_capacity(PIECE)],
        }
    }
}

struct Anchors {
    marginal: Marginal<f64>,
    grid: Vec<Level>,
    slots: [usize; 3],
    desks: Mutex<Vec<Desk>>,
}

impl<T: Real> Fill<T> for Anchors {
    fn fill(&self, tile: &mut Tile<'_, '_, T>) {
        let taken = {
            let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
            desks.pop()
        };
        let mut desk = taken.unwrap_or_else(|| Desk::new(&self.marginal));
        let [anchors, of_points, of_anchors] = self.slots;
        self.log_densities(tile, &mut desk, [tile.rows.points, of_points]);
        self.draw(tile, &mut desk, anchors);
        self.log_densities(tile, &mut desk, [anchors, of_anchors]);
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        desks.push(desk);
    }
}

impl Anchors {
    /// The levels of these rows of a tile.
    fn levels<T: Real>(&self, tile: &Tile<'_, '_, T>, rows: Range<usize>, out: &mut Vec<Level>) {
        out.clear();
        match tile.grid_levels {
            Some(levels) => out.extend(levels[rows].iter().map(|&k| self.grid[k as usize])),
            None => {
                let at = |&t: &f64| Level::at(&tile.spec.process, t);
                out.extend(tile.times[rows].iter().map(at));
            }
        }
    }

    /// A point for each level of each row.
    fn draw<T: Real>(&self, tile: &mut Tile<'_, '_, T>, desk: &mut Desk, slot: usize) {
        let (d, n) = (tile.spec.dim, tile.levels);
        desk.points.resize(n * d, 0.0);
        for (k, unit) in tile.units.clone().enumerate() {
            self.levels(tile, k * n..(k + 1) * n, &mut desk.levels);
            let purpose = Purpose::Anchor(tile.part);
            let mut stream = Stream::new(tile.seed, purpose, tile.step, unit as u64);
            draw_row(
                &self.marginal,
                &desk.levels,
                &mut stream,
                &mut desk.points,
                &mut desk.room,
            );
            let out = &mut tile.inputs.numbers(slot)[k * n * d..][..n * d];
            for (out, &x) in out.iter_mut().zip(&desk.points) {
                *out = T::from_f64(x);
            }
        }
    }

    /// `log q_t` of the points of one slot into another.
    fn log_densities<T: Real>(
        &self,
        tile: &mut Tile<'_, '_, T>,
        desk: &mut Desk,
        [from, to]: [usize; 2],
    ) {
        let (d, rows) = (tile.spec.dim, tile.times.len());
        let count = (INFLATIONS.len() as f64).ln();
        for first in (0..rows).step_by(PIECE) {
            let piece = first..(first + PIECE).min(rows);
            self.levels(tile, piece.clone(), &mut desk.levels);
            let points = &tile.inputs.numbers(from)[first * d..piece.end * d];
            desk.points.clear();
            desk.points.extend(points.iter().map(|x| x.to_f64()));
            self.sum_of_inflations(desk);
            let out = &mut tile.inputs.numbers(to)[piece];
            for (out, &x) in out.iter_mut().zip(&desk.parts[1]) {
                *out = T::from_f64(x - count);
            }
        }
    }

    /// The logarithm of the sum over inflations, at the desk's points and levels.
    fn sum_of_inflations(&self, desk: &mut Desk) {
        let [part, sum] = &mut desk.parts;
        part.resize(desk.levels.len(), 0.0);
        sum.clear();
        for inflation in INFLATIONS {
            desk.inflated.clear();
            let inflated = desk.levels.iter().map(|level| level.inflated(inflation));
            desk.inflated.extend(inflated);
            let wanted = Wanted {
                log_density: part,
                score: None,
                time_score: None,
                laplacian: None,
            };
            self.marginal
                .evaluate(&desk.points, &desk.inflated, wanted, &mut desk.scratch);
            if sum.is_empty() {
                sum.extend_from_slice(part);
                continue;
            }
            for (sum, part) in sum.iter_mut().zip(part.iter()) {
                *sum = log_add(*sum, *part);
            }
        }
    }
}
