//! The fixed tree in which partial sums are added: neighbours, then pairs of neighbours, then pairs of those, whoever holds them. Where the
//! last of an odd number has no neighbour it goes up as it is. The sum is the same bits for any number of threads and processes.

use super::kernel::Real;
use std::ops::Range;

/// Numbers of a leaf that are added at a time: a kilobyte for each level of the tree.
const BLOCK: usize = 256;
/// Levels of the largest tree.
const LEVELS: usize = 16;
/// Leaves of the largest tree.
pub const MOST_LEAVES: usize = 1 << (LEVELS - 1);

/// Adds up leaves: `read(leaf, first, out)` copies the leaf's numbers from `first` on.
pub fn add_up<T: Real>(leaves: usize, out: &mut [T], read: &dyn Fn(usize, usize, &mut [T])) {
    assert!(leaves <= MOST_LEAVES, "{leaves} leaves");
    let mut waiting = [[T::ZERO; BLOCK]; LEVELS];
    let mut carry = [T::ZERO; BLOCK];
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let carry = &mut carry[..out.len()];
        // A counter in base two: a digit is set where a sum waits for its neighbour.
        for leaf in 0..leaves {
            let full = leaf.trailing_ones() as usize;
            let (lower, higher) = waiting.split_at_mut(full);
            let sum = &mut higher[0][..carry.len()];
            let Some((last, lower)) = lower.split_last() else {
                read(leaf, block * BLOCK, sum);
                continue;
            };
            read(leaf, block * BLOCK, carry);
            for left in lower {
                add(left, carry);
            }
            for ((sum, left), right) in sum.iter_mut().zip(last).zip(&*carry) {
                *sum = *left + *right;
            }
        }
        let mut digits = (0..LEVELS).filter(|digit| (leaves >> digit) & 1 == 1);
        match digits.next() {
            Some(lowest) => out.copy_from_slice(&waiting[lowest][..out.len()]),
            None => out.fill(T::ZERO),
        }
        for digit in digits {
            add(&waiting[digit], out);
        }
    }
}

/// `right += left`.
fn add<T: Real>(left: &[T], right: &mut [T]) {
    for (right, left) in right.iter_mut().zip(left) {
        *right = *left + *right;
    }
}

/// A whole part of the tree: the sum of the leaves from `index << level` up to `(index + 1) << level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its leaves are two to this power.
    pub level: u32,
    /// Its number among those of the level.
    pub index: usize,
}

impl Part {
    /// Its leaves.
    pub fn leaves(&self) -> Range<usize> {
        self.index << self.level..(self.index + 1) << self.level
    }

    /// The largest whole parts that make up these leaves, from left to right.
    pub fn of(leaves: Range<usize>) -> Vec<Part> {
        let (mut start, mut parts) = (leaves.start, Vec::new());
        while start < leaves.end {
            let fits = (leaves.end - start).ilog2();
            let level = match start {
                0 => fits,
                _ => fits.min(start.trailing_zeros()),
            };
            let index = start >> level;
            parts.push(Part { level, index });
            start += 1 << level;
        }
        parts
    }

    /// The part of which `self` and `right` are the halves.
    fn with(&self, right: &Part) -> Option<Part> {
        let halves = self.level == right.level && self.index.is_multiple_of(2);
        (halves && right.index == self.index + 1).then_some(Part {
            level: self.level + 1,
            index: self.index / 2,
        })
    }
}

/// Parts of the tree, from left to right, that grow together.
#[derive(Debug, Default)]
pub struct Grown<T> {
    parts: Vec<(Part, Vec<T>)>,
}

impl<T: Real> Grown<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { parts: Vec::new() }
    }

    /// Adds the part to the right of all others, and all that it completes.
    pub fn push(&mut self, part: Part, values: Vec<T>) {
        let (mut part, mut values) = (part, values);
        while let Some((left, of_left)) = self.parts.last() {
            let Some(whole) = left.with(&part) else { break };
            add(of_left, &mut values);
            part = whole;
            self.parts.pop();
        }
        self.parts.push((part, values));
    }

    /// The parts there are.
    pub fn parts(&self) -> &[(Part, Vec<T>)] {
        &self.parts
    }

    /// The sum of all leaves, once they are here.
    pub fn sum(mut self, out: &mut [T]) {
        let Some((_, mut sum)) = self.parts.pop() else {
            return out.fill(T::ZERO);
        };
        while let Some((_, left)) = self.parts.pop() {
            add(&left, &mut sum);
        }
        out.copy_from_slice(&sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    /// The tree as it is drawn: halves of a power of two, an absent half counts nothing.
    fn drawn(leaves: &[Vec<f32>], range: Range<usize>) -> Option<Vec<f32>> {
        if range.start >= leaves.len() {
            return None;
        }
        if range.len() == 1 {
            return Some(leaves[range.start].clone());
        }
        let middle = range.start + range.len() / 2;
        let left = drawn(leaves, range.start..middle)?;
        Some(match drawn(leaves, middle..range.end) {
            None => left,
            Some(right) => left.iter().zip(&right).map(|(a, b)| a + b).collect(),
        })
    }

    #[test]
    fn any_cut_gives_the_bits_of_the_tree() {
        for count in [1, 2, 3, 5, 7, 8, 12, 29, 64, 100] {
            let width = 2 * BLOCK + 17;
            let leaves: Vec<Vec<f32>> = (0..count)
                .map(|leaf| {
                    let mut stream = Stream::new(3, Purpose::Test, 9, leaf);
                    (0..width).map(|_| stream.normal() as f32).collect()
                })
                .collect();
            let expected = drawn(&leaves, 0..leaves.len().next_power_of_two()).unwrap();
            let read = |offset: usize| {
                let leaves = &leaves;
                move |leaf: usize, first: usize, out: &mut [f32]| {
                    out.copy_from_slice(&leaves[offset + leaf][first..][..out.len()]);
                }
            };
            let mut found = vec![0.0; width];
            add_up(leaves.len(), &mut found, &read(0));
            assert_eq!(found, expected, "{count} leaves");
            for ranks in [1, 2, 3, 4, 7] {
                let mut grown = Grown::new();
                for rank in 0..ranks {
                    let share = rank * leaves.len() / ranks..(rank + 1) * leaves.len() / ranks;
                    for part in Part::of(share) {
                        let mut values = vec![0.0; width];
                        let own = part.leaves();
                        add_up(own.len(), &mut values, &read(own.start));
                        grown.push(part, values);
                    }
                }
                let mut found = vec![0.0; width];
                grown.sum(&mut found);
                assert_eq!(found, expected, "{count} leaves on {ranks} ranks");
            }
        }
        let mut nothing = vec![1.0f32; 3];
        add_up(0, &mut nothing, &|_, _, _| ());
        assert_eq!(nothing, [0.0; 3]);
    }

    #[test]
    fn parts_are_whole_and_largest() {
        let parts = Part::of(3..12);
        let leaves: Vec<_> = parts.iter().map(Part::leaves).collect();
        assert_eq!(leaves, [3..4, 4..8, 8..12]);
        assert_eq!(Part::of(0..6).len(), 2);
        assert!(Part::of(5..5).is_empty());
    }
}
