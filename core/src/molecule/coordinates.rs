//! Amber coordinate files (`.crd`, `.inpcrd`, `.rst7` in text): a title, the number of atoms, columns of twelve characters.

use crate::{Error, Result};

fn wrong(problem: String) -> Error {
    Error::Amber {
        what: "coordinate file",
        problem,
    }
}

/// The coordinates in nm, three for each atom. Velocities and a box that may follow are not read.
pub fn read_coordinates(bytes: &[u8]) -> Result<Vec<f64>> {
    if bytes.starts_with(b"CDF") || bytes.starts_with(b"\x89HDF") {
        return Err(wrong("it is a NetCDF file, which is not read here; write it as text (cpptraj: trajout x.rst7 restart)".into()));
    }
    let mut lines = bytes
        .split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let _title = lines.next();
    let second = lines
        .next()
        .map(String::from_utf8_lossy)
        .unwrap_or_default();
    let count = second
        .split_whitespace()
        .next()
        .and_then(|word| word.parse::<usize>().ok());
    let Some(atoms) = count.filter(|n| *n > 0 && *n <= bytes.len() / 36 + 1) else {
        let found: String = second.trim().chars().take(40).collect();
        return Err(wrong(format!(
            "its second line is '{found}', expected the number of atoms that follow"
        )));
    };
    let mut positions = Vec::with_capacity(3 * atoms);
    'lines: for line in lines {
        for field in line.chunks(12) {
            if positions.len() == 3 * atoms {
                break 'lines;
            }
            let text = std::str::from_utf8(field).ok().map(str::trim);
            if text.is_some_and(str::is_empty) {
                continue;
            }
            match text
                .and_then(|text| text.parse::<f64>().ok())
                .filter(|x| x.is_finite())
            {
                Some(x) => positions.push(0.1 * x),
                None => {
                    let found = String::from_utf8_lossy(field).into_owned();
                    return Err(wrong(format!(
                        "'{found}' stands where coordinate {} was expected",
                        positions.len() + 1
                    )));
                }
            }
        }
    }
    if positions.len() < 3 * atoms {
        return Err(wrong(format!(
            "it holds {} coordinates, expected {} for its {atoms} atoms; it is damaged or was not copied to the end",
            positions.len(),
            3 * atoms
        )));
    }
    Ok(positions)
}
