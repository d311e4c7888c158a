//! `grad`: reverse differentiation as a graph transformation. Its result is made of the same primitives, so it can be
//! differentiated again: scores, time derivatives, Hessian-vector products and parameter gradients of any of them all
//! come from this one function.

use super::graph::{Function, Graph, Node, Op, Rows};

impl Graph {
    /// Gradient of `sum over outputs of <seed, output>` with respect to each node of `wrt`.
    ///
    /// Each output comes with its seed, a node of the same shape. A node of `wrt` on which no output depends gets a
    /// zero constant.
    pub fn grad(&mut self, outputs: &[(Node, Node)], wrt: &[Node]) -> Vec<Node> {
        let end = outputs.iter().map(|(n, _)| n.id() + 1).max().unwrap_or(0);
        // Nodes that depend on one of `wrt`: inputs have smaller ids, so one pass in order finds them.
        let mut active = vec![false; end];
        for node in wrt.iter().filter(|n| n.id() < end) {
            active[node.id()] = true;
        }
        for id in 0..end {
            let inputs = &self.entries[id].inputs;
            if inputs.iter().flatten().any(|n| active[n.id()]) && !self.is_detached(Node(id as u32))
            {
                active[id] = true;
            }
        }
        let mut cotangents: Vec<Option<Node>> = vec![None; end];
        for &(output, seed) in outputs {
            assert_eq!(
                self.shape(output),
                self.shape(seed),
                "a seed has the shape of its output"
            );
            self.accumulate(&mut cotangents, &active, output, seed);
        }
        for id in (0..end).rev() {
            if let (true, Some(g)) = (active[id], cotangents[id]) {
                self.reverse(&mut cotangents, &active, Node(id as u32), g);
            }
        }
        wrt.iter()
            .map(|&n| match cotangents.get(n.id()).copied().flatten() {
                Some(g) => g,
                None => self.constant(0.0, self.shape(n)),
            })
            .collect()
    }

    /// Gradient of the sum of all elements of `output`.
    pub fn grad_of_sum(&mut self, output: Node, wrt: &[Node]) -> Vec<Node> {
        let seed = self.constant(1.0, self.shape(output));
        self.grad(&[(output, seed)], wrt)
    }

    fn accumulate(
        &mut self,
        cotangents: &mut [Option<Node>],
        active: &[bool],
        node: Node,
        g: Node,
    ) {
        if active[node.id()] {
            cotangents[node.id()] = Some(match cotangents[node.id()] {
                Some(sum) => self.add(sum, g),
                None => g,
            });
        }
    }

