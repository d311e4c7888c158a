//! A learned energy at work: parameters and programs that evaluate U, its score and its time derivative in batches.

use std::sync::{Arc, Mutex, PoisonError};

use super::base_inputs::{BaseInputs, UnitLevels, precise};
use super::builder::{Builder, Points};
use super::spec::ModelSpec;
use super::time_table::TimeTable;
use super::wiring::{TimeMode, Wiring};
use super::{Energy, Velocity, product_along, slope_along};
use crate::base::{Level, Marginal, Wanted};
use crate::engine::{Isa, Pool, Program, Real, Rows};
use crate::{Error, Result};

/// Times of one pass of [`Energy::log_density_grid`].
const GRID_BLOCK: usize = 32;

/// What a program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Energy,
    EnergyAndScore,
    Rate,
    Velocity,
    /// `e . H e` for a direction `e` per point.
    Curvature,
    /// `H e`.
    HessianProduct,
}

/// How a program's rows know their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// All rows at one time.
    Once,
    /// Each row at its own.
    PerRow,
    /// Each point at all of a block of times.
    Block,
}

/// Room for an output, and its numbers per point.
type Part<'a, P> = (&'a mut [P], usize);

/// Central differences of a field at points along directions.
type Differences = fn(&dyn Fn(&[f64], &mut [f64]), usize, &[f64], &[f64], &mut [f64]);

struct Evaluation<T> {
    what: What,
    when: When,
    program: Program<T>,
    wiring: Wiring,
    schedule: TimeTable<T>,
    points: usize,
    /// Slot of the directions, where there are any.
    directions: Option<usize>,
}

/// A model with its parameters.
pub struct LearnedEnergy<T: Real = f32> {
    spec: ModelSpec,
    params: Vec<T>,
    free_energy: Vec<f64>,
    pool: Arc<Pool>,
    isa: Isa,
    base: Option<BaseInputs<T>>,
    /// The same base in double precision.
    precise_base: Option<Marginal<f64>>,
    programs: Mutex<Vec<Evaluation<T>>>,
}

