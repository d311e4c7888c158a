//! Bytes to values and back: every reader takes a byte slice (a memory map will do) and treats it as hostile input.
//!
//! * [`npy`]: NumPy arrays, viewed row by row without loading them;
//! * [`trajectory`]: frames of atoms, `.xtc`, `.dcd` and `.pdb`;
//! * [`model`]: the model file and the training checkpoint, one sealed safetensors container.
//!
//! Sizes are checked against the bytes at hand before anything is allocated, so no declared size can exhaust memory.
//! Nothing here opens a file: paths belong to the program.

pub mod model;
pub mod npy;
pub mod trajectory;

use crate::Result;
use sha2::{Digest, Sha256};
use std::io::Write;

/// SHA-256 of `bytes` in lower-case hexadecimal: what model files record to name the data they were trained on.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256, as [`sha256_hex`] gives it, of what `fill` writes; nothing is kept of it.
pub fn sha256_of(fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<String> {
    struct Digesting(Sha256);
    impl Write for Digesting {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut digest = Digesting(Sha256::new());
    fill(&mut digest)?;
    Ok(hex(&digest.0.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn sha256_hex_of_the_standard_example() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            super::sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let pieces = super::sha256_of(|writer| {
            writer.write_all(b"a")?;
            Ok(writer.write_all(b"bc")?)
        });
        assert_eq!(pieces.unwrap(), super::sha256_hex(b"abc"));
    }
}
