//! Our side of the benchmark: times one training step or one batch evaluation, or writes out everything an independent
//! implementation needs to compute the same loss. Driven by `benches/run`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use diffclf::Result;
use diffclf::energy::{Coordinates, Form, LearnedEnergy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::network::{EgnnSpec, NetworkSpec};
use diffclf::objective::parse_terms;
use diffclf::process::sampler::GridStratified;
use diffclf::process::{Process, TimeSampler};
use diffclf::rng::{Part, Purpose, Stream};
use diffclf::system::System;
use diffclf::train::{Adam, Endpoints, InMemory, Losses, Shuffled, Source, Step, StepSpec, clip};

/// Particles of the cases over a molecule: those of alanine dipeptide, by element.
const ATOMS: [u32; 22] = [
    0, 1, 0, 0, 1, 2, 3, 0, 1, 0, 1, 0, 0, 0, 1, 2, 3, 0, 1, 0, 0, 0,
];

/// What is timed.
#[derive(Clone)]
struct Case {
    spec: ModelSpec,
    terms: &'static str,
    levels: usize,
    batch: usize,
}

impl Case {
    /// `dsm-d8`, `clf4-d128`, `si2-d8`: objective, levels and dimension; `clf2-egnn64x4`: an EGNN of that width and depth.
    fn by_name(name: &str) -> Option<Case> {
        if let Some((kind, size)) = name.split_once("-egnn") {
            let mut case = Case::by_name(&format!("{kind}-d{}", 3 * ATOMS.len()))?;
            let (width, depth) = size.split_once('x')?;
            let mut spec = EgnnSpec::new(ATOMS.len(), width.parse().ok()?, depth.parse().ok()?);
            spec.types = ATOMS.to_vec();
            case.spec.network = NetworkSpec::Egnn(spec);
            case.batch = 32;
            return Some(case);
        }
        let (kind, dim) = name.split_once("-d")?;
        let dim: usize = dim.parse().ok()?;
        let (objective, levels) = match kind {
            "dsm" => ("dsm", 1),
            _ => (
                &kind[..kind.len() - 1],
                kind[kind.len() - 1..].parse().ok()?,
            ),
        };
        Some(match objective {
            "si" => {
                let mut spec = ModelSpec::new(dim, Process::by_name("linear").ok()?);
                spec.network = NetworkSpec::Mlp {
                    width: 64,
                    depth: 4,
                };
                spec.form = Form::InnerProductPlusScalar;
                Case {
                    spec,
                    terms: "dsm+diffclf",
                    levels,
                    batch: 1024,
                }
            }
            "dsm" | "clf" => {
                let spec = ModelSpec::new(dim, Process::by_name("vp").ok()?);
                let terms = if objective == "dsm" {
                    "dsm"
                } else {
                    "dsm+diffclf"
                };
                Case {
                    spec,
                    terms,
                    levels,
                    batch: 2048,
                }
            }
            _ => return None,
        })
    }

    fn step(&self, pool: Arc<Pool>, isa: Isa) -> Result<Step<f32>> {
        let plan = StepSpec {
            terms: parse_terms(self.terms)?,
            levels: self.levels,
            batch: self.batch,
            times: TimeSampler::GridStratified(GridStratified {}),
            seed: 1,
            part: Part::Training,
        };
        Step::new(&self.spec, plan, true, pool, isa)
    }

    /// Parameters away from zero everywhere, so that every part of the network takes part.
    fn params(&self) -> Vec<f32> {
        let mut params: Vec<f32> = self.spec.layout().initialise(3);
        for (k, p) in params.iter_mut().enumerate().filter(|(_, p)| **p == 0.0) {
            *p = 0.05 * Stream::new(4, Purpose::Test, 0, k as u64).normal() as f32;
        }
        params
    }

    fn table(&self) -> Result<InMemory> {
        let system = System::by_name("mog40", self.spec.dim, 0)?;
        Ok(InMemory::new(system.sample(60_000, 5), self.spec.dim))
    }

    fn endpoints(&self) -> Result<Endpoints> {
        let identity = Coordinates::identity(self.spec.dim);
        let table = Arc::new(self.table()?);
        let source = |endpoint| -> Arc<dyn Source> {
            Arc::new(Shuffled::split(endpoint, table.clone(), &identity, self.batch, 7, 0).0)
        };
        Ok(Endpoints {
            start: source(0),
            end: self.spec.process.is_interpolant().then(|| source(1)),
        })
    }
}

/// Seconds that all threads of this process have run together.
fn cpu_seconds() -> Option<f64> {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            /// Of the C library: processor time in millionths of a second.
            safe fn clock() -> std::ffi::c_long;
        }
        Some(clock() as f64 * 1e-6)
    }
    #[cfg(not(unix))]
    None
}

/// Times of the repetitions of some work, in milliseconds: neighbours on the machine lengthen wall times, and far less the time that the
/// threads themselves ran.
#[derive(Default)]
struct Times {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Times {
    fn take(&mut self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let (cpu, begin) = (cpu_seconds(), Instant::now());
        work()?;
        self.wall.push(begin.elapsed().as_secs_f64() * 1e3);
        if let (Some(before), Some(after)) = (cpu, cpu_seconds()) {
            self.cpu.push((after - before) * 1e3);
        }
        Ok(())
    }

