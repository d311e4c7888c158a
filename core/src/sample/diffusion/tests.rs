//! Samplers against exact laws: one step where it is exact, the order of convergence on a Gaussian, moments and mode weights
//! on a mixture; particles are independent of each other; bad input is refused.

use std::sync::Arc;

use super::super::Integrator;
use super::*;
use crate::energy::exact::ExactPath;
use crate::energy::{LearnedEnergy, ModelSpec};
use crate::engine::{Isa, Pool};
use crate::network::NetworkSpec;
use crate::process::{Spacing, VarianceExploding};
use crate::system::two_modes;

fn samplers() -> Vec<Sampler> {
    vec![
        Sampler::Ddim(Ddim { eta: 0.0 }),
        Sampler::Ddim(Ddim { eta: 0.6 }),
        Sampler::Ddim(Ddim { eta: 1.0 }),
        Sampler::ReverseSde(ReverseSde {
            integrator: Integrator::EulerMaruyama,
        }),
        Sampler::ReverseSde(ReverseSde {
            integrator: Integrator::Exponential,
        }),
    ]
}

fn diffusions() -> Vec<Process> {
    vec![
        Process::by_name("vp").unwrap(),
        Process::VarianceExploding(VarianceExploding {
            sigma_min: 0.02,
            sigma_max: 20.0,
        }),
        Process::by_name("edm").unwrap(),
    ]
}

/// One coordinate of data N(m, v) under a diffusion.
struct Gaussian {
    process: Process,
    mean: f64,
    variance: f64,
}

impl Gaussian {
    /// Mean and variance at `time`.
    fn law(&self, time: f64) -> (f64, f64) {
        let (scale, noise) = (self.process.scale(time), self.process.noise(time));
        (
            scale * self.mean,
            scale * scale * self.variance + noise * noise,
        )
    }

    /// The law after a step, exactly: the score is linear, so a Gaussian stays one.
    fn after(&self, step: Transition, time: f64, (mean, variance): (f64, f64)) -> (f64, f64) {
        let (centre, spread) = self.law(time);
        let factor = step.keep - step.pull / spread;
        (
            factor * mean + step.pull * centre / spread,
            factor * factor * variance + step.kick * step.kick,
        )
    }

    /// Errors of standard deviation and mean at the last time, relative to the standard deviation and put together, after
    /// steps through `times` from the exact law.
    fn error(&self, sampler: &Sampler, times: &[f64]) -> f64 {
        let mut law = self.law(times[0]);
        for pair in times.windows(2) {
            law = self.after(
                sampler.transition(&self.process, pair[0], pair[1]),
                pair[0],
                law,
            );
        }
        let exact = self.law(times[times.len() - 1]);
        let std = exact.1.sqrt();
        (law.1.sqrt() / std - 1.0).hypot((law.0 - exact.0) / std)
    }
}

#[test]
fn ddim_is_exact_in_one_step_when_the_data_is_a_point() {
    for process in diffusions() {
        let point = Gaussian {
            process,
            mean: 1.7,
            variance: 0.0,
        };
        let (from, to) = (0.9 * process.horizon(), 0.2 * process.horizon());
        for eta in [0.0, 0.3, 1.0] {
            let step = Sampler::Ddim(Ddim { eta }).transition(&process, from, to);
            let (mean, variance) = point.after(step, from, point.law(from));
            let exact = point.law(to);
            assert!((mean - exact.0).abs() < 1e-11 && (variance / exact.1 - 1.0).abs() < 1e-11);
        }
    }
}

#[test]
fn every_sampler_converges_at_first_order() {
    for process in diffusions() {
        let data = Gaussian {
            process,
            mean: 1.7,
            variance: 0.3,
        };
        let spacing = match process {
            Process::Edm(_) => Spacing::Power { rho: 7.0 },
            _ => Spacing::Linear {},
        };
        for sampler in samplers() {
            let error = |levels| {
                let horizon = process.horizon();
                let grid = TimeGrid::new(levels, 0.02 * horizon, 0.98 * horizon, spacing).unwrap();
                let times: Vec<f64> = grid.times().iter().rev().copied().collect();
                data.error(&sampler, &times)
            };
            let (coarse, fine) = (error(2001), error(4001));
            // Twice the steps, at most half the error, up to the next order, here below 10 %.
            let ratio = coarse / fine;
            assert!(
                ratio > 1.8 && fine < 0.01,
                "{sampler:?}, {}: {coarse} then {fine}",
                process.name()
            );
        }
    }
}

