//! Experiments on dynamics: energies are learned from frames, and independent samples and long Langevin dynamics on them are set beside the
//! reference. A [`Subject`] says what is learned; everything else is the same for all.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::{CellRecord, Figure as Number, named};
use crate::side_by_side::{View, after, independent, record, whole};
use crate::stages::{Chosen, Steps, two_stages};
use diffclf::energy::compose::Expression;
use diffclf::metric::{Estimate, Plane, States, jensen_shannon, pmf_error};
use diffclf::model::Model;
use diffclf_report::curve::{Curve, Series};
use diffclf_report::page::Figure;
use diffclf_run::error::Result;
use diffclf_run::simulate::{Landscape, Simulation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

/// How much is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    seeds: Vec<u64>,
    /// Further seeds of single methods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    more_seeds: BTreeMap<String, Vec<u64>>,
    /// Steps of the score stage and of the second one.
    steps: [u64; 2],
    /// Independent samples, and rows of a reference that is drawn.
    pub samples: usize,
    /// Steps of the sampler.
    sampler_steps: usize,
    /// Chains of the dynamics, and frames of each; the first tenth of the frames is left out.
    pub chains: usize,
    frames: usize,
    /// Steps from frame to frame.
    thin: usize,
    /// Time of the learned energy that chains move on; the smallest if absent.
    #[serde(default)]
    time: Option<f64>,
}

impl Steps for Budget {
    fn steps(&mut self) -> &mut [u64; 2] {
        &mut self.steps
    }
}

/// What is learned, and what is looked at.
pub trait Subject {
    /// Name of the cell without a model: what the reference itself has, and dynamics on the exact energy where there is one.
    const REFERENCE: &'static str;
    /// The plane in which samples are compared.
    const VIEW: View;
    /// What the horizontal axis of the path shows.
    const PATH: &'static str;
    /// Whether frames of the user's may stand for its own ([`Bench::data`]).
    const TAKES_FRAMES: bool = false;

    /// Frames, start and questions of one seed.
    fn scene(bench: &Bench, budget: &Budget, seed: u64) -> Result<Scene>;
}

/// From a frame to its point in the plane.
pub type Projection = dyn Fn(&[f64]) -> [f64; 2];

/// The frames of one seed, and what is asked of samples.
pub struct Scene {
    /// Numbers of a frame.
    pub dim: usize,
    /// File with the frames that are learned; none for a built-in system.
    pub data: Option<PathBuf>,
    /// Frames that samples are compared with, and by which chains that leave are noticed.
    pub reference: Vec<f64>,
    /// Other independent frames of the same law, where they can be had: what samples have at best.
    pub again: Option<Vec<f64>>,
    /// Where chains start.
    pub start: Vec<f64>,
    /// How they move; frames, thinning and seed are the budget's.
    pub simulation: Simulation,
    /// Name of the system whose exact energy chains may move on.
    pub exact: Option<String>,
    /// The two observables of a frame.
    pub plane: Box<Projection>,
    /// Names of states with their weights, exact or of the reference.
    pub states: Vec<(String, Estimate)>,
    /// The state of a point of the plane.
    pub state: Box<dyn Fn([f64; 2]) -> usize>,
    /// Coordinates farther out than this are lost.
    pub farthest: f64,
    /// Frames along a path, each with its place on the axis.
    pub path: Vec<(f64, Vec<f64>)>,
    /// Two frames whose difference of energies is asked for, the second minus the first.
    pub barrier: Option<[Vec<f64>; 2]>,
}

impl Scene {
    /// Points of frames in the plane.
    pub fn points(&self, frames: &[f64]) -> Vec<f64> {
        let frames = frames.chunks_exact(self.dim);
        frames.flat_map(|frame| (self.plane)(frame)).collect()
    }

    /// States of frames, chain after chain; a frame that is lost has a state of its own, the last.
    fn found(&self, frames: &[f64], chains: usize) -> Result<States> {
        let inside = |frame: &[f64]| frame.iter().all(|x| x.abs() <= self.farthest);
        let frames = frames.chunks_exact(self.dim);
        let states: Vec<usize> = frames
            .map(|frame| match inside(frame) {
                true => (self.state)((self.plane)(frame)),
                false => self.states.len(),
            })
            .collect();
        Ok(States::of(&states, chains, self.states.len() + 1)?)
    }
}

/// Weights and transitions of the states of points in a series of chains.
pub fn states_of(
    points: &[f64],
    chains: usize,
    count: usize,
    state: impl Fn([f64; 2]) -> usize,
) -> Result<States> {
    let points = points.chunks_exact(2);
    let states: Vec<usize> = points.map(|p| state([p[0], p[1]])).collect();
    Ok(States::of(&states, chains, count)?)
}

