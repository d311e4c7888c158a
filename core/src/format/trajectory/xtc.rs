//! `.xtc`: GROMACS' frames. Up to nine atoms are stored as they are; more are rounded to whole multiples of a step and packed, near
//! atoms as differences (the format of xdrfile's `xdr3dfcoord`).
//!
//! The reader is ours, since that of the crate which writes (molly) panics on damaged bytes.

use super::{Cursor, Trajectory, damaged};
use crate::{Error, Result};
use std::io::Write;

/// First number of every frame; the second has lengths of eight bytes.
const MAGIC: [i32; 2] = [1995, 2023];
/// Frames of so few atoms are not packed.
const UNPACKED: usize = 9;
/// Steps of a nanometre when we write.
const PRECISION: f32 = 1000.0;
/// Sizes of the ranges that differences are packed in, of the format.
const SIZES: [u32; 73] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 101, 128, 161, 203, 256,
    322, 406, 512, 645, 812, 1024, 1290, 1625, 2048, 2580, 3250, 4096, 5060, 6501, 8192, 10321,
    13003, 16384, 20642, 26007, 32768, 41285, 52015, 65536, 82570, 104_031, 131_072, 165_140,
    208_063, 262_144, 330_280, 416_127, 524_287, 660_561, 832_255, 1_048_576, 1_321_122, 1_664_510,
    2_097_152, 2_642_245, 3_329_021, 4_194_304, 5_284_491, 6_658_042, 8_388_607, 10_568_983,
    13_316_085, 16_777_216,
];

/// Reads all frames.
pub(super) fn read(bytes: &[u8]) -> Result<Trajectory> {
    let mut cursor = Cursor {
        bytes,
        at: 0,
        big_endian: true,
    };
    let mut found = Trajectory::default();
    while !cursor.ended() {
        let frame = found.frames();
        let magic = cursor.integer()?;
        if !MAGIC.contains(&magic) {
            return Err(damaged(format!(
                "frame {frame} begins with {magic}, expected {} or {}",
                MAGIC[0], MAGIC[1]
            )));
        }
        let atoms = cursor.count("the number of atoms")?;
        if frame == 0 {
            found.atoms = atoms;
        }
        if atoms == 0 || atoms != found.atoms {
            return Err(damaged(format!(
                "frame {frame} has {atoms} atoms, expected {}",
                found.atoms.max(1)
            )));
        }
        // Step, time and the box.
        cursor.take(4 * (2 + 9))?;
        let again = cursor.count("the number of atoms")?;
        if again != atoms {
            return Err(damaged(format!(
                "frame {frame} has {atoms} atoms, but positions of {again}"
            )));
        }
        if atoms <= UNPACKED {
            for _ in 0..3 * atoms {
                let x = cursor.float()?;
                found.positions.push(x);
            }
        } else {
            unpack(&mut cursor, atoms, magic == MAGIC[1], &mut found.positions)?;
        }
    }
    Ok(found)
}

/// Bits of the numbers from 0 up to `size`, which must be stored with one bit more than needed where it is a power of 2.
fn bits_of(size: u128) -> u32 {
    u128::BITS - size.leading_zeros()
}

/// Numbers of so many bits, first bits first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn number(&mut self, bits: u32) -> Result<u32> {
        let mut value = 0_u64;
        let mut left = bits as usize;
        while left > 0 {
            let byte = self.bytes.get(self.at / 8);
            let byte = *byte.ok_or_else(|| damaged("a packed frame ends too early"))?;
            let here = (8 - self.at % 8).min(left);
            let shifted = byte >> (8 - self.at % 8 - here);
            value = value << here | u64::from(shifted) & ((1 << here) - 1);
            self.at += here;
            left -= here;
        }
        Ok(value as u32)
    }

    /// Three numbers below their sizes, as one of so many bits whose bytes stand lowest first.
    fn triple(&mut self, bits: u32, sizes: [u32; 3]) -> Result<[i64; 3]> {
        let mut value = 0_u128;
        let mut shift = 0;
        while shift < bits {
            let here = (bits - shift).min(8);
            value |= u128::from(self.number(here)?) << shift;
            shift += here;
        }
        let (last, middle) = (u128::from(sizes[2]), u128::from(sizes[1]));
        let first = value / last / middle;
        Ok([first, value / last % middle, value % last].map(|x| x as i64))
    }
}

