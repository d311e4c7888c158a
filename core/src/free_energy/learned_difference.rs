//! What a learned path says about the free-energy difference of two states, with an error that holds: the rows, the ends and the model.

use super::influence::Influence;
use super::{EndCorrection, PathEstimate, Rule};
use crate::metric::Estimate;
use serde::Serialize;

/// Samples that must carry an end's exponential average for its error to mean anything.
const LEAST_SAMPLES: f64 = 20.0;

/// Another way to the same number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Route {
    /// What it is.
    pub name: &'static str,
    /// By how much it differs from the answer, with the sampling error of the difference.
    pub gap: Estimate,
}

impl Route {
    /// What of the gap is more than sampling: `sqrt(gap^2 - error^2)`.
    pub fn excess(&self) -> f64 {
        (self.gap.mean.powi(2) - self.gap.error.powi(2))
            .max(0.0)
            .sqrt()
    }
}

/// The difference by one route, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Answer {
    /// The difference.
    pub mean: f64,
    /// The error of everything: the rows, the bias of the ends, the model.
    pub error: f64,
    /// What of it the rows explain.
    pub statistical_error: f64,
}

impl Answer {
    /// The difference with the error of everything.
    pub fn estimate(&self) -> Estimate {
        Estimate {
            mean: self.mean,
            error: self.error,
        }
    }
}

/// `delta = log(Z_B/Z_A)` of two states (or, where no energies of the states are known, of the learned energies at the two ends).
///
/// **What the interval means.** It covers the true difference in 95 % of repetitions with other rows, if the path's energies are
/// right or err in a way that some route shows. The error of every answer has three parts: `statistical_error`, from the rows (shared by all levels, correlated
/// in the order of the file); the bias of the exponential averages at the ends, half their variance; and `model_error`, the largest excess of a
/// route over what sampling explains. The answer is the integral, or MBAR's where the rows leave it less than half as uncertain: slopes of an energy vary more than
/// its differences where the path bends fast. The learned F has no samples of its own: it is known as far as integration confirms it, so the error of that
/// comparison is its statistical one.
///
/// **What cannot be seen.** A factor `exp(c(y))` common to all times drops out of integration, MBAR and F alike. The route `blind` sees it where c is
/// linear or a sum of squares of coordinates (see [`PathEstimate::blind`]), and the spread of the ends' weights shows that there is one; a c
/// that rises between the modes only is not seen. The energies are held fixed: what other rows would have taught the network is not in the error,
/// but in the distance of the energies from the truth, which the routes measure. Copies of rows that are not neighbours in the file count as new rows.
#[derive(Debug, Clone, Serialize)]
pub struct LearnedDifference {
    /// By thermodynamic integration (Simpson's rule).
    pub integration: Answer,
    /// By MBAR over the path.
    pub mbar: Answer,
    /// By the learned F, where the objective teaches F.
    pub learned: Option<Answer>,
    /// The answer, with the error of everything.
    pub stated: Estimate,
    /// Whether it is MBAR's; else it is the integral.
    pub by_mbar: bool,
    /// Its 95 % interval; `None` where an end's weights rest on fewer than 20 samples and nothing is known of its error.
    pub interval_95: Option<[f64; 2]>,
    /// Part of the error that the model explains.
    pub model_error: f64,
    /// The other routes.
    pub routes: Vec<Route>,
    /// How many independent rows the rows of A and B are worth for the answer.
    pub independent_rows: [f64; 2],
}

