//! Numbers that begin on a cache line.
//!
//! A vector register loaded across two lines costs twice, and an allocator promises no more than a register's half: products in the cache are
//! a few per cent slower where it gives no more.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A fixed number of numbers, the first of them on a cache line.
#[derive(Debug, Default)]
pub(super) struct Aligned<T> {
    numbers: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy> Aligned<T> {
    /// `len` times `value`.
    pub(super) fn new(value: T, len: usize) -> Self {
        let numbers = vec![value; len + LINE / size_of::<T>()];
        // The allocation stays where it is for as long as the vector is not resized, which it never is.
        let start = numbers.as_ptr().align_offset(LINE);
        Self {
            start,
            len,
            numbers,
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.numbers[self.start..][..self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.numbers[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::Aligned;

    #[test]
    fn numbers_begin_on_a_line_wherever_they_are() {
        for len in [0, 1, 5, 17, 1000] {
            let mut numbers = Aligned::new(2.5f32, len);
            assert_eq!(numbers.as_ptr() as usize % 64, 0);
            assert!(numbers.len() == len && numbers.iter().all(|x| *x == 2.5));
            numbers.iter_mut().for_each(|x| *x = 1.0);
            let moved = Box::new(numbers);
            assert_eq!(moved.as_ptr() as usize % 64, 0);
            assert_eq!(Aligned::new(0f64, len).as_ptr() as usize % 64, 0);
        }
    }
}