/// So many frames from all over the data.
pub fn spread(data: &[f64], dim: usize, number: usize) -> Vec<f64> {
    let every = (data.len() / dim / number.max(1)).max(1);
    let frames = data.chunks_exact(dim).step_by(every);
    frames.take(number).flatten().copied().collect()
}

/// An experiment at one budget.
pub struct Dynamics<'a, S> {
    chosen: Chosen<'a, Budget>,
    subject: PhantomData<S>,
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

/// What is drawn beside each other.
const KINDS: [(&str, &str); 2] = [
    ("iid", "independent samples"),
    ("langevin", "Langevin dynamics"),
];
/// Chains whose traces are kept, and points of a trace.
const TRACES: usize = 2;
const TRACE_POINTS: usize = 400;
/// Energies along a path that lie higher are not drawn, in kT.
const HIGHEST_PATH: f64 = 40.0;

impl<'a, S: Subject> Dynamics<'a, S> {
    /// The comparison of methods on a subject.
    pub fn of(chosen: Chosen<'a, Budget>) -> Self {
        Self {
            chosen,
            subject: PhantomData,
        }
    }

    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let methods = self.chosen.methods.keys().map(String::as_str);
        methods.chain([S::REFERENCE]).flat_map(|method| {
            let Budget {
                seeds, more_seeds, ..
            } = &self.chosen.budget;
            let more = more_seeds.get(method).into_iter().flatten();
            let seeds = seeds.iter().chain(more);
            seeds.map(move |&seed| Place { method, seed })
        })
    }

    fn trained(&self, place: &Place<'_>, scene: &Scene, bench: &Bench) -> Result<Option<Model>> {
        let Some(objective) = self.chosen.methods.get(place.method) else {
            return Ok(None);
        };
        let [score, joint] = self.chosen.budget.steps;
        let mut settings = self.chosen.train_of(place.method)?;
        settings.data = scene.data.clone();
        settings.seed = Some(place.seed);
        (settings.score_steps, settings.steps) = (Some(score), Some(joint));
        settings.objective = Some(objective.clone());
        // Methods share the score stage with those of the same settings, under the first one's name.
        let with = &self.chosen.with;
        let own = with.get(place.method);
        let shared = match with.iter().find(|(_, other)| Some(*other) == own) {
            Some((first, _)) => format!("score-{first}-s{}", place.seed),
            None => format!("score-s{}", place.seed),
        };
        two_stages(bench, &shared, &place.name(), settings).map(Some)
    }

    /// Chains on the model or the exact energy without the first tenth of their frames, and how many left the reference.
    fn chains(
        &self,
        scene: &Scene,
        model: Option<&Model>,
        seed: u64,
        bench: &Bench,
    ) -> Result<(Vec<f64>, usize)> {
        let Budget {
            chains,
            frames,
            thin,
            ..
        } = self.chosen.budget;
        let asked = Simulation {
            frames,
            thin,
            seed,
            time: model.and(self.chosen.budget.time),
            ..scene.simulation.clone()
        };
        let expression = Expression::parse("A")?;
        let models: Vec<(&str, Model)> = model.map(|m| ("A", m.clone())).into_iter().collect();
        let systems: Vec<(&str, &str)> = match (model, &scene.exact) {
            (None, Some(system)) => vec![("A", system.as_str())],
            _ => Vec::new(),
        };
        let landscape = Landscape {
            expression: &expression,
            models: &models,
            systems: &systems,
            system_seed: 0,
        };
        let machine = (bench.pool.threads(), bench.isa);
        let done = asked.run(
            &landscape,
            &scene.start,
            &scene.reference,
            machine,
            None,
            &*bench.watch,
        )?;
        let found = done.finish(&format!("{chains} chains of {frames} frames"));
        let departures = found.summary.departures.iter();
        let mut left: Vec<usize> = departures.map(|departure| departure.chain).collect();
        left.sort_unstable();
        left.dedup();
        let kept = after(&found.points, chains, scene.dim, frames / 10);
        Ok((kept, left.len()))
    }

    /// The energies of a model, or of the exact system, at some frames; none where neither is there.
    fn energies(
        &self,
        scene: &Scene,
        model: Option<&Model>,
        frames: &[f64],
        bench: &Bench,
    ) -> Result<Option<Vec<f64>>> {
        let mut found = vec![0.0; frames.len() / scene.dim];
        if let Some(model) = model {
            let energy = Arc::new(model.energy(bench.pool.clone(), bench.isa)?);
            let energy = model.content.at_rows(energy);
            let smallest = model.content.spec.grid.t_min();
            let time = self.chosen.budget.time.unwrap_or(smallest);
            energy.energy(&[time], frames, &mut found);
            return Ok(Some(found));
        }
        let Some(system) = &scene.exact else {
            return Ok(None);
        };
        let expression = Expression::parse("A")?;
        let landscape = Landscape {
            expression: &expression,
            models: &[],
            systems: &[("A", system)],
            system_seed: 0,
        };
        landscape.held(0.0, 1, bench.isa, |targets| {
            targets[0].energy.energy(&[0.0], frames, &mut found);
            Ok(())
        })?;
        Ok(Some(found))
    }

    /// Weights of the states of one kind of samples, and how far the worst is off.
    fn weights(cell: &mut CellRecord, scene: &Scene, kind: &str, found: &States, rows: f64) {
        let mut worst = 0.0_f64;
        for (k, (name, known)) in scene.states.iter().enumerate() {
            let weight = found.weights[k];
            worst = worst.max((weight - known.mean).abs());
            // Independent samples have binomial errors.
            let error = match kind {
                "iid" => (weight * (1.0 - weight) / rows).sqrt(),
                _ => found.errors[k],
            };
            let estimate = Estimate {
                mean: weight,
                error,
            };
            cell.figures
                .insert(format!("weight_{name}_{kind}"), estimate.into());
        }
        cell.figures
            .insert(format!("weight_error_{kind}"), worst.into());
    }

    /// Traces of the first chains' first observable, thinned to a picture's width.
    fn traces(cell: &mut CellRecord, scene: &Scene, chains: &[f64], count: usize) {
        let length = chains.len() / scene.dim / count.max(1);
        let every = length.div_ceil(TRACE_POINTS).max(1);
        let each = chains.chunks_exact((length * scene.dim).max(1));
        for (k, chain) in each.take(TRACES).enumerate() {
            let frames = chain.chunks_exact(scene.dim).enumerate().step_by(every);
            let line = frames.map(|(at, frame)| (at as f64, (scene.plane)(frame)[0]));
            let line = line.filter(|(_, x)| x.is_finite()).collect();
            cell.series.insert(format!("trace {k}"), line);
        }
    }
}

