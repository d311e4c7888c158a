//! Filling the inputs of a step, tile by tile: source rows, times, noisy points, and whatever else the objectives asked for.

use super::step::{Endpoints, StepPlan};
use crate::energy::{Energy, ModelSpec, TimeTable, Wiring};
use crate::engine::{Inputs, Real};
use crate::objective::{EndSlots, MAX_LEVELS, Partner, PartnerSlots, Slots};
use crate::rng::{Purpose, Stream};
use std::ops::Range;

/// Coefficients of `y = alpha x_0 + beta x_1 + gamma z` at a time.
#[derive(Clone, Copy)]
struct Mixing<T> {
    alpha: T,
    beta: T,
    gamma: T,
}

impl<T: Real> Mixing<T> {
    const ZERO: Mixing<T> = Mixing {
        alpha: T::ZERO,
        beta: T::ZERO,
        gamma: T::ZERO,
    };

    fn at(spec: &ModelSpec, time: f64) -> Mixing<T> {
        let p = &spec.process;
        Mixing {
            alpha: T::from_f64(p.x0_scale(time)),
            beta: T::from_f64(p.x1_scale(time)),
            gamma: T::from_f64(p.noise(time)),
        }
    }
}

/// How a partner's point is made from its row.
#[derive(Clone, Copy)]
struct PartnerMixing<T> {
    mixing: Mixing<T>,
    rho: T,
    rest: T,
}

impl<T: Real> PartnerMixing<T> {
    fn at(spec: &ModelSpec, partner: Partner, time: f64) -> PartnerMixing<T> {
        let draw = partner.draw(spec, time);
        PartnerMixing {
            mixing: Mixing::at(spec, draw.time),
            rho: T::from_f64(draw.rho),
            rest: T::from_f64(draw.rest),
        }
    }
}

/// Coefficients at the levels of the grid; empty for continuous times.
pub(super) struct Tables<T> {
    mixing: Vec<Mixing<T>>,
    partners: Vec<Vec<PartnerMixing<T>>>,
}

impl<T: Real> Tables<T> {
    pub(super) fn new(spec: &ModelSpec, slots: &Slots, times: &[f64]) -> Tables<T> {
        let table = |p: &PartnerSlots| {
            times
                .iter()
                .map(|&t| PartnerMixing::at(spec, p.partner, t))
                .collect()
        };
        Tables {
            mixing: times.iter().map(|&t| Mixing::at(spec, t)).collect(),
            partners: slots.partners.iter().map(table).collect(),
        }
    }
}

pub(super) fn time_stream(plan: &StepPlan, step: u64, unit: usize) -> Stream {
    Stream::new(plan.seed, Purpose::Time(plan.part), step, unit as u64)
}

pub(super) fn draw_levels(
    plan: &StepPlan,
    spec: &ModelSpec,
    stream: &mut Stream,
    levels: &mut [u32],
) {
    if plan
        .times
        .fill_levels(&spec.process, &spec.grid, stream, levels)
        .is_err()
    {
        unreachable!("the sampler was tried when the step was made");
    }
}

pub(super) fn draw_times(
    plan: &StepPlan,
    spec: &ModelSpec,
    stream: &mut Stream,
    times: &mut [f64],
) {
    if plan
        .times
        .fill_times(&spec.process, &spec.grid, spec.dim, stream, times)
        .is_err()
    {
        unreachable!("the sampler was tried when the step was made");
    }
}

/// Signs of probe number `k` for rows of `width` numbers.
pub(super) fn fill_probes<T: Real>(
    plan: &StepPlan,
    step: u64,
    k: usize,
    first_row: u64,
    width: usize,
    out: &mut [T],
) {
    for (row, out) in (first_row..).zip(out.chunks_mut(width)) {
        let mut stream = Stream::new(
            plan.seed,
            Purpose::Probe(plan.part),
            step,
            2 * row + k as u64,
        );
        for block in out.chunks_mut(32) {
            let mut bits = stream.next_u32();
            for sign in block {
                *sign = if bits & 1 == 1 { T::ONE } else { -T::ONE };
                bits >>= 1;
            }
        }
    }
}

