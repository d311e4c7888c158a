//! Execution: tile by tile through the whole chain, so that activations stay in cache; threads take chunks of tiles.
//!
//! The batch is cut into chunks by a rule that does not know the number of threads. Each chunk sums into accumulators of
//! its own, and the chunks are added in a fixed tree: results are the same bits for any number of threads. A [`Company`] of processes
//! shares the chunks of a batch, each process its own range of them, and the tree makes their sums those of one process. The accumulators of
//! a larger batch than any before are allocated when it comes; apart from that [`Program::run`] of a process alone allocates nothing.

mod memory;

pub(super) use memory::Execute;
use memory::Memory;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::aligned::Aligned;
use super::company::{self, Company};
use super::graph::{Graph, Node, Op, Rows};
use super::kernel::{FlushDenormals, Isa, Real};
use super::plan::{Place, Plan};
use super::pool::Pool;
use super::tree::{Grown, MOST_LEAVES, Part, add_up};

/// Tiles of a chunk where there are many: its accumulators come into the cache, are cleared and added up once for so many tiles. With 4 a step of DiffCLF
/// (N = 4, batch 2048) took 5 to 7 % longer.
const CHUNK_TILES: usize = 12;
/// Chunks of a batch with fewer tiles, as far as it has them: of one that sums something, and of one that only maps rows.
const FEWEST_CHUNKS: [usize; 2] = [8, 64];
/// Pieces of the sums that threads add up side by side.
const REDUCTION_PARTS: usize = 64;
/// Rows of the widest node of a tile: 72 rows of 128 f32 columns are 36 KiB, so a training step's few dozen buffers
/// stay in a 512 KiB second-level cache, and the packed weights are still used often enough.
const TILE_ROWS: usize = 72;

/// A plan with its memory, ready to run.
pub struct Program<T> {
    plan: Plan,
    pool: Arc<Pool>,
    /// Global nodes, then the reduced sums.
    globals: Aligned<T>,
    packed: Aligned<T>,
    workspaces: Vec<Mutex<Workspace<T>>>,
    chunks: Vec<RwLock<Aligned<T>>>,
}

struct Workspace<T> {
    arena: Aligned<T>,
    index: Vec<u32>,
}

/// The inputs of one tile, for the caller to fill.
pub struct Inputs<'a, T> {
    plan: &'a Plan,
    arena: &'a mut [T],
    index: &'a mut [u32],
    units: usize,
}

impl<T> Inputs<'_, T> {
    fn range(&self, slot: usize) -> Range<usize> {
        match self.plan.inputs[slot] {
            (Place::Tile(start), Rows::Unit(m), cols) => start..start + m * cols * self.units,
            _ => unreachable!("input {slot} is global: set it with Program::set_global"),
        }
    }

    /// Numbers of an input, row-major: rows per unit x columns for each unit of the tile.
    pub fn numbers(&mut self, slot: usize) -> &mut [T] {
        let range = self.range(slot);
        &mut self.arena[range]
    }

    /// Several different inputs at once.
    pub fn many<const K: usize>(&mut self, slots: [usize; K]) -> [&mut [T]; K] {
        let ranges = slots.map(|slot| self.range(slot));
        match self.arena.get_disjoint_mut(ranges) {
            Ok(slices) => slices,
            Err(_) => unreachable!("the slots are different inputs"),
        }
    }

    /// Entries of an index input.
    pub fn index(&mut self, slot: usize) -> &mut [u32] {
        let (start, per_unit) = self.plan.indices[slot];
        &mut self.index[start..start + per_unit * self.units]
    }
}

/// The per-unit outputs of one tile.
pub struct Outputs<'a, T> {
    plan: &'a Plan,
    arena: &'a [T],
    units: usize,
}

impl<T> Outputs<'_, T> {
    /// Numbers of output `k` for the units of this tile.
    pub fn numbers(&self, k: usize) -> &[T] {
        match self.plan.outputs[k] {
            (Place::Tile(start), Rows::Unit(m), cols) => {
                &self.arena[start..start + m * cols * self.units]
            }
            _ => unreachable!("output {k} is global: read it with Program::global"),
        }
    }
}

