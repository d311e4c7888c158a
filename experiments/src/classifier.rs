//! The classifier of three noise levels during training: what it says of every point of the plane, and the densities
//! that follow. The target is `0.3 N((-1, 0), 0.02 I) + 0.7 N((1, 0), 0.02 I)` under a variance-preserving process.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::CellRecord;
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Coordinates, Energy, LearnedEnergy, ModelSpec};
use diffclf::metric::{Evaluation, EvaluationSettings};
use diffclf::network::NetworkSpec;
use diffclf::process::sampler::Grid;
use diffclf::process::{Process, Spacing, TimeGrid, TimeSampler};
use diffclf::system::{Covariance, GaussianMixture};
use diffclf::train::{Decay, Endpoints, InMemory, Shuffled, TrainSettings, Trainer, finish};
use diffclf_report::axis::Axis;
use diffclf_report::curve::{Curve, Series};
use diffclf_report::field::Field;
use diffclf_report::page::Figure;
use diffclf_run::error::{Error, Result};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Training rows.
const ROWS: usize = 50_000;
/// The plane that is shown: x from -2.4 to 2.4, y from -1.8 to 1.8.
const FRAME: [f64; 2] = [2.4, 1.8];
const COLUMNS: usize = 96;
const LINES: usize = 72;
/// Dots of each level.
const DOTS: usize = 120;
/// Weight of the left mode.
const LEFT_WEIGHT: f64 = 0.3;

/// `[experiment]` of the classifier.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classifier {
    /// The first and the last of three equidistant times.
    times: [f64; 2],
    batch: usize,
    rate: f64,
    /// Steps after which to look.
    full: Vec<u64>,
    quick: Vec<u64>,
}

/// The looks of a budget.
pub struct Looks<'a> {
    classifier: &'a Classifier,
    steps: &'a [u64],
}

impl Classifier {
    /// The looks of a budget.
    pub fn at(&self, quick: bool) -> Looks<'_> {
        Looks {
            classifier: self,
            steps: if quick { &self.quick } else { &self.full },
        }
    }
}

fn exact() -> Result<ExactPath> {
    let mixture = GaussianMixture::new(
        2,
        vec![LEFT_WEIGHT, 1.0 - LEFT_WEIGHT],
        vec![-1.0, 0.0, 1.0, 0.0],
        Covariance::Isotropic(vec![0.02, 0.02]),
    )?;
    Ok(ExactPath::new(Process::by_name("vp")?, mixture, None)?)
}

impl Looks<'_> {
    fn spec(&self, exact: &ExactPath) -> Result<ModelSpec> {
        let [first, last] = self.classifier.times;
        let mut spec = ModelSpec::new(2, *exact.process());
        spec.grid = TimeGrid::new(3, first, last, Spacing::Linear {})?;
        spec.network = NetworkSpec::Mlp {
            width: 64,
            depth: 3,
        };
        (spec.mean, spec.variance) = (exact.start().mean(), exact.start().variance());
        Ok(spec)
    }

    /// Trains for `steps` steps from the start: the same path for every look.
    fn train(&self, exact: &ExactPath, steps: u64, bench: &Bench) -> Result<LearnedEnergy<f32>> {
        let spec = self.spec(exact)?;
        let rows: Vec<f32> = exact
            .start()
            .sample(ROWS, 1)
            .0
            .iter()
            .map(|x| *x as f32)
            .collect();
        let table = Arc::new(InMemory::new(rows, 2));
        let identity = Coordinates::identity(2);
        let (source, _) = Shuffled::split(0, table, &identity, self.classifier.batch, 1, 0);
        // At least one step is needed to build a trainer; at 0 it is not taken.
        let mut settings = TrainSettings::two_stages(self.classifier.batch, 0, steps.max(1), 3);
        settings.times = TimeSampler::Grid(Grid {});
        settings.average = None;
        for stage in &mut settings.stages {
            (stage.rate.peak, stage.rate.decay) = (self.classifier.rate, Decay::Constant);
        }
        let from = Endpoints {
            start: Arc::new(source),
            end: None,
        };
        let mut trainer =
            Trainer::new(&spec, &settings, from, None, bench.pool.clone(), bench.isa)?;
        if steps > 0 {
            finish(&mut trainer)?;
        }
        let params = trainer.averaged().to_vec();
        Ok(LearnedEnergy::new(
            spec,
            params,
            bench.pool.clone(),
            bench.isa,
        )?)
    }
}

/// Centres of the cells of the frame, row after row from below.
fn centres() -> Vec<f64> {
    let at = |half: f64, k: usize, n: usize| half * (2.0 * (k as f64 + 0.5) / n as f64 - 1.0);
    (0..COLUMNS * LINES)
        .flat_map(|k| {
            [
                at(FRAME[0], k % COLUMNS, COLUMNS),
                at(FRAME[1], k / COLUMNS, LINES),
            ]
        })
        .collect()
}

