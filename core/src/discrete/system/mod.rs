//! Systems of states with exact answers: probabilities, marginals under noise, samples. One file per system, all behind [`Target`].

mod language;
mod lattice;
mod layers;
mod product_mixture;
mod table;
pub mod walsh;

pub use language::Language;
pub use lattice::Lattice;
pub use layers::Layers;
pub use product_mixture::ProductMixture;
pub use table::{LogWeights, Table, blur_sites};

use super::{Energy, Process, Space};
use crate::rng::Stream;
use crate::{Error, Result};
use std::sync::Arc;

/// A distribution of rows that is known exactly, under noise too.
pub trait Target: Send + Sync {
    /// Name.
    fn name(&self) -> &'static str;

    /// Sites and states.
    fn space(&self) -> Space;

    /// Draws a row.
    fn sample(&self, stream: &mut Stream, row: &mut [u8]);

    /// `log p_t(y)` of noisy rows at the time at which `keep` is left.
    fn log_marginals(&self, process: &Process, keep: f64, rows: &[u8], out: &mut [f64]);
}

/// Names of the systems that `by_name` knows, with what they are.
pub const NAMES: [(&str, &str); 4] = [
    (
        "ising",
        "Ising spins on a square lattice with a weak field, below the critical temperature (sites: a square number)",
    ),
    (
        "potts",
        "three-state Potts model on a square lattice with a weak field (sites: a square number up to 9)",
    ),
    (
        "product-mixture",
        "a mixture of four product distributions, any number of sites and states",
    ),
    (
        "language",
        "a Markov chain of letters, any number of sites and states",
    ),
];

/// Whether `name` is a system of states.
pub fn is_known(name: &str) -> bool {
    NAMES.iter().any(|(known, _)| *known == name)
}

/// The system of this name on so many sites; what is random about it comes from `seed`.
pub fn by_name(
    name: &str,
    sites: Option<usize>,
    states: Option<usize>,
    seed: u64,
) -> Result<Arc<dyn Target>> {
    let side = |usual: usize| -> Result<usize> {
        let sites = sites.unwrap_or(usual * usual);
        let side = sites.isqrt();
        if side * side == sites && side > 1 {
            return Ok(side);
        }
        Err(Error::Value {
            name: "dim",
            found: sites.to_string(),
            expected: format!(
                "a square number of sites for {name}, such as {}",
                usual * usual
            ),
        })
    };
    let only = |known: usize| match states {
        Some(found) if found != known => Err(Error::Value {
            name: "states",
            found: found.to_string(),
            expected: format!("{known} for {name}"),
        }),
        _ => Ok(()),
    };
    Ok(match name {
        "ising" => {
            only(2)?;
            let side = side(4)?;
            Arc::new(Table::of(&Lattice::named_ising(side))?)
        }
        "potts" => {
            only(3)?;
            let side = side(3)?;
            Arc::new(Table::of(&Lattice::named_potts(side))?)
        }
        "product-mixture" => {
            let space = Space {
                sites: sites.unwrap_or(32),
                states: states.unwrap_or(5),
            };
            Arc::new(ProductMixture::random(space, 4, seed)?)
        }
        "language" => {
            let space = Space {
                sites: sites.unwrap_or(32),
                states: states.unwrap_or(5),
            };
            Arc::new(Language::random(space, seed)?)
        }
        _ => {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            return Err(Error::Value {
                name: "system of states",
                found: format!("{name:?}"),
                expected: format!("one of {}", names.join(", ")),
            });
        }
    })
}

/// The exact energies of a system under a process: `U = -log p_t`, `F = 0`.
#[derive(Clone)]
pub struct ExactStates {
    /// The system.
    pub target: Arc<dyn Target>,
    /// The noise.
    pub process: Process,
}

impl Energy for ExactStates {
    fn space(&self) -> Space {
        self.target.space()
    }

    fn process(&self) -> &Process {
        &self.process
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, time: f64, rows: &[u8], out: &mut [f64]) {
        let keep = self.process.keep(time);
        self.target.log_marginals(&self.process, keep, rows, out);
        out.iter_mut().for_each(|value| *value = -*value);
    }
}

/// Draws from weights that add up to `total`.
pub(crate) fn draw_from(weights: &[f64], total: f64, stream: &mut Stream) -> usize {
    let mut left = stream.uniform() * total;
    for (k, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return k;
        }
    }
    weights.iter().rposition(|w| *w > 0.0).unwrap_or(0)
}
