//! Correlated series: statistical inefficiency, the end of equilibration, and which samples to keep.
//!
//! Chodera et al., J. Chem. Theory Comput. 3, 26 (2007); Chodera, J. Chem. Theory Comput. 12, 1799 (2016).

use serde::Serialize;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["chodera2007use", "chodera2016simple"];

/// Lags that are always summed, even where noise makes the correlation negative.
const LEAST_LAG: usize = 3;

/// Statistical inefficiency `g = 1 + 2 sum_t (1 - t/n) C(t)`, at least 1: n samples are worth n/g independent ones. The sum
/// ends where the correlation first drops below zero. A constant series is worth one sample: g = n. Where numbers are infinite, or one
/// carries most of the variance (clashes), their ranks tell what their sizes cannot.
pub fn statistical_inefficiency(series: &[f64]) -> f64 {
    inefficiency(series, false)
}

fn centred(series: &[f64]) -> Vec<f64> {
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    series.iter().map(|x| x - mean).collect()
}

/// The place of each number in the order of all; equal ones share theirs.
fn ranks(series: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|a, b| series[*a].total_cmp(&series[*b]));
    let mut ranks = vec![0.0; series.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| series[*a] == series[*b]) {
        let shared = first as f64 + 0.5 * (equal.len() as f64 - 1.0);
        equal.iter().for_each(|at| ranks[*at] = shared);
        first += equal.len();
    }
    ranks
}

/// With `fast`, lags grow 1, 2, 4, 7, 11, ... and each stands for those skipped.
fn inefficiency(series: &[f64], fast: bool) -> f64 {
    let n = series.len();
    if n < 2 {
        return 1.0;
    }
    let mut x = centred(series);
    let largest = x.iter().fold(0.0, |m: f64, x| m.max(x * x));
    let whole = dot(&x, &x);
    if !whole.is_finite() || (n > 10 && largest > 0.5 * whole) {
        x = centred(&ranks(series));
    }
    let variance = dot(&x, &x) / n as f64;
    if variance == 0.0 || !variance.is_finite() {
        return n as f64;
    }
    let (mut g, mut lag, mut step) = (1.0, 1, 1);
    while lag < n - 1 {
        let c = dot(&x[..n - lag], &x[lag..]) / ((n - lag) as f64 * variance);
        if c <= 0.0 && lag > LEAST_LAG {
            break;
        }
        g += 2.0 * c * (1.0 - lag as f64 / n as f64) * step as f64;
        lag += step;
        if fast {
            step += 1;
        }
    }
    g.max(1.0)
}

/// Scalar product with eight partial sums.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (left, right) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0.0; 8];
    for (a, b) in left.0.iter().zip(right.0) {
        for i in 0..8 {
            lanes[i] += a[i] * b[i];
        }
    }
    let rest: f64 = left.1.iter().zip(right.1).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f64>() + rest
}

/// Where a series has forgotten its start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Equilibration {
    /// First sample to keep.
    pub start: usize,
    /// Statistical inefficiency from there on.
    pub inefficiency: f64,
    /// Independent samples from there on, the largest number that any start gives.
    pub effective_samples: f64,
}

/// The start that leaves the most independent samples; every `skip`-th start is tried. A constant series counts as one.
pub fn detect_equilibration(series: &[f64], skip: usize) -> Equilibration {
    let n = series.len();
    let mut best = Equilibration {
        start: 0,
        inefficiency: 1.0,
        effective_samples: 1.0,
    };
    if n < 2 || series.iter().all(|x| *x == series[0]) {
        return best;
    }
    for start in (0..n - 1).step_by(skip.max(1)) {
        let inefficiency = inefficiency(&series[start..], true);
        // One more than there are, as the reference implementation counts.
        let effective_samples = (n - start + 1) as f64 / inefficiency;
        if effective_samples > best.effective_samples {
            best = Equilibration {
                start,
                inefficiency,
                effective_samples,
            };
        }
    }
    best
}

