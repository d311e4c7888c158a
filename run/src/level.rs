//! F(t) of all levels, solved for when the training of a diffusion ends: what a classification between pairs of levels comes to slowly.
//!
//! A mixture under the energy says what F is (`last_word.rs`), and so does an objective that fixes it. The paths of interpolants keep the F they learned: there it
//! is one of three ways to a free energy, whose disagreement tells the model's error.

use crate::error::Result;
use diffclf::energy::LearnedEnergy;
use diffclf::engine::{Isa, Pool};
use diffclf::free_energy::{MbarSettings, PathSamples, level as solve};
use diffclf::model::{Content, Model};
use diffclf::train::Endpoints;
use std::sync::Arc;

/// Rows that stand for the data.
const ROWS: usize = 4096;
/// Most levels that are solved for; F of those between them moves with its neighbours.
const MOST_LEVELS: usize = 128;
/// Fewest samples of a level, and most.
const SAMPLES: (usize, usize) = (48, 384);
/// Share of the training's evaluations that this may cost.
pub(crate) const SHARE: f64 = 0.05;

/// Rows to solve by and to judge by.
pub struct Levels {
    /// Those that are trained on.
    pub fit: Endpoints,
    /// Others, and how many there are.
    pub check: Option<(Endpoints, usize)>,
}

/// Puts F(t) where MBAR over all levels says it is, if that tells the levels of other rows (or of other draws) apart better.
pub fn level(model: &mut Model, rows: &Levels, pool: &Arc<Pool>, isa: Isa) -> Result<()> {
    let content = &model.content;
    let (spec, settings) = (&content.spec, &content.record.settings);
    let layout = spec.layout();
    let (Some(entry), true) = (layout.get("free_energy"), wanted(content)) else {
        return Ok(());
    };
    let seen = settings
        .stages
        .iter()
        .map(|stage| stage.steps as f64 * stage.levels as f64);
    let evaluations = SHARE * settings.batch as f64 * seen.sum::<f64>();
    let Some((count, samples)) = size(evaluations, spec.grid.levels()) else {
        return Ok(());
    };
    let places = places(spec.grid.levels(), count);
    let times: Vec<f64> = places.iter().map(|k| spec.grid.times()[*k]).collect();
    let last = settings.stages.iter().map(|stage| stage.steps).sum();
    let fit = drawn(&rows.fit, spec.dim, last, 0..ROWS);
    let check = match &rows.check {
        Some((held_out, rows)) => drawn(held_out, spec.dim, 0, 0..ROWS.min(*rows)),
        None => drawn(&rows.fit, spec.dim, last, ROWS..2 * ROWS),
    };
    let path = |rows: &[f64], count, seed| {
        PathSamples::new(&spec.process, spec.dim, &times, (rows, None), count, seed)
    };
    // Different seeds: other rows, times and noise than each other's.
    let fit = path(&fit, 2 * samples / 3, settings.seed)?;
    let check = path(&check, samples / 3, settings.seed.wrapping_add(1))?;
    let energy = LearnedEnergy::<f32>::new(spec.clone(), model.best().to_vec(), pool.clone(), isa)?;
    let mbar = MbarSettings {
        pool: Some(pool.clone()),
        isa,
        ..MbarSettings::default()
    };
    // Levels that hang together too little for MBAR keep what was learned.
    let Ok(found) = solve(&energy, (&fit, &check), places.len() - 1, &mbar) else {
        return Ok(());
    };
    if !found.is_certain() {
        return Ok(());
    }
    for params in [Some(&mut model.params), model.average.as_mut()]
        .into_iter()
        .flatten()
    {
        for (k, f) in params[entry.range()].iter_mut().enumerate() {
            *f += found.shift_at(&places, k) as f32;
        }
    }
    model.content.record.levelled = found.largest();
    Ok(())
}

/// Whether F is something that the training taught and nothing else fixes.
fn wanted(content: &Content) -> bool {
    let (spec, settings) = (&content.spec, &content.record.settings);
    let Some(stage) = settings.stages.last() else {
        return false;
    };
    let objectives = || {
        stage
            .objectives
            .iter()
            .map(|term| term.objective.objective())
    };
    settings.levelling
        && spec.base.is_none()
        && !spec.process.is_interpolant()
        && objectives().any(|objective| objective.compares_levels())
        && !objectives().any(|objective| objective.fixes_free_energy())
}

/// How many of the grid's levels, and samples of each, so many evaluations allow; none where they are too few.
fn size(evaluations: f64, grid: usize) -> Option<(usize, usize)> {
    let mut levels = grid.min(MOST_LEVELS);
    loop {
        let samples = (evaluations / (levels * levels) as f64) as usize;
        if samples >= SAMPLES.0 {
            return Some((levels, samples.min(SAMPLES.1)));
        }
        levels /= 2;
        if levels < 8 {
            return None;
        }
    }
}

/// The levels of a grid that are solved for: the first ones all, where neighbours differ most, the others evenly spaced.
pub(crate) fn places(grid: usize, count: usize) -> Vec<usize> {
    let (last, dense) = (grid - 1, count / 8);
    let rest = count - dense;
    let even = |k: usize| dense + (last - dense) * k / (rest - 1).max(1);
    (0..dense).chain((0..rest).map(even)).collect()
}

/// Rows of a source by number, in the model's coordinates.
fn drawn(from: &Endpoints, dim: usize, step: u64, units: std::ops::Range<usize>) -> Vec<f64> {
    let mut row = vec![0f32; dim];
    let mut rows = Vec::with_capacity(units.len() * dim);
    for unit in units {
        from.start.fill(step, unit, &mut row);
        rows.extend(row.iter().map(|x| f64::from(*x)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_follows_the_training() {
        assert_eq!(size(0.05 * 32.0 * 16.0, 16), None);
        assert_eq!(size(6.1e6, 512), Some((128, 372)));
        assert_eq!(size(6.1e5, 512), Some((64, 148)));
        assert_eq!(size(1e9, 16), Some((16, SAMPLES.1)));
    }

    #[test]
    fn levels_are_distinct_and_reach_both_ends() {
        for (grid, count) in [(512, 128), (128, 128), (16, 16), (9, 8), (513, 64)] {
            let places = places(grid, count);
            assert_eq!(places.len(), count);
            assert!(
                places.windows(2).all(|pair| pair[0] < pair[1]),
                "{places:?}"
            );
            assert_eq!((places[0], places[count - 1]), (0, grid - 1));
        }
        assert_eq!(places(512, 128)[..17], Vec::from_iter(0..17));
    }
}
