//! From rows of particles as they are given to those that a model knows: turned onto a frame, without their centre, or neither.

use super::{Frame, Subspace};

/// What is done to a row before a model sees it, and undone to what comes out of it.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Numbers of a row as it is given.
    columns: usize,
    frame: Option<Frame>,
    subspace: Option<Subspace>,
}

impl View {
    /// Rows of so many numbers, turned onto a frame first and freed of their centre then.
    pub fn new(columns: usize, frame: Option<Frame>, subspace: Option<Subspace>) -> View {
        View {
            columns,
            frame,
            subspace,
        }
    }

    /// Numbers of a row as it is given.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Numbers of a row as the model knows it.
    pub fn dim(&self) -> usize {
        self.subspace.map_or(self.columns, |of| of.dim())
    }

    /// The row onto which all are turned, about its centre.
    pub fn reference(&self) -> Option<&[f64]> {
        self.frame.as_ref().map(Frame::reference)
    }

    /// A row as the model knows it; `row` is used up. Allocates nothing.
    pub fn inward(&self, row: &mut [f64], out: &mut [f64]) {
        if let Some(frame) = &self.frame {
            frame.align(row);
        }
        match self.subspace {
            Some(subspace) => subspace.inward(row, out),
            None => out.copy_from_slice(row),
        }
    }

    /// The same of many rows.
    pub fn rows_inward(&self, mut rows: Vec<f64>) -> Vec<f64> {
        let mut out = vec![0.0; rows.len() / self.columns * self.dim()];
        let pairs = rows
            .chunks_exact_mut(self.columns)
            .zip(out.chunks_exact_mut(self.dim()));
        pairs.for_each(|(row, out)| self.inward(row, out));
        out
    }

    /// Points of the model as rows: of all particles, with centre zero, in the frame of the model.
    pub fn rows_outward(&self, points: Vec<f64>) -> Vec<f64> {
        match self.subspace {
            Some(subspace) => subspace.rows_outward(&points),
            None => points,
        }
    }

    /// Gradients at rows that came from points, as gradients at the points.
    pub fn gradients_inward(&self, gradients: Vec<f64>) -> Vec<f64> {
        match self.subspace {
            Some(subspace) => subspace.rows_inward(&gradients),
            None => gradients,
        }
    }

    /// Gradients at the points that `rows` became, as gradients at the rows: those of an energy that knows no frame. An energy that does is
    /// turned as a whole, with the rotation that the row got.
    pub fn gradients_outward(&self, rows: &[f64], gradients: Vec<f64>) -> Vec<f64> {
        let mut gradients = self.rows_outward(gradients);
        if let Some(frame) = &self.frame {
            let mut turned = rows.to_vec();
            let pairs = turned
                .chunks_exact_mut(self.columns)
                .zip(gradients.chunks_exact_mut(self.columns));
            for (row, gradient) in pairs {
                frame.align(row).turn_back(gradient, frame.space());
            }
        }
        gradients
    }
}
