//! Times training steps on states: `bench_states BATCH SITES LEVELS SECONDS THREADS`, for `benches/states.py`. Prints milliseconds of a step,
//! noise, loss, gradient, clipping and Adam, the median of all.

use diffclf::discrete::Process;
use diffclf::discrete::model::StatesSpec;
use diffclf::discrete::system::by_name;
use diffclf::discrete::train::{StatesPlan, StatesStep};
use diffclf::energy::Coordinates;
use diffclf::engine::{Isa, Pool};
use diffclf::objective::parse_sum;
use diffclf::process::TimeSampler;
use diffclf::rng::{Part, Purpose, Stream};
use diffclf::train::{Adam, InMemory, Losses, Shuffled, clip};
use std::sync::Arc;
use std::time::Instant;

fn main() -> diffclf::Result<()> {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let [batch, sites, levels, seconds, threads] = numbers[..] else {
        eprintln!("expected BATCH SITES LEVELS SECONDS THREADS");
        std::process::exit(2);
    };
    let target = by_name("ising", Some(16), Some(2), 0)?;
    let space = target.space();
    let mut values = vec![0f32; 60_000 * space.sites];
    let mut row = vec![0; space.sites];
    for (k, values) in values.chunks_exact_mut(space.sites).enumerate() {
        target.sample(&mut Stream::new(0, Purpose::Data, 0, k as u64), &mut row);
        values
            .iter_mut()
            .zip(&row)
            .for_each(|(v, s)| *v = f32::from(*s));
    }
    let identity = Coordinates::identity(space.sites);
    let table = Arc::new(InMemory::new(values, space.sites));
    let (source, _) = Shuffled::split(0, table, &identity, batch, 0, 0);
    let spec = StatesSpec::new(space, Process::default())?;
    let text = match levels {
        1 => format!("score-entropy(sites={sites})"),
        _ => format!("score-entropy(sites={sites})+diffclf"),
    };
    let plan = StatesPlan {
        terms: parse_sum(&text)?,
        levels,
        batch,
        times: TimeSampler::default(),
        seed: 0,
        part: Part::Training,
    };
    let pool = Arc::new(Pool::new(threads));
    let mut step = StatesStep::<f32>::new(&spec, plan, true, pool.clone(), Isa::detect())?;
    let mut params: Vec<f32> = spec.layout().initialise(0);
    let zero = vec![0f32; params.len()];
    let (mut gradient, mut m, mut v) = (zero.clone(), zero.clone(), zero);
    let (mut losses, mut times) = (Losses::default(), Vec::new());
    let begin = Instant::now();
    for number in 0.. {
        let start = Instant::now();
        step.run(&params, number, &source, &mut losses, &mut gradient)?;
        clip(&mut gradient, Some(1.0));
        let state = (&mut params[..], &mut m[..], &mut v[..]);
        Adam::default().update(number + 1, 1e-3, &gradient, state, &pool);
        times.push(1e3 * start.elapsed().as_secs_f64());
        if begin.elapsed().as_secs() >= seconds as u64 {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    println!("{:.4} {:.1}", times[times.len() / 2], step.flops() / 1e6);
    Ok(())
}
