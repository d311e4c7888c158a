//! How close an energy of states is to the exact one: divergences of levels, classification, and by enumeration everything else.

use super::energy::Energy;
use super::system::{ExactStates, Table};
use super::{Space, log_sum_exp};
use crate::metric::{Estimate, effective_sample_size};
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};
use serde::Serialize;

/// One level beside the exact one.
#[derive(Debug, Clone, Serialize)]
pub struct LevelFigures {
    /// Its time.
    pub time: f64,
    /// `KL(p_t || model)` in nats, by exact samples, as the model is normalised.
    pub divergence: Estimate,
    /// Effective share of the weights `model / p_t` on exact samples.
    pub ess: f64,
}

/// All figures of an evaluation.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// Levels, from the data on.
    pub levels: Vec<LevelFigures>,
    /// Loss of telling the level of a sample among all.
    pub classification: Estimate,
    /// The least there is.
    pub optimum: Estimate,
    /// Their difference, on the same samples.
    pub excess: Estimate,
    /// Log-likelihood of fresh noisy rows at the smallest time.
    pub likelihood: Estimate,
}

/// Noisy rows of a system at a time.
pub fn noisy_rows(
    exact: &ExactStates,
    time: f64,
    count: usize,
    (seed, step): (u64, u64),
) -> Vec<u8> {
    let Space { sites, states } = exact.target.space();
    let keep = exact.process.keep(time);
    let mut rows = vec![0; count * sites];
    for (k, row) in rows.chunks_exact_mut(sites).enumerate() {
        let mut stream = Stream::new(seed, Purpose::Evaluate, step, k as u64);
        exact.target.sample(&mut stream, row);
        row.iter_mut()
            .for_each(|s| *s = exact.process.draw(states, keep, *s, &mut stream));
    }
    rows
}

/// Judges a model at these times, which are also the classes. `samples` rows at each, of which `classified` are classified.
pub fn evaluate(
    energy: &dyn Energy,
    exact: &ExactStates,
    times: &[f64],
    (samples, classified): (usize, usize),
    seed: u64,
    done: &mut dyn FnMut(usize),
) -> Result<Evaluation> {
    let space = energy.space();
    if exact.target.space() != space || times.len() < 2 || samples < 2 {
        return Err(Error::Shape {
            what: "what to judge by".into(),
            found: format!(
                "{:?}, {} levels, {samples} samples",
                exact.target.space(),
                times.len()
            ),
            expected: format!("the model's {space:?}, at least two levels and two samples"),
        });
    }
    let (mut levels, mut own, mut least) = (Vec::new(), Vec::new(), Vec::new());
    let mut likelihood = Vec::new();
    for (i, &time) in times.iter().enumerate() {
        let rows = noisy_rows(exact, time, samples, (seed, i as u64));
        let (mut model, mut truth) = (vec![0.0; samples], vec![0.0; samples]);
        energy.log_density(time, &rows, &mut model);
        exact.log_density(time, &rows, &mut truth);
        let differences: Vec<f64> = truth.iter().zip(&model).map(|(p, q)| p - q).collect();
        let weights: Vec<f64> = differences.iter().map(|d| -d).collect();
        if i == 0 {
            likelihood = model;
        }
        levels.push(LevelFigures {
            time,
            divergence: Estimate::of(&differences),
            ess: effective_sample_size(&weights),
        });
        let some = &rows[..classified.min(samples) * space.sites];
        let count = some.len() / space.sites;
        let mut grid = vec![0.0; count * times.len()];
        for (energy, losses) in [(energy, &mut own), (exact as &dyn Energy, &mut least)] {
            energy.log_density_grid(times, some, &mut grid);
            let loss = |row: &[f64]| log_sum_exp(row.iter().copied()) - row[i];
            losses.extend(grid.chunks_exact(times.len()).map(loss));
        }
        done(i + 1);
    }
    let excess: Vec<f64> = own
        .iter()
        .zip(&least)
        .map(|(own, least)| own - least)
        .collect();
    Ok(Evaluation {
        levels,
        classification: Estimate::of(&own),
        optimum: Estimate::of(&least),
        excess: Estimate::of(&excess),
        likelihood: Estimate::of(&likelihood),
    })
}

