//! Do data, density and generated rows agree on how often sites, pairs of sites and majorities show each state?
//!
//! The majority of a row is the state that most sites show, the smallest of equals. Its shares are the weights of phases (up and down of a magnet), which ratios of
//! neighbouring rows do not see. Each share is a difference from the data's, judged by its own error: four standard errors, and more for the best of many.

use super::sum::Law;
use super::{StatesSubject, symbols_of};
use crate::discrete::counts::Counter;
use crate::metric::Estimate;
use crate::metric::diagnose::{Check, Noised, Remedy, SIGNIFICANT, Verdict};
use serde::{Deserialize, Serialize};

/// Where the density or the generated rows differ most from the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// What is looked at, in words.
    pub what: String,
    /// Its share among the data.
    pub data: f64,
    /// The share elsewhere minus that, with its error.
    pub off: Estimate,
    /// How many shares of this kind were looked at.
    pub of: usize,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Shares of symbols, `sites x symbols`, among noisy data, under the density, and among generated rows.
    pub sites: [Option<Vec<f64>>; 3],
    /// Shares of majorities, likewise.
    pub majorities: [Option<Vec<f64>>; 3],
    /// Symbols of a site.
    pub symbols: usize,
    /// Of sites, pairs and majorities the share that the density gets most wrong; empty where annealing gave too few rows.
    pub density: Vec<Share>,
    /// The same for generated rows.
    pub generated: Vec<Share>,
}

/// Shares, and how many independent rows they come from.
struct Counted {
    parts: [Vec<f64>; 3],
    worth: f64,
}

/// Of each kind the share that is furthest off, in errors.
fn differences(counter: &Counter, data: &Counted, other: &Counted) -> Vec<Share> {
    let of = |kind: usize| -> Option<Share> {
        let both = data.parts[kind].iter().zip(&other.parts[kind]);
        let off = both.map(|(p, q)| {
            // By the mean of both, kept from zero: where neither has seen a thing there is no difference.
            let middle = 0.5 * (p + q);
            let spread = middle * (1.0 - middle);
            let error = (spread / data.worth + spread / other.worth).max(0.0).sqrt();
            let mean = q - p;
            Estimate {
                mean,
                error: error.max(0.5 / data.worth),
            }
        });
        let (place, off) = off.enumerate().max_by(|a, b| {
            let z = |off: &Estimate| off.mean.abs() / off.error;
            z(&a.1).total_cmp(&z(&b.1))
        })?;
        Some(Share {
            what: counter.name(kind, place),
            data: data.parts[kind][place],
            off,
            of: data.parts[kind].len(),
        })
    };
    (0..3).filter_map(of).collect()
}

impl Shares {
    pub(super) fn of(subject: &StatesSubject<'_>, law: &Law, count: usize, seed: u64) -> Self {
        let (sites, symbols) = (subject.energy.space().sites, subject.symbols());
        let counter = Counter::new(sites, symbols);
        let counted = |rows: &[u8], weights: Option<&[f64]>, worth: f64| Counted {
            parts: counter.shares(rows, weights),
            worth,
        };
        let rows = subject.rows.len().min(count.max(20));
        let noisy = Noised::new(subject.rows, subject, seed).points(subject.grid.t_min(), rows);
        let worth = (rows as f64).min(subject.worth());
        let data = counted(&symbols_of(&noisy), None, worth);
        // Fewer rows than that say nothing about shares.
        let density =
            (law.worth >= 50.0).then(|| counted(&law.rows, Some(&law.weights), law.worth));
        let generated = subject.generated.map(|rows| {
            let worth = (rows.len() / sites) as f64;
            counted(rows, None, worth)
        });
        let off = |other: &Option<Counted>| match other {
            Some(other) => differences(&counter, &data, other),
            None => Vec::new(),
        };
        let (by_density, by_generated) = (off(&density), off(&generated));
        let all = [Some(data), density, generated];
        let part = |kind: usize| {
            let of = |counted: &Option<Counted>| counted.as_ref().map(|c| c.parts[kind].clone());
            [of(&all[0]), of(&all[1]), of(&all[2])]
        };
        Self {
            sites: part(0),
            majorities: part(2),
            symbols,
            density: by_density,
            generated: by_generated,
        }
    }

    /// The verdict.
    pub(super) fn check(&self, remedy: &Remedy) -> Check {
        let name = "shares of states".to_string();
        let limits = "warn where a share is off by 0.02, fail by 0.1, if more than chance: four standard errors, and more where many shares are looked at".into();
        let both = [
            ("the density", &self.density),
            ("generated rows", &self.generated),
        ];
        let all = || {
            both.iter()
                .flat_map(|(who, shares)| shares.iter().map(move |s| (*who, s)))
        };
        let Some((who, worst)) = all().max_by(|a, b| {
            let key = |share: &Share| (judged(share), share.off.mean.abs());
            let (a, b) = (key(a.1), key(b.1));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        }) else {
            return Check {
                name,
                verdict: Verdict::Skipped,
                finding: "there are no rows of the model to count".into(),
                meaning: "nothing to compare.".into(),
                limits,
            };
        };
        let verdict = judged(worst);
        let mut finding = format!(
            "largest difference from the data: {} in {:.1} % of the data and {:.1} ± {:.1} % by {who}",
            worst.what,
            100.0 * worst.data,
            100.0 * (worst.data + worst.off.mean),
            100.0 * worst.off.error
        );
        if self.density.is_empty() {
            finding += "; annealing gave too few rows to count under the density";
        }
        let [_, density, generated] = &self.majorities;
        let weights = |shares: &Option<Vec<f64>>| {
            let shares = shares.as_ref()?;
            let (place, share) = shares
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))?;
            Some(format!("{:.1} % show mostly {place}", 100.0 * share))
        };
        if let Some(text) = weights(density).or_else(|| weights(generated)) {
            finding += &format!("; of the model's rows {text}");
        }
        Check {
            name,
            verdict,
            finding,
            meaning: match verdict {
                Verdict::Pass => {
                    "sites, pairs and majorities of the model are those of the data.".into()
                }
                Verdict::Warn => format!(
                    "the model gives some states too much or too little weight: {}.",
                    remedy.levels()
                ),
                _ => format!("weights of states mean nothing yet: {}.", remedy.levels()),
            },
            limits,
        }
    }
}

fn judged(share: &Share) -> Verdict {
    let size = share.off.mean.abs();
    // Four errors for one share; the best of n by chance is further off by about sqrt(2 ln n).
    let chance = (SIGNIFICANT.powi(2) + 2.0 * (share.of as f64).ln()).sqrt();
    let certain = size > chance * share.off.error;
    match size {
        size if certain && size > 0.1 => Verdict::Fail,
        size if certain && size > 0.02 => Verdict::Warn,
        _ => Verdict::Pass,
    }
}
