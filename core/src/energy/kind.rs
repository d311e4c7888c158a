//! Kinds of columns: what values a column may take, and the map that straightens it for a model.
//!
//! A model's space is unbounded. A column that is positive or bounded is straightened first, `u = log x` or
//! `u = log((x - low) / (high - x))`, and densities carry the slope: `log p(x) = log p(u) + log du/dx`. No density is left outside of the
//! bounds. A periodic column stays as it is, but is known up to whole periods: energies are periodic in it, and what leaves a model is
//! brought back into `[low, low + period)`.

use serde::{Deserialize, Serialize};

/// What values a column takes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kind {
    /// Any number.
    #[default]
    Real,
    /// Numbers above 0.
    Positive,
    /// Numbers between two others.
    Bounded {
        /// All are above it.
        low: f64,
        /// All are below it.
        high: f64,
    },
    /// Numbers that mean the same a period apart.
    Periodic {
        /// Where values begin that are given out.
        low: f64,
        /// The period.
        period: f64,
    },
}

/// `log(1 + exp z)` without overflow.
fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

/// `x` up to whole periods, within half a period of zero.
#[inline]
pub fn nearest(x: f64, period: f64) -> f64 {
    x - period * (x / period).round()
}

impl Kind {
    /// Whether its numbers make sense.
    pub fn is_sound(&self) -> bool {
        match *self {
            Kind::Real | Kind::Positive => true,
            Kind::Bounded { low, high } => low < high && (high - low).is_finite(),
            Kind::Periodic { low, period } => low.is_finite() && period > 0.0 && period.is_finite(),
        }
    }

    /// Whether the column may have this value.
    #[inline]
    pub fn holds(&self, x: f64) -> bool {
        match *self {
            Kind::Real | Kind::Periodic { .. } => true,
            Kind::Positive => x > 0.0,
            Kind::Bounded { low, high } => low < x && x < high,
        }
    }

    /// Whether straightening it bends distances.
    pub fn is_curved(&self) -> bool {
        matches!(self, Kind::Positive | Kind::Bounded { .. })
    }

    /// The period, if it has one.
    pub fn period(&self) -> Option<f64> {
        match *self {
            Kind::Periodic { period, .. } => Some(period),
            _ => None,
        }
    }

    /// u(x).
    #[inline]
    pub fn straighten(&self, x: f64) -> f64 {
        match *self {
            Kind::Real | Kind::Periodic { .. } => x,
            Kind::Positive => x.ln(),
            Kind::Bounded { low, high } => ((x - low) / (high - x)).ln(),
        }
    }

    /// x(u); a periodic value within `[low, low + period)`.
    #[inline]
    pub fn bend(&self, u: f64) -> f64 {
        match *self {
            Kind::Real => u,
            Kind::Positive => u.exp().clamp(f64::MIN_POSITIVE, f64::MAX),
            Kind::Bounded { low, high } => {
                // From the nearer end, so that values close to it keep their digits; never the end itself.
                let x = if u < 0.0 {
                    low + (high - low) * (u - softplus(u)).exp()
                } else {
                    high - (high - low) * (-u - softplus(-u)).exp()
                };
                x.clamp(low.next_up(), high.next_down())
            }
            Kind::Periodic { low, period } => {
                let x = u - period * ((u - low) / period).floor();
                // Rounding may reach the next period's begin.
                if x < low + period { x.max(low) } else { low }
            }
        }
    }

    /// `log du/dx`, from u.
    #[inline]
    pub fn log_slope(&self, u: f64) -> f64 {
        match *self {
            Kind::Real | Kind::Periodic { .. } => 0.0,
            Kind::Positive => -u,
            Kind::Bounded { low, high } => softplus(u) + softplus(-u) - (high - low).ln(),
        }
    }

