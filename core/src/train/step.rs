//! One training step on the tile executor: noise, energies, loss and parameter gradient in one pass.

use std::sync::Arc;

use super::fill::{Fillers, TileFiller, draw_levels, draw_times, time_stream};
use super::gradients::Gradients;
use super::loss_sums::LossSums;
use super::source::Source;
use crate::energy::{Energy, ModelSpec, TimeMode, TimeTable, Wiring};
use crate::engine::{Isa, Node, Pool, Program, Real, Rows, Shape};
use crate::objective::anchor::anchors;
use crate::objective::probe::fill_signs;
use crate::objective::{ObjectiveName, Scene, Slots, Term, validate_terms};
use crate::process::TimeSampler;
use crate::rng::{Part, Purpose, Stream};
use crate::{Error, Result};

/// What a step is made of.
#[derive(Debug, Clone)]
pub struct StepSpec<O = ObjectiveName> {
    /// The weighted sum of objectives.
    pub terms: Vec<Term<O>>,
    /// Times per source row.
    pub levels: usize,
    /// Source rows per step.
    pub batch: usize,
    /// How times are drawn.
    pub times: TimeSampler,
    /// Seed of all draws.
    pub seed: u64,
    /// What the rows are for: training and held-out evaluation do not share draws.
    pub part: Part,
}

impl StepSpec {
    /// Whether every time is a level of the grid: the sampler draws levels, and no term sees F through its slope. If one does,
    /// each level gives way to a time inside the cell above it.
    pub fn on_grid(&self) -> bool {
        let slope = |t: &Term| t.objective.objective().sees_slope();
        self.times.on_grid() && !self.terms.iter().any(slope)
    }
}

/// Where the source rows come from; cheap to clone.
#[derive(Clone)]
pub struct Endpoints {
    /// `x_0`.
    pub start: Arc<dyn Source>,
    /// `x_1` of an interpolant.
    pub end: Option<Arc<dyn Source>>,
}

/// A loss with or without its parameter gradient, ready to run on any step's draws.
pub struct Step<T: Real> {
    spec: ModelSpec,
    plan: StepSpec,
    program: Program<T>,
    wiring: Wiring,
    slots: Slots,
    schedule: TimeTable<T>,
    fillers: Fillers<T>,
    truth: Option<Arc<dyn Energy>>,
    sums: LossSums,
    gradients: Gradients,
}

/// Losses of one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Losses {
    /// Mean of each term over the batch, unweighted.
    pub terms: Vec<f64>,
    /// Their weighted sum.
    pub total: f64,
}

