//! Filling a step's tiles: source rows, levels, noisy rows, what they stand on, and the changes of drawn sites.

use super::StatesPlan;
use crate::discrete::energy::{coupling, features_of, fill_one_hot};
use crate::discrete::model::StatesSpec;
use crate::discrete::objective::{Changes, EntropyWeight, StatesSlots};
use crate::engine::{Inputs, Program, Real};
use crate::objective::MAX_LEVELS;
use crate::rng::{Purpose, Stream};
use crate::train::Source;
use std::ops::Range;

/// What depends on the level alone.
pub(super) struct Tables<T> {
    features: Vec<T>,
    coupling: Vec<T>,
    /// `log b` of each level, site and symbol.
    log_laws: Vec<f64>,
    keep: Vec<f64>,
    rate: Vec<f64>,
}

impl<T: Real> Tables<T> {
    pub(super) fn new(spec: &StatesSpec) -> Tables<T> {
        let times = spec.grid.times();
        let mut features = vec![0.0; times.len() * spec.features];
        for (row, &time) in features.chunks_exact_mut(spec.features).zip(times) {
            features_of(spec, time, row);
        }
        let narrow = |values: Vec<f64>| values.into_iter().map(T::from_f64).collect();
        Tables {
            features: narrow(features),
            coupling: narrow(times.iter().map(|&t| coupling(spec, t)).collect()),
            log_laws: times.iter().flat_map(|&t| spec.log_laws(t)).collect(),
            keep: times.iter().map(|&t| spec.process.keep(t)).collect(),
            rate: times.iter().map(|&t| spec.process.rate(t)).collect(),
        }
    }

    pub(super) fn set_globals(&self, slots: &StatesSlots, program: &mut Program<T>) {
        program.set_global(slots.features, &self.features);
        if let Some(slot) = slots.coupling {
            program.set_global(slot, &self.coupling);
        }
    }
}

/// What a thread needs while it fills a tile.
pub(super) struct Desk {
    source: Vec<f32>,
    start: Vec<u8>,
    noisy: Vec<u8>,
    sites: Vec<u32>,
}

impl Desk {
    pub(super) fn new(spec: &StatesSpec, levels: usize) -> Desk {
        let sites = spec.space.sites;
        Desk {
            source: vec![0.0; sites],
            start: vec![0; sites],
            noisy: vec![0; levels * sites],
            sites: Vec::with_capacity(sites),
        }
    }
}

/// Fills the inputs of tiles.
pub(super) struct TileFiller<'a, T> {
    pub(super) spec: &'a StatesSpec,
    pub(super) plan: &'a StatesPlan,
    pub(super) slots: &'a StatesSlots,
    pub(super) tables: &'a Tables<T>,
    pub(super) step: u64,
    pub(super) from: &'a dyn Source,
}