    /// First and second derivative of `log du/dx` in x, from x.
    #[inline]
    pub fn log_slope_rates(&self, x: f64) -> [f64; 2] {
        match *self {
            Kind::Real | Kind::Periodic { .. } => [0.0; 2],
            Kind::Positive => [-1.0 / x, 1.0 / (x * x)],
            Kind::Bounded { low, high } => {
                let (a, b) = (1.0 / (x - low), 1.0 / (high - x));
                [b - a, a * a + b * b]
            }
        }
    }

    /// In a word or two, with its numbers.
    pub fn words(&self) -> String {
        match *self {
            Kind::Real => "real".into(),
            Kind::Positive => "positive".into(),
            Kind::Bounded { low, high } => format!("between {low} and {high}"),
            Kind::Periodic { low, period } => {
                format!("periodic, {low:.6} to {:.6}", low + period)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 4] = [
        Kind::Real,
        Kind::Positive,
        Kind::Bounded {
            low: -0.5,
            high: 2.3,
        },
        Kind::Periodic {
            low: -1.0,
            period: 3.5,
        },
    ];

    #[test]
    fn slopes_are_derivatives() {
        for kind in KINDS {
            for x in [0.01_f64, 0.7, 1.9, 2.2] {
                // Five points: the error falls with the fourth power of h, which is small beside the distance to a bound.
                let h = 1e-3 * x.min(2.3 - x);
                let difference = |f: &dyn Fn(f64) -> f64| {
                    (8.0 * (f(x + h) - f(x - h)) - f(x + 2.0 * h) + f(x - 2.0 * h)) / (12.0 * h)
                };
                let u = |x: f64| kind.straighten(x);
                let slope = difference(&u);
                assert!((kind.log_slope(u(x)) - slope.ln()).abs() < 1e-8, "{kind:?}");
                let log = |x: f64| kind.log_slope(u(x));
                let rate = |x: f64| kind.log_slope_rates(x)[0];
                let [first, second] = kind.log_slope_rates(x);
                let found = difference(&log);
                assert!((first - found).abs() < 1e-6 * (1.0 + first.abs()));
                let found = difference(&rate);
                assert!((second - found).abs() < 1e-6 * (1.0 + second.abs()));
            }
        }
    }

    #[test]
    fn values_go_there_and_back_and_stay_inside() {
        for kind in KINDS {
            for x in [0.003, 0.7, 1.9, 2.299] {
                assert!((kind.bend(kind.straighten(x)) - x).abs() < 1e-14 * (1.0 + x));
            }
            for u in [-1e300, -800.0, -40.0, -3.0, 0.2, 40.0, 800.0] {
                let x = kind.bend(u);
                assert!(kind.holds(x) && x.is_finite(), "{kind:?} {u} {x}");
                if let Kind::Periodic { low, period } = kind {
                    assert!((low..low + period).contains(&x), "{u} {x}");
                }
            }
        }
        assert!((nearest(9.9, 3.5) + 0.6).abs() < 1e-12);
        let kind = KINDS[3];
        assert_eq!(kind.bend(-1.0), -1.0);
        assert_eq!(kind.bend(2.5), -1.0);
        assert_eq!(kind.bend((-1.0f64).next_down()), -1.0);
    }

    #[test]
    fn files_name_the_kind() {
        let text = serde_json::to_string(&KINDS).unwrap();
        assert_eq!(
            text,
            r#"[{"kind":"real"},{"kind":"positive"},{"kind":"bounded","low":-0.5,"high":2.3},{"kind":"periodic","low":-1.0,"period":3.5}]"#
        );
        assert_eq!(serde_json::from_str::<[Kind; 4]>(&text).unwrap(), KINDS);
        let unsound = |kind: Kind| assert!(!kind.is_sound(), "{kind:?}");
        unsound(Kind::Bounded {
            low: 1.0,
            high: 1.0,
        });
        unsound(Kind::Bounded {
            low: f64::NEG_INFINITY,
            high: 1.0,
        });
        unsound(Kind::Periodic {
            low: 0.0,
            period: 0.0,
        });
    }
}
