//! The mixtures that an energy stands on: that of the data, and for an interpolant that of its other end too.

use super::{Marginal, MixtureBase};
use crate::engine::{Isa, Real};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseEnds {
    /// The law of X_0.
    pub start: MixtureBase,
    /// The law of X_1, for an interpolant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<MixtureBase>,
}

impl BaseEnds {
    /// Refuses mixtures that do not fit points of `dim` numbers, one for a diffusion and two for an interpolant.
    pub fn validate(&self, dim: usize, interpolant: bool) -> Result<()> {
        let dims = [Some(&self.start), self.end.as_ref()].map(|base| base.map(MixtureBase::dim));
        if dims != [Some(dim), interpolant.then_some(dim)] {
            return Err(Error::Value {
                name: "base",
                found: format!(
                    "mixtures of dimensions {:?}",
                    dims.into_iter().flatten().collect::<Vec<_>>()
                ),
                expected: format!(
                    "{} of dimension {dim}",
                    if interpolant {
                        "two mixtures"
                    } else {
                        "one mixture"
                    }
                ),
            });
        }
        self.marginal::<f64>(Isa::PORTABLE).map(|_| ())
    }

    /// The exact marginals under a process.
    pub fn marginal<T: Real>(&self, isa: Isa) -> Result<Marginal<T>> {
        Marginal::new(&self.start, self.end.as_ref(), isa)
    }
}
