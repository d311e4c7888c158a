//! Times uniform in each of N equal parts of the time range, in order.

use super::{DrawTimes, TimeRow};
use crate::Result;
use crate::citation::{Cites, OURS};
use crate::rng::Stream;
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stratified {}

impl DrawTimes for Stratified {
    fn name(&self) -> &'static str {
        "stratified"
    }

    fn about(&self) -> &'static str {
        "uniform in each of N equal parts of the time range"
    }

    fn cites(&self) -> Cites {
        OURS
    }

    fn time(&self, row: &TimeRow, drawn: &[f64], stream: &mut Stream) -> Result<f64> {
        Ok(row.time((drawn.len() as f64 + stream.uniform()) / row.count as f64))
    }
}
