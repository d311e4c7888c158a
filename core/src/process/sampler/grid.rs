//! Levels of the grid, all equally likely.

use super::{DrawTimes, TimeRow};
use crate::citation::Cites;
use crate::rng::Stream;
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {}

impl DrawTimes for Grid {
    fn name(&self) -> &'static str {
        "grid"
    }

    fn about(&self) -> &'static str {
        "levels of the grid, all equally likely"
    }

    fn cites(&self) -> Cites {
        &["ouyang2026diffclf"]
    }

    fn on_grid(&self) -> bool {
        true
    }

    fn level(&self, row: &TimeRow, _place: usize, _first: u32, stream: &mut Stream) -> Option<u32> {
        Some(stream.below(row.grid.levels() as u64) as u32)
    }
}