    fn median(&self) -> f64 {
        let mut times = self.wall.clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn json(&self, name: &str, units: usize, flops: f64) -> String {
        let least = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
        let (ms, best) = (self.median(), least(&self.wall));
        let cpu = if self.cpu.is_empty() {
            String::new()
        } else {
            format!(",\"cpu_ms\":{:.4}", least(&self.cpu))
        };
        format!(
            "{{\"case\":\"{name}\",\"units\":{units},\"ms\":{ms:.4},\"best_ms\":{best:.4}{cpu},\"gflop\":{:.6},\"gflops\":{:.1}}}",
            flops / 1e9,
            flops / ms / 1e6
        )
    }
}

/// Times of one whole step: noise, loss, gradient, clipping, Adam; and its floating-point operations.
fn time_step(case: &Case, pool: Arc<Pool>, isa: Isa, seconds: f64) -> Result<(Times, f64)> {
    let mut step = case.step(pool.clone(), isa)?;
    let from = case.endpoints()?;
    let mut params = case.params();
    let (mut m, mut v) = (vec![0f32; params.len()], vec![0f32; params.len()]);
    let (mut gradient, mut losses) = (vec![0f32; params.len()], Losses::default());
    let mut one = |k: u64| -> Result<()> {
        step.run(&params, k, &from, &mut losses, &mut gradient)?;
        clip(&mut gradient, Some(1.0));
        let state = (&mut params[..], &mut m[..], &mut v[..]);
        Adam::default().update(k + 1, 1e-3, &gradient, state, &pool);
        Ok(())
    };
    for k in 0..3 {
        one(k)?;
    }
    let begin = Instant::now();
    let mut times = Times::default();
    let mut k = 3;
    while begin.elapsed().as_secs_f64() < seconds || times.wall.len() < 5 {
        times.take(|| one(k))?;
        k += 1;
    }
    Ok((times, step.flops()))
}

/// Times of energy and score of many points at one time, after the first; and how many points.
fn time_evaluation(
    name: &str,
    pool: Arc<Pool>,
    isa: Isa,
    seconds: f64,
) -> Result<Option<(Times, usize)>> {
    let Some((model, points)) = evaluation(name, pool, isa)? else {
        return Ok(None);
    };
    let dim = model.spec().dim;
    let n = points.len() / dim;
    let (mut energy, mut score) = (vec![0f32; n], vec![0f32; n * dim]);
    let begin = Instant::now();
    let mut times = Times::default();
    model.evaluate(&[0.3], &points, &mut energy, &mut score);
    while begin.elapsed().as_secs_f64() < seconds || times.wall.len() < 3 {
        times.take(|| {
            model.evaluate(&[0.3], &points, &mut energy, &mut score);
            Ok(())
        })?;
    }
    Ok(Some((times, n)))
}

/// The model of a case and points to evaluate it at: 65,536, or 128 molecules.
fn evaluation(
    name: &str,
    pool: Arc<Pool>,
    isa: Isa,
) -> Result<Option<(LearnedEnergy<f32>, Vec<f32>)>> {
    let Some(case) = Case::by_name(&name.replacen("eval", "dsm", 1)) else {
        return Ok(None);
    };
    let params = case.params();
    let n = if case.spec.network.particles().is_some() {
        128
    } else {
        65_536
    };
    let mut points = vec![0f32; n * case.spec.dim];
    Stream::new(9, Purpose::Test, 0, 0).fill_normal(&mut points);
    let model = LearnedEnergy::new(case.spec, params, pool, isa)?;
    Ok(Some((model, points)))
}

/// Peak of the machine's matrix product as we measure it: the step of a network so wide that nothing else counts.
fn peak(pool: Arc<Pool>, isa: Isa) -> f64 {
    diffclf::engine::sgemm_peak(&pool, isa, 0.5)
}

fn write(path: &Path, shape: &[usize], data: &[f32]) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    diffclf::format::npy::write_npy(shape, data, &mut bytes).map_err(std::io::Error::other)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes)
}

