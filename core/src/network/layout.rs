//! The layout: named matrices in one flat parameter vector; the names are those of the model file.

use crate::engine::Real;
use crate::engine::{Graph, Node};
use crate::rng::{Purpose, Stream};

/// How a matrix starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// All zero.
    Zero,
    /// Independent normal numbers of this standard deviation.
    Normal(f64),
    /// Normal numbers whose standard deviation doubles from column to column, and begins again at `least` after so many octaves.
    Octaves {
        /// Of the first column.
        least: f64,
        /// Columns until it begins again.
        octaves: u32,
    },
}

impl Init {
    /// The standard deviation of a column.
    fn deviation(&self, column: usize) -> f64 {
        match *self {
            Init::Zero => 0.0,
            Init::Normal(deviation) => deviation,
            Init::Octaves { least, octaves } => {
                least * f64::from(column as u32 % octaves.max(1)).exp2()
            }
        }
    }
}

/// A named matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name, for instance `net.w1`.
    pub name: String,
    /// First element in the flat vector.
    pub offset: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// How it starts.
    pub init: Init,
}

impl Entry {
    /// Range in the flat vector.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.rows * self.cols
    }
}

/// All parameters of a model, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    entries: Vec<Entry>,
    len: usize,
}

impl Layout {
    /// Adds a matrix.
    pub fn add(&mut self, name: impl Into<String>, rows: usize, cols: usize, init: Init) {
        self.entries.push(Entry {
            name: name.into(),
            offset: self.len,
            rows,
            cols,
            init,
        });
        self.len += rows * cols;
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No parameters at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The matrices.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The matrix of that name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// The node of the matrix of that name.
    pub fn node(&self, graph: &mut Graph, name: &str) -> Node {
        match self.get(name) {
            Some(e) => graph.param(e.offset, e.rows, e.cols),
            None => {
                unreachable!("the network asked for parameter {name:?}, which it did not declare")
            }
        }
    }

    /// Starting values; matrix `k` draws from its own stream.
    pub fn initialise<T: Real>(&self, seed: u64) -> Vec<T> {
        let mut values = vec![T::ZERO; self.len];
        for (k, entry) in self.entries.iter().enumerate() {
            if entry.init == Init::Zero {
                continue;
            }
            let mut stream = Stream::new(seed, Purpose::Init, 0, k as u64);
            for (i, value) in values[entry.range()].iter_mut().enumerate() {
                let deviation = entry.init.deviation(i % entry.cols);
                *value = T::from_f64(deviation * stream.normal());
            }
        }
        values
    }
}