/// Fills the inputs of tiles.
pub(super) struct Filler<'a, T> {
    pub(super) spec: &'a ModelSpec,
    pub(super) plan: &'a StepPlan,
    pub(super) wiring: &'a Wiring,
    pub(super) slots: &'a Slots,
    pub(super) schedule: &'a TimeTable<T>,
    pub(super) tables: &'a Tables<T>,
    pub(super) truth: Option<&'a dyn Energy>,
    pub(super) step: u64,
    pub(super) from: &'a Endpoints,
}

impl<T: Real> Filler<'_, T> {
    pub(super) fn fill(&self, units: Range<usize>, inputs: &mut Inputs<'_, T>) {
        let (d, n) = (self.spec.dim, self.plan.levels);
        let first = units.start as u64;
        let plan = self.plan;
        let (seed, part) = (plan.seed, plan.part);
        let noise = inputs.numbers(self.slots.noise);
        T::fill_normal_rows(seed, Purpose::Noise(part), self.step, first, n * d, noise);
        for slot in self.slots.partners.iter().filter_map(|p| p.forward) {
            let noise = inputs.numbers(slot);
            T::fill_normal_rows(seed, Purpose::Partner(part), self.step, first, n * d, noise);
        }
        for (k, slot) in self.slots.probes.iter().enumerate() {
            if let Some(slot) = *slot {
                fill_probes(plan, self.step, k, first, n * d, inputs.numbers(slot));
            }
        }
        for (k, unit) in units.clone().enumerate() {
            self.fill_unit(inputs, k, unit);
        }
        if let Some(ends) = self.slots.ends {
            self.fill_ends(inputs, units.clone(), ends);
        }
        if let Some(truth) = self.truth {
            self.fill_truth(inputs, units, truth);
        }
    }

    /// Times and points of one unit. Times of partners whose energy is needed follow the unit's own.
    fn fill_unit(&self, inputs: &mut Inputs<'_, T>, k: usize, unit: usize) {
        let n = self.plan.levels;
        let (spec, partners) = (self.spec, &self.slots.partners);
        let behind = partners.iter().find_map(|p| match p.partner {
            Partner::Behind(gap) => Some((p.partner, gap)),
            Partner::Ahead(_) => None,
        });
        let count = if behind.is_some() { 2 * n } else { n };
        let mut mixing = [Mixing::ZERO; MAX_LEVELS];
        let mut stream = time_stream(self.plan, self.step, unit);
        self.read_sources(inputs, k, unit);
        if self.plan.times.on_grid() {
            let mut levels = [0u32; 2 * MAX_LEVELS];
            draw_levels(self.plan, spec, &mut stream, &mut levels[..n]);
            if let Some((_, gap)) = behind {
                for i in 0..n {
                    let level = levels[i];
                    levels[n + i] = if level < gap { level } else { level - gap };
                }
            }
            let schedule = self.schedule;
            schedule.fill_levels(self.wiring, inputs, k, &levels[..count]);
            for (c, &level) in mixing.iter_mut().zip(&levels[..n]) {
                *c = self.tables.mixing[level as usize];
            }
            self.place_points(inputs, k, &mixing[..n]);
            for (p, table) in partners.iter().zip(&self.tables.partners) {
                self.place_partners(inputs, k, p, |i| table[levels[i] as usize]);
            }
        } else {
            let mut times = [0.0; 2 * MAX_LEVELS];
            draw_times(self.plan, spec, &mut stream, &mut times[..n]);
            if let Some((partner, _)) = behind {
                for i in 0..n {
                    times[n + i] = partner.time(spec, times[i]);
                }
            }
            let schedule = self.schedule;
            schedule.fill_times(spec, self.wiring, inputs, k, &times[..count]);
            for (c, &t) in mixing.iter_mut().zip(&times[..n]) {
                *c = Mixing::at(spec, t);
            }
            self.place_points(inputs, k, &mixing[..n]);
            for p in partners {
                self.place_partners(inputs, k, p, |i| {
                    PartnerMixing::at(spec, p.partner, times[i])
                });
            }
        }
    }

    /// Reads the source rows of one unit.
    fn read_sources(&self, inputs: &mut Inputs<'_, T>, k: usize, unit: usize) {
        let d = self.spec.dim;
        let row = k * d..(k + 1) * d;
        let start = &mut inputs.numbers(self.slots.start)[row.clone()];
        T::read_row(start, &mut |out| self.from.start.fill(self.step, unit, out));
        if let (Some(source), Some(slot)) = (&self.from.end, self.slots.end) {
            let end = &mut inputs.numbers(slot)[row];
            T::read_row(end, &mut |out| source.fill(self.step, unit, out));
        }
    }

    /// Places the noisy points of one unit, and their mirror images.
    fn place_points(&self, inputs: &mut Inputs<'_, T>, k: usize, coefficients: &[Mixing<T>]) {
        let (d, n) = (self.spec.dim, self.plan.levels);
        let Slots {
            start,
            noise,
            points,
            ..
        } = *self.slots;
        let mut place = |sign: T, target: usize| {
            let [x0, z, y] = inputs.many([start, noise, target]);
            for (i, c) in coefficients.iter().enumerate() {
                let (z, y) = (&z[(k * n + i) * d..][..d], &mut y[(k * n + i) * d..][..d]);
                let gamma = sign * c.gamma;
                for ((y, &x0), &z) in y.iter_mut().zip(&x0[k * d..][..d]).zip(z) {
                    *y = c.alpha * x0 + gamma * z;
                }
            }
            self.add_end(inputs, k, target, |i| coefficients[i].beta);
        };
        place(T::ONE, points);
        if let Some(mirror) = self.slots.mirror {
            place(-T::ONE, mirror);
        }
    }

    /// Adds `beta x_1` to the points of one unit.
    fn add_end(
        &self,
        inputs: &mut Inputs<'_, T>,
        k: usize,
        target: usize,
        beta: impl Fn(usize) -> T,
    ) {
        let (d, n) = (self.spec.dim, self.plan.levels);
        if let Some(end) = self.slots.end {
            let [x1, y] = inputs.many([end, target]);
            for i in 0..n {
                let beta = beta(i);
                for (y, &x1) in y[(k * n + i) * d..][..d].iter_mut().zip(&x1[k * d..][..d]) {
                    *y += beta * x1;
                }
            }
        }
    }

    /// Places the partners of one unit. On the noising path `z_s = rho z_t + rest e`, and the forward noise from `Y_s` to `Y_t`
    /// is `(z_t - rho z_s) / rest = rest z_t - rho e`.
    fn place_partners(
        &self,
        inputs: &mut Inputs<'_, T>,
        k: usize,
        slots: &PartnerSlots,
        of: impl Fn(usize) -> PartnerMixing<T>,
    ) {
        let (d, n) = (self.spec.dim, self.plan.levels);
        let (start, noise, target) = (self.slots.start, self.slots.noise, slots.points);
        let [x0, z, y] = inputs.many([start, noise, target]);
        for i in 0..n {
            let PartnerMixing { mixing, rho, .. } = of(i);
            let row = (k * n + i) * d..(k * n + i + 1) * d;
            for ((y, &x0), &z) in y[row.clone()].iter_mut().zip(&x0[k * d..]).zip(&z[row]) {
                *y = mixing.alpha * x0 + mixing.gamma * rho * z;
            }
        }
        if let Some(forward) = slots.forward {
            let [z, e, y] = inputs.many([noise, forward, target]);
            for i in 0..n {
                let PartnerMixing { mixing, rho, rest } = of(i);
                let row = (k * n + i) * d..(k * n + i + 1) * d;
                let points = y[row.clone()].iter_mut().zip(&mut e[row.clone()]);
                for ((y, e), &z) in points.zip(&z[row]) {
                    *y += mixing.gamma * rest * *e;
                    *e = rest * z - rho * *e;
                }
            }
        }
        self.add_end(inputs, k, target, |i| of(i).mixing.beta);
    }

    /// The noise end of a diffusion: a point there, and the Gaussian log-density of all points. Ends that a system knows are
    /// filled with its densities by [`Filler::fill_truth`].
    fn fill_ends(&self, inputs: &mut Inputs<'_, T>, units: Range<usize>, ends: EndSlots) {
        let (d, n, e) = (self.spec.dim, self.plan.levels, ends.ends.count());
        let [first, last] = ends.ends.known();
        let (start, end) = (self.slots.start, self.slots.end);
        for k in 0..units.len() {
            let row = |slot: usize| (k * e + slot) * d..(k * e + slot + 1) * d;
            if first {
                let [x0, y] = inputs.many([start, ends.points]);
                y[row(0)].copy_from_slice(&x0[k * d..][..d]);
            }
            if let (true, Some(end)) = (last, end) {
                let [x1, y] = inputs.many([end, ends.points]);
                y[row(e - 1)].copy_from_slice(&x1[k * d..][..d]);
            }
        }
        if !last || end.is_some() {
            return;
        }
        let (spec, time) = (self.spec, self.spec.grid.t_max());
        let mixing = Mixing::<T>::at(spec, time);
        let [x0, y] = inputs.many([start, ends.points]);
        for (k, unit) in units.clone().enumerate() {
            let y = &mut y[(k * e + e - 1) * d..][..d];
            T::fill_normal_rows(
                self.plan.seed,
                Purpose::Ends(self.plan.part),
                self.step,
                unit as u64,
                d,
                y,
            );
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
        let slots = [self.slots.points, ends.points, ends.log_density];
        let [points, end_points, out] = inputs.many(slots);
        for k in 0..units.len() {
            let rows = points[k * n * d..][..n * d]
                .chunks_exact(d)
                .chain(end_points[k * e * d..][..e * d].chunks_exact(d));
            for (i, y) in rows.enumerate() {
                out[(k * (n + e) + i) * e + e - 1] = log_density(y);
            }
        }
    }

    /// What the truth says about the tile: time scores, scores of the sources, log-densities at the ends.
    fn fill_truth(&self, inputs: &mut Inputs<'_, T>, units: Range<usize>, truth: &dyn Energy) {
        let (d, n) = (self.spec.dim, self.plan.levels);
        let numbers = |inputs: &mut Inputs<'_, T>, slot: usize| -> Vec<f64> {
            inputs.numbers(slot).iter().map(|x| x.to_f64()).collect()
        };
        let write = |inputs: &mut Inputs<'_, T>, slot: usize, values: &[f64]| {
            for (out, &value) in inputs.numbers(slot).iter_mut().zip(values) {
                *out = T::from_f64(value);
            }
        };
        let last_time = if self.slots.end.is_some() {
            self.spec.process.horizon()
        } else {
            self.spec.grid.t_max()
        };
        if let Some(slot) = self.slots.exact_time_score {
            let mut times = vec![0.0; units.len() * n];
            for (times, unit) in times.chunks_exact_mut(n).zip(units.clone()) {
                let mut stream = time_stream(self.plan, self.step, unit);
                draw_times(self.plan, self.spec, &mut stream, times);
            }
            let points = numbers(inputs, self.slots.points);
            let mut out = vec![0.0; times.len()];
            truth.time_score(&times, &points, &mut out);
            write(inputs, slot, &out);
        }
        let sources = [
            (self.slots.start_score, Some(self.slots.start), 0.0),
            (self.slots.end_score, self.slots.end, last_time),
        ];
        for (score, source, time) in sources {
            if let (Some(score), Some(source)) = (score, source) {
                let points = numbers(inputs, source);
                let mut out = vec![0.0; points.len()];
                truth.score(&[time], &points, &mut out);
                write(inputs, score, &out);
            }
        }
        let Some(ends) = self.slots.ends else { return };
        let e = ends.ends.count();
        let [first, last] = ends.ends.known();
        let (points, end_points) = (
            numbers(inputs, self.slots.points),
            numbers(inputs, ends.points),
        );
        let mut all = Vec::with_capacity(points.len() + end_points.len());
        for (points, ends) in points.chunks(n * d).zip(end_points.chunks(e * d)) {
            all.extend_from_slice(points);
            all.extend_from_slice(ends);
        }
        let mut column = vec![0.0; all.len() / d];
        // A diffusion's last end is Gaussian and filled already.
        let known = [
            (first, 0.0, 0),
            (last && self.slots.end.is_some(), last_time, e - 1),
        ];
        for (_, time, k) in known.into_iter().filter(|k| k.0) {
            truth.log_density(&[time], &all, &mut column);
            let out = inputs.numbers(ends.log_density);
            for (out, &value) in out.chunks_exact_mut(e).zip(&column) {
                out[k] = T::from_f64(value);
            }
        }
    }
}
