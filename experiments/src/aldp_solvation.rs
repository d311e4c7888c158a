//! Solvation of alanine dipeptide: an energy learned between frames without and with polar solvent tells their free-energy difference, beside MBAR
//! over the dynamics that made the frames. A Boltzmann generator carries frames along the learned path to the force field itself.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::{CellRecord, Figure as Number, named};
use crate::stages::{Chosen, Steps, two_stages, when_free};
use diffclf::metric::Estimate;
use diffclf::molecule::{ReplicaSettings, Solvent, SolventModel};
use diffclf::sample::Smc;
use diffclf_report::curve::{Curve, Series};
use diffclf_report::page::Figure;
use diffclf_run::anneal::{AnnealMethod, Annealed, Annealing};
use diffclf_run::bridge::{BridgeChoice, Endpoint};
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{read_text, write_atomic};
use diffclf_run::free_energy::learn::{LearnedRequest, StateFiles};
use diffclf_run::machine::Machine;
use diffclf_run::molecule::{Molecule, MoleculeChoice, Sampling};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The molecule, see `aldp-solvation/ORIGIN.md`.
const TOPOLOGY: &[u8] = include_bytes!("../aldp-solvation/alanine-dipeptide.prmtop");
const COORDINATES: &[u8] = include_bytes!("../aldp-solvation/alanine-dipeptide.crd");
/// The solvents of time 0 and 1: differences are positive, as the paper prints them.
const LAMBDAS: [&str; 2] = ["0", "1"];
/// Temperatures of the replica exchange; frames are those of the first.
const TEMPERATURES: [f64; 8] = [300.0, 360.0, 430.0, 515.0, 620.0, 740.0, 890.0, 1070.0];
/// Seed of the dynamics.
const FRAMES_SEED: u64 = 1;
/// First step of the generator's moves in nm, tuned then: a tenth of what a bond to hydrogen swings.
const MOVE: f64 = 3e-4;
/// The cell of the dynamics alone.
const REFERENCE: &str = "reference";

/// How much is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    seeds: Vec<u64>,
    /// Steps of the score stage and of the second one.
    steps: [u64; 2],
    /// Frames of each solvent, swaps (0.1 ps) from one to the next and before the first.
    frames: usize,
    every: u64,
    warm_up: u64,
    /// Times along the path, and samples at each.
    path_levels: usize,
    path_samples: usize,
    /// Times of the integration.
    integration_levels: usize,
    /// The generator: particles in all its independent runs, levels, moves at each.
    particles: usize,
    runs: usize,
    levels: usize,
    moves: usize,
}

impl Steps for Budget {
    fn steps(&mut self) -> &mut [u64; 2] {
        &mut self.steps
    }
}

impl Chosen<'_, Budget> {
    /// Methods and seeds of the cells that train.
    fn places(&self) -> impl Iterator<Item = (String, (&str, u64))> {
        self.methods.keys().flat_map(|method| {
            let seeds = self.budget.seeds.iter();
            seeds.map(move |&seed| (format!("{method}-s{seed}"), (method.as_str(), seed)))
        })
    }
}

/// What the dynamics gave.
struct Frames {
    /// The molecule in the solvents of both ends.
    molecule: MoleculeChoice,
    /// Frames of both ends.
    rows: [PathBuf; 2],
    /// log(Z_1/Z_0), and from true vacuum.
    reference: Estimate,
    from_vacuum: Estimate,
}

