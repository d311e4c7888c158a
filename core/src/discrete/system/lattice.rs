//! Ising and Potts models: `log w(s) = J sum_<ij> delta(s_i, s_j) + sum_i h(s_i)` on a lattice, in units of kT.

use super::layers::Layers;
use super::table::LogWeights;
use crate::discrete::Space;
use crate::{Error, Result};

/// See the module's text. Rows are numbered line by line.
#[derive(Debug, Clone, PartialEq)]
pub struct Lattice {
    /// Lines.
    pub lines: usize,
    /// Sites of a line.
    pub width: usize,
    /// J: what two equal neighbours add to the log-weight.
    pub coupling: f64,
    /// h: what each state adds.
    pub field: Vec<f64>,
    /// Whether the last line has the first as a neighbour, and the last site of a line its first.
    pub periodic: [bool; 2],
    /// Added to every log-weight.
    pub shift: f64,
    name: &'static str,
}

impl Lattice {
    /// Spins -1 (state 0) and +1 (state 1) on a torus: `log w = J sum s_i s_j + h sum s_i`.
    pub fn ising(lines: usize, width: usize, coupling: f64, field: f64) -> Lattice {
        let mut lattice = Lattice::potts(lines, width, 2.0 * coupling, vec![-field, field]);
        lattice.shift = -coupling * lattice.edges().count() as f64;
        lattice.name = "ising";
        lattice
    }

    /// States on a torus.
    pub fn potts(lines: usize, width: usize, coupling: f64, field: Vec<f64>) -> Lattice {
        Lattice {
            lines,
            width,
            coupling,
            field,
            periodic: [true, true],
            shift: 0.0,
            name: "potts",
        }
    }

    /// The lattice behind the system `ising`: J = 0.5, below the critical temperature, h = 0.02.
    pub fn named_ising(side: usize) -> Lattice {
        Lattice::ising(side, side, 0.5, 0.02)
    }

    /// The lattice behind the system `potts`.
    pub fn named_potts(side: usize) -> Lattice {
        Lattice::potts(side, side, 1.1, vec![0.02, 0.0, -0.03])
    }

    /// The same lattice without neighbours beyond the first and last line.
    pub fn strip(mut self) -> Lattice {
        let before = self.edges().count() as f64;
        let each = if before > 0.0 {
            self.shift / before
        } else {
            0.0
        };
        self.periodic[0] = false;
        self.shift = each * self.edges().count() as f64;
        self
    }

    /// Pairs of neighbours.
    fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (l, w) = (self.lines, self.width);
        let down = move |i: usize, j: usize| {
            let inner = i + 1 < l;
            (inner || (self.periodic[0] && l > 1)).then(|| (i * w + j, (i + 1) % l * w + j))
        };
        let along = move |i: usize, j: usize| {
            let inner = j + 1 < w;
            (inner || (self.periodic[1] && w > 1)).then(|| (i * w + j, i * w + (j + 1) % w))
        };
        (0..l * w).flat_map(move |site| {
            let (i, j) = (site / w, site % w);
            [down(i, j), along(i, j)].into_iter().flatten()
        })
    }

    /// The strip as layers, one line each: transfer matrices give its partition function, marginals and samples at any length.
    pub fn layers(&self) -> Result<Layers> {
        let line = Space {
            sites: self.width,
            states: self.field.len(),
        };
        let Some(count) = line.count(1024) else {
            return Err(Error::Value {
                name: "states of a line",
                found: format!("{}^{}", line.states, line.sites),
                expected: "at most 1024 for transfer matrices; take narrower strips".into(),
            });
        };
        if self.periodic[0] {
            return Err(Error::Value {
                name: "lattice",
                found: "a torus".into(),
                expected: "open ends for transfer matrices: ask for its `strip`, or enumerate it"
                    .into(),
            });
        }
        let rows: Vec<Vec<u8>> = (0..count)
            .map(|number| {
                let mut row = vec![0; line.sites];
                line.row_of(number, &mut row);
                row
            })
            .collect();
        let one = Lattice {
            lines: 1,
            shift: 0.0,
            ..self.clone()
        };
        let each = self.shift / self.lines as f64;
        let within: Vec<f64> = rows.iter().map(|row| one.log_weight(row) + each).collect();
        let mut between = Vec::with_capacity(count * count);
        for a in &rows {
            for (b, within) in rows.iter().zip(&within) {
                let same = a.iter().zip(b).filter(|(a, b)| a == b).count();
                between.push(self.coupling * same as f64 + within);
            }
        }
        Layers::new(self.name, line, self.lines, within, between)
    }
}

impl LogWeights for Lattice {
    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> Space {
        Space {
            sites: self.lines * self.width,
            states: self.field.len(),
        }
    }

    fn log_weight(&self, row: &[u8]) -> f64 {
        let equal = self.edges().filter(|&(a, b)| row[a] == row[b]).count();
        let field: f64 = row.iter().map(|s| self.field[usize::from(*s)]).sum();
        self.coupling * equal as f64 + field + self.shift
    }
}
