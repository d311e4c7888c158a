//! No wells where no rows are: a pair closer than in all samples is nowhere [`DIP`] lower than at its shortest, with as much more of its steepest function as that takes.

use super::functions::Functions;
use super::samples::Samples;
use super::sums::Sums;
use super::terms::OF_PAIR;
use crate::system::matrix::add;

/// How much lower a pair's energy may be at distances shorter than those of the samples, in kT.
const DIP: f64 = 1.0;
/// Places between nothing and the shortest distance at which this is seen to, and rounds of doing so before the rest of the numbers stay as they are.
const PLACES: usize = 64;
const ROUNDS: usize = 8;

/// The shortest distance of the pairs of a class.
pub(super) struct Closest {
    /// First function of the class.
    pub(super) first: usize,
    /// Its square, in units of that of the mean bond.
    pub(super) square: f64,
}

impl Closest {
    /// Of all classes of pairs in some samples.
    pub(super) fn of(functions: &Functions<'_>, samples: &Samples) -> Vec<Closest> {
        let mut found: Vec<Closest> = Vec::new();
        let pairs = functions
            .terms
            .soft
            .iter()
            .filter(|term| term.of.len() == 2);
        for pair in pairs {
            let first = functions.soft[pair.class as usize];
            let ends = [0, 1].map(|end: usize| pair.of[end] as usize * samples.space);
            let rows = samples.rows.chunks_exact(samples.columns);
            let squares = rows.map(|row| {
                let gap = |axis: usize| row[ends[0] + axis] - row[ends[1] + axis];
                (0..samples.space)
                    .map(|axis| gap(axis).powi(2))
                    .sum::<f64>()
            });
            let square = squares.fold(f64::INFINITY, f64::min) / functions.length.powi(2);
            match found.iter_mut().find(|known| known.first == first) {
                Some(known) => known.square = known.square.min(square),
                None => found.push(Closest { first, square }),
            }
        }
        found
    }

    /// How much more of the steepest function keeps a pair with these numbers from wells; 0 if there are none.
    pub(super) fn lacks(&self, c: &[f64]) -> f64 {
        const LAST: usize = OF_PAIR.len() - 1;
        let function = |k: usize, square: f64| {
            let (power, factor) = OF_PAIR[k];
            factor * (1.0 + square).powf(power)
        };
        let energy = |square: f64| -> f64 {
            let values = (0..OF_PAIR.len()).map(|k| c[self.first + k] * function(k, square));
            values.sum()
        };
        let most = (0..PLACES).map(|place| {
            let square = self.square * (place as f64 / PLACES as f64).powi(2);
            let well = energy(self.square) - DIP - energy(square);
            well / (function(LAST, square) - function(LAST, self.square))
        });
        most.fold(0.0, f64::max)
    }
}

/// The numbers of all functions, where a pair that would have a well at distances that no sample has gets what it lacks and the others are fitted beside it.
pub(super) fn without_wells(
    sums: &Sums,
    side: &[f64],
    ridge: f64,
    shortest: &[Closest],
) -> Vec<f64> {
    let size = sums.size;
    let mut given = vec![None; size];
    let mut round = 0;
    loop {
        let used: Vec<usize> = (0..size).filter(|k| given[*k].is_none()).collect();
        let known: Vec<f64> = given.iter().map(|c| c.unwrap_or(0.0)).collect();
        let taken = sums.times(&known);
        let left: Vec<f64> = side.iter().zip(&taken).map(|(s, t)| s - t).collect();
        let mut c = sums.solve(&used, &left, ridge);
        add(1.0, &known, &mut c);
        round += 1;
        let mut whole = true;
        for pair in shortest {
            let lacks = pair.lacks(&c);
            if lacks > 0.0 {
                let steepest = pair.first + OF_PAIR.len() - 1;
                c[steepest] += lacks;
                given[steepest] = Some(c[steepest]);
                whole = false;
            }
        }
        if whole || round == ROUNDS {
            return c;
        }
    }
}