/// Writes parameters, inputs and result of a case.
fn dump(
    name: &str,
    folder: &Path,
    pool: Arc<Pool>,
    isa: Isa,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let evaluated = name.starts_with("eval-");
    let case = Case::by_name(&name.replacen("eval", "dsm", 1)).ok_or("unknown case")?;
    let params = case.params();
    let mut order = String::new();
    for entry in case.spec.layout().entries() {
        let name = entry.name.strip_prefix("net.").unwrap_or(&entry.name);
        order += &format!("{name}\n");
        let shape: &[usize] = if entry.rows == 1 || entry.cols == 1 {
            &[entry.rows * entry.cols]
        } else {
            &[entry.rows, entry.cols]
        };
        write(
            &folder.join("params").join(format!("{name}.npy")),
            shape,
            &params[entry.range()],
        )?;
    }
    std::fs::write(folder.join("params").join("order.txt"), order)?;
    if evaluated {
        let (model, points) = evaluation(name, pool, isa)?.ok_or("unknown case")?;
        let d = case.spec.dim;
        let n = (points.len() / d).min(4096);
        let (mut energy, mut score) = (vec![0f32; n], vec![0f32; n * d]);
        model.evaluate(&[0.3], &points[..n * d], &mut energy, &mut score);
        write(&folder.join("points.npy"), &[n, d], &points[..n * d])?;
        write(&folder.join("time.npy"), &[1], &[0.3])?;
        write(&folder.join("energy.npy"), &[n], &energy)?;
        return Ok(write(&folder.join("score.npy"), &[n, d], &score)?);
    }
    let mut step = case.step(pool, isa)?;
    let (b, n, d) = (case.batch, case.levels, case.spec.dim);
    let from = case.endpoints()?;
    let draws = step.draws(0, &from);
    write(&folder.join("x0.npy"), &[b, d], &draws.start)?;
    if !draws.end.is_empty() {
        write(&folder.join("x1.npy"), &[b, d], &draws.end)?;
    }
    write(&folder.join("z.npy"), &[b, n, d], &draws.noise)?;
    write(
        &folder.join("levels.npy"),
        &[b, n],
        &draws.levels.iter().map(|&l| l as f32).collect::<Vec<_>>(),
    )?;
    let (mut losses, mut gradient) = (Losses::default(), vec![0f32; params.len()]);
    step.run(&params, 0, &from, &mut losses, &mut gradient)?;
    write(&folder.join("gradient.npy"), &[params.len()], &gradient)?;
    Ok(write(
        &folder.join("loss.npy"),
        &[1],
        &[losses.total as f32],
    )?)
}

fn scaling(pool: &Arc<Pool>, isa: Isa, seconds: f64) -> Result<()> {
    let Some(base) = Case::by_name("clf2-d8") else {
        unreachable!("a case of that name exists")
    };
    let mut cases = Vec::new();
    for batch in [256, 1024, 4096] {
        cases.push((
            "batch",
            batch,
            Case {
                batch,
                ..base.clone()
            },
        ));
    }
    for width in [32, 64, 128, 256] {
        let spec = ModelSpec {
            network: NetworkSpec::Mlp { width, depth: 4 },
            ..base.spec.clone()
        };
        cases.push((
            "width",
            width,
            Case {
                spec,
                ..base.clone()
            },
        ));
    }
    for levels in [2, 4, 8, 16] {
        cases.push((
            "levels",
            levels,
            Case {
                levels,
                batch: 512,
                ..base.clone()
            },
        ));
    }
    for dim in [2, 8, 32, 128] {
        cases.push((
            "dim",
            dim,
            Case {
                spec: ModelSpec::new(dim, base.spec.process),
                ..base.clone()
            },
        ));
    }
    for (axis, value, case) in cases {
        let (times, flops) = time_step(&case, pool.clone(), isa, seconds)?;
        let ms = times.median();
        println!(
            "{{\"axis\":\"{axis}\",\"value\":{value},\"ms\":{ms:.4},\"gflops\":{:.1}}}",
            flops / ms / 1e6
        );
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let value = |flag: &str| {
        args.iter()
            .position(|a| a == flag)
            .and_then(|i| args.get(i + 1))
            .cloned()
    };
    let seconds: f64 = value("--seconds").map_or(Ok(2.0), |s| s.parse())?;
    let threads: usize = value("--threads").map_or(Ok(2), |s| s.parse())?;
    let isa = value("--isa").map_or(Ok(Isa::detect()), |name| Isa::by_name(&name))?;
    let pool = Arc::new(Pool::new(threads));
    if args.iter().any(|a| a == "--peak") {
        println!("{{\"sgemm_gflops\":{:.1}}}", peak(pool, isa));
        return Ok(());
    }
    if args.iter().any(|a| a == "--scaling") {
        return Ok(scaling(&pool, isa, seconds)?);
    }
    let name = value("--case").ok_or("usage: bench_step --case NAME [--seconds S] [--threads N] [--isa NAME] [--dump DIR] | --peak | --scaling")?;
    if let Some(folder) = value("--dump") {
        return dump(&name, Path::new(&folder), pool, isa);
    }
    let unknown =
        "unknown case; one of dsm-dD, clfN-dD, siN-dD, eval-dD, and dsm-, clfN-, eval- of egnnWxL";
    if name.starts_with("eval-") {
        let (times, points) = time_evaluation(&name, pool, isa, seconds)?.ok_or(unknown)?;
        println!("{}", times.json(&name, points, 0.0));
        return Ok(());
    }
    let case = Case::by_name(&name).ok_or(unknown)?;
    if args.iter().any(|a| a == "--plan") {
        print!("{}", case.step(pool, isa)?.program().plan());
        return Ok(());
    }
    let (times, flops) = time_step(&case, pool, isa, seconds)?;
    println!("{}", times.json(&name, case.batch, flops));
    Ok(())
}
