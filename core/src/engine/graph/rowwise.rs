//! Primitives that work element by element or within a row.

use super::{Function, Graph, Node, Op, Shape};

impl Graph {
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
                for (a, b) in [(a, b), (b, a)] {
                    // Scaled rows are added with one rounding.
                    let scaled = matches!(self.entries[a.id()].op, Op::MulColumn);
                    if let (false, Some((-1.0, b))) = (scaled, self.multiple(b)) {
                        return self.sub(a, b);
                    }
                }
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

    /// The factor and the node of which another is a multiple, if the factor is a power of two: such products are exact, and every number
    /// stays what it was wherever the factor goes.
    fn multiple(&self, node: Node) -> Option<(f64, Node)> {
        let entry = &self.entries[node.id()];
        match (entry.op, entry.inputs) {
            (Op::Affine { scale, shift: 0 }, [Some(a), _]) => {
                let factor = f64::from_bits(scale);
                let mantissa = scale & ((1 << 52) - 1);
                (factor.is_normal() && mantissa == 0).then_some((factor, a))
            }
            _ => None,
        }
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
        // A factor is cheaper at the column.
        if let Some((x, a)) = self.multiple(a) {
            let s = self.affine(s, x, 0.0);
            return self.mul_column(a, s);
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
        for (a, b) in [(a, b), (b, a)] {
            if let Some((x, b)) = self.multiple(b) {
                let dot = self.row_dot(a, b);
                return self.affine(dot, x, 0.0);
            }
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
        if let Some((x, a)) = self.multiple(a) {
            let sum = self.row_sum(a);
            return self.affine(sum, x, 0.0);
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
            start
                .checked_add(width)
                .is_some_and(|end| end <= self.cols(a)),
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
            start
                .checked_add(self.cols(a))
                .is_some_and(|end| end <= cols),
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
}
