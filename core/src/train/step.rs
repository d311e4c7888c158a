//! One training step on the tile executor: noise, energies, loss and parameter gradient in one pass.

use std::sync::{Arc, Mutex, PoisonError};

use super::source::Source;
use crate::energy::{ModelSpec, Schedule, TimeMode, Wiring};
use crate::network::{Inputs, Isa, Node, Pool, Program, Real, Rows, Shape};
use crate::objective::{MAX_LEVELS, Scene, Slots, Term, validate_terms};
use crate::process::TimeSampler;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// What a step is made of.
#[derive(Debug, Clone)]
pub struct StepPlan {
    /// The weighted sum of objectives.
    pub terms: Vec<Term>,
    /// Times per source row.
    pub levels: usize,
    /// Source rows per step.
    pub batch: usize,
    /// How times are drawn.
    pub times: TimeSampler,
    /// Seed of all draws.
    pub seed: u64,
    /// What the draws are for: training and held-out evaluation must not share them.
    pub purpose: Purpose,
}

/// Where the source rows come from.
#[derive(Clone, Copy)]
pub struct Endpoints<'a> {
    /// `x_0`.
    pub start: &'a dyn Source,
    /// `x_1` of an interpolant.
    pub end: Option<&'a dyn Source>,
}

/// Coefficients of `y = alpha x_0 + beta x_1 + gamma z` at a time.
#[derive(Clone, Copy)]
struct Mixing<T> {
    alpha: T,
    beta: T,
    gamma: T,
}

/// Loss sums of one chunk, and its first non-finite value.
struct ChunkLoss {
    sums: Vec<f64>,
    bad: Option<(usize, usize)>,
}

