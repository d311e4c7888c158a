//! Independent samples and long dynamics on one learned energy, each beside a reference: what experiments on dynamics share.

use crate::Bench;
use crate::cell::{CellRecord, Figure as Number};
use diffclf::metric::{Plane, Surface, jensen_shannon, pmf_error};
use diffclf::model::Model;
use diffclf_report::axis::Axis;
use diffclf_report::heatmap::Heatmap;
use diffclf_report::observation::HIGHEST;
use diffclf_run::error::Result;
use diffclf_run::generate::Generation;
use std::collections::BTreeMap;
use std::f64::consts::LN_2;

/// Cells along an axis of the surfaces that are kept for pictures.
const DRAWN: usize = 40;

/// How two sets of points in a plane are compared.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Cells of the divergence along an axis.
    pub js_bins: usize,
    /// Limits of the divergence; the range of both sets if absent.
    pub js_limits: Option<[f64; 4]>,
    /// Cells of the PMF error along an axis, two of them outside.
    pub pmf_bins: usize,
    /// The window of the PMF error and of pictures.
    pub window: [f64; 4],
    /// What the axes show.
    pub labels: [&'static str; 2],
}

impl View {
    /// Both distances of points from a reference.
    pub fn distances(&self, points: &[f64], reference: &[f64]) -> Result<(f64, f64)> {
        let (found, reference) = (Plane::new(points)?, Plane::new(reference)?);
        let js = jensen_shannon(&found, &reference, self.js_bins, self.js_limits)?;
        let pmf = pmf_error(&found, &reference, self.pmf_bins, self.window)?;
        Ok((js, pmf))
    }

    /// Adds the distances of one kind of samples to a cell, as `js_KIND` and `pmf_KIND`, and their surface.
    pub fn add(
        &self,
        record: &mut CellRecord,
        kind: &str,
        points: &[f64],
        reference: &[f64],
    ) -> Result<()> {
        // Nothing is left where the reference is: as far apart as two laws can be.
        if points.len() < 8 {
            record.figures.insert(format!("js_{kind}"), LN_2.into());
            return Ok(());
        }
        let (js, pmf) = self.distances(points, reference)?;
        record.figures.insert(format!("js_{kind}"), js.into());
        record.figures.insert(format!("pmf_{kind}"), pmf.into());
        let surface = Plane::new(points)?.surface(DRAWN, self.window)?;
        record
            .series
            .insert(format!("surface {kind}"), kept(&surface));
        Ok(())
    }

    /// A picture of a surface that a cell has kept.
    pub fn picture(&self, kept: &[(f64, f64)], caption: &str) -> String {
        let mut values = vec![f64::NAN; DRAWN * DRAWN];
        for (cell, value) in kept {
            let cell = *cell as usize;
            // A picture has rows of y, the surface columns of x.
            if let Some(out) = values.get_mut(cell % DRAWN * DRAWN + cell / DRAWN) {
                *out = *value;
            }
        }
        let [x0, x1, y0, y1] = self.window;
        Heatmap {
            alt: caption,
            x: Axis::linear(self.labels[0], x0, x1),
            y: Axis::linear(self.labels[1], y0, y1),
            columns: DRAWN,
            values: &values,
            colour: Axis::linear("free energy (kT)", 0.0, HIGHEST),
            contours: &[1.0, 2.0, 4.0, 6.0, 8.0],
        }
        .svg()
    }
}

/// Cells of a surface that points have seen, up to 10 kT: number and free energy.
fn kept(surface: &Surface) -> Vec<(f64, f64)> {
    let cells = surface.values.iter().enumerate();
    cells
        .filter(|(_, value)| **value < HIGHEST)
        .map(|(cell, value)| (cell as f64, *value))
        .collect()
}

/// Independent samples of a model, in the coordinates of its data.
pub fn independent(
    bench: &Bench,
    model: &Model,
    number: usize,
    steps: usize,
    seed: u64,
) -> Result<Vec<f64>> {
    let energy = model.energy(bench.pool.clone(), bench.isa)?;
    let asked = Generation {
        number: Some(number),
        method: Some("reverse-sde".into()),
        steps: Some(steps),
        seed,
        ..Generation::default()
    };
    let done = asked.run(&model.content, &energy, &*bench.watch)?;
    Ok(done.finish(&format!("{number} independent samples")).points)
}

/// The rows of chains after their first `skipped` frames, chain after chain.
pub fn after(points: &[f64], chains: usize, dim: usize, skipped: usize) -> Vec<f64> {
    let length = points.len() / chains;
    points
        .chunks_exact(length)
        .flat_map(|chain| chain[skipped * dim..].iter().copied())
        .collect()
}

/// Only rows of numbers no farther out than `limit`, and how many others there were.
pub fn whole(points: &[f64], dim: usize, limit: f64) -> (Vec<f64>, usize) {
    let inside = |row: &&[f64]| row.iter().all(|x| x.abs() <= limit);
    let kept: Vec<f64> = points
        .chunks_exact(dim)
        .filter(inside)
        .flatten()
        .copied()
        .collect();
    let lost = (points.len() - kept.len()) / dim;
    (kept, lost)
}

/// Names and figures of a cell.
pub fn record(figures: Vec<(&str, Number)>) -> CellRecord {
    CellRecord {
        figures: figures
            .into_iter()
            .map(|(name, figure)| (name.to_string(), figure))
            .collect(),
        series: BTreeMap::new(),
        ..CellRecord::default()
    }
}
