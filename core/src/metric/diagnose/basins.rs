//! Basins of a cloud of points: peaks of a nearest-neighbour density estimate that stand clear of the passes around them.
//!
//! The method is ToMATo (Chazal, Guibas, Oudot, Skraba, J. ACM 60, 2013): points climb to their densest neighbour, and a
//! peak is merged into a higher one across the highest pass between them unless it stands out by a factor. The
//! estimate is log f = -d log r_k with r_k the distance to the k-th neighbour; its standard deviation is 1/sqrt(k) in
//! every dimension, so the factor follows from k: five of these deviations, and at least e. Nothing is left to choose.

/// Peaks must stand out by at least this much in log-density, however many points there are.
const PROMINENCE: f64 = 1.0;
/// Standard deviations of the estimate that a peak must stand out by.
const DEVIATIONS: f64 = 5.0;

/// Points with the basin that each belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Basins {
    dim: usize,
    points: Vec<f64>,
    labels: Vec<usize>,
    count: usize,
}

impl Basins {
    /// Finds the basins of a cloud, the fullest first. Takes time quadratic in the number of points.
    pub fn of(points: &[f64], dim: usize) -> Self {
        let n = points.len() / dim;
        let k = neighbours(n);
        let threshold = PROMINENCE.max(DEVIATIONS / (k as f64).sqrt());
        let mut links: Vec<Vec<u32>> = vec![Vec::with_capacity(2 * k); n];
        let mut height = vec![0.0; n];
        let mut distances: Vec<(f64, u32)> = Vec::with_capacity(n);
        for i in 0..n {
            let from = &points[i * dim..][..dim];
            distances.clear();
            distances.extend(points.chunks_exact(dim).enumerate().map(|(j, to)| {
                // The point itself comes first, also before its copies.
                let square = if j == i { -1.0 } else { squared(from, to) };
                (square, j as u32)
            }));
            let order = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0);
            distances.select_nth_unstable_by(k, order);
            let nearest = &distances[..=k];
            // Copies of a point have no distance; the smallest positive number stands for it.
            let radius = nearest.iter().map(|d| d.0).fold(0.0, f64::max);
            height[i] = -0.5 * dim as f64 * radius.max(f64::MIN_POSITIVE).ln();
            for (_, j) in nearest.iter().filter(|d| d.1 != i as u32) {
                links[i].push(*j);
                links[*j as usize].push(i as u32);
            }
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| height[*b].total_cmp(&height[*a]).then(a.cmp(b)));
        let mut rank = vec![0; n];
        for (place, point) in order.iter().enumerate() {
            rank[*point] = place;
        }
        // parent[i] leads to the peak of i; a peak is its own parent.
        let mut parent: Vec<usize> = (0..n).collect();
        for &i in &order {
            let higher = links[i].iter().map(|j| *j as usize);
            let higher: Vec<usize> = higher.filter(|j| rank[*j] < rank[i]).collect();
            let Some(best) = higher.iter().copied().min_by_key(|j| rank[*j]) else {
                continue;
            };
            parent[i] = root(&mut parent, best);
            for j in higher {
                let (mine, other) = (root(&mut parent, i), root(&mut parent, j));
                if mine == other {
                    continue;
                }
                let (high, low) = if rank[mine] < rank[other] {
                    (mine, other)
                } else {
                    (other, mine)
                };
                if height[low] - height[i] < threshold {
                    parent[low] = high;
                }
            }
        }
        let roots: Vec<usize> = (0..n).map(|i| root(&mut parent, i)).collect();
        let mut sizes: Vec<(usize, usize)> = Vec::new();
        let mut number = vec![usize::MAX; n];
        for &peak in &roots {
            if number[peak] == usize::MAX {
                number[peak] = sizes.len();
                sizes.push((0, peak));
            }
            sizes[number[peak]].0 += 1;
        }
        sizes.sort_by_key(|(size, peak)| (usize::MAX - size, rank[*peak]));
        for (label, (_, peak)) in sizes.iter().enumerate() {
            number[*peak] = label;
        }
        Self {
            dim,
            points: points.to_vec(),
            labels: roots.iter().map(|peak| number[*peak]).collect(),
            count: sizes.len(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The points in which they were found.
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    /// Basin of each of these points.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// Basin of any point: that of the nearest of the points in which they were found.
    pub fn of_point(&self, point: &[f64]) -> usize {
        let distances = self.points.chunks_exact(self.dim).zip(&self.labels);
        let nearest = distances
            .map(|(other, label)| (squared(point, other), *label))
            .fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a });
        nearest.1
    }
}

/// Neighbours of the density estimate: few enough that a basin of one percent of the points is seen.
fn neighbours(n: usize) -> usize {
    ((0.375 * (n as f64).sqrt()) as usize)
        .max(10)
        .min(n.saturating_sub(1))
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn root(parent: &mut [usize], mut i: usize) -> usize {
    while parent[i] != i {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Covariance, GaussianMixture, System, mog40};

    fn mixture(weights: Vec<f64>, means: Vec<f64>, variances: Vec<f64>) -> GaussianMixture {
        GaussianMixture::new(2, weights, means, Covariance::Isotropic(variances)).unwrap()
    }

    #[test]
    fn modes_are_found_with_their_shares() {
        let target = mixture(
            vec![0.7, 0.2, 0.1],
            vec![0.0, 0.0, 4.0, 1.0, -1.0, -3.5],
            vec![0.3, 0.1, 0.2],
        );
        let (points, truth) = target.sample(2000, 3);
        let basins = Basins::of(&points, 2);
        assert_eq!(basins.count(), 3);
        // Modes are five deviations apart and more: next to no point is on the wrong side.
        let wrong = basins.labels().iter().zip(&truth).filter(|(a, b)| a != b);
        assert!(wrong.count() < 10);
        assert_eq!(basins.of_point(&[4.1, 0.8]), 1);
    }

    /// Flat and curved densities have one peak, and so have clouds of few points.
    #[test]
    fn chance_makes_no_basins() {
        for (n, seed) in [(100, 1), (500, 2), (2000, 3), (2000, 4)] {
            let one = mixture(vec![1.0], vec![1.0, -2.0], vec![0.5]);
            assert_eq!(Basins::of(&one.sample(n, seed).0, 2).count(), 1, "{n}");
        }
        let flat: Vec<f64> = System::by_name("checkerboard", 2, 0)
            .unwrap()
            .sample(4096, 1)
            .iter()
            .map(|x| f64::from(*x))
            .collect();
        // Eight squares that touch at corners: not one for every fluctuation.
        assert!(Basins::of(&flat, 2).count() <= 8);
        let copies = vec![0.5; 2 * 64];
        assert_eq!(Basins::of(&copies, 2).count(), 1);
    }

    #[test]
    fn many_modes_in_eight_dimensions_are_found() {
        let target = mog40(8, 0).unwrap();
        let (points, _) = target.sample(4096, 2);
        assert_eq!(Basins::of(&points, 8).count(), 40);
    }
}
