//! Tests of states against enumeration: processes and systems, losses and their gradients, samplers.

mod by_hand;
mod losses;
mod samplers;
mod systems;
mod training;

use super::process::{Masked, Schedule, Uniform};
use super::system::{ExactStates, ProductMixture, Table, Target};
use super::{Energy, Process, Space};
use crate::rng::{Purpose, Stream};
use std::sync::Arc;

/// Both kinds of noise, both schedules.
fn processes() -> Vec<Process> {
    let geometric = Schedule::Geometric {
        least: 0.02,
        most: 6.0,
    };
    vec![
        Process::Uniform(Uniform::default()),
        Process::Masked(Masked::default()),
        Process::Uniform(Uniform {
            schedule: geometric,
        }),
        Process::Masked(Masked {
            schedule: geometric,
        }),
    ]
}

/// A lopsided mixture on three sites of three states.
fn mixture() -> ProductMixture {
    let space = Space {
        sites: 3,
        states: 3,
    };
    ProductMixture::random(space, 3, 5).unwrap()
}

/// All rows of noisy symbols.
fn noisy_rows(space: Space, process: &Process) -> Vec<u8> {
    let all = Space {
        states: process.symbols(space.states),
        ..space
    };
    let count = all.count(1 << 16).unwrap();
    let mut rows = vec![0; count * space.sites];
    for (number, row) in rows.chunks_exact_mut(space.sites).enumerate() {
        all.row_of(number, row);
    }
    rows
}

/// Probabilities of all rows of data.
fn data_law(target: &dyn Target) -> (Vec<Vec<u8>>, Vec<f64>) {
    let space = target.space();
    let uniform = Process::default();
    let rows: Vec<Vec<u8>> = noisy_rows(space, &uniform)
        .chunks_exact(space.sites)
        .map(<[u8]>::to_vec)
        .collect();
    let law = rows.iter().map(|row| {
        let mut log_p = [0.0];
        target.log_marginals(&uniform, 1.0, row, &mut log_p);
        log_p[0].exp()
    });
    let law = law.collect();
    (rows, law)
}

/// `p(y | x)` of whole rows.
fn chance(process: &Process, states: usize, keep: f64, x: &[u8], y: &[u8]) -> f64 {
    let sites = x.iter().zip(y);
    sites
        .map(|(x, y)| process.transition(states, keep, *x, *y))
        .product()
}
