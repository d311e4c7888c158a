//! A network over `n` particles that are given without their centre, as `n - 1` points of the [`Subspace`]: the isometry on the way in, its
//! transpose on the way out. Networks over particles see differences alone and move no centre, so that nothing is lost on either way.

use super::input::ScaledRows;
use super::layout::Layout;
use super::{Input, Network, Output, Site};
use crate::Result;
use crate::citation::Cites;
use crate::engine::{Graph, Node, Rows};
use crate::particles::Subspace;

/// See the module's text.
pub(crate) struct WithoutCentre {
    /// The network over all particles.
    pub(crate) inner: Box<dyn Network>,
    pub(crate) output: Output,
    pub(crate) particles: usize,
    /// Numbers of a particle.
    pub(crate) space: usize,
}

/// Rows of all particles, so many of so many numbers: `x_i = y_i - S / (n - sqrt(n))` and `x_n = S / sqrt(n)` with `S` the sum of the `y_i`.
pub(crate) fn outward(g: &mut Graph, points: Node, (n, space): (usize, usize)) -> Node {
    let Rows::Unit(rows) = g.shape(points).rows else {
        unreachable!("points belong to units")
    };
    let [of_first, of_last] = Subspace::factors(n);
    let points = g.reshape(points, Rows::Unit(rows * (n - 1)), space);
    let pattern = |count: usize, to: &dyn Fn(usize) -> usize| -> Vec<u32> {
        (0..count).map(|k| to(k) as u32).collect()
    };
    let owner = pattern(rows * (n - 1), &|k| k / (n - 1));
    let place = pattern(rows * (n - 1), &|k| k / (n - 1) * n + k % (n - 1));
    let last = pattern(rows, &|k| k * n + n - 1);
    let sum = g.segment_sum(points, &owner, rows);
    let placed = g.segment_sum(points, &place, rows * n);
    let common = g.scale(sum, of_first);
    let common = g.gather(common, &pattern(rows * n, &|k| k / n));
    // The last has the common part as well; this takes it back.
    let alone = g.scale(sum, of_last - of_first);
    let alone = g.segment_sum(alone, &last, rows * n);
    let all = g.add(placed, common);
    let all = g.add(all, alone);
    g.reshape(all, Rows::Unit(rows), n * space)
}

impl WithoutCentre {
    /// Rows of all particles.
    fn outward(&self, g: &mut Graph, x: Input<'_>) -> ScaledRows {
        let full = x.points.full(g);
        let shape = (self.particles, self.space);
        ScaledRows {
            points: outward(g, full, shape),
            pattern: None,
            scale: None,
            mean: None,
        }
    }

    /// `y_i = v_i + v_n / (sqrt(n) - 1)`, for vectors whose sum is zero.
    fn inward(&self, g: &mut Graph, vectors: Node) -> Node {
        let Rows::Unit(rows) = g.shape(vectors).rows else {
            unreachable!("points belong to units")
        };
        let (n, space) = (self.particles, self.space);
        let [of_last, _] = Subspace::inverse_factors(n);
        let vectors = g.reshape(vectors, Rows::Unit(rows * n), space);
        let all = 0..rows * (n - 1);
        let first: Vec<u32> = all
            .clone()
            .map(|k| (k / (n - 1) * n + k % (n - 1)) as u32)
            .collect();
        let last: Vec<u32> = all.map(|k| (k / (n - 1) * n + n - 1) as u32).collect();
        let (first, last) = (g.gather(vectors, &first), g.gather(vectors, &last));
        let last = g.scale(last, of_last);
        let points = g.add(first, last);
        g.reshape(points, Rows::Unit(rows), (n - 1) * space)
    }
}

impl Network for WithoutCentre {
    fn cites(&self) -> Cites {
        self.inner.cites()
    }

    fn validate(&self) -> Result<()> {
        self.inner.validate()
    }

    fn declare(&self, layout: &mut Layout) {
        self.inner.declare(layout);
    }

    fn output(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let points = self.outward(site.graph, x);
        let output = self.inner.output(site, Input { points: &points });
        match self.output {
            Output::Scalar => output,
            Output::Vector => self.inward(site.graph, output),
        }
    }

    /// An isometry keeps inner products.
    fn inner_product(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let points = self.outward(site.graph, x);
        self.inner.inner_product(site, Input { points: &points })
    }
}
