//! A course: what a trainer trains, and on which rows. The trainer itself knows parameters, stages and rates, and no model.

use std::sync::Arc;

use super::settings::TrainSettings;
use super::step::{Endpoints, Losses, Step};
use crate::Result;
use crate::energy::{Energy, ModelSpec};
use crate::engine::{Isa, Pool};
use crate::network::Layout;
use crate::objective::Term;
use crate::rng::Part;

/// A loss, with its gradient where rows are trained on, at the draws of any step.
pub trait Lesson: Send {
    /// Runs step number `step` at these parameters; `gradient` is empty where there is none.
    fn run(
        &mut self,
        params: &[f32],
        step: u64,
        losses: &mut Losses,
        gradient: &mut [f32],
    ) -> Result<()>;
}

/// See the module's text.
pub trait Course: Send {
    /// The parameters; F(t) on its grid is the matrix `free_energy`.
    fn layout(&self) -> Layout;

    /// The threads that the work is shared between.
    fn pool(&self) -> &Pool;

    /// The level at which F is pinned to zero.
    fn reference_level(&self) -> usize;

    /// Whether no loss of a stage fixes the constant in F.
    fn pins_free_energy(&self, stage: usize) -> bool;

    /// The lesson of a stage; none for held-out rows where there are none.
    fn lesson(&self, stage: usize, part: Part) -> Result<Option<Box<dyn Lesson>>>;

    /// Whether runs that began with older random streams go on as they began.
    fn continues(&self, streams: u32) -> bool {
        let _ = streams;
        false
    }
}

/// Energies of points in space, on the rows of one endpoint or of two.
pub struct EnergyCourse {
    spec: ModelSpec,
    settings: TrainSettings,
    train: Endpoints,
    held_out: Option<(Endpoints, usize)>,
    pool: Arc<Pool>,
    isa: Isa,
    truth: Option<Arc<dyn Energy>>,
}

impl EnergyCourse {
    /// `held_out`: rows that are not trained on, and how many to evaluate.
    pub fn new(
        spec: &ModelSpec,
        settings: &TrainSettings,
        train: Endpoints,
        held_out: Option<(Endpoints, usize)>,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<EnergyCourse> {
        spec.validate()?;
        settings.validate(spec)?;
        Ok(EnergyCourse {
            spec: spec.clone(),
            settings: settings.clone(),
            train,
            held_out,
            pool,
            isa,
            truth: None,
        })
    }

    /// Gives the run the exact densities of its data, in the model's coordinates, for objectives that compare with them.
    pub fn with_truth(mut self, truth: Option<Arc<dyn Energy>>) -> EnergyCourse {
        self.truth = truth;
        self
    }
}

struct EnergyLesson {
    step: Step<f32>,
    from: Endpoints,
}

impl Lesson for EnergyLesson {
    fn run(
        &mut self,
        params: &[f32],
        step: u64,
        losses: &mut Losses,
        gradient: &mut [f32],
    ) -> Result<()> {
        self.step.run(params, step, &self.from, losses, gradient)
    }
}

impl Course for EnergyCourse {
    fn layout(&self) -> Layout {
        self.spec.layout()
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn reference_level(&self) -> usize {
        self.spec.reference_level()
    }

    fn pins_free_energy(&self, stage: usize) -> bool {
        let fixes = |t: &Term| t.objective.objective().fixes_free_energy();
        !self.settings.stages[stage].objectives.iter().any(fixes)
    }

    fn lesson(&self, stage: usize, part: Part) -> Result<Option<Box<dyn Lesson>>> {
        let (from, batch) = match (part, &self.held_out) {
            (Part::Training, _) => (&self.train, self.settings.batch),
            (Part::HeldOut, Some((from, rows))) => (from, *rows),
            (Part::HeldOut, None) => return Ok(None),
        };
        let plan = self.settings.plan(stage, part, batch);
        let gradient = part == Part::Training;
        let step = Step::new(&self.spec, plan, gradient, self.pool.clone(), self.isa)?;
        Ok(Some(Box::new(EnergyLesson {
            step: step.with_truth(self.truth.clone()),
            from: from.clone(),
        })))
    }

    fn continues(&self, streams: u32) -> bool {
        let slope = |t: &Term| t.objective.objective().sees_slope();
        let mut terms = self.settings.stages.iter().flat_map(|s| &s.objectives);
        streams == 2 && self.held_out.is_none() && !terms.any(slope)
    }
}
