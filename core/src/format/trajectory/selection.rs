//! Which atoms are meant: by number, `0,4,6-8`, or by name, `CA` or `C,N,CA`.

use super::Atom;
use crate::{Error, Result};

/// Atoms, named by number or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// From and to, both included, counted from 0.
    Numbers(usize, usize),
    /// All atoms of that name, in the order of the file.
    Name(String),
}

impl Selection {
    /// Reads numbers from 0 on, ranges of them, and names, separated by commas.
    ///
    /// ```
    /// use diffclf::format::trajectory::Selection;
    /// let chosen = Selection::parse("4,6,14-16")?;
    /// assert_eq!(chosen.atoms(22, &[])?, [4, 6, 14, 15, 16]);
    /// assert!(chosen.atoms(10, &[]).is_err());
    /// # Ok::<(), diffclf::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Selection> {
        let wrong = |found: &str| Error::Value {
            name: "selection of atoms",
            found: format!("'{found}'"),
            expected:
                "numbers from 0 on, ranges such as 3-7, or names such as CA, separated by commas"
                    .into(),
        };
        let mut parts = Vec::new();
        for word in text.split(',').map(str::trim) {
            let number = |text: &str| text.trim().parse::<usize>().ok();
            let part = match (number(word), word.split_once('-')) {
                (Some(number), _) => Part::Numbers(number, number),
                (None, Some((from, to))) if number(from).is_some() || number(to).is_some() => {
                    match (number(from), number(to)) {
                        (Some(from), Some(to)) if from <= to => Part::Numbers(from, to),
                        _ => return Err(wrong(word)),
                    }
                }
                _ if word.is_empty() || word.chars().any(char::is_whitespace) => {
                    return Err(wrong(word));
                }
                _ => Part::Name(word.into()),
            };
            parts.push(part);
        }
        Ok(Selection {
            text: text.into(),
            parts,
        })
    }

    /// Whether it names atoms, so that a file with names is needed.
    pub fn needs_names(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Name(_)))
    }

    /// The numbers of the atoms out of so many, in the order they are named in; none twice.
    pub fn atoms(&self, count: usize, names: &[Atom]) -> Result<Vec<usize>> {
        let refused = |found: String, expected: String| {
            Err(Error::Value {
                name: "selection of atoms",
                found,
                expected,
            })
        };
        let mut atoms: Vec<usize> = Vec::new();
        for part in &self.parts {
            let chosen: Vec<usize> = match part {
                Part::Numbers(_, to) if *to >= count => {
                    return refused(
                        format!("'{}'", self.text),
                        format!("numbers below {count}, the number of atoms"),
                    );
                }
                Part::Numbers(from, to) => (*from..=*to).collect(),
                Part::Name(name) if names.len() != count => {
                    return refused(
                        format!("'{name}'"),
                        format!(
                            "numbers, or a .pdb file that names the {count} atoms (it names {})",
                            names.len()
                        ),
                    );
                }
                Part::Name(name) => {
                    let all = names.iter().enumerate();
                    let chosen: Vec<usize> = all
                        .filter(|(_, atom)| atom.name == *name)
                        .map(|(k, _)| k)
                        .collect();
                    if chosen.is_empty() {
                        let mut known: Vec<&str> = names.iter().map(|a| a.name.as_str()).collect();
                        known.sort_unstable();
                        known.dedup();
                        return refused(
                            format!("'{name}'"),
                            format!("one of the names of its atoms, {}", known.join(", ")),
                        );
                    }
                    chosen
                }
            };
            for atom in chosen {
                if atoms.contains(&atom) {
                    return refused(
                        format!("'{}'", self.text),
                        format!("each atom once; atom {atom} is named twice"),
                    );
                }
                atoms.push(atom);
            }
        }
        Ok(atoms)
    }
}
