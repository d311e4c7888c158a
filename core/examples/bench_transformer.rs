//! Our side of `benches/transformer.py`: times energy and score or a training gradient of a graph transformer, or writes out everything that
//! an independent implementation needs to compute the same numbers.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use diffclf::Result;
use diffclf::energy::{Coordinates, Form, LearnedEnergy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::network::{NetworkSpec, TransformerSpec};
use diffclf::objective::parse_terms;
use diffclf::process::sampler::GridStratified;
use diffclf::process::{Process, TimeSampler};
use diffclf::rng::{Part, Purpose, Stream};
use diffclf::train::{Endpoints, InMemory, Losses, Shuffled, Step, StepSpec};

const BEADS: usize = 5;
const DIM: usize = 3 * BEADS;
const TIME: f64 = 0.3;
/// Configurations of one evaluation or step.
const BATCH: usize = 512;

fn spec() -> Result<ModelSpec> {
    Ok(ModelSpec {
        network: NetworkSpec::Transformer(TransformerSpec {
            types: (0..BEADS as u32).collect(),
            ..TransformerSpec::new(BEADS, 96, 2)
        }),
        form: Form::Scalar,
        ..ModelSpec::new(DIM, Process::by_name("vp")?)
    })
}

/// Parameters away from zero everywhere, so that every part of the network takes part.
fn params(spec: &ModelSpec) -> Vec<f32> {
    let mut params: Vec<f32> = spec.layout().initialise(3);
    for (k, p) in params.iter_mut().enumerate().filter(|(_, p)| **p == 0.0) {
        *p = 0.05 * Stream::new(4, Purpose::Test, 0, k as u64).normal() as f32;
    }
    params
}

fn rows(n: usize) -> Vec<f32> {
    let mut rows = vec![0f32; n * DIM];
    Stream::new(9, Purpose::Test, 0, 0).fill_normal(&mut rows);
    rows
}

fn step(case: &str, batch: usize, pool: Arc<Pool>, isa: Isa) -> Result<(Step<f32>, Endpoints)> {
    let levels = if case == "dsm" { 1 } else { 2 };
    let plan = StepSpec {
        terms: parse_terms(if case == "dsm" { "dsm" } else { "dsm+diffclf" })?,
        levels,
        batch,
        times: TimeSampler::GridStratified(GridStratified {}),
        seed: 1,
        part: Part::Training,
    };
    let table = Arc::new(InMemory::new(rows(4096), DIM));
    let source = Shuffled::split(0, table, &Coordinates::identity(DIM), batch, 7, 0).0;
    let from = Endpoints {
        start: Arc::new(source),
        end: None,
    };
    Ok((Step::new(&spec()?, plan, true, pool, isa)?, from))
}

fn write(path: &Path, shape: &[usize], data: &[f32]) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    diffclf::format::npy::write_npy(shape, data, &mut bytes).map_err(std::io::Error::other)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes)
}

type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

/// Weights, inputs and results of an evaluation and of both steps.
fn dump(folder: &Path, pool: &Arc<Pool>, isa: Isa) -> Outcome {
    let spec = spec()?;
    let params = params(&spec);
    let layout = spec.layout();
    for entry in layout.entries() {
        let path = folder.join("params").join(format!("{}.npy", entry.name));
        write(&path, &[entry.rows, entry.cols], &params[entry.range()])?;
    }
    let n = 64;
    let points = rows(n);
    let model = LearnedEnergy::new(spec, params.clone(), pool.clone(), isa)?;
    let (mut energy, mut score) = (vec![0f32; n], vec![0f32; n * DIM]);
    model.evaluate(&[TIME], &points, &mut energy, &mut score);
    write(&folder.join("points.npy"), &[n, DIM], &points)?;
    write(&folder.join("energy.npy"), &[n], &energy)?;
    write(&folder.join("score.npy"), &[n, DIM], &score)?;
    for case in ["dsm", "clf"] {
        let (mut step, from) = step(case, n, pool.clone(), isa)?;
        let draws = step.draws(0, &from);
        let levels: Vec<f32> = draws.levels.iter().map(|&l| l as f32).collect();
        let per_row = levels.len() / n;
        let at = |name: &str| folder.join(case).join(format!("{name}.npy"));
        write(&at("x0"), &[n, DIM], &draws.start)?;
        write(&at("z"), &[n, per_row, DIM], &draws.noise)?;
        write(&at("levels"), &[n, per_row], &levels)?;
        let (mut losses, mut gradient) = (Losses::default(), vec![0f32; params.len()]);
        step.run(&params, 0, &from, &mut losses, &mut gradient)?;
        write(&at("loss"), &[1], &[losses.total as f32])?;
        for entry in layout.entries() {
            let path = folder.join(case).join("gradient");
            let path = path.join(format!("{}.npy", entry.name));
            write(&path, &[entry.rows, entry.cols], &gradient[entry.range()])?;
        }
    }
    Ok(())
}