impl<T: Real> LearnedEnergy<T> {
    /// A model from its definition and parameters.
    pub fn new(
        spec: ModelSpec,
        params: Vec<T>,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<LearnedEnergy<T>> {
        spec.validate()?;
        let layout = spec.layout();
        if params.len() != layout.len() {
            return Err(Error::Shape {
                what: "the parameter vector".into(),
                found: params.len().to_string(),
                expected: format!("{}, as the model's definition says", layout.len()),
            });
        }
        let start = params.len() - spec.grid.levels();
        let free_energy = params[start..].iter().map(|x| x.to_f64()).collect();
        Ok(LearnedEnergy {
            base: BaseInputs::new(&spec, isa)?,
            precise_base: precise(&spec, isa)?,
            spec,
            params,
            free_energy,
            pool,
            isa,
            programs: Mutex::new(Vec::new()),
        })
    }

    /// The model's definition.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// The marginals of the mixture it stands on, in double precision.
    pub(super) fn precise_base(&self) -> Option<&Marginal<f64>> {
        self.precise_base.as_ref()
    }

    /// The parameters, in the layout's order.
    pub fn params(&self) -> &[T] {
        &self.params
    }

    fn build(&self, what: What, when: When) -> Evaluation<T> {
        let (mode, times) = match when {
            When::Once => (TimeMode::Levels(1), vec![0]),
            When::PerRow => (TimeMode::Continuous, vec![0]),
            When::Block => (
                TimeMode::Levels(GRID_BLOCK),
                (0..GRID_BLOCK as u32).collect(),
            ),
        };
        let mut builder = Builder::new(&self.spec, mode);
        let (points, slot) = builder.graph.input(Rows::Unit(1), self.spec.dim);
        let pattern = (times.len() > 1).then(|| vec![0; times.len()]);
        let group = builder.group(times);
        let points = Points {
            points,
            pattern,
            group,
        };
        let mut directions = None;
        let outputs = if what == What::Velocity {
            vec![builder.velocity(&points)]
        } else {
            let nodes = builder.energy(&points);
            match what {
                What::EnergyAndScore => vec![nodes.energy, builder.score(&nodes)],
                What::Rate => vec![builder.energy_rate(&nodes)],
                What::Curvature | What::HessianProduct => {
                    let (along, slot) = builder.graph.input(Rows::Unit(1), self.spec.dim);
                    directions = Some(slot);
                    let score = builder.score(&nodes);
                    let slope = builder.graph.row_dot(score, along);
                    let bend = builder.graph.grad_of_sum(slope, &[points.points])[0];
                    vec![match what {
                        What::Curvature => builder.graph.row_dot(bend, along),
                        _ => bend,
                    }]
                }
                _ => vec![nodes.energy],
            }
        };
        let mut program = Program::new(&builder.graph, &outputs, self.pool.clone(), self.isa);
        let wiring = builder.wiring;
        let levels = if let TimeMode::Levels(n) = mode { n } else { 0 };
        // Any valid times will do until the first call sets its own.
        let schedule = TimeTable::new(&self.spec, &wiring, &vec![self.spec.grid.t_max(); levels]);
        schedule.set_globals(&self.spec, &wiring, &mut program);
        Evaluation {
            what,
            when,
            program,
            wiring,
            schedule,
            points: slot,
            directions,
        }
    }

    /// Runs one program over all points; `outs[k]` takes output `k`, `width[k]` numbers a point.
    fn run<P: Real, const K: usize>(
        &self,
        what: What,
        when: When,
        times: &[f64],
        (points, along): (&[P], &[P]),
        outs: [Part<'_, P>; K],
    ) {
        let d = self.spec.dim;
        let n = points.len() / d;
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match programs
            .iter()
            .position(|p| (p.what, p.when) == (what, when))
        {
            Some(at) => at,
            None => {
                programs.push(self.build(what, when));
                programs.len() - 1
            }
        };
        let Evaluation {
            program,
            wiring,
            schedule,
            points: slot,
            directions,
            ..
        } = &mut programs[at];
        if when != When::PerRow && schedule.times() != times {
            schedule.tabulate(&self.spec, wiring, times);
            schedule.set_globals(&self.spec, wiring, program);
        }
        let levels: Vec<u32> = (0..times.len() as u32).collect();
        let chunks: Vec<_> = (0..program.chunk_count(n))
            .map(|c| program.chunk(n, c))
            .collect();
        let mut parts: Vec<Mutex<[Part<'_, P>; K]>> = Vec::new();
        let mut rest = outs;
        for chunk in &chunks {
            let part = rest.each_mut().map(|(out, width)| {
                let (head, tail) = std::mem::take(out).split_at_mut(chunk.len() * *width);
                *out = tail;
                (head, *width)
            });
            parts.push(Mutex::new(part));
        }
        let (wiring, schedule, slots) = (&*wiring, &*schedule, [Some(*slot), *directions]);
        let process = &self.spec.process;
        let at: Vec<Level> = match &self.base {
            Some(_) => times.iter().map(|&time| Level::at(process, time)).collect(),
            None => Vec::new(),
        };
        program.run(
            &self.params,
            n,
            &|units, inputs| {
                for (slot, rows) in slots.into_iter().zip([points, along]) {
                    let Some(slot) = slot else { continue };
                    let source = &rows[units.start * d..units.end * d];
                    for (x, &p) in inputs.numbers(slot).iter_mut().zip(source) {
                        *x = T::from_f64(p.to_f64());
                    }
                }
                if let Some(base) = &self.base {
                    let at = match when {
                        When::PerRow => UnitLevels::Each(&at[units.clone()], 1),
                        _ => UnitLevels::Same(&at),
                    };
                    base.fill(wiring, inputs, units.len(), at);
                }
                for (k, unit) in units.enumerate() {
                    match when {
                        When::PerRow => {
                            schedule.fill_times(&self.spec, wiring, inputs, k, &times[unit..=unit])
                        }
                        _ => schedule.fill_levels(wiring, inputs, k, &levels),
                    }
                }
            },
            &|chunk, units, outputs| {
                let mut part = parts[chunk].lock().unwrap_or_else(PoisonError::into_inner);
                let first = units.start - chunks[chunk].start;
                for (k, (out, width)) in part.iter_mut().enumerate() {
                    let values = outputs.numbers(k);
                    for (out, value) in out[first * *width..][..values.len()].iter_mut().zip(values)
                    {
                        *out = P::from_f64(value.to_f64());
                    }
                }
            },
        );
    }

    /// The velocity `E[dX_t/dt | Y_t = y]` of the model: learned for an interpolant, from the score for a diffusion.
    pub fn velocity(&self) -> Result<LearnedVelocity<'_, T>> {
        if self.spec.process.is_interpolant() && !self.spec.velocity {
            return Err(Error::Value {
                name: "velocity",
                found: "absent from the model".into(),
                expected: "an interpolant trained with the objective `velocity`, for instance \
                           dsm+diffclf+velocity"
                    .into(),
            });
        }
        Ok(LearnedVelocity { model: self })
    }

    /// The part of the base in a second derivative, by differences of its score; nothing where there is no mixture.
    fn base_along(
        &self,
        times: &[f64],
        differences: Differences,
        (points, directions): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        let Some(base) = &self.precise_base else {
            return;
        };
        let at = times
            .iter()
            .map(|&time| Level::at(&self.spec.process, time));
        let at: Vec<Level> = at.collect();
        let score = |points: &[f64], out: &mut [f64]| {
            let wanted = Wanted {
                log_density: &mut vec![0.0; points.len() / self.spec.dim],
                score: Some(out),
                time_score: None,
                laplacian: None,
            };
            base.evaluate(points, &at, wanted, &mut base.scratch());
        };
        differences(&score, self.spec.dim, points, directions, out);
    }

    fn when(times: &[f64]) -> When {
        if times.len() == 1 {
            When::Once
        } else {
            When::PerRow
        }
    }

    /// Energy and score in the caller's own number type: for f32 points of an f32 model nothing is converted.
    pub fn evaluate<P: Real>(
        &self,
        times: &[f64],
        points: &[P],
        energy: &mut [P],
        score: &mut [P],
    ) {
        let outs = [(energy, 1), (score, self.spec.dim)];
        self.run(
            What::EnergyAndScore,
            Self::when(times),
            times,
            (points, &[]),
            outs,
        );
    }
}

/// The velocity of a [`LearnedEnergy`].
///
/// An interpolant's is the output of its velocity network. For a diffusion `X_t = S X_0`, so
/// `E[dX_t/dt | y] = S' E[X_0 | y] = (S'/S) (y + gamma^2 score)` needs no network of its own.
pub struct LearnedVelocity<'a, T: Real = f32> {
    model: &'a LearnedEnergy<T>,
}

impl<T: Real> Velocity for LearnedVelocity<'_, T> {
    fn dim(&self) -> usize {
        self.model.spec.dim
    }

