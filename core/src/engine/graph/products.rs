//! Primitives that mix rows or move them: products, sums over rows, gathers, tables, other shapes.

use super::{Graph, Node, Op, Rows, Shape, checked_len};

impl Graph {
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

    /// Rows of a unit, or of a global matrix, picked by a fixed pattern.
    pub fn gather(&mut self, a: Node, pattern: &[u32]) -> Node {
        let (Rows::Unit(rows) | Rows::Global(rows)) = self.rows(a);
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
            self.rows(a).with(pattern.len()),
            self.cols(a),
        )
    }

    /// Rows of a unit, or of a global matrix, added up into `to` rows by a fixed pattern.
    pub fn segment_sum(&mut self, a: Node, pattern: &[u32], to: usize) -> Node {
        assert_eq!(
            self.rows(a),
            self.rows(a).with(pattern.len()),
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
            self.rows(a).with(to),
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
        let size = |s: Shape| {
            (
                matches!(s.rows, Rows::Unit(_)),
                checked_len(s.rows, s.cols, 1),
            )
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
}
