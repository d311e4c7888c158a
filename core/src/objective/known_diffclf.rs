//! DiffCLF with known marginals: classes whose density is given enter the softmax beside the N learned levels, as the known
//! noise does in noise-contrastive estimation (Gutmann & Hyvarinen 2010).
//!
//! A row has N noisy points at its levels and one point at each known end. Every point is classified among the N learned
//! log-densities `-U + F` and the exact ones at the ends. Since those are normalised, F(t) becomes the true log-normaliser and
//! is no longer free up to a constant.
//!
//! `ends` says which are known. The noise end of a diffusion is the grid's last level, where the density is
//! `N(S mu, S^2 sd^2 + gamma^2)` up to terms of order `S^2`; nothing else is needed. The data end, and both ends of an
//! interpolant (times 0 and 1), come from a system with known densities.

use super::fill::{Fill, Filler, Mixing, Setup, Tile};
use super::setting::{SettingList, Words};
use super::{Objective, Scene, Teaches};
use crate::energy::ModelSpec;
use crate::engine::{Node, Real};
use crate::rng::Purpose;
use crate::{Error, Result};

/// Which marginals are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The last one: noise for a diffusion, `q_1` for an interpolant.
    Last,
    /// The first one: the data.
    First,
    /// Both.
    Both,
}

impl Words for Ends {
    const WORDS: &'static [(&'static str, Ends)] = &[
        ("last", Ends::Last),
        ("first", Ends::First),
        ("both", Ends::Both),
    ];
}

impl Ends {
    /// Whether the first end is known, whether the last is.
    pub fn known(self) -> [bool; 2] {
        [self != Ends::Last, self != Ends::First]
    }

    /// How many are known.
    pub fn count(self) -> usize {
        if self == Ends::Both { 2 } else { 1 }
    }
}

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownDiffclf {
    /// Which marginals are known.
    pub ends: Ends,
}

impl KnownDiffclf {
    /// The usual settings.
    pub const USUAL: KnownDiffclf = KnownDiffclf { ends: Ends::Last };
}

impl Objective for KnownDiffclf {
    fn name(&self) -> &'static str {
        "known-diffclf"
    }

    fn about(&self) -> &'static str {
        "classification with known marginals among the classes: F(t) absolutely"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Levels
    }

    fn cites(&self) -> &'static [&'static str] {
        &["ouyang2026diffclf"]
    }

    fn settings(&mut self) -> SettingList<'_> {
        vec![("ends", &mut self.ends)]
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        if !spec.periods().is_empty() {
            return Err(Error::Value {
                name: "objective",
                found: "known-diffclf for periodic columns".into(),
                expected: "dsm+diffclf+0.5*anchor: noise on a circle ends in no Gaussian".into(),
            });
        }
        // The noise end is Gaussian only if little of the data is left there.
        let process = &spec.process;
        let left = spec.variance.sqrt() / process.noise_level(spec.grid.t_max());
        if !process.is_interpolant() && self.ends != Ends::First && left > 0.2 {
            return Err(Error::Value {
                name: "objective",
                found: format!(
                    "known-diffclf with {left:.3} of the data's spread left beside the noise at time {}",
                    spec.grid.t_max()
                ),
                expected:
                    "at most 0.2, so that the last marginal is Gaussian; extend the time grid"
                        .into(),
            });
        }
        Ok(())
    }

    fn needs_truth(&self, spec: &ModelSpec) -> bool {
        spec.process.is_interpolant() || self.ends != Ends::Last
    }

    fn compares_levels(&self) -> bool {
        true
    }

    fn fixes_free_energy(&self) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let (n, e) = (scene.levels(), self.ends.count());
        let own = scene.own_log_density();
        let mut learned = own;
        if n > 1 {
            let others = scene.other_log_densities();
            learned = scene.graph().concat(own, others);
        }
        let slots = scene.filled(self.ends);
        let (at_ends, known) = (scene.log_densities_of(slots[0], e), slots[1]);
        let g = scene.graph();
        // Rows: the N noisy points, then the points at the ends. Columns of `known`: the ends.
        let of_points = g.gather(known, &(0..n as u32).collect::<Vec<_>>());
        let of_ends = g.gather(known, &(n as u32..(n + e) as u32).collect::<Vec<_>>());
        let classes = g.concat(learned, of_points);
        let total = g.log_sum_exp(classes);
        let from_points = g.sub(total, own);
        let from_points = g.unit_sum(from_points);
        let classes = g.concat(at_ends, of_ends);
        let total = g.log_sum_exp(classes);
        let mut sum = from_points;
        for k in 0..e {
            let row = g.gather(of_ends, &[k as u32]);
            let right = g.slice(row, k, 1);
            let total = g.gather(total, &[k as u32]);
            let loss = g.sub(total, right);
            sum = g.add(sum, loss);
        }
        g.scale(sum, 1.0 / (n + e) as f64)
    }
}

