//! The graph: a few primitives on matrices of rows, closed under differentiation.
//!
//! A node is a matrix. Its rows are either **global** (a parameter, a table of time levels: there is one per run) or
//! belong to **units**: a unit is one source row of the batch with everything derived from it (its N noisy points, its
//! N x N grid of energies, its particles and pairs), so a `Unit(m)` node has `m` rows per unit. Units are independent;
//! the executor runs them in tiles. Only [`Op::Outer`], [`Op::SumRows`] and [`Op::Scatter`] lead from units to global
//! nodes, by summing.
//!
//! Equal nodes are one node (hash-consing), so two objectives that ask for the same energy share it.

mod attention;
mod products;
mod rowwise;

use std::collections::HashMap;
use std::sync::Arc;

/// Numbers of a node in a tile, and parameters of a graph: more than any memory holds, and so few that no sum of sizes can wrap
/// around. The kernels work on addresses that are made of these sizes.
const MOST_NUMBERS: usize = 1 << 40;
/// Nodes of a graph: as many of the largest are still a number.
const MOST_NODES: usize = 1 << 20;

/// Numbers of a matrix in a tile of so many units. Sizes that cannot be are refused here, before an address is made of them.
pub(crate) fn checked_len(rows: Rows, cols: usize, tile_units: usize) -> usize {
    let (Rows::Global(m) | Rows::Unit(m)) = rows;
    let units = match rows {
        Rows::Global(_) => 1,
        Rows::Unit(_) => tile_units,
    };
    let len = m.checked_mul(cols).and_then(|len| len.checked_mul(units));
    match len {
        Some(len) if len <= MOST_NUMBERS => len,
        _ => {
            panic!("{m} x {cols} numbers for each of {units} units are more than any memory holds")
        }
    }
}

/// A node of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub(crate) u32);

impl Node {
    pub(crate) fn id(self) -> usize {
        self.0 as usize
    }
}

/// How many rows a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rows {
    /// That many rows in all.
    Global(usize),
    /// That many rows for each unit.
    Unit(usize),
}

impl Rows {
    /// Another number of rows of the same kind.
    pub(crate) fn with(self, count: usize) -> Rows {
        match self {
            Rows::Global(_) => Rows::Global(count),
            Rows::Unit(_) => Rows::Unit(count),
        }
    }
}

/// Shape of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows.
    pub rows: Rows,
    /// Columns.
    pub cols: usize,
}

impl Shape {
    /// `rows` of `cols` numbers.
    pub fn new(rows: Rows, cols: usize) -> Shape {
        Shape { rows, cols }
    }
}

/// A scalar function applied to each element. Real-valued parameters are kept as bits so that nodes can be hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// Derivative of order 0 to 3 of `z sigmoid(z)`.
    Silu(u8),
    /// Derivative of order 0 to 3 of `z sigmoid(p(z))`, `p(z) = sqrt(8 / pi) (z + 0.044715 z^3)`.
    Gelu(u8),
    /// `1 / (1 + exp(-z))`.
    Sigmoid,
    /// `ln(1 + exp z)`.
    Softplus,
    /// Exponential.
    Exp,
    /// Natural logarithm.
    Ln,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// `z^p`, the exponent as bits of an f64.
    Power(u64),
}

impl Function {
    /// The order of a derivative of which kernels give several at once, with a number for the function it is of.
    pub(crate) fn order(self) -> Option<(usize, usize)> {
        match self {
            Function::Silu(order) => Some((0, order as usize)),
            Function::Gelu(order) => Some((1, order as usize)),
            _ => None,
        }
    }
}

