//! Thermodynamic integration: `delta = -integral of <du/dlambda> dlambda`, by three rules that are all sums with fixed weights.

use crate::metric::Estimate;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["kirkwood1935statistical"];

/// How values between the points are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Straight lines.
    Trapezoid,
    /// Parabolas through three neighbours each; a last single interval gets Cartwright's correction.
    Simpson,
    /// The natural cubic spline.
    Spline,
}

/// The integral of mean slopes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Integral {
    /// `delta = log(Z_B / Z_A) = -integral of <du/dlambda>`, with the error that follows from those of the slopes. The error
    /// of the rule itself is not in it: compare rules.
    pub delta: Estimate,
    /// Weight of each point in the integral.
    pub weights: Vec<f64>,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 3] = [Rule::Trapezoid, Rule::Simpson, Rule::Spline];

    /// The rule's name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Trapezoid => "trapezoid",
            Rule::Simpson => "simpson",
            Rule::Spline => "spline",
        }
    }

    /// The weight of each point, given at rising places.
    ///
    /// # Errors
    /// [`Error::Value`] for fewer than two points, or places that do not rise.
    pub fn weights(self, places: &[f64]) -> Result<Vec<f64>> {
        let rising = places.windows(2).all(|pair| pair[0] < pair[1]);
        if places.len() < 2 || !rising || places.iter().any(|x| !x.is_finite()) {
            return Err(Error::Value {
                name: "points of the integral",
                found: format!("{places:?}"),
                expected: "at least two rising, finite numbers".into(),
            });
        }
        let h: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        Ok(match self {
            Rule::Trapezoid => trapezoid(&h),
            Rule::Simpson => simpson(&h),
            Rule::Spline => spline(&h),
        })
    }
}

/// `delta = -integral` of the mean slopes `<du/dlambda>` (kT), which must be independent of each other.
///
/// # Errors
/// [`Error::Value`] for points that do not rise, [`Error::Shape`] if there is not one slope per point.
pub fn integrate(lambdas: &[f64], slopes: &[Estimate], rule: Rule) -> Result<Integral> {
    if lambdas.len() != slopes.len() {
        return Err(Error::Shape {
            what: "the slopes".into(),
            found: format!("{} numbers", slopes.len()),
            expected: format!("one for each of the {} points", lambdas.len()),
        });
    }
    if let Some(at) = slopes.iter().position(|slope| !slope.mean.is_finite()) {
        return Err(Error::Value {
            name: "mean slope",
            found: format!("{} at point {at}", slopes[at].mean),
            expected: "a finite number".into(),
        });
    }
    let weights = rule.weights(lambdas)?;
    let sum: f64 = weights.iter().zip(slopes).map(|(w, s)| w * s.mean).sum();
    let variance: f64 = weights
        .iter()
        .zip(slopes)
        .map(|(w, s)| (w * s.error).powi(2))
        .sum();
    Ok(Integral {
        delta: Estimate {
            mean: -sum,
            error: variance.sqrt(),
        },
        weights,
    })
}

fn trapezoid(h: &[f64]) -> Vec<f64> {
    let mut weights = vec![0.0; h.len() + 1];
    for (i, h) in h.iter().enumerate() {
        weights[i] += 0.5 * h;
        weights[i + 1] += 0.5 * h;
    }
    weights
}

fn simpson(h: &[f64]) -> Vec<f64> {
    if h.len() == 1 {
        return trapezoid(h);
    }
    let mut weights = vec![0.0; h.len() + 1];
    for i in (0..h.len() - 1).step_by(2) {
        let (a, b) = (h[i], h[i + 1]);
        weights[i] += (a + b) / 6.0 * (2.0 - b / a);
        weights[i + 1] += (a + b).powi(3) / (6.0 * a * b);
        weights[i + 2] += (a + b) / 6.0 * (2.0 - a / b);
    }
    if h.len() % 2 == 1 {
        // The parabola through the last three points, over the last interval only (Cartwright 2017).
        let last = h.len();
        let (b, a) = (h[last - 1], h[last - 2]);
        weights[last] += (2.0 * b * b + 3.0 * a * b) / (6.0 * (a + b));
        weights[last - 1] += (b * b + 3.0 * a * b) / (6.0 * a);
        weights[last - 2] -= b.powi(3) / (6.0 * a * (a + b));
    }
    weights
}

