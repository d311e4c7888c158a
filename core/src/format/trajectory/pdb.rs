//! `.pdb`: the protein data bank's text. ATOM and HETATM lines by their columns, a frame for each MODEL, bonds of CONECT lines; in
//! Angstrom.

use super::{PER_NM, Trajectory, damaged};
use crate::{Error, Result};
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::ops::RangeInclusive;

/// Coordinates that fit the eight columns of the format, in Angstrom.
const WRITABLE: RangeInclusive<f32> = -999.999..=9999.999;

/// What a line says of an atom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Atom {
    /// Its name, such as CA.
    pub name: String,
    /// Name of its residue, such as TYR.
    pub residue: String,
    /// Number of its residue.
    pub number: i32,
    /// Its element, such as C; guessed from the name where the file has none.
    pub element: String,
}

/// The columns from `first` to `last`, counted from 1 as the format does, without blanks.
fn columns(line: &str, first: usize, last: usize) -> &str {
    let last = last.min(line.len());
    line.get(first - 1..last.max(first - 1))
        .unwrap_or("")
        .trim()
}

/// Reads all models.
pub(super) fn read(bytes: &[u8]) -> Result<Trajectory> {
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
    let mut found = Trajectory::default();
    let (mut serials, mut bonds) = (HashMap::new(), BTreeSet::new());
    let mut count = 0;
    for (k, line) in text.lines().enumerate() {
        let kind = columns(line, 1, 6);
        match kind {
            "ATOM" | "HETATM" => {
                for (first, last) in [(31, 38), (39, 46), (47, 54)] {
                    let word = columns(line, first, last);
                    let value: f32 = word.parse().map_err(|_| {
                        damaged(format!("line {}: '{word}' is no coordinate", k + 1))
                    })?;
                    found.positions.push(value / PER_NM);
                }
                count += 1;
                // Later models repeat the atoms.
                if found.atoms == 0 {
                    let name = columns(line, 13, 16).to_string();
                    let letters = |text: &str| -> String {
                        text.chars()
                            .filter(|c| c.is_ascii_alphabetic())
                            .take(1)
                            .collect()
                    };
                    let element = match columns(line, 77, 78) {
                        "" => letters(&name),
                        element => element.to_string(),
                    };
                    serials.insert(columns(line, 7, 11).to_string(), found.names.len());
                    found.names.push(Atom {
                        residue: columns(line, 18, 20).into(),
                        number: columns(line, 23, 26).parse().unwrap_or(0),
                        name,
                        element,
                    });
                }
            }
            "ENDMDL" => {
                if found.atoms == 0 {
                    found.atoms = count;
                }
                if count != found.atoms {
                    return Err(damaged(format!(
                        "line {}: a model of {count} atoms, expected {}",
                        k + 1,
                        found.atoms
                    )));
                }
                count = 0;
            }
            "CONECT" => {
                let atom = |first: usize| serials.get(columns(line, first, first + 4)).copied();
                if let Some(a) = atom(7) {
                    let others = [12, 17, 22, 27].into_iter().filter_map(atom);
                    bonds.extend(others.filter(|b| *b != a).map(|b| (a.min(b), a.max(b))));
                }
            }
            _ => {}
        }
    }
    found.bonds = bonds.into_iter().collect();
    if found.atoms == 0 {
        found.atoms = count;
    } else if count != 0 {
        return Err(damaged(format!(
            "{count} atoms follow the last model of {}",
            found.atoms
        )));
    }
    Ok(found)
}

/// Writes a MODEL for each frame.
pub(super) fn write(frames: &Trajectory, writer: &mut dyn Write) -> Result<()> {
    let plain = Atom {
        name: "C".into(),
        residue: "UNK".into(),
        number: 1,
        element: "C".into(),
    };
    for (k, positions) in frames.positions.chunks_exact(3 * frames.atoms).enumerate() {
        writeln!(writer, "MODEL {:>8}", (k + 1) % 100_000_000)?;
        for (i, p) in positions.chunks_exact(3).enumerate() {
            let atom = frames.names.get(i).unwrap_or(&plain);
            // Names of one-letter elements begin in the second column.
            let name = match atom.name.len() < 4 && atom.element.len() == 1 {
                true => format!(" {}", atom.name),
                false => atom.name.clone(),
            };
            let [x, y, z] = [p[0], p[1], p[2]].map(|x| x * PER_NM);
            // Wider numbers would run into each other, and nobody could read them.
            if let Some(x) = [x, y, z].iter().find(|x| !WRITABLE.contains(*x)) {
                return Err(Error::Value {
                    name: "position in frame of a .pdb file",
                    found: format!("{x} Angstrom in frame {k}"),
                    expected: "numbers from -999 to 9999, which its columns hold; move the frames nearer to zero, or write .npy, .xtc or .dcd"
                        .into(),
                });
            }
            writeln!(
                writer,
                "ATOM  {:>5} {name:<4.4} {:>3.3} A{:>4}    {x:>8.3}{y:>8.3}{z:>8.3}  1.00  0.00          {:>2.2}",
                (i + 1) % 100_000,
                atom.residue,
                atom.number.rem_euclid(10_000),
                atom.element,
            )?;
        }
        writeln!(writer, "ENDMDL")?;
    }
    for (a, b) in &frames.bonds {
        writeln!(writer, "CONECT{:>5}{:>5}", a + 1, b + 1)?;
    }
    writeln!(writer, "END")?;
    Ok(())
}
