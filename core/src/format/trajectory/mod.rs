//! Frames of atoms as molecular dynamics programs write them: `.xtc` (GROMACS), `.dcd` (CHARMM, NAMD, OpenMM) and `.pdb`.
//!
//! Whatever a file's own unit is, frames are in **nm** here, as mdtraj has them; [`Kind::unit`] says what the file has. Readers treat
//! their bytes as hostile: sizes are compared with what is there before anything is allocated.

mod dcd;
mod pdb;
mod selection;
#[cfg(test)]
mod tests;
mod xtc;

pub use pdb::Atom;
pub use selection::Selection;

use crate::{Error, Result};
use std::io::Write;

/// Ångström in a nanometre.
const PER_NM: f32 = 10.0;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GROMACS' compressed frames, in nm, rounded to 0.001 nm beyond nine atoms.
    Xtc,
    /// CHARMM's and NAMD's frames in single precision, in Angstrom.
    Dcd,
    /// The protein data bank's text, in Angstrom with three decimals.
    Pdb,
}

impl Kind {
    /// All formats, by the ends of their files' names.
    pub const ALL: [(&'static str, Kind); 3] =
        [("xtc", Kind::Xtc), ("dcd", Kind::Dcd), ("pdb", Kind::Pdb)];

    /// The format of files whose names end so.
    pub fn of_extension(end: &str) -> Option<Kind> {
        let end = end.to_ascii_lowercase();
        let found = Self::ALL.iter().find(|(name, _)| *name == end);
        found.map(|(_, kind)| *kind)
    }

    /// The unit of length in the file.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Xtc => "nm",
            Kind::Dcd | Kind::Pdb => "Angstrom",
        }
    }
}

/// Frames of the same atoms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trajectory {
    /// Atoms of a frame.
    pub atoms: usize,
    /// x, y, z of every atom of every frame, in nm.
    pub positions: Vec<f32>,
    /// What a .pdb file says of the atoms; empty for other formats.
    pub names: Vec<Atom>,
    /// Bonds that a .pdb file names (CONECT), by numbers of atoms from 0.
    pub bonds: Vec<(usize, usize)>,
}

impl Trajectory {
    /// Reads a file's bytes.
    pub fn read(kind: Kind, bytes: &[u8]) -> Result<Trajectory> {
        let found = match kind {
            Kind::Xtc => xtc::read(bytes),
            Kind::Dcd => dcd::read(bytes),
            Kind::Pdb => pdb::read(bytes),
        }?;
        if found.positions.is_empty() {
            return Err(damaged("it holds no frame of atoms"));
        }
        Ok(found)
    }

    /// Writes frames, positions in nm, times in ps from 0 in steps of `spacing`. `names` are for .pdb alone; without them atoms are
    /// called C. `.xtc` rounds to 0.001 nm beyond nine atoms, `.pdb` to 0.0001 nm.
    pub fn write(&self, kind: Kind, spacing: f32, writer: &mut dyn Write) -> Result<()> {
        if self.atoms == 0 || !self.positions.len().is_multiple_of(3 * self.atoms) {
            return Err(Error::Shape {
                what: "the frames to write".into(),
                found: format!("{} numbers", self.positions.len()),
                expected: format!("frames of {} atoms, three numbers each", self.atoms),
            });
        }
        match kind {
            Kind::Xtc => xtc::write(self, spacing, writer),
            Kind::Dcd => dcd::write(self, spacing, writer),
            Kind::Pdb => pdb::write(self, writer),
        }
    }

    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.positions.len() / (3 * self.atoms).max(1)
    }

    /// The same frames of some atoms alone.
    pub fn select(&self, atoms: &[usize]) -> Trajectory {
        let frames = self.positions.chunks_exact(3 * self.atoms);
        let place = |atom: usize| atoms.iter().position(|a| *a == atom);
        Trajectory {
            atoms: atoms.len(),
            positions: frames
                .flat_map(|frame| atoms.iter().flat_map(|a| frame[3 * a..3 * a + 3].iter()))
                .copied()
                .collect(),
            names: match self.names.is_empty() {
                true => Vec::new(),
                false => atoms.iter().map(|a| self.names[*a].clone()).collect(),
            },
            bonds: self
                .bonds
                .iter()
                .filter_map(|(a, b)| Some((place(*a)?, place(*b)?)))
                .collect(),
        }
    }
}

/// The error of a file that cannot be read.
fn damaged(problem: impl Into<String>) -> Error {
    Error::Trajectory {
        problem: problem.into(),
    }
}

/// Bytes read one after the other; numbers of four bytes have an order.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self
            .at
            .checked_add(count)
            .filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            return Err(damaged(format!(
                "it ends at byte {}, in the middle of a frame or header",
                self.bytes.len()
            )));
        };
        let part = &self.bytes[self.at..end];
        self.at = end;
        Ok(part)
    }

    fn word(&mut self) -> Result<[u8; 4]> {
        let part = self.take(4)?;
        let mut word = [part[0], part[1], part[2], part[3]];
        if !self.big_endian {
            word.reverse();
        }
        Ok(word)
    }

    fn integer(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.word()?))
    }

    fn float(&mut self) -> Result<f32> {
        Ok(f32::from_be_bytes(self.word()?))
    }

    /// A count: not negative.
    fn count(&mut self, what: &str) -> Result<usize> {
        let found = self.integer()?;
        usize::try_from(found).map_err(|_| damaged(format!("{what} is {found}")))
    }

    fn ended(&self) -> bool {
        self.at == self.bytes.len()
    }
}