impl LearnedDifference {
    /// Puts path and ends together. `f_is_learned` tells whether the objective compares times, so that F is a route of its own.
    pub fn new(
        path: &PathEstimate,
        ends: Option<(&EndCorrection, &EndCorrection)>,
        f_is_learned: bool,
    ) -> LearnedDifference {
        let (integrals, of_mbar, of_blind) = &path.influences;
        let at = |rule: Rule| Rule::ALL.iter().position(|r| *r == rule).unwrap_or(0);
        let value = |rule: Rule| path.integrals[at(rule)].1.mean;
        let simpson = &integrals[at(Rule::Simpson)];
        let nothing = simpson.clone().with(-1.0, simpson);
        let shift = ends.map_or(0.0, |(a, b)| {
            a.perturbation.exponential.mean - b.perturbation.exponential.mean
        });
        let with_ends = |influence: Influence| match ends {
            None => influence,
            Some((a, b)) => {
                influence
                    .with_rows(0, 1.0, &a.influence())
                    .with_rows(1, -1.0, &b.influence())
            }
        };
        let (of_integral, worth) = with_ends(simpson.clone()).error();
        let (of_mbar_rows, worth_by_mbar) = with_ends(of_mbar.clone()).error();
        let by_mbar = of_mbar_rows < 0.5 * of_integral;
        let independent_rows = if by_mbar { worth_by_mbar } else { worth };
        let integral = (value(Rule::Simpson), simpson);
        let (centre, other, name) = match by_mbar {
            true => ((path.mbar.mean, of_mbar), integral, "integration"),
            false => (integral, (path.mbar.mean, of_mbar), "MBAR"),
        };
        let against = |name, mean: f64, influence: &Influence| Route {
            name,
            gap: Estimate {
                mean: mean - centre.0,
                error: influence.clone().with(-1.0, centre.1).error().0,
            },
        };
        let spline = &integrals[at(Rule::Spline)];
        let mut routes = vec![
            against("integration by a spline", value(Rule::Spline), spline),
            against(name, other.0, other.1),
        ];
        let of_learned = against("learned F", path.learned, &nothing);
        if f_is_learned {
            routes.push(of_learned);
        }
        // A common factor exp(c) adds <c>_B - <c>_A to the path between the learned energies and, where works at the ends are known, mean works are
        // then the right correction instead of exponential averages.
        let mut hidden = (path.blind.mean, of_blind.clone());
        if let Some((a, b)) = ends {
            for (end, (correction, sign)) in [(a, 1.0), (b, -1.0)].into_iter().enumerate() {
                let (mean, rows) = correction.mean();
                hidden.0 += sign * (mean - correction.perturbation.exponential.mean);
                hidden.1 = hidden.1.with_rows(end, sign, &rows).with_rows(
                    end,
                    -sign,
                    &correction.influence(),
                );
            }
        }
        routes.push(Route {
            name: "blind",
            gap: Estimate {
                mean: hidden.0,
                error: hidden.1.error().0,
            },
        });

        let model_error = routes.iter().map(Route::excess).fold(0.0, f64::max);
        let end_bias = ends.map_or(0.0, |(a, b)| {
            let variance = |end: &EndCorrection| end.perturbation.exponential.error.powi(2);
            0.5 * variance(a).max(variance(b))
        });
        let answer = |mean: f64, statistical_error: f64| Answer {
            mean: mean + shift,
            error: statistical_error.hypot(model_error).hypot(end_bias),
            statistical_error,
        };
        let integration = answer(value(Rule::Simpson), of_integral);
        let mbar = answer(path.mbar.mean, of_mbar_rows);
        let stated = if by_mbar { mbar } else { integration }.estimate();
        let known = ends.is_none_or(|(a, b)| {
            [a, b]
                .iter()
                .all(|end| end.perturbation.effective_samples >= LEAST_SAMPLES)
        });
        let half = 1.96 * stated.error;
        LearnedDifference {
            integration,
            mbar,
            learned: f_is_learned.then(|| {
                let of_ends = with_ends(nothing.clone()).error().0;
                answer(path.learned, of_ends.hypot(of_learned.gap.error))
            }),
            stated,
            by_mbar,
            interval_95: known.then_some([stated.mean - half, stated.mean + half]),
            model_error,
            routes,
            independent_rows,
        }
    }
}
