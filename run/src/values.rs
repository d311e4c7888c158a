//! `Values`: the rows of a table as they are stored, read in the model's coordinates.

use crate::data::Array;
use crate::files::MappedNpy;
use diffclf::energy::Coordinates;
use diffclf::format::npy::Npy;
use diffclf::particles::View;
use diffclf::rng::{Purpose, Stream};
use diffclf::train::Table;
use diffclf::weights::RowWeights;
use std::sync::Arc;

/// Columns that are read at once.
const PIECE: usize = 256;
/// Most columns of a row of particles that is turned or freed of its centre: it must fit in memory that is not allocated.
pub(crate) const MOST_VIEWED: usize = 4096;

/// The bytes of a mapped file, shared.
pub struct Mapped(pub(crate) Arc<MappedNpy>);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.0.array()
    }
}

/// Rows that stay as they are.
pub struct Values {
    pub(crate) stored: Stored,
    /// Widths of the noise that is added to each column; empty for none.
    pub(crate) steps: Vec<f64>,
    /// What happens to a row after it is read.
    pub(crate) view: Option<Arc<View>>,
    /// How much each row counts; none where all count the same.
    pub(crate) weights: Option<Arc<RowWeights>>,
}

pub(crate) enum Stored {
    /// In a file, in its own number type.
    File(Npy<Mapped>),
    /// In memory: rows, and the numbers of a row.
    Memory(Array, usize),
}

impl Values {
    /// Numbers of a row from column `first` on.
    pub(crate) fn read(&self, row: usize, first: usize, out: &mut [f64]) {
        match &self.stored {
            Stored::File(view) => view.copy_part_f64(row, first, out),
            Stored::Memory(values, dim) => values.copy_f64(row * dim + first, out),
        }
        if self.steps.is_empty() {
            return;
        }
        for (k, piece) in out.chunks_mut(PIECE).enumerate() {
            let first = first + k * PIECE;
            let mut stream = Stream::new(0, Purpose::Dequantise, first as u64, row as u64);
            for (x, step) in piece.iter_mut().zip(&self.steps[first..]) {
                *x += step * (stream.uniform() - 0.5);
            }
        }
    }
}

impl Table for Values {
    fn rows(&self) -> usize {
        match &self.stored {
            Stored::File(view) => view.rows(),
            Stored::Memory(values, dim) => values.len() / dim,
        }
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_ref().map(|weights| weights.values())
    }

    fn copy_row(&self, row: usize, coordinates: &Coordinates, out: &mut [f32]) {
        if let Some(view) = &self.view {
            let (mut given, mut seen) = ([0.0; MOST_VIEWED], [0.0; MOST_VIEWED]);
            let (given, seen) = (&mut given[..view.columns()], &mut seen[..view.dim()]);
            self.read(row, 0, given);
            view.inward(given, seen);
            return coordinates.round_to_model(seen.iter().copied(), out);
        }
        // In pieces, so that rows of any length need no allocation.
        let mut piece = [0.0; PIECE];
        for (k, out) in out.chunks_mut(PIECE).enumerate() {
            let (first, piece) = (PIECE * k, &mut piece[..out.len()]);
            self.read(row, first, piece);
            coordinates.round_part_to_model(first, piece.iter().copied(), out);
        }
    }
}
