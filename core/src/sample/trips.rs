//! Journeys of points between the two ends of a ladder: what replica exchange is judged by.

use serde::{Deserialize, Serialize};

/// Which end a point saw last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Neither,
    Hot,
    /// The cold end, after the hot one or not.
    Cold {
        came_from_hot: bool,
    },
}

/// Where every point was last, and how many went from the hot end to the cold one and back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trips {
    ends: Vec<End>,
    round_trips: usize,
}

impl Trips {
    pub(crate) fn new(points: usize) -> Self {
        Trips {
            ends: vec![End::Neither; points],
            round_trips: 0,
        }
    }

    /// A point is at the hot end; its journey counts or does not.
    pub(crate) fn at_hot(&mut self, point: usize, counts: bool) {
        let end = &mut self.ends[point];
        let back = End::Cold {
            came_from_hot: true,
        };
        if counts && *end == back {
            self.round_trips += 1;
        }
        *end = End::Hot;
    }

    /// A point is at the cold end.
    pub(crate) fn at_cold(&mut self, point: usize) {
        let end = &mut self.ends[point];
        let from_cold = End::Cold {
            came_from_hot: false,
        };
        *end = End::Cold {
            came_from_hot: ![End::Neither, from_cold].contains(end),
        };
    }

    /// Which end a point saw last.
    pub(crate) fn last(&self, point: usize) -> End {
        self.ends[point]
    }

    /// Journeys from hot to cold and back.
    pub(crate) fn round_trips(&self) -> usize {
        self.round_trips
    }

    /// How many points there are.
    pub(crate) fn points(&self) -> usize {
        self.ends.len()
    }
}
