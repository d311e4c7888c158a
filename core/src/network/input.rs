//! `ScaledRows`: the network's input `x = (y - c(t)) / a(t)` kept as its factors, so that a linear map of `x` costs one
//! product per point `y`, however many times `t` it is looked at.

use crate::engine::{Graph, Node, Rows};

/// Rows `x_r = scale_r (y_{pattern(r)} - shift_r mean)`.
#[derive(Debug, Clone)]
pub struct ScaledRows {
    /// The points, `Unit(m) x d`.
    pub points: Node,
    /// Which point each row looks at; `None`: row `r` looks at point `r`.
    pub pattern: Option<Vec<u32>>,
    /// `1 / a(t)`, a column per row; `None`: 1.
    pub scale: Option<Node>,
    /// Global row `mean` and the column that multiplies it; `None`: no shift.
    pub mean: Option<(Node, Node)>,
}

impl ScaledRows {
    /// Rows of the network's input.
    pub fn rows(&self, g: &Graph) -> Rows {
        match &self.pattern {
            Some(pattern) => Rows::Unit(pattern.len()),
            None => g.shape(self.points).rows,
        }
    }

    fn spread(&self, g: &mut Graph, per_point: Node) -> Node {
        match &self.pattern {
            Some(pattern) => g.gather(per_point, pattern),
            None => per_point,
        }
    }

    fn shift_and_scale(&self, g: &mut Graph, per_point: Node, of_mean: Option<Node>) -> Node {
        let mut rows = self.spread(g, per_point);
        if let (Some((_, column)), Some(of_mean)) = (self.mean, of_mean) {
            let mean = g.broadcast_rows(of_mean, g.shape(rows).rows);
            let mean = g.mul_column(mean, column);
            rows = g.sub(rows, mean);
        }
        match self.scale {
            Some(scale) => g.mul_column(rows, scale),
            None => rows,
        }
    }

    /// `x W`, or `x W^T`, with one product per point.
    pub fn linear(&self, g: &mut Graph, w: Node, transposed: bool) -> Node {
        let per_point = g.matmul(self.points, w, transposed);
        let of_mean = self.mean.map(|(mean, _)| g.matmul(mean, w, transposed));
        self.shift_and_scale(g, per_point, of_mean)
    }

    /// `x . b` for a global row `b`: a column.
    pub fn dot(&self, g: &mut Graph, b: Node) -> Node {
        self.linear(g, b, true)
    }

    /// `x` itself.
    pub fn full(&self, g: &mut Graph) -> Node {
        self.shift_and_scale(g, self.points, self.mean.map(|(mean, _)| mean))
    }

    /// `|x|^2`, a column: one sum per point unless the mean moves with time.
    pub fn squared_norm(&self, g: &mut Graph) -> Node {
        if self.mean.is_some() {
            let x = self.full(g);
            return g.row_dot(x, x);
        }
        let square = g.row_dot(self.points, self.points);
        let square = self.spread(g, square);
        match self.scale {
            Some(scale) => {
                let scaled = g.mul(square, scale);
                g.mul(scaled, scale)
            }
            None => square,
        }
    }
}
