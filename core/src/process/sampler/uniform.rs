//! Times uniform between the grid's ends.

use super::{DrawTimes, TimeRow};
use crate::Result;
use crate::citation::{Cites, OURS};
use crate::rng::Stream;
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {}

impl DrawTimes for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn about(&self) -> &'static str {
        "uniform between the grid's ends"
    }

    fn cites(&self) -> Cites {
        OURS
    }

    fn time(&self, row: &TimeRow, _drawn: &[f64], stream: &mut Stream) -> Result<f64> {
        Ok(row.time(stream.uniform()))
    }
}
