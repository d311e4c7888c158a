//! An axis: from values to places, and round numbers for its ticks.

/// One axis of a picture.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// A linear axis from `low` to `high`. A range without width is widened, a range that is not finite becomes 0 to
    /// 1.
    pub fn linear(label: &str, low: f64, high: f64) -> Self {
        let (low, high) = widen(low, high);
        Self {
            label: label.into(),
            low,
            high,
            logarithmic: false,
        }
    }

    /// A logarithmic axis; both ends must be positive, else it becomes linear.
    pub fn logarithmic(label: &str, low: f64, high: f64) -> Self {
        if !(low > 0.0 && high > 0.0 && low.is_finite() && high.is_finite()) {
            return Self::linear(label, low, high);
        }
        let (low, high) = if low < high {
            (low, high)
        } else {
            (low / 2.0, high * 2.0)
        };
        Self {
            label: label.into(),
            low,
            high,
            logarithmic: true,
        }
    }

    /// The axis that holds all of `values`; those that are not finite (or, on a logarithmic axis, not positive) do
    /// not count.
    pub fn around(label: &str, values: impl Iterator<Item = f64>, logarithmic: bool) -> Self {
        let usable = values.filter(|value| value.is_finite() && !(logarithmic && *value <= 0.0));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if logarithmic {
            Self::logarithmic(label, low, high)
        } else {
            Self::linear(label, low, high)
        }
    }

    /// Where `value` lies: 0 at the low end, 1 at the high end; `None` when it has no place (not finite, or not
    /// positive on a logarithmic axis).
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.is_finite().then_some(place)
    }

    /// The value at a place of a linear axis: the inverse of [`Axis::place`].
    pub fn value(&self, place: f64) -> f64 {
        self.low + place * (self.high - self.low)
    }

    /// High end minus low end.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// About `wanted` round values within the range, with their texts.
    pub fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        if self.logarithmic {
            self.logarithmic_ticks(wanted)
        } else {
            self.linear_ticks(wanted)
        }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        // A hair of tolerance, so that an end which is a tick up to rounding is one.
        let first = (self.low / step - 1e-9).ceil();
        let count = ((self.high / step + 1e-9).floor() - first).clamp(0.0, 100.0) as usize;
        let largest = self.low.abs().max(self.high.abs());
        (0..=count)
            .map(|i| (first + i as f64) * step)
            .map(|value| (value, number(value, step, largest)))
            .collect()
    }

    fn logarithmic_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let decades = high - low;
        let mantissas: &[f64] = if decades < 2.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let stride = (decades / wanted.max(1) as f64).ceil().max(1.0) as i32;
        let (first, last) = (low.floor() as i32, high.ceil() as i32);
        let within =
            |value: f64| value >= self.low * (1.0 - 1e-9) && value <= self.high * (1.0 + 1e-9);
        let ticks: Vec<_> = (first..=last)
            .filter(|exponent| exponent.rem_euclid(stride) == 0)
            .flat_map(|exponent| {
                mantissas
                    .iter()
                    .map(move |mantissa| mantissa * 10f64.powi(exponent))
            })
            .filter(|value| within(*value))
            .map(|value| (value, power(value)))
            .collect();
        // A range within one decade may hold no round number but enough of linear ones.
        if ticks.len() < 2 {
            self.linear_ticks(wanted)
        } else {
            ticks
        }
    }
}

fn widen(low: f64, high: f64) -> (f64, f64) {
    if !(low.is_finite() && high.is_finite()) {
        (0.0, 1.0)
    } else if low < high {
        (low, high)
    } else {
        let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        (low - margin, low + margin)
    }
}

/// The round number 1, 2 or 5 times a power of ten nearest above.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let mantissa = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|m| m * power >= step * (1.0 - 1e-9));
    mantissa.unwrap_or(10.0) * power
}

/// A tick's text with as many digits as its step needs.
fn number(value: f64, step: f64, largest: f64) -> String {
    // -0 and the rounding residue of 3 * 0.1 - 0.3 are zero.
    let value = if value.abs() < step * 1e-6 {
        0.0
    } else {
        value
    };
    if !(1e-3..1e5).contains(&largest) {
        if value == 0.0 {
            return "0".into();
        }
        let digits = (value.abs().log10().floor() - step.log10().floor()).max(0.0) as usize;
        return minus(&format!("{value:.digits$e}"));
    }
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    minus(&format!("{value:.decimals$}"))
}

