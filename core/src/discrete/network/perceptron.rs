//! The perceptron over all sites: its first layer is linear in the one-hot row, so that a changed row costs an exchange of two rows of its
//! weights.

use super::{ChangeSlots, NAME, OverSites};
use crate::Result;
use crate::citation::Cites;
use crate::engine::{Graph, Node};
use crate::network::{Input, Layout, Mlp, Network, ScaledRows, Site};

impl OverSites for Mlp {
    fn cites(&self) -> Cites {
        Network::cites(self)
    }

    fn validate(&self) -> Result<()> {
        Network::validate(self)
    }

    fn declare(&self, layout: &mut Layout) {
        Network::declare(self, layout);
    }

    fn first(&self, site: &mut Site<'_>, rows: &ScaledRows) -> Node {
        Mlp::first(self, site, Input { points: rows })
    }

    fn change_slots(&self, graph: &mut Graph, count: usize) -> ChangeSlots {
        ChangeSlots::Weights {
            old: graph.index(count),
            new: graph.index(count),
        }
    }

    fn changed(
        &self,
        site: &mut Site<'_>,
        first: Node,
        pattern: &[u32],
        slots: ChangeSlots,
    ) -> Node {
        let ChangeSlots::Weights { old, new } = slots else {
            unreachable!("the slots are this network's")
        };
        let wx = site.param(NAME, "wx");
        let g = &mut *site.graph;
        let own = g.gather(first, pattern);
        let (new, old) = (g.lookup(wx, new), g.lookup(wx, old));
        let moved = g.add(own, new);
        g.sub(moved, old)
    }

    fn output(&self, site: &mut Site<'_>, first: Node) -> Node {
        let hidden = self.after_first(site, first);
        self.read_out(site, hidden)
    }
}