/// What enumeration tells of a model at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Enumerated {
    /// `log sum_y exp(-U + F)`: zero for a density.
    pub log_total: f64,
    /// `KL(p || model)` with the model as it is normalised.
    pub divergence: f64,
    /// The same with the model divided by its sum.
    pub normalised_divergence: f64,
}

/// Log-probabilities of all rows of a space without masks, if they are at most 2^20.
pub fn all_log_densities(energy: &dyn Energy, time: f64) -> Option<Vec<f64>> {
    let space = energy.space();
    let count = space.count(1 << 20)?;
    let mut out = vec![0.0; count];
    let block = 1 << 14;
    let mut rows = vec![0; block.min(count) * space.sites];
    for (k, out) in out.chunks_mut(block).enumerate() {
        for (i, row) in rows
            .chunks_exact_mut(space.sites)
            .take(out.len())
            .enumerate()
        {
            space.row_of(k * block + i, row);
        }
        energy.log_density(time, &rows[..out.len() * space.sites], out);
    }
    Some(out)
}

/// Compares all log-densities with the probabilities of all rows.
pub fn enumerated(log_densities: &[f64], probabilities: &[f64]) -> Enumerated {
    let log_total = log_sum_exp(log_densities.iter().copied());
    let pairs = probabilities.iter().zip(log_densities);
    let terms = pairs
        .filter(|(p, _)| **p > 0.0)
        .map(|(p, q)| p * (p.ln() - q));
    let divergence: f64 = terms.sum();
    Enumerated {
        log_total,
        divergence,
        normalised_divergence: divergence + log_total,
    }
}

/// The share of a region among all rows under log-densities of all of them.
pub fn share(space: Space, log_densities: &[f64], inside: impl Fn(&[u8]) -> bool) -> f64 {
    let total = log_sum_exp(log_densities.iter().copied());
    let mut row = vec![0; space.sites];
    let mut sum = 0.0;
    for (number, log_density) in log_densities.iter().enumerate() {
        space.row_of(number, &mut row);
        if inside(&row) {
            sum += (log_density - total).exp();
        }
    }
    sum
}

/// Whether more spins are up than down; half of the rows in between count by their first spin.
pub fn is_up(row: &[u8]) -> bool {
    let up: usize = row.iter().map(|s| usize::from(*s)).sum();
    2 * up > row.len() || (2 * up == row.len() && row[0] == 1)
}

/// The exact probabilities of all rows at the time of `keep` left under uniform noise.
pub fn exact_table(table: &Table, keep: f64) -> Vec<f64> {
    table.blurred(keep)
}

/// Shifts F so that the last level adds up to one: by draws of the product it stands on, or by the row of masks, whose probability is
/// known.
pub fn normalise_last(energy: &dyn Energy, spec: &super::StatesSpec, seed: u64) -> f64 {
    let time = spec.grid.t_max();
    let sites = spec.space.sites;
    if spec.process.is_masked() {
        let masks = vec![spec.space.states as u8; sites];
        let mut log_p = [0.0];
        energy.log_density(time, &masks, &mut log_p);
        return sites as f64 * (1.0 - spec.process.keep(time)).ln() - log_p[0];
    }
    let draws = 1 << 14;
    let (laws, symbols) = (spec.log_laws(time), spec.symbols());
    let mut rows = vec![0; draws * sites];
    let mut log_base = vec![0.0; draws];
    for (k, (row, log_base)) in rows.chunks_exact_mut(sites).zip(&mut log_base).enumerate() {
        let mut stream = Stream::new(seed, Purpose::Normalise, 0, k as u64);
        for (symbol, law) in row.iter_mut().zip(laws.chunks_exact(symbols)) {
            let mut left = stream.uniform();
            let place = law.iter().position(|log_p| {
                left -= log_p.exp();
                left < 0.0
            });
            *symbol = place.unwrap_or(symbols - 1) as u8;
            *log_base += law[usize::from(*symbol)];
        }
    }
    let mut log_p = vec![0.0; draws];
    energy.log_density(time, &rows, &mut log_p);
    let ratios = log_p.iter().zip(&log_base).map(|(p, b)| p - b);
    (draws as f64).ln() - log_sum_exp(ratios)
}
