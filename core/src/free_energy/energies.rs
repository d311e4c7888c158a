//! `ReducedEnergies`: u_kn, the energy of every sample in every state, read piece by piece so that it never has to be copied.

use crate::{Error, Result};

/// Reduced energies `u_kn` (kT) of `samples` samples in `states` states. Samples are ordered by the state they come from:
/// first those of state 0, then those of state 1, and so on.
///
/// Plus infinity is a legal energy (the state forbids the sample); NaN and minus infinity are not.
pub trait ReducedEnergies: Sync {
    /// Number of states K.
    fn states(&self) -> usize;
    /// Number of samples N.
    fn samples(&self) -> usize;
    /// Writes `u[state][first..first + out.len()]`.
    fn read(&self, state: usize, first: usize, out: &mut [f64]);
    /// Writes `u[state][n]` for every `n` in `index`.
    fn gather(&self, state: usize, index: &[usize], out: &mut [f64]) {
        for (out, &n) in out.iter_mut().zip(index) {
            self.read(state, n, std::slice::from_mut(out));
        }
    }
}

/// A matrix in memory, state after state.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    values: &'a [f64],
    states: usize,
}

impl<'a> Matrix<'a> {
    /// `values` holds `states` rows of equal length.
    pub fn new(values: &'a [f64], states: usize) -> Result<Self> {
        if states == 0 || values.is_empty() || !values.len().is_multiple_of(states) {
            return Err(Error::Shape {
                what: "the matrix of reduced energies".into(),
                found: format!("{} numbers", values.len()),
                expected: format!(
                    "{states} rows (states) of equal length, at least one number in each"
                ),
            });
        }
        Ok(Self { values, states })
    }
}

impl ReducedEnergies for Matrix<'_> {
    fn states(&self) -> usize {
        self.states
    }
    fn samples(&self) -> usize {
        self.values.len() / self.states
    }
    fn read(&self, state: usize, first: usize, out: &mut [f64]) {
        let start = state * self.samples() + first;
        out.copy_from_slice(&self.values[start..start + out.len()]);
    }
    fn gather(&self, state: usize, index: &[usize], out: &mut [f64]) {
        let row = &self.values[state * self.samples()..][..self.samples()];
        for (out, &n) in out.iter_mut().zip(index) {
            *out = row[n];
        }
    }
}

/// Some of the samples of another matrix, in the order given.
pub struct Selection<'a> {
    inner: &'a dyn ReducedEnergies,
    index: Vec<usize>,
}

impl<'a> Selection<'a> {
    /// Sample n of the selection is sample `index[n]` of `inner`.
    pub fn new(inner: &'a dyn ReducedEnergies, index: Vec<usize>) -> Result<Self> {
        match index.iter().find(|n| **n >= inner.samples()) {
            Some(n) => Err(Error::Value {
                name: "index of a selected sample",
                found: n.to_string(),
                expected: format!("below the number of samples, {}", inner.samples()),
            }),
            None if index.is_empty() => Err(Error::Value {
                name: "selection",
                found: "no sample".into(),
                expected: "at least one sample".into(),
            }),
            None => Ok(Self { inner, index }),
        }
    }
}

impl ReducedEnergies for Selection<'_> {
    fn states(&self) -> usize {
        self.inner.states()
    }
    fn samples(&self) -> usize {
        self.index.len()
    }
    fn read(&self, state: usize, first: usize, out: &mut [f64]) {
        self.inner
            .gather(state, &self.index[first..first + out.len()], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_selections_give_their_numbers() {
        let values: Vec<f64> = (0..12).map(f64::from).collect();
        let matrix = Matrix::new(&values, 3).unwrap();
        assert_eq!((matrix.states(), matrix.samples()), (3, 4));
        let mut out = [0.0; 2];
        matrix.read(1, 2, &mut out);
        assert_eq!(out, [6.0, 7.0]);
        let chosen = Selection::new(&matrix, vec![3, 0, 2]).unwrap();
        assert_eq!((chosen.states(), chosen.samples()), (3, 3));
        chosen.read(2, 1, &mut out);
        assert_eq!(out, [8.0, 10.0]);
        let nested = Selection::new(&chosen, vec![2, 0]).unwrap();
        nested.read(0, 0, &mut out);
        assert_eq!(out, [2.0, 3.0]);
        assert!(Matrix::new(&values, 5).is_err() && Matrix::new(&[], 1).is_err());
        assert!(Selection::new(&matrix, vec![4]).is_err());
        assert!(Selection::new(&matrix, vec![]).is_err());
    }
}
