//! Training on states: one step on the tile executor, from noise to parameter gradient, and the course that the common trainer takes.

mod fill;

use self::fill::{Desk, Tables, TileFiller};
use super::model::StatesSpec;
use super::objective::{StatesObjectiveName, StatesScene, StatesSlots};
use crate::engine::{Isa, Node, Pool, Program, Real, Rows, Shape};
use crate::network::Layout;
use crate::objective::{Choice, Term, check_sum};
use crate::process::TimeSampler;
use crate::rng::Part;
use crate::train::{Course, Gradients, Lesson, LossSums, Losses, Source, StepSpec, TrainSettings};
use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Settings of a training on states.
pub type StatesSettings = TrainSettings<StatesObjectiveName>;

/// What a step is made of.
pub type StatesPlan = StepSpec<StatesObjectiveName>;

/// Checks a sum and a time sampler for a model.
pub fn validate(
    terms: &[Term<StatesObjectiveName>],
    times: TimeSampler,
    spec: &StatesSpec,
    levels: usize,
) -> Result<()> {
    check_sum(terms, levels, |name| name.objective().level_range())?;
    if !times.on_grid() {
        return Err(Error::Value {
            name: "time sampler",
            found: times.name().into(),
            expected:
                "multiscale, grid or grid-stratified: states are trained at the levels of the grid"
                    .into(),
        });
    }
    times.validate(&spec.process, &spec.grid, spec.space.sites, levels)
}

/// A loss with or without its parameter gradient, ready to run on any step's draws.
pub struct StatesStep<T: Real> {
    spec: StatesSpec,
    plan: StatesPlan,
    program: Program<T>,
    slots: StatesSlots,
    tables: Tables<T>,
    desks: Mutex<Vec<Desk>>,
    sums: LossSums,
    gradients: Gradients,
}

impl<T: Real> StatesStep<T> {
    /// Builds the graph of the terms, with the gradient of their weighted mean if `gradient`.
    pub fn new(
        spec: &StatesSpec,
        plan: StatesPlan,
        gradient: bool,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<StatesStep<T>> {
        spec.validate()?;
        validate(&plan.terms, plan.times, spec, plan.levels)?;
        if plan.batch == 0 {
            return Err(Error::Value {
                name: "batch",
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
        let mut scene = StatesScene::new(spec, plan.levels);
        let losses: Vec<Node> = plan
            .terms
            .iter()
            .map(|t| t.objective.objective().loss(&mut scene))
            .collect();
        let mut outputs = losses.clone();
        if gradient {
            let parameters = scene.parameters();
            let g = crate::objective::LevelScene::graph(&mut scene);
            let seed = |g: &mut crate::engine::Graph, t: &Term<StatesObjectiveName>| {
                g.constant(t.weight / plan.batch as f64, Shape::new(Rows::Unit(1), 1))
            };
            let seeds: Vec<(Node, Node)> = losses
                .iter()
                .zip(&plan.terms)
                .map(|(&loss, t)| (loss, seed(g, t)))
                .collect();
            outputs.extend(g.grad(&seeds, &parameters));
        }
        let (graph, slots, layout) = scene.finish();
        let threads = pool.threads();
        let mut program = Program::new(&graph, &outputs, pool, isa);
        let tables = Tables::new(spec);
        tables.set_globals(&slots, &mut program);
        Ok(StatesStep {
            sums: LossSums::new(program.chunk_count(plan.batch), losses.len()),
            desks: Mutex::new((0..threads).map(|_| Desk::new(spec, plan.levels)).collect()),
            gradients: Gradients::new(&layout, losses.len(), gradient),
            spec: spec.clone(),
            plan,
            program,
            slots,
            tables,
        })
    }

    /// Floating-point operations of one step's matrix products.
    pub fn flops(&self) -> f64 {
        self.program.plan().flops(self.plan.batch)
    }

    /// Runs step number `step` at these parameters. The gradient goes to `gradient` (empty if the step has none).
    pub fn run(
        &mut self,
        params: &[T],
        step: u64,
        from: &dyn Source,
        losses: &mut Losses,
        gradient: &mut [T],
    ) -> Result<()> {
        self.sums.clear();
        let StatesStep {
            spec,
            plan,
            program,
            slots,
            tables,
            desks,
            sums,
            ..
        } = &mut *self;
        let desks = &*desks;
        let filler = TileFiller {
            spec,
            plan,
            slots,
            tables,
            step,
            from,
        };
        program.run(
            params,
            plan.batch,
            &|units, inputs| {
                let taken = desks.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut desk = taken.unwrap_or_else(|| Desk::new(spec, plan.levels));
                filler.fill(units, inputs, &mut desk);
                desks
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(desk);
            },
            &|chunk, units, outputs| sums.add(chunk, units, outputs),
        );
        let weights = self.plan.terms.iter().map(|term| term.weight);
        self.sums
            .finish(self.plan.batch, weights, losses)
            .map_err(|(unit, term)| Error::NonFinite {
                step,
                term: self.plan.terms[term].objective.name().to_string(),
                row: from.row(step, unit),
            })?;
        self.gradients.copy(&self.program, step, gradient)
    }
}

/// An energy of states and the rows it learns from, for the [trainer](crate::train::Trainer).
pub struct StatesCourse {
    spec: StatesSpec,
    settings: StatesSettings,
    train: Arc<dyn Source>,
    held_out: Option<(Arc<dyn Source>, usize)>,
    pool: Arc<Pool>,
    isa: Isa,
}

impl StatesCourse {
    /// `held_out`: rows that are not trained on, and how many to evaluate. Sources give symbols as numbers.
    pub fn new(
        spec: &StatesSpec,
        settings: &StatesSettings,
        train: Arc<dyn Source>,
        held_out: Option<(Arc<dyn Source>, usize)>,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<StatesCourse> {
        spec.validate()?;
        for stage in &settings.stages {
            validate(&stage.objectives, settings.times, spec, stage.levels)?;
        }
        Ok(StatesCourse {
            spec: spec.clone(),
            settings: settings.clone(),
            train,
            held_out,
            pool,
            isa,
        })
    }
}

struct StatesLesson {
    step: StatesStep<f32>,
    from: Arc<dyn Source>,
}

impl Lesson for StatesLesson {
    fn run(
        &mut self,
        params: &[f32],
        step: u64,
        losses: &mut Losses,
        gradient: &mut [f32],
    ) -> Result<()> {
        self.step.run(params, step, &*self.from, losses, gradient)
    }
}

impl Course for StatesCourse {
    fn layout(&self) -> Layout {
        self.spec.layout()
    }

    /// The last level, which is noise alone.
    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn reference_level(&self) -> usize {
        self.spec.grid.levels() - 1
    }

    fn pins_free_energy(&self, _stage: usize) -> bool {
        true
    }

    fn lesson(&self, stage: usize, part: Part) -> Result<Option<Box<dyn Lesson>>> {
        let (from, batch) = match (part, &self.held_out) {
            (Part::Training, _) => (&self.train, self.settings.batch),
            (Part::HeldOut, Some((from, rows))) => (from, *rows),
            (Part::HeldOut, None) => return Ok(None),
        };
        let plan = self.settings.plan(stage, part, batch);
        let gradient = part == Part::Training;
        let step = StatesStep::new(&self.spec, plan, gradient, self.pool.clone(), self.isa)?;
        Ok(Some(Box::new(StatesLesson {
            step,
            from: from.clone(),
        })))
    }
}
