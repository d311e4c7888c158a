//! The Mueller-Brown surface learned from samples: independent samples and long Langevin dynamics on the learned energy, beside the exact
//! density.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::{CellRecord, Figure as Number, named};
use crate::side_by_side::{View, after, independent, record, whole};
use crate::stages::{Chosen, Steps, two_stages};
use diffclf::energy::Energy;
use diffclf::energy::compose::Expression;
use diffclf::metric::{Estimate, States};
use diffclf::model::Model;
use diffclf::rng::Purpose;
use diffclf::system::{Basins, MuellerBrown, System};
use diffclf_report::page::Figure;
use diffclf_run::error::Result;
use diffclf_run::simulate::{Landscape, Scheme, Simulation, Units};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    seeds: Vec<u64>,
    /// Steps of the score stage and of the second one.
    steps: [u64; 2],
    /// Independent samples, and points of the reference.
    samples: usize,
    /// Steps of the sampler.
    sampler_steps: usize,
    /// Chains of the dynamics, and frames of each; the first tenth of the frames is left out.
    chains: usize,
    frames: usize,
    /// Steps from frame to frame.
    thin: usize,
}

impl Steps for Budget {
    fn steps(&mut self) -> &mut [u64; 2] {
        &mut self.steps
    }
}

/// The cell of the exact energy: what finite samples and chains have at best.
const EXACT: &str = "exact";
/// Time step, friction and mass of the literature, at kT 23.
const STEP: f64 = 0.005;
const FRICTION: f64 = 1.0;
const MASS: f64 = 0.5;
/// Points farther out than this are lost, as in the literature.
const FARTHEST: f64 = 20.0;
/// Where chains start: the deepest well.
const START: [f64; 2] = [-0.558_280_35, 1.441_69];

const VIEW: View = View {
    js_bins: 100,
    js_limits: None,
    pmf_bins: 64,
    window: [-1.8, 1.1, -0.5, 2.0],
    labels: ["x", "y"],
};

struct Place<'a> {
    method: &'a str,
    seed: u64,
}

impl Place<'_> {
    fn name(&self) -> String {
        format!("{}-s{}", self.method, self.seed)
    }
}