    fn velocity(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let (model, dim) = (self.model, self.model.spec.dim);
        let process = &model.spec.process;
        if process.is_interpolant() {
            let when = LearnedEnergy::<T>::when(times);
            return model.run(What::Velocity, when, times, (points, &[]), [(out, dim)]);
        }
        model.score(times, points, out);
        let rows = out.chunks_exact_mut(dim).zip(points.chunks_exact(dim));
        for (i, (out, y)) in rows.enumerate() {
            let time = if times.len() == 1 { times[0] } else { times[i] };
            let (drift, square) = (process.drift(time), process.noise(time).powi(2));
            for (out, y) in out.iter_mut().zip(y) {
                *out = drift * (y + square * *out);
            }
        }
    }
}

impl<T: Real> Energy for LearnedEnergy<T> {
    fn dim(&self) -> usize {
        self.spec.dim
    }

    /// Linear between the levels of the grid, constant beyond its ends.
    fn free_energy(&self, time: f64) -> f64 {
        let (k, w) = self.spec.grid.locate(time);
        let high = (k + 1).min(self.free_energy.len() - 1);
        self.free_energy[k] + w * (self.free_energy[high] - self.free_energy[k])
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.run(
            What::Energy,
            Self::when(times),
            times,
            (points, &[]),
            [(out, 1)],
        );
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let mut energy = vec![0.0; points.len() / self.spec.dim];
        self.evaluate(times, points, &mut energy, out);
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        self.evaluate(times, points, energy, score);
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.run(
            What::Rate,
            Self::when(times),
            times,
            (points, &[]),
            [(out, 1)],
        );
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.energy_rate(times, points, out);
        for (i, out) in out.iter_mut().enumerate() {
            let time = if times.len() == 1 { times[0] } else { times[i] };
            let (k, _) = self.spec.grid.locate(time);
            let grid = self.spec.grid.times();
            let slope = if (self.spec.grid.t_min()..=self.spec.grid.t_max()).contains(&time) {
                (self.free_energy[k + 1] - self.free_energy[k]) / (grid[k + 1] - grid[k])
            } else {
                0.0
            };
            *out = slope - *out;
        }
    }

    /// Exact: the Hessian's product is another derivative of the graph. The part of a mixture below it is a central difference of its
    /// score in double precision.
    fn curvature(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        self.run(
            What::Curvature,
            Self::when(times),
            times,
            (points, directions),
            [(&mut *out, 1)],
        );
        let mut bend = vec![0.0; out.len()];
        self.base_along(times, slope_along, (points, directions), &mut bend);
        for (out, bend) in out.iter_mut().zip(bend) {
            *out += bend;
        }
    }

    /// As [`curvature`](Energy::curvature).
    fn hessian_product(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        self.run(
            What::HessianProduct,
            Self::when(times),
            times,
            (points, directions),
            [(&mut *out, self.spec.dim)],
        );
        let mut bend = vec![0.0; out.len()];
        self.base_along(times, product_along, (points, directions), &mut bend);
        for (out, bend) in out.iter_mut().zip(bend) {
            *out += bend;
        }
    }

    fn log_density_grid(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let n = points.len() / self.spec.dim;
        let mut block = vec![0.0; n * GRID_BLOCK];
        for (b, chunk) in times.chunks(GRID_BLOCK).enumerate() {
            // A short last block repeats its last time.
            let mut padded = chunk.to_vec();
            padded.resize(GRID_BLOCK, chunk[chunk.len() - 1]);
            self.run(
                What::Energy,
                When::Block,
                &padded,
                (points, &[]),
                [(&mut block, GRID_BLOCK)],
            );
            let free: Vec<f64> = chunk.iter().map(|&t| self.free_energy(t)).collect();
            for (out, block) in out
                .chunks_exact_mut(times.len())
                .zip(block.chunks_exact(GRID_BLOCK))
            {
                for (j, free) in free.iter().enumerate() {
                    out[b * GRID_BLOCK + j] = free - block[j];
                }
            }
        }
    }
}