/// The integral over an interval is `h (y0 + y1) / 2 - h^3 (m0 + m1) / 24` with the second derivatives m, which solve a
/// tridiagonal system that is linear in the values: one solve of its (symmetric) transpose gives all weights.
fn spline(h: &[f64]) -> Vec<f64> {
    let mut weights = trapezoid(h);
    let inner = h.len() - 1;
    if inner == 0 {
        return weights;
    }
    // Gradient of the integral in the inner second derivatives.
    let mut right: Vec<f64> = (0..inner)
        .map(|i| -(h[i].powi(3) + h[i + 1].powi(3)) / 24.0)
        .collect();
    let mut diagonal: Vec<f64> = (0..inner).map(|i| (h[i] + h[i + 1]) / 3.0).collect();
    for i in 1..inner {
        let off = h[i] / 6.0;
        let factor = off / diagonal[i - 1];
        diagonal[i] -= factor * off;
        right[i] -= factor * right[i - 1];
    }
    for i in (0..inner).rev() {
        let next = if i + 1 < inner {
            h[i + 1] / 6.0 * right[i + 1]
        } else {
            0.0
        };
        right[i] = (right[i] - next) / diagonal[i];
    }
    for (i, x) in right.iter().enumerate() {
        weights[i] += x / h[i];
        weights[i + 1] -= x / h[i] + x / h[i + 1];
        weights[i + 2] += x / h[i + 1];
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slopes(places: &[f64], f: &dyn Fn(f64) -> f64) -> Vec<Estimate> {
        let estimate = |x: &f64| Estimate {
            mean: f(*x),
            error: 0.1,
        };
        places.iter().map(estimate).collect()
    }

    #[test]
    fn rules_are_exact_for_what_they_fit() {
        let even = [0.1, 0.25, 0.5, 0.6, 1.0];
        let odd = [0.1, 0.3, 0.45, 1.0];
        for places in [&even[..], &odd[..]] {
            let (a, b) = (places[0], places[places.len() - 1]);
            for rule in Rule::ALL {
                let line = integrate(places, &slopes(places, &|x| 3.0 * x - 1.0), rule).unwrap();
                let exact = -(1.5 * (b * b - a * a) - (b - a));
                assert!((line.delta.mean - exact).abs() < 1e-13, "{rule:?}");
                let sum: f64 = line.weights.iter().map(|w| (0.1 * w).powi(2)).sum();
                assert!((line.delta.error - sum.sqrt()).abs() < 1e-15);
            }
            let parabola = integrate(places, &slopes(places, &|x| x * x), Rule::Simpson).unwrap();
            assert!((parabola.delta.mean + (b.powi(3) - a.powi(3)) / 3.0).abs() < 1e-13);
        }
    }

    /// Orders on a smooth function: halving the step divides the error by 4 (trapezoid), 16 (Simpson) and, with natural
    /// ends, at least 4 (spline).
    #[test]
    fn errors_shrink_at_their_order() {
        let exact = -(1.0 - (-3.0_f64).exp()) / 3.0;
        let error = |rule: Rule, n: usize| {
            let places: Vec<f64> = (0..=n).map(|i| i as f64 / n as f64).collect();
            let integral = integrate(&places, &slopes(&places, &|x| (-3.0 * x).exp()), rule);
            (integral.unwrap().delta.mean - exact).abs()
        };
        for (rule, order) in [
            (Rule::Trapezoid, 4.0),
            (Rule::Simpson, 16.0),
            (Rule::Spline, 7.5),
        ] {
            let ratio = error(rule, 32) / error(rule, 64);
            assert!((ratio / order - 1.0).abs() < 0.15, "{rule:?} {ratio}");
        }
    }

    /// The natural spline through (0, 0), (1, 1), (2, 0) has the middle second derivative -3, so its integral is
    /// 1 + 2 * 3 / 24 = 1.25.
    #[test]
    fn the_spline_is_natural() {
        let values = slopes(&[0.0, 1.0, 2.0], &|x| 1.0 - (x - 1.0).abs());
        let integral = integrate(&[0.0, 1.0, 2.0], &values, Rule::Spline).unwrap();
        assert!((integral.delta.mean + 1.25).abs() < 1e-14);
        assert_eq!(Rule::Spline.weights(&[0.0, 2.0]).unwrap(), [1.0, 1.0]);
    }

    #[test]
    fn wrong_points_are_refused() {
        assert!(Rule::Simpson.weights(&[0.0]).is_err());
        assert!(Rule::Simpson.weights(&[0.0, 0.0]).is_err());
        let two = slopes(&[0.0, 1.0], &|x| x);
        assert!(integrate(&[0.0, 0.5, 1.0], &two, Rule::Trapezoid).is_err());
        let bad = slopes(&[0.0, 1.0], &|_| f64::NAN);
        assert!(integrate(&[0.0, 1.0], &bad, Rule::Trapezoid).is_err());
    }
}
