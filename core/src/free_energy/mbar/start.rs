//! Where the MBAR equations are started: BAR between pairs of states on a few samples of each, joined along the tree of largest overlap.
//! Some samples may have huge or infinite energies in other states (clashes, walls): means of works know nothing then, BAR and medians do.

use super::solve::Problem;
use crate::free_energy::bar::rough_bar;
use crate::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// Samples of a state that are looked at: so many for all pairs of states together, but no fewer and no more than these.
const ALL: usize = 8000;
const SAMPLES: std::ops::RangeInclusive<usize> = 16..=1000;
/// Numbers read at once.
const BLOCK: usize = 1024;

impl Problem<'_> {
    /// Checks every energy and gives a start.
    pub fn start(&self) -> Result<Vec<f64>> {
        let states = self.sampled.len();
        let works = self.for_each(&|j| {
            self.check(j)?;
            Ok(self.works(j))
        })?;
        let links = self.for_each(&|j| {
            let link = |k: usize| rough_bar(&works[j][k], &works[k][j]);
            Ok((0..states).map(link).collect::<Vec<_>>())
        })?;
        let mut f = vec![0.0; states];
        // Prim: the link of each state with its nearest member of the tree; none once it is in the tree.
        let mut open: Vec<Option<usize>> = (0..states).map(|k| (k > 0).then_some(0)).collect();
        while let Some((k, j)) = open
            .iter()
            .enumerate()
            .filter_map(|(k, member)| member.map(|j| (k, j)))
            .max_by(|a, b| links[a.1][a.0].1.total_cmp(&links[b.1][b.0].1))
        {
            f[k] = f[j] + links[j][k].0;
            open[k] = None;
            for (other, member) in open.iter_mut().enumerate() {
                if let Some(member) = member
                    && links[k][other].1 > links[*member][other].1
                {
                    *member = k;
                }
            }
        }
        Ok(f)
    }

    /// The same for every sampled state, on all threads.
    fn for_each<T: Send + Default>(
        &self,
        of: &(dyn Fn(usize) -> Result<T> + Sync),
    ) -> Result<Vec<T>> {
        let states = self.sampled.len();
        let rows: Vec<Mutex<Result<T>>> =
            (0..states).map(|_| Mutex::new(Ok(T::default()))).collect();
        self.pool.run(states, &|_, j| {
            let row = of(j);
            *rows[j].lock().unwrap_or_else(PoisonError::into_inner) = row;
        });
        let row = |row: Mutex<Result<T>>| row.into_inner().unwrap_or_else(PoisonError::into_inner);
        rows.into_iter().map(row).collect()
    }

    /// First sample of a sampled state, and how many it has.
    fn samples_of(&self, j: usize) -> (usize, usize) {
        let first = self.counts[..j].iter().map(|n| *n as usize).sum();
        (first, self.counts[j] as usize)
    }

    /// `u_k - u_j` for every sampled k, at samples of state j from all over its series.
    fn works(&self, j: usize) -> Vec<Vec<f64>> {
        let (first, count) = self.samples_of(j);
        let (fewest, most) = (*SAMPLES.start(), *SAMPLES.end());
        let taken = (ALL / self.sampled.len()).clamp(fewest, most).min(count);
        let index: Vec<usize> = (0..taken).map(|i| first + i * count / taken).collect();
        let (mut own, mut other) = (vec![0.0; taken], vec![0.0; taken]);
        self.energies.gather(self.sampled[j], &index, &mut own);
        let of_state = |&state: &usize| {
            self.energies.gather(state, &index, &mut other);
            other.iter().zip(&own).map(|(u, own)| u - own).collect()
        };
        self.sampled.iter().map(of_state).collect()
    }

    /// Refuses energies that cannot be, among the samples of state j.
    fn check(&self, j: usize) -> Result<()> {
        let (first, count) = self.samples_of(j);
        let mut energies = vec![0.0; BLOCK];
        for start in (first..first + count).step_by(BLOCK) {
            let energies = &mut energies[..BLOCK.min(first + count - start)];
            for state in 0..self.energies.states() {
                self.energies.read(state, start, energies);
                let is_own = state == self.sampled[j];
                let wrong =
                    |u: &f64| u.is_nan() || *u == f64::NEG_INFINITY || (is_own && u.is_infinite());
                if let Some(at) = energies.iter().position(wrong) {
                    return Err(Error::BadEnergy {
                        state,
                        sample: start + at,
                        found: energies[at],
                        expected: if is_own {
                            "a finite number in the state the sample comes from"
                        } else {
                            "a number or plus infinity"
                        },
                    });
                }
            }
        }
        Ok(())
    }
}
