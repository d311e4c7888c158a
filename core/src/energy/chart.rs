//! What a network sees of periodic columns: the point of a circle, not the angle, so that an energy has no seam.
//!
//! A column of period P lies on a circle of radius `R = P / 2 pi` and becomes `R sin(y/R)` in its own place and `R (cos(y/R) - 1)` in one at
//! the end. Close to zero, where its data are centred, that is `y` and nearly nothing; the length of the difference is the chord, so
//! that scales, gates and products of points mean what they mean elsewhere.

use super::wiring::Wiring;
use crate::engine::{Function, Graph, Node, Rows};
use std::f64::consts::TAU;

/// Global inputs: to the angles; from the points, sines and cosines to the network's columns; what is added.
pub(super) const PARTS: usize = 5;

/// Columns that a network sees.
pub(super) fn width(dim: usize, periods: &[f64]) -> usize {
    dim + periods.iter().filter(|p| **p > 0.0).count()
}

/// The matrices, row-major, with their rows and columns.
pub(super) fn matrices(periods: &[f64]) -> [(Vec<f64>, usize, usize); PARTS] {
    let dim = periods.len();
    let wide = width(dim, periods);
    let turns = wide - dim;
    let mut angles = vec![0.0; dim * turns];
    let mut plain = vec![0.0; dim * wide];
    let (mut sines, mut cosines) = (vec![0.0; turns * wide], vec![0.0; turns * wide]);
    let mut constant = vec![0.0; wide];
    let mut turn = 0;
    for (i, period) in periods.iter().enumerate() {
        if *period == 0.0 {
            plain[i * wide + i] = 1.0;
            continue;
        }
        let radius = period / TAU;
        angles[i * turns + turn] = 1.0 / radius;
        sines[turn * wide + i] = radius;
        cosines[turn * wide + dim + turn] = radius;
        constant[dim + turn] = -radius;
        turn += 1;
    }
    [
        (angles, dim, turns),
        (plain, dim, wide),
        (sines, turns, wide),
        (cosines, turns, wide),
        (constant, 1, wide),
    ]
}

/// The points as the network sees them.
pub(super) fn embedded(g: &mut Graph, wiring: &mut Wiring, points: Node, periods: &[f64]) -> Node {
    let slots = *wiring.chart.get_or_insert_with(|| {
        matrices(periods).map(|(_, rows, cols)| g.input(Rows::Global(rows), cols).1)
    });
    let [angles, plain, sines, cosines, constant] = slots.map(|slot| g.input_node(slot));
    let angle = g.matmul(points, angles, false);
    let (sin, cos) = (g.unary(Function::Sin, angle), g.unary(Function::Cos, angle));
    let sin = g.matmul(sin, sines, false);
    let cos = g.matmul(cos, cosines, false);
    let mut sum = g.add(sin, cos);
    if periods.contains(&0.0) {
        let plain = g.matmul(points, plain, false);
        sum = g.add(plain, sum);
    }
    g.bias(sum, constant)
}