/// Seconds of processor time that this process has used.
fn cpu_seconds() -> f64 {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else {
        return f64::NAN;
    };
    let after = stat.rsplit(')').next().unwrap_or("");
    let ticks = |k: usize| {
        let field = after.split_whitespace().nth(k);
        field
            .and_then(|t| t.parse::<f64>().ok())
            .unwrap_or(f64::NAN)
    };
    (ticks(11) + ticks(12)) / 100.0
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    let value = |flag: &str| {
        let at = args.iter().position(|a| a == flag)?;
        args.get(at + 1).cloned()
    };
    let seconds: f64 = value("--seconds").map_or(Ok(2.0), |s| s.parse())?;
    let threads: usize = value("--threads").map_or(Ok(1), |s| s.parse())?;
    let isa = Isa::detect();
    let pool = Arc::new(Pool::new(threads));
    if let Some(folder) = value("--dump") {
        return dump(Path::new(&folder), &pool, isa);
    }
    let case = value("--case").ok_or("usage: bench_transformer --case eval|dsm|clf [--seconds S] [--threads N] [--plan] | --dump DIR")?;
    let spec = spec()?;
    let params = params(&spec);
    let mut flops = 0.0;
    let mut one: Box<dyn FnMut(u64) -> Result<()>> = if case == "eval" {
        let model = LearnedEnergy::new(spec, params, pool, isa)?;
        let points = rows(BATCH);
        let (mut energy, mut score) = (vec![0f32; BATCH], vec![0f32; BATCH * DIM]);
        Box::new(move |_| {
            model.evaluate(&[TIME], &points, &mut energy, &mut score);
            Ok(())
        })
    } else {
        let (mut step, from) = step(&case, BATCH, pool, isa)?;
        if args.iter().any(|a| a == "--plan") {
            print!("{}", step.program().plan());
            return Ok(());
        }
        flops = step.flops();
        let (mut losses, mut gradient) = (Losses::default(), vec![0f32; params.len()]);
        Box::new(move |k| step.run(&params, k, &from, &mut losses, &mut gradient))
    };
    for k in 0..2 {
        one(k)?;
    }
    let (begin, used) = (Instant::now(), cpu_seconds());
    let mut times = Vec::new();
    while begin.elapsed().as_secs_f64() < seconds || times.len() < 3 {
        let t = Instant::now();
        one(2 + times.len() as u64)?;
        times.push(t.elapsed().as_secs_f64());
    }
    let cpu = (cpu_seconds() - used) / times.len() as f64;
    times.sort_by(f64::total_cmp);
    let (ms, best) = (times[times.len() / 2] * 1e3, times[0] * 1e3);
    let each = BATCH as f64;
    println!(
        "{{\"case\":\"{case}\",\"ms\":{:.5},\"best_ms\":{:.5},\"cpu_ms\":{:.5},\"gflops\":{:.1}}}",
        ms / each,
        best / each,
        cpu * 1e3 / each,
        flops / cpu / 1e9
    );
    Ok(())
}