impl Experiment for Chosen<'_, Budget> {
    fn cells(&self) -> Vec<String> {
        let trained = self.places().map(|(name, _)| name);
        [REFERENCE.into()].into_iter().chain(trained).collect()
    }

    fn settings(&self) -> Result<Value> {
        self.record()
    }

    fn run(&self, cell: &str, bench: &Bench) -> Result<CellRecord> {
        let frames = frames(bench, &self.budget)?;
        let (mut figures, mut series) = (Vec::new(), BTreeMap::new());
        if cell == REFERENCE {
            figures.push(("delta_f", frames.reference.into()));
            figures.push(("from_vacuum", frames.from_vacuum.into()));
        } else {
            let (method, seed) = named(self.places(), cell)?;
            let model = self.trained(bench, &frames, method, seed)?;
            let found = LearnedRequest {
                states: frames.rows.clone().map(|rows| StateFiles {
                    rows: Some(rows),
                    ..StateFiles::default()
                }),
                molecule: Some(frames.molecule.clone()),
                levels: self.budget.path_levels,
                samples: self.budget.path_samples,
                integration_levels: self.budget.integration_levels,
                end_samples: 0,
                seed,
            };
            let machine = Machine {
                threads: Some(bench.pool.threads()),
                kernel: bench.kernel.clone(),
            };
            let found = found.run(&model, &machine)?;
            let difference = &found.difference;
            let off = (difference.stated.mean - frames.reference.mean).abs();
            figures.push(("delta_f", difference.stated.into()));
            figures.push(("off", off.into()));
            figures.push((
                "statistical_error",
                match difference.by_mbar {
                    true => difference.mbar.statistical_error,
                    false => difference.integration.statistical_error,
                }
                .into(),
            ));
            let integration = difference.integration.estimate();
            let integration_off = (integration.mean - frames.reference.mean).abs();
            figures.push(("integration", integration.into()));
            figures.push(("integration_off", integration_off.into()));
            let mbar = difference.mbar.estimate();
            let mbar_off = (mbar.mean - frames.reference.mean).abs();
            figures.push(("mbar", mbar.into()));
            figures.push(("mbar_off", mbar_off.into()));
            if let Some(learned) = difference.learned {
                figures.push(("learned_f", learned.estimate().into()));
            }
            if let Some((a, b)) = &found.corrections {
                for (end, name, samples) in
                    [(a, "end_0", "end_0_samples"), (b, "end_1", "end_1_samples")]
                {
                    figures.push((name, end.perturbation.exponential.into()));
                    figures.push((samples, end.perturbation.effective_samples.into()));
                }
            }
            if let Some(bar) = found.direct {
                figures.push(("bar_of_ends", bar?.delta.into()));
            }
            let generated = self.generated(bench, &frames, &model, seed)?;
            figures.extend(generated);
            let times = found.path.slope_times.iter().copied();
            let slopes = found.path.slopes.iter().map(|slope| slope.mean);
            series.insert("slope".to_string(), times.zip(slopes).collect());
        }
        let figures = figures.into_iter();
        Ok(CellRecord {
            figures: figures.map(|(name, x)| (name.to_string(), x)).collect(),
            series,
            ..CellRecord::default()
        })
    }

    /// What integration integrates, for each method.
    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let series: Vec<Series> = self
            .places()
            .filter_map(|(name, _)| {
                let points = records.get(&name)?.series.get("slope")?.clone();
                Some(Series { name, points })
            })
            .collect();
        if series.is_empty() {
            return Ok(Vec::new());
        }
        let caption = "Mean of dU/dt along the learned path".to_string();
        let svg = Curve {
            alt: &caption,
            x_label: "time",
            y_label: "mean of dU/dt, kT",
            x_logarithmic: false,
            y_logarithmic: false,
            series: &series,
        }
        .svg();
        Ok(vec![Picture {
            name: "slopes".into(),
            figure: Figure { svg, caption },
        }])
    }
}

impl Chosen<'_, Budget> {
    fn trained(
        &self,
        bench: &Bench,
        frames: &Frames,
        method: &str,
        seed: u64,
    ) -> Result<diffclf::model::Model> {
        let mut settings = self.train_of(method)?;
        let [score, joint] = self.budget.steps;
        (settings.score_steps, settings.steps) = (Some(score), Some(joint));
        settings.objective = self.methods.get(method).cloned();
        settings.seed = Some(seed);
        let [start, end] = frames.rows.clone();
        (settings.data, settings.end) = (Some(start), Some(end));
        settings.molecule = Some(frames.molecule.clone());
        two_stages(
            bench,
            &format!("score-s{seed}"),
            &format!("{method}-s{seed}"),
            settings,
        )
    }

    /// log(Z_1/Z_0) by sequential Monte Carlo from frames of the first end, and how evenly the particles are weighted in the end.
    fn generated(
        &self,
        bench: &Bench,
        frames: &Frames,
        model: &diffclf::model::Model,
        seed: u64,
    ) -> Result<[(&'static str, Number); 2]> {
        let asked = Annealing {
            method: AnnealMethod::Smc,
            target: None,
            system_seed: 0,
            diffusion: false,
            contest: false,
            weights: true,
            bridge: BridgeChoice {
                towards: Some(Endpoint::End),
                rows: Some(frames.rows[0].clone()),
                ..BridgeChoice::default()
            },
            sweeps: 0,
            particles: self.budget.particles,
            levels: Some(self.budget.levels),
            smc: Smc {
                moves: self.budget.moves,
                step: MOVE,
                // A path that fits badly is a result, not a mistake.
                least_overlap: 0.0,
                runs: self.budget.runs,
                seed,
                ..Smc::default()
            },
        };
        let content = &model.content;
        let known = frames
            .molecule
            .energy_of_rows(content.columns(), bench.isa)?;
        let learned = model.energy(bench.pool.clone(), bench.isa)?;
        let done = asked.run_between(&*known, (content, &learned), &*bench.watch)?;
        let Annealed::Crossing { particles, .. } = done.finish("generated") else {
            return Err(Error::Failed("an interpolant was not crossed".into()));
        };
        let log_z = Number {
            value: particles.log_z.value,
            error: particles.log_z.error,
        };
        Ok([("smc", log_z), ("smc_ess", particles.ess().into())])
    }
}

