//! What networks over particles share: which rows belong together, types and their embeddings, sizes that cannot be.

use super::layout::{Init, Layout};
use super::{Input, Site};
use crate::engine::{Graph, Node, Rows};
use crate::{Error, Result};

/// Particles of so many rows of the input.
pub(super) struct Roster {
    pub(super) rows: usize,
    pub(super) particles: usize,
    /// The row of each particle.
    pub(super) owner: Vec<u32>,
}

impl Roster {
    pub(super) fn new(graph: &Graph, x: Input<'_>, particles: usize) -> Roster {
        let Rows::Unit(rows) = x.points.rows(graph) else {
            unreachable!("points belong to units")
        };
        Roster {
            rows,
            particles,
            owner: (0..rows * particles)
                .map(|k| (k / particles) as u32)
                .collect(),
        }
    }

    /// Rows of all particles.
    pub(super) fn all(&self) -> Rows {
        Rows::Unit(self.rows * self.particles)
    }

    /// Where the particles are, a row for each.
    pub(super) fn positions(&self, g: &mut Graph, x: Input<'_>) -> Node {
        let full = x.points.full(g);
        let space = g.shape(full).cols / self.particles;
        g.reshape(full, self.all(), space)
    }

    /// The rows without their mean over the particles of each row.
    pub(super) fn centred(&self, g: &mut Graph, of_particles: Node) -> Node {
        let sum = g.segment_sum(of_particles, &self.owner, self.rows);
        let mean = g.scale(sum, 1.0 / self.particles as f64);
        let mean = g.gather(mean, &self.owner);
        g.sub(of_particles, mean)
    }

    /// `phi(t) W_t + b_0`, and the embedding of each particle's type.
    pub(super) fn features(&self, site: &mut Site<'_>, network: &str, types: &[u32]) -> Node {
        let [wt, b0] = ["wt", "b0"].map(|name| site.param(network, name));
        let time = site.time.rows(site.graph, wt, b0);
        let time = site.graph.gather(time, &self.owner);
        let kinds = kinds(types);
        if kinds == 1 {
            return time;
        }
        let table = site.param(network, "types");
        let pattern: Vec<u32> = (0..self.owner.len())
            .map(|k| types[k % self.particles])
            .collect();
        let types = rows_of_table(site.graph, table, &pattern);
        site.graph.add(time, types)
    }
}

/// Rows of a table of parameters, the same for every unit.
pub(crate) fn rows_of_table(g: &mut Graph, table: Node, pattern: &[u32]) -> Node {
    let shape = g.shape(table);
    let Rows::Global(count) = shape.rows else {
        unreachable!("parameters belong to no unit")
    };
    let flat = g.reshape(table, Rows::Global(1), count * shape.cols);
    let flat = g.broadcast_rows(flat, Rows::Unit(1));
    let table = g.reshape(flat, Rows::Unit(count), shape.cols);
    g.gather(table, pattern)
}

/// Number of different types.
pub(super) fn kinds(types: &[u32]) -> usize {
    types.iter().max().map_or(1, |most| *most as usize + 1)
}

/// Declares what [`Roster::features`] needs.
pub(super) fn declare_features(
    layout: &mut Layout,
    network: &str,
    features: usize,
    width: usize,
    types: &[u32],
) {
    let fan = Init::Normal(1.0 / (features as f64).sqrt());
    layout.add(format!("{network}.wt"), features, width, fan);
    layout.add(format!("{network}.b0"), 1, width, Init::Zero);
    if kinds(types) > 1 {
        let rows = kinds(types);
        layout.add(format!("{network}.types"), rows, width, Init::Normal(1.0));
    }
}

/// A size that cannot be built.
pub(super) fn wrong<T>(name: &'static str, found: String, expected: &str) -> Result<T> {
    Err(Error::Value {
        name,
        found,
        expected: expected.into(),
    })
}

/// Refuses columns and numbers of layers that cannot be.
pub(super) fn check_sizes((width, depth): (usize, usize)) -> Result<()> {
    if width == 0 || width > 1 << 12 {
        return wrong("width", width.to_string(), "between 1 and 4096");
    }
    if depth == 0 || depth > 64 {
        return wrong("depth", depth.to_string(), "between 1 and 64");
    }
    Ok(())
}

/// Refuses numbers of particles, types and sizes that cannot be.
pub(super) fn check_particles(
    dim: usize,
    particles: usize,
    types: &[u32],
    sizes: (usize, usize),
) -> Result<()> {
    if particles < 2 || !dim.is_multiple_of(particles) {
        return wrong(
            "particles",
            particles.to_string(),
            "at least 2, and a divisor of the dimension",
        );
    }
    check_sizes(sizes)?;
    let many = kinds(types) > particles;
    if !types.is_empty() && (types.len() != particles || many) {
        return wrong(
            "types",
            format!("{} numbers up to {}", types.len(), kinds(types) - 1),
            "one for each particle, from 0 on",
        );
    }
    Ok(())
}
