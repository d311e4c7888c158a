//! Transformer over sites: site i starts as `s_{y_i} + p_i + phi(t) W_t + b_0`, with an embedding for each symbol and one for each place, goes
//! through [layers of attention](crate::network) among the sites of its row, and the row's number is `sum_i h_i . out`.

use super::{ChangeSlots, NAME, OverSites, Rows as SiteRows};
use crate::Result;
use crate::citation::Cites;
use crate::engine::{Graph, Node, Rows};
use crate::network::{Attention, Init, Layout, ScaledRows, Site, rows_of_table};

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteTransformer {
    /// What it looks at.
    pub rows: SiteRows,
    /// Features of a site.
    pub width: usize,
    /// Number of layers.
    pub depth: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Columns of a head.
    pub head_width: usize,
}

impl SiteTransformer {
    fn attention(&self) -> Attention<'static> {
        Attention {
            name: NAME,
            width: self.width,
            depth: self.depth,
            heads: self.heads,
            head_width: self.head_width,
        }
    }

    /// Which row each site belongs to.
    fn owner(&self, rows: usize) -> Vec<u32> {
        let sites = self.rows.sites;
        (0..rows * sites).map(|k| (k / sites) as u32).collect()
    }

    /// The sites of rows, which stand in one-hot columns, at the rows' times.
    fn embed(&self, site: &mut Site<'_>, one_hot: Node) -> Node {
        let SiteRows { sites, symbols, .. } = self.rows;
        let Rows::Unit(rows) = site.graph.shape(one_hot).rows else {
            unreachable!("rows belong to units")
        };
        let [symbol, place, wt, b0] =
            ["symbols", "places", "wt", "b0"].map(|name| site.param(NAME, name));
        let time = site.time.rows(site.graph, wt, b0);
        let g = &mut *site.graph;
        let one_hot = g.reshape(one_hot, Rows::Unit(rows * sites), symbols);
        let symbol = g.matmul(one_hot, symbol, false);
        let pattern: Vec<u32> = (0..rows * sites).map(|k| (k % sites) as u32).collect();
        let place = rows_of_table(g, place, &pattern);
        let time = g.gather(time, &self.owner(rows));
        let placed = g.add(symbol, place);
        g.add(placed, time)
    }
}

impl OverSites for SiteTransformer {
    fn cites(&self) -> Cites {
        &["vaswani2017attention"]
    }

    fn validate(&self) -> Result<()> {
        self.attention().validate()
    }

    fn declare(&self, layout: &mut Layout) {
        let (rows, w) = (self.rows, self.width);
        let features = Init::Normal(1.0 / (rows.features as f64).sqrt());
        layout.add("net.symbols", rows.symbols, w, Init::Normal(1.0));
        layout.add("net.places", rows.sites, w, Init::Normal(1.0));
        layout.add("net.wt", rows.features, w, features);
        layout.add("net.b0", 1, w, Init::Zero);
        self.attention().declare(layout, None);
        layout.add("net.out", w, 1, Init::Zero);
    }

    fn first(&self, site: &mut Site<'_>, rows: &ScaledRows) -> Node {
        let one_hot = rows.full(site.graph);
        self.embed(site, one_hot)
    }

    fn change_slots(&self, graph: &mut Graph, count: usize) -> ChangeSlots {
        let width = self.rows.sites * self.rows.symbols;
        let (_, points) = graph.input(Rows::Unit(count), width);
        ChangeSlots::Rows { points }
    }

    fn changed(
        &self,
        site: &mut Site<'_>,
        _first: Node,
        _pattern: &[u32],
        slots: ChangeSlots,
    ) -> Node {
        let ChangeSlots::Rows { points } = slots else {
            unreachable!("the slots are this network's")
        };
        let one_hot = site.graph.input_node(points);
        self.embed(site, one_hot)
    }

    fn output(&self, site: &mut Site<'_>, first: Node) -> Node {
        let sites = self.rows.sites;
        let h = self.attention().layers(site, first, sites, None);
        let out = site.param(NAME, "out");
        let g = &mut *site.graph;
        let Rows::Unit(all) = g.shape(h).rows else {
            unreachable!("sites belong to units")
        };
        let rows = all / sites;
        let sum = g.segment_sum(h, &self.owner(rows), rows);
        g.matmul(sum, out, false)
    }
}
