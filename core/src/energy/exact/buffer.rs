//! Buffers that a thread keeps: evaluations in a training loop come again and again, and must not allocate.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Most numbers of a buffer that is kept (half a megabyte).
const LARGEST: usize = 1 << 16;
/// Most buffers that are kept.
const MOST: usize = 32;

thread_local! {
    static KEPT: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// Numbers in a buffer of this thread, which gets it back at the end.
pub(super) struct Buffer(Vec<f64>);

impl Buffer {
    /// An empty one with room for so many numbers.
    pub(super) fn with_capacity(numbers: usize) -> Buffer {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop());
        let mut buffer = kept.ok().flatten().unwrap_or_default();
        buffer.clear();
        buffer.reserve(numbers);
        Buffer(buffer)
    }

    /// So many zeros.
    pub(super) fn zeros(numbers: usize) -> Buffer {
        let mut buffer = Buffer::with_capacity(numbers);
        buffer.resize(numbers, 0.0);
        buffer
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        if buffer.capacity() <= LARGEST {
            // A thread that ends has no use for it.
            let _ = KEPT.try_with(|kept| {
                let mut kept = kept.borrow_mut();
                if kept.len() < MOST {
                    kept.push(buffer);
                }
            });
        }
    }
}

impl Deref for Buffer {
    type Target = Vec<f64>;
    fn deref(&self) -> &Vec<f64> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<f64> {
        &mut self.0
    }
}