impl<T: Real> TileFiller<'_, T> {
    pub(super) fn fill(&self, units: Range<usize>, inputs: &mut Inputs<'_, T>, desk: &mut Desk) {
        let (spec, n) = (self.spec, self.plan.levels);
        let (sites, symbols) = (spec.space.sites, spec.symbols());
        for (k, unit) in units.enumerate() {
            self.from.fill(self.step, unit, &mut desk.source);
            for (symbol, value) in desk.start.iter_mut().zip(&desk.source) {
                *symbol = *value as u8;
            }
            let mut levels = [0u32; MAX_LEVELS];
            let levels = &mut levels[..n];
            self.draw_levels(unit, levels);
            self.make_noise(unit, levels, desk);
            let width = n * sites * symbols;
            let points = &mut inputs.numbers(self.slots.points)[k * width..][..width];
            fill_one_hot(&desk.noisy, symbols, points);
            inputs.index(self.slots.own)[k * n..][..n].copy_from_slice(levels);
            if let Some(slot) = self.slots.others {
                let others = &mut inputs.index(slot)[k * n * (n - 1)..][..n * (n - 1)];
                for (out, (_, level)) in others.iter_mut().zip(pairs(levels)) {
                    *out = level;
                }
            }
            if let Some(slot) = self.slots.base[0] {
                let out = &mut inputs.numbers(slot)[k * n..][..n];
                for (i, out) in out.iter_mut().enumerate() {
                    *out = self.log_base(levels[i], &desk.noisy[i * sites..][..sites]);
                }
            }
            if let Some(slot) = self.slots.base[1] {
                let out = &mut inputs.numbers(slot)[k * n * (n - 1)..][..n * (n - 1)];
                for (out, (i, level)) in out.iter_mut().zip(pairs(levels)) {
                    *out = self.log_base(level, &desk.noisy[i * sites..][..sites]);
                }
            }
            if let Some(changes) = &self.slots.changes {
                self.fill_changes(changes, (k, unit), levels, inputs, desk);
            }
        }
    }

    fn draw_levels(&self, unit: usize, levels: &mut [u32]) {
        let mut stream = Stream::new(
            self.plan.seed,
            Purpose::Time(self.plan.part),
            self.step,
            unit as u64,
        );
        let drawn =
            (self.plan.times).fill_levels(&self.spec.process, &self.spec.grid, &mut stream, levels);
        if drawn.is_err() {
            // The sampler was tried when the step was made: this happens less than once in the life of the universe.
            levels.iter_mut().zip(0..).for_each(|(level, k)| *level = k);
        }
    }

    fn make_noise(&self, unit: usize, levels: &[u32], desk: &mut Desk) {
        let states = self.spec.space.states;
        let mut stream = Stream::new(
            self.plan.seed,
            Purpose::Flip(self.plan.part),
            self.step,
            unit as u64,
        );
        let rows = desk.noisy.chunks_exact_mut(desk.start.len());
        for (row, &level) in rows.zip(levels) {
            let keep = self.tables.keep[level as usize];
            for (symbol, &start) in row.iter_mut().zip(&desk.start) {
                *symbol = self.spec.process.draw(states, keep, start, &mut stream);
            }
        }
    }

    /// `log b` of a site's symbols at a level.
    fn law(&self, level: u32, site: usize) -> &[f64] {
        let symbols = self.spec.symbols();
        &self.tables.log_laws[(level as usize * self.spec.space.sites + site) * symbols..]
            [..symbols]
    }

    fn log_base(&self, level: u32, row: &[u8]) -> T {
        let sites = row.iter().enumerate();
        T::from_f64(
            sites
                .map(|(i, s)| self.law(level, i)[usize::from(*s)])
                .sum(),
        )
    }

    /// Draws sites of each noisy row and writes their changes.
    fn fill_changes(
        &self,
        changes: &Changes,
        (k, unit): (usize, usize),
        levels: &[u32],
        inputs: &mut Inputs<'_, T>,
        desk: &mut Desk,
    ) {
        let (spec, n) = (self.spec, self.plan.levels);
        let (sites, states, symbols) = (spec.space.sites, spec.space.states, spec.symbols());
        let (each, count) = (
            changes.sites * changes.others,
            n * changes.sites * changes.others,
        );
        let mut stream = Stream::new(
            self.plan.seed,
            Purpose::Sites(self.plan.part),
            self.step,
            unit as u64,
        );
        for (i, &level) in levels.iter().enumerate() {
            let noisy = &desk.noisy[i * sites..][..sites];
            let changeable = |site: &u32| {
                !spec.process.is_masked() || usize::from(noisy[*site as usize]) == states
            };
            desk.sites.clear();
            desk.sites.extend((0..sites as u32).filter(changeable));
            let able = desk.sites.len();
            let drawn = changes.sites.min(able);
            // As many as are wanted, drawn without putting back; all of them need no draw.
            if drawn < able {
                for place in 0..drawn {
                    let other = place + stream.below((able - place) as u64) as usize;
                    desk.sites.swap(place, other);
                }
            }
            let keep = self.tables.keep[level as usize];
            let speed = match changes.of.weight {
                EntropyWeight::Balanced => 1.0 - keep,
                EntropyWeight::Rate => self.tables.rate[level as usize],
            };
            let scale = speed * able as f64 / drawn.max(1) as f64;
            for place in 0..changes.sites {
                let first = k * count + i * each + place * changes.others;
                let site = if place < drawn {
                    desk.sites[place] as usize
                } else {
                    0
                };
                let (now, start) = (noisy[site], desk.start[site]);
                let law = self.law(level, site);
                let mut sources = spec.process.sources(states, now).take(if place < drawn {
                    changes.others
                } else {
                    0
                });
                for other in 0..changes.others {
                    let at = first + other;
                    // A place without a change compares the row with itself, with weight zero.
                    let symbol = sources.next();
                    let (new, weight, target) = match symbol {
                        Some(new) => {
                            let chance = |to| spec.process.transition(states, keep, start, to);
                            let weight =
                                scale * spec.process.generator().law(states, usize::from(now));
                            (new, weight, chance(new) / chance(now))
                        }
                        None => (now, 0.0, 0.0),
                    };
                    let constant = if target > 0.0 {
                        weight * target * (target.ln() - 1.0)
                    } else {
                        0.0
                    };
                    (changes.rows).fill(inputs, at, noisy, (site, new), symbols);
                    inputs.numbers(changes.base)[at] =
                        T::from_f64(law[usize::from(new)] - law[usize::from(now)]);
                    let values = [weight, target, constant];
                    for (slot, value) in changes.numbers.iter().zip(values) {
                        inputs.numbers(*slot)[at] = T::from_f64(value);
                    }
                }
            }
        }
    }
}

/// Each row with the levels of the others, in order.
fn pairs(levels: &[u32]) -> impl Iterator<Item = (usize, u32)> + '_ {
    (0..levels.len()).flat_map(move |i| {
        let others = (0..levels.len()).filter(move |j| *j != i);
        others.map(move |j| (i, levels[j]))
    })
}
