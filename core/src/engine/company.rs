//! `Company`: processes that run the same program side by side and share the tiles of its batches.
//!
//! Every process holds the same state and takes the same steps; only tiles are shared out. What a process has computed of a batch, outputs
//! of rows and partial sums, goes to all others, so that all go on with the same bits, and with those of one process alone.

use super::kernel::Real;
use super::tree::{Grown, Part};
use std::ops::Range;

/// Processes that wait for each other: messages arrive in the order they were sent, and none is lost. A process that is gone ends the
/// work of all.
pub trait Company: Send + Sync {
    /// The number of this process, from 0 on.
    fn rank(&self) -> usize;
    /// How many there are.
    fn size(&self) -> usize;
    /// Sends bytes to another process.
    fn send(&self, to: usize, bytes: &[u8]);
    /// Takes the bytes that another process has sent: as many as there is room for.
    fn receive(&self, from: usize, bytes: &mut [u8]);
}

/// What a process gets of `count` pieces of work: shares of neighbours, in the order of the processes.
pub fn share(company: &dyn Company, count: usize) -> Range<usize> {
    shares(company, company.rank()..company.rank() + 1, count)
}

/// What several processes in a row get.
fn shares(company: &dyn Company, ranks: Range<usize>, count: usize) -> Range<usize> {
    let first = |rank: usize| rank * count / company.size();
    first(ranks.start)..first(ranks.end)
}

/// One round of a tree of processes on the way to process 0: what this one does in it.
enum Round {
    /// It sends what it has to that one, and is done.
    Give(usize),
    /// It takes what these have: the first of them sends it.
    Take(Range<usize>),
    Wait,
}

/// The rounds in which all that processes have comes to process 0, each time from the first of a row of them to its neighbour on the left.
fn rounds(company: &dyn Company) -> impl Iterator<Item = Round> {
    let (rank, size) = (company.rank(), company.size());
    let strides = std::iter::successors(Some(1), |stride| Some(2 * stride));
    let mut given = false;
    strides
        .take_while(move |stride| *stride < size)
        .map(move |stride| {
            if given {
                return Round::Wait;
            }
            if rank % (2 * stride) == stride {
                given = true;
                return Round::Give(rank - stride);
            }
            let right = rank + stride;
            match right < size {
                true => Round::Take(right..(right + stride).min(size)),
                false => Round::Wait,
            }
        })
}

/// What process 0 has, for all.
pub fn broadcast(company: &dyn Company, bytes: &mut [u8]) {
    let (rank, size) = (company.rank(), company.size());
    let mut stride = size.next_power_of_two() / 2;
    while stride > 0 {
        if rank.is_multiple_of(2 * stride) && rank + stride < size {
            company.send(rank + stride, bytes);
        } else if rank % (2 * stride) == stride {
            company.receive(rank - stride, bytes);
        }
        stride /= 2;
    }
}

/// What process 0 says, for all: decisions by the clock or by a signal.
pub fn agree(company: &dyn Company, own: bool) -> bool {
    let mut said = [u8::from(own)];
    broadcast(company, &mut said);
    said[0] != 0
}

/// Every process has filled its share of `count` pieces of `values`, of which piece k begins at `starts(k)`: all get all.
pub fn gather<T: Real>(
    company: &dyn Company,
    count: usize,
    starts: &dyn Fn(usize) -> usize,
    values: &mut [T],
) {
    let range = |pieces: Range<usize>| starts(pieces.start)..starts(pieces.end);
    let mut mine = company.rank()..company.rank() + 1;
    for round in rounds(company) {
        match round {
            Round::Give(to) => {
                let range = range(shares(company, mine.clone(), count));
                company.send(to, bytes(&values[range]));
            }
            Round::Take(ranks) => {
                let range = range(shares(company, ranks.clone(), count));
                company.receive(ranks.start, bytes_mut(&mut values[range]));
                mine.end = ranks.end;
            }
            Round::Wait => {}
        }
    }
    broadcast(company, bytes_mut(values));
}

/// The sum over all leaves of the tree: every process brings the whole parts of its share of them.
pub fn sum<T: Real>(company: &dyn Company, leaves: usize, mut own: Grown<T>, out: &mut [T]) {
    for round in rounds(company) {
        match round {
            Round::Give(to) => {
                for (_, values) in own.parts() {
                    company.send(to, bytes(values));
                }
            }
            Round::Take(ranks) => {
                let from = ranks.start;
                for part in Part::of(shares(company, ranks, leaves)) {
                    let mut values = vec![T::ZERO; out.len()];
                    company.receive(from, bytes_mut(&mut values));
                    own.push(part, values);
                }
            }
            Round::Wait => {}
        }
    }
    if company.rank() == 0 {
        own.sum(out);
    }
    broadcast(company, bytes_mut(out));
}