/// A tick of a logarithmic axis: plain where short, else as a power.
fn power(value: f64) -> String {
    if (1e-3..1e5).contains(&value) {
        format!("{value}")
    } else {
        minus(&format!("{value:.0e}"))
    }
}

/// The typographic minus sign, as wide as a digit.
fn minus(text: &str) -> String {
    text.replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, wanted: usize) -> Vec<String> {
        axis.ticks(wanted)
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(
            texts(&Axis::linear("", -0.3, 1.0), 5),
            ["0.0", "0.5", "1.0"]
        );
        assert_eq!(
            texts(&Axis::linear("", -3.0, 3.0), 6),
            ["−3", "−2", "−1", "0", "1", "2", "3"]
        );
        assert_eq!(
            texts(&Axis::linear("", 0.0, 0.0007), 4),
            ["0", "2e−4", "4e−4", "6e−4"]
        );
        assert_eq!(
            texts(&Axis::linear("", 0.0, 3e6), 3),
            ["0", "1e6", "2e6", "3e6"]
        );
        assert_eq!(
            texts(&Axis::linear("", 8e5, 1.2e6), 4),
            ["8e5", "9e5", "1.0e6", "1.1e6", "1.2e6"]
        );
        assert_eq!(
            texts(&Axis::linear("", 0.1, 0.45), 4),
            ["0.1", "0.2", "0.3", "0.4"]
        );
    }

    #[test]
    fn logarithmic_ticks_are_decades_or_parts_of_one() {
        assert_eq!(
            texts(&Axis::logarithmic("", 1e-4, 10.0), 6),
            ["1e−4", "0.001", "0.01", "0.1", "1", "10"]
        );
        assert_eq!(
            texts(&Axis::logarithmic("", 1.5, 30.0), 6),
            ["2", "5", "10", "20"]
        );
        assert_eq!(texts(&Axis::logarithmic("", 3.0, 3.9), 4), ["3.0", "3.5"]);
        assert!(Axis::logarithmic("", 1e-300, 1e300).ticks(6).len() <= 8);
    }

    #[test]
    fn places_run_from_low_to_high() {
        let axis = Axis::linear("", -1.0, 3.0);
        assert_eq!(
            (axis.place(-1.0), axis.place(0.0), axis.place(3.0)),
            (Some(0.0), Some(0.25), Some(1.0))
        );
        assert_eq!(
            (axis.place(f64::NAN), axis.place(f64::INFINITY)),
            (None, None)
        );
        assert_eq!((axis.value(0.25), axis.width()), (0.0, 4.0));
        let axis = Axis::logarithmic("", 0.1, 1000.0);
        assert!((axis.place(10.0).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!((axis.place(0.0), axis.place(-1.0)), (None, None));
    }

    #[test]
    fn ranges_without_width_or_sense_still_make_an_axis() {
        let axes = [
            Axis::linear("", 2.0, 2.0),
            Axis::linear("", 0.0, 0.0),
            Axis::linear("", f64::NAN, 1.0),
            Axis::logarithmic("", -1.0, 1.0),
            Axis::logarithmic("", 4.0, 4.0),
            Axis::around("", [f64::NAN].into_iter(), false),
            Axis::around("", [-1.0, 0.0].into_iter(), true),
            Axis::around("", [1e-310, 1e308].into_iter(), false),
        ];
        for axis in axes {
            let ticks = axis.ticks(5);
            assert!(!ticks.is_empty() && ticks.len() < 20, "{axis:?}: {ticks:?}");
            assert!(ticks.iter().all(|(value, _)| {
                axis.place(*value)
                    .is_some_and(|p| (-1e-6..=1.0 + 1e-6).contains(&p))
            }));
        }
        let axis = Axis::around("", [3.0, f64::INFINITY, -1.0].into_iter(), false);
        assert_eq!((axis.low, axis.high), (-1.0, 3.0));
    }
}