#[test]
fn the_step_to_zero_is_the_posterior_mean() {
    for process in diffusions() {
        let data = Gaussian {
            process,
            mean: 1.7,
            variance: 0.3,
        };
        for time in [0.01, 0.3, 0.9].map(|t| t * process.horizon()) {
            for sampler in samplers() {
                let step = sampler.transition(&process, time, 0.0);
                let y = -0.4;
                let (centre, spread) = data.law(time);
                let found = step.keep * y + step.pull * (centre - y) / spread;
                // E[x | y] of a Gaussian: precisions 1/v and S^2/gamma^2.
                let (scale, noise) = (process.scale(time), process.noise(time));
                let (prior, seen) = (1.0 / data.variance, (scale / noise).powi(2));
                let exact = (prior * data.mean + seen * y / scale) / (prior + seen);
                assert!(
                    (found - exact).abs() < 1e-9 * (1.0 + y.abs() / scale) && step.kick == 0.0,
                    "{found} {exact}"
                );
            }
        }
    }
}

#[test]
fn moments_and_mode_weights_of_a_mixture() {
    let target = two_modes().unwrap();
    let n = 4000;
    for process in diffusions() {
        let path = ExactPath::new(process, target.clone(), None).unwrap();
        let grid = TimeGrid::default_for(&process).with_levels(300).unwrap();
        let times = times_of(&grid);
        let start = Prior::new(&process, grid.t_max(), &target.mean(), target.variance());
        for sampler in samplers() {
            let task = Task {
                energy: &path,
                process: &process,
                times: &times,
                start: &start,
                particles: 0..n,
                seed: 11,
            };
            let points = sampler.run(&task, &mut |_| ()).unwrap();
            let mut count = [0.0; 2];
            let mut sum = [[0.0; 2]; 2];
            let mut square = [0.0; 2];
            for y in points.chunks_exact(2) {
                let k = target.nearest(y);
                count[k] += 1.0;
                for (i, m) in target.component_mean(k).iter().enumerate() {
                    sum[k][i] += y[i] - m;
                    square[k] += (y[i] - m).powi(2);
                }
            }
            for (k, variance) in [0.03_f64, 0.05].into_iter().enumerate() {
                let what = format!("{sampler:?}, {}, mode {k}", process.name());
                let weight: f64 = target.weights()[k];
                // 4 sigma of a binomial share, and 1 % for 300 steps (the modes part at one noise level, in a few of them).
                let allowed = 4.0 * (weight * (1.0 - weight) / n as f64).sqrt() + 0.01;
                let found = count[k] / n as f64;
                assert!((found - weight).abs() < allowed, "{what}: weight {found}");
                // 4 sigma of a mean of normals, and 2 % of the standard deviation.
                let std = variance.sqrt();
                for shift in sum[k] {
                    let found = shift / count[k];
                    let allowed = std * (4.0 / count[k].sqrt() + 0.02);
                    assert!(found.abs() < allowed, "{what}: mean off by {found}");
                }
                // 4 sigma of a variance of 2 count normals, relative sqrt(2 / (2 count)), and 5 %: the finest steps of these
                // grids are not small beside the narrow modes.
                let found = square[k] / (2.0 * count[k] * variance);
                let allowed = 4.0 / count[k].sqrt() + 0.05;
                assert!((found - 1.0).abs() < allowed, "{what}: variance {found}");
            }
        }
    }
}

/// N(0, I) at every time, and NaN beyond a border.
struct Bordered {
    dim: usize,
    border: f64,
}

impl Energy for Bordered {
    fn dim(&self) -> usize {
        self.dim
    }
    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }
    fn energy(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        for (out, y) in out.iter_mut().zip(points.chunks(self.dim)) {
            *out = 0.5 * y.iter().map(|y| y * y).sum::<f64>();
        }
    }
    fn score(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        for (out, y) in out.iter_mut().zip(points) {
            *out = if y.abs() > self.border { f64::NAN } else { -y };
        }
    }
    fn time_score(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
        out.fill(0.0);
    }
}

