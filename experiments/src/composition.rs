//! A composition of two models in the plane: how much of the samples lies in each region, beside the truth. One cell for each
//! method and seed, and one for the truth.

use crate::catalogue::{Experiment, Picture};
use crate::cell::{CellRecord, Figure as Number, named};
use crate::stages::{Chosen, Methods, Steps, two_stages};
use crate::{Bench, Manner};
use diffclf::energy::compose::{Composition as Composed, Expression};
use diffclf::energy::{Energy, SystemEnergy};
use diffclf::metric::Regions;
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::mcmc::Kernel;
use diffclf::sample::{Resampling, Smc};
use diffclf::system::System;
use diffclf_report::page::Figure;
use diffclf_report::scatter::{Scatter, axis_of};
use diffclf_run::compose::Compound;
use diffclf_run::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// `[experiment]` of a composition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composition {
    /// What is composed, of members A and B.
    expression: String,
    /// The systems that A and B are trained on.
    members: [String; 2],
    /// Where samples are counted.
    regions: Regions,
    /// How the members are trained.
    models: Methods<Budget>,
}

/// How much is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    seeds: Vec<u64>,
    /// Steps of the score stage and of the second one.
    steps: [u64; 2],
    /// Methods that are at their end after the score stage.
    #[serde(default)]
    score_only: Vec<String>,
    /// Levels of the path.
    levels: usize,
    /// MALA steps at each.
    moves: usize,
    /// Particles.
    particles: usize,
    /// Resampling below this share.
    threshold: f64,
}

impl Steps for Budget {
    fn steps(&mut self) -> &mut [u64; 2] {
        &mut self.steps
    }
}

/// A composition at a budget.
pub struct Comparison<'a> {
    composition: &'a Composition,
    models: Chosen<'a, Budget>,
}

/// Names of the members in the expression.
const NAMES: [&str; 2] = ["A", "B"];
/// The cell of the exact composition, and the draws behind it.
const TRUTH: &str = "truth";
const DRAWS: usize = 200_000;
/// A cell and its samples.
type Cloud<'a> = (&'a String, &'a Vec<(f64, f64)>);
/// Points kept for the picture.
const SHOWN: usize = 2500;

impl Composition {
    /// The comparison at a budget.
    pub fn at(&self, manner: Manner) -> Result<Comparison<'_>> {
        Ok(Comparison {
            composition: self,
            models: self.models.at(manner)?,
        })
    }
}

impl Comparison<'_> {
    fn places(&self) -> impl Iterator<Item = (String, (&str, u64))> {
        let Chosen {
            methods, budget, ..
        } = &self.models;
        methods.keys().flat_map(|method| {
            let seeds = budget.seeds.iter();
            seeds.map(move |seed| (format!("{method}-s{seed}"), (method.as_str(), *seed)))
        })
    }

    fn sampled(&self, cell: &str, bench: &Bench) -> Result<CellRecord> {
        let (method, seed) = named(self.places(), cell)?;
        let c = self.composition;
        let mut models = Vec::new();
        for (name, system) in NAMES.into_iter().zip(&c.members) {
            let mut settings = self.models.train.clone();
            settings.system = Some(system.clone());
            (settings.dim, settings.seed) = (Some(2), Some(seed));
            settings.objective = Some(self.models.methods[method].clone());
            let [score, joint] = self.models.budget.steps;
            let score_only = self.models.budget.score_only.iter().any(|m| m == method);
            let joint = if score_only { 0 } else { joint };
            (settings.score_steps, settings.steps) = (Some(score), Some(joint));
            let shared = format!("{system}-score-s{seed}");
            let model = two_stages(bench, &shared, &format!("{system}-{cell}"), settings)?;
            models.push((name, model));
        }
        let Budget {
            levels,
            moves,
            particles,
            threshold,
            ..
        } = self.models.budget;
        let smc = Smc {
            kernel: Kernel::by_name("mala")?,
            moves,
            step: 0.1,
            frozen_steps: None,
            threshold,
            resampling: Resampling::Systematic,
            adaptive: None,
            // A baseline that loses its way is a result, not a mistake.
            least_overlap: 0.0,
            genealogy: false,
            runs: 1,
            seed,
        };
        let compound = Compound {
            expression: &Expression::parse(&c.expression)?,
            models: &models,
            systems: &[],
            system_seed: 0,
            levels: Some(levels),
        };
        let (pool, isa) = (bench.pool.clone(), bench.isa);
        let found = compound
            .sample(&smc, particles, pool, isa, &*bench.watch)?
            .finish(&format!("{particles} samples of {}", c.expression));
        let found = found.particles;
        let mut record = self.record(&found.points, &found.weights, seed)?;
        let log_z = Number {
            value: found.log_z.value,
            error: found.log_z.error,
        };
        record.figures.extend([
            ("log_z".to_string(), log_z),
            ("ess".to_string(), found.ess().into()),
            ("least_overlap".to_string(), found.least_overlap().into()),
        ]);
        Ok(record)
    }

    /// The exact composition: draws of both members, weighted by its density over theirs.
    fn truth(&self) -> Result<CellRecord> {
        let c = self.composition;
        let systems = [&c.members[0], &c.members[1]].map(|name| System::by_name(name, 2, 0));
        let [a, b] = systems;
        let (a, b) = (a?, b?);
        let mut points: Vec<f64> = Vec::with_capacity(2 * DRAWS);
        for (system, seed) in [(&a, 1), (&b, 2)] {
            let draws = system.sample(DRAWS / 2, seed);
            points.extend(draws.iter().map(|x| f64::from(*x)));
        }
        let energies = [a, b].map(SystemEnergy::new);
        let [Some(a), Some(b)] = &energies else {
            return Err(Error::Failed("the members have no exact densities".into()));
        };
        let members: [(&str, &dyn Energy); 2] = [(NAMES[0], a), (NAMES[1], b)];
        let log_density = |expression: &str| -> Result<Vec<f64>> {
            let expression = Expression::parse(expression)?;
            let mut out = vec![0.0; DRAWS];
            Composed::new(&expression, &members)?.log_density(&vec![0.0; DRAWS], &points, &mut out);
            Ok(out)
        };
        let (target, proposal) = (log_density(&c.expression)?, log_density("A or B")?);
        let logs: Vec<f64> = target.iter().zip(&proposal).map(|(t, p)| t - p).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        self.record(&points, &weights, 0)
    }

    /// Shares of the regions, the largest error among them, and some samples.
    fn record(&self, points: &[f64], weights: &[f64], seed: u64) -> Result<CellRecord> {
        let regions = self.composition.regions;
        let shares = regions.shares(points, weights)?;
        let mut truth = regions.truth()?;
        truth.push(0.0);
        let errors = shares.iter().zip(&truth).map(|(a, b)| (a - b).abs());
        let mut figures: BTreeMap<String, Number> = [(
            "largest_error".to_string(),
            errors.fold(0.0, f64::max).into(),
        )]
        .into();
        let names = regions.names().into_iter().chain(["elsewhere".into()]);
        figures.extend(names.zip(shares.iter().map(|share| (*share).into())));
        let mut drawn = vec![0; SHOWN];
        let mut stream = Stream::new(seed, Purpose::Shown, 0, 0);
        Resampling::Systematic.draw(weights, &mut stream, &mut drawn);
        let samples = drawn
            .iter()
            .map(|&i| (points[2 * i as usize], points[2 * i as usize + 1]))
            .collect();
        Ok(CellRecord {
            figures,
            series: [("samples".to_string(), samples)].into(),
            ..CellRecord::default()
        })
    }
}

