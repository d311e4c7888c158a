//! Blindness: two modes whose weights change. Densities differ, scores and time scores hardly do, and the probabilities of a
//! classifier of noise levels do. One cell for each kind of loss: by how much it rises, beside its size.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::CellRecord;
use diffclf::energy::exact::ExactPath;
use diffclf::metric::{BlindnessPanels, blindness, blindness_panels};
use diffclf::process::Process;
use diffclf::system::{Covariance, GaussianMixture};
use diffclf_report::curve::{Curve, Series};
use diffclf_report::page::Figure;
use diffclf_run::error::{Error, Result};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// `[experiment]` of blindness.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blindness {
    /// The classes; derivatives are compared at the first.
    times: Vec<f64>,
    /// Weight of the left mode.
    reference: f64,
    /// Other weights of it.
    weights: Vec<f64>,
    means: [f64; 2],
    variances: [f64; 2],
    samples: usize,
    quick_samples: usize,
}

/// The comparison at a budget.
pub struct Comparison<'a> {
    blindness: &'a Blindness,
    samples: usize,
}

/// Cells, and what each shows.
const CELLS: [&str; 4] = ["score", "time-score", "fokker-planck", "posterior"];
/// Half the width of the line that is shown, and its points.
const HALF: f64 = 3.0;
const POINTS: usize = 301;

impl Blindness {
    /// The comparison at a budget.
    pub fn at(&self, quick: bool) -> Comparison<'_> {
        Comparison {
            blindness: self,
            samples: if quick {
                self.quick_samples
            } else {
                self.samples
            },
        }
    }

    fn path(&self, weight: f64) -> Result<ExactPath> {
        let mixture = GaussianMixture::new(
            1,
            vec![weight, 1.0 - weight],
            self.means.to_vec(),
            Covariance::Isotropic(self.variances.to_vec()),
        )?;
        Ok(ExactPath::new(Process::by_name("vp")?, mixture, None)?)
    }

    fn panels(&self, weight: f64, points: &[f64]) -> Result<BlindnessPanels> {
        Ok(blindness_panels(&self.path(weight)?, &self.times, points)?)
    }
}

impl Experiment for Comparison<'_> {
    fn cells(&self) -> Vec<String> {
        CELLS.map(String::from).to_vec()
    }

    fn settings(&self) -> Result<serde_json::Value> {
        let Blindness {
            times,
            reference,
            weights,
            means,
            variances,
            ..
        } = self.blindness;
        Ok(json!({
            "times": times, "reference": reference, "weights": weights, "means": means, "variances": variances,
            "samples": self.samples
        }))
    }

    fn run(&self, cell: &str, _bench: &Bench) -> Result<CellRecord> {
        let b = self.blindness;
        let reference = b.path(b.reference)?;
        let (mut rises, mut relative) = (Vec::new(), Vec::new());
        for &weight in &b.weights {
            let found = blindness(&reference, &b.path(weight)?, &b.times, self.samples, 0)?;
            let (rise, size) = match cell {
                "score" => (found.score, found.score_size),
                "time-score" => (found.time_score, found.time_score_size),
                "fokker-planck" => (found.fokker_planck, found.time_score_size),
                "posterior" => (found.classification, found.classification_size),
                _ => return Err(Error::Failed(format!("{cell} is no comparison"))),
            };
            rises.push((weight, rise.mean));
            relative.push(rise.mean / size.mean);
        }
        let mean = relative.iter().sum::<f64>() / relative.len() as f64;
        let largest = rises.iter().fold(0.0, |m: f64, r| m.max(r.1));
        let figures = [
            ("relative_rise", mean.into()),
            ("largest_rise", largest.into()),
        ];
        Ok(CellRecord {
            figures: figures
                .map(|(name, figure)| (name.to_string(), figure))
                .into(),
            series: [("rise".to_string(), rises)].into(),
            ..CellRecord::default()
        })
    }

    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let b = self.blindness;
        let step = 2.0 * HALF / (POINTS - 1) as f64;
        let points: Vec<f64> = (0..POINTS).map(|k| -HALF + k as f64 * step).collect();
        let mut all = vec![("reference".to_string(), b.panels(b.reference, &points)?)];
        for &weight in &b.weights {
            all.push((format!("left weight {weight}"), b.panels(weight, &points)?));
        }
        let time = b.times[0];
        type Line = fn(&BlindnessPanels) -> &[f64];
        let panels: [(&str, String, Line); 4] = [
            ("density", format!("density at t = {time}"), |p| &p.density),
            ("score", format!("score at t = {time}"), |p| &p.score),
            ("time-score", format!("time score at t = {time}"), |p| {
                &p.time_score
            }),
            ("posterior", format!("p(t = {time} | y)"), |p| &p.posterior),
        ];
        let picture = |(name, label, line): (&str, String, Line)| {
            let series: Vec<Series> = all
                .iter()
                .map(|(name, panel)| Series {
                    name: name.clone(),
                    points: points
                        .iter()
                        .copied()
                        .zip(line(panel).iter().copied())
                        .collect(),
                })
                .collect();
            let alt = format!("{label} for several weights of the left mode");
            let svg = Curve {
                alt: &alt,
                x_label: "y",
                y_label: &label,
                x_logarithmic: false,
                y_logarithmic: false,
                series: &series,
            }
            .svg();
            Picture {
                name: name.into(),
                figure: Figure {
                    svg,
                    caption: format!(
                        "{label}: the reference has the left weight {:.3}",
                        b.reference
                    ),
                },
            }
        };
        Ok(panels.map(picture).into())
    }
}
