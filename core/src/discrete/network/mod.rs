//! Networks over sites: one-hot rows in, one number out. Rows that differ from others at one site are told to a network in the way that
//! costs it least.

mod perceptron;
mod transformer;

pub use transformer::SiteTransformer;

use super::energy::fill_one_hot;
use crate::Result;
use crate::citation::Cites;
use crate::engine::{Graph, Inputs, Node, Real};
use crate::network::{Layout, Mlp, Output, Role, ScaledRows, Site};
use serde::{Deserialize, Serialize};

/// The network of an energy of states, as files hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SitesNetwork {
    /// Perceptron over all sites.
    Mlp {
        /// Columns of a hidden layer.
        width: usize,
        /// Number of hidden layers.
        depth: usize,
    },
    /// Attention between the sites.
    Transformer {
        /// Features of a site.
        width: usize,
        /// Number of layers.
        depth: usize,
        /// Heads of attention.
        heads: usize,
        /// Columns of a head.
        head_width: usize,
    },
}

impl Default for SitesNetwork {
    fn default() -> Self {
        SitesNetwork::Mlp {
            width: 128,
            depth: 3,
        }
    }
}

impl SitesNetwork {
    /// Heads of attention where no number is asked for.
    pub const HEADS: usize = 4;
    /// Columns of a head where no number is asked for.
    pub const HEAD_WIDTH: usize = 16;

    /// Whom to cite: keys of BibTeX entries.
    pub fn cites(&self) -> Cites {
        let any = Rows {
            sites: 1,
            symbols: 2,
            features: 2,
        };
        self.network(any).cites()
    }

    /// The network for such rows.
    pub(crate) fn network(self, rows: Rows) -> Box<dyn OverSites> {
        match self {
            SitesNetwork::Mlp { width, depth } => {
                let role = Role {
                    name: NAME,
                    output: Output::Scalar,
                    dim: rows.sites * rows.symbols,
                    features: rows.features,
                };
                Box::new(Mlp::new(role, width, depth))
            }
            SitesNetwork::Transformer {
                width,
                depth,
                heads,
                head_width,
            } => Box::new(SiteTransformer {
                rows,
                width,
                depth,
                heads,
                head_width,
            }),
        }
    }
}

/// Prefix of the parameters' names.
const NAME: &str = "net";

/// What a network over sites is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Sites of a row.
    pub sites: usize,
    /// Symbols of a noisy site.
    pub symbols: usize,
    /// Time features.
    pub features: usize,
}

/// How a network is told of rows that differ from others at one site.
#[derive(Debug, Clone, Copy)]
pub enum ChangeSlots {
    /// By the rows of the first layer's weights that are taken out and put in: two index slots.
    Weights {
        /// Those of the symbols that were there.
        old: usize,
        /// Those of the symbols that are there now.
        new: usize,
    },
    /// By the changed rows, one-hot.
    Rows {
        /// A slot of numbers.
        points: usize,
    },
}

impl ChangeSlots {
    /// Tells change number `at` of a tile: `row` with another symbol at a site.
    pub(crate) fn fill<T: Real>(
        &self,
        inputs: &mut Inputs<'_, T>,
        at: usize,
        row: &[u8],
        (site, symbol): (usize, u8),
        symbols: usize,
    ) {
        let place = |symbol: u8| (site * symbols) as u32 + u32::from(symbol);
        match *self {
            ChangeSlots::Weights { old, new } => {
                inputs.index(old)[at] = place(row[site]);
                inputs.index(new)[at] = place(symbol);
            }
            ChangeSlots::Rows { points } => {
                let width = row.len() * symbols;
                let point = &mut inputs.numbers(points)[at * width..][..width];
                fill_one_hot(row, symbols, point);
                point[place(row[site]) as usize] = T::ZERO;
                point[place(symbol) as usize] = T::from_f64(1.0);
            }
        }
    }
}

/// A network over sites with its sizes.
pub(crate) trait OverSites {
    /// Whom to cite.
    fn cites(&self) -> Cites;

    /// Refuses sizes that cannot be built.
    fn validate(&self) -> Result<()>;

    /// Declares the parameters. A network starts with output zero.
    fn declare(&self, layout: &mut Layout);

    /// What the first layer takes of one-hot rows.
    fn first(&self, site: &mut Site<'_>, rows: &ScaledRows) -> Node;

    /// Slots for so many changes of a unit.
    fn change_slots(&self, graph: &mut Graph, count: usize) -> ChangeSlots;

    /// What the first layer takes of changed rows: row r differs at one site from that of `pattern[r]`, whose time it has.
    fn changed(
        &self,
        site: &mut Site<'_>,
        first: Node,
        pattern: &[u32],
        slots: ChangeSlots,
    ) -> Node;

    /// The number of each row, from what the first layer takes.
    fn output(&self, site: &mut Site<'_>, first: Node) -> Node;
}
