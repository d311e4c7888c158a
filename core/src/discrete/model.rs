//! The definition of an energy of states, and what its files say.

use super::Space;
use super::network::{OverSites, Rows, SitesNetwork};
use super::objective::StatesObjectiveName;
use super::process::Process;
use crate::model::{Describes, Record};
use crate::network::{Init, Layout};
use crate::process::{Spacing, TimeGrid};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A model of states and its parameters.
pub type StatesModel = crate::model::ModelOf<Content>;
/// A training of one, stopped between two steps.
pub type StatesCheckpoint = crate::model::CheckpointOf<Content>;

/// Most weights of the first layer: a hostile file must not make us allocate.
const MOST_INPUTS: usize = 1 << 20;

/// Definition of an energy of states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatesSpec {
    /// Sites and states.
    pub space: Space,
    /// The noise.
    pub process: Process,
    /// Levels of F and of the classes.
    pub grid: TimeGrid,
    /// The network.
    pub network: SitesNetwork,
    /// Time features.
    pub features: usize,
    /// The law of each site of the data, `sites x states`: what the energy stands on.
    pub laws: Vec<f64>,
}

impl StatesSpec {
    /// The usual definition on sites of uniform law.
    pub fn new(space: Space, process: Process) -> Result<StatesSpec> {
        space.validate()?;
        let each = 1.0 / space.states as f64;
        Ok(StatesSpec {
            space,
            process,
            grid: TimeGrid::new(128, 1e-4, 1.0, Spacing::Power { rho: 3.0 })?,
            network: SitesNetwork::default(),
            features: 32,
            laws: vec![each; space.sites * space.states],
        })
    }

    /// Refuses what cannot be built.
    pub fn validate(&self) -> Result<()> {
        self.space.validate()?;
        self.process.validate()?;
        let wrong = |name, found: String, expected: &str| {
            Err(Error::Value {
                name,
                found,
                expected: expected.into(),
            })
        };
        if self.grid.t_min() <= 0.0 || self.grid.t_max() > 1.0 {
            return wrong(
                "time grid",
                format!("from {} to {}", self.grid.t_min(), self.grid.t_max()),
                "times above 0 and up to 1, where states are noisy",
            );
        }
        if self.features < 2 || self.features > 1 << 12 || !self.features.is_multiple_of(2) {
            return wrong(
                "features",
                self.features.to_string(),
                "an even number from 2 to 4096",
            );
        }
        let inputs = self.space.sites * self.symbols();
        if inputs > MOST_INPUTS {
            return wrong("sites times symbols", inputs.to_string(), "at most 1048576");
        }
        self.network().validate()?;
        let sites = self.laws.chunks_exact(self.space.states);
        let fits = self.laws.len() == self.space.sites * self.space.states
            && sites.clone().all(|law| law.iter().all(|p| *p > 0.0))
            && sites
                .clone()
                .all(|law| (law.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        if !fits {
            return wrong(
                "laws of the sites",
                format!("{} numbers", self.laws.len()),
                "positive numbers, sites times states, that add up to 1 for each site",
            );
        }
        Ok(())
    }

    /// Symbols of a noisy site.
    pub fn symbols(&self) -> usize {
        self.process.symbols(self.space.states)
    }

    pub(crate) fn network(&self) -> Box<dyn OverSites> {
        self.network.network(Rows {
            sites: self.space.sites,
            symbols: self.symbols(),
            features: self.features,
        })
    }

    /// The parameters.
    pub fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        self.network().declare(&mut layout);
        layout.add("free_energy", self.grid.levels(), 1, Init::Zero);
        layout
    }

    /// The logarithm of `b_t` of each site and symbol, `sites x symbols`.
    pub fn log_laws(&self, time: f64) -> Vec<f64> {
        let (keep, symbols) = (self.process.keep(time), self.symbols() as u8);
        let site = |law: &[f64]| -> Vec<f64> {
            (0..symbols)
                .map(|s| self.process.blur(keep, law, s).ln())
                .collect()
        };
        self.laws
            .chunks_exact(self.space.states)
            .flat_map(site)
            .collect()
    }

    /// Sets the laws from shares (`sites x states`) of `rows` rows, none of them zero: half a row is spread over the states.
    pub fn set_laws(&mut self, shares: &[f64], rows: f64) {
        let each = 0.5 / self.space.states as f64;
        self.laws = shares
            .iter()
            .map(|share| (share * rows + each) / (rows + 0.5))
            .collect();
    }
}

/// What the JSON part of a file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Definition of the energy.
    pub spec: StatesSpec,
    /// Training.
    pub record: Record<StatesObjectiveName>,
}

impl Describes for Content {
    const MODEL: &'static str = "model of states";
    const CHECKPOINT: &'static str = "checkpoint of states";
    type Objective = StatesObjectiveName;

    fn record(&self) -> &Record<StatesObjectiveName> {
        &self.record
    }

    fn record_mut(&mut self) -> &mut Record<StatesObjectiveName> {
        &mut self.record
    }

    fn validate(&self) -> Result<()> {
        self.spec.validate()
    }

    fn layout(&self) -> Layout {
        self.spec.layout()
    }
}