/// Fills the inputs of a tile that holds these units.
pub type Fill<'a, T> = &'a (dyn Fn(Range<usize>, &mut Inputs<'_, T>) + Sync);
/// Takes the outputs of a tile: chunk, units, numbers.
pub type Sink<'a, T> = &'a (dyn Fn(usize, Range<usize>, &Outputs<'_, T>) + Sync);

/// One pass over the tiles of a batch.
struct Pass<'a, T> {
    stage: usize,
    params: &'a [T],
    units: usize,
    /// Inputs are filled in the first pass, outputs taken in the last.
    first: bool,
    last: bool,
    fill: Fill<'a, T>,
    sink: Sink<'a, T>,
}

impl<T: Real> Program<T> {
    /// Plans `outputs` of `graph` and allocates everything a run needs.
    pub fn new(graph: &Graph, outputs: &[Node], pool: Arc<Pool>, isa: Isa) -> Program<T> {
        let widest = graph
            .entries
            .iter()
            .filter_map(|e| match e.shape.rows {
                Rows::Unit(m) if e.shape.cols >= 16 => Some(m),
                _ => None,
            })
            .max()
            .unwrap_or(1);
        Program::with_tile(graph, outputs, pool, isa, (TILE_ROWS / widest).max(1))
    }

    /// As [`Program::new`], with a given number of units per tile.
    pub fn with_tile(
        graph: &Graph,
        outputs: &[Node],
        pool: Arc<Pool>,
        isa: Isa,
        tile_units: usize,
    ) -> Program<T> {
        Program::of(Plan::new(graph, outputs, tile_units.max(1), isa), pool)
    }

    /// A plan with its memory.
    pub(super) fn of(plan: Plan, pool: Arc<Pool>) -> Program<T> {
        let workspaces = (0..pool.threads())
            .map(|_| {
                Mutex::new(Workspace {
                    arena: Aligned::new(T::ZERO, plan.arena),
                    index: vec![0; plan.index_len],
                })
            })
            .collect();
        Program {
            globals: Aligned::new(T::ZERO, plan.globals + plan.sums),
            packed: Aligned::new(T::ZERO, plan.packed),
            workspaces,
            chunks: Vec::new(),
            pool,
            plan,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Fills a global input.
    pub fn set_global(&mut self, slot: usize, values: &[T]) {
        match self.plan.inputs[slot] {
            (Place::Global(start), Rows::Global(m), cols) => {
                assert_eq!(
                    values.len(),
                    m * cols,
                    "global input {slot} is {m} x {cols}"
                );
                self.globals[start..start + m * cols].copy_from_slice(values);
            }
            _ => unreachable!("input {slot} belongs to units: it is filled tile by tile"),
        }
    }

    /// Number of chunks a batch of `units` is cut into, and the units of each: the same for any number of threads.
    pub fn chunk_count(&self, units: usize) -> usize {
        let tiles = units.div_ceil(self.plan.tile_units);
        let fewest = FEWEST_CHUNKS[usize::from(self.plan.sums == 0)];
        // A multiple of a power of two that many threads divide evenly, so that none waits for the last of an odd number.
        let chunks = (tiles / CHUNK_TILES).clamp(fewest, MOST_LEAVES);
        let evenly = (1 << (chunks / 3).max(1).ilog2()).max(fewest);
        let chunks = chunks / evenly * evenly;
        chunks.min(tiles).max(1)
    }

    /// Units of chunk `chunk` of a batch of `units`.
    pub fn chunk(&self, units: usize, chunk: usize) -> Range<usize> {
        let (tiles, chunks) = (
            units.div_ceil(self.plan.tile_units),
            self.chunk_count(units),
        );
        let start = |c: usize| (c * tiles / chunks * self.plan.tile_units).min(units);
        start(chunk)..start(chunk + 1)
    }

    /// Runs the batch: `fill` provides the inputs of each tile, `sink` takes its per-unit outputs. Global outputs are
    /// read with [`Program::global`] afterwards.
    pub fn run(&mut self, params: &[T], units: usize, fill: Fill<'_, T>, sink: Sink<'_, T>) {
        assert!(
            params.len() >= self.plan.parameters,
            "{} parameters, expected {}",
            params.len(),
            self.plan.parameters
        );
        assert!(
            self.plan.passes() <= 1 || units <= self.plan.tile_units,
            "a graph that reads its own sums runs on one tile of at most {} units, not {units}",
            self.plan.tile_units
        );
        let pool = self.pool.clone();
        let company = pool.company().map(|company| &**company);
        let count = self.chunk_count(units);
        let own = company.map_or(0..count, |company| company::share(company, count));
        if self.plan.sums > 0 && self.chunks.len() < own.len() {
            let sums = self.plan.sums;
            let more = || RwLock::new(Aligned::new(T::ZERO, sums));
            self.chunks.resize_with(own.len(), more);
        }
        let staged = company.map(|_| Staged::new(self, units, own.clone()));
        let last_pass = self.plan.stages.iter().rposition(|s| !s.tiles.is_empty());
        for stage in 0..self.plan.stages.len() {
            self.run_globals(stage, params);
            if !self.plan.stages[stage].tiles.is_empty() {
                let this = &*self;
                let keep = |chunk: usize, tile: Range<usize>, outputs: &Outputs<'_, T>| {
                    if let Some(staged) = &staged {
                        staged.keep(chunk, tile, outputs);
                    }
                };
                let pass = Pass {
                    stage,
                    params,
                    units,
                    first: this.plan.stages[..stage].iter().all(|s| s.tiles.is_empty()),
                    last: Some(stage) == last_pass,
                    fill,
                    sink: if staged.is_some() { &keep } else { sink },
                };
                pool.run(own.len(), &|thread, job| {
                    this.run_chunk(&pass, thread, job, own.start + job);
                });
                self.reduce(company, own.clone(), count);
            }
        }
        if let (Some(staged), Some(company)) = (staged, company) {
            staged.give(company, self, sink);
        }
    }

    /// Global output `k` of the last run.
    pub fn global(&self, k: usize) -> &[T] {
        let (place, rows, cols) = self.plan.outputs[k];
        let Rows::Global(m) = rows else {
            unreachable!("output {k} belongs to units: take it in the sink")
        };
        match place {
            Place::Global(start) => &self.globals[start..start + m * cols],
            Place::Sum(start) => &self.globals[self.plan.globals + start..][..m * cols],
            Place::Tile(_) | Place::Rows(_) | Place::Block(_) | Place::Param(_) => {
                unreachable!("output {k} is not computed globally")
            }
        }
    }

    fn run_globals(&mut self, stage: usize, params: &[T]) {
        let _flush = FlushDenormals::new();
        let plan = &self.plan;
        for instruction in &plan.stages[stage].globals {
            if let (Op::MatMul { transposed }, Some(w)) = (instruction.op, instruction.b) {
                let (k, n) = (instruction.a_cols, instruction.cols);
                let source = global_slice(plan, &self.globals, params, w, k * n);
                T::pack(
                    plan.isa,
                    (k, n),
                    source,
                    transposed,
                    &mut self.packed[instruction.packed..],
                );
            }
            if let (Op::Outer | Op::SumRows, Place::Global(start), Rows::Global(m)) =
                (instruction.op, instruction.out, instruction.rows)
            {
                self.globals[start..start + m * instruction.cols].fill(T::ZERO);
            }
            let memory = Memory {
                plan,
                params: params.as_ptr(),
                globals: self.globals.as_mut_ptr(),
                packed: self.packed.as_ptr(),
                arena: std::ptr::null_mut(),
                sums: std::ptr::null_mut(),
                index: &[],
                units: 1,
                block: None,
            };
            // SAFETY: the plan gives every operand and result a range of its own inside `globals`, or the same range for
            // in-place work; `params` was checked to be long enough; tile places do not occur in global instructions.
            unsafe { T::execute(&memory, instruction) };
        }
        for pack in &plan.stages[stage].packs {
            let source = global_slice(plan, &self.globals, params, pack.source, pack.k * pack.n);
            T::pack(
                plan.isa,
                (pack.k, pack.n),
                source,
                pack.transposed,
                &mut self.packed[pack.offset..],
            );
        }
    }

    /// Runs the tiles of a chunk, with the accumulators number `place`.
    fn run_chunk(&self, pass: &Pass<'_, T>, thread: usize, place: usize, chunk: usize) {
        let Pass {
            stage,
            params,
            units,
            first,
            last,
            fill,
            sink,
        } = *pass;
        let plan = &self.plan;
        let mut workspace = lock(&self.workspaces[thread]);
        let Workspace { arena, index } = &mut *workspace;
        let mut sums = match plan.sums {
            0 => None,
            _ => self.chunks.get(place).map(write),
        };
        if let (Some(sums), true) = (&mut sums, first) {
            sums.fill(T::ZERO);
        }
        let range = self.chunk(units, chunk);
        let mut start = range.start;
        while start < range.end {
            let tile = start..(start + plan.tile_units).min(range.end);
            if first {
                fill(
                    tile.clone(),
                    &mut Inputs {
                        plan,
                        arena,
                        index,
                        units: tile.len(),
                    },
                );
            }
            let mut memory = Memory {
                plan,
                params: params.as_ptr(),
                // Read only while tiles run.
                globals: self.globals.as_ptr().cast_mut(),
                packed: self.packed.as_ptr(),
                arena: arena.as_mut_ptr(),
                sums: sums
                    .as_mut()
                    .map_or(std::ptr::null_mut(), |s| s.as_mut_ptr()),
                index,
                units: tile.len(),
                block: None,
            };
            let flush = FlushDenormals::new();
            // SAFETY: places lie inside the arena, the chunk's sums, the globals (not written here), the packed
            // matrices and the parameters, all allocated for this plan; the workspace and the chunk are locked.
            unsafe { memory.run(&plan.stages[stage]) };
            drop(flush);
            if last {
                sink(
                    chunk,
                    tile.clone(),
                    &Outputs {
                        plan,
                        arena,
                        units: tile.len(),
                    },
                );
            }
            start = tile.end;
        }
    }

    /// Adds up the chunks, `own` of `count`, in the fixed tree. Threads share the elements, not the chunks: no sum depends on them.
    fn reduce(&mut self, company: Option<&dyn Company>, own: Range<usize>, count: usize) {
        if self.plan.sums == 0 {
            return;
        }
        let mut total = std::mem::take(&mut self.globals);
        let out = &mut total[self.plan.globals..];
        match company {
            None => self.add_up(0..count, out),
            Some(company) => {
                let mut grown = Grown::new();
                for part in Part::of(own.clone()) {
                    let mut values = vec![T::ZERO; out.len()];
                    let leaves = part.leaves();
                    self.add_up(
                        leaves.start - own.start..leaves.end - own.start,
                        &mut values,
                    );
                    grown.push(part, values);
                }
                company::sum(company, count, grown, out);
            }
        }
        self.globals = total;
    }

    /// Adds up the accumulators of these numbers.
    fn add_up(&self, places: Range<usize>, out: &mut [T]) {
        let chunks = &self.chunks[places];
        let len = out.len().div_ceil(REDUCTION_PARTS).max(1);
        let mut rest = out.chunks_mut(len);
        let parts: [Mutex<&mut [T]>; REDUCTION_PARTS] =
            std::array::from_fn(|_| Mutex::new(rest.next().unwrap_or_default()));
        self.pool.run(REDUCTION_PARTS, &|_, part| {
            add_up(
                chunks.len(),
                &mut lock(&parts[part]),
                &|chunk, first, out| {
                    let sums = chunks[chunk].read().unwrap_or_else(PoisonError::into_inner);
                    out.copy_from_slice(&sums[part * len + first..][..out.len()]);
                },
            );
        });
    }
}

/// Outputs of rows on their way to other processes: tile after tile, in each the outputs one after the other.
struct Staged<T> {
    units: usize,
    /// Numbers of each unit.
    width: usize,
    /// The first unit of each of this process's chunks, and the numbers.
    own: Vec<(usize, Mutex<Vec<T>>)>,
    first: usize,
}

impl<T: Real> Staged<T> {
    fn new(program: &Program<T>, units: usize, own: Range<usize>) -> Self {
        let width = program.plan.outputs.iter().map(unit_width).sum();
        let chunk = |c: usize| {
            let chunk = program.chunk(units, c);
            let values = vec![T::ZERO; chunk.len() * width];
            (chunk.start, Mutex::new(values))
        };
        Self {
            units,
            width,
            first: own.start,
            own: own.map(chunk).collect(),
        }
    }

    /// Keeps the outputs of a tile.
    fn keep(&self, chunk: usize, tile: Range<usize>, outputs: &Outputs<'_, T>) {
        let (start, values) = &self.own[chunk - self.first];
        let mut values = lock(values);
        let mut at = (tile.start - start) * self.width;
        for (k, output) in outputs.plan.outputs.iter().enumerate() {
            if unit_width(output) > 0 {
                let numbers = outputs.numbers(k);
                values[at..at + numbers.len()].copy_from_slice(numbers);
                at += numbers.len();
            }
        }
    }

    /// Gives the outputs of all tiles, also those of other processes, to the sink.
    fn give(self, company: &dyn Company, program: &Program<T>, sink: Sink<'_, T>) {
        let (units, width, plan) = (self.units, self.width, &program.plan);
        let count = program.chunk_count(units);
        let starts = |chunk: usize| match chunk < count {
            true => program.chunk(units, chunk).start * width,
            false => units * width,
        };
        let mut all = vec![T::ZERO; units * width];
        for (start, values) in self.own {
            let values = values.into_inner().unwrap_or_else(PoisonError::into_inner);
            all[start * width..][..values.len()].copy_from_slice(&values);
        }
        company::gather(company, count, &starts, &mut all);
        let mut workspace = lock(&program.workspaces[0]);
        let arena = &mut workspace.arena;
        for chunk in 0..count {
            let range = program.chunk(units, chunk);
            let mut start = range.start;
            while start < range.end {
                let tile = start..(start + plan.tile_units).min(range.end);
                let mut at = tile.start * width;
                for output in &plan.outputs {
                    let len = unit_width(output) * tile.len();
                    if let (Place::Tile(place), ..) = output {
                        arena[*place..place + len].copy_from_slice(&all[at..at + len]);
                    }
                    at += len;
                }
                let outputs = Outputs {
                    plan,
                    arena,
                    units: tile.len(),
                };
                sink(chunk, tile.clone(), &outputs);
                start = tile.end;
            }
        }
    }
}

/// Numbers of an output for each unit; none if it is global.
fn unit_width(output: &(Place, Rows, usize)) -> usize {
    match output {
        (Place::Tile(_), Rows::Unit(m), cols) => m * cols,
        _ => 0,
    }
}

fn write<X>(lock: &RwLock<X>) -> std::sync::RwLockWriteGuard<'_, X> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

fn lock<X>(mutex: &Mutex<X>) -> std::sync::MutexGuard<'_, X> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A global operand that is about to be packed.
fn global_slice<'a, T>(
    plan: &Plan,
    globals: &'a [T],
    params: &'a [T],
    place: Place,
    len: usize,
) -> &'a [T] {
    match place {
        Place::Param(start) => &params[start..start + len],
        Place::Global(start) => &globals[start..start + len],
        Place::Sum(start) => &globals[plan.globals + start..][..len],
        Place::Tile(_) | Place::Rows(_) | Place::Block(_) => {
            unreachable!("a right operand is global")
        }
    }
}
