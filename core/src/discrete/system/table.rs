//! A distribution by enumeration: every probability of a space of at most 2^20 rows. Uniform noise is a fast transform, masks are sums.

use super::{Target, walsh};
use crate::discrete::{Process, Space, log_sum_exp};
use crate::rng::Stream;
use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Most rows of a table.
pub const MOST_ROWS: usize = 1 << 20;
/// Noised tables that are kept.
const KEPT: usize = 8;

/// Something whose probabilities are known up to a factor.
pub trait LogWeights {
    /// Name.
    fn name(&self) -> &'static str;
    /// Sites and states.
    fn space(&self) -> Space;
    /// Logarithm of the weight of a row.
    fn log_weight(&self, row: &[u8]) -> f64;
}

/// See the module's text.
pub struct Table {
    name: &'static str,
    space: Space,
    log_partition: f64,
    probabilities: Vec<f64>,
    cumulative: Vec<f64>,
    /// Walsh-Hadamard transform, where sites have two states.
    spectrum: Option<Vec<f64>>,
    /// Tables at other noise, the latest last.
    noised: Mutex<Vec<(f64, Arc<Vec<f64>>)>>,
}

impl Table {
    /// The table of a system.
    pub fn of(system: &dyn LogWeights) -> Result<Table> {
        let space = system.space();
        space.validate()?;
        let Some(count) = space.count(MOST_ROWS) else {
            return Err(Error::Value {
                name: "rows of an enumerated system",
                found: format!("{}^{}", space.states, space.sites),
                expected: format!("at most {MOST_ROWS}; take fewer sites"),
            });
        };
        let mut row = vec![0; space.sites];
        let weights: Vec<f64> = (0..count)
            .map(|number| {
                space.row_of(number, &mut row);
                system.log_weight(&row)
            })
            .collect();
        let log_partition = log_sum_exp(weights.iter().copied());
        let probabilities: Vec<f64> = weights.iter().map(|w| (w - log_partition).exp()).collect();
        let mut table = Table::new(system.name(), space, probabilities)?;
        table.log_partition = log_partition;
        Ok(table)
    }

    /// The table of these probabilities, which add up to one.
    pub fn new(name: &'static str, space: Space, probabilities: Vec<f64>) -> Result<Table> {
        space.validate()?;
        let sum: f64 = probabilities.iter().sum();
        let fits = space.count(MOST_ROWS) == Some(probabilities.len())
            && probabilities.iter().all(|p| *p >= 0.0)
            && (sum - 1.0).abs() < 1e-9;
        if !fits {
            return Err(Error::Shape {
                what: "the table of probabilities".into(),
                found: format!("{} numbers with sum {sum}", probabilities.len()),
                expected: format!("{}^{} that add up to 1", space.states, space.sites),
            });
        }
        let mut total = 0.0;
        let add = |p: &f64| {
            total += p;
            total
        };
        let cumulative = probabilities.iter().map(add).collect();
        let spectrum = (space.states == 2).then(|| {
            let mut spectrum = probabilities.clone();
            walsh::transform(&mut spectrum);
            spectrum
        });
        Ok(Table {
            name,
            space,
            log_partition: 0.0,
            probabilities,
            cumulative,
            spectrum,
            noised: Mutex::new(Vec::new()),
        })
    }

    /// Probabilities of all rows, in order of their numbers.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// `log Z` of the weights that it was made of.
    pub fn log_partition(&self) -> f64 {
        self.log_partition
    }

    /// `p_t` of all rows under uniform noise with `keep` left.
    pub fn blurred(&self, keep: f64) -> Vec<f64> {
        match &self.spectrum {
            Some(spectrum) => walsh::blurred(spectrum, keep),
            None => blur_sites(self.space, &self.probabilities, keep),
        }
    }

    fn noised(&self, keep: f64) -> Arc<Vec<f64>> {
        let mut kept = self.noised.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, table)) = kept.iter().find(|(known, _)| *known == keep) {
            return table.clone();
        }
        let table = Arc::new(self.blurred(keep));
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((keep, table.clone()));
        table
    }

    /// The sum of all rows that agree with `row` where it shows something.
    fn agreeing(&self, row: &[u8]) -> f64 {
        let states = self.space.states;
        let mut places = vec![1; row.len()];
        for i in 1..row.len() {
            places[i] = places[i - 1] * states;
        }
        let shown = |(symbol, place): (&u8, &usize)| {
            (usize::from(*symbol) < states).then_some(usize::from(*symbol) * place)
        };
        let base: usize = row.iter().zip(&places).filter_map(shown).sum();
        let hidden: Vec<usize> = (0..row.len())
            .filter(|&i| usize::from(row[i]) >= states)
            .map(|i| places[i])
            .collect();
        let (mut digits, mut number, mut sum) = (vec![0; hidden.len()], base, 0.0);
        loop {
            sum += self.probabilities[number];
            let mut k = 0;
            loop {
                if k == hidden.len() {
                    return sum;
                }
                digits[k] += 1;
                number += hidden[k];
                if digits[k] < states {
                    break;
                }
                number -= hidden[k] * states;
                digits[k] = 0;
                k += 1;
            }
        }
    }
}

/// Uniform noise, one site after the other: `p <- alpha p + (1 - alpha) mean over the site`.
pub fn blur_sites(space: Space, probabilities: &[f64], keep: f64) -> Vec<f64> {
    let (mut values, k) = (probabilities.to_vec(), space.states);
    let mut place = 1;
    for _ in 0..space.sites {
        for block in values.chunks_exact_mut(place * k) {
            for i in 0..place {
                let sum: f64 = (0..k).map(|s| block[i + s * place]).sum();
                let rest = (1.0 - keep) * sum / k as f64;
                for s in 0..k {
                    block[i + s * place] = keep * block[i + s * place] + rest;
                }
            }
        }
        place *= k;
    }
    values
}

impl Target for Table {
    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> Space {
        self.space
    }

    fn sample(&self, stream: &mut Stream, row: &mut [u8]) {
        let last = self.cumulative.last().copied().unwrap_or(1.0);
        let u = stream.uniform() * last;
        let number = self.cumulative.partition_point(|c| *c < u);
        self.space
            .row_of(number.min(self.cumulative.len() - 1), row);
    }

    fn log_marginals(&self, process: &Process, keep: f64, rows: &[u8], out: &mut [f64]) {
        let rows = rows.chunks_exact(self.space.sites);
        if process.is_masked() {
            for (row, out) in rows.zip(out) {
                let masks = row
                    .iter()
                    .filter(|s| usize::from(**s) == self.space.states)
                    .count();
                let shown = row.len() - masks;
                *out = self.agreeing(row).ln()
                    + shown as f64 * keep.ln()
                    + times_log(masks, 1.0 - keep);
            }
        } else {
            let table = self.noised(keep);
            for (row, out) in rows.zip(out) {
                *out = table[self.space.number_of(row)].ln();
            }
        }
    }
}

/// `n log x`, zero for no factors.
pub(super) fn times_log(n: usize, x: f64) -> f64 {
    if n == 0 { 0.0 } else { n as f64 * x.ln() }
}
