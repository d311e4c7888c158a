//! Models and systems of states composed level by level, sampled by annealing.

use super::annealing::{StatesAnnealing, StatesFound};
use super::{energy, open};
use crate::compose::{binding, check_names};
use crate::error::{Error, Result};
use crate::watch::{Done, Watch};
use diffclf::discrete::energy::Composition;
use diffclf::discrete::model::StatesModel;
use diffclf::discrete::system::{self, ExactStates};
use diffclf::discrete::{Energy, LearnedStates, StatesSpec};
use diffclf::energy::compose::Expression;
use diffclf::engine::{Isa, Pool};
use diffclf::process::TimeGrid;
use std::sync::Arc;

/// What is composed.
pub struct StatesCompound<'a> {
    /// The composition; every name in it is a model or a system.
    pub expression: &'a Expression,
    /// Models with their names; at least one.
    pub models: &'a [(&'a str, StatesModel)],
    /// Names and the systems of states that they stand for.
    pub systems: &'a [(&'a str, &'a str)],
    /// Seed of the systems' own parameters.
    pub system_seed: u64,
}

/// Reads the models of `NAME=FILE` if the first is one of states; then all must be.
pub fn read_all(bindings: &[String]) -> Result<Option<Vec<(&str, StatesModel)>>> {
    let mut models = Vec::new();
    for text in bindings {
        let (name, path) = binding(text, "model")?;
        match open(path.as_ref())? {
            Some(model) => models.push((name, model)),
            None if models.is_empty() => return Ok(None),
            None => {
                return Err(Error::Usage(format!(
                    "{path} is a model of numbers, and others are models of states; compose models of one kind"
                )));
            }
        }
    }
    Ok((!models.is_empty()).then_some(models))
}

impl StatesCompound<'_> {
    /// Leads particles from noise down the levels of the composition.
    pub fn sample(
        &self,
        asked: &StatesAnnealing,
        pool: &Arc<Pool>,
        isa: Isa,
        watch: &dyn Watch,
    ) -> Result<Done<StatesFound>> {
        self.with(pool, isa, |spec, composition| {
            asked.lead(composition, &spec.grid, None, watch)
        })
    }

    /// Calls `work` with what all models share and the composition's energy.
    pub fn with<R>(
        &self,
        pool: &Arc<Pool>,
        isa: Isa,
        work: impl FnOnce(&StatesSpec, &dyn Energy) -> Result<R>,
    ) -> Result<R> {
        let models = self.models.iter().map(|(name, _)| *name);
        let systems = self.systems.iter().map(|(name, _)| *name);
        check_names(self.expression, &models.chain(systems).collect::<Vec<_>>())?;
        let spec = self.common()?;
        let learned: Vec<LearnedStates> = self
            .models
            .iter()
            .map(|(_, model)| energy(model, pool.clone(), isa))
            .collect::<Result<_>>()?;
        let exact: Vec<ExactStates> = self
            .systems
            .iter()
            .map(|(_, name)| {
                let (sites, states) = (Some(spec.space.sites), Some(spec.space.states));
                let target = system::by_name(name, sites, states, self.system_seed)?;
                let process = spec.process;
                Ok(ExactStates { target, process })
            })
            .collect::<Result<_>>()?;
        let mut members: Vec<(&str, &dyn Energy)> = Vec::new();
        for ((name, _), energy) in self.models.iter().zip(&learned) {
            members.push((name, energy));
        }
        for ((name, _), energy) in self.systems.iter().zip(&exact) {
            members.push((name, energy));
        }
        let composition = Composition::new(self.expression, &members)?;
        work(spec, &composition)
    }

    /// Space, noise and times that all models share.
    fn common(&self) -> Result<&StatesSpec> {
        let Some((first, model)) = self.models.first() else {
            return Err(Error::Nothing);
        };
        let spec = &model.content.spec;
        let ends = |grid: &TimeGrid| (grid.t_min(), grid.t_max());
        for (name, other) in self.models {
            let other = &other.content.spec;
            let alike = other.space == spec.space
                && other.process == spec.process
                && ends(&other.grid) == ends(&spec.grid);
            if !alike {
                let law = |spec: &StatesSpec| {
                    let (low, high) = ends(&spec.grid);
                    format!(
                        "{} sites of {} states, {} noise from {low} to {high}",
                        spec.space.sites,
                        spec.space.states,
                        spec.process.generator().name()
                    )
                };
                return Err(Error::Usage(format!(
                    "{first} and {name} differ ({}; {}); train them on the same sites and states, with the same noise and times",
                    law(spec),
                    law(other)
                )));
            }
        }
        Ok(spec)
    }
}