/// Slots: points at the E known ends, `Unit(E) x d`, and exact log-densities at the ends' times of the N noisy points and those
/// E points, `Unit(N + E) x E`.
impl Filler for Ends {
    fn shapes(&self, spec: &ModelSpec, levels: usize) -> Vec<(usize, usize)> {
        let e = self.count();
        vec![(e, spec.dim), (levels + e, e)]
    }

    fn build<T: Real>(&self, _: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>> {
        Box::new(EndPoints {
            ends: *self,
            points: slots[0],
            log_density: slots[1],
        })
    }
}

struct EndPoints {
    ends: Ends,
    points: usize,
    log_density: usize,
}

impl<T: Real> Fill<T> for EndPoints {
    fn fill(&self, tile: &mut Tile<'_, '_, T>) {
        self.copy_sources(tile);
        if self.ends.known()[1] && tile.rows.end.is_none() {
            self.fill_gaussian(tile);
        }
        if let Some(truth) = tile.truth {
            self.fill_known(tile, truth);
        }
    }
}

impl EndPoints {
    /// Points at ends that are source rows.
    fn copy_sources<T: Real>(&self, tile: &mut Tile<'_, '_, T>) {
        let (d, e) = (tile.spec.dim, self.ends.count());
        let [first, last] = self.ends.known();
        let sources = [
            (first.then_some(tile.rows.start), 0),
            (tile.rows.end.filter(|_| last), e - 1),
        ];
        for (source, place) in sources {
            let Some(source) = source else { continue };
            let [x, y] = tile.inputs.many([source, self.points]);
            for (x, y) in x.chunks_exact(d).zip(y.chunks_exact_mut(e * d)) {
                y[place * d..][..d].copy_from_slice(x);
            }
        }
    }

    /// The noise end of a diffusion: a point there, and the Gaussian log-density of all points.
    fn fill_gaussian<T: Real>(&self, tile: &mut Tile<'_, '_, T>) {
        let (spec, n, e) = (tile.spec, tile.levels, self.ends.count());
        let (d, time) = (spec.dim, spec.grid.t_max());
        let mixing = Mixing::<T>::at(spec, time);
        let [x0, y] = tile.inputs.many([tile.rows.start, self.points]);
        let purpose = Purpose::Ends(tile.part);
        for (k, unit) in tile.units.clone().enumerate() {
            let y = &mut y[(k * e + e - 1) * d..][..d];
            T::fill_normal_rows(tile.seed, purpose, tile.step, unit as u64, d, y);
            for (y, &x0) in y.iter_mut().zip(&x0[k * d..]) {
                *y = mixing.alpha * x0 + mixing.gamma * *y;
            }
        }
        let scale = spec.process.scale(time);
        let variance = scale * scale * spec.variance + spec.process.noise(time).powi(2);
        let constant = 0.5 * d as f64 * (std::f64::consts::TAU * variance).ln();
        let log_density = |y: &[T]| {
            let square: f64 = y
                .iter()
                .zip(&spec.mean)
                .map(|(y, mean)| (y.to_f64() - scale * mean).powi(2))
                .sum();
            T::from_f64(-0.5 * square / variance - constant)
        };
        let slots = [tile.rows.points, self.points, self.log_density];
        let [points, end_points, out] = tile.inputs.many(slots);
        for k in 0..tile.units.len() {
            let rows = points[k * n * d..][..n * d]
                .chunks_exact(d)
                .chain(end_points[k * e * d..][..e * d].chunks_exact(d));
            for (i, y) in rows.enumerate() {
                out[(k * (n + e) + i) * e + e - 1] = log_density(y);
            }
        }
    }

    /// Log-densities at ends that a system knows. A diffusion's last end is Gaussian and filled already.
    fn fill_known<T: Real>(&self, tile: &mut Tile<'_, '_, T>, truth: &dyn crate::energy::Energy) {
        let (d, n, e) = (tile.spec.dim, tile.levels, self.ends.count());
        let [first, last] = self.ends.known();
        let [points, end_points] = tile.inputs.many([tile.rows.points, self.points]);
        let scratch = &mut *tile.scratch;
        scratch.input.clear();
        for (points, ends) in points.chunks(n * d).zip(end_points.chunks(e * d)) {
            let both = points.iter().chain(ends.iter());
            scratch.input.extend(both.map(|x| x.to_f64()));
        }
        let known = [
            (first, 0.0, 0),
            (
                last && tile.rows.end.is_some(),
                tile.spec.process.horizon(),
                e - 1,
            ),
        ];
        for (_, time, k) in known.into_iter().filter(|k| k.0) {
            let rows = tile.scratch.input.len() / d;
            tile.make_room(rows);
            let scratch = &mut *tile.scratch;
            scratch.evaluate(d, &[time], |time, points, out| {
                truth.log_density(time, points, out);
            });
            let out = tile.inputs.numbers(self.log_density);
            for (out, &value) in out.chunks_exact_mut(e).zip(&scratch.output) {
                out[k] = T::from_f64(value);
            }
        }
    }
}
