//! What chains move on: a model, a system with a known density, or a composition of them, at one time.

use crate::compose::Compound;
use crate::error::{Error, Result};
use crate::words;
use crate::words::Setting;
use diffclf::energy::compose::{Composition, Expression};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, SystemEnergy};
use diffclf::engine::{Isa, Pool};
use diffclf::model::Model;
use diffclf::sample::mcmc::HeldEnergy;
use diffclf::system::System;
use std::sync::Arc;

/// An energy by name.
pub struct Landscape<'a> {
    /// How the members are composed; the name of the only one where there is one.
    pub expression: &'a Expression,
    /// Models with their names.
    pub models: &'a [(&'a str, Model)],
    /// Names, and the systems that they stand for.
    pub systems: &'a [(&'a str, &'a str)],
    /// Seed of the systems' own parameters.
    pub system_seed: u64,
}

/// A member's energy in the coordinates of its data.
type Member = (String, Box<dyn Energy>);

impl Landscape<'_> {
    /// Dimension of a point.
    pub fn dim(&self) -> usize {
        // Systems that live in the plane have 2; a model tells.
        self.models
            .first()
            .map_or(2, |(_, model)| model.content.spec.dim)
    }

    /// The time of the energy: the smallest that all models know, or one they all know.
    pub fn time(&self, asked: Option<f64>) -> Result<f64> {
        let grids = || {
            self.models
                .iter()
                .map(|(_, model)| &model.content.spec.grid)
        };
        let low = grids().map(|grid| grid.t_min()).fold(0.0, f64::max);
        let high = grids()
            .map(|grid| grid.t_max())
            .fold(f64::INFINITY, f64::min);
        match asked {
            None => Ok(low),
            Some(_) if self.models.is_empty() => Err(Error::Refused(words!(
                Setting::new("time"),
                " is for models; the density of a system alone has none"
            ))),
            Some(time) if (low..=high).contains(&time) => Ok(time),
            Some(time) => Err(Error::setting(
                "time",
                time,
                format!("from {low} (nearest to the data) to {high}, the times of the model"),
            )),
        }
    }

    /// The members' energies, on one thread.
    fn members(&self, isa: Isa) -> Result<Vec<Member>> {
        Compound {
            expression: self.expression,
            models: self.models,
            systems: self.systems,
            system_seed: self.system_seed,
            levels: None,
        }
        .check_names()?;
        let mut members: Vec<Member> = Vec::new();
        for (name, model) in self.models {
            if model.content.spec.dim != self.dim() {
                return Err(Error::Usage(format!(
                    "{name} has {} columns, and {} has {}; compose models of the same rows",
                    model.content.spec.dim,
                    self.models[0].0,
                    self.dim()
                )));
            }
            let energy = model.in_data_coordinates(Arc::new(Pool::exactly(1)?), isa)?;
            members.push((name.to_string(), Box::new(energy)));
        }
        for (name, system) in self.systems {
            let system = System::by_name(system, self.dim(), self.system_seed)?;
            // Under noise where that is known and a model says which; else as it is.
            let process = self
                .models
                .first()
                .map(|(_, model)| model.content.spec.process);
            let energy: Box<dyn Energy> = match (system.mixture(), process) {
                (Some(mixture), Some(process)) => {
                    Box::new(ExactPath::new(process, mixture.clone(), None)?)
                }
                _ => match SystemEnergy::new(system.clone()) {
                    Some(energy) => Box::new(energy),
                    None => {
                        return Err(Error::Usage(format!(
                            "the density of {} is not known; choose one of {}",
                            system.name(),
                            crate::endpoints::with_density().join(", ")
                        )));
                    }
                },
            };
            members.push((name.to_string(), energy));
        }
        Ok(members)
    }

    /// Calls `work` with the energy at a time, once for each thread.
    pub fn held<T>(
        &self,
        time: f64,
        threads: usize,
        isa: Isa,
        work: impl FnOnce(&[HeldEnergy<'_>]) -> Result<T>,
    ) -> Result<T> {
        let members: Vec<Vec<Member>> = (0..threads.max(1))
            .map(|_| self.members(isa))
            .collect::<Result<_>>()?;
        let mut composed = Vec::new();
        for members in &members {
            let named: Vec<(&str, &dyn Energy)> = members
                .iter()
                .map(|(name, energy)| (name.as_str(), &**energy))
                .collect();
            composed.push(Composition::new(self.expression, &named)?);
        }
        let held: Vec<HeldEnergy<'_>> = members
            .iter()
            .zip(&composed)
            .map(|(members, composition)| HeldEnergy {
                // One member by itself needs no arithmetic around it.
                energy: match members.as_slice() {
                    [(name, energy)] if self.expression.to_string() == *name => &**energy,
                    _ => composition,
                },
                time,
            })
            .collect();
        work(&held)
    }
}
