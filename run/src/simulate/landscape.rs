//! What chains move on: a model, a system with a known density, or a composition of them, at one time.

use crate::beads::BeadFile;
use crate::compose::Compound;
use crate::error::{Error, Result};
use crate::words;
use crate::words::Setting;
use diffclf::energy::compose::{Composition, Expression};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, SystemEnergy};
use diffclf::engine::{Isa, Pool};
use diffclf::model::Model;
use diffclf::molecule::GoModel;
use diffclf::sample::mcmc::HeldEnergy;
use diffclf::system::System;
use std::path::Path;
use std::sync::Arc;

/// How the name of a system begins that is a Go model: a .pdb or .toml file follows.
pub const GO: &str = "go:";

/// An energy by name.
pub struct Landscape<'a> {
    /// How the members are composed; the name of the only one where there is one.
    pub expression: &'a Expression,
    /// Models with their names.
    pub models: &'a [(&'a str, Model)],
    /// Names, and the systems that they stand for: built-in ones, or `go:FILE`.
    pub systems: &'a [(&'a str, &'a str)],
    /// Seed of the systems' own parameters.
    pub system_seed: u64,
}

/// The Go model of a system `go:FILE`; none for systems of other names.
pub(super) fn go_model(system: &str) -> Option<Result<GoModel>> {
    let path = Path::new(system.strip_prefix(GO)?);
    Some(BeadFile::read(path).and_then(|file| file.go_model()))
}

/// A member's energy in the coordinates of its data.
type Member = (String, Box<dyn Energy>);

impl Landscape<'_> {
    /// Dimension of a point: a model tells, or the beads of a Go model; other systems are asked for in the plane.
    pub fn dim(&self) -> Result<usize> {
        if let Some((_, model)) = self.models.first() {
            return Ok(model.content.columns());
        }
        for (_, system) in self.systems {
            if let Some(model) = go_model(system) {
                return Ok(model?.dim());
            }
        }
        Ok(2)
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
        let dim = self.dim()?;
        for (name, model) in self.models {
            if model.content.columns() != dim {
                return Err(Error::Usage(format!(
                    "{name} has {} columns, and {} has {}; compose models of the same rows",
                    model.content.columns(),
                    self.models[0].0,
                    dim
                )));
            }
            let energy = Arc::new(model.energy(Arc::new(Pool::exactly(1)?), isa)?);
            members.push((name.to_string(), model.content.at_rows(energy)));
        }
        for (name, system) in self.systems {
            if let Some(model) = go_model(system) {
                let model = model?;
                if model.dim() != dim {
                    return Err(Error::Usage(format!(
                        "{name} has {} beads, but rows have {dim} numbers; compose energies of the same rows",
                        model.beads()
                    )));
                }
                members.push((name.to_string(), Box::new(model)));
                continue;
            }
            let system = System::by_name(system, dim, self.system_seed)?;
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