    /// The symbolic reverse rule of each primitive: what `g`, the cotangent of `node`, contributes to its inputs.
    fn reverse(&mut self, cotangents: &mut [Option<Node>], active: &[bool], node: Node, g: Node) {
        let entry = self.entries[node.id()].clone();
        let [Some(a), b] = entry.inputs else { return };
        let wants = |n: Node| active[n.id()];
        macro_rules! to {
            ($node:expr, $value:expr) => {
                if wants($node) {
                    let value = $value;
                    self.accumulate(cotangents, active, $node, value);
                }
            };
        }
        match (entry.op, b) {
            (Op::MatMul { transposed }, Some(w)) => {
                to!(a, self.matmul(g, w, !transposed));
                to!(
                    w,
                    if transposed {
                        self.outer(g, a)
                    } else {
                        self.outer(a, g)
                    }
                );
            }
            (Op::Outer, Some(b)) => {
                to!(a, self.matmul(b, g, true));
                to!(b, self.matmul(a, g, false));
            }
            (Op::BroadcastRows, _) => to!(a, self.sum_rows(g)),
            (Op::SumRows, _) => to!(a, self.broadcast_rows(g, self.shape(a).rows)),
            (Op::Bias, Some(b)) => {
                to!(a, g);
                to!(b, self.sum_rows(g));
            }
            (Op::Add, Some(b)) => {
                to!(a, g);
                to!(b, g);
            }
            (Op::Sub, Some(b)) => {
                to!(a, g);
                to!(b, self.scale(g, -1.0));
            }
            (Op::Mul, Some(b)) => {
                to!(a, self.mul(g, b));
                to!(b, self.mul(g, a));
            }
            (Op::Affine { scale, .. }, _) => to!(a, self.scale(g, f64::from_bits(scale))),
            (Op::MulColumn, Some(s)) => {
                to!(a, self.mul_column(g, s));
                to!(s, self.row_dot(g, a));
            }
            (Op::RowDot, Some(b)) => {
                to!(a, self.mul_column(b, g));
                to!(b, self.mul_column(a, g));
            }
            (Op::RowSum, _) => to!(a, self.broadcast_columns(g, self.shape(a).cols)),
            (Op::BroadcastColumns, _) => to!(a, self.row_sum(g)),
            (Op::Unary(function), _) => to!(a, {
                let slope = self.derivative(function, a, node);
                self.mul(g, slope)
            }),
            (Op::LogSumExp, _) => to!(a, {
                let p = self.softmax(a);
                self.mul_column(p, g)
            }),
            (Op::Softmax, _) => to!(a, {
                let mean = self.row_dot(g, node);
                let mean = self.broadcast_columns(mean, entry.shape.cols);
                let centred = self.sub(g, mean);
                self.mul(node, centred)
            }),
            (Op::Scores(blocks), Some(b)) => {
                to!(a, self.blend(g, b, blocks, false));
                to!(b, self.blend(g, a, blocks, true));
            }
            (Op::Blend { blocks, transposed }, Some(b)) => {
                to!(
                    a,
                    if transposed {
                        self.scores(b, g, blocks)
                    } else {
                        self.scores(g, b, blocks)
                    }
                );
                to!(b, self.blend(a, g, blocks, !transposed));
            }
            (Op::Slice(start), _) => to!(a, self.pad(g, start, self.shape(a).cols)),
            (Op::Pad(start), _) => to!(a, self.slice(g, start, self.shape(a).cols)),
            (Op::Reshape, _) => to!(a, {
                let shape = self.shape(a);
                self.reshape(g, shape.rows, shape.cols)
            }),
            (Op::Gather(pattern), _) => to!(a, {
                let pattern = self.patterns[pattern].clone();
                let (Rows::Unit(to) | Rows::Global(to)) = self.shape(a).rows;
                self.segment_sum(g, &pattern, to)
            }),
            (Op::SegmentSum(pattern), _) => to!(a, {
                let pattern = self.patterns[pattern].clone();
                self.gather(g, &pattern)
            }),
            (Op::Lookup(slot), _) => to!(a, {
                let Rows::Global(n) = self.shape(a).rows else {
                    unreachable!("lookup acts on a table")
                };
                self.scatter(g, slot, n)
            }),
            (Op::Scatter(slot), _) => to!(a, self.lookup(g, slot)),
            (Op::Param(_) | Op::Input(_) | Op::Constant(_), _)
            | (
                Op::MatMul { .. }
                | Op::Outer
                | Op::Bias
                | Op::Add
                | Op::Sub
                | Op::Mul
                | Op::MulColumn
                | Op::RowDot
                | Op::Scores(_)
                | Op::Blend { .. },
                None,
            ) => unreachable!("leaves have no inputs, binary primitives two"),
        }
    }

    /// Derivative of `function` at `a`, where `value = function(a)` is already a node.
    fn derivative(&mut self, function: Function, a: Node, value: Node) -> Node {
        match function {
            Function::Silu(order @ 0..=2) => self.unary(Function::Silu(order + 1), a),
            Function::Silu(order) => self.silu_from_sigmoid(a, order as usize + 1),
            Function::Gelu(order @ 0..=2) => self.unary(Function::Gelu(order + 1), a),
            Function::Gelu(order) => self.gelu_from_sigmoid(a, order as usize + 1),
            Function::Sigmoid => {
                let square = self.mul(value, value);
                self.sub(value, square)
            }
            Function::Softplus => self.unary(Function::Sigmoid, a),
            Function::Exp => value,
            Function::Ln => self.power(a, -1.0),
            Function::Sin => self.unary(Function::Cos, a),
            Function::Cos => {
                let sin = self.unary(Function::Sin, a);
                self.scale(sin, -1.0)
            }
            Function::Power(p) => {
                let p = f64::from_bits(p);
                let lower = self.power(a, p - 1.0);
                self.scale(lower, p)
            }
        }
    }

