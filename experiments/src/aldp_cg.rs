//! Coarse-grained alanine dipeptide learned from real frames: the plane of phi and psi of independent samples and of long Langevin
//! dynamics on the learned energy, beside the data.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::{CellRecord, Figure as Number, named};
use crate::side_by_side::{View, after, independent, record, whole};
use crate::stages::{Chosen, Steps, two_stages};
use diffclf::energy::compose::Expression;
use diffclf::format::npy::{NpyView, write_npy};
use diffclf::metric::{Estimate, Plane, States, state_of};
use diffclf::model::Model;
use diffclf::observable::Observable;
use diffclf_report::page::Figure;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::write_atomic;
use diffclf_run::simulate::{Landscape, Scheme, Simulation, Units};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// The frames, see `aldp-cg/DATA.md`.
const FRAMES: &[u8] = include_bytes!("../aldp-cg/frames.npy");
/// Beads and numbers of a frame.
const BEADS: usize = 5;
const DIM: usize = 3 * BEADS;
/// Masses of the beads: C, N, C, C, N.
const MASSES: [f64; BEADS] = [12.0108, 14.0067, 12.0108, 12.0108, 14.0067];
/// Beads farther out than this, in nm, are lost.
const FARTHEST: f64 = 100.0;
/// The cell of the data: what two halves of it have.
const DATA: &str = "data";

const VIEW: View = View {
    js_bins: 64,
    js_limits: None,
    pmf_bins: 64,
    window: [-PI, PI, -PI, PI],
    labels: ["phi", "psi"],
};

/// How much is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    seeds: Vec<u64>,
    /// Steps of the score stage and of the second one.
    steps: [u64; 2],
    /// Independent samples.
    samples: usize,
    /// Steps of the sampler.
    sampler_steps: usize,
    /// Chains, from frames all over the data, and frames of each; the first tenth is left out.
    chains: usize,
    frames: usize,
    /// Steps of 2 fs from frame to frame.
    thin: usize,
}

impl Steps for Budget {
    fn steps(&mut self) -> &mut [u64; 2] {
        &mut self.steps
    }
}

struct Place<'a> {
    method: &'a str,
    seed: u64,
}

impl Place<'_> {
    fn name(&self) -> String {
        format!("{}-s{}", self.method, self.seed)
    }
}

/// The frames in nm, each about its centre.
fn frames() -> Result<Vec<f64>> {
    let view = NpyView::parse(FRAMES)?;
    let mut rows = view.to_vec_f64();
    if view.dim() != DIM {
        return Err(Error::Failed(format!(
            "frames of {} numbers, expected {DIM}",
            view.dim()
        )));
    }
    for frame in rows.chunks_exact_mut(DIM) {
        for axis in 0..3 {
            let mean = frame.iter().skip(axis).step_by(3).sum::<f64>() / BEADS as f64;
            frame
                .iter_mut()
                .skip(axis)
                .step_by(3)
                .for_each(|x| *x = 0.1 * (*x - mean));
        }
    }
    Ok(rows)
}

/// phi and psi of frames.
fn angles(frames: &[f64]) -> Vec<f64> {
    let (phi, psi) = (
        Observable::Dihedral([0, 1, 2, 3]),
        Observable::Dihedral([1, 2, 3, 4]),
    );
    frames
        .chunks_exact(DIM)
        .flat_map(|frame| [phi.of(frame), psi.of(frame)])
        .collect()
}

/// Weight of phi > 0 with its error, and the transitions across.
fn right_half(angles: &[f64], chains: usize) -> Result<(Estimate, u64)> {
    let states: Vec<usize> = angles
        .chunks_exact(2)
        .map(|point| state_of(point[0], &[0.0], false))
        .collect();
    let found = States::of(&states, chains, 2)?;
    let crossings = found.transitions[1] + found.transitions[2];
    let weight = Estimate {
        mean: found.weights[1],
        error: found.errors[1],
    };
    Ok((weight, crossings))
}

