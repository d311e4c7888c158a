//! Independent runs pooled into one: each has its share of the particles, and their spread tells the error of log Z.

use super::{LogNormaliser, Particles, Path, Run, Smc, SmcLevel, Start, error};
use crate::Result;

/// Seeds of the runs are so far apart (the golden ratio of 64 bits, as splitmix64 has it).
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// `smc.runs` runs of `particles / runs` particles each; a run's particles are weighted by its estimate of Z.
pub(super) fn run(
    smc: &Smc,
    path: &Path<'_>,
    particles: usize,
    progress: &mut dyn FnMut(&SmcLevel),
) -> Result<Particles> {
    let (runs, dim) = (smc.runs, path.energy.dim());
    let bound = |run: usize| run * particles / runs;
    let mut found = Vec::with_capacity(runs);
    for run in 0..runs {
        let own = Smc {
            seed: smc.seed.wrapping_add(STRIDE.wrapping_mul(run as u64)),
            ..smc.clone()
        };
        let rows = bound(run) * dim..bound(run + 1) * dim;
        let start = match path.start {
            Start::Mixture(mixture) => Start::Mixture(mixture),
            Start::Points(points) => Start::Points(&points[rows]),
            Start::Draws {
                points,
                density,
                time,
            } => Start::Draws {
                points: &points[rows],
                density,
                time,
            },
        };
        let part = Path { start, ..*path };
        found.push(Run::new(&own, &part, bound(run + 1) - bound(run))?.complete(progress)?);
    }
    let log_z: Vec<f64> = found.iter().map(|run| run.log_z.value).collect();
    let (value, error) = error::of_runs(&log_z);
    let top = log_z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut all = Particles {
        points: Vec::with_capacity(particles * dim),
        weights: Vec::with_capacity(particles),
        log_z: LogNormaliser { value, error },
        levels: Vec::new(),
        families: 0,
        ..found[0].clone()
    };
    for (run, log_z) in found.iter_mut().zip(log_z) {
        let share = (log_z - top).exp() * run.weights.len() as f64;
        all.weights.extend(run.weights.iter().map(|w| w * share));
        all.points.append(&mut run.points);
        all.families += run.families;
    }
    let total: f64 = all.weights.iter().sum();
    all.weights.iter_mut().for_each(|w| *w /= total);
    all.levels = found.swap_remove(0).levels;
    Ok(all)
}