/// Frames of both ends by replica exchange, made once for all cells.
fn frames(bench: &Bench, budget: &Budget) -> Result<Frames> {
    let place = |name: &str| bench.folder.join(name);
    let (topology, coordinates) = (place("molecule.prmtop"), place("molecule.crd"));
    for (path, bytes) in [(&topology, TOPOLOGY), (&coordinates, COORDINATES)] {
        write_atomic(path, |writer| Ok(writer.write_all(bytes)?))?;
    }
    let molecule = MoleculeChoice {
        topology,
        solvents: LAMBDAS.map(String::from).to_vec(),
        temperature: TEMPERATURES[0],
        model: SolventModel::default(),
    };
    let folder = place("frames");
    let record = folder.join("record.json");
    when_free(bench, || {
        if record.is_file() {
            return Ok(());
        }
        let whole = Molecule::open_whole(&molecule.topology, molecule.model)?;
        let sampling = Sampling {
            replicas: ReplicaSettings {
                temperatures: TEMPERATURES.to_vec(),
                solvents: [0.0, 1.0]
                    .map(|lambda| Solvent::Implicit { lambda })
                    .to_vec(),
                ladders: 1,
                step: 0.001,
                friction: 1.0,
                moves: 100,
                seed: FRAMES_SEED,
            },
            frames: budget.frames,
            every: budget.every,
            warm_up: budget.warm_up,
            checkpoint_every: Duration::from_secs(10),
            resume: folder.join("checkpoint.json").is_file(),
            force: false,
        };
        let starts = whole.coordinates(&coordinates)?;
        let (pool, watch) = (&*bench.pool, &*bench.watch);
        sampling.run(&whole, &starts, &folder, pool, bench.isa, watch)?;
        Ok(())
    })?;
    let text = read_text(&record)?;
    let [reference, to_vacuum] = differences(&text).ok_or_else(|| {
        Error::Failed(format!(
            "{} tells no free energies between its solvents: {text}",
            record.display()
        ))
    })?;
    Ok(Frames {
        rows: LAMBDAS.map(|lambda| folder.join(format!("frames-lambda-{lambda}.npy"))),
        molecule,
        reference,
        from_vacuum: Estimate {
            mean: reference.mean - to_vacuum.mean,
            error: reference.error.hypot(to_vacuum.error),
        },
    })
}

/// From lambda 0 to lambda 1 and to vacuum, as the record of the dynamics tells.
fn differences(record: &str) -> Option<[Estimate; 2]> {
    let record: Value = serde_json::from_str(record).ok()?;
    let all = record["findings"]["differences"].as_array()?;
    let to = |wanted: &dyn Fn(&Value) -> bool| {
        let found = all.iter().find(|one| wanted(&one["to"]))?;
        let number = |key: &str| found["delta"][key].as_f64();
        Some(Estimate {
            mean: number("mean")?,
            error: number("error")?,
        })
    };
    Some([
        to(&|to| to["lambda"] == 1.0)?,
        to(&|to| to["kind"] == "vacuum")?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored record of the long run tells what `measured.md` says of it.
    #[test]
    fn a_record_tells_both_differences() {
        let [solvation, vacuum] =
            differences(include_str!("../aldp-solvation/reference.json")).unwrap();
        assert!((solvation.mean - 29.403).abs() < 1e-3 && (solvation.error - 0.016).abs() < 1e-3);
        assert!((solvation.mean - vacuum.mean - 22.40).abs() < 0.01);
        assert!(differences("{}").is_none() && differences("no record").is_none());
    }
}
