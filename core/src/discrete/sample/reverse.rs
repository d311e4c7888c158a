//! The chain in reverse, with rates `Q_t(y', y) p_t(y') / p_t(y)` from y to y'.
//!
//! | method | what it does | error |
//! | --- | --- | --- |
//! | `jumps` | single jumps at their own times, by thinning: a conditional ratio is never above `1 + K alpha / (1 - alpha)`, and so no true one is | none but the model's |
//! | `tau-leaping` | all sites at once, with rates held over a step | first order in the step |
//! | `ancestral` | masked sites shown with their exact chance over a step, values drawn apart | first order in the step |

use crate::discrete::energy::Energy;
use crate::discrete::system::draw_from;
use crate::discrete::{Process, Space};
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// How the chain is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One jump at a time, exactly.
    Jumps,
    /// All sites at once over each step.
    TauLeaping,
    /// Masks that fall over each step.
    Ancestral,
}

impl Method {
    /// Names and methods.
    pub const ALL: [(&'static str, Method); 3] = [
        ("jumps", Method::Jumps),
        ("tau-leaping", Method::TauLeaping),
        ("ancestral", Method::Ancestral),
    ];

    /// The method of this name.
    pub fn by_name(name: &str) -> Result<Method> {
        let known = Method::ALL.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, method)| *method)
            .ok_or_else(|| Error::Value {
                name: "method",
                found: format!("{name:?}"),
                expected: format!(
                    "one of {} for states",
                    Method::ALL.map(|(name, _)| name).join(", ")
                ),
            })
    }
}

/// New rows from noise.
pub struct Reversal<'a> {
    /// The density at every level.
    pub energy: &'a dyn Energy,
    /// How.
    pub method: Method,
    /// Increasing times, from the data's end to the noise; `jumps` looks at the first and last alone.
    pub times: &'a [f64],
    /// Seed.
    pub seed: u64,
}

/// Ratios above the bound of a true one, out of how many that were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clipped {
    /// Above it.
    pub above: u64,
    /// In all.
    pub of: u64,
}

impl Reversal<'_> {
    /// Rows of the particles of these numbers; a row depends on its number and the seed alone. `done` hears of progress in particles
    /// (`jumps`) or steps.
    pub fn run(
        &self,
        particles: std::ops::Range<usize>,
        done: &mut dyn FnMut(usize),
    ) -> Result<(Vec<u8>, Clipped)> {
        let (space, process) = (self.energy.space(), self.energy.process());
        if self.times.len() < 2 {
            return Err(Error::Value {
                name: "times of a reversal",
                found: self.times.len().to_string(),
                expected: "at least two".into(),
            });
        }
        if self.method == Method::Ancestral && !process.is_masked() {
            return Err(Error::Value {
                name: "method",
                found: "ancestral with uniform noise".into(),
                expected:
                    "jumps or tau-leaping: a site that was hit cannot be told from one that was not"
                        .into(),
            });
        }
        let mut streams: Vec<Stream> = particles
            .clone()
            .map(|particle| Stream::new(self.seed, Purpose::Jump, 0, particle as u64))
            .collect();
        let mut rows = vec![0; particles.len() * space.sites];
        for (row, stream) in rows.chunks_exact_mut(space.sites).zip(&mut streams) {
            process.draw_noise(space, stream, row);
        }
        let mut clipped = Clipped::default();
        if self.method == Method::Jumps {
            let (low, high) = (self.times[0], self.times[self.times.len() - 1]);
            for (k, (row, stream)) in rows
                .chunks_exact_mut(space.sites)
                .zip(&mut streams)
                .enumerate()
            {
                jumps(self.energy, low, high, row, stream, &mut clipped);
                done(k + 1);
            }
            return Ok((rows, clipped));
        }
        let symbols = process.symbols(space.states);
        let mut ratios = vec![0.0; rows.len() * symbols];
        for (k, pair) in self.times.windows(2).rev().enumerate() {
            let (to, now) = (pair[0], pair[1]);
            self.energy.log_ratios(now, &rows, &mut ratios);
            let each = rows
                .chunks_exact_mut(space.sites)
                .zip(ratios.chunks_exact(space.sites * symbols));
            for ((row, ratios), stream) in each.zip(&mut streams) {
                match self.method {
                    Method::Ancestral => {
                        ancestral_step(process, space, (now, to), ratios, row, stream)
                    }
                    _ => tau_leap_step(process, space, (now, to), ratios, row, stream),
                }
            }
            done(k + 1);
        }
        Ok((rows, clipped))
    }
}

/// The chances of a site's symbols after a leap from `now` back to `to`: the rates held, and never more than one in all. `ratios` are
/// the site's logarithms.
pub(crate) fn leap_law(
    process: &Process,
    states: usize,
    (now, to): (f64, f64),
    ratios: &[f64],
    symbol: u8,
    law: &mut [f64],
) {
    law.fill(0.0);
    // The total noise of the step in place of `beta (now - to)`: the same to first order, and finite where beta is not.
    let noise = (process.keep(to) / process.keep(now)).ln();
    let hit = process.generator().law(states, usize::from(symbol));
    let mut total = 0.0;
    for source in process.sources(states, symbol) {
        let rate = noise * hit * ratios[usize::from(source)].exp();
        law[usize::from(source)] = rate;
        total += rate;
    }
    // A leap is one jump at most, with the chance that a Poisson clock rings.
    let rings = -(-total).exp_m1();
    if total > 0.0 {
        law.iter_mut().for_each(|p| *p *= rings / total);
    }
    law[usize::from(symbol)] = 1.0 - rings;
}