fn run(
    energy: &dyn Energy,
    sampler: Sampler,
    particles: Range<u64>,
    times: &[f64],
) -> Result<Vec<f64>> {
    let task = Task {
        energy,
        process: &Process::default(),
        times,
        start: &Prior {
            mean: vec![0.0; energy.dim()],
            std: 1.0.into(),
        },
        particles,
        seed: 5,
    };
    let (work, mut last, mut calls) = (task.work(), 0, 0);
    let points = sampler.run(&task, &mut |done| {
        assert!(done > last && done <= work);
        last = done;
        calls += 1;
    })?;
    assert!(last == work && calls >= times.len() - 1);
    Ok(points)
}

#[test]
fn a_particle_does_not_depend_on_the_others() {
    let energy = Bordered {
        dim: 3,
        border: f64::INFINITY,
    };
    let times = [0.9, 0.5, 0.1, 0.0];
    let other_seed = |p: &[f64], q: &[f64]| p.iter().zip(q).all(|(a, b)| a != b);
    for sampler in samplers() {
        let all = run(&energy, sampler, 0..50, &times).unwrap();
        assert_eq!(
            run(&energy, sampler, 0..7, &times).unwrap(),
            all[..7 * 3],
            "{sampler:?}"
        );
        assert_eq!(
            run(&energy, sampler, 20..50, &times).unwrap(),
            all[20 * 3..]
        );
        assert!(other_seed(&all[..3], &all[3..6]));
    }
    // More particles than a block holds.
    let rows = (BLOCK / 3) as u64;
    let sampler = Sampler::Ddim(Ddim { eta: 1.0 });
    let many = run(&energy, sampler, 0..rows + 5, &times).unwrap();
    let tail = run(&energy, sampler, rows - 2..rows + 5, &times).unwrap();
    assert_eq!(many[(rows as usize - 2) * 3..], tail);
}

#[test]
fn noise_of_steps_and_start_are_independent() {
    // Exponential steps of a standard normal energy; the sample's variance is right only if no noise is used twice.
    let energy = Bordered {
        dim: 1,
        border: f64::INFINITY,
    };
    let sampler = Sampler::by_name("reverse-sde").unwrap();
    let times = [0.6, 0.4, 0.2];
    let n = 40_000;
    let points = run(&energy, sampler, 0..n, &times).unwrap();
    let mut variance = 1.0;
    for pair in times.windows(2) {
        let step = sampler.transition(&Process::default(), pair[0], pair[1]);
        variance = (step.keep - step.pull).powi(2) * variance + step.kick.powi(2);
    }
    let found = points.iter().map(|y| y * y).sum::<f64>() / n as f64;
    // A variance of n normals has the relative error sqrt(2 / n).
    assert!(
        (found / variance - 1.0).abs() < 4.0 * (2.0 / n as f64).sqrt(),
        "{found} {variance}"
    );
}

