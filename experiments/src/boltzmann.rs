//! A Boltzmann generator between two mixtures: particles are led by the exact velocity and score of an interpolant and weighted by
//! learned energies, the exact density at the end. Distances of the result from exact samples, for each dimension and method.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::{CellRecord, Figure as Number, named};
use crate::stages::{Chosen, Steps, two_stages};
use diffclf::metric::{Comparison, ComparisonSettings, Sample};
use diffclf::sample::mcmc::Kernel;
use diffclf::sample::{Boltzmann, Diffusivity, InterpolantKernels, Resampling, Smc, Start};
use diffclf_report::curve::{Curve, Series};
use diffclf_report::page::Figure;
use diffclf_run::anneal::{Levels, angular_times};
use diffclf_run::error::Result;
use diffclf_run::exact::{Systems, exact_path};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    dims: Vec<usize>,
    seeds: Vec<u64>,
    /// Steps of the score stage and of the second one.
    steps: [u64; 2],
    /// Levels of the path.
    levels: usize,
    /// Particles.
    particles: usize,
    /// Noise of the kernels.
    g: f64,
    /// Resampling below this share.
    threshold: f64,
}

impl Steps for Budget {
    fn steps(&mut self) -> &mut [u64; 2] {
        &mut self.steps
    }
}

/// The cell whose energies are exact: what the particles and their kernels can do at best.
const EXACT: &str = "exact";

struct Place<'a> {
    dim: usize,
    method: &'a str,
    seed: u64,
}

impl Place<'_> {
    fn name(&self) -> String {
        let Place { dim, method, seed } = self;
        format!("d{dim}-{method}-s{seed}")
    }
}

impl Chosen<'_, Budget> {
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let methods = || self.methods.keys().map(String::as_str).chain([EXACT]);
        self.budget.dims.iter().flat_map(move |&dim| {
            methods().flat_map(move |method| {
                let seeds = self.budget.seeds.iter();
                seeds.map(move |&seed| Place { dim, method, seed })
            })
        })
    }
}

impl Experiment for Chosen<'_, Budget> {
    fn cells(&self) -> Vec<String> {
        self.places().map(|place| place.name()).collect()
    }

    fn settings(&self) -> Result<serde_json::Value> {
        self.record()
    }

    fn run(&self, cell: &str, bench: &Bench) -> Result<CellRecord> {
        let place = named(self.places().map(|place| (place.name(), place)), cell)?;
        let Place { dim, method, seed } = place;
        let [score, joint] = self.budget.steps;
        let mut settings = self.train.clone();
        (settings.dim, settings.seed) = (Some(dim), Some(seed));
        (settings.score_steps, settings.steps) = (Some(score), Some(joint));
        // The exact energies need no training, but the coordinates that a model brings: those of score matching.
        let objective = self.methods.get(method).map_or("dsm", String::as_str);
        settings.objective = Some(objective.into());
        let shared = format!("d{dim}-score-s{seed}");
        let name = match method {
            EXACT => format!("d{dim}-dsm-s{seed}"),
            _ => place.name(),
        };
        let model = two_stages(bench, &shared, &name, settings)?;
        let content = &model.content;
        let (exact, _) = exact_path(&Systems::default(), content)?;
        let learned = model.energy(bench.pool.clone(), bench.isa)?;
        // Down to 0, where the target takes the model's place; below its smallest time the model says what its network says there.
        let times = angular_times(content.spec.grid.t_max(), 0.0, self.budget.levels);
        let kernels = InterpolantKernels {
            process: content.spec.process,
            velocity: &exact,
            energy: &exact,
            g: Diffusivity::Constant {
                value: self.budget.g,
            },
        };
        let n = self.budget.particles;
        let points = exact.sample(times[0], n, seed);
        let generator = Boltzmann {
            path: if method == EXACT { &exact } else { &learned },
            target: &exact,
            times: &times,
            start: Start::Draws {
                points: &points,
                density: &exact,
                time: times[0],
            },
            transport: Some(&kernels),
        };
        let smc = Smc {
            kernel: Kernel::by_name("mala")?,
            moves: 0,
            step: 0.1,
            frozen_steps: None,
            threshold: self.budget.threshold,
            resampling: Resampling::Systematic,
            adaptive: None,
            // A baseline that loses its way is a result, not a mistake.
            least_overlap: 0.0,
            genealogy: false,
            runs: 1,
            seed,
        };
        let mut progress = Levels::new("anneal", &times, &smc, &*bench.watch);
        let found = generator.run(&smc, n, &mut |level| progress.see(level))?;
        progress.done(()).finish(&format!("{n} particles"));
        let references = [1, 2].map(|k| exact.start().sample(n, 2 * seed + k).0);
        let distances = Comparison::run(
            &Sample::new(&found.points, dim, Some(&found.weights))?,
            &Sample::new(&references[0], dim, None)?,
            &Sample::new(&references[1], dim, None)?,
            Some(exact.start()),
            ComparisonSettings::default(),
        )?;
        let (tv, tv_floor) = distances.mode_weights.unwrap_or((f64::NAN, f64::NAN));
        let wasserstein = distances.sliced_wasserstein;
        let kolmogorov = distances.sliced_kolmogorov_smirnov;
        let log_z = Number {
            value: found.log_z.value,
            error: found.log_z.error,
        };
        let figures = [
            ("sliced_w2", wasserstein.value.into()),
            ("sliced_w2_floor", wasserstein.floor.into()),
            ("sliced_ks", kolmogorov.value.into()),
            ("sliced_ks_floor", kolmogorov.floor.into()),
            ("tv", tv.into()),
            ("tv_floor", tv_floor.into()),
            ("log_z", log_z),
            ("ess", found.ess().into()),
            ("least_overlap", found.least_overlap().into()),
        ];
        let figures = figures.map(|(name, figure)| (name.to_string(), figure));
        Ok(CellRecord {
            figures: figures.into(),
            series: BTreeMap::new(),
            ..CellRecord::default()
        })
    }

    /// Both distances over the dimension: a line for each method, and the floor.
    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let seed = self.budget.seeds[0];
        let line = |method: &str, figure: &str| -> Vec<(f64, f64)> {
            let place = |dim: usize| Place { dim, method, seed }.name();
            let value = |dim| Some(records.get(&place(dim))?.figures.get(figure)?.value);
            let dims = self.budget.dims.iter();
            dims.filter_map(|&dim| Some((dim as f64, value(dim)?)))
                .collect()
        };
        let panels = [
            ("sliced_w2", "sliced W2 distance"),
            ("sliced_ks", "sliced Kolmogorov-Smirnov distance"),
        ];
        Ok(panels
            .map(|(figure, label)| {
                let mut series: Vec<Series> = self
                    .methods
                    .iter()
                    .map(|(method, objective)| Series {
                        name: objective.clone(),
                        points: line(method, figure),
                    })
                    .collect();
                series.push(Series {
                    name: "exact energies".into(),
                    points: line(EXACT, figure),
                });
                series.push(Series {
                    name: "two exact samples".into(),
                    points: line(EXACT, &format!("{figure}_floor")),
                });
                series.retain(|series| !series.points.is_empty());
                let caption = format!("{label} from exact samples over the dimension");
                let svg = Curve {
                    alt: &caption,
                    x_label: "dimension",
                    y_label: label,
                    x_logarithmic: true,
                    y_logarithmic: true,
                    series: &series,
                }
                .svg();
                Picture {
                    name: figure.replace('_', "-"),
                    figure: Figure { svg, caption },
                }
            })
            .into())
    }
}