impl Chosen<'_, Budget> {
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let methods = self.methods.keys().map(String::as_str).chain([EXACT]);
        methods.flat_map(|method| {
            let seeds = self.budget.seeds.iter();
            seeds.map(move |&seed| Place { method, seed })
        })
    }

    /// Exact points for a purpose of their own.
    fn exact(&self, half: u32, seed: u64) -> Result<Vec<f64>> {
        let system = System::by_name("mueller-brown", 2, 0)?;
        let rows = system.sample_for(Purpose::Reference(half), self.budget.samples, seed);
        Ok(rows.into_iter().map(f64::from).collect())
    }

    fn trained(&self, place: &Place<'_>, bench: &Bench) -> Result<Option<Model>> {
        let Some(objective) = self.methods.get(place.method) else {
            return Ok(None);
        };
        let [score, joint] = self.budget.steps;
        let mut settings = self.train.clone();
        settings.seed = Some(place.seed);
        (settings.score_steps, settings.steps) = (Some(score), Some(joint));
        settings.objective = Some(objective.clone());
        let shared = format!("score-s{}", place.seed);
        two_stages(bench, &shared, &place.name(), settings).map(Some)
    }

    /// Chains on an energy; the first tenth of their frames is left out.
    fn chains(&self, model: Option<&Model>, seed: u64, bench: &Bench) -> Result<(Vec<f64>, usize)> {
        let Budget {
            chains,
            frames,
            thin,
            ..
        } = self.budget;
        let expression = Expression::parse("A")?;
        let models: Vec<(&str, Model)> = model
            .map(|model| ("A", model.clone()))
            .into_iter()
            .collect();
        let systems: &[(&str, &str)] = match model {
            Some(_) => &[],
            None => &[("A", "mueller-brown")],
        };
        let landscape = Landscape {
            expression: &expression,
            models: &models,
            systems,
            system_seed: 0,
        };
        let asked = Simulation {
            scheme: Scheme::LangevinLeapfrog,
            units: Units::Reduced,
            step: STEP,
            friction: FRICTION,
            temperature: MuellerBrown::shared().temperature(),
            masses: vec![MASS],
            frames,
            thin,
            time: None,
            bonds: Vec::new(),
            particles: false,
            seed,
        };
        let data = self.exact(2, seed)?;
        let machine = (bench.pool.threads(), bench.isa);
        let start = START.repeat(chains);
        let done = asked.run(&landscape, &start, &data, machine, None, &*bench.watch)?;
        let found = done.finish(&format!("{chains} chains of {frames} frames"));
        let mut left: Vec<usize> = found
            .summary
            .departures
            .iter()
            .map(|departure| departure.chain)
            .collect();
        left.sort_unstable();
        left.dedup();
        Ok((after(&found.points, chains, 2, frames / 10), left.len()))
    }

    /// Heights of the first pass over the deepest well, in kT: of the model and exactly.
    fn barrier(&self, model: Option<&Model>, basins: &Basins, bench: &Bench) -> Result<f64> {
        let (well, pass) = (basins.wells()[0].minimum, basins.passes()[0].0);
        let points = [well, pass].concat();
        let mut energies = [0.0; 2];
        match model {
            Some(model) => {
                let energy = model.in_data_coordinates(bench.pool.clone(), bench.isa)?;
                energy.energy(&[model.content.spec.grid.t_min()], &points, &mut energies);
            }
            None => {
                let kt = MuellerBrown::shared().temperature();
                energies = [basins.wells()[0].energy / kt, basins.passes()[0].1 / kt];
            }
        }
        Ok(energies[1] - energies[0])
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
        let basins = Basins::of(&MuellerBrown::shared());
        let model = self.trained(&place, bench)?;
        let seed = place.seed;
        let reference = self.exact(0, seed)?;
        let iid = match &model {
            Some(model) => independent(
                bench,
                model,
                self.budget.samples,
                self.budget.sampler_steps,
                seed,
            )?,
            None => self.exact(1, seed)?,
        };
        let (iid, stray) = whole(&iid, 2, FARTHEST);
        let (chains, left) = self.chains(model.as_ref(), seed, bench)?;
        let frames = chains.len() / 2 / self.budget.chains;
        let (langevin, lost) = whole(&chains, 2, FARTHEST);
        let states = |points: &[f64], chains: usize| -> Result<States> {
            // A chain that is lost is in no well.
            let well = |p: &[f64]| match p.iter().all(|x| x.abs() <= FARTHEST) {
                true => basins.place([p[0], p[1]]),
                false => basins.wells().len(),
            };
            let of: Vec<usize> = points.chunks_exact(2).map(well).collect();
            Ok(States::of(&of, chains, basins.wells().len() + 1)?)
        };
        let drawn = states(&iid, 1)?;
        let moved = states(&chains, self.budget.chains)?;
        let mut cell = record(vec![
            (
                "barrier",
                self.barrier(model.as_ref(), &basins, bench)?.into(),
            ),
            ("left", Number::from(left as f64)),
            ("lost", Number::from((lost + stray) as f64)),
            ("frames", Number::from(frames as f64)),
        ]);
        VIEW.add(&mut cell, "iid", &iid, &reference)?;
        VIEW.add(&mut cell, "langevin", &langevin, &reference)?;
        let mut worst = [0.0_f64; 2];
        for (k, well) in basins.wells().iter().enumerate() {
            let name = well.name.replace(' ', "_");
            for (side, (found, kind)) in [(&drawn, "iid"), (&moved, "langevin")]
                .into_iter()
                .enumerate()
            {
                worst[side] = worst[side].max((found.weights[k] - well.weight).abs());
                // Independent samples have binomial errors.
                let error = match kind {
                    "iid" => {
                        let w = found.weights[k];
                        (w * (1.0 - w) / self.budget.samples as f64).sqrt()
                    }
                    _ => found.errors[k],
                };
                let value = Number::from(Estimate {
                    mean: found.weights[k],
                    error,
                });
                cell.figures.insert(format!("weight_{name}_{kind}"), value);
            }
        }
        cell.figures
            .insert("weight_error_iid".into(), worst[0].into());
        cell.figures
            .insert("weight_error_langevin".into(), worst[1].into());
        let pmf = |kind: &str| cell.figures.get(kind).map(|figure| figure.value);
        if let (Some(moved), Some(drawn)) = (pmf("pmf_langevin"), pmf("pmf_iid")) {
            let ratio = Number::from(moved / drawn);
            cell.figures.insert("pmf_ratio".into(), ratio);
        }
        Ok(cell)
    }

    /// Free energy surfaces: independent samples and dynamics of each method.
    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let seed = self.budget.seeds[0];
        let mut pictures = Vec::new();
        for place in self.places().filter(|place| place.seed == seed) {
            for (kind, words) in [
                ("iid", "independent samples"),
                ("langevin", "Langevin dynamics"),
            ] {
                let kept = records
                    .get(&place.name())
                    .and_then(|r| r.series.get(&format!("surface {kind}")));
                let Some(kept) = kept else { continue };
                let objective = self
                    .methods
                    .get(place.method)
                    .map_or("the exact energy", String::as_str);
                let caption = format!("Free energy of {words}, {objective}");
                pictures.push(Picture {
                    name: format!("{}-{kind}", place.method),
                    figure: Figure {
                        svg: VIEW.picture(kept, &caption),
                        caption,
                    },
                });
            }
        }
        Ok(pictures)
    }
}