impl Experiment for Comparison<'_> {
    fn cells(&self) -> Vec<String> {
        let methods = self.places().map(|(name, ..)| name);
        [TRUTH.to_string()].into_iter().chain(methods).collect()
    }

    fn settings(&self) -> Result<serde_json::Value> {
        let c = self.composition;
        Ok(json!([c.expression, c.members, self.models.record()?]))
    }

    fn run(&self, cell: &str, bench: &Bench) -> Result<CellRecord> {
        match cell {
            TRUTH => self.truth(),
            _ => self.sampled(cell, bench),
        }
    }

    /// Samples of the first seed beside the truth, on the same axes.
    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let first = |cell: &&String| {
            let mut places = self.places();
            places.all(|(name, (_, seed))| name != **cell || seed == self.models.budget.seeds[0])
        };
        let clouds: Vec<Cloud<'_>> = records
            .keys()
            .filter(first)
            .filter_map(|cell| Some((cell, records[cell].series.get("samples")?)))
            .collect();
        let all = || clouds.iter().flat_map(|(_, cloud)| cloud.iter());
        let (x, y) = (
            axis_of("x1", all().map(|point| point.0)),
            axis_of("x2", all().map(|point| point.1)),
        );
        let picture = |(colour, (cell, cloud)): (usize, &Cloud<'_>)| {
            let caption = format!("{}: {cell}", self.composition.expression);
            let svg = Scatter {
                alt: &format!("samples of {caption}"),
                x: x.clone(),
                y: y.clone(),
                points: cloud,
                colour,
            }
            .svg();
            Picture {
                name: format!("samples-{cell}"),
                figure: Figure { svg, caption },
            }
        };
        Ok(clouds.iter().enumerate().map(picture).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recipe;
    use super::super::catalogue::find;
    use super::*;

    /// Draws weighted by the composed density have the exact masses, and those are what `expected.json` says.
    #[test]
    fn the_cell_of_the_truth_is_true() {
        for name in ["compose-or", "compose-and"] {
            let entry = find(name).unwrap();
            let definition = entry.definition().unwrap();
            let experiment = definition
                .experiment(Manner {
                    quick: true,
                    recipe: Recipe::Ours,
                    share: 1.0,
                })
                .unwrap();
            let bench = Bench {
                data: None,
                folder: std::path::PathBuf::new(),
                pool: std::sync::Arc::new(diffclf::engine::Pool::new(1)),
                isa: diffclf::engine::Isa::detect(),
                kernel: None,
                watch: std::sync::Arc::new(diffclf_run::Silent),
            };
            let record = experiment.run(TRUTH, &bench).unwrap();
            let expected = entry.expected().unwrap();
            let total: f64 = expected.iter().map(|row| row.value).sum();
            assert!((total - 1.0).abs() < 1e-9, "{name}: {total}");
            for row in expected {
                // Shares of at least half of 200,000 draws of mass 0.12 to 0.35: four standard deviations are 0.006 at most.
                let found = record.figures[&row.figure].value;
                assert!((found - row.value).abs() < 0.006, "{name}: {found} {row:?}");
            }
            assert_eq!(record.series["samples"].len(), SHOWN);
        }
    }
}
