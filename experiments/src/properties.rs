//! What objectives cost: the time of a training step of each sum, relative to denoising score matching with the same number of score
//! evaluations. Each cell times both in turns, so that a busy machine disturbs both alike.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::{CellRecord, Figure as Number};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Coordinates, Energy, Form, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::network::NetworkSpec;
use diffclf::objective::parse_terms;
use diffclf::process::{Process, TimeSampler};
use diffclf::rng::{Part, Purpose, Stream};
use diffclf::system::System;
use diffclf::train::{Adam, Endpoints, InMemory, Losses, Shuffled, Source, Step, StepSpec, clip};
use diffclf_run::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// `[experiment]` of the costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Properties {
    dim: usize,
    /// Score evaluations of a step: rows times levels.
    evaluations: usize,
    /// Columns and layers of the networks.
    network: [usize; 2],
    interpolant_network: [usize; 2],
    full: Budget,
    quick: Budget,
    /// Cell to what is timed.
    rows: BTreeMap<String, Row>,
}

/// How often is timed: rounds, and steps of each objective in a round.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    rounds: usize,
    steps: usize,
}

/// A sum of objectives.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    objective: String,
    #[serde(default = "two")]
    levels: usize,
    #[serde(default)]
    interpolant: bool,
    /// Network evaluations for each score evaluation of DSM, a derivative counted as two: what the step needs by its formula.
    evaluations: f64,
    /// Whether the sum sees mode weights.
    #[serde(default)]
    weights: bool,
}

fn two() -> usize {
    2
}

/// The costs at a budget.
pub struct Costs<'a> {
    properties: &'a Properties,
    budget: Budget,
}

impl Properties {
    /// The costs at a budget.
    pub fn at(&self, quick: bool) -> Costs<'_> {
        Costs {
            properties: self,
            budget: if quick { self.quick } else { self.full },
        }
    }

    fn spec(&self, interpolant: bool) -> Result<ModelSpec> {
        let [width, depth] = if interpolant {
            self.interpolant_network
        } else {
            self.network
        };
        let name = if interpolant { "linear" } else { "vp" };
        let spec = ModelSpec {
            network: NetworkSpec::Mlp { width, depth },
            ..ModelSpec::new(self.dim, Process::by_name(name)?)
        };
        Ok(if interpolant {
            ModelSpec {
                form: Form::InnerProductPlusScalar,
                velocity: true,
                ..spec
            }
        } else {
            spec
        })
    }
}

/// A step with all it needs to run again and again.
struct Runner {
    spec: ModelSpec,
    step: Step<f32>,
    tables: [Arc<InMemory>; 2],
    params: Vec<f32>,
    pool: Arc<Pool>,
    moments: [Vec<f32>; 2],
    gradient: Vec<f32>,
    number: u64,
}

