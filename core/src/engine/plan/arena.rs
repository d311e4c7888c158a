//! Places in a tile's arena: buffers are taken and given back as the plan walks through its instructions.

/// Best-fit allocation with neighbours merged.
#[derive(Default)]
pub(super) struct Arena {
    /// Free ranges: start and length, in order.
    free: Vec<(usize, usize)>,
    /// First number beyond everything that was ever taken.
    pub(super) end: usize,
}

impl Arena {
    pub(super) fn take(&mut self, len: usize) -> usize {
        // Rows start on cache lines.
        let len = len.next_multiple_of(16);
        let fit = self
            .free
            .iter()
            .enumerate()
            .filter(|(_, f)| f.1 >= len)
            .min_by_key(|(_, f)| f.1)
            .map(|(i, _)| i);
        if let Some(i) = fit {
            let (start, size) = self.free[i];
            if size == len {
                self.free.remove(i);
            } else {
                self.free[i] = (start + len, size - len);
            }
            return start;
        }
        let start = match self.free.last() {
            // Grow the last hole if it touches the end.
            Some(&(start, size)) if start + size == self.end => {
                self.free.pop();
                start
            }
            _ => self.end,
        };
        self.end = start + len;
        start
    }

    pub(super) fn give(&mut self, start: usize, len: usize) {
        let len = len.next_multiple_of(16);
        let i = self.free.partition_point(|f| f.0 < start);
        self.free.insert(i, (start, len));
        if i + 1 < self.free.len() && start + len == self.free[i + 1].0 {
            self.free[i].1 += self.free[i + 1].1;
            self.free.remove(i + 1);
        }
        if i > 0 && self.free[i - 1].0 + self.free[i - 1].1 == start {
            self.free[i - 1].1 += self.free[i].1;
            self.free.remove(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arena;

    #[test]
    fn freed_neighbours_are_joined_and_used_again() {
        let mut arena = Arena::default();
        let [a, b, c] = [16, 32, 16].map(|n| arena.take(n));
        assert_eq!((a, b, c, arena.end), (0, 16, 48, 64));
        arena.give(a, 16);
        arena.give(b, 32);
        assert_eq!(arena.take(40), 0, "48 numbers are free in one piece");
        arena.give(c, 16);
        assert_eq!(arena.take(17), 48, "the last hole grows");
        assert_eq!(arena.end, 80);
    }
}
