//! Two element-wise steps in one pass: a product whose only reader multiplies it again, or adds something to it, is computed there. Both
//! results are rounded as they are apart.

use super::bands::Arrangement;
use super::planner::Planner;
use crate::engine::graph::{Node, Op};

/// How many instructions apart the two may stand: the operands of the first must live until the second.
const NEAR: usize = 4;

impl Planner<'_> {
    /// Takes products that their reader computes out of the order.
    pub(super) fn join_products(&mut self, arrangement: &mut Arrangement) {
        let Arrangement { order, bands, .. } = arrangement;
        let mut position = vec![None; self.graph.entries.len()];
        for (at, node) in order.iter().enumerate() {
            position[node.id()] = Some(at);
        }
        let band_at = |at: usize| bands.iter().position(|b| b.start <= at && at < b.end);
        for (at, &node) in order.iter().enumerate() {
            let entry = &self.graph.entries[node.id()];
            let simple = matches!(entry.op, Op::Mul | Op::Add) && self.source(node) == node;
            let unused = self.facts.merged[node.id()].is_none();
            if !simple || !unused || !super::facts::is_unit(self.graph, node) {
                continue;
            }
            let product = entry.inputs.iter().rev().flatten().copied().find(|&p| {
                matches!(self.graph.entries[p.id()].op, Op::Mul)
                    && self.facts.uses[p.id()] == 1
                    && !self.facts.is_output[p.id()]
                    && self.source(p) == p
                    && position[p.id()]
                        .is_some_and(|from| at - from <= NEAR && band_at(from) == band_at(at))
            });
            if let Some(product) = product {
                self.facts.joined[product.id()] = true;
            }
        }
        let gone = |node: &Node| {
            self.facts.joined[node.id()] && self.graph.entries[node.id()].op == Op::Mul
        };
        for band in bands.iter_mut() {
            let before = |end: usize| order[..end].iter().filter(|n| gone(n)).count();
            (band.start, band.end) = (band.start - before(band.start), band.end - before(band.end));
        }
        order.retain(|node| !gone(node));
    }
}
