//! What free energies are computed from: series of works and matrices of energies in files.

use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::words;
use crate::words::Setting;
use diffclf::format::npy::NpyView;
use diffclf::free_energy::ReducedEnergies;
use std::path::Path;

/// All numbers of an array, whatever its shape, in C order.
pub fn read_series(path: &Path) -> Result<Vec<f64>> {
    Ok(MappedNpy::open(path)?.view()?.to_vec_f64())
}

/// A matrix of energies in a file that stays there: one row per state, or one per sample if transposed.
pub struct FileEnergies<'a> {
    view: NpyView<'a>,
    transposed: bool,
}

impl<'a> FileEnergies<'a> {
    /// Over a mapped file.
    pub fn new(mapped: &'a MappedNpy, transposed: bool) -> Result<Self> {
        let view = mapped.view()?;
        if view.shape().len() != 2 {
            return Err(Error::Refused(words!(
                mapped.path().display().to_string(),
                ": the array has ",
                view.shape().len(),
                " axes, expected two: (states, samples), or (samples, states) with ",
                Setting::new("transposed")
            )));
        }
        Ok(Self { view, transposed })
    }
}

impl ReducedEnergies for FileEnergies<'_> {
    fn states(&self) -> usize {
        if self.transposed {
            self.view.dim()
        } else {
            self.view.rows()
        }
    }

    fn samples(&self) -> usize {
        if self.transposed {
            self.view.rows()
        } else {
            self.view.dim()
        }
    }

    fn read(&self, state: usize, first: usize, out: &mut [f64]) {
        if self.transposed {
            for (n, out) in out.iter_mut().enumerate() {
                self.view
                    .copy_part_f64(first + n, state, std::slice::from_mut(out));
            }
        } else {
            self.view.copy_part_f64(state, first, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::write_atomic;
    use diffclf::format::npy::write_npy;

    #[test]
    fn a_transposed_file_gives_the_same_energies() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, turned) = (folder.path().join("a.npy"), folder.path().join("b.npy"));
        let values: Vec<f64> = (0..6).map(f64::from).collect();
        write_atomic(&plain, |writer| write_npy(&[2, 3], &values, writer)).unwrap();
        let columns = [0.0, 3.0, 1.0, 4.0, 2.0, 5.0];
        write_atomic(&turned, |writer| write_npy(&[3, 2], &columns, writer)).unwrap();
        let (plain, turned) = (
            MappedNpy::open(&plain).unwrap(),
            MappedNpy::open(&turned).unwrap(),
        );
        let plain = FileEnergies::new(&plain, false).unwrap();
        let turned = FileEnergies::new(&turned, true).unwrap();
        for energies in [&plain, &turned] {
            assert_eq!((energies.states(), energies.samples()), (2, 3));
            let mut out = [0.0; 2];
            energies.read(1, 1, &mut out);
            assert_eq!(out, [4.0, 5.0]);
        }
    }
}
