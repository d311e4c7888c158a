//! Do the probabilities of all rows add up to one?
//!
//! Where there are at most 2^18 rows they are added, at the smallest time and, under uniform noise, at three others; under masks the rows without one
//! have `alpha^d` together. Where there are more, annealing from noise gives the sum under uniform noise, with an error from independent runs. Under masks
//! rows are shown site by site, in an order drawn for each: the chance `q` of a row is known, and the mean of `p / q` is the sum.

use super::StatesSubject;
use crate::Result;
use crate::discrete::metric::all_log_densities;
use crate::discrete::sample::{Anneal, Kernel};
use crate::discrete::system::draw_from;
use crate::discrete::{Space, log_sum_exp};
use crate::metric::diagnose::{Check, Remedy, SIGNIFICANT, Verdict, check_finite, log_mean_exp};
use crate::metric::{Estimate, effective_sample_size};
use crate::rng::{Purpose, Stream};
use serde::{Deserialize, Serialize};

/// Most rows that are added.
const MOST_ROWS: usize = 1 << 18;
/// Levels besides the smallest time.
const OTHERS: usize = 3;
/// Runs of an annealing, and its levels.
const RUNS: usize = 4;
const LEVELS: usize = 64;

/// Rows with weights that stand for the density at the smallest time.
pub(super) struct Law {
    pub rows: Vec<u8>,
    pub weights: Vec<f64>,
    /// How many independent rows they are worth; infinite for all rows there are.
    pub worth: f64,
}

/// The sum at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSum {
    /// Its time.
    pub time: f64,
    /// Logarithm of the sum over what it should be: 0 for a density.
    pub log: Estimate,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sum {
    /// Rows that were added; absent where they were too many, and annealing was asked.
    pub rows: Option<usize>,
    /// Levels, the smallest time first.
    pub levels: Vec<LevelSum>,
}

impl Sum {
    /// Adds or anneals, with twice `particles` in each run.
    pub(super) fn of(
        subject: &StatesSubject<'_>,
        particles: usize,
        seed: u64,
    ) -> Result<(Self, Law)> {
        let space = subject.energy.space();
        match space.count(MOST_ROWS) {
            Some(count) => added(subject, count),
            None if subject.energy.process().is_masked() => shown(subject, particles, seed),
            None => annealed(subject, particles, seed),
        }
    }

    /// The logarithm of the sum at the smallest time, or 0 where it is not known to 5 %.
    pub(super) fn known(&self) -> f64 {
        let first = self.levels.first().map(|level| level.log);
        first.map_or(0.0, |log| if log.error < 0.05 { log.mean } else { 0.0 })
    }

    /// The level that is furthest off, by verdict first.
    fn worst(&self) -> Option<(LevelSum, Verdict)> {
        let levels = self.levels.iter().map(|level| (*level, judged(level.log)));
        levels.max_by(|a, b| {
            let off = |level: &LevelSum| level.log.mean.abs();
            a.1.cmp(&b.1).then(off(&a.0).total_cmp(&off(&b.0)))
        })
    }

    /// The verdict; `levelled` is how much F was moved when the training ended. Such levels add up to one, but that does not make energies right that called for
    /// another F than they had learned.
    pub(super) fn check(&self, remedy: &Remedy, levelled: Option<Estimate>) -> Check {
        let mut check = self.check_sums(remedy);
        let moved = levelled.map_or(0.0, |moved| moved.mean.abs());
        let verdict = match moved {
            moved if moved > 1.0 => Verdict::Fail,
            moved if moved > 0.25 => Verdict::Warn,
            _ => Verdict::Pass,
        };
        if verdict > check.verdict {
            check.verdict = verdict;
            check.finding +=
                &format!("; F had to be moved by {moved:.2} nats when the training ended");
            check.meaning = format!(
                "densities of neighbouring times do not fit together, which no F(t) can mend: {}.",
                remedy.levels()
            );
        }
        check
    }