/// A primitive. The formula gives the node's value from its inputs `a`, `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// A range of the flat parameter vector, starting here.
    Param(usize),
    /// Numbers filled in by the caller: slot.
    Input(usize),
    /// The same number everywhere (bits of an f64).
    Constant(u64),
    /// `a W`, or `a W^T` if `transposed`; `W` is global.
    MatMul {
        /// Use the transpose of the right operand.
        transposed: bool,
    },
    /// `sum_r a[r]^T b[r]`, a global `cols(a) x cols(b)` matrix.
    Outer,
    /// Global `1 x c` repeated for every row.
    BroadcastRows,
    /// `sum_r a[r]`, global `1 x c`.
    SumRows,
    /// `a[r] + b`, `b` global `1 x c`.
    Bias,
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a b`, element by element.
    Mul,
    /// `scale a + shift` (bits of f64).
    Affine {
        /// Factor.
        scale: u64,
        /// Addend.
        shift: u64,
    },
    /// `s[r] a[r]`, `s` a column.
    MulColumn,
    /// `sum_c a[r][c] b[r][c]`, a column.
    RowDot,
    /// `sum_c a[r][c]`, a column.
    RowSum,
    /// A column repeated.
    BroadcastColumns,
    /// A scalar function of each element.
    Unary(Function),
    /// `ln sum_c exp a[r][c]`, a column.
    LogSumExp,
    /// `exp(a[r][c]) / sum_c exp a[r][c]`.
    Softmax,
    /// `out[i][h, j] = sum_c a[i][h, c] b[j][h, c]` within blocks of rows, head by head.
    Scores(Blocks),
    /// `out[i][h, c] = sum_j a[i][h, j] b[j][h, c]` within blocks of rows, head by head; transposed, `sum_j a[j][h, i] b[j][h, c]`.
    Blend {
        /// Rows of a block, and heads.
        blocks: Blocks,
        /// Use the transpose of each head's square of weights.
        transposed: bool,
    },
    /// Columns from here on, as many as the node has.
    Slice(usize),
    /// The input placed at this column, zero elsewhere.
    Pad(usize),
    /// The same numbers in another shape (row-major).
    Reshape,
    /// Row `i` of a unit is row `pattern[i]` of the input's unit; of global rows alike.
    Gather(usize),
    /// Row `j` of a unit is the sum of the input's rows `i` with `pattern[i] = j`; of global rows alike.
    SegmentSum(usize),
    /// Row `r` is row `index[r]` of a global table: index slot.
    Lookup(usize),
    /// `table[index[r]] += a[r]`: index slot.
    Scatter(usize),
}

/// Rows that look at each other, and how often side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Consecutive rows of a unit that belong together.
    pub rows: usize,
    /// Groups of columns of equal width.
    pub heads: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) op: Op,
    pub(crate) inputs: [Option<Node>; 2],
    pub(crate) shape: Shape,
}

/// A graph under construction. See the module's text.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub(crate) entries: Vec<Entry>,
    index: HashMap<Entry, Node>,
    pub(crate) patterns: Vec<Arc<[u32]>>,
    pub(crate) inputs: Vec<Shape>,
    pub(crate) index_slots: Vec<usize>,
    pub(crate) parameters: usize,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// The same inputs, patterns and parameters for nodes that are written anew.
    pub(crate) fn without_nodes(&self) -> Graph {
        Graph {
            entries: Vec::new(),
            index: HashMap::new(),
            patterns: self.patterns.clone(),
            inputs: self.inputs.clone(),
            index_slots: self.index_slots.clone(),
            parameters: self.parameters,
        }
    }

    /// Shape of a node.
    pub fn shape(&self, node: Node) -> Shape {
        self.entries[node.id()].shape
    }

    fn rows(&self, node: Node) -> Rows {
        self.shape(node).rows
    }

    fn cols(&self, node: Node) -> usize {
        self.shape(node).cols
    }

    /// The node of this primitive, a new one if there is none; without the simplifications of the functions that name primitives.
    pub(super) fn push(
        &mut self,
        op: Op,
        inputs: [Option<Node>; 2],
        rows: Rows,
        cols: usize,
    ) -> Node {
        checked_len(rows, cols, 1);
        assert!(
            self.entries.len() < MOST_NODES,
            "{MOST_NODES} nodes are no graph of rows"
        );
        let entry = Entry {
            op,
            inputs,
            shape: Shape { rows, cols },
        };
        if let Some(&node) = self.index.get(&entry) {
            return node;
        }
        let node = Node(self.entries.len() as u32);
        self.entries.push(entry.clone());
        self.index.insert(entry, node);
        node
    }

    fn constant_value(&self, node: Node) -> Option<f64> {
        match self.entries[node.id()].op {
            Op::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    // Leaves.

    /// The parameters `offset .. offset + rows * cols` as a matrix.
    pub fn param(&mut self, offset: usize, rows: usize, cols: usize) -> Node {
        let end = offset.checked_add(checked_len(Rows::Global(rows), cols, 1));
        let end = end.filter(|end| *end <= MOST_NUMBERS);
        assert!(
            end.is_some(),
            "parameters from {offset} on, {rows} x {cols}, are more than there can be"
        );
        self.parameters = self.parameters.max(end.unwrap_or(0));
        self.push(Op::Param(offset), [None, None], Rows::Global(rows), cols)
    }

    /// A new input that the caller fills; returns its node and its slot.
    pub fn input(&mut self, rows: Rows, cols: usize) -> (Node, usize) {
        checked_len(rows, cols, 1);
        let slot = self.inputs.len();
        self.inputs.push(Shape { rows, cols });
        (self.push(Op::Input(slot), [None, None], rows, cols), slot)
    }

    /// The slot of a node that is an input.
    pub fn input_slot(&self, node: Node) -> Option<usize> {
        match self.entries[node.id()].op {
            Op::Input(slot) => Some(slot),
            _ => None,
        }
    }

    /// The node of an input made earlier.
    pub fn input_node(&mut self, slot: usize) -> Node {
        let Shape { rows, cols } = self.inputs[slot];
        self.push(Op::Input(slot), [None, None], rows, cols)
    }

    /// A new index input with `per_unit` entries for each unit; returns its slot.
    pub fn index(&mut self, per_unit: usize) -> usize {
        checked_len(Rows::Unit(per_unit), 1, 1);
        self.index_slots.push(per_unit);
        self.index_slots.len() - 1
    }

    /// The same number everywhere.
    pub fn constant(&mut self, value: f64, shape: Shape) -> Node {
        self.push(
            Op::Constant(value.to_bits()),
            [None, None],
            shape.rows,
            shape.cols,
        )
    }

    /// Nodes, one per line, as the plan prints them.
    pub(crate) fn describe(&self, node: Node) -> String {
        let entry = &self.entries[node.id()];
        let inputs: Vec<String> = entry
            .inputs
            .iter()
            .flatten()
            .map(|n| format!("%{}", n.0))
            .collect();
        let shape = match entry.shape.rows {
            Rows::Global(m) => format!("{m}x{}", entry.shape.cols),
            Rows::Unit(m) => format!("u*{m}x{}", entry.shape.cols),
        };
        let op = match entry.op {
            Op::Constant(bits) => format!("constant {}", f64::from_bits(bits)),
            Op::Affine { scale, shift } => {
                format!("affine {} {}", f64::from_bits(scale), f64::from_bits(shift))
            }
            Op::Unary(Function::Power(p)) => format!("power {}", f64::from_bits(p)),
            op => format!("{op:?}").to_lowercase(),
        };
        format!("%{} [{shape}] = {op} {}", node.0, inputs.join(" "))
    }
}
