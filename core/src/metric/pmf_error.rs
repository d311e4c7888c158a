//! Squared error of the free energy over the plane (the "PMF error" of Plainer et al. 2025).

use super::Plane;
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["plainer2025consistent"];

/// Share that stands for an empty cell.
const BASELINE: f64 = 1e-6;

/// `sum w (ln p - ln q)^2` over the cells that either sample has points in, in kT squared; `w` is the mean of the shares p and q, 1e-6
/// where a sample has none, normalised to 1. There are `bins - 2` cells along each axis between the limits, and one more on either side
/// for all that lies beyond.
pub fn pmf_error(
    found: &Plane<'_>,
    reference: &Plane<'_>,
    bins: usize,
    limits: [f64; 4],
) -> Result<f64> {
    if bins < 3 {
        return Err(Error::Value {
            name: "cells of the PMF error",
            found: bins.to_string(),
            expected: "at least 3 along an axis: two of them lie outside of the limits".into(),
        });
    }
    let p = shares(found, bins, limits)?;
    let q = shares(reference, bins, limits)?;
    let (mut sum, mut weights) = (0.0, 0.0);
    for (p, q) in p.iter().zip(&q) {
        if *p == 0.0 && *q == 0.0 {
            continue;
        }
        let fill = |share: f64| if share > 0.0 { share } else { BASELINE };
        let (p, q) = (fill(*p), fill(*q));
        let weight = 0.5 * (p + q);
        sum += weight * (p.ln() - q.ln()).powi(2);
        weights += weight;
    }
    Ok(sum / weights)
}

/// Shares of all cells, those beyond the limits included.
fn shares(plane: &Plane<'_>, bins: usize, limits: [f64; 4]) -> Result<Vec<f64>> {
    Plane::check_limits(limits)?;
    let mut counts = vec![0.0; bins * bins];
    let inner = (bins - 2) as f64;
    let place = |x: f64, low: f64, high: f64| -> usize {
        let cell = (x - low) / (high - low) * inner;
        if cell < 0.0 {
            0
        } else {
            (cell as usize).saturating_add(1).min(bins - 1)
        }
    };
    for point in plane.points.chunks_exact(2) {
        let i = place(point[0], limits[0], limits[1]);
        let j = place(point[1], limits[2], limits[3]);
        counts[i * bins + j] += 1.0;
    }
    let total = plane.rows() as f64;
    counts.iter_mut().for_each(|count| *count /= total);
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_answers() {
        // Two cells between the limits along x, one along y; shares (3/4, 1/4) and (1/4, 3/4).
        let limits = [0.0, 2.0, 0.0, 1.0];
        let rows = |left: usize| -> Vec<f64> {
            (0..4)
                .flat_map(|k| [if k < left { 0.5 } else { 1.5 }, 0.25])
                .collect()
        };
        let (p, q) = (rows(3), rows(1));
        let (p, q) = (Plane::new(&p).unwrap(), Plane::new(&q).unwrap());
        let found = pmf_error(&p, &q, 4, limits).unwrap();
        assert!((found - 3_f64.ln().powi(2)).abs() < 1e-12);
        assert_eq!(pmf_error(&p, &p, 4, limits).unwrap(), 0.0);
        // One that lies beyond the limits: its cell is empty in the other, and counts with 1e-6 there.
        let outside = [0.5, 0.25, 0.5, 0.25, 0.5, 0.25, 7.0, 0.25];
        let found = pmf_error(&Plane::new(&outside).unwrap(), &p, 4, limits).unwrap();
        let (weight, error) = (0.125 + 0.5e-6, (0.25_f64.ln() - 1e-6_f64.ln()).powi(2));
        let expected = 2.0 * weight * error / (0.75 + 2.0 * weight);
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        assert!(pmf_error(&p, &q, 2, limits).is_err());
        assert!(pmf_error(&p, &q, 4, [1.0, 1.0, 0.0, 1.0]).is_err());
    }
}
