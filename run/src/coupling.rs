//! Which rows of both ends of an interpolant belong together: what a user may say of it, and what follows for a model.

use crate::error::{Error, Result};
use crate::words;
use crate::words::Setting;
use diffclf::coupling::{Coupling, alike};
use diffclf::energy::ModelSpec;
use diffclf::network::NetworkSpec;
use diffclf::particles::Rotation;
use serde::{Deserialize, Serialize};

/// Rows of an end that are assigned to those of the other at once, unless told otherwise: few milliseconds.
const ROWS: usize = 256;

fn usual_rows() -> usize {
    ROWS
}

/// How rows of both ends are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CouplingChoice {
    /// At random.
    Independent {},
    /// So that their squared distances are least, among so many of each end.
    OptimalTransport {
        /// Rows that are assigned at once.
        #[serde(default = "usual_rows")]
        rows: usize,
    },
}

impl CouplingChoice {
    /// What it means for a model; `rotate` tells whether its rows are turned at random, `given` how many rows the smaller end has.
    pub fn settle(
        self,
        spec: &ModelSpec,
        bonds: &[[u32; 2]],
        rotate: bool,
        given: Option<usize>,
    ) -> Result<Option<Coupling>> {
        let Self::OptimalTransport { rows } = self else {
            return Ok(None);
        };
        if !spec.process.is_interpolant() || spec.base.is_some() {
            return Err(Error::Refused(words!(
                Setting::new("coupling"),
                " pairs the rows of two endpoints, on a Gaussian or on springs; leave it out, give ",
                Setting::new("end"),
                ", or choose another ",
                Setting::new("base")
            )));
        }
        let particles = spec.network.particles().unwrap_or(0);
        let (sets, turns) = match &spec.network {
            NetworkSpec::Egnn(egnn) => (alike(particles, &egnn.types, bonds), true),
            NetworkSpec::Transformer(network) => (alike(particles, &network.types, bonds), rotate),
            _ => (Vec::new(), false),
        };
        let space = spec
            .subspace()
            .map_or(0, |of| of.columns() / particles.max(1));
        Ok(Some(Coupling {
            rows: given.map_or(rows, |given| rows.min(given.max(2))),
            turn: turns && Rotation::exist_in(space),
            alike: sets,
        }))
    }
}
