//! The graph: a few primitives on matrices of rows, closed under differentiation.
//!
//! A node is a matrix. Its rows are either **global** (a parameter, a table of time levels: there is one per run) or
//! belong to **units**: a unit is one source row of the batch with everything derived from it (its N noisy points, its
//! N x N grid of energies, its particles and pairs), so a `Unit(m)` node has `m` rows per unit. Units are independent;
//! the executor runs them in tiles. Only [`Op::Outer`], [`Op::SumRows`] and [`Op::Scatter`] lead from units to global
//! nodes, by summing.
//!
//! Equal nodes are one node (hash-consing), so two objectives that ask for the same energy share it.

use std::collections::HashMap;
use std::sync::Arc;

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
    /// Columns from here on, as many as the node has.
    Slice(usize),
    /// The input placed at this column, zero elsewhere.
    Pad(usize),
    /// The same numbers in another shape (row-major).
    Reshape,
    /// Row `i` of a unit is row `pattern[i]` of the input's unit.
    Gather(usize),
    /// Row `j` of a unit is the sum of the input's rows `i` with `pattern[i] = j`.
    SegmentSum(usize),
    /// Row `r` is row `index[r]` of a global table: index slot.
    Lookup(usize),
    /// `table[index[r]] += a[r]`: index slot.
    Scatter(usize),
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

    fn push(&mut self, op: Op, inputs: [Option<Node>; 2], rows: Rows, cols: usize) -> Node {
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
        self.parameters = self.parameters.max(offset + rows * cols);
        self.push(Op::Param(offset), [None, None], Rows::Global(rows), cols)
    }

    /// A new input that the caller fills; returns its node and its slot.
    pub fn input(&mut self, rows: Rows, cols: usize) -> (Node, usize) {
        let slot = self.inputs.len();
        self.inputs.push(Shape { rows, cols });
        (self.push(Op::Input(slot), [None, None], rows, cols), slot)
    }

    /// The node of an input made earlier.
    pub fn input_node(&mut self, slot: usize) -> Node {
        let Shape { rows, cols } = self.inputs[slot];
        self.push(Op::Input(slot), [None, None], rows, cols)
    }

    /// A new index input with `per_unit` entries for each unit; returns its slot.
    pub fn index(&mut self, per_unit: usize) -> usize {
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

    // Products.

    /// `a W`, or `a W^T`.
    pub fn matmul(&mut self, a: Node, w: Node, transposed: bool) -> Node {
        let ws = self.shape(w);
        let Rows::Global(rows) = ws.rows else {
            unreachable!("the right operand of matmul is global")
        };
        let (k, n) = if transposed {
            (ws.cols, rows)
        } else {
            (rows, ws.cols)
        };
        assert_eq!(
            self.cols(a),
            k,
            "matmul: {:?} times {ws:?}, transposed {transposed}",
            self.shape(a)
        );
        self.push(
            Op::MatMul { transposed },
            [Some(a), Some(w)],
            self.rows(a),
            n,
        )
    }

    /// `sum_r a[r]^T b[r]`.
    pub fn outer(&mut self, a: Node, b: Node) -> Node {
        assert_eq!(self.rows(a), self.rows(b), "outer needs equal rows");
        self.push(
            Op::Outer,
            [Some(a), Some(b)],
            Rows::Global(self.cols(a)),
            self.cols(b),
        )
    }

    // Between rows.

    /// A global row, repeated.
    pub fn broadcast_rows(&mut self, b: Node, rows: Rows) -> Node {
        assert_eq!(
            self.rows(b),
            Rows::Global(1),
            "broadcast_rows needs one global row"
        );
        self.push(Op::BroadcastRows, [Some(b), None], rows, self.cols(b))
    }

    /// Sum of all rows of all units.
    pub fn sum_rows(&mut self, a: Node) -> Node {
        self.push(Op::SumRows, [Some(a), None], Rows::Global(1), self.cols(a))
    }

    /// `a[r] + b` for a global row `b`.
    pub fn bias(&mut self, a: Node, b: Node) -> Node {
        assert_eq!(
            self.shape(b),
            Shape {
                rows: Rows::Global(1),
                cols: self.cols(a)
            },
            "bias needs one row"
        );
        self.push(Op::Bias, [Some(a), Some(b)], self.rows(a), self.cols(a))
    }

    /// Rows of a unit picked by a fixed pattern.
    pub fn gather(&mut self, a: Node, pattern: &[u32]) -> Node {
        let Rows::Unit(rows) = self.rows(a) else {
            unreachable!("gather needs rows of units; use lookup for a table")
        };
        assert!(
            pattern.iter().all(|&p| (p as usize) < rows),
            "gather pattern reaches beyond {rows} rows"
        );
        if pattern.len() == rows && pattern.iter().enumerate().all(|(i, &p)| i == p as usize) {
            return a;
        }
        let id = self.pattern(pattern);
        self.push(
            Op::Gather(id),
            [Some(a), None],
            Rows::Unit(pattern.len()),
            self.cols(a),
        )
    }

    /// Rows of a unit added up into `to` rows by a fixed pattern.
    pub fn segment_sum(&mut self, a: Node, pattern: &[u32], to: usize) -> Node {
        assert_eq!(
            self.rows(a),
            Rows::Unit(pattern.len()),
            "segment_sum pattern must name every row"
        );
        assert!(
            pattern.iter().all(|&p| (p as usize) < to),
            "segment_sum pattern reaches beyond {to} rows"
        );
        if pattern.len() == to && pattern.iter().enumerate().all(|(i, &p)| i == p as usize) {
            return a;
        }
        let id = self.pattern(pattern);
        self.push(
            Op::SegmentSum(id),
            [Some(a), None],
            Rows::Unit(to),
            self.cols(a),
        )
    }

    /// Sum of the rows of each unit.
    pub fn unit_sum(&mut self, a: Node) -> Node {
        match self.rows(a) {
            Rows::Unit(1) | Rows::Global(_) => a,
            Rows::Unit(m) => self.segment_sum(a, &vec![0; m], 1),
        }
    }

    fn pattern(&mut self, pattern: &[u32]) -> usize {
        match self.patterns.iter().position(|p| p[..] == *pattern) {
            Some(id) => id,
            None => {
                self.patterns.push(pattern.into());
                self.patterns.len() - 1
            }
        }
    }

    /// Rows of a global table chosen by an index input.
    pub fn lookup(&mut self, table: Node, slot: usize) -> Node {
        assert!(
            matches!(self.rows(table), Rows::Global(_)),
            "lookup needs a global table"
        );
        self.push(
            Op::Lookup(slot),
            [Some(table), None],
            Rows::Unit(self.index_slots[slot]),
            self.cols(table),
        )
    }

    /// Rows added into a global table of `n` rows by an index input.
    pub fn scatter(&mut self, a: Node, slot: usize, n: usize) -> Node {
        assert_eq!(
            self.rows(a),
            Rows::Unit(self.index_slots[slot]),
            "scatter needs a row per index"
        );
        self.push(
            Op::Scatter(slot),
            [Some(a), None],
            Rows::Global(n),
            self.cols(a),
        )
    }

    /// The same numbers, row-major, as `Unit(m)` rows of `cols`.
    pub fn reshape(&mut self, a: Node, rows: Rows, cols: usize) -> Node {
        if self.shape(a) == (Shape { rows, cols }) {
            return a;
        }
        let size = |s: Shape| match s.rows {
            Rows::Global(m) => (false, m * s.cols),
            Rows::Unit(m) => (true, m * s.cols),
        };
        assert_eq!(
            size(self.shape(a)),
            size(Shape { rows, cols }),
            "reshape must keep the numbers of a unit"
        );
        if let (Op::Reshape, [Some(inner), _]) =
            (self.entries[a.id()].op, self.entries[a.id()].inputs)
        {
            return self.reshape(inner, rows, cols);
        }
        self.push(Op::Reshape, [Some(a), None], rows, cols)
    }

    // Element by element.

    /// `a + b`.
    pub fn add(&mut self, a: Node, b: Node) -> Node {
        assert_eq!(self.shape(a), self.shape(b), "add needs equal shapes");
        if a == b {
            return self.affine(a, 2.0, 0.0);
        }
        match (self.constant_value(a), self.constant_value(b)) {
            (Some(x), _) => self.affine(b, 1.0, x),
            (_, Some(x)) => self.affine(a, 1.0, x),
            _ => {
                let (a, b) = (a.min(b), a.max(b));
                self.push(Op::Add, [Some(a), Some(b)], self.rows(a), self.cols(a))
            }
        }
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Node, b: Node) -> Node {
        assert_eq!(self.shape(a), self.shape(b), "sub needs equal shapes");
        match (self.constant_value(a), self.constant_value(b)) {
            (Some(x), _) => self.affine(b, -1.0, x),
            (_, Some(x)) => self.affine(a, 1.0, -x),
            _ => self.push(Op::Sub, [Some(a), Some(b)], self.rows(a), self.cols(a)),
        }
    }

    /// `a b`.
    pub fn mul(&mut self, a: Node, b: Node) -> Node {
        assert_eq!(self.shape(a), self.shape(b), "mul needs equal shapes");
        match (self.constant_value(a), self.constant_value(b)) {
            (Some(x), _) => self.affine(b, x, 0.0),
            (_, Some(x)) => self.affine(a, x, 0.0),
            _ => {
                for (a, b) in [(a, b), (b, a)] {
                    if let (Op::BroadcastColumns, [Some(s), _]) =
                        (self.entries[b.id()].op, self.entries[b.id()].inputs)
                    {
                        return self.mul_column(a, s);
                    }
                }
                let (a, b) = (a.min(b), a.max(b));
                self.push(Op::Mul, [Some(a), Some(b)], self.rows(a), self.cols(a))
            }
        }
    }

    /// `scale a + shift`.
    pub fn affine(&mut self, a: Node, scale: f64, shift: f64) -> Node {
        if scale == 1.0 && shift == 0.0 {
            return a;
        }
        let entry = &self.entries[a.id()];
        match (entry.op, entry.inputs) {
            (Op::Constant(x), _) => {
                let (value, shape) = (scale * f64::from_bits(x) + shift, entry.shape);
                self.constant(value, shape)
            }
            (Op::Affine { scale: s, shift: t }, [Some(inner), _]) if !self.is_detached(a) => {
                let (s, t) = (f64::from_bits(s), f64::from_bits(t));
                self.affine(inner, scale * s, scale * t + shift)
            }
            _ if scale == 0.0 => self.constant(shift, self.shape(a)),
            _ => {
                let op = Op::Affine {
                    scale: scale.to_bits(),
                    shift: shift.to_bits(),
                };
                self.push(op, [Some(a), None], self.rows(a), self.cols(a))
            }
        }
    }

    /// `a` itself, as a constant for [`grad`](Graph::grad): no derivative passes. It is the affine map with factor 1 and shift
    /// -0, which changes no number and which [`affine`](Graph::affine) never makes.
    pub fn detach(&mut self, a: Node) -> Node {
        let op = Op::Affine {
            scale: 1f64.to_bits(),
            shift: (-0f64).to_bits(),
        };
        self.push(op, [Some(a), None], self.rows(a), self.cols(a))
    }

    /// Whether derivatives stop at this node.
    pub(crate) fn is_detached(&self, node: Node) -> bool {
        let shift = (-0f64).to_bits();
        matches!(self.entries[node.id()].op, Op::Affine { shift: s, scale } if s == shift && scale == 1f64.to_bits())
    }

    /// `factor a`.
    pub fn scale(&mut self, a: Node, factor: f64) -> Node {
        self.affine(a, factor, 0.0)
    }

    /// A scalar function of each element.
    pub fn unary(&mut self, function: Function, a: Node) -> Node {
        self.push(
            Op::Unary(function),
            [Some(a), None],
            self.rows(a),
            self.cols(a),
        )
    }

    /// `a^p`.
    pub fn power(&mut self, a: Node, p: f64) -> Node {
        match p {
            1.0 => a,
            0.0 => self.constant(1.0, self.shape(a)),
            2.0 => self.mul(a, a),
            _ => self.unary(Function::Power(p.to_bits()), a),
        }
    }

    // Within rows.

    /// `s[r] a[r]`.
    pub fn mul_column(&mut self, a: Node, s: Node) -> Node {
        assert_eq!(
            self.shape(s),
            Shape {
                rows: self.rows(a),
                cols: 1
            },
            "mul_column needs a column"
        );
        if let Some(x) = self.constant_value(s) {
            return self.affine(a, x, 0.0);
        }
        if let Some(x) = self.constant_value(a) {
            let s = self.affine(s, x, 0.0);
            return self.broadcast_columns(s, self.cols(a));
        }
        if self.cols(a) == 1 {
            return self.mul(a, s);
        }
        self.push(
            Op::MulColumn,
            [Some(a), Some(s)],
            self.rows(a),
            self.cols(a),
        )
    }

    /// `sum_c a[r][c] b[r][c]`.
    pub fn row_dot(&mut self, a: Node, b: Node) -> Node {
        assert_eq!(self.shape(a), self.shape(b), "row_dot needs equal shapes");
        for (a, b) in [(a, b), (b, a)] {
            if let Some(x) = self.constant_value(b) {
                let sum = self.row_sum(a);
                return self.affine(sum, x, 0.0);
            }
        }
        if self.cols(a) == 1 {
            return self.mul(a, b);
        }
        let (a, b) = (a.min(b), a.max(b));
        self.push(Op::RowDot, [Some(a), Some(b)], self.rows(a), 1)
    }

    /// `sum_c a[r][c]`.
    pub fn row_sum(&mut self, a: Node) -> Node {
        if self.cols(a) == 1 {
            return a;
        }
        if let Some(x) = self.constant_value(a) {
            return self.constant(
                x * self.cols(a) as f64,
                Shape {
                    rows: self.rows(a),
                    cols: 1,
                },
            );
        }
        self.push(Op::RowSum, [Some(a), None], self.rows(a), 1)
    }

    /// A column repeated `cols` times.
    pub fn broadcast_columns(&mut self, s: Node, cols: usize) -> Node {
        assert_eq!(self.cols(s), 1, "broadcast_columns needs a column");
        if cols == 1 {
            return s;
        }
        if let Some(x) = self.constant_value(s) {
            return self.constant(
                x,
                Shape {
                    rows: self.rows(s),
                    cols,
                },
            );
        }
        self.push(Op::BroadcastColumns, [Some(s), None], self.rows(s), cols)
    }

    /// `ln sum_c exp a[r][c]`.
    pub fn log_sum_exp(&mut self, a: Node) -> Node {
        self.push(Op::LogSumExp, [Some(a), None], self.rows(a), 1)
    }

    /// `exp(a[r][c]) / sum_c exp a[r][c]`.
    pub fn softmax(&mut self, a: Node) -> Node {
        self.push(Op::Softmax, [Some(a), None], self.rows(a), self.cols(a))
    }

    /// Columns `start .. start + width`.
    pub fn slice(&mut self, a: Node, start: usize, width: usize) -> Node {
        assert!(
            start + width <= self.cols(a),
            "slice {start}+{width} of {} columns",
            self.cols(a)
        );
        if width == self.cols(a) {
            return a;
        }
        self.push(Op::Slice(start), [Some(a), None], self.rows(a), width)
    }

    /// The columns of `a` at `start` among `cols`, zero elsewhere.
    pub fn pad(&mut self, a: Node, start: usize, cols: usize) -> Node {
        assert!(
            start + self.cols(a) <= cols,
            "pad {start}+{} into {cols} columns",
            self.cols(a)
        );
        if self.cols(a) == cols {
            return a;
        }
        self.push(Op::Pad(start), [Some(a), None], self.rows(a), cols)
    }

    /// `a` and `b` side by side.
    pub fn concat(&mut self, a: Node, b: Node) -> Node {
        let (ca, cb) = (self.cols(a), self.cols(b));
        let (a, b) = (self.pad(a, 0, ca + cb), self.pad(b, ca, ca + cb));
        self.add(a, b)
    }

    /// `|a[r] - b[r]|^2`, a column.
    pub fn squared_distance(&mut self, a: Node, b: Node) -> Node {
        let difference = self.sub(a, b);
        self.row_dot(difference, difference)
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
