//! A random order of n items that needs no memory.

use super::{Purpose, mix};

/// A random permutation of 0..n that needs no memory: a keyed Feistel network on the next power of two, walked along its cycle
/// until it lands below n (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). At most two steps on average.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    key: u64,
    left_bits: u32,
    right_bits: u32,
}

impl Permutation {
    const ROUNDS: u64 = 6;

    /// The permutation of 0..n for one purpose and epoch.
    pub fn new(seed: u64, purpose: Purpose, epoch: u64, n: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let key = mix(mix(mix(seed) ^ purpose.code()) ^ epoch);
        Self {
            n,
            key,
            left_bits: bits - bits / 2,
            right_bits: bits / 2,
        }
    }

    /// How many items are permuted.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Whether there is nothing to permute.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Where item `i` goes.
    ///
    /// # Panics
    /// If `i` is not below n, as an index into a slice would.
    pub fn at(&self, i: u64) -> u64 {
        assert!(i < self.n, "index {i} of a permutation of {} items", self.n);
        let (left_mask, right_mask) = (
            (1_u64 << self.left_bits) - 1,
            (1_u64 << self.right_bits) - 1,
        );
        let mut value = i;
        loop {
            let (mut left, mut right) = (value >> self.right_bits, value & right_mask);
            for round in 0..Self::ROUNDS {
                let key = self.key.wrapping_add(round << 1);
                left ^= mix(mix(key) ^ right) & left_mask;
                right ^= mix(mix(key.wrapping_add(1)) ^ left) & right_mask;
            }
            value = left << self.right_bits | right;
            if value < self.n {
                return value;
            }
        }
    }
}
