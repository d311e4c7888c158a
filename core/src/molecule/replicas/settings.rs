//! What replicas are run with: states, time steps, seed.

use crate::molecule::{EnergyTerms, GAS_CONSTANT, Solvent};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A temperature and a solvent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThermoState {
    /// K.
    pub temperature: f64,
    /// The solvent.
    pub solvent: Solvent,
}

impl ThermoState {
    /// kJ/mol.
    pub fn kt(&self) -> f64 {
        GAS_CONSTANT * self.temperature
    }

    /// The reduced energy U/kT of a copy with these terms in this state.
    pub fn reduced(&self, terms: &EnergyTerms) -> f64 {
        terms.total(self.solvent) / self.kt()
    }
}

/// How replicas are run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaSettings {
    /// K, from the coldest to the hottest.
    pub temperatures: Vec<f64>,
    /// Solvents, neighbours next to each other.
    pub solvents: Vec<Solvent>,
    /// Ladders that run side by side.
    pub ladders: usize,
    /// Time step, ps.
    pub step: f64,
    /// Friction, 1/ps.
    pub friction: f64,
    /// Steps between swaps.
    pub moves: u64,
    /// Seed of all noise.
    pub seed: u64,
}

impl Default for ReplicaSettings {
    fn default() -> Self {
        ReplicaSettings {
            temperatures: vec![300.0],
            solvents: vec![Solvent::WATER],
            ladders: 1,
            step: 0.001,
            friction: 1.0,
            moves: 100,
            seed: 0,
        }
    }
}

impl ReplicaSettings {
    /// All states of a ladder: the temperatures of the first solvent, then those of the second, and so on.
    pub fn states(&self) -> Vec<ThermoState> {
        let of = |&solvent: &Solvent| {
            self.temperatures
                .iter()
                .map(move |&temperature| ThermoState {
                    temperature,
                    solvent,
                })
        };
        self.solvents.iter().flat_map(of).collect()
    }

    /// Copies of the molecule.
    pub fn replicas(&self) -> usize {
        self.ladders
            .saturating_mul(self.temperatures.len())
            .saturating_mul(self.solvents.len())
    }

    pub(super) fn validate(&self) -> Result<()> {
        let wrong = |name, found: String, expected: &str| {
            Err(Error::Value {
                name,
                found,
                expected: expected.into(),
            })
        };
        let rising = self.temperatures.windows(2).all(|pair| pair[0] < pair[1]);
        let range = |t: &f64| (1.0..=1e5).contains(t);
        if self.temperatures.is_empty() || !rising || !self.temperatures.iter().all(range) {
            return wrong(
                "temperatures",
                format!("{:?}", self.temperatures),
                "rising temperatures from 1 to 100000 K",
            );
        }
        if self.solvents.is_empty() {
            return wrong("solvents", "none".into(), "at least one");
        }
        for solvent in &self.solvents {
            solvent.validate()?;
        }
        if !(self.step > 0.0 && self.step <= 0.01) {
            return wrong(
                "time step",
                format!("{} ps", self.step),
                "above 0 and up to 0.01 ps; bonds to hydrogen need about 0.001",
            );
        }
        if !(self.friction > 0.0 && self.friction <= 1e4) {
            return wrong(
                "friction",
                format!("{} per ps", self.friction),
                "above 0 and up to 10000 per ps",
            );
        }
        if self.moves == 0 || self.ladders == 0 {
            return wrong(
                "ladders and steps between swaps",
                format!("{} and {}", self.ladders, self.moves),
                "at least 1 each",
            );
        }
        if self.replicas() > 1 << 16 {
            return wrong(
                "number of replicas",
                self.replicas().to_string(),
                "at most 65536",
            );
        }
        Ok(())
    }
}
