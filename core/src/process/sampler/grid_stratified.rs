//! One level out of each of N equal parts of the grid, in order. All levels are equally likely when N divides their number.

use super::{DrawTimes, TimeRow};
use crate::citation::{Cites, OURS};
use crate::rng::Stream;
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridStratified {}

impl DrawTimes for GridStratified {
    fn name(&self) -> &'static str {
        "grid-stratified"
    }

    fn about(&self) -> &'static str {
        "one level out of each of N equal parts of the grid"
    }

    fn cites(&self) -> Cites {
        OURS
    }

    fn on_grid(&self) -> bool {
        true
    }

    fn level(&self, row: &TimeRow, place: usize, _first: u32, stream: &mut Stream) -> Option<u32> {
        let (levels, n) = (row.grid.levels(), row.count);
        let (low, high) = (place * levels / n, (place + 1) * levels / n);
        Some((low as u64 + stream.below((high - low) as u64)) as u32)
    }
}