impl<T: Real> Step<T> {
    /// Builds the graph of the terms, with the gradient of their weighted mean if `gradient`.
    pub fn new(
        spec: &ModelSpec,
        plan: StepSpec,
        gradient: bool,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<Step<T>> {
        spec.validate()?;
        validate_terms(&plan.terms, spec, plan.levels)?;
        plan.times
            .validate(&spec.process, &spec.grid, spec.dim, plan.levels)?;
        if plan.batch == 0 {
            return Err(Error::Value {
                name: "batch",
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
        let mode = if plan.on_grid() {
            TimeMode::Levels(spec.grid.levels())
        } else {
            TimeMode::Continuous
        };
        let mut scene = Scene::new(spec, mode, plan.levels);
        let losses: Vec<Node> = plan
            .terms
            .iter()
            .map(|t| t.objective.objective().loss(&mut scene))
            .collect();
        let mut outputs = losses.clone();
        if gradient {
            let g = scene.graph();
            let seeds: Vec<(Node, Node)> = losses
                .iter()
                .zip(&plan.terms)
                .map(|(&loss, t)| {
                    (
                        loss,
                        g.constant(t.weight / plan.batch as f64, Shape::new(Rows::Unit(1), 1)),
                    )
                })
                .collect();
            let parameters = scene.parameters();
            outputs.extend(scene.graph().grad(&seeds, &parameters));
        }
        let (graph, wiring, slots, layout) = scene.finish();
        let threads = pool.threads();
        let mut program = Program::new(&graph, &outputs, pool, isa);
        let times: &[f64] = if plan.on_grid() {
            spec.grid.times()
        } else {
            &[]
        };
        let schedule = TimeTable::new(spec, &wiring, times);
        schedule.set_globals(spec, &wiring, &mut program);
        let sums = LossSums::new(program.chunk_count(plan.batch), losses.len());
        Ok(Step {
            gradients: Gradients::new(&layout, losses.len(), gradient),
            fillers: Fillers::new(
                spec,
                (&wiring, &slots),
                times,
                (program.plan().tile_units(), plan.levels, threads),
                isa,
            )?,
            truth: None,
            spec: spec.clone(),
            plan,
            program,
            wiring,
            slots,
            schedule,
            sums,
        })
    }

    /// Gives the step the exact densities of its data, which some objectives compare with: time scores along the process,
    /// scores and log-densities at its ends.
    pub fn with_truth(mut self, truth: Option<Arc<dyn Energy>>) -> Step<T> {
        self.truth = truth;
        self
    }

    /// Refuses to run without what the objectives need.
    fn check_truth(&self) -> Result<()> {
        let needs = |t: &&Term| t.objective.objective().needs_truth(&self.spec);
        match (self.plan.terms.iter().find(needs), &self.truth) {
            (Some(term), None) => Err(Error::Value {
                name: "objective",
                found: format!("{} for data of unknown density", term.objective),
                expected: "a system whose densities are known, such as mog2 or mog40".into(),
            }),
            (_, Some(truth)) if truth.dim() != self.spec.dim => Err(Error::Shape {
                what: "the exact density".into(),
                found: format!("dimension {}", truth.dim()),
                expected: format!("{}, the dimension of the model", self.spec.dim),
            }),
            _ => Ok(()),
        }
    }

    /// What the step is made of.
    pub fn plan(&self) -> &StepSpec {
        &self.plan
    }

    /// Floating-point operations of one step's matrix products.
    pub fn flops(&self) -> f64 {
        self.program.plan().flops(self.plan.batch)
    }

    /// The instructions, printable.
    pub fn program(&self) -> &Program<T> {
        &self.program
    }

    /// Runs step number `step` at these parameters. The gradient goes to `gradient` (empty if the step has none).
    pub fn run(
        &mut self,
        params: &[T],
        step: u64,
        from: &Endpoints,
        losses: &mut Losses,
        gradient: &mut [T],
    ) -> Result<()> {
        if self.slots.rows.end.is_some() != from.end.is_some() {
            let word = |is: bool| if is { "two endpoints" } else { "one endpoint" };
            return Err(Error::Value {
                name: "source of training rows",
                found: word(from.end.is_some()).into(),
                expected: format!(
                    "{} for the {} process",
                    word(self.slots.rows.end.is_some()),
                    self.spec.process.name()
                ),
            });
        }
        self.check_truth()?;
        self.sums.clear();
        let Step {
            spec,
            plan,
            program,
            wiring,
            slots,
            schedule,
            fillers,
            truth,
            sums,
            ..
        } = &mut *self;
        let filler = TileFiller {
            spec,
            plan,
            wiring,
            slots,
            schedule,
            fillers,
            truth: truth.as_deref(),
            step,
            from,
        };
        program.run(
            params,
            plan.batch,
            &|units, inputs| filler.fill(units, inputs),
            &|chunk, units, outputs| sums.add(chunk, units, outputs),
        );
        let weights = self.plan.terms.iter().map(|term| term.weight);
        self.sums
            .finish(self.plan.batch, weights, losses)
            .map_err(|(unit, term)| Error::NonFinite {
                step,
                term: self.plan.terms[term]
                    .objective
                    .objective()
                    .name()
                    .to_string(),
                row: from.start.row(step, unit),
            })?;
        self.gradients.copy(&self.program, step, gradient)
    }

    /// The inputs of step `step`, for an independent implementation to check: start rows, end rows, noises, and times as
    /// grid levels or as values, all row-major.
    pub fn draws(&self, step: u64, from: &Endpoints) -> Draws {
        let (d, n, batch) = (self.spec.dim, self.plan.levels, self.plan.batch);
        let mut draws = Draws {
            start: vec![0.0; batch * d],
            end: vec![0.0; if from.end.is_some() { batch * d } else { 0 }],
            noise: Vec::new(),
            levels: Vec::new(),
            times: Vec::new(),
            partner_noise: Vec::new(),
            end_noise: Vec::new(),
            probes: [Vec::new(), Vec::new()],
            anchors: Vec::new(),
        };
        let (seed, part) = (self.plan.seed, self.plan.part);
        let normal = |purpose, width: usize| -> Vec<f32> {
            let mut noise = vec![T::ZERO; batch * width];
            T::fill_normal_rows(seed, purpose, step, 0, width, &mut noise);
            noise.iter().map(|z| z.to_f64() as f32).collect()
        };
        draws.noise = normal(Purpose::Noise(part), n * d);
        draws.partner_noise = normal(Purpose::Partner(part), n * d);
        draws.end_noise = normal(Purpose::Ends(part), d);
        for (k, probes) in draws.probes.iter_mut().enumerate() {
            let mut signs = vec![T::ZERO; batch * n * d];
            for (unit, signs) in signs.chunks_mut(n * d).enumerate() {
                fill_signs((seed, part, step), unit, k, signs);
            }
            *probes = signs.iter().map(|z| z.to_f64() as f32).collect();
        }
        let (mut levels, mut times) = (vec![0; n], vec![0.0; n]);
        for unit in 0..batch {
            from.start
                .fill(step, unit, &mut draws.start[unit * d..][..d]);
            if let Some(end) = &from.end {
                end.fill(step, unit, &mut draws.end[unit * d..][..d]);
            }
            let mut stream = time_stream(&self.plan, step, unit);
            if self.plan.on_grid() {
                draw_levels(&self.plan, &self.spec, &mut stream, &mut levels);
                draws.levels.extend(&levels);
                draws
                    .times
                    .extend(levels.iter().map(|&k| self.spec.grid.times()[k as usize]));
            } else {
                draw_times(&self.plan, &self.spec, &mut stream, &mut times);
                draws.times.extend(&times);
            }
            let stream = Stream::new(seed, Purpose::Anchor(part), step, unit as u64);
            let own = &draws.times[unit * n..];
            draws.anchors.extend(anchors(&self.spec, own, stream));
        }
        draws
    }
}

/// The draws of a step; see [`Step::draws`].
#[derive(Debug, Clone)]
pub struct Draws {
    /// `x_0`, batch x d.
    pub start: Vec<f32>,
    /// `x_1`, batch x d, or empty.
    pub end: Vec<f32>,
    /// `z`, batch x N x d.
    pub noise: Vec<f32>,
    /// Levels, batch x N, or empty.
    pub levels: Vec<u32>,
    /// Times, batch x N.
    pub times: Vec<f64>,
    /// Second noises of partners on the noising path, batch x N x d.
    pub partner_noise: Vec<f32>,
    /// Noise of the point at a diffusion's known last end, batch x d.
    pub end_noise: Vec<f32>,
    /// Signs of both probes, batch x N x d.
    pub probes: [Vec<f32>; 2],
    /// Draws from the inflated base, batch x N x d, or empty.
    pub anchors: Vec<f64>,
}
