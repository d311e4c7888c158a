//! Rows of two endpoints that belong together: blocks of rows of both, assigned to each other by a [`Coupling`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::source::Source;
use crate::coupling::{Coupling, Shape};

/// Rows of a block in the order of the first endpoint: numbers, and values.
struct Block {
    rows: [Vec<Option<usize>>; 2],
    values: [Vec<f32>; 2],
}

/// Both endpoints.
struct Coupled {
    coupling: Coupling,
    shape: Shape,
    ends: [Arc<dyn Source>; 2],
    batch: usize,
    /// The last blocks that were asked for, newest last.
    recent: Mutex<VecDeque<(u64, Arc<OnceLock<Block>>)>>,
}

impl Coupled {
    /// The block and the place in it of a row of a step. Rows are dealt in one endless sequence, cut into blocks.
    fn place(&self, step: u64, unit: usize) -> (Arc<OnceLock<Block>>, usize) {
        let dealt = step
            .wrapping_mul(self.batch as u64)
            .wrapping_add(unit as u64);
        let rows = self.coupling.rows as u64;
        let number = dealt / rows;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().find(|(k, _)| *k == number);
        let block = match known {
            Some((_, block)) => block.clone(),
            None => {
                // Those of a step, and of the next.
                let most = 2 * (self.batch / self.coupling.rows + 2);
                if recent.len() >= most {
                    recent.pop_front();
                }
                let block = Arc::new(OnceLock::new());
                recent.push_back((number, block.clone()));
                block
            }
        };
        drop(recent);
        block.get_or_init(|| self.block(number));
        (block, (dealt % rows) as usize)
    }

    fn block(&self, number: u64) -> Block {
        let (count, dim) = (self.coupling.rows, self.shape.dim);
        let drawn = |end: usize| {
            let mut values = vec![0f32; count * dim];
            let rows = values.chunks_exact_mut(dim).enumerate();
            let rows = rows.map(|(unit, row)| {
                self.ends[end].fill(number, unit, row);
                self.ends[end].row(number, unit)
            });
            (rows.collect::<Vec<_>>(), values)
        };
        let ((first, start), (second, end)) = (drawn(0), drawn(1));
        let wide = |rows: &[f32]| -> Vec<f64> { rows.iter().map(|x| f64::from(*x)).collect() };
        let (partners, moved) = self.coupling.pair(self.shape, &wide(&start), &wide(&end));
        let second = partners.iter().map(|partner| second[*partner as usize]);
        Block {
            rows: [first, second.collect()],
            values: [start, moved.iter().map(|x| *x as f32).collect()],
        }
    }
}

/// One of the endpoints.
struct End(Arc<Coupled>, usize);

impl Source for End {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let (block, place) = self.0.place(step, unit);
        if let Some(block) = block.get() {
            out.copy_from_slice(&block.values[self.1][place * out.len()..][..out.len()]);
        }
    }

    fn row(&self, step: u64, unit: usize) -> Option<usize> {
        let (block, place) = self.0.place(step, unit);
        block.get().and_then(|block| block.rows[self.1][place])
    }
}

/// Both endpoints with rows that belong together, for steps of `batch` rows. The sources must deal as many rows a step as a block of the coupling has.
pub fn coupled(
    coupling: &Coupling,
    shape: Shape,
    ends: [Arc<dyn Source>; 2],
    batch: usize,
) -> [Arc<dyn Source>; 2] {
    let both = Arc::new(Coupled {
        coupling: coupling.clone(),
        shape,
        ends,
        batch,
        recent: Mutex::new(VecDeque::new()),
    });
    [0, 1].map(|end| Arc::new(End(both.clone(), end)) as Arc<dyn Source>)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::Coordinates;
    use crate::train::{InMemory, Shuffled};

    /// Pairs of a line keep their order within each block, whatever steps ask for them and in whatever order; an epoch has every row once.
    #[test]
    fn rows_of_a_block_belong_together() {
        let (rows, block, batch) = (60, 12, 5);
        let ends = || {
            [0, 1].map(|end: u32| -> Arc<dyn Source> {
                let value = |k: usize| (k as f32 * 0.37).sin() * (1.0 + 3.0 * end as f32);
                let table = Arc::new(InMemory::new((0..rows).map(value).collect::<Vec<_>>(), 1));
                Arc::new(Shuffled::split(end, table, &Coordinates::identity(1), block, 3, 0).0)
            })
        };
        let coupling = Coupling {
            rows: block,
            turn: false,
            alike: Vec::new(),
        };
        let shape = Shape {
            dim: 1,
            particles: None,
            subspace: None,
        };
        let [start, end] = coupled(&coupling, shape, ends(), batch);
        let at = |source: &Arc<dyn Source>, k: usize| {
            let mut row = [0f32];
            source.fill((k / batch) as u64, k % batch, &mut row);
            (row[0], source.row((k / batch) as u64, k % batch).unwrap())
        };
        let forward: Vec<_> = (0..2 * rows)
            .map(|k| (at(&start, k), at(&end, k)))
            .collect();
        let backward: Vec<_> = (0..2 * rows)
            .rev()
            .map(|k| (at(&start, k), at(&end, k)))
            .collect();
        assert!(forward.iter().eq(backward.iter().rev()));
        for pairs in forward.chunks_exact(block) {
            let mut pairs = pairs.to_vec();
            pairs.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
            assert!(pairs.windows(2).all(|two| two[0].1.0 <= two[1].1.0));
        }
        for epoch in forward.chunks_exact(rows) {
            for side in [0, 1] {
                let mut seen: Vec<usize> = epoch.iter().map(|p| [p.0.1, p.1.1][side]).collect();
                seen.sort_unstable();
                assert!(seen.iter().enumerate().all(|(k, row)| k == *row));
            }
        }
    }
}