/// All sites of a row leap at once.
pub fn tau_leap_step(
    process: &Process,
    space: Space,
    times: (f64, f64),
    ratios: &[f64],
    row: &mut [u8],
    stream: &mut Stream,
) {
    let symbols = process.symbols(space.states);
    let mut law = [0.0; 256];
    for (symbol, ratios) in row.iter_mut().zip(ratios.chunks_exact(symbols)) {
        leap_law(
            process,
            space.states,
            times,
            ratios,
            *symbol,
            &mut law[..symbols],
        );
        *symbol = draw_from(&law[..symbols], 1.0, stream) as u8;
    }
}

/// The chances of a masked site's symbols at `to`: shown with chance `(alpha_to - alpha_now) / (1 - alpha_now)`, each state by its ratio.
pub(crate) fn ancestral_law(
    process: &Process,
    states: usize,
    (now, to): (f64, f64),
    ratios: &[f64],
    law: &mut [f64],
) {
    let (keep, later) = (process.keep(now), process.keep(to));
    let shown = (later - keep) / (1.0 - keep);
    let most = ratios[..states]
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for (p, ratio) in law.iter_mut().zip(&ratios[..states]) {
        *p = (ratio - most).exp();
        total += *p;
    }
    law[..states].iter_mut().for_each(|p| *p *= shown / total);
    law[states] = 1.0 - shown;
}

/// Masks of a row fall, each by itself.
pub fn ancestral_step(
    process: &Process,
    space: Space,
    times: (f64, f64),
    ratios: &[f64],
    row: &mut [u8],
    stream: &mut Stream,
) {
    let (states, symbols) = (space.states, process.symbols(space.states));
    let mut law = [0.0; 256];
    for (symbol, ratios) in row.iter_mut().zip(ratios.chunks_exact(symbols)) {
        if usize::from(*symbol) == states {
            ancestral_law(process, states, times, ratios, &mut law[..symbols]);
            *symbol = draw_from(&law[..symbols], 1.0, stream) as u8;
        }
    }
}

/// Follows one row from time `high` down to `low`, jump by jump.
fn jumps(
    energy: &dyn Energy,
    low: f64,
    high: f64,
    row: &mut [u8],
    stream: &mut Stream,
    clipped: &mut Clipped,
) {
    if energy.process().is_masked() {
        shown_one_by_one(energy, low, high, row, stream);
    } else {
        thinned(energy, low, high, row, stream, clipped);
    }
}

/// Uniform noise: candidates `(site, symbol)` come at the rate of the bound, `beta / K (1 + K alpha / (1 - alpha))` each, and are taken
/// with the chance ratio / bound. The integral of the bound between two times is
/// `log(alpha_s / alpha_t) / K + log((1 - alpha_t) / (1 - alpha_s))`.
fn thinned(
    energy: &dyn Energy,
    low: f64,
    high: f64,
    row: &mut [u8],
    stream: &mut Stream,
    clipped: &mut Clipped,
) {
    let Space { sites, states } = energy.space();
    let process = energy.process();
    let (k, schedule) = (states as f64, process.generator().schedule());
    let candidates = (sites * (states - 1)) as f64;
    let hazard = |keep: f64| keep.ln() / k - (1.0 - keep).ln();
    let (mut keep, last) = (process.keep(high), process.keep(low));
    let mut both = vec![0; 2 * sites];
    let mut energies = [0.0; 2];
    loop {
        let goal = hazard(keep) - stream.uniform().ln() / candidates;
        if goal >= hazard(last) {
            return;
        }
        // The hazard grows with alpha: halving finds the place to the last bits.
        let (mut below, mut above) = (keep, last);
        for _ in 0..60 {
            let middle = 0.5 * (below + above);
            if hazard(middle) < goal {
                below = middle;
            } else {
                above = middle;
            }
        }
        keep = 0.5 * (below + above);
        let candidate = stream.below(candidates as u64) as usize;
        let (site, other) = (candidate / (states - 1), candidate % (states - 1));
        let symbol = other as u8 + u8::from(other >= usize::from(row[site]));
        both[..sites].copy_from_slice(row);
        both[sites..].copy_from_slice(row);
        both[sites + site] = symbol;
        energy.energy(schedule.time_of(keep), &both, &mut energies);
        let bound = 1.0 + k * keep / (1.0 - keep);
        let ratio = (energies[0] - energies[1]).exp();
        clipped.of += 1;
        clipped.above += u64::from(ratio > bound * (1.0 + 1e-9));
        if stream.uniform() * bound < ratio {
            row[site] = symbol;
        }
    }
}

/// Masks: each falls at a time of its own that no state changes, `alpha` uniform up to 1; the value comes from the ratios at that time.
fn shown_one_by_one(energy: &dyn Energy, low: f64, high: f64, row: &mut [u8], stream: &mut Stream) {
    let Space { states, .. } = energy.space();
    let process = energy.process();
    let (symbols, schedule) = (process.symbols(states), process.generator().schedule());
    let (mut keep, last) = (process.keep(high), process.keep(low));
    let mut ratios = vec![0.0; row.len() * symbols];
    loop {
        let hidden: Vec<usize> = (0..row.len())
            .filter(|&i| usize::from(row[i]) == states)
            .collect();
        if hidden.is_empty() {
            return;
        }
        // The chance that none of n has fallen until alpha is ((1 - alpha) / (1 - keep))^n.
        keep = 1.0 - (1.0 - keep) * stream.uniform().powf(1.0 / hidden.len() as f64);
        if keep >= last {
            return;
        }
        let site = hidden[stream.below(hidden.len() as u64) as usize];
        energy.log_ratios(schedule.time_of(keep), row, &mut ratios);
        let own = &ratios[site * symbols..][..states];
        let most = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = own.iter().map(|r| (r - most).exp()).collect();
        row[site] = draw_from(&weights, weights.iter().sum(), stream) as u8;
    }
}
