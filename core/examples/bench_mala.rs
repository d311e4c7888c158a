//! What a MALA step costs beside one evaluation of energy and score at the same points: 8192 chains, 4x128 MLP, d = 8. Rounds of
//! both take turns, so that a busy machine disturbs them alike; prints medians and their ratio. Arguments: threads, rounds.

use std::sync::Arc;
use std::time::Instant;

use diffclf::Result;
use diffclf::energy::{Energy, LearnedEnergy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::process::Process;
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::mcmc::{Draws, HeldEnergy, Kernel, Scratch, State};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut next = |default| arguments.next().and_then(|n| n.ok()).unwrap_or(default);
    let (threads, rounds) = (next(2), next(40));
    let (rows, dim, time) = (8192, 8, 0.3);
    let spec = ModelSpec::new(dim, Process::by_name("vp")?);
    let mut params: Vec<f32> = spec.layout().initialise(3);
    for (k, p) in params.iter_mut().enumerate().filter(|(_, p)| **p == 0.0) {
        *p = 0.05 * Stream::new(4, Purpose::Test, 0, k as u64).normal() as f32;
    }
    let pool = Arc::new(Pool::new(threads));
    let energy = LearnedEnergy::new(spec, params, pool, Isa::detect())?;
    let mut points = vec![0.0; rows * dim];
    Stream::new(5, Purpose::Test, 0, 0).fill_normal_f64(&mut points);
    let target = HeldEnergy {
        energy: &energy,
        time,
    };
    let kernel = Kernel::by_name("mala")?;
    let mut state = State::new(target, points.clone(), &kernel)?;
    let mut scratch = Scratch::default();
    let (mut u, mut score) = (vec![0.0; rows], vec![0.0; rows * dim]);
    let (mut steps, mut evaluations) = (Vec::new(), Vec::new());
    for round in 0..rounds as u64 + 3 {
        let begin = Instant::now();
        energy.energy_and_score(&[time], &points, &mut u, &mut score);
        let middle = Instant::now();
        let draws = Draws {
            seed: 1,
            step: round,
            first: 0,
        };
        kernel.step(draws, target, 0.05, &mut state, &mut scratch);
        // The first rounds build programs and touch memory.
        if round >= 3 {
            evaluations.push((middle - begin).as_secs_f64());
            steps.push(middle.elapsed().as_secs_f64());
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        1e3 * times[times.len() / 2]
    };
    let (step, evaluation) = (median(&mut steps), median(&mut evaluations));
    println!(
        "MALA step {step:.2} ms, energy and score {evaluation:.2} ms, ratio {:.3} ({rows} chains, d = {dim}, {threads} threads)",
        step / evaluation
    );
    Ok(())
}
