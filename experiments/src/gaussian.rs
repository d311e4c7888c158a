//! Tables on Gaussian mixtures, whose marginals are exact: dimensions x levels x methods x seeds. Methods share the
//! score-only first stage and have the same number of score evaluations.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::{Record, named};
use crate::stages::{Chosen, Steps, two_stages};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, Prior};
use diffclf::metric::{Comparison, ComparisonSettings, Evaluation, EvaluationSettings, Sample};
use diffclf::model::{Content, Model};
use diffclf::process::TimeGrid;
use diffclf::sample::{Sampler, Task, times_of};
use diffclf_report::curve::{Curve, Series};
use diffclf_report::page::Figure;
use diffclf_report::scatter::{Scatter, axis_of};
use diffclf_run::error::Result;
use diffclf_run::exact::{Systems, exact_path};
use diffclf_run::settings::Settings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Dimensions.
    dims: Vec<usize>,
    /// Numbers of levels N of a row.
    levels: Vec<usize>,
    /// Seeds.
    seeds: Vec<u64>,
    /// Steps of the score stage and of the second one.
    steps: [u64; 2],
    /// Columns of the network, for each dimension above which they change: `[[0, 64], [32, 256]]`.
    #[serde(default)]
    widths: Vec<(usize, usize)>,
    /// Levels of the grid of the evaluation.
    grid: usize,
    /// Exact samples per level.
    samples: usize,
    /// How many of them are classified.
    classified: usize,
    /// Generated samples (DDIM on the model's own grid); 0 for none.
    generated: usize,
}

impl Steps for Budget {
    fn steps(&mut self) -> &mut [u64; 2] {
        &mut self.steps
    }
}

/// Points of each time in the pictures of log-densities.
const SCATTERED: usize = 300;

/// One model of the table.
struct Place<'a> {
    dim: usize,
    levels: usize,
    method: &'a str,
    seed: u64,
}

impl Place<'_> {
    fn name(&self) -> String {
        let Place {
            dim,
            levels,
            method,
            seed,
        } = self;
        format!("d{dim}-n{levels}-{method}-s{seed}")
    }
}

impl Chosen<'_, Budget> {
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let Budget {
            dims,
            levels,
            seeds,
            ..
        } = &self.budget;
        dims.iter().flat_map(move |&dim| {
            levels.iter().flat_map(move |&levels| {
                self.methods.keys().flat_map(move |method| {
                    seeds.iter().map(move |&seed| Place {
                        dim,
                        levels,
                        method,
                        seed,
                    })
                })
            })
        })
    }

    fn settings_of(&self, place: &Place<'_>, objective: &str, steps: [u64; 2]) -> Settings {
        let width = self
            .budget
            .widths
            .iter()
            .rev()
            .find(|(above, _)| place.dim > *above);
        let mut settings = self.train.clone();
        settings.dim = Some(place.dim);
        settings.levels = Some(place.levels);
        settings.seed = Some(place.seed);
        settings.objective = Some(objective.into());
        (settings.score_steps, settings.steps) = (Some(steps[0]), Some(steps[1]));
        settings.width = width.map(|(_, width)| *width).or(settings.width);
        settings
    }

    fn model(&self, place: &Place<'_>, bench: &Bench) -> Result<Model> {
        let shared = Place {
            method: "score",
            ..*place
        };
        let objective = &self.methods[place.method];
        let settings = self.settings_of(place, objective, self.budget.steps);
        two_stages(bench, &shared.name(), &place.name(), settings)
    }

    fn evaluate(&self, model: &Model, bench: &Bench) -> Result<Record> {
        let content = &model.content;
        let (exact, _) = exact_path(&Systems::default(), content)?;
        let energy = model.energy(bench.pool.clone(), bench.isa)?;
        let settings = EvaluationSettings {
            samples_per_level: self.budget.samples,
            classification_samples_per_level: self.budget.classified,
            ..EvaluationSettings::default()
        };
        let grid = content.spec.grid.with_levels(self.budget.grid)?;
        let mut progress = bench.watch.begin("evaluate", grid.levels() as u64, 0);
        let found = Evaluation::run(&energy, &exact, &grid, settings, &mut |done, _| {
            progress.set(done as u64, &|| "levels".into());
        })?;
        progress.finish("done");
        let average = &found.average;
        let figures = [
            ("classification", average.classification.into()),
            ("excess", average.excess.into()),
            ("optimum", average.optimum.into()),
            ("fisher", average.fisher.into()),
            ("ess", average.ess.into()),
            ("r2", average.r2.into()),
            ("median_r2", average.median_r2.into()),
            ("tv_density", found.mode_weights.total_variation.into()),
        ];
        let mut figures = BTreeMap::from(figures.map(|(name, figure)| (name.to_string(), figure)));
        if self.budget.generated > 0 {
            let distances = generation(&energy, content, &exact, self.budget.generated)?;
            figures.extend(distances.map(|(name, value)| (name.to_string(), value.into())));
        }
        let line = |of: &dyn Fn(&diffclf::metric::Level) -> f64| {
            found
                .levels
                .iter()
                .map(|level| (level.time, of(level)))
                .collect()
        };
        let series = [
            ("r2", line(&|level| level.r2)),
            ("ess", line(&|level| level.ess)),
            ("excess", line(&|level| level.excess.mean)),
        ];
        let mut series: BTreeMap<String, Vec<(f64, f64)>> =
            series.map(|(name, line)| (name.to_string(), line)).into();
        series.insert("log_density".into(), log_densities(&energy, &exact, &grid));
        Ok(Record {
            figures,
            series,
            seconds: 0.0,
        })
    }
}