impl Chosen<'_, Budget> {
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let methods = self.methods.keys().map(String::as_str).chain([DATA]);
        methods.flat_map(|method| {
            let seeds = self.budget.seeds.iter();
            seeds.map(move |&seed| Place { method, seed })
        })
    }

    fn trained(&self, place: &Place<'_>, objective: &str, bench: &Bench) -> Result<Model> {
        let path = bench.folder.join("frames-nm.npy");
        let rows: Vec<f32> = frames()?.iter().map(|x| *x as f32).collect();
        write_atomic(&path, |writer| {
            write_npy(&[rows.len() / DIM, BEADS, 3], &rows, writer)
        })?;
        let [score, joint] = self.budget.steps;
        let mut settings = self.train.clone();
        settings.data = Some(path);
        settings.seed = Some(place.seed);
        (settings.score_steps, settings.steps) = (Some(score), Some(joint));
        settings.objective = Some(objective.into());
        two_stages(
            bench,
            &format!("score-s{}", place.seed),
            &place.name(),
            settings,
        )
    }

    /// Chains from frames all over the data, without the first tenth of theirs; and how many chains left the data.
    fn dynamics(
        &self,
        model: Model,
        data: &[f64],
        seed: u64,
        bench: &Bench,
    ) -> Result<(Vec<f64>, usize)> {
        let Budget {
            chains,
            frames,
            thin,
            ..
        } = self.budget;
        let expression = Expression::parse("A")?;
        let landscape = Landscape {
            expression: &expression,
            models: &[("A", model)],
            systems: &[],
            system_seed: 0,
        };
        let asked = Simulation {
            scheme: Scheme::LangevinLeapfrog,
            units: Units::Nm,
            step: 2.0,
            friction: 1.0,
            temperature: 300.0,
            masses: MASSES.to_vec(),
            frames,
            thin,
            time: None,
            bonds: vec![[0, 1], [1, 2], [2, 3], [3, 4]],
            particles: true,
            seed,
        };
        let every = data.len() / DIM / chains;
        let start: Vec<f64> = data
            .chunks_exact(DIM)
            .step_by(every.max(1))
            .take(chains)
            .flatten()
            .copied()
            .collect();
        let machine = (bench.pool.threads(), bench.isa);
        let done = asked.run(&landscape, &start, data, machine, None, &*bench.watch)?;
        let found = done.finish(&format!("{chains} chains of {frames} frames"));
        let left = &found.summary.departures;
        let mut left: Vec<usize> = left.iter().map(|departure| departure.chain).collect();
        left.sort_unstable();
        left.dedup();
        Ok((after(&found.points, chains, DIM, frames / 10), left.len()))
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
        let data = frames()?;
        let reference = angles(&data);
        let Some(objective) = self.methods.get(place.method) else {
            let (weight, crossings) = right_half(&reference, 1)?;
            let mut cell = record(vec![
                ("weight_right", weight.into()),
                ("crossings", Number::from(crossings as f64)),
            ]);
            let plane = Plane::new(&reference)?;
            let js =
                plane.floor(|a, b| diffclf::metric::jensen_shannon(a, b, VIEW.js_bins, None))?;
            let pmf =
                plane.floor(|a, b| diffclf::metric::pmf_error(a, b, VIEW.pmf_bins, VIEW.window))?;
            cell.figures.insert("js_halves".into(), js.into());
            cell.figures.insert("pmf_halves".into(), pmf.into());
            VIEW.add(&mut cell, "iid", &reference, &reference)?;
            return Ok(cell);
        };
        let model = self.trained(&place, objective, bench)?;
        let Budget {
            samples,
            sampler_steps,
            chains,
            ..
        } = self.budget;
        let drawn = independent(bench, &model, samples, sampler_steps, place.seed)?;
        let (drawn, stray) = whole(&drawn, DIM, FARTHEST);
        let (moved, left) = self.dynamics(model, &data, place.seed, bench)?;
        let length = moved.len() / DIM / chains;
        let (kept, lost) = whole(&moved, DIM, FARTHEST);
        let (iid, langevin) = (angles(&drawn), angles(&kept));
        let rows = (iid.len() / 2) as f64;
        let share = iid.chunks_exact(2).filter(|point| point[0] > 0.0).count() as f64 / rows;
        let by_chain = if lost == 0 { chains } else { 1 };
        let (weight, crossings) = match langevin.is_empty() {
            true => (
                Estimate {
                    mean: f64::NAN,
                    error: f64::NAN,
                },
                0,
            ),
            false => right_half(&langevin, by_chain)?,
        };
        let mut cell = record(vec![
            (
                "weight_right_iid",
                Number::from(Estimate {
                    mean: share,
                    error: (share * (1.0 - share) / rows).sqrt(),
                }),
            ),
            ("weight_right_langevin", weight.into()),
            ("crossings", Number::from(crossings as f64)),
            ("left", Number::from(left as f64)),
            ("lost", Number::from((lost + stray) as f64)),
            ("frames", Number::from(length as f64)),
        ]);
        VIEW.add(&mut cell, "iid", &iid, &reference)?;
        VIEW.add(&mut cell, "langevin", &langevin, &reference)?;
        let js = |kind: &str| {
            cell.figures
                .get(kind)
                .map_or(f64::NAN, |figure| figure.value)
        };
        let ratio = Number::from(js("js_langevin") / js("js_iid"));
        cell.figures.insert("js_ratio".into(), ratio);
        Ok(cell)
    }

    /// Ramachandran planes: the data, independent samples and dynamics of each method.
    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let seed = self.budget.seeds[0];
        let mut pictures = Vec::new();
        for place in self.places().filter(|place| place.seed == seed) {
            let objective = self.methods.get(place.method);
            for (kind, words) in [
                ("iid", "independent samples"),
                ("langevin", "Langevin dynamics"),
            ] {
                let kept = records
                    .get(&place.name())
                    .and_then(|r| r.series.get(&format!("surface {kind}")));
                let Some(kept) = kept else { continue };
                let caption = match objective {
                    Some(objective) => format!("Free energy of phi and psi: {words}, {objective}"),
                    None => "Free energy of phi and psi: the data".into(),
                };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts of the set, by cgnet's and mdtraj's definitions.
    #[test]
    fn the_frames_are_what_they_should_be() {
        let frames = frames().unwrap();
        assert_eq!(frames.len(), 10_000 * DIM);
        for (bond, length) in [
            ([0, 1], 0.1329),
            ([1, 2], 0.1465),
            ([2, 3], 0.1544),
            ([3, 4], 0.1335),
        ] {
            let values = Observable::Distance(bond).of_all(&frames, DIM).unwrap();
            let mean = values.iter().sum::<f64>() / 10_000.0;
            assert!((mean - length).abs() < 1e-4, "{bond:?}: {mean}");
        }
        let variance = frames.iter().map(|x| x * x).sum::<f64>() / frames.len() as f64;
        assert!(
            (variance.sqrt() - 0.09465).abs() < 1e-4,
            "{}",
            variance.sqrt()
        );
        let (weight, crossings) = right_half(&angles(&frames), 1).unwrap();
        assert!(
            (weight.mean - 0.0239).abs() < 1e-6 && crossings == 6,
            "{weight:?} {crossings}"
        );
    }
}