    fn check_sums(&self, remedy: &Remedy) -> Check {
        let (worst, verdict) = self.worst().unwrap_or((
            LevelSum {
                time: 0.0,
                log: Estimate {
                    mean: f64::NAN,
                    error: f64::INFINITY,
                },
            },
            Verdict::Skipped,
        ));
        let text = |log: Estimate| {
            let sum = log.mean.exp();
            if log.error > 0.0 {
                format!("{sum:.4} ± {:.4}", sum * log.error)
            } else {
                format!("{sum:.4}")
            }
        };
        let first = self.levels.first().unwrap_or(&worst);
        let mut finding = match self.rows {
            Some(rows) => format!(
                "the probabilities of all {rows} rows at time {:.1e} add up to {}",
                first.time,
                text(first.log)
            ),
            None => format!(
                "by draws, the probabilities of all rows at time {:.1e} add up to {}",
                first.time,
                text(first.log)
            ),
        };
        if worst.time != first.time {
            finding += &format!(
                "; furthest off: {} at time {:.3}",
                text(worst.log),
                worst.time
            );
        }
        let unknown = worst.log.error >= 0.05;
        let meaning = match verdict {
            Verdict::Pass => "it is a density.".into(),
            Verdict::Warn if unknown => {
                "the sum is not known well: draws differ too much; anneal by hand with more particles and levels, or raise the number of points.".into()
            }
            Verdict::Fail => format!(
                "this is no density: log-probabilities are off by {:+.2} nats; {}.",
                worst.log.mean,
                remedy.levels()
            ),
            _ => format!(
                "log-probabilities are off by {:+.3} nats; {}.",
                worst.log.mean,
                remedy.levels()
            ),
        };
        Check {
            name: "normalisation".into(),
            verdict,
            finding,
            meaning,
            limits: "warn beyond 5 % at any level, fail beyond 10 %, if more than four standard errors; warn with an error above 5 %; warn where F was moved by 0.25 nats \
                     in the end, fail by 1 nat"
                .into(),
        }
    }
}

fn judged(log: Estimate) -> Verdict {
    let off = log.mean.exp_m1().abs();
    let certain = off > SIGNIFICANT * log.error * log.mean.exp();
    match () {
        () if !log.mean.is_finite() || (certain && off > 0.1) => Verdict::Fail,
        () if (certain && off > 0.05) || log.error >= 0.05 => Verdict::Warn,
        () => Verdict::Pass,
    }
}

fn added(subject: &StatesSubject<'_>, count: usize) -> Result<(Sum, Law)> {
    let (energy, grid) = (subject.energy, subject.grid);
    let (space, process) = (energy.space(), energy.process());
    let last = grid.levels() - 1;
    // Rows with masks are not added, and at larger times most rows have one.
    let others = if process.is_masked() { 0 } else { OTHERS };
    let mut places: Vec<usize> = (0..=others).map(|k| k * last / OTHERS).collect();
    places.dedup();
    let mut levels = Vec::new();
    let mut law = Law {
        rows: vec![0; count * space.sites],
        weights: Vec::new(),
        worth: f64::INFINITY,
    };
    for (number, row) in law.rows.chunks_exact_mut(space.sites).enumerate() {
        space.row_of(number, row);
    }
    for place in places {
        let time = grid.times()[place];
        let values = all_log_densities(energy, time).unwrap_or_default();
        check_finite("log-density", time, &values)?;
        let sum = log_sum_exp(values.iter().copied());
        let expected = if process.is_masked() {
            space.sites as f64 * process.keep(time).ln()
        } else {
            0.0
        };
        levels.push(LevelSum {
            time,
            log: Estimate {
                mean: sum - expected,
                error: 0.0,
            },
        });
        if place == 0 {
            law.weights = values.iter().map(|value| (value - sum).exp()).collect();
        }
    }
    let rows = Some(count);
    Ok((Sum { rows, levels }, law))
}