/// Exact and learned log-densities of points at three times of the grid. A model is normalised up to a constant of the time (DSM does not
/// learn it at all), so each time has the same mean of both.
fn log_densities(energy: &dyn Energy, exact: &ExactPath, grid: &TimeGrid) -> Vec<(f64, f64)> {
    let mut pairs = Vec::with_capacity(3 * SCATTERED);
    for quarter in 1..=3 {
        let time = grid.times()[quarter * grid.levels() / 4];
        let points = exact.sample(time, SCATTERED, quarter as u64);
        let [mut truth, mut learned] = [vec![0.0; SCATTERED], vec![0.0; SCATTERED]];
        exact.log_density(&[time], &points, &mut truth);
        energy.log_density(&[time], &points, &mut learned);
        let sums = truth.iter().zip(&learned).map(|(a, b)| a - b);
        let shift = sums.sum::<f64>() / SCATTERED as f64;
        pairs.extend(truth.iter().zip(&learned).map(|(a, b)| (*a, b + shift)));
    }
    pairs
}

/// Distances of generated from exact samples, each with its floor (two exact samples): MMD, sliced W2, and the total
/// variation of mode weights by nearest component.
fn generation(
    energy: &dyn Energy,
    content: &Content,
    exact: &ExactPath,
    number: usize,
) -> Result<[(&'static str, f64); 6]> {
    let spec = &content.spec;
    let task = Task {
        energy,
        process: &spec.process,
        times: &times_of(&spec.grid),
        start: &Prior::of(spec),
        particles: 0..number as u64,
        seed: 0,
    };
    let points = Sampler::by_name("ddim")?.run(&task, &mut |_| ())?;
    let exact_points = [1, 2].map(|seed| exact.start().sample(number, seed).0);
    let sample = |points| Sample::new(points, spec.dim, None);
    let found = Comparison::run(
        &sample(&points)?,
        &sample(&exact_points[0])?,
        &sample(&exact_points[1])?,
        Some(exact.start()),
        ComparisonSettings::default(),
    )?;
    // The unbiased estimate of a squared distance may be negative.
    let root = |squared: f64| squared.max(0.0).sqrt();
    let (tv, tv_floor) = found.mode_weights.unwrap_or((f64::NAN, f64::NAN));
    Ok([
        ("mmd", root(found.mmd_squared.value.mean)),
        ("mmd_floor", root(found.mmd_squared.floor.mean)),
        ("sliced_w2", found.sliced_wasserstein.value.mean),
        ("sliced_w2_floor", found.sliced_wasserstein.floor.mean),
        ("tv", tv),
        ("tv_floor", tv_floor),
    ])
}

impl Experiment for Chosen<'_, Budget> {
    fn cells(&self) -> Vec<String> {
        self.places().map(|place| place.name()).collect()
    }

    fn settings(&self) -> Result<serde_json::Value> {
        self.record()
    }

    fn run(&self, cell: &str, bench: &Bench) -> Result<Record> {
        let place = named(self.places().map(|place| (place.name(), place)), cell)?;
        let model = self.model(&place, bench)?;
        self.evaluate(&model, bench)
    }

    /// R^2 of the log-densities over time, for each dimension and N: one line a method. Then learned log-densities over exact ones, of the
    /// first seed.
    fn pictures(&self, records: &BTreeMap<String, Record>) -> Result<Vec<Picture>> {
        let mut pictures = Vec::new();
        for &dim in &self.budget.dims {
            for &levels in &self.budget.levels {
                let series: Vec<Series> = self
                    .places()
                    .filter(|p| {
                        (p.dim, p.levels) == (dim, levels) && p.seed == self.budget.seeds[0]
                    })
                    .filter_map(|place| {
                        let record = records.get(&place.name())?;
                        Some(Series {
                            name: self.methods[place.method].clone(),
                            points: record.series.get("r2")?.clone(),
                        })
                    })
                    .collect();
                if series.is_empty() {
                    continue;
                }
                let alt = format!("R² of log-densities over time, dimension {dim}, N = {levels}");
                let svg = Curve {
                    alt: &alt,
                    x_label: "time",
                    y_label: "R²",
                    x_logarithmic: false,
                    y_logarithmic: false,
                    series: &series,
                }
                .svg();
                pictures.push(Picture {
                    name: format!("r2-d{dim}-n{levels}"),
                    figure: Figure { svg, caption: alt },
                });
            }
        }
        for place in self.places().filter(|p| p.seed == self.budget.seeds[0]) {
            let record = records.get(&place.name());
            let Some(points) = record.and_then(|record| record.series.get("log_density")) else {
                continue;
            };
            let caption = format!(
                "Learned over exact log-densities at three times, dimension {}, N = {}, {}",
                place.dim, place.levels, self.methods[place.method]
            );
            let svg = Scatter {
                alt: &caption,
                x: axis_of("exact", points.iter().map(|point| point.0)),
                y: axis_of("learned", points.iter().map(|point| point.1)),
                points,
                colour: 0,
            }
            .svg();
            pictures.push(Picture {
                name: format!("scatter-{}", place.name()),
                figure: Figure { svg, caption },
            });
        }
        Ok(pictures)
    }
}
