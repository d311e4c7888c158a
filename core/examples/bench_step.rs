//! Our side of the benchmark: times one training step or one batch evaluation, or writes out everything an independent
//! implementation needs to compute the same loss. Driven by `benches/run`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use diffclf::Result;
use diffclf::energy::{Coordinates, Form, LearnedEnergy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::network::NetworkSpec;
use diffclf::objective::parse_terms;
use diffclf::process::sampler::GridStratified;
use diffclf::process::{Process, TimeSampler};
use diffclf::rng::{Part, Purpose, Stream};
use diffclf::system::System;
use diffclf::train::{Adam, Endpoints, InMemory, Losses, Shuffled, Source, Step, StepSpec, clip};

/// What is timed.
#[derive(Clone)]
struct Case {
    spec: ModelSpec,
    terms: &'static str,
    levels: usize,
    batch: usize,
}

impl Case {
    /// `dsm-d8`, `clf4-d128`, `si2-d8`: objective, levels and dimension.
    fn by_name(name: &str) -> Option<Case> {
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

/// Milliseconds of one whole step: noise, loss, gradient, clipping, Adam; the median over blocks of steps.
fn time_step(case: &Case, pool: Arc<Pool>, isa: Isa, seconds: f64) -> Result<(f64, f64, f64)> {
    let mut step = case.step(pool, isa)?;
    let from = case.endpoints()?;
    let mut params = case.params();
    let (mut m, mut v) = (vec![0f32; params.len()], vec![0f32; params.len()]);
    let (mut gradient, mut losses) = (vec![0f32; params.len()], Losses::default());
    let mut one = |k: u64| -> Result<()> {
        step.run(&params, k, &from, &mut losses, &mut gradient)?;
        clip(&mut gradient, Some(1.0));
        Adam::default().update(k + 1, 1e-3, &gradient, &mut params, &mut m, &mut v);
        Ok(())
    };
    for k in 0..3 {
        one(k)?;
    }
    let begin = Instant::now();
    let mut times = Vec::new();
    let mut k = 3;
    while begin.elapsed().as_secs_f64() < seconds || times.len() < 5 {
        let t = Instant::now();
        one(k)?;
        times.push(t.elapsed().as_secs_f64());
        k += 1;
    }
    let best = times.iter().copied().fold(f64::MAX, f64::min);
    Ok((median(times) * 1e3, best * 1e3, step.flops()))
}

/// Milliseconds for energy and score of 65,536 points.
fn time_evaluation(dim: usize, pool: Arc<Pool>, isa: Isa, seconds: f64) -> Result<f64> {
    let (model, points) = evaluation(dim, pool, isa)?;
    let n = points.len() / dim;
    let (mut energy, mut score) = (vec![0f32; n], vec![0f32; n * dim]);
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed().as_secs_f64() < seconds || times.len() < 4 {
        let t = Instant::now();
        model.evaluate(&[0.3], &points, &mut energy, &mut score);
        times.push(t.elapsed().as_secs_f64());
    }
    Ok(median(times[1..].to_vec()) * 1e3)
}

fn evaluation(dim: usize, pool: Arc<Pool>, isa: Isa) -> Result<(LearnedEnergy<f32>, Vec<f32>)> {
    let Some(case) = Case::by_name(&format!("dsm-d{dim}")) else {
        unreachable!("a case of that name exists")
    };
    let params = case.params();
    let mut points = vec![0f32; 65_536 * dim];
    Stream::new(9, Purpose::Test, 0, 0).fill_normal(&mut points);
    Ok((LearnedEnergy::new(case.spec, params, pool, isa)?, points))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
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
    let evaluated: Option<usize> = name.strip_prefix("eval-d").and_then(|d| d.parse().ok());
    let base = evaluated.map_or(name.to_string(), |d| format!("dsm-d{d}"));
    let case = Case::by_name(&base).ok_or("unknown case")?;
    let params = case.params();
    for entry in case.spec.layout().entries() {
        let name = entry.name.strip_prefix("net.").unwrap_or(&entry.name);
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
    if let Some(d) = evaluated {
        let (model, points) = evaluation(d, pool, isa)?;
        let n = 4096;
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
        let (ms, _, flops) = time_step(&case, pool.clone(), isa, seconds)?;
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
    if let Some(dim) = name.strip_prefix("eval-d") {
        let ms = time_evaluation(dim.parse()?, pool, isa, seconds)?;
        println!("{{\"case\":\"{name}\",\"ms\":{ms:.4}}}");
        return Ok(());
    }
    let case =
        Case::by_name(&name).ok_or("unknown case; one of dsm-dD, clfN-dD, siN-dD, eval-dD")?;
    if args.iter().any(|a| a == "--plan") {
        print!("{}", case.step(pool, isa)?.program().plan());
        return Ok(());
    }
    let (ms, best, flops) = time_step(&case, pool, isa, seconds)?;
    println!(
        "{{\"case\":\"{name}\",\"ms\":{ms:.4},\"best_ms\":{best:.4},\"gflops\":{:.1}}}",
        flops / ms / 1e6
    );
    Ok(())
}
