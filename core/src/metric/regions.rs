//! Regions of the plane whose masses under a composition are known: the paper's two composition examples as numbers.

use crate::system::System;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["ouyang2026diffclf"];

/// A division of the plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regions {
    /// The four quadrants, for the equal OR of `upper-pair` and `lower-pair`: one mode in each.
    Quadrants,
    /// Where rings of radii 3 and 5 cross the four arms of the boxes, for `rings` AND `boxes`: eight pieces.
    RingsAndBoxes,
}

impl Regions {
    /// The composition whose masses are known there.
    pub fn composition(&self) -> &'static str {
        match self {
            Regions::Quadrants => "upper-pair or lower-pair",
            Regions::RingsAndBoxes => "rings and boxes",
        }
    }

    /// Names of the regions, in the order of [`Regions::truth`]; the last one of the shares is what lies in none.
    pub fn names(&self) -> Vec<String> {
        match self {
            Regions::Quadrants => ["upper left", "upper right", "lower left", "lower right"]
                .map(String::from)
                .to_vec(),
            Regions::RingsAndBoxes => [3, 5]
                .iter()
                .flat_map(|r| {
                    ["left", "top", "right", "bottom"].map(|arm| format!("ring {r}, {arm}"))
                })
                .collect(),
        }
    }

    /// Which region a point lies in.
    pub fn place(&self, point: &[f64]) -> Option<usize> {
        let (x, y) = (point[0], point[1]);
        match self {
            Regions::Quadrants => Some(usize::from(x > 0.0) + 2 * usize::from(y < 0.0)),
            Regions::RingsAndBoxes => {
                let distance = x.hypot(y);
                // Rings are 0.1 wide: halfway between them nothing should be.
                let ring = match distance {
                    d if (2.0..4.0).contains(&d) => 0,
                    d if (4.0..6.0).contains(&d) => 1,
                    _ => return None,
                };
                let arm = match (x.abs() > y.abs(), x > 0.0, y > 0.0) {
                    (true, false, _) => 0,
                    (false, _, true) => 1,
                    (true, true, _) => 2,
                    (false, _, false) => 3,
                };
                Some(4 * ring + arm)
            }
        }
    }

    /// The exact masses: those of the modes, or the integral of the product over a fine grid.
    pub fn truth(&self) -> Result<Vec<f64>> {
        match self {
            Regions::Quadrants => Ok(vec![0.15, 0.35, 0.35, 0.15]),
            Regions::RingsAndBoxes => {
                let (rings, boxes) = (
                    System::by_name("rings", 2, 0)?,
                    System::by_name("boxes", 2, 0)?,
                );
                let (half, cells) = (6.5, 1300);
                let width = 2.0 * half / f64::from(cells);
                let mut masses = [0.0; 8];
                for k in 0..cells * cells {
                    let at = |i: i32| -half + (f64::from(i) + 0.5) * width;
                    let point = [at(k / cells), at(k % cells)];
                    let density = boxes
                        .log_density(&point)
                        .zip(rings.log_density(&point))
                        .map_or(0.0, |(a, b)| (a + b).exp());
                    if let Some(place) = self.place(&point) {
                        masses[place] += density;
                    }
                }
                let total: f64 = masses.iter().sum();
                Ok(masses.iter().map(|mass| mass / total).collect())
            }
        }
    }

    /// Share of the weight in each region, and in none (the last number).
    pub fn shares(&self, points: &[f64], weights: &[f64]) -> Result<Vec<f64>> {
        if points.len() != 2 * weights.len() {
            return Err(Error::Shape {
                what: "the points of the regions".into(),
                found: format!("{} numbers", points.len()),
                expected: format!("{}, two for each weight", 2 * weights.len()),
            });
        }
        let mut shares = vec![0.0; self.names().len() + 1];
        let outside = shares.len() - 1;
        for (point, weight) in points.chunks_exact(2).zip(weights) {
            shares[self.place(point).unwrap_or(outside)] += weight;
        }
        Ok(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_masses_are_those_of_arcs() {
        // Rings have the same density along their arcs. Within an arm of half width w the ring of radius r has the arc
        // 2 r asin(w / r), for w = 1.4: 2.913 and 2.838 (radii blurred by 0.1: to 1 %).
        let truth = Regions::RingsAndBoxes.truth().unwrap();
        let arcs = [3.0, 5.0].map(|r: f64| 2.0 * r * (1.4 / r).asin());
        for (k, found) in truth.iter().enumerate() {
            let exact = arcs[k / 4] / (4.0 * (arcs[0] + arcs[1]));
            assert!((found / exact - 1.0).abs() < 0.01, "{k}: {found} {exact}");
        }
        assert!((truth.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(Regions::RingsAndBoxes.names().len(), 8);
    }

    #[test]
    fn points_find_their_region() {
        let regions = Regions::RingsAndBoxes;
        for (point, place) in [
            ([-3.0, 0.2], 0),
            ([0.1, 3.1], 1),
            ([5.0, -1.0], 6),
            ([0.4, -4.9], 7),
        ] {
            assert_eq!(regions.place(&point), Some(place));
        }
        assert_eq!(regions.place(&[0.7, 0.7]), None);
        assert_eq!(Regions::Quadrants.place(&[0.5, -0.5]), Some(3));
        let shares = regions
            .shares(&[-3.0, 0.2, 0.0, 0.0], &[0.75, 0.25])
            .unwrap();
        assert_eq!((shares[0], shares[8]), (0.75, 0.25));
        assert!(regions.shares(&[1.0], &[1.0]).is_err());
    }
}
