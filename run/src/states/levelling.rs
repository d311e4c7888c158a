//! F(t) when the training on states ends: every level adds up to one where all rows can be added, the last level always.

use crate::level::{SHARE, places};
use diffclf::discrete::LearnedStates;
use diffclf::discrete::metric::{all_log_densities, normalise_last};
use diffclf::discrete::model::Content;
use diffclf::free_energy::Levelling;
use diffclf::metric::Estimate;

/// Fewest levels that are added up.
const FEWEST: usize = 8;

/// How far F moves.
pub struct Shifts {
    /// At each level of the grid.
    pub shifts: Vec<f64>,
    /// The largest of those beyond that of the last level, which the training leaves open; none where sums are not known.
    pub moved: Option<Estimate>,
}

/// What to add to F: minus the logarithm of each level's sum, as far as a small share of the training's evaluations goes, or the shift of the last level for all.
pub fn shifts(content: &Content, energy: &LearnedStates) -> Shifts {
    let (spec, settings) = (&content.spec, &content.record.settings);
    let grid = spec.grid.times();
    let stages = settings.stages.iter();
    let seen: f64 = stages
        .map(|stage| stage.steps as f64 * (stage.levels * stage.levels) as f64)
        .sum();
    let evaluations = SHARE * settings.batch as f64 * seen;
    let rows = spec
        .space
        .count(1 << 20)
        .filter(|_| !spec.process.is_masked());
    let levels = rows.map_or(0, |rows| (evaluations / rows as f64) as usize);
    let levels = levels.min(grid.len());
    if levels < FEWEST {
        let shift = normalise_last(energy, spec, settings.seed);
        return Shifts {
            shifts: vec![shift; grid.len()],
            moved: None,
        };
    }
    let places = places(grid.len(), levels);
    let sums = places.iter().map(|place| {
        let values = all_log_densities(energy, grid[*place]).unwrap_or_default();
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = values.iter().map(|value| (value - most).exp()).sum();
        Estimate {
            mean: -(most + sum.ln()),
            error: 0.0,
        }
    });
    let levelling = Levelling {
        shifts: sums.collect(),
        gain: Estimate {
            mean: 0.0,
            error: 0.0,
        },
    };
    let shifts: Vec<f64> = (0..grid.len())
        .map(|k| levelling.shift_at(&places, k))
        .collect();
    let last = shifts.last().copied().unwrap_or(0.0);
    let beyond = shifts.iter().map(|shift| shift - last);
    let most = beyond.max_by(|a, b| a.abs().total_cmp(&b.abs()));
    Shifts {
        moved: most.map(|mean| Estimate { mean, error: 0.0 }),
        shifts,
    }
}
