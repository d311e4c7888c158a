//! Bytes to values and back: every reader takes a byte slice (a memory map will do) and treats it as hostile input.
//!
//! * [`npy`]: NumPy arrays, viewed row by row without loading them;
//! * [`model`]: the model file and the training checkpoint, one sealed safetensors container.
//!
//! Sizes are checked against the bytes at hand before anything is allocated, so no declared size can exhaust memory.
//! Nothing here opens a file: paths belong to the program.

pub mod model;
pub mod npy;

use sha2::{Digest, Sha256};

/// SHA-256 of `bytes` in lower-case hexadecimal: what model files record to name the data they were trained on.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
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
    }
}
