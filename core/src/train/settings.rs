//! Settings of a training run, as they stand in its configuration file.

use serde::{Deserialize, Serialize};

use super::adam::Adam;
use super::rate::{Decay, Rate};
use super::step::StepSpec;
use crate::energy::ModelSpec;
use crate::objective::{ObjectiveName, Term, validate_terms};
use crate::process::TimeSampler;
use crate::rng::Part;
use crate::{Error, Result};

/// One stage: so many steps on one weighted sum of objectives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSettings<O = ObjectiveName> {
    /// Number of steps.
    pub steps: u64,
    /// Times per source row.
    pub levels: usize,
    /// The weighted sum.
    pub objectives: Vec<Term<O>>,
    /// Learning rate.
    pub rate: Rate,
}

/// When to stop before the last step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOut {
    /// Share of the rows that is never trained on.
    pub share: f64,
    /// Steps between two evaluations.
    pub every: u64,
    /// Stop a stage after so many evaluations without a new best, and end every stage with its best parameters; 0 does
    /// neither.
    pub patience: u64,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainSettings<O = ObjectiveName> {
    /// Seed of everything random.
    pub seed: u64,
    /// Source rows per step.
    pub batch: usize,
    /// How times are drawn.
    pub times: TimeSampler,
    /// Largest gradient norm; absent: no clipping.
    pub clip: Option<f64>,
    /// Optimiser.
    pub adam: Adam,
    /// Decay of the moving average of the parameters; absent: none.
    pub average: Option<f64>,
    /// Held-out rows (data only).
    pub held_out: Option<HeldOut>,
    /// Rows of particles are turned at random, each by a rotation of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rotate: bool,
    /// When the training ends, F(t) is put where the energies call for it ([`crate::free_energy::level`]).
    #[serde(default, skip_serializing_if = "is_false")]
    pub levelling: bool,
    /// The stages, in order.
    pub stages: Vec<StageSettings<O>>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl<O: Clone> TrainSettings<O> {
    /// What a step of a stage is made of, with so many rows.
    pub(crate) fn plan(&self, stage: usize, part: Part, batch: usize) -> StepSpec<O> {
        let stage = &self.stages[stage];
        StepSpec {
            terms: stage.objectives.clone(),
            levels: stage.levels,
            batch,
            times: self.times,
            seed: self.seed,
            part,
        }
    }
}

impl TrainSettings {
    /// The paper's two stages: the score first, then the sum.
    pub fn two_stages(
        batch: usize,
        score_steps: u64,
        joint_steps: u64,
        levels: usize,
    ) -> TrainSettings {
        let rate = Rate {
            peak: 1e-3,
            decay: Decay::Cosine,
            warm_up: 0,
        };
        let term = |objective| Term {
            objective,
            weight: 1.0,
        };
        let stage = |steps, objectives| StageSettings {
            steps,
            levels,
            objectives,
            rate,
        };
        TrainSettings {
            seed: 0,
            batch,
            times: TimeSampler::default(),
            clip: Some(1.0),
            adam: Adam::default(),
            average: Some(0.999),
            held_out: None,
            rotate: false,
            levelling: false,
            stages: vec![
                stage(score_steps, vec![term(ObjectiveName::Dsm)]),
                stage(
                    joint_steps,
                    vec![term(ObjectiveName::Dsm), term(ObjectiveName::Diffclf)],
                ),
            ],
        }
    }

    /// Refuses what cannot be run on this model.
    pub fn validate(&self, spec: &ModelSpec) -> Result<()> {
        self.check()?;
        for stage in &self.stages {
            validate_terms(&stage.objectives, spec, stage.levels)?;
            self.times
                .validate(&spec.process, &spec.grid, spec.dim, stage.levels)?;
        }
        Ok(())
    }
}

impl<O> TrainSettings<O> {
    /// Refuses what cannot be run on any model.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |name, found: String, expected: &str| {
            Err(Error::Value {
                name,
                found,
                expected: expected.to_string(),
            })
        };
        if self.batch == 0 {
            return wrong("batch", "0".into(), "at least 1");
        }
        if self.stages.is_empty() || self.stages.iter().all(|s| s.steps == 0) {
            return wrong(
                "stages",
                "no steps".into(),
                "at least one stage of at least one step",
            );
        }
        if let Some(clip) = self.clip
            && !(clip.is_finite() && clip > 0.0)
        {
            return wrong("clip", clip.to_string(), "a positive number");
        }
        if let Some(decay) = self.average
            && !(0.0..1.0).contains(&decay)
        {
            return wrong("average", decay.to_string(), "at least 0 and below 1");
        }
        if let Some(held_out) = self.held_out {
            if !(held_out.share > 0.0 && held_out.share < 1.0) {
                return wrong(
                    "held_out.share",
                    held_out.share.to_string(),
                    "between 0 and 1",
                );
            }
            if held_out.every == 0 {
                return wrong("held_out.every", "0".into(), "at least 1");
            }
        }
        let Adam {
            beta1,
            beta2,
            epsilon,
        } = self.adam;
        if !((0.0..1.0).contains(&beta1) && (0.0..1.0).contains(&beta2) && epsilon > 0.0) {
            return wrong(
                "adam",
                format!("{:?}", self.adam),
                "decays at least 0 and below 1, epsilon above 0",
            );
        }
        for stage in &self.stages {
            if !(stage.rate.peak.is_finite() && stage.rate.peak > 0.0) {
                return wrong(
                    "rate.peak",
                    stage.rate.peak.to_string(),
                    "a positive number",
                );
            }
        }
        Ok(())
    }

    /// The same plan of steps and rates, without the names of its losses.
    pub(crate) fn without_objectives(&self) -> TrainSettings<()> {
        let stage = |stage: &StageSettings<O>| StageSettings {
            steps: stage.steps,
            levels: stage.levels,
            objectives: Vec::new(),
            rate: stage.rate,
        };
        TrainSettings {
            seed: self.seed,
            batch: self.batch,
            times: self.times,
            clip: self.clip,
            adam: self.adam,
            average: self.average,
            held_out: self.held_out,
            rotate: self.rotate,
            levelling: self.levelling,
            stages: self.stages.iter().map(stage).collect(),
        }
    }

    /// Steps of all stages.
    pub fn steps(&self) -> u64 {
        let steps = self.stages.iter().map(|s| s.steps);
        steps.fold(0, u64::saturating_add)
    }
}