impl<S: Subject> Experiment for Dynamics<'_, S> {
    fn cells(&self) -> Vec<String> {
        self.places().map(|place| place.name()).collect()
    }

    fn settings(&self) -> Result<serde_json::Value> {
        self.chosen.record()
    }

    fn takes_frames(&self) -> bool {
        S::TAKES_FRAMES
    }

    fn run(&self, cell: &str, bench: &Bench) -> Result<CellRecord> {
        let place = named(self.places().map(|place| (place.name(), place)), cell)?;
        let budget = &self.chosen.budget;
        let scene = S::scene(bench, budget, place.seed)?;
        let reference = scene.points(&scene.reference);
        let model = self.trained(&place, &scene, bench)?;
        let mut cell = record(Vec::new());
        let drawn = match &model {
            Some(model) => Some(independent(
                bench,
                model,
                budget.samples,
                budget.sampler_steps,
                place.seed,
            )?),
            None => scene.again.clone(),
        };
        let mut lost = 0;
        if let Some(drawn) = &drawn {
            let (kept, stray) = whole(drawn, scene.dim, scene.farthest);
            lost += stray;
            let rows = (drawn.len() / scene.dim) as f64;
            let found = scene.found(drawn, 1)?;
            Self::weights(&mut cell, &scene, "iid", &found, rows);
            S::VIEW.add(&mut cell, "iid", &scene.points(&kept), &reference)?;
        }
        if model.is_none() {
            let plane = Plane::new(&reference)?;
            let js =
                plane.floor(|a, b| jensen_shannon(a, b, S::VIEW.js_bins, S::VIEW.js_limits))?;
            let pmf = plane.floor(|a, b| pmf_error(a, b, S::VIEW.pmf_bins, S::VIEW.window))?;
            cell.figures.insert("js_halves".into(), js.into());
            cell.figures.insert("pmf_halves".into(), pmf.into());
            for (name, weight) in &scene.states {
                cell.figures
                    .insert(format!("weight_{name}"), (*weight).into());
            }
            if drawn.is_none() {
                S::VIEW.keep_surface(&mut cell, "iid", &reference)?;
            }
        }
        if model.is_some() || scene.exact.is_some() {
            let (chains, left) = self.chains(&scene, model.as_ref(), place.seed, bench)?;
            let (kept, gone) = whole(&chains, scene.dim, scene.farthest);
            lost += gone;
            let found = scene.found(&chains, budget.chains)?;
            Self::weights(&mut cell, &scene, "langevin", &found, 0.0);
            S::VIEW.add(&mut cell, "langevin", &scene.points(&kept), &reference)?;
            let states = scene.states.len();
            let crossings: u64 = (0..states * states)
                .map(|k| found.transitions[k / states * (states + 1) + k % states])
                .sum();
            let frames = chains.len() / scene.dim / budget.chains;
            for (name, value) in [
                ("left", left as f64),
                ("crossings", crossings as f64),
                ("frames", frames as f64),
            ] {
                cell.figures.insert(name.into(), value.into());
            }
            Self::traces(&mut cell, &scene, &chains, budget.chains);
        }
        cell.figures.insert("lost".into(), (lost as f64).into());
        for figure in ["js", "pmf"] {
            let of = |kind: &str| Some(cell.figures.get(&format!("{figure}_{kind}"))?.value);
            if let (Some(moved), Some(drawn)) = (of("langevin"), of("iid")) {
                let ratio = Number::from(moved / drawn);
                cell.figures.insert(format!("{figure}_ratio"), ratio);
            }
        }
        let along: Vec<f64> = scene
            .path
            .iter()
            .flat_map(|(_, frame)| frame.clone())
            .collect();
        if let Some(energies) = self.energies(&scene, model.as_ref(), &along, bench)? {
            let lowest = energies.iter().fold(f64::INFINITY, |m, u| m.min(*u));
            let places = scene.path.iter().zip(&energies);
            let line = places.map(|((at, _), u)| (*at, u - lowest)).collect();
            cell.series.insert("path".into(), line);
        }
        if let Some(ends) = &scene.barrier
            && let Some(found) = self.energies(&scene, model.as_ref(), &ends.concat(), bench)?
        {
            cell.figures
                .insert("barrier".into(), (found[1] - found[0]).into());
        }
        Ok(cell)
    }

    /// Free energy surfaces, traces of dynamics, and energies along the path.
    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let seed = self.chosen.budget.seeds[0];
        let mut pictures = Vec::new();
        let mut add = |name: String, caption: String, svg: String| {
            pictures.push(Picture {
                name,
                figure: Figure { svg, caption },
            });
        };
        let found: Vec<(&str, &CellRecord)> = self
            .places()
            .filter(|place| place.seed == seed)
            .filter_map(|place| {
                let methods = self.chosen.methods.keys().map(String::as_str);
                let name = methods.chain([S::REFERENCE]).find(|m| *m == place.method)?;
                Some((name, records.get(&place.name())?))
            })
            .collect();
        for (method, record) in &found {
            for (kind, words) in KINDS {
                let Some(kept) = record.series.get(&format!("surface {kind}")) else {
                    continue;
                };
                let caption = match *method == S::REFERENCE && kind == "iid" {
                    true => format!("Free energy: {}", S::REFERENCE),
                    false => format!("Free energy: {method}, {words}"),
                };
                let svg = S::VIEW.picture(kept, &caption);
                add(format!("{method}-{kind}"), caption, svg);
            }
        }
        let [low, high, ..] = S::VIEW.window;
        for (method, record) in &found {
            let traces: Vec<Series> = (0..TRACES)
                .filter_map(|k| {
                    Some(Series {
                        name: format!("chain {k}"),
                        points: within(record.series.get(&format!("trace {k}"))?, low, high),
                    })
                })
                .filter(|series| series.points.len() > 1)
                .collect();
            if traces.is_empty() {
                continue;
            }
            let caption = format!(
                "{} along two chains of Langevin dynamics, {method}",
                S::VIEW.labels[0]
            );
            let svg = lines(&caption, ["frame", S::VIEW.labels[0]], &traces);
            add(format!("{method}-trace"), caption, svg);
        }
        let paths: Vec<Series> = found
            .iter()
            .filter_map(|(method, record)| {
                Some(Series {
                    name: method.to_string(),
                    points: within(record.series.get("path")?, 0.0, HIGHEST_PATH),
                })
            })
            .collect();
        if !paths.is_empty() {
            let caption = "Energy along a path, above its lowest, in kT".to_string();
            let svg = lines(&caption, [S::PATH, "energy (kT)"], &paths);
            add("path".into(), caption, svg);
        }
        Ok(pictures)
    }
}

/// A picture of lines.
fn lines(alt: &str, labels: [&str; 2], series: &[Series]) -> String {
    Curve {
        alt,
        x_label: labels[0],
        y_label: labels[1],
        x_logarithmic: false,
        y_logarithmic: false,
        series,
    }
    .svg()
}

/// A line with gaps where it leaves the picture.
fn within(points: &[(f64, f64)], low: f64, high: f64) -> Vec<(f64, f64)> {
    let shown = |y: f64| match (low..=high).contains(&y) {
        true => y,
        false => f64::NAN,
    };
    points.iter().map(|(x, y)| (*x, shown(*y))).collect()
}
