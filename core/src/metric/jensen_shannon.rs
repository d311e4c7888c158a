//! Jensen-Shannon divergence of two samples of points in the plane, by their histograms (Lin 1991); as Plainer et al. 2025 have it.

use super::{Estimate, Plane};
use crate::Result;
use crate::rng::{Permutation, Purpose};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["lin1991divergence", "plainer2025consistent"];

/// `JS = KL(p | m)/2 + KL(q | m)/2` with `m = (p + q)/2`, natural logarithms, from 0 to ln 2; p and q the shares of `bins` by `bins`
/// cells over `limits` (x from and to, y from and to), or over the range of both samples. What lies outside of given limits does not
/// count.
///
/// Finite samples of one law have a divergence of about `cells / (4 n)` from each side: compare with [`floor`](Plane::floor).
pub fn jensen_shannon(
    found: &Plane<'_>,
    reference: &Plane<'_>,
    bins: usize,
    limits: Option<[f64; 4]>,
) -> Result<f64> {
    let limits = match limits {
        Some(limits) => limits,
        None => found.range_with(reference),
    };
    let p = found.shares(bins, limits)?;
    let q = reference.shares(bins, limits)?;
    let part = |p: f64, m: f64| if p > 0.0 { p * (p / m).ln() } else { 0.0 };
    let sum: f64 = p
        .iter()
        .zip(&q)
        .map(|(p, q)| {
            let m = 0.5 * (p + q);
            0.5 * (part(*p, m) + part(*q, m))
        })
        .sum();
    Ok(sum.max(0.0))
}

impl Plane<'_> {
    /// The mean and the spread (over four halvings) of a distance between two halves of this sample. A sample of the same law as a
    /// reference of n rows does not come below about half of it.
    pub fn floor(
        &self,
        distance: impl Fn(&Plane<'_>, &Plane<'_>) -> Result<f64>,
    ) -> Result<Estimate> {
        let mut values = Vec::new();
        for deal in 0..4 {
            let count = self.rows() as u64;
            let order = Permutation::new(0, Purpose::Halve, deal, count);
            let half = |part: std::ops::Range<u64>| -> Vec<f64> {
                let rows = part.map(|k| order.at(k) as usize);
                rows.flat_map(|row| self.points[2 * row..2 * row + 2].iter().copied())
                    .collect()
            };
            let (a, b) = (half(0..count / 2), half(count / 2..count));
            values.push(distance(&Plane::new(&a)?, &Plane::new(&b)?)?);
        }
        let estimate = Estimate::of(&values);
        // The halvings share their rows: the spread itself, not that of a mean.
        Ok(Estimate {
            mean: estimate.mean,
            error: estimate.error * 2.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_answers() {
        // Four cells with shares (1/2, 1/2, 0, 0) and (0, 1/2, 1/4, 1/4).
        let p = [0.1, 0.1, 0.1, 0.9].repeat(2);
        let q = [0.1, 0.9, 0.1, 0.9, 0.9, 0.1, 0.9, 0.9];
        let (p, q) = (Plane::new(&p).unwrap(), Plane::new(&q).unwrap());
        let found = jensen_shannon(&p, &q, 2, Some([0.0, 1.0, 0.0, 1.0])).unwrap();
        // Shares meet in one cell of 1/2 each; elsewhere one of them is alone: ln 2 / 2 of mass 1/2 twice.
        let expected = 0.5 * (0.5 * 2_f64.ln() + 0.5 * 2_f64.ln());
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        assert_eq!(jensen_shannon(&q, &q, 2, None).unwrap(), 0.0);
        let away = [5.0, 5.0, 5.0, 6.0];
        let far = jensen_shannon(&p, &Plane::new(&away).unwrap(), 10, None).unwrap();
        assert!((far - 2_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn agrees_with_scipy() {
        // scipy.spatial.distance.jensenshannon(P, Q)**2 of numpy.histogram2d with 5 bins over the joint range, of the points below.
        let point = |k: usize, a: f64| [(k as f64 * a).sin(), (k as f64 * 0.7 * a).cos() + 0.1 * a];
        let p: Vec<f64> = (0..200).flat_map(|k| point(k, 1.3)).collect();
        let q: Vec<f64> = (0..150).flat_map(|k| point(k, 2.1)).collect();
        let found = jensen_shannon(&Plane::new(&p).unwrap(), &Plane::new(&q).unwrap(), 5, None);
        assert!((found.unwrap() - SCIPY).abs() < 1e-10);
    }
    const SCIPY: f64 = 0.082_893_758_833_735_4;
}