fn bytes<T: Real>(values: &[T]) -> &[u8] {
    // SAFETY: f32 and f64, the only `Real`, have no padding, and every byte of them may be read.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_mut<T: Real>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and every pattern of bits is a number.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};

    /// Threads of one process that know each other by channels alone.
    pub struct Threads {
        rank: usize,
        to: Vec<Mutex<Sender<Vec<u8>>>>,
        from: Vec<Mutex<Receiver<Vec<u8>>>>,
    }

    impl Company for Threads {
        fn rank(&self) -> usize {
            self.rank
        }
        fn size(&self) -> usize {
            self.to.len()
        }
        fn send(&self, to: usize, bytes: &[u8]) {
            self.to[to].lock().unwrap().send(bytes.to_vec()).unwrap();
        }
        fn receive(&self, from: usize, bytes: &mut [u8]) {
            let found = self.from[from].lock().unwrap().recv().unwrap();
            bytes.copy_from_slice(&found);
        }
    }

    /// What each of `size` processes makes of it.
    pub fn together<X: Send + 'static>(
        size: usize,
        work: impl Fn(Arc<dyn Company>) -> X + Send + Sync + 'static,
    ) -> Vec<X> {
        let mut ends: Vec<Vec<Option<(Sender<_>, Receiver<_>)>>> = (0..size)
            .map(|_| (0..size).map(|_| Some(channel())).collect())
            .collect();
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for _ in 0..size {
            to.push(Vec::new());
            from.push(Vec::new());
        }
        for a in 0..size {
            for b in 0..size {
                let (sender, receiver) = ends[a][b].take().unwrap();
                to[a].push(Mutex::new(sender));
                from[b].push(Mutex::new(receiver));
            }
        }
        let work = Arc::new(work);
        let threads: Vec<_> = to
            .into_iter()
            .zip(from)
            .enumerate()
            .map(|(rank, (to, from))| {
                let work = work.clone();
                std::thread::spawn(move || work(Arc::new(Threads { rank, to, from })))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    }

    #[test]
    fn all_get_what_each_has() {
        for size in 1..=6 {
            for count in [1, 2, 5, 13] {
                let found = together(size, move |company| {
                    let starts = |piece: usize| 3 * piece;
                    let mut values = vec![-1.0f64; 3 * count];
                    let own = share(&*company, count);
                    let first = starts(own.start);
                    for (k, value) in values[first..starts(own.end)].iter_mut().enumerate() {
                        *value = (first + k) as f64;
                    }
                    gather(&*company, count, &starts, &mut values);
                    assert!(agree(&*company, company.rank() == 0));
                    assert!(!agree(&*company, company.rank() > 0));
                    values
                });
                let expected: Vec<f64> = (0..3 * count).map(|k| k as f64).collect();
                assert!(
                    found.iter().all(|values| *values == expected),
                    "{size} {count}"
                );
            }
        }
    }

    #[test]
    fn sums_are_those_of_one_process() {
        let leaf = |k: usize| -> Vec<f32> { (0..7).map(|i| ((k * 7 + i) as f32).sin()).collect() };
        for leaves in [1, 3, 8, 13] {
            let read = move |first: usize| {
                move |k: usize, at: usize, out: &mut [f32]| {
                    out.copy_from_slice(&leaf(first + k)[at..][..out.len()]);
                }
            };
            let mut alone = vec![0.0f32; 7];
            super::super::tree::add_up(leaves, &mut alone, &read(0));
            for size in 1..=5 {
                let found = together(size, move |company| {
                    let mut own = Grown::new();
                    for part in Part::of(share(&*company, leaves)) {
                        let mut values = vec![0.0; 7];
                        let range = part.leaves();
                        super::super::tree::add_up(range.len(), &mut values, &read(range.start));
                        own.push(part, values);
                    }
                    let mut out = vec![0.0; 7];
                    sum(&*company, leaves, own, &mut out);
                    out
                });
                assert!(
                    found.iter().all(|values| *values == alone),
                    "{leaves} {size}"
                );
            }
        }
    }
}
