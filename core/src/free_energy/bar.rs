//! BAR: the best estimate from works in both directions.
//!
//! Bennett, J. Comput. Phys. 22, 245 (1976); for driven processes Crooks (2000) and Shirts et al. (2003).

use super::Blocks;
use super::perturbation::check_works;
use crate::metric::Estimate;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};
use serde::Serialize;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["bennett1976efficient"];

/// `delta = log(Z_B / Z_A)` from works in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bar {
    /// The difference, with Bennett's error (his equation 10a, corrected).
    pub delta: Estimate,
    /// The error of MBAR's covariance for two states. Larger than Bennett's at poor overlap; both are wrong where they differ.
    pub mbar_error: f64,
    /// Overlap as [`Overlap::scalar`](super::Overlap::scalar) of the two states: 0 none, 1 complete.
    pub overlap: f64,
}

/// Fewer shared samples than this and the difference is undetermined (a standard deviation above 100 kT).
const SHARED_SAMPLES: f64 = 1e-4;

/// From `forward` works `u_B - u_A` on samples of A and `reverse` works `u_A - u_B` on samples of B, in kT; also works of
/// driven processes.
///
/// Solves `sum_F fermi(M + w_F + delta) = sum_R fermi(-M + w_R - delta)`, `M = log(N_F / N_R)`,
/// `fermi(x) = 1 / (1 + exp(x))`: both sides are monotone, so the solution is unique and always found.
///
/// # Errors
/// [`Error::BadEnergy`], [`Error::Value`] for fewer than two works, [`Error::Disconnected`] if the ends share no samples.
pub fn bar(forward: &[f64], reverse: &[f64]) -> Result<Bar> {
    check_works(forward, 1)?;
    check_works(reverse, 0)?;
    bar_weighted(forward, None, reverse, None)
}

/// The rise of the free energy, `-delta`, and the number of samples that both ends share, however few they are: where other iterations
/// may start.
pub(super) fn rough_bar(forward: &[f64], reverse: &[f64]) -> (f64, f64) {
    match bar_weighted(forward, None, reverse, None) {
        Ok(found) => {
            let both = 1.0 / forward.len() as f64 + 1.0 / reverse.len() as f64;
            (-found.delta.mean, found.overlap / both)
        }
        Err(_) => {
            let typical = |works: &[f64]| median(works).map_or(FORBIDDEN, |w| w.min(FORBIDDEN));
            (0.5 * (typical(forward) - typical(reverse)), 0.0)
        }
    }
}

/// What a forbidden sample counts, in kT, where nothing is known.
const FORBIDDEN: f64 = 1e3;

/// The median of the finite works; none if there are none.
fn median(works: &[f64]) -> Option<f64> {
    let mut finite: Vec<f64> = works.iter().copied().filter(|w| w.is_finite()).collect();
    let middle = finite.len() / 2;
    if finite.is_empty() {
        return None;
    }
    Some(*finite.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// BAR where each work counts as often as its weight says (bootstrap).
fn bar_weighted(
    forward: &[f64],
    forward_weights: Option<&[f64]>,
    reverse: &[f64],
    reverse_weights: Option<&[f64]>,
) -> Result<Bar> {
    let apart = || Error::Disconnected {
        groups: vec![vec![0], vec![1]],
    };
    let (n_f, n_r) = (forward.len() as f64, reverse.len() as f64);
    let m = (n_f / n_r).ln();
    let (Some(middle_f), Some(middle_r)) = (median(forward), median(reverse)) else {
        return Err(apart());
    };
    let moments = |delta: f64| {
        let f = Moments::of(forward, forward_weights, m + delta);
        let r = Moments::of(reverse, reverse_weights, -m - delta);
        (f, r)
    };
    // The excess of the reverse side grows with delta; its slope is the number of shared samples.
    let excess = |(f, r): &(Moments, Moments)| r.first - f.first;
    // Exact for Gaussian works of equal width, and not moved by a few clashes; the bracket grows from there.
    let mut delta = 0.5 * (middle_r - middle_f);
    let bracket = |sign: f64| -> Result<f64> {
        let mut step = 1.0;
        for _ in 0..64 {
            let end = delta + sign * step;
            if sign * excess(&moments(end)) >= 0.0 {
                return Ok(end);
            }
            step *= 2.0;
        }
        Err(apart())
    };
    let (mut low, mut high) = (bracket(-1.0)?, bracket(1.0)?);
    let mut here = moments(delta);
    for _ in 0..200 {
        let value = excess(&here);
        if value < 0.0 {
            low = delta;
        } else {
            high = delta;
        }
        let slope = here.0.shared() + here.1.shared();
        let mut next = delta - value / slope;
        if !(next > low && next < high) {
            next = 0.5 * (low + high);
        }
        let change = (next - delta).abs();
        delta = next;
        here = moments(delta);
        if change <= 1e-14 * (1.0 + delta.abs()) {
            break;
        }
    }
    let (f, r) = here;
    let shared = f.shared() + r.shared();
    if shared.is_nan() || shared < SHARED_SAMPLES {
        return Err(apart());
    }
    let both = 1.0 / n_f + 1.0 / n_r;
    let bennett = f.second / (f.first * f.first) + r.second / (r.first * r.first) - both;
    Ok(Bar {
        delta: Estimate {
            mean: delta,
            error: bennett.max(0.0).sqrt(),
        },
        mbar_error: (1.0 / shared - both).max(0.0).sqrt(),
        overlap: (shared * both).min(1.0),
    })
}

/// Sums of fermi(w + c) and of its square.
struct Moments {
    first: f64,
    second: f64,
}

impl Moments {
    fn of(works: &[f64], weights: Option<&[f64]>, c: f64) -> Self {
        let mut sums = Moments {
            first: 0.0,
            second: 0.0,
        };
        for (i, w) in works.iter().enumerate() {
            let weight = weights.map_or(1.0, |weights| weights[i]);
            let x = w + c;
            // Either form overflows on one side.
            let fermi = if x > 0.0 {
                let small = (-x).exp();
                small / (1.0 + small)
            } else {
                1.0 / (1.0 + x.exp())
            };
            sums.first += weight * fermi;
            sums.second += weight * fermi * fermi;
        }
        sums
    }

    /// Sum of fermi (1 - fermi).
    fn shared(&self) -> f64 {
        self.first - self.second
    }
}

/// Mean and standard deviation of BAR over replicas of both series, resampled in these blocks.
///
/// # Errors
/// [`Error::Value`] for fewer than two replicas or a block of no works, and as [`bar`](fn@bar).
pub fn bar_bootstrap(
    forward: &[f64],
    reverse: &[f64],
    blocks: [Blocks; 2],
    replicas: usize,
    seed: u64,
) -> Result<Estimate> {
    bar(forward, reverse)?;
    let mut both = vec![0.0; reverse.len()];
    let mut replica = 0;
    // The wider of the two for both.
    let widening = blocks[0].widening.max(blocks[1].widening);
    let first = Blocks {
        widening,
        ..blocks[0]
    };
    super::bootstrap(forward.len(), first, replicas, seed, &mut |weights| {
        let mut stream = Stream::new(seed, Purpose::Bootstrap, replica, 1);
        replica += 1;
        both.fill(0.0);
        super::resample(&mut stream, blocks[1].length, &mut both)?;
        Ok(bar_weighted(forward, Some(weights), reverse, Some(&both))?
            .delta
            .mean)
    })
}
