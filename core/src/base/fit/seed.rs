//! Starts of the iteration: k-means++ (Arthur and Vassilvitskii 2007) with a few trials per centre, then some steps of Lloyd.

use crate::rng::Stream;

/// Steps of Lloyd's iteration: a start need not be converged.
const STEPS: usize = 12;
/// Rows the centres are looked for in.
const MOST_ROWS: usize = 8000;

/// The cluster of each row. Distances are between `asinh` of the coordinates: as they are within a few units, logarithmic beyond,
/// so that a heavy tail is a few clusters by size and not one cluster per outlier.
pub(super) fn clusters(rows: &[f64], dim: usize, count: usize, stream: &mut Stream) -> Vec<usize> {
    let squashed: Vec<f64> = rows.iter().map(|x| x.asinh()).collect();
    let n = rows.len() / dim;
    if count <= 1 {
        return vec![0; n];
    }
    let every = n.div_ceil(MOST_ROWS);
    let sample: Vec<&[f64]> = squashed.chunks_exact(dim).step_by(every).collect();
    let mut centres = first_centres(&sample, count, stream);
    for _ in 0..STEPS {
        let (mut sums, mut counts) = (vec![0.0; count * dim], vec![0.0; count]);
        for row in &sample {
            let k = nearest(&centres, row).0;
            counts[k] += 1.0;
            crate::system::matrix::add(1.0, row, &mut sums[k * dim..][..dim]);
        }
        for ((centre, sum), count) in centres
            .chunks_exact_mut(dim)
            .zip(sums.chunks_exact(dim))
            .zip(&counts)
        {
            if *count > 0.0 {
                for (c, s) in centre.iter_mut().zip(sum) {
                    *c = s / count;
                }
            }
        }
    }
    let rows = squashed.chunks_exact(dim);
    rows.map(|row| nearest(&centres, row).0).collect()
}

/// Each next centre is drawn with probability proportional to the squared distance to those before; of some draws the one that
/// lowers the sum most is kept.
fn first_centres(rows: &[&[f64]], count: usize, stream: &mut Stream) -> Vec<f64> {
    let trials = 2 + (count as f64).ln() as usize;
    let mut centres = rows[stream.below(rows.len() as u64) as usize].to_vec();
    let mut away: Vec<f64> = rows.iter().map(|row| distance(&centres, row)).collect();
    for _ in 1..count {
        let total: f64 = away.iter().sum();
        let mut best: Option<(f64, Vec<f64>, usize)> = None;
        for _ in 0..trials {
            let mut left = stream.uniform() * total;
            let drawn = away.iter().position(|d| {
                left -= d;
                left < 0.0
            });
            let at = drawn.unwrap_or(rows.len() - 1);
            let closer: Vec<f64> = rows
                .iter()
                .zip(&away)
                .map(|(row, d)| d.min(distance(rows[at], row)))
                .collect();
            let sum: f64 = closer.iter().sum();
            if best.as_ref().is_none_or(|(least, ..)| sum < *least) {
                best = Some((sum, closer, at));
            }
        }
        if let Some((_, closer, at)) = best {
            away = closer;
            centres.extend_from_slice(rows[at]);
        }
    }
    centres
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

fn nearest(centres: &[f64], row: &[f64]) -> (usize, f64) {
    let all = centres.chunks_exact(row.len()).enumerate();
    all.map(|(k, centre)| (k, distance(centre, row)))
        .fold((0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    #[test]
    fn separate_groups_are_found_and_outliers_do_not_take_all_centres() {
        // Groups of 300, 200 and 100 rows, and five far rows of very different size.
        let mut rows = vec![];
        for (k, n) in [300, 200, 100].into_iter().enumerate() {
            for i in 0..n {
                let mut stream = Stream::new(2, Purpose::Test, k as u64, i);
                let centre = [-2.0, 0.5, 3.0][k];
                rows.extend([centre + 0.2 * stream.normal(), 0.2 * stream.normal()]);
            }
        }
        let labels = clusters(&rows, 2, 3, &mut Stream::new(1, Purpose::Test, 0, 0));
        let of = |i: usize| labels[i];
        assert!(of(0) != of(300) && of(300) != of(500) && of(0) != of(500));
        assert!((0..300).all(|i| of(i) == of(0)) && (500..600).all(|i| of(i) == of(500)));
        for far in [1e3, -4e4, 2e5, 9e5, -1e6] {
            rows.extend([far, 0.0]);
        }
        let labels = clusters(&rows, 2, 5, &mut Stream::new(1, Purpose::Test, 0, 0));
        let core: std::collections::HashSet<usize> = labels[..600].iter().copied().collect();
        assert!(core.len() >= 2, "{core:?}");
        assert_eq!(
            clusters(&rows, 2, 1, &mut Stream::new(1, Purpose::Test, 0, 0)),
            vec![0; 605]
        );
    }
}