impl Runner {
    fn new(
        spec: &ModelSpec,
        terms: &str,
        levels: usize,
        evaluations: usize,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<Runner> {
        let plan = StepSpec {
            terms: parse_terms(terms)?,
            levels,
            batch: evaluations / levels,
            times: TimeSampler::default(),
            seed: 1,
            part: Part::Training,
        };
        let system = |name: &str| System::by_name(name, spec.dim, 0);
        let (start, end) = (system("mog40")?, system("mog2")?);
        let truth: Option<Arc<dyn Energy>> = match start.mixture() {
            Some(mixture) => {
                let interpolant = spec.process.is_interpolant();
                let end = end.mixture().filter(|_| interpolant).cloned();
                Some(Arc::new(ExactPath::new(
                    spec.process,
                    mixture.clone(),
                    end,
                )?))
            }
            None => None,
        };
        // Biases that start at zero are moved, so that no product is with zeros.
        let mut params: Vec<f32> = spec.layout().initialise(3);
        for (k, p) in params.iter_mut().enumerate().filter(|(_, p)| **p == 0.0) {
            *p = 0.01 * Stream::new(4, Purpose::Test, 0, k as u64).normal() as f32;
        }
        let zero = vec![0f32; params.len()];
        Ok(Runner {
            spec: spec.clone(),
            step: Step::new(spec, plan, true, pool.clone(), isa)?.with_truth(truth),
            pool,
            tables: [
                Arc::new(InMemory::new(start.sample(20_000, 5), spec.dim)),
                Arc::new(InMemory::new(end.sample(20_000, 6), spec.dim)),
            ],
            moments: [zero.clone(), zero.clone()],
            gradient: zero,
            params,
            number: 0,
        })
    }

    /// Milliseconds of so many whole steps: noise, loss, gradient, clipping, Adam.
    fn run(&mut self, steps: usize) -> Result<Vec<f64>> {
        let identity = Coordinates::identity(self.spec.dim);
        let batch = self.step.plan().batch;
        let source = |k: usize| -> Arc<dyn Source> {
            Arc::new(Shuffled::split(k as u32, self.tables[k].clone(), &identity, batch, 7, 0).0)
        };
        let interpolant = self.spec.process.is_interpolant();
        let from = Endpoints {
            start: source(0),
            end: interpolant.then(|| source(1)),
        };
        let mut losses = Losses::default();
        let mut milliseconds = Vec::with_capacity(steps);
        for _ in 0..steps {
            let begin = Instant::now();
            let gradient = &mut self.gradient;
            self.step
                .run(&self.params, self.number, &from, &mut losses, gradient)?;
            clip(gradient, Some(1.0));
            let [m, v] = &mut self.moments;
            let state = (&mut self.params[..], &mut m[..], &mut v[..]);
            Adam::default().update(self.number + 1, 1e-5, gradient, state, &self.pool);
            self.number += 1;
            milliseconds.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        Ok(milliseconds)
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

impl Experiment for Costs<'_> {
    fn cells(&self) -> Vec<String> {
        self.properties.rows.keys().cloned().collect()
    }

    fn settings(&self) -> Result<serde_json::Value> {
        let p = self.properties;
        let value = serde_json::to_value((
            p.dim,
            p.evaluations,
            p.network,
            p.interpolant_network,
            &p.rows,
            self.budget,
        ));
        value.map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))
    }

    fn run(&self, cell: &str, bench: &Bench) -> Result<CellRecord> {
        let p = self.properties;
        let Some(row) = p.rows.get(cell) else {
            return Err(Error::Failed(format!("{cell} is no row of this table")));
        };
        let spec = p.spec(row.interpolant)?;
        let runner = |terms: &str, levels| {
            let (pool, isa) = (bench.pool.clone(), bench.isa);
            Runner::new(&spec, terms, levels, p.evaluations, pool, isa)
        };
        let (mut base, mut other) = (runner("dsm", 2)?, runner(&row.objective, row.levels)?);
        // The first steps touch their memory for the first time.
        base.run(2)?;
        other.run(2)?;
        let Budget { rounds, steps } = self.budget;
        let mut progress = bench.watch.begin("time", rounds as u64, 0);
        let (mut of_base, mut of_other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            let (b, o) = (base.run(steps)?, other.run(steps)?);
            ratios.push(median(&o) / median(&b));
            of_base.extend(b);
            of_other.extend(o);
            progress.set(round as u64 + 1, &|| row.objective.clone());
        }
        progress.finish(&row.objective);
        let time = median(&of_other) / median(&of_base);
        let n = rounds as f64;
        let mean = ratios.iter().sum::<f64>() / n;
        let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        // A median has 1.25 times the error of a mean.
        let error = (rounds > 1).then(|| 1.2533 * (squares / (n - 1.0) / n).sqrt());
        let figures = [
            ("time", Number { value: time, error }),
            ("milliseconds", median(&of_other).into()),
            ("evaluations", row.evaluations.into()),
            ("mode_weights", f64::from(u8::from(row.weights)).into()),
        ];
        Ok(CellRecord {
            figures: figures
                .map(|(name, figure)| (name.to_string(), figure))
                .into(),
            series: BTreeMap::new(),
            ..CellRecord::default()
        })
    }

    fn pictures(&self, _records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        Ok(Vec::new())
    }
}
