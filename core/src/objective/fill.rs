//! Filling slots: an input that an objective asks for is declared with the object that fills it, tile by tile. The object lives beside
//! the objective or helper that needs it; the step knows only that there is something to fill.

use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::ops::Range;

use crate::energy::{Energy, ModelSpec};
use crate::engine::{Inputs, Isa, Real};
use crate::rng::Part;

/// Coefficients of `y = alpha x_0 + beta x_1 + gamma z` at a time.
#[derive(Debug, Clone, Copy)]
pub struct Mixing<T> {
    /// Of `x_0`.
    pub alpha: T,
    /// Of `x_1`.
    pub beta: T,
    /// Of `z`.
    pub gamma: T,
}

impl<T: Real> Mixing<T> {
    /// The coefficients at a time.
    pub fn at(spec: &ModelSpec, time: f64) -> Mixing<T> {
        let p = &spec.process;
        Mixing {
            alpha: T::from_f64(p.x0_scale(time)),
            beta: T::from_f64(p.x1_scale(time)),
            gamma: T::from_f64(p.noise(time)),
        }
    }
}

/// The slots that every step fills.
#[derive(Debug, Clone, Copy)]
pub struct RowSlots {
    /// Source row `x_0`, `Unit(1) x d`.
    pub start: usize,
    /// Source row `x_1` of an interpolant.
    pub end: Option<usize>,
    /// Noises `z_i`, `Unit(N) x d`.
    pub noise: usize,
    /// Noisy points `y_i = X_{t_i} + gamma z_i`.
    pub points: usize,
}

/// Room for double-precision work on a tile; each thread has its own, and it keeps its size.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Points or other inputs, widened.
    pub input: Vec<f64>,
    /// Results, before they are narrowed.
    pub output: Vec<f64>,
}

impl Scratch {
    /// Room for so many numbers of each.
    pub fn with_capacity(numbers: usize) -> Scratch {
        Scratch {
            input: Vec::with_capacity(numbers),
            output: Vec::with_capacity(numbers),
        }
    }
}

/// A tile while it is filled. Source rows, noises, points and times are there already.
pub struct Tile<'a, 'i, T> {
    /// The model.
    pub spec: &'a ModelSpec,
    /// Times per row.
    pub levels: usize,
    /// Which rows of the batch.
    pub units: Range<usize>,
    /// Seed of all draws.
    pub seed: u64,
    /// What the rows are for.
    pub part: Part,
    /// Number of the step.
    pub step: u64,
    /// N times for each row.
    pub times: &'a [f64],
    /// Their levels, if they are on the grid.
    pub grid_levels: Option<&'a [u32]>,
    /// Their coefficients.
    pub mixing: &'a [Mixing<T>],
    /// Where source rows, noises and points are.
    pub rows: RowSlots,
    /// Exact densities, if they are known.
    pub truth: Option<&'a dyn Energy>,
    /// Room to work in.
    pub scratch: &'a mut Scratch,
    /// The inputs.
    pub inputs: &'a mut Inputs<'i, T>,
}

impl<T: Real> Tile<'_, '_, T> {
    /// Adds `beta x_1` to the points of slot `target`, where there is an `x_1`.
    pub fn add_end(&mut self, target: usize, beta: impl Fn(usize) -> T) {
        let (d, n) = (self.spec.dim, self.levels);
        if let Some(end) = self.rows.end {
            let [x1, y] = self.inputs.many([end, target]);
            for (row, y) in y.chunks_exact_mut(d).enumerate() {
                let beta = beta(row);
                for (y, &x1) in y.iter_mut().zip(&x1[row / n * d..][..d]) {
                    *y += beta * x1;
                }
            }
        }
    }

    /// Widens the numbers of a slot into [`Scratch::input`].
    pub fn widen(&mut self, slot: usize) {
        let input = &mut self.scratch.input;
        input.clear();
        input.extend(self.inputs.numbers(slot).iter().map(|x| x.to_f64()));
    }

    /// Makes room for so many results in [`Scratch::output`].
    pub fn make_room(&mut self, numbers: usize) {
        self.scratch.output.clear();
        self.scratch.output.resize(numbers, 0.0);
    }

    /// Narrows the results into a slot.
    pub fn narrow(&mut self, slot: usize) {
        let out = self.inputs.numbers(slot).iter_mut();
        for (out, &value) in out.zip(&self.scratch.output) {
            *out = T::from_f64(value);
        }
    }
}

/// Rows that exact densities are asked for at once: so few that no evaluation starts threads of its own inside a step.
const PIECE: usize = 8;

impl Scratch {
    /// Lets `evaluate` (times, points, results) work through the rows of `input`, with the times of each row or one for all.
    pub fn evaluate(
        &mut self,
        dim: usize,
        times: &[f64],
        mut evaluate: impl FnMut(&[f64], &[f64], &mut [f64]),
    ) {
        let rows = self.input.len() / dim;
        let width = self.output.len() / rows.max(1);
        let points = self.input.chunks(PIECE * dim);
        let results = self.output.chunks_mut(PIECE * width);
        for (k, (points, results)) in points.zip(results).enumerate() {
            let times = match times {
                [time] => std::slice::from_ref(time),
                _ => &times[k * PIECE..][..points.len() / dim],
            };
            evaluate(times, points, results);
        }
    }
}

/// Fills slots of a tile.
pub trait Fill<T>: Send + Sync {
    /// Writes all numbers of its slots; must not allocate.
    fn fill(&self, tile: &mut Tile<'_, '_, T>);
}

/// What fillers get ready for.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The model.
    pub spec: &'a ModelSpec,
    /// Times of the grid, to tabulate what depends on them; empty for times beside it.
    pub times: &'a [f64],
    /// Kernels.
    pub isa: Isa,
    /// Threads that fill at once.
    pub threads: usize,
}

/// What slots are declared with. Equal fillers share their slots.
pub trait Filler: Debug + Copy + PartialEq + Send + Sync + 'static {
    /// Rows per unit and columns of each slot, for rows of so many levels.
    fn shapes(&self, spec: &ModelSpec, levels: usize) -> Vec<(usize, usize)>;

    /// Gets ready to fill these slots.
    fn build<T: Real>(&self, setup: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>>;
}

/// A filler of any kind; see [`Filler`].
pub trait AnyFiller: Debug + Send + Sync {
    /// In single precision.
    fn single(&self, setup: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<f32>>;
    /// In double precision.
    fn double(&self, setup: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<f64>>;
    /// For comparison.
    fn as_any(&self) -> &dyn Any;
}

impl<F: Filler> AnyFiller for F {
    fn single(&self, setup: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<f32>> {
        self.build(setup, slots)
    }
    fn double(&self, setup: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<f64>> {
        self.build(setup, slots)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Slots and what fills them.
#[derive(Debug)]
pub struct Filled {
    /// What was declared.
    pub filler: Box<dyn AnyFiller>,
    /// Its slots.
    pub slots: Vec<usize>,
}

impl Filled {
    /// The object that fills, for the numbers of a step.
    pub fn build<T: Real>(&self, setup: &Setup<'_>) -> Box<dyn Fill<T>> {
        let (filler, slots) = (&self.filler, &self.slots);
        let built: Box<dyn Any> = if TypeId::of::<T>() == TypeId::of::<f32>() {
            Box::new(filler.single(setup, slots))
        } else {
            Box::new(filler.double(setup, slots))
        };
        match built.downcast() {
            Ok(fill) => *fill,
            Err(_) => unreachable!("single and double precision are all there is"),
        }
    }
}
