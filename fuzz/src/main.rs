//! Hostile inputs for every reader and parser: seeds are altered at random, and no input may cause a panic, take longer than two
//! seconds, or make a reader allocate more than 64 MB and four times its size.
//!
//! ```text
//! cargo run --release -p diffclf-fuzz -- COUNT SEED [TARGET]
//! ```
//!
//! runs COUNT inputs of each target from SEED on. A failure names target and seed, which give the same input again:
//! `... -- 1 SEED TARGET`.

mod allocator;
mod mutate;
mod targets;

use allocator::Counting;
use mutate::Dice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use targets::{Bench, TARGETS, Target};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// No input may take longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Room for what a reader builds besides its input, and how often it may hold the input itself.
const ROOM: usize = 64 << 20;
const COPIES: usize = 4;

/// What is at work, for the watchdog: the seed, and when it began in milliseconds since the program did.
static AT_WORK: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(u64::MAX)];

/// Runs `count` inputs of a target; returns what went wrong.
fn run(bench: &Bench, target: &Target, count: u64, first: u64, start: Instant) -> Vec<String> {
    let mut problems = Vec::new();
    for seed in first..first.saturating_add(count) {
        let mut dice = Dice::new(seed, target.name);
        AT_WORK[0].store(seed, Ordering::Relaxed);
        AT_WORK[1].store(start.elapsed().as_millis() as u64, Ordering::Relaxed);
        let before = ALLOCATOR.reset_peak();
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(bench, &mut dice)));
        let (seconds, peak) = (begin.elapsed(), ALLOCATOR.peak().saturating_sub(before));
        let mut wrong = |what: String| problems.push(format!("{} {seed}: {what}", target.name));
        match outcome {
            Err(_) => wrong("a panic; its message stands above".into()),
            Ok(bytes) if target.reads && peak > ROOM + COPIES * bytes => {
                wrong(format!("{peak} bytes allocated for an input of {bytes}"));
            }
            Ok(_) => {}
        }
        if seconds > PATIENCE {
            wrong(format!("{seconds:?}"));
        }
    }
    AT_WORK[1].store(u64::MAX, Ordering::Relaxed);
    problems
}

/// Ends the program when an input never comes back.
fn watch(start: Instant) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let began = AT_WORK[1].load(Ordering::Relaxed);
            let now = start.elapsed().as_millis() as u64;
            if began != u64::MAX && now.saturating_sub(began) > 60_000 {
                let seed = AT_WORK[0].load(Ordering::Relaxed);
                eprintln!("seed {seed} does not come back");
                std::process::abort();
            }
        }
    });
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: u64| match arguments.get(at) {
        None => Some(usual),
        Some(text) => text.parse().ok(),
    };
    let (Some(count), Some(seed)) = (number(0, 10_000), number(1, 0)) else {
        eprintln!("usage: diffclf-fuzz COUNT SEED [TARGET]");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    watch(start);
    let bench = Bench::new();
    let mut failed = false;
    for target in TARGETS {
        if arguments.get(2).is_some_and(|name| name != target.name) {
            continue;
        }
        let begin = Instant::now();
        // Dear targets get a share.
        let count = (count / target.cost).max(1);
        let problems = run(&bench, target, count, seed, start);
        println!(
            "{:<12} {count} inputs, {} problems, {:.1} s",
            target.name,
            problems.len(),
            begin.elapsed().as_secs_f64()
        );
        failed |= !problems.is_empty();
        for problem in problems.iter().take(20) {
            println!("  {problem}");
        }
    }
    ExitCode::from(u8::from(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short run of every check. `COUNT` inputs by hand: see above.
    #[test]
    fn no_input_causes_a_panic_a_hang_or_a_flood() {
        let start = Instant::now();
        watch(start);
        let bench = Bench::new();
        for target in TARGETS {
            let problems = run(&bench, target, (20_000 / target.cost).max(1), 1, start);
            assert!(problems.is_empty(), "{problems:#?}");
        }
    }
}
