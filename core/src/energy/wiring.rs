//! The wiring: which inputs of a built graph must be filled, and with what.

use std::sync::Arc;

use super::column::{Column, TimeFunction};
use crate::base::Springs;
use crate::engine::{Graph, Node, Rows};

/// How rows know their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeMode {
    /// By the index of one of so many levels: the network's time branch is a table of that many rows.
    Levels(usize),
    /// By its value.
    Continuous,
}

/// Rows that share a pattern of times: row `r` of a unit is at the unit's time number `time_of_row[r]`.
#[derive(Debug, Clone)]
pub struct Group {
    /// Which of the unit's times each row is at.
    pub time_of_row: Vec<u32>,
    /// Columns: input slot, function, whether its derivative is meant.
    pub columns: Vec<(usize, Column, bool)>,
    /// Index slot of the level, if asked for.
    pub level: Option<usize>,
    /// Index slots of the levels below and above the row's cell of the grid, if asked for.
    pub cell: Option<(usize, usize)>,
    /// Slots of the springs' numbers and of their derivatives in time, if asked for.
    pub springs: [Option<usize>; 2],
}

/// What an energy on a mixture needs of it at some points: inputs that are functions of the points, through which no derivative
/// passes. Each point is asked for at as many times as it has rows.
#[derive(Debug, Clone, Copy)]
pub struct BaseSlots {
    /// Input slot of the points.
    pub points: usize,
    /// Row group that holds the rows' times.
    pub group: usize,
    /// Slot of `log b_t(y)`, a column.
    pub log_density: usize,
    /// Slot of its gradient in y, if asked for.
    pub score: Option<usize>,
    /// Slot of its derivative in t, if asked for.
    pub time_score: Option<usize>,
    /// Slot of its Laplacian in y, if asked for.
    pub laplacian: Option<usize>,
}

/// The inputs of a built graph.
#[derive(Debug, Clone, Default)]
pub struct Wiring {
    /// Row groups.
    pub groups: Vec<Group>,
    /// Global input slot of the table of time features.
    pub features: Option<usize>,
    /// Global input slot of the derivatives of that table.
    pub feature_rates: Option<usize>,
    /// Global input slot of the frequencies (continuous times).
    pub frequencies: Option<usize>,
    /// Global input slot of the data's mean.
    pub mean: Option<usize>,
    /// Global input slots of what takes periodic columns to circles.
    pub chart: Option<[usize; super::chart::PARTS]>,
    /// Values of the mixture that the energy stands on.
    pub base: Vec<BaseSlots>,
    /// What the springs' soft functions are multiplied by: particles of the terms, number of the function, global input slot.
    pub leaning: Vec<(usize, usize, usize)>,
    /// Functions of time from outside.
    pub given: Vec<Arc<dyn TimeFunction>>,
}

impl Wiring {
    /// A function of the rows' times, or its derivative.
    pub(super) fn column(
        &mut self,
        graph: &mut Graph,
        group: usize,
        column: Column,
        rate: bool,
    ) -> Node {
        let g = &mut self.groups[group];
        if let Some(&(slot, ..)) = g.columns.iter().find(|c| c.1 == column && c.2 == rate) {
            return graph.input_node(slot);
        }
        let (node, slot) = graph.input(Rows::Unit(g.time_of_row.len()), 1);
        g.columns.push((slot, column, rate));
        node
    }

    pub(super) fn level(&mut self, graph: &mut Graph, group: usize) -> usize {
        let g = &mut self.groups[group];
        *g.level
            .get_or_insert_with(|| graph.index(g.time_of_row.len()))
    }

    pub(super) fn cell(&mut self, graph: &mut Graph, group: usize) -> (usize, usize) {
        let g = &mut self.groups[group];
        let rows = g.time_of_row.len();
        *g.cell
            .get_or_insert_with(|| (graph.index(rows), graph.index(rows)))
    }

    /// The springs' numbers at the rows' times, or their derivatives.
    pub(super) fn springs(
        &mut self,
        graph: &mut Graph,
        group: usize,
        springs: &Springs,
        rates: bool,
    ) -> Node {
        let g = &mut self.groups[group];
        let rows = Rows::Unit(g.time_of_row.len());
        let slot = &mut g.springs[usize::from(rates)];
        let slot = *slot.get_or_insert_with(|| graph.input(rows, springs.columns()).1);
        graph.input_node(slot)
    }

    /// The numbers of one soft function of the springs, a row for each term and a column for each end.
    pub(super) fn leaning(
        &mut self,
        graph: &mut Graph,
        springs: &Springs,
        particles: usize,
        function: usize,
    ) -> Node {
        let known = |of: &&(usize, usize, usize)| (of.0, of.1) == (particles, function);
        if let Some((.., slot)) = self.leaning.iter().find(known) {
            return graph.input_node(*slot);
        }
        let terms = springs.soft_of(particles).count();
        let (node, slot) = graph.input(Rows::Global(terms), springs.leaning.len());
        self.leaning.push((particles, function, slot));
        node
    }

    /// The table of time features, or of their derivatives.
    pub(super) fn table(
        &mut self,
        graph: &mut Graph,
        rates: bool,
        levels: usize,
        features: usize,
    ) -> Node {
        let slot = if rates {
            &mut self.feature_rates
        } else {
            &mut self.features
        };
        let slot = *slot.get_or_insert_with(|| graph.input(Rows::Global(levels), features).1);
        graph.input_node(slot)
    }
}
