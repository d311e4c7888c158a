//! `.dcd`: CHARMM's, NAMD's and OpenMM's frames, Fortran records of single-precision numbers: x of all atoms, then y, then z, in Angstrom.

use super::{Cursor, PER_NM, Trajectory, damaged};
use crate::{Error, Result};
use std::io::Write;

/// Bytes of the first record.
const HEADER: usize = 84;

/// Reads all frames, in either byte order.
pub(super) fn read(bytes: &[u8]) -> Result<Trajectory> {
    let length = bytes.get(..4).ok_or_else(|| damaged("it is empty"))?;
    let big_endian = match [length[0], length[1], length[2], length[3]] {
        first if u32::from_be_bytes(first) as usize == HEADER => true,
        first if u32::from_le_bytes(first) as usize == HEADER => false,
        _ => return Err(damaged("it does not begin like a .dcd file")),
    };
    let mut cursor = Cursor {
        bytes,
        at: 0,
        big_endian,
    };
    let mut header = record(&mut cursor)?;
    if header.take(4)? != b"CORD" {
        return Err(damaged("it holds no coordinates (CORD)"));
    }
    let mut numbers = [0; 20];
    for number in &mut numbers {
        *number = header.integer()?;
    }
    if numbers[8] != 0 {
        return Err(damaged(format!(
            "{} of its atoms are fixed and stored once, which is not read here",
            numbers[8]
        )));
    }
    // CHARMM's files may have a box before and a fourth coordinate after each frame; those of X-PLOR have neither.
    let charmm = numbers[19] != 0;
    let (cell, fourth) = (charmm && numbers[10] != 0, charmm && numbers[11] != 0);
    // The title.
    record(&mut cursor)?;
    let atoms = record(&mut cursor)?.count("the number of atoms")?;
    let size = atoms
        .checked_mul(4)
        .filter(|size| *size > 0 && *size <= bytes.len());
    let Some(size) = size else {
        return Err(damaged(format!("{atoms} atoms in {} bytes", bytes.len())));
    };
    let mut found = Trajectory {
        atoms,
        ..Trajectory::default()
    };
    while !cursor.ended() {
        if cell {
            record(&mut cursor)?;
        }
        let first = found.positions.len();
        found.positions.resize(first + 3 * atoms, 0.0);
        for axis in 0..3 {
            let mut values = record(&mut cursor)?;
            if values.bytes.len() != size {
                return Err(damaged(format!(
                    "a record of {} bytes, expected {size} for {atoms} atoms",
                    values.bytes.len()
                )));
            }
            for atom in 0..atoms {
                found.positions[first + 3 * atom + axis] = values.float()? / PER_NM;
            }
        }
        if fourth {
            record(&mut cursor)?;
        }
    }
    Ok(found)
}

/// A Fortran record: its length, its bytes, its length again.
fn record<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>> {
    let length = cursor.count("the length of a record")?;
    let bytes = cursor.take(length)?;
    let again = cursor.count("the length of a record")?;
    if again != length {
        return Err(damaged(format!(
            "a record is {length} bytes long at its beginning and {again} at its end"
        )));
    }
    Ok(Cursor {
        bytes,
        at: 0,
        big_endian: cursor.big_endian,
    })
}

/// Writes frames without a box.
pub(super) fn write(frames: &Trajectory, spacing: f32, writer: &mut dyn Write) -> Result<()> {
    let number = |count: usize| {
        i32::try_from(count).map_err(|_| Error::Value {
            name: "frames or atoms of a .dcd file",
            found: count.to_string(),
            expected: "fewer than 2147483648".into(),
        })
    };
    let (count, atoms) = (number(frames.frames())?, number(frames.atoms)?);
    let size = number(4 * frames.atoms)?;
    let mut record = |bytes: &[u8]| -> Result<()> {
        let length = (bytes.len() as i32).to_le_bytes();
        writer.write_all(&length)?;
        writer.write_all(bytes)?;
        Ok(writer.write_all(&length)?)
    };
    let mut header = [0_i32; 20];
    // Frames, first step, steps between frames, steps; the version of CHARMM whose layout this is.
    (header[0], header[1], header[2], header[3], header[19]) = (count, 0, 1, count, 24);
    let mut bytes = b"CORD".to_vec();
    bytes.extend(header.iter().flat_map(|number| number.to_le_bytes()));
    // The time between frames in CHARMM's unit of 48.88821 fs.
    bytes[40..44].copy_from_slice(&(spacing / 0.048_888_21).to_le_bytes());
    record(&bytes)?;
    let mut title = 1_i32.to_le_bytes().to_vec();
    title.extend(format!("{:<80}", "Written by diffclf").bytes());
    record(&title)?;
    record(&atoms.to_le_bytes())?;
    let mut values = Vec::with_capacity(size as usize);
    for positions in frames.positions.chunks_exact(3 * frames.atoms) {
        for axis in 0..3 {
            values.clear();
            let column = positions.iter().skip(axis).step_by(3);
            values.extend(column.flat_map(|x| (x * PER_NM).to_le_bytes()));
            record(&values)?;
        }
    }
    Ok(())
}
