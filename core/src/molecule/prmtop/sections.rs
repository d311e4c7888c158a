//! The sections of a topology file, and the numbers in them.

use crate::{Error, Result};
use std::collections::HashMap;

pub(super) fn wrong(problem: impl Into<String>) -> Error {
    Error::Amber {
        what: "topology",
        problem: problem.into(),
    }
}

/// One section: its columns and its lines.
pub(super) struct Section<'a> {
    pub width: usize,
    pub lines: Vec<&'a [u8]>,
}

/// All of them, by name.
pub(super) struct Sections<'a>(pub HashMap<&'a str, Section<'a>>);

/// Columns of `(20a4)`, `(10I8)`, `(5E16.8)`: the width alone matters.
fn width_of(format: &str) -> Option<usize> {
    let inner = format.trim().strip_prefix('(')?.split(')').next()?;
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    let inner = inner.strip_prefix(['a', 'A', 'i', 'I', 'e', 'E', 'f', 'F'])?;
    let width = inner.split('.').next()?.parse().ok()?;
    (1..=256).contains(&width).then_some(width)
}

impl<'a> Sections<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut sections = HashMap::new();
        let mut name: Option<&str> = None;
        let mut section: Option<Section<'_>> = None;
        for line in bytes.split(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let text = std::str::from_utf8(line).ok();
            if let Some(flag) = text.and_then(|t| t.strip_prefix("%FLAG")) {
                close(&mut sections, name, section.take())?;
                name = Some(flag.trim());
            } else if let Some(format) = text.and_then(|t| t.strip_prefix("%FORMAT")) {
                let flag = name.ok_or_else(|| {
                    wrong("it begins with %FORMAT; expected %FLAG and a name first")
                })?;
                let width = width_of(format).ok_or_else(|| {
                    wrong(format!("the format '{}' of section {flag} cannot be read; expected one such as (5E16.8)", short(format)))
                })?;
                section = Some(Section {
                    width,
                    lines: Vec::new(),
                });
            } else if line.first() != Some(&b'%')
                && let Some(section) = &mut section
            {
                section.lines.push(line);
            }
        }
        close(&mut sections, name, section)?;
        if sections.is_empty() {
            return Err(wrong(
                "it has no %FLAG lines; give a .prmtop (.parm7) file of Amber 7 or later",
            ));
        }
        Ok(Sections(sections))
    }

    pub(super) fn get(&self, name: &str) -> Result<&Section<'a>> {
        self.0.get(name).ok_or_else(|| {
            wrong(format!(
                "it has no section {name}; copy the whole file, or write it again"
            ))
        })
    }

    /// The fields of a section that are not blank.
    pub(super) fn fields(&self, name: &str) -> Result<impl Iterator<Item = &'a [u8]>> {
        let section = self.get(name)?;
        let width = section.width;
        let lines = section.lines.iter();
        Ok(lines
            .flat_map(move |line| line.chunks(width))
            .map(|field| field.trim_ascii())
            .filter(|field| !field.is_empty()))
    }

    pub(super) fn numbers<T: std::str::FromStr>(&self, name: &str, count: usize) -> Result<Vec<T>> {
        let mut found = Vec::new();
        for field in self.fields(name)? {
            let text = std::str::from_utf8(field).ok();
            let number = text.and_then(|text| text.parse().ok());
            found.push(number.ok_or_else(|| {
                wrong(format!(
                    "section {name} holds '{}' where a number was expected",
                    short(&String::from_utf8_lossy(field))
                ))
            })?);
        }
        expect(name, found.len(), count)?;
        Ok(found)
    }

    pub(super) fn reals(&self, name: &str, count: usize) -> Result<Vec<f64>> {
        let numbers = self.numbers::<f64>(name, count)?;
        match numbers.iter().find(|x| !x.is_finite() || x.abs() > 1e30) {
            Some(x) => Err(wrong(format!(
                "section {name} holds {x}; expected finite numbers"
            ))),
            None => Ok(numbers),
        }
    }
}

fn close<'a>(
    sections: &mut HashMap<&'a str, Section<'a>>,
    name: Option<&'a str>,
    section: Option<Section<'a>>,
) -> Result<()> {
    let (Some(name), Some(section)) = (name, section) else {
        return Ok(());
    };
    match sections.insert(name, section) {
        Some(_) => Err(wrong(format!("section {} appears twice", short(name)))),
        None => Ok(()),
    }
}

/// The beginning of a text that may be anything.
fn short(text: &str) -> String {
    text.trim().chars().take(40).collect()
}

pub(super) fn expect(name: &str, found: usize, count: usize) -> Result<()> {
    if found == count {
        return Ok(());
    }
    Err(wrong(format!(
        "section {name} holds {found} entries, expected {count} by the section POINTERS; the file is damaged or was cut"
    )))
}
