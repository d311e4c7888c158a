//! How likely are rows that were not trained on, beside independent sites and the likeliest tree of pairs?
//!
//! All are probabilities of rows noised to the smallest time, in nats per row. The rivals have seen the trained rows alone (or the other half of the rows, where
//! it is not known which were trained on), noised likewise. Differences are taken row by row. The model is divided by its sum where that is known: what is no
//! density could have any likelihood.

use super::sum::Sum;
use super::tree::{Tree, site_laws};
use super::{StatesSubject, symbols_of};
use crate::Result;
use crate::metric::Estimate;
use crate::metric::diagnose::{
    ByLevel, Check, Noised, Remedy, SIGNIFICANT, Table, Verdict, check_finite,
};
use serde::{Deserialize, Serialize};

pub use crate::metric::diagnose::Rival;

/// Rows that the rivals are fitted to.
const FITTED: usize = 20_000;
/// A rival that is better by so many standard errors is better.
const DOUBT: f64 = 3.0;

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// The smallest time.
    pub time: f64,
    /// Rows judged by, and rows that the rivals were fitted to.
    pub rows: [usize; 2],
    /// Mean log-probability by the model, divided by its sum.
    pub nats: Estimate,
    /// Logarithm of that sum; 0 where it is not known.
    pub log_sum: f64,
    /// By independent sites.
    pub sites: Rival,
    /// By the tree; absent where sites are too many.
    pub tree: Option<Rival>,
}

impl HeldOut {
    /// Looks at up to `count` rows.
    pub(super) fn of(
        subject: &StatesSubject<'_>,
        sum: &Sum,
        (count, seed): (usize, u64),
    ) -> Result<Self> {
        let (time, symbols) = (subject.grid.t_min(), subject.symbols());
        let sites = subject.energy.space().sites;
        let (fitted, other) = Table::split(subject.rows, subject.trained);
        let judged = other.as_ref().map_or(subject.rows, Table::data);
        let noised = Noised::new(judged, subject, seed);
        let rows = count.min(judged.len());
        let (points, of) = noised.points_and_rows(time, rows);
        let mut own = vec![0.0; rows];
        subject.log_density(time, &points, &mut own);
        check_finite("log-density", time, &own)?;
        let log_sum = sum.known();
        own.iter_mut().for_each(|value| *value -= log_sum);
        let fitted = fitted.data();
        let seen = Noised::of_set(1, fitted, subject, seed).points(time, fitted.len().min(FITTED));
        let (seen, asked) = (symbols_of(&seen), symbols_of(&points));
        let rival = |other: Vec<f64>| {
            let lead: Vec<f64> = own.iter().zip(&other).map(|(a, b)| a - b).collect();
            Rival {
                nats: noised.estimate(&other, &of),
                lead: noised.estimate(&lead, &of),
            }
        };
        let laws = site_laws(&seen, sites, symbols);
        let apart = |row: &[u8]| -> f64 {
            let each = row.iter().zip(laws.chunks_exact(symbols));
            each.map(|(s, law)| law[usize::from(*s)]).sum()
        };
        Ok(Self {
            time,
            rows: [rows, seen.len() / sites],
            nats: noised.estimate(&own, &of),
            log_sum,
            sites: rival(asked.chunks_exact(sites).map(apart).collect()),
            tree: Tree::fit(&seen, sites, symbols).map(|tree| rival(tree.log_density(&asked))),
        })
    }

    /// The rival with the better likelihood, and its name.
    fn best(&self) -> (&'static str, Rival) {
        match self.tree {
            Some(tree) if tree.nats.mean > self.sites.nats.mean => ("a tree of pairs", tree),
            _ => ("independent sites", self.sites),
        }
    }

    /// The verdict.
    pub(super) fn check(&self, remedy: &Remedy, only_trained: bool) -> Check {
        let (name, best) = self.best();
        let (behind, doubt) = (-best.lead.mean, best.lead.error);
        let verdict = if behind > 0.5 && behind > SIGNIFICANT * doubt {
            Verdict::Fail
        } else if behind > 0.01 && behind > DOUBT * doubt {
            Verdict::Warn
        } else {
            Verdict::Pass
        };
        let mut finding = format!(
            "{:.3} nats per row over {} rows; independent sites {:.3}",
            self.nats, self.rows[0], self.sites.nats.mean
        );
        if let Some(tree) = self.tree {
            finding += &format!(", a tree of pairs {:.3}", tree.nats.mean);
        }
        if self.log_sum.abs() > 0.01 {
            finding += " (the model divided by its sum)";
        }
        finding += &format!(
            ", fitted to {} other rows; the model is {} than {name} by {:.3} ± {:.3}",
            self.rows[1],
            if behind > 0.0 { "worse" } else { "better" },
            behind.abs(),
            doubt
        );
        let meaning = match verdict {
            Verdict::Pass if only_trained => format!(
                "the model is not worse than {name}; it was trained on all of these rows, though."
            ),
            Verdict::Pass => {
                format!("rows that were not trained on are not less likely than by {name}.")
            }
            Verdict::Warn => format!(
                "the model is worse than {name}, fitted in a moment: use that, or {}.",
                remedy.further()
            ),
            _ => format!(
                "the model is much worse than {name}, fitted in a moment, so it is not a density of these rows: {}.",
                remedy.levels()
            ),
        };
        Check {
            name: "held-out log-likelihood".into(),
            verdict,
            finding,
            meaning,
            limits: "warn where the better of independent sites and a tree of pairs is ahead by 0.01 nats and three standard errors of the difference, fail by \
                     0.5 nats and four"
                .into(),
        }
    }
}
