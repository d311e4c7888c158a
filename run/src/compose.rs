//! Models and systems composed in the coordinates of their data, sampled by sequential Monte Carlo.

use crate::anneal::Levels;
use crate::error::{Error, Result};
use crate::files::read_model;
use crate::memory;
use crate::straight::{Departure, alike};
use crate::watch::{Done, Watch};
use crate::words;
use crate::words::Setting;
use diffclf::energy::compose::{Composition, Expression, start_of};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{
    Coordinates, Energy, InDataCoordinates, LearnedEnergy, ModelSpec, Prior, Straightened,
};
use diffclf::engine::{Isa, Pool};
use diffclf::metric::Regions;
use diffclf::model::Model;
use diffclf::process::{Process, TimeGrid};
use diffclf::sample::{Particles, Path, Smc};
use diffclf::system::System;
use serde::Serialize;
use std::sync::Arc;

/// What is composed.
pub struct Compound<'a> {
    /// The composition; every name in it is a model or a system.
    pub expression: &'a Expression,
    /// Models with their names.
    pub models: &'a [(&'a str, Model)],
    /// Names and the systems with exact marginals that they stand for.
    pub systems: &'a [(&'a str, &'a str)],
    /// Seed of the systems' own parameters.
    pub system_seed: u64,
    /// Levels of the path, if not those of the models' grid.
    pub levels: Option<usize>,
}

/// Samples of a composition, and the path they were led along.
pub struct Composed {
    /// The samples.
    pub particles: Particles,
    /// The process of all members.
    pub process: Process,
    /// The levels.
    pub grid: TimeGrid,
}

/// Shares of regions, beside the truth; those elsewhere come last.
#[derive(Debug, Clone, Serialize)]
pub struct RegionShares {
    /// Names of the regions.
    pub names: Vec<String>,
    /// What they should be.
    pub truth: Vec<f64>,
    /// What they are among the particles.
    pub found: Vec<f64>,
}

impl RegionShares {
    /// Those of weighted particles.
    pub fn of(regions: Regions, particles: &Particles) -> Result<Self> {
        Ok(Self {
            truth: regions.truth()?,
            found: regions.shares(&particles.points, &particles.weights)?,
            names: regions.names(),
        })
    }
}

/// `NAME=VALUE`; `flag` is what it was given to.
pub fn binding<'a>(text: &'a str, key: &'static str) -> Result<(&'a str, &'a str)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => Err(Error::Refused(words!(
            Setting::new(key),
            " is '",
            text,
            "', expected a name and what it stands for, as in ",
            Setting::to(key, "A=...")
        ))),
    }
}

/// Reads the models of `NAME=FILE`.
pub fn read_models(bindings: &[String]) -> Result<Vec<(&str, Model)>> {
    bindings
        .iter()
        .map(|text| {
            let (name, path) = binding(text, "model")?;
            Ok((name, read_model(path.as_ref())?))
        })
        .collect()
}

/// Every name of the expression is bound, once, and every binding is used.
pub(crate) fn check_names(expression: &Expression, known: &[&str]) -> Result<()> {
    let names = expression.names();
    for (k, name) in known.iter().enumerate() {
        if known[..k].contains(name) {
            return Err(Error::Usage(format!(
                "'{name}' is given twice; a name stands for one model or system"
            )));
        }
        if !names.contains(name) {
            return Err(Error::Usage(format!(
                "'{name}' is not in the expression '{expression}'; leave it out, or use it"
            )));
        }
    }
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(Error::Refused(words!(
            "'",
            name,
            "' is not known; give ",
            Setting::to("model", format!("{name}=FILE")),
            " or ",
            Setting::to("system", format!("{name}=SYSTEM"))
        ))),
        None => Ok(()),
    }
}