    /// Derivative of SiLU of any order, `z s^(k) + k s^(k-1)`: `s^(k)` is a polynomial in `s`, from `s' = s - s^2`.
    /// Kernels exist up to order 3; beyond, this keeps the graph closed.
    fn silu_from_sigmoid(&mut self, z: Node, order: usize) -> Node {
        let s = self.unary(Function::Sigmoid, z);
        // Coefficients of s^(k) by power of s.
        let mut polynomial = vec![0.0, 1.0];
        let mut previous = polynomial.clone();
        for _ in 0..order {
            previous = polynomial.clone();
            let mut next = vec![0.0; polynomial.len() + 1];
            for (power, &c) in polynomial.iter().enumerate().skip(1) {
                next[power] += power as f64 * c;
                next[power + 1] -= power as f64 * c;
            }
            polynomial = next;
        }
        let high = self.polynomial(s, &polynomial);
        let high = self.mul(z, high);
        let low = self.polynomial(s, &previous);
        let low = self.scale(low, order as f64);
        self.add(high, low)
    }

    /// Derivative of GELU of any order, `z g^(k) + k g^(k-1)` with `g = s(p(z))`: `g^(k)` is a polynomial in `s` whose coefficients are
    /// polynomials in `z`, from `s' = (s - s^2) p'`.
    fn gelu_from_sigmoid(&mut self, z: Node, order: usize) -> Node {
        let p = gelu_exponent();
        let exponent = self.polynomial(z, &p);
        let s = self.unary(Function::Sigmoid, exponent);
        let slope: Vec<f64> = slope_of(&p);
        // Coefficients of g^(k): by power of s, then of z.
        let mut g = vec![vec![0.0], vec![1.0]];
        let mut previous = g.clone();
        for _ in 0..order {
            previous = g.clone();
            let mut next = vec![vec![0.0]; g.len() + 1];
            for (power, c) in g.iter().enumerate() {
                let steep = product_of(c, &slope, power as f64);
                next[power] = sum_of(&next[power], &slope_of(c));
                next[power] = sum_of(&next[power], &steep);
                next[power + 1] = product_of(&steep, &[1.0], -1.0);
            }
            g = next;
        }
        let mut of_powers = |coefficients: &[Vec<f64>]| {
            let mut sum = self.constant(0.0, self.shape(s));
            for c in coefficients.iter().rev() {
                sum = self.mul(sum, s);
                let c = self.polynomial(z, c);
                sum = self.add(sum, c);
            }
            sum
        };
        let (high, low) = (of_powers(&g), of_powers(&previous));
        let high = self.mul(z, high);
        let low = self.scale(low, order as f64);
        self.add(high, low)
    }

    /// Horner's rule.
    fn polynomial(&mut self, s: Node, coefficients: &[f64]) -> Node {
        let mut sum = self.constant(0.0, self.shape(s));
        for &c in coefficients.iter().rev() {
            sum = self.mul(sum, s);
            sum = self.affine(sum, 1.0, c);
        }
        sum
    }
}

/// `p` of [`Function::Gelu`], by power of z.
fn gelu_exponent() -> [f64; 4] {
    let steep = (8.0 / std::f64::consts::PI).sqrt();
    [0.0, steep, 0.0, 0.044715 * steep]
}

fn slope_of(p: &[f64]) -> Vec<f64> {
    let terms = p.iter().enumerate().skip(1);
    terms.map(|(power, c)| power as f64 * c).collect()
}

fn sum_of(p: &[f64], q: &[f64]) -> Vec<f64> {
    let at = |p: &[f64], k: usize| p.get(k).copied().unwrap_or(0.0);
    (0..p.len().max(q.len()))
        .map(|k| at(p, k) + at(q, k))
        .collect()
}

fn product_of(p: &[f64], q: &[f64], factor: f64) -> Vec<f64> {
    let mut product = vec![0.0; p.len() + q.len()];
    for (i, a) in p.iter().enumerate() {
        for (j, b) in q.iter().enumerate() {
            product[i + j] += factor * a * b;
        }
    }
    product
}