/// `p(level | y)` at every cell: three numbers a cell.
fn posteriors(energy: &dyn Energy, times: &[f64]) -> Vec<f64> {
    let mut grid = vec![0.0; COLUMNS * LINES * 3];
    energy.log_density_grid(times, &centres(), &mut grid);
    for row in grid.chunks_exact_mut(3) {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|x| *x = (*x - top).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
    grid
}

/// The density of the first coordinate at a time, by summing cells and normalising on the frame.
fn marginal(energy: &dyn Energy, time: f64) -> Vec<(f64, f64)> {
    let points = centres();
    let mut values = vec![0.0; COLUMNS * LINES];
    energy.log_density(&[time], &points, &mut values);
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut columns = vec![0.0; COLUMNS];
    for (k, value) in values.iter().enumerate() {
        columns[k % COLUMNS] += (value - top).exp();
    }
    let sum: f64 = columns.iter().sum::<f64>() * 2.0 * FRAME[0] / COLUMNS as f64;
    let place = |k: usize| points[2 * k];
    columns
        .iter()
        .enumerate()
        .map(|(k, c)| (place(k), c / sum))
        .collect()
}

impl Experiment for Looks<'_> {
    fn cells(&self) -> Vec<String> {
        self.steps
            .iter()
            .map(|step| format!("step-{step}"))
            .collect()
    }

    fn settings(&self) -> Result<serde_json::Value> {
        let Classifier {
            times, batch, rate, ..
        } = self.classifier;
        Ok(json!({"times": times, "batch": batch, "rate": rate, "steps": self.steps}))
    }

    fn run(&self, cell: &str, bench: &Bench) -> Result<CellRecord> {
        let step = cell
            .strip_prefix("step-")
            .and_then(|text| text.parse().ok());
        let Some(step) = step else {
            return Err(Error::Failed(format!("{cell} is no look")));
        };
        let exact = exact()?;
        let energy = self.train(&exact, step, bench)?;
        let grid = self.spec(&exact)?.grid;
        let settings = EvaluationSettings {
            samples_per_level: 4096,
            classification_samples_per_level: 4096,
            ..EvaluationSettings::default()
        };
        let found = Evaluation::run(&energy, &exact, &grid, settings, &mut |_, _| ())?;
        let weight = found.mode_weights.model[0];
        let figures = [
            ("classification", found.average.classification.into()),
            ("excess", found.average.excess.into()),
            ("left_weight", weight.into()),
            ("weight_error", (weight.mean - LEFT_WEIGHT).abs().into()),
        ];
        let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (k, &time) in grid.times().iter().enumerate() {
            series.insert(format!("learned-{k}"), marginal(&energy, time));
            series.insert(format!("exact-{k}"), marginal(&exact, time));
        }
        // The cells' posteriors, flattened: place and value.
        let flat = posteriors(&energy, grid.times());
        let line = flat.iter().enumerate().map(|(k, p)| (k as f64, round(*p)));
        series.insert("posterior".into(), line.collect());
        Ok(CellRecord {
            figures: figures
                .map(|(name, figure)| (name.to_string(), figure))
                .into(),
            series,
            ..CellRecord::default()
        })
    }

    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let exact = exact()?;
        let grid = self.spec(&exact)?.grid;
        let mut dots = Vec::new();
        for (k, &time) in grid.times().iter().enumerate() {
            let mut colour = [40; 3];
            colour[k] = 255;
            let points = exact.sample(time, DOTS, 3);
            dots.extend(points.chunks_exact(2).map(|p| ([p[0], p[1]], colour)));
        }
        let mut pictures = Vec::new();
        for &step in self.steps {
            let name = format!("step-{step}");
            let Some(record) = records.get(&name) else {
                continue;
            };
            // Kept cells are without it.
            if let Some(posterior) = record.series.get("posterior") {
                let colours: Vec<[u8; 3]> = posterior
                    .chunks_exact(3)
                    .map(|cell| std::array::from_fn(|k| (255.0 * cell[k].1).round() as u8))
                    .collect();
                let alt = format!("posterior probabilities of the three levels after {step} steps");
                let svg = Field {
                    alt: &alt,
                    x: Axis::linear("x1", -FRAME[0], FRAME[0]),
                    y: Axis::linear("x2", -FRAME[1], FRAME[1]),
                    columns: COLUMNS,
                    colours: &colours,
                    dots: &dots,
                }
                .svg();
                pictures.push(Picture {
                name: format!("posterior-{step}"),
                figure: Figure {
                    svg,
                    caption: format!(
                        "Step {step}: p(level | y) as red, green and blue; dots are samples of the levels"
                    ),
                },
            });
            }
            // Learned and exact of a level beside each other in the legend.
            let series: Vec<Series> = (0..3)
                .flat_map(|k| ["learned", "exact"].map(|kind| (kind, k)))
                .filter_map(|(kind, k)| {
                    Some(Series {
                        name: format!("{kind}, t = {:.1}", grid.times()[k]),
                        points: record.series.get(&format!("{kind}-{k}"))?.clone(),
                    })
                })
                .collect();
            let alt = format!("densities of the first coordinate after {step} steps");
            let svg = Curve {
                alt: &alt,
                x_label: "x1",
                y_label: "density",
                x_logarithmic: false,
                y_logarithmic: false,
                series: &series,
            }
            .svg();
            pictures.push(Picture {
                name: format!("density-{step}"),
                figure: Figure {
                    svg,
                    caption: format!("Step {step}: learned and exact densities of x1"),
                },
            });
        }
        Ok(pictures)
    }
}

/// Three digits are more than a picture shows.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