impl Compound<'_> {
    pub(crate) fn check_names(&self) -> Result<()> {
        let models = self.models.iter().map(|(name, _)| *name);
        let systems = self.systems.iter().map(|(name, _)| *name);
        check_names(self.expression, &models.chain(systems).collect::<Vec<_>>())
    }

    /// Leads particles from the noisiest level down the path of compositions.
    pub fn sample(
        &self,
        smc: &Smc,
        particles: usize,
        pool: Arc<Pool>,
        isa: Isa,
        watch: &dyn Watch,
    ) -> Result<Done<Composed>> {
        self.check_names()?;
        let (process, grid, dim) = common(self.models)?;
        let viewed = self
            .models
            .iter()
            .any(|(_, model)| model.content.view().is_some());
        if let Some((name, _)) = self.systems.first().filter(|_| viewed) {
            return Err(Error::Usage(format!(
                "{name} is a system of whole rows, and a model knows particles without their centre or in a frame; compose models alone, or train with the centre kept"
            )));
        }
        memory::refuse_rows("particles", particles, dim, 64)?;
        let grid = match self.levels {
            Some(levels) => grid.with_levels(levels)?,
            None => grid,
        };
        let learned: Vec<LearnedEnergy> = self
            .models
            .iter()
            .map(|(_, model)| model.energy(pool.clone(), isa))
            .collect::<diffclf::Result<_>>()?;
        let rescaled: Vec<InDataCoordinates<&LearnedEnergy>> = self
            .models
            .iter()
            .zip(&learned)
            .map(|((_, model), energy)| model.content.in_data_coordinates(energy))
            .collect();
        let exact: Vec<ExactPath> = self
            .systems
            .iter()
            .map(|(_, name)| exact_path(name, dim, self.system_seed, process))
            .collect::<Result<_>>()?;
        let mut members: Vec<(&str, &dyn Energy)> = Vec::new();
        let mut priors: Vec<(&str, Prior)> = Vec::new();
        for ((name, model), energy) in self.models.iter().zip(&rescaled) {
            members.push((name, energy));
            let prior = Prior::of(&model.content.spec);
            priors.push((name, energy.prior(&prior)));
        }
        for ((name, _), path) in self.systems.iter().zip(&exact) {
            members.push((name, path));
            let (mean, variance) = (path.start().mean(), path.start().variance());
            priors.push((name, Prior::new(&process, grid.t_max(), &mean, variance)));
        }
        let composition = Composition::new(self.expression, &members)?;
        let map = self
            .models
            .first()
            .map(|(_, model)| &model.content.standardisation);
        let map = map.cloned().unwrap_or_else(|| Coordinates::identity(dim));
        let straightened = Straightened {
            inner: &composition,
            map: map.clone(),
        };
        // Particles move in straightened columns, which know no bounds.
        let energy: &dyn Energy = if map.kinds.is_empty() {
            &composition
        } else {
            &straightened
        };
        let start = start_of(self.expression, &priors)?;
        let departure = Departure::new(start, &map.kinds, particles, smc.seed)?;
        let times: Vec<f64> = grid.times().iter().rev().copied().collect();
        let path = Path {
            energy,
            times: &times,
            start: departure.start(),
            transport: None,
        };
        let mut levels = Levels::new("compose", &times, smc, watch);
        let mut particles = smc.run(&path, particles, &mut |level| levels.see(level))?;
        map.bend(&mut particles.points);
        if let Some((_, model)) = self.models.first() {
            let points = std::mem::take(&mut particles.points);
            particles.points = model.content.rows_outward(points);
        }
        Ok(levels.done(Composed {
            particles,
            process,
            grid,
        }))
    }
}

/// Process, grid and dimension that all models share. Paths are composed time by time, so the times must mean the same noise.
fn common(models: &[(&str, Model)]) -> Result<(Process, TimeGrid, usize)> {
    let Some((first, model)) = models.first() else {
        let process = Process::default();
        return Ok((process, TimeGrid::default_for(&process), 2));
    };
    let spec = &model.content.spec;
    for (name, other) in models {
        if !alike(
            &model.content.standardisation,
            &other.content.standardisation,
        ) {
            return Err(Error::Refused(words!(
                first,
                " and ",
                name,
                " have columns of different kinds; train them with the same ",
                Setting::new("periodic"),
                ", ",
                Setting::new("positive"),
                " and ",
                Setting::new("bounded")
            )));
        }
        let other = &other.content.spec;
        if other.process.is_interpolant() {
            return Err(Error::Usage(format!(
                "{name} is a model of the {} interpolant, which has no noise to start from; compose models of diffusions",
                other.process.name()
            )));
        }
        let ends = |grid: &TimeGrid| (grid.t_min(), grid.t_max());
        if other.process != spec.process || ends(&other.grid) != ends(&spec.grid) {
            let law = |spec: &ModelSpec| {
                let (low, high) = ends(&spec.grid);
                format!("{:?} from {low} to {high}", spec.process)
            };
            return Err(Error::Refused(words!(
                first,
                " and ",
                name,
                " have different processes or times (",
                law(spec),
                ", and ",
                law(other),
                "); train them with the same ",
                Setting::new("process"),
                ", ",
                Setting::new("t_min"),
                " and ",
                Setting::new("t_max")
            )));
        }
    }
    for (name, other) in models {
        if other.content.view() != model.content.view() {
            return Err(Error::Usage(format!(
                "{first} and {name} see the particles of a row differently (their centre, their frame); train them with the same settings"
            )));
        }
    }
    Ok((spec.process, spec.grid.clone(), spec.dim))
}

fn exact_path(name: &str, dim: usize, seed: u64, process: Process) -> Result<ExactPath> {
    let system = System::by_name(name, dim, seed)?;
    match system.mixture() {
        Some(mixture) => Ok(ExactPath::new(process, mixture.clone(), None)?),
        None => Err(Error::Usage(format!(
            "the marginals of {name} under noise are not known exactly; train a model on it, or use mog40, mog2, two-modes, \
             upper-pair or lower-pair"
        ))),
    }
}