fn annealed(subject: &StatesSubject<'_>, particles: usize, seed: u64) -> Result<(Sum, Law)> {
    let levels = subject.grid.levels().min(LEVELS);
    let grid = subject.grid.with_levels(levels)?;
    let found = Anneal {
        energy: subject.energy,
        times: grid.times(),
        target: None,
        kernel: Kernel::Metropolis,
        sweeps: 1,
        resample_below: 0.5,
        particles: 2 * particles,
        runs: RUNS,
        seed,
    }
    .run(&mut |_| ())?;
    let sum = Sum {
        rows: None,
        levels: vec![LevelSum {
            time: grid.t_min(),
            log: Estimate {
                mean: found.log_z.value,
                error: found.log_z.error.unwrap_or(f64::INFINITY),
            },
        }],
    };
    let law = Law {
        worth: found.ess * found.weights.len() as f64,
        rows: found.rows,
        weights: found.weights,
    };
    Ok((sum, law))
}

/// Rows out of masks, site by site, each from its law given what is shown, with weights `p / q`.
fn shown(subject: &StatesSubject<'_>, particles: usize, seed: u64) -> Result<(Sum, Law)> {
    let (energy, grid) = (subject.energy, subject.grid);
    let (Space { sites, states }, process) = (energy.space(), energy.process());
    let count = 2 * RUNS * particles;
    let mut orders: Vec<usize> = (0..count).flat_map(|_| 0..sites).collect();
    let mut streams: Vec<Stream> = (0..count)
        .map(|k| Stream::new(seed, Purpose::Jump, 1, k as u64))
        .collect();
    for (order, stream) in orders.chunks_exact_mut(sites).zip(&mut streams) {
        for i in (1..sites).rev() {
            order.swap(i, stream.below(i as u64 + 1) as usize);
        }
    }
    let mut rows = vec![states as u8; count * sites];
    let mut log_q = vec![0.0; count];
    let mut asked = vec![0; count * states * sites];
    let (mut energies, mut weights) = (vec![0.0; count * states], vec![0.0; states]);
    for done in 0..sites {
        // The level at which so many sites are shown; the law of a true model is the same at all of them.
        let keep = (done as f64 + 0.5) / sites as f64;
        let time = process.generator().schedule().time_of(keep);
        let time = time.clamp(grid.t_min(), grid.t_max());
        for (k, row) in asked.chunks_exact_mut(sites).enumerate() {
            let particle = k / states;
            row.copy_from_slice(&rows[particle * sites..][..sites]);
            row[orders[particle * sites + done]] = (k % states) as u8;
        }
        energy.energy(time, &asked, &mut energies);
        check_finite("energy", time, &energies)?;
        for (k, energies) in energies.chunks_exact(states).enumerate() {
            let least = energies.iter().copied().fold(f64::INFINITY, f64::min);
            for (weight, energy) in weights.iter_mut().zip(energies) {
                *weight = (least - energy).exp();
            }
            let total: f64 = weights.iter().sum();
            let drawn = draw_from(&weights, total, &mut streams[k]);
            log_q[k] += (weights[drawn] / total).ln();
            rows[k * sites + orders[k * sites + done]] = drawn as u8;
        }
    }
    let time = grid.t_min();
    let mut log_weights = vec![0.0; count];
    energy.log_density(time, &rows, &mut log_weights);
    check_finite("log-density", time, &log_weights)?;
    for (weight, log_q) in log_weights.iter_mut().zip(&log_q) {
        *weight -= log_q;
    }
    let found = log_mean_exp(&log_weights);
    let log = Estimate {
        mean: found.mean - sites as f64 * process.keep(time).ln(),
        error: found.error,
    };
    let total = log_sum_exp(log_weights.iter().copied());
    let law = Law {
        worth: effective_sample_size(&log_weights) * count as f64,
        weights: log_weights.iter().map(|w| (w - total).exp()).collect(),
        rows,
    };
    let levels = vec![LevelSum { time, log }];
    Ok((Sum { rows: None, levels }, law))
}