#[test]
fn a_lost_particle_is_named() {
    let energy = Bordered {
        dim: 2,
        border: 3.2,
    };
    let error = run(
        &energy,
        Sampler::by_name("ddim").unwrap(),
        0..5000,
        &[0.9, 0.5],
    )
    .unwrap_err();
    let Error::Diverged {
        sampler,
        time,
        particle,
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((sampler, time), ("ddim", 0.9));
    let alone = run(
        &energy,
        Sampler::by_name("ddim").unwrap(),
        particle..particle + 1,
        &[0.9, 0.5],
    );
    assert!(alone.is_err());
    run(
        &energy,
        Sampler::by_name("ddim").unwrap(),
        0..particle,
        &[0.9, 0.5],
    )
    .unwrap();
}

#[test]
fn bad_input_is_refused() {
    let energy = Bordered {
        dim: 2,
        border: f64::INFINITY,
    };
    let ddim = Sampler::by_name("ddim").unwrap();
    let refused = |sampler: Sampler, process: &str, times: &[f64], mean: usize, std: f64| {
        let task = Task {
            energy: &energy,
            process: &Process::by_name(process).unwrap(),
            times,
            start: &Prior {
                mean: vec![0.0; mean],
                std: std.into(),
            },
            particles: 0..3,
            seed: 0,
        };
        sampler
            .run(&task, &mut |_| ())
            .expect_err("bad input")
            .to_string()
    };
    assert!(refused(ddim, "linear", &[0.9, 0.1], 2, 1.0).contains("a diffusion (vp, ve, edm)"));
    for times in [
        &[][..],
        &[0.5],
        &[0.1, 0.9],
        &[0.5, 0.5],
        &[1.5, 0.5],
        &[0.5, -0.1],
        &[0.5, f64::NAN],
    ] {
        assert!(
            refused(ddim, "vp", times, 2, 1.0).contains("strictly decreasing"),
            "{times:?}"
        );
    }
    assert!(refused(ddim, "vp", &[0.9, 0.1], 3, 1.0).contains("expected 2"));
    assert!(refused(ddim, "vp", &[0.9, 0.1], 2, f64::NAN).contains("a positive number"));
    for eta in [-0.1, 1.1, f64::NAN] {
        let sampler = Sampler::Ddim(Ddim { eta });
        assert!(refused(sampler, "vp", &[0.9, 0.1], 2, 1.0).starts_with("eta is"));
    }
    assert!(
        Sampler::by_name("euler")
            .unwrap_err()
            .to_string()
            .contains("ddim, reverse-sde")
    );
}

#[test]
fn names_and_files_agree() {
    for name in Sampler::NAMES {
        let sampler = Sampler::by_name(name).unwrap();
        assert_eq!(sampler.name(), name);
        let text = serde_json::to_string(&sampler).unwrap();
        assert!(text.contains(&format!("\"kind\":\"{name}\"")));
        assert_eq!(serde_json::from_str::<Sampler>(&text).unwrap(), sampler);
        let short = format!("{{\"kind\":\"{name}\"}}");
        assert_eq!(serde_json::from_str::<Sampler>(&short).unwrap(), sampler);
    }
    assert!(serde_json::from_str::<Sampler>("{\"kind\":\"ddim\",\"eat\":1}").is_err());
}

/// An untrained model is the Gaussian of its data at every time: from its own prior through its own grid, both samplers must
/// give that Gaussian back, and single precision must not show.
#[test]
fn an_untrained_model_gives_its_gaussian_back() {
    let n = 3000;
    for process in diffusions() {
        let mut spec = ModelSpec::new(3, process);
        spec.network = NetworkSpec::Mlp { width: 8, depth: 1 };
        spec.grid = spec.grid.with_levels(150).unwrap();
        (spec.mean, spec.variance) = (vec![0.8, -0.5, 0.1], 0.3);
        let params: Vec<f32> = spec.layout().initialise(1);
        let pool = Arc::new(Pool::new(1));
        let energy = LearnedEnergy::new(spec.clone(), params, pool, Isa::detect()).unwrap();
        for name in Sampler::NAMES {
            let task = Task {
                energy: &energy,
                process: &process,
                times: &times_of(&spec.grid),
                start: &Prior::of(&spec),
                particles: 0..n,
                seed: 2,
            };
            let points = Sampler::by_name(name)
                .unwrap()
                .run(&task, &mut |_| ())
                .unwrap();
            for (i, mean) in spec.mean.iter().enumerate() {
                let column: Vec<f64> = points.iter().skip(i).step_by(3).copied().collect();
                let found = column.iter().sum::<f64>() / n as f64;
                let variance = column.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n as f64;
                // 4 sigma of mean and variance of n normals; 2 % and 4 % for 150 steps.
                let std = spec.variance.sqrt();
                let what = format!("{name}, {}, coordinate {i}", process.name());
                let allowed = std * (4.0 / (n as f64).sqrt() + 0.02);
                assert!((found - mean).abs() < allowed, "{what}: mean {found}");
                let allowed = 4.0 * (2.0 / n as f64).sqrt() + 0.04;
                assert!(
                    (variance / spec.variance - 1.0).abs() < allowed,
                    "{what}: variance {variance}"
                );
            }
        }
    }
}