/// A loss with or without its parameter gradient, ready to run on any step's draws.
pub struct Step<T: Real> {
    spec: ModelSpec,
    plan: StepPlan,
    program: Program<T>,
    wiring: Wiring,
    slots: Slots,
    schedule: Schedule<T>,
    mixing: Vec<Mixing<T>>,
    chunks: Vec<Mutex<ChunkLoss>>,
    /// Name, first parameter and number of parameters of each gradient output.
    gradients: Vec<(String, usize, usize)>,
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
        plan: StepPlan,
        gradient: bool,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<Step<T>> {
        spec.validate()?;
        validate_terms(&plan.terms, plan.levels)?;
        plan.times
            .validate(&spec.process, &spec.grid, plan.levels)?;
        if plan.batch == 0 {
            return Err(Error::Value {
                name: "batch",
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
        let mode = if plan.times.on_grid() {
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
        let mut program = Program::new(&graph, &outputs, pool, isa);
        let times: &[f64] = if plan.times.on_grid() {
            spec.grid.times()
        } else {
            &[]
        };
        let schedule = Schedule::new(spec, &wiring, times);
        schedule.set_globals(spec, &wiring, &mut program);
        let chunks = (0..program.chunk_count(plan.batch))
            .map(|_| {
                Mutex::new(ChunkLoss {
                    sums: vec![0.0; losses.len()],
                    bad: None,
                })
            })
            .collect();
        let gradients = layout
            .entries()
            .iter()
            .map(|e| (e.name.clone(), e.offset, e.rows * e.cols))
            .collect();
        Ok(Step {
            mixing: times.iter().map(|&t| mixing(spec, t)).collect(),
            spec: spec.clone(),
            plan,
            program,
            wiring,
            slots,
            schedule,
            chunks,
            gradients: if gradient { gradients } else { Vec::new() },
        })
    }

    /// What the step is made of.
    pub fn plan(&self) -> &StepPlan {
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
        from: Endpoints<'_>,
        losses: &mut Losses,
        gradient: &mut [T],
    ) -> Result<()> {
        if self.slots.end.is_some() != from.end.is_some() {
            let word = |is: bool| if is { "two endpoints" } else { "one endpoint" };
            return Err(Error::Value {
                name: "source of training rows",
                found: word(from.end.is_some()).into(),
                expected: format!(
                    "{} for the {} process",
                    word(self.slots.end.is_some()),
                    self.spec.process.name()
                ),
            });
        }
        for chunk in &self.chunks {
            let mut chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            chunk.sums.fill(0.0);
            chunk.bad = None;
        }
        let Step {
            spec,
            plan,
            program,
            wiring,
            slots,
            schedule,
            mixing,
            chunks,
            ..
        } = &mut *self;
        let filler = Filler {
            spec,
            plan,
            wiring,
            slots,
            schedule,
            mixing,
            step,
            from,
        };
        program.run(
            params,
            plan.batch,
            &|units, inputs| filler.fill(units, inputs),
            &|chunk, units, outputs| {
                let mut loss = chunks[chunk].lock().unwrap_or_else(PoisonError::into_inner);
                for term in 0..plan.terms.len() {
                    for (&value, unit) in outputs.numbers(term).iter().zip(units.clone()) {
                        if !value.is_finite() && loss.bad.is_none() {
                            loss.bad = Some((unit, term));
                        }
                        loss.sums[term] += value.to_f64();
                    }
                }
            },
        );
        losses.terms.resize(self.plan.terms.len(), 0.0);
        losses.terms.fill(0.0);
        for chunk in &self.chunks {
            let chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((row, term)) = chunk.bad {
                let term = self.plan.terms[term]
                    .objective
                    .objective()
                    .name()
                    .to_string();
                return Err(Error::NonFinite {
                    step,
                    term,
                    row: Some(row),
                });
            }
            losses
                .terms
                .iter_mut()
                .zip(&chunk.sums)
                .for_each(|(total, sum)| *total += sum);
        }
        losses
            .terms
            .iter_mut()
            .for_each(|t| *t /= self.plan.batch as f64);
        losses.total = losses
            .terms
            .iter()
            .zip(&self.plan.terms)
            .map(|(loss, term)| loss * term.weight)
            .sum();
        for (k, (name, offset, len)) in self.gradients.iter().enumerate() {
            let values = self.program.global(self.plan.terms.len() + k);
            if values.iter().any(|x| !x.is_finite()) {
                return Err(Error::NonFinite {
                    step,
                    term: format!("gradient of {name}"),
                    row: None,
                });
            }
            gradient[*offset..offset + len].copy_from_slice(values);
        }
        Ok(())
    }

    /// The inputs of step `step`, for an independent implementation to check: start rows, end rows, noises, and times as
    /// grid levels or as values, all row-major.
    pub fn draws(&self, step: u64, from: Endpoints<'_>) -> Draws {
        let (d, n, batch) = (self.spec.dim, self.plan.levels, self.plan.batch);
        let mut draws = Draws {
            start: vec![0.0; batch * d],
            end: from.end.map_or(Vec::new(), |_| vec![0.0; batch * d]),
            noise: vec![0.0; batch * n * d],
            levels: Vec::new(),
            times: Vec::new(),
        };
        let mut noise = vec![T::ZERO; batch * n * d];
        T::fill_normal_rows(
            self.plan.seed,
            self.plan.purpose,
            step,
            0,
            n * d,
            &mut noise,
        );
        draws
            .noise
            .iter_mut()
            .zip(&noise)
            .for_each(|(out, z)| *out = z.to_f64() as f32);
        let (mut levels, mut times) = (vec![0; n], vec![0.0; n]);
        for unit in 0..batch {
            from.start
                .fill(step, unit, &mut draws.start[unit * d..][..d]);
            if let Some(end) = from.end {
                end.fill(step, unit, &mut draws.end[unit * d..][..d]);
            }
            let mut stream = time_stream(&self.plan, step, unit);
            if self.plan.times.on_grid() {
                draw_levels(&self.plan, &self.spec, &mut stream, &mut levels);
                draws.levels.extend(&levels);
                draws
                    .times
                    .extend(levels.iter().map(|&k| self.spec.grid.times()[k as usize]));
            } else {
                draw_times(&self.plan, &self.spec, &mut stream, &mut times);
                draws.times.extend(&times);
            }
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
}

fn mixing<T: Real>(spec: &ModelSpec, time: f64) -> Mixing<T> {
    let p = &spec.process;
    Mixing {
        alpha: T::from_f64(p.x0_scale(time)),
        beta: T::from_f64(p.x1_scale(time)),
        gamma: T::from_f64(p.noise(time)),
    }
}

fn time_stream(plan: &StepPlan, step: u64, unit: usize) -> Stream {
    // Held-out evaluation repeats the same times at every call; its noise differs by purpose.
    let seed = if plan.purpose == Purpose::Noise {
        plan.seed
    } else {
        !plan.seed
    };
    Stream::new(seed, Purpose::Time, step, unit as u64)
}

fn draw_levels(plan: &StepPlan, spec: &ModelSpec, stream: &mut Stream, levels: &mut [u32]) {
    if plan
        .times
        .fill_levels(&spec.process, &spec.grid, stream, levels)
        .is_err()
    {
        unreachable!("the sampler was tried when the step was made");
    }
}

fn draw_times(plan: &StepPlan, spec: &ModelSpec, stream: &mut Stream, times: &mut [f64]) {
    if plan
        .times
        .fill_times(&spec.process, &spec.grid, stream, times)
        .is_err()
    {
        unreachable!("the sampler was tried when the step was made");
    }
}

/// Fills the inputs of tiles.
struct Filler<'a, T> {
    spec: &'a ModelSpec,
    plan: &'a StepPlan,
    wiring: &'a Wiring,
    slots: &'a Slots,
    schedule: &'a Schedule<T>,
    mixing: &'a [Mixing<T>],
    step: u64,
    from: Endpoints<'a>,
}

impl<T: Real> Filler<'_, T> {
    fn fill(&self, units: std::ops::Range<usize>, inputs: &mut Inputs<'_, T>) {
        let (d, n) = (self.spec.dim, self.plan.levels);
        let noise = inputs.numbers(self.slots.noise);
        T::fill_normal_rows(
            self.plan.seed,
            self.plan.purpose,
            self.step,
            units.start as u64,
            n * d,
            noise,
        );
        for (k, unit) in units.enumerate() {
            let mut coefficients = [Mixing {
                alpha: T::ZERO,
                beta: T::ZERO,
                gamma: T::ZERO,
            }; MAX_LEVELS];
            let mut stream = time_stream(self.plan, self.step, unit);
            if self.plan.times.on_grid() {
                let mut levels = [0u32; MAX_LEVELS];
                draw_levels(self.plan, self.spec, &mut stream, &mut levels[..n]);
                self.schedule
                    .fill_levels(self.wiring, inputs, k, &levels[..n]);
                coefficients
                    .iter_mut()
                    .zip(&levels[..n])
                    .for_each(|(c, &l)| *c = self.mixing[l as usize]);
            } else {
                let mut times = [0.0; MAX_LEVELS];
                draw_times(self.plan, self.spec, &mut stream, &mut times[..n]);
                self.schedule
                    .fill_times(self.spec, self.wiring, inputs, k, &times[..n]);
                coefficients
                    .iter_mut()
                    .zip(&times[..n])
                    .for_each(|(c, &t)| *c = mixing(self.spec, t));
            }
            self.place_points(inputs, k, unit, &coefficients[..n]);
        }
    }

    /// Reads the source rows of one unit and places its noisy points.
    fn place_points(
        &self,
        inputs: &mut Inputs<'_, T>,
        k: usize,
        unit: usize,
        coefficients: &[Mixing<T>],
    ) {
        let (d, n) = (self.spec.dim, self.plan.levels);
        let row = k * d..(k + 1) * d;
        let start = &mut inputs.numbers(self.slots.start)[row.clone()];
        T::read_row(start, &mut |out| self.from.start.fill(self.step, unit, out));
        if let (Some(source), Some(slot)) = (self.from.end, self.slots.end) {
            let end = &mut inputs.numbers(slot)[row];
            T::read_row(end, &mut |out| source.fill(self.step, unit, out));
        }
        let Slots {
            start,
            noise,
            points,
            ..
        } = *self.slots;
        let mut place = |sign: T, target: usize| {
            let [x0, z, y] = inputs.many([start, noise, target]);
            for (i, c) in coefficients.iter().enumerate() {
                let (z, y) = (&z[(k * n + i) * d..][..d], &mut y[(k * n + i) * d..][..d]);
                let gamma = sign * c.gamma;
                for ((y, &x0), &z) in y.iter_mut().zip(&x0[k * d..][..d]).zip(z) {
                    *y = c.alpha * x0 + gamma * z;
                }
            }
            if let Some(end) = self.slots.end {
                let [x1, y] = inputs.many([end, target]);
                for (i, c) in coefficients.iter().enumerate() {
                    for (y, &x1) in y[(k * n + i) * d..][..d].iter_mut().zip(&x1[k * d..][..d]) {
                        *y += c.beta * x1;
                    }
                }
            }
        };
        place(T::ONE, points);
        if let Some(mirror) = self.slots.mirror {
            place(-T::ONE, mirror);
        }
    }
}