/// Which of `samples` samples to keep so that neighbours are `inefficiency` apart on average: `round(n g)`.
pub fn subsample(samples: usize, inefficiency: f64) -> Vec<usize> {
    let g = if inefficiency.is_finite() {
        inefficiency.max(1.0)
    } else {
        samples as f64
    };
    (0..)
        .map(|n| (n as f64 * g).round_ties_even() as usize)
        .take_while(|at| *at < samples)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn series(a: f64, n: usize, row: u64) -> Vec<f64> {
        let mut stream = Stream::new(11, Purpose::Test, 0, row);
        let mut x = stream.normal();
        (0..n)
            .map(|_| {
                x = a * x + (1.0 - a * a).sqrt() * stream.normal();
                2.0 * x - 7.0
            })
            .collect()
    }

    /// Ranks of a Gaussian series are correlated by (6 / pi) asin(C / 2), a little less than the numbers.
    #[test]
    fn clashes_do_not_hide_the_correlation() {
        let n = 20_000;
        let plain = series(0.8, n, 3);
        let mut clashing = plain.clone();
        // Every fiftieth number is a clash, huge or infinite: one in fifty neighbours less, 4 % of the correlation of pairs.
        for (k, x) in clashing.iter_mut().enumerate().filter(|(k, _)| k % 50 == 0) {
            *x = if k % 100 == 0 { f64::INFINITY } else { 1e12 };
        }
        let of_ranks =
            |lag: u32| 6.0 / std::f64::consts::PI * (0.5 * 0.8f64.powi(lag as i32)).asin();
        let exact = 1.0 + 2.0 * (1..200).map(of_ranks).sum::<f64>();
        let found = statistical_inefficiency(&clashing);
        // About 50 lags are summed; see the next test.
        let tolerance = 4.0 * exact * (2.0 * 101.0 / n as f64).sqrt() + 0.08 * exact;
        assert!((found - exact).abs() < tolerance, "{found} {exact}");
        assert_eq!(
            ranks(&[3.0, f64::INFINITY, -1.0, 3.0]),
            [1.5, 3.0, 0.0, 1.5]
        );
    }

    /// For x' = a x + noise, g = (1 + a) / (1 - a).
    #[test]
    fn inefficiency_of_an_autoregressive_series() {
        // The sum of M lags has the relative variance 2 (2 M + 1) / n; the first negative correlation comes at about M.
        let n = 40_000;
        for (a, lags) in [(0.0, 4.0), (0.5, 25.0), (0.9, 80.0)] {
            let g = statistical_inefficiency(&series(a, n, 1));
            let exact: f64 = (1.0 + a) / (1.0 - a);
            let tolerance = 4.0 * exact * (2.0 * (2.0 * lags + 1.0) / n as f64).sqrt();
            assert!((g - exact).abs() < tolerance, "{a}: {g}");
        }
        assert_eq!(statistical_inefficiency(&[3.0; 50]), 50.0);
        assert_eq!(statistical_inefficiency(&[3.0]), 1.0);
    }

    #[test]
    fn a_drifting_start_is_cut_off() {
        let mut x = series(0.5, 4000, 2);
        for (i, x) in x.iter_mut().take(600).enumerate() {
            *x += 30.0 * (1.0 - i as f64 / 600.0);
        }
        let found = detect_equilibration(&x, 20);
        assert!((400..900).contains(&found.start), "{found:?}");
        assert!((found.inefficiency - 3.0).abs() < 1.0, "{found:?}");
        assert_eq!(detect_equilibration(&[1.0; 9], 1).start, 0);
    }

    #[test]
    fn kept_samples_are_spread_evenly() {
        assert_eq!(subsample(10, 2.4), [0, 2, 5, 7]);
        assert_eq!(subsample(3, 0.2), [0, 1, 2]);
        assert_eq!(subsample(4, f64::INFINITY), [0]);
    }
}