/// Unpacks the positions of a frame.
fn unpack(cursor: &mut Cursor<'_>, atoms: usize, wide: bool, out: &mut Vec<f32>) -> Result<()> {
    let precision = cursor.float()?;
    if !(precision.is_finite() && precision > 0.0) {
        return Err(damaged(format!("the precision of a frame is {precision}")));
    }
    let mut corner =
        || -> Result<[i32; 3]> { Ok([cursor.integer()?, cursor.integer()?, cursor.integer()?]) };
    let (low, high) = (corner()?, corner()?);
    let mut sizes = [0_u32; 3];
    for k in 0..3 {
        let size = i64::from(high[k]) - i64::from(low[k]) + 1;
        sizes[k] = u32::try_from(size)
            .ok()
            .filter(|size| *size > 0)
            .ok_or_else(|| damaged(format!("a frame reaches from {} to {}", low[k], high[k])))?;
    }
    let mut small = cursor.count("the size of differences")?;
    let length = match wide {
        true => {
            let high = cursor.count("the length of a frame")?;
            let low = cursor.integer()? as u32 as usize;
            high.checked_mul(1 << 32)
                .map_or(usize::MAX, |high| high | low)
        }
        false => cursor.count("the length of a frame")?,
    };
    let packed = cursor.take(length)?;
    cursor.take(length.next_multiple_of(4) - length)?;
    // An atom takes at least a bit.
    if atoms / 8 > length {
        return Err(damaged(format!("{atoms} atoms in {length} bytes")));
    }
    let mut bits = Bits {
        bytes: packed,
        at: 0,
    };
    // Ranges too wide for one number are stored apart.
    let apart = sizes.iter().any(|size| *size > 0xff_ffff);
    let whole = bits_of(sizes.iter().map(|size| u128::from(*size)).product());
    let range = |small: usize| {
        let size = SIZES.get(small).copied().filter(|size| *size > 0);
        size.ok_or_else(|| damaged(format!("{small} is no size of differences")))
    };
    let step = 1.0 / precision;
    let mut put = |point: [i64; 3]| out.extend(point.map(|x| x as f32 * step));
    let mut size = range(small)?;
    let (mut done, mut run) = (0, 0);
    while done < atoms {
        let mut previous = if apart {
            let mut point = [0; 3];
            for k in 0..3 {
                point[k] = i64::from(bits.number(bits_of(sizes[k].into()))?);
            }
            point
        } else {
            bits.triple(whole, sizes)?
        };
        for k in 0..3 {
            previous[k] += i64::from(low[k]);
        }
        done += 1;
        let mut change = 0;
        if bits.number(1)? == 1 {
            let word = bits.number(5)?;
            change = i64::from(word % 3) - 1;
            run = (word / 3) as usize;
        }
        if run > atoms - done {
            return Err(damaged("a packed frame has more atoms than it says"));
        }
        if run == 0 {
            put(previous);
        }
        for k in 0..run {
            let mut point = bits.triple(small as u32, [size; 3])?;
            for i in 0..3 {
                point[i] += previous[i] - i64::from(size / 2);
            }
            // The first of a run stands before the atom it is a difference to: waters are packed better so.
            put(point);
            if k == 0 {
                put(previous);
            }
            previous = point;
        }
        done += run;
        if change != 0 {
            small = (small as i64 + change) as usize;
            size = range(small)?;
        }
    }
    Ok(())
}

/// Writes frames without a box, packed by the crate molly.
pub(super) fn write(frames: &Trajectory, spacing: f32, writer: &mut dyn Write) -> Result<()> {
    let too_many = |_| Error::Value {
        name: "atoms of a .xtc file",
        found: frames.atoms.to_string(),
        expected: "fewer".into(),
    };
    u32::try_from(frames.atoms).map_err(too_many)?;
    let mut bytes = Vec::new();
    let mut packer = molly::XTCWriter::new(&mut bytes);
    for (k, positions) in frames.positions.chunks_exact(3 * frames.atoms).enumerate() {
        if let Some(x) = positions.iter().find(|x| x.is_nan() || x.abs() >= 2e6) {
            return Err(Error::Value {
                name: "position in frame of a .xtc file",
                found: format!("{x} nm in frame {k}"),
                expected: "numbers below 2e6; write .npy or .dcd to keep lost chains".into(),
            });
        }
        packer.write_frame(&molly::Frame {
            step: k as u32,
            time: k as f32 * spacing,
            precision: PRECISION,
            positions: positions.to_vec(),
            ..molly::Frame::default()
        })?;
    }
    Ok(writer.write_all(&bytes)?)
}
