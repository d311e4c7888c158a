//! Kernels against exact laws: what they leave unchanged, what their step size does, what they need of each other.

use std::sync::Mutex;

use super::super::ChainSettings;
use super::*;
use crate::energy::Closure;
use crate::energy::exact::ExactPath;
use crate::process::Process;
use crate::system::two_modes;

const ALL: [&str; 7] = Kernel::NAMES;

/// Mean and standard error of the mean.
fn estimate(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / n / (n - 1.0)).sqrt())
}

/// A harmonic well of stiffness `k` around (0.7, -1.2).
fn well(k: f64) -> Closure<impl Fn(f64, &[f64], &mut [f64]) -> f64 + Send + Sync> {
    Closure::new(2, move |_t, y: &[f64], score: &mut [f64]| {
        let x = [y[0] - 0.7, y[1] + 1.2];
        score.copy_from_slice(&[-k * x[0], -k * x[1]]);
        0.5 * k * (x[0] * x[0] + x[1] * x[1])
    })
}

/// Runs `steps` steps of all chains; gives the last state and the mean acceptance.
fn run(
    kernel: Kernel,
    target: HeldEnergy<'_>,
    points: Vec<f64>,
    step: f64,
    steps: u64,
) -> (State, f64) {
    let mut state = State::new(target, points, &kernel).unwrap();
    let mut scratch = Scratch::default();
    let draws = |step| Draws {
        seed: 4,
        step,
        first: 0,
    };
    kernel.prepare(draws(0), &mut state);
    let mut acceptance = 0.0;
    for k in 0..steps {
        let info = kernel.step(draws(k + 1), target, step, &mut state, &mut scratch);
        acceptance += info.acceptance / steps as f64;
        assert_eq!(info.divergences, 0);
    }
    (state, acceptance)
}

#[test]
fn adjusted_kernels_leave_an_asymmetric_mixture_as_it_is() {
    // Chains that start from the exact law must still have it after steps of any size: here so large that half are refused.
    let (process, time) = (Process::by_name("vp").unwrap(), 0.25);
    let path = ExactPath::new(process, two_modes().unwrap(), None).unwrap();
    let target = HeldEnergy {
        energy: &path,
        time,
    };
    let n = 20_000;
    for (name, step) in [
        ("random-walk", 0.7),
        ("mala", 0.45),
        ("hmc", 0.9),
        ("ghmc", 1.3),
    ] {
        let start = path.sample(time, n, 8);
        let kernel = match Kernel::by_name(name).unwrap() {
            Kernel::Hmc(_) => Kernel::Hmc(Hmc {
                leapfrog: 3,
                mass: 0.6,
            }),
            kernel => kernel,
        };
        let (state, acceptance) = run(kernel, target, start.clone(), step, 6);
        assert!((0.25..0.8).contains(&acceptance), "{name}: {acceptance}");
        // Moments of the mixture at this time, from its components N(S mu, S^2 v + gamma^2).
        let mixture = path.start();
        let (s, g) = (process.scale(time), process.noise(time));
        let moment = |f: &dyn Fn(&[f64], f64) -> f64| {
            let variances = [0.03, 0.05].map(|v| s * s * v + g * g);
            (0..2)
                .map(|k| {
                    let m: Vec<f64> = mixture.component_mean(k).iter().map(|m| s * m).collect();
                    mixture.weights()[k] * f(&m, variances[k])
                })
                .sum::<f64>()
        };
        type Observable = fn(&[f64]) -> f64;
        let cases: [(&str, Observable, f64); 5] = [
            ("y0", |y| y[0], moment(&|m, _| m[0])),
            ("y1", |y| y[1], moment(&|m, _| m[1])),
            ("y0^2", |y| y[0] * y[0], moment(&|m, v| m[0] * m[0] + v)),
            ("y0 y1", |y| y[0] * y[1], moment(&|m, _| m[0] * m[1])),
            (
                "y0^3",
                |y| y[0].powi(3),
                moment(&|m, v| m[0].powi(3) + 3.0 * m[0] * v),
            ),
        ];
        for (what, f, exact) in cases {
            let (found, error) = estimate(state.points.chunks_exact(2).map(f));
            assert!(
                (found - exact).abs() < 4.0 * error,
                "{name}, {what}: {found} {exact} {error}"
            );
        }
        // They did move.
        let moved = state
            .points
            .iter()
            .zip(&start)
            .filter(|(a, b)| a != b)
            .count();
        assert!(moved > n, "{name}: {moved}");
    }
}

#[test]
fn the_joint_law_of_data_and_noise_passes_gewekes_test() {
    // Geweke 2004: x from the mixture, y = S x + gamma z. Alternating MALA steps on x given y with exact draws of y given x must give
    // the joint law that direct simulation gives. Chain i has its own y: the energy takes it by the row.
    let (process, time) = (Process::by_name("vp").unwrap(), 0.35);
    let mixture = two_modes().unwrap();
    let (s, g) = (process.scale(time), process.noise(time));
    let n = 6000;
    struct Posterior<'a> {
        mixture: &'a crate::system::GaussianMixture,
        s: f64,
        g: f64,
        seen: Mutex<Vec<f64>>,
    }
    impl Energy for Posterior<'_> {
        fn dim(&self) -> usize {
            2
        }
        fn free_energy(&self, _time: f64) -> f64 {
            0.0
        }
        fn energy(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
            let seen = self.seen.lock().unwrap();
            for ((out, x), y) in out.iter_mut().zip(points.chunks(2)).zip(seen.chunks(2)) {
                let square: f64 = x.iter().zip(y).map(|(x, y)| (y - self.s * x).powi(2)).sum();
                *out = 0.5 * square / (self.g * self.g) - self.mixture.log_density(x);
            }
        }
        fn score(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
            let seen = self.seen.lock().unwrap();
            for ((out, x), y) in out.chunks_mut(2).zip(points.chunks(2)).zip(seen.chunks(2)) {
                self.mixture.score(x, out);
                for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
                    *out += self.s * (y - self.s * x) / (self.g * self.g);
                }
            }
        }
        fn time_score(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
            out.fill(0.0);
        }
    }
    let see = |x: &[f64], step: u64| -> Vec<f64> {
        let mut z = vec![0f32; x.len()];
        fill_normal_rows(77, Purpose::Test, step, 0, 2, &mut z);
        x.iter()
            .zip(z)
            .map(|(x, z)| s * x + g * f64::from(z))
            .collect()
    };
    let mut x = vec![0.0; 2 * n];
    for (row, x) in x.chunks_exact_mut(2).enumerate() {
        mixture.sample_point(&mut Stream::new(5, Purpose::Test, 1, row as u64), x);
    }
    let direct = (x.clone(), see(&x, 0));
    let posterior = Posterior {
        mixture: &mixture,
        s,
        g,
        seen: Mutex::new(direct.1.clone()),
    };
    let target = HeldEnergy {
        energy: &posterior,
        time: 0.0,
    };
    let kernel = Kernel::default();
    let mut state = State::new(target, x, &kernel).unwrap();
    let mut scratch = Scratch::default();
    for sweep in 1..=12 {
        for step in 0..3 {
            let draws = Draws {
                seed: 6,
                step: 10 * sweep + step,
                first: 0,
            };
            kernel.step(draws, target, 0.03, &mut state, &mut scratch);
        }
        *posterior.seen.lock().unwrap() = see(&state.points, sweep);
        state.evaluate(target);
    }
    let seen = posterior.seen.lock().unwrap().clone();
    let observe = |x: &[f64], y: &[f64], k: usize| match k {
        0 => x[0],
        1 => x[1] * x[1],
        2 => x[0] * y[0],
        3 => x[0] * y[1],
        4 => y[0] * y[0],
        _ => f64::from(x[0] < 0.0),
    };
    for k in 0..6 {
        let of = |x: &[f64], y: &[f64]| {
            let rows = x.chunks_exact(2).zip(y.chunks_exact(2));
            estimate(
                rows.map(|(x, y)| observe(x, y, k))
                    .collect::<Vec<_>>()
                    .into_iter(),
            )
        };
        let (a, b) = (of(&direct.0, &direct.1), of(&state.points, &seen));
        // Two estimates of the same number; what the chains remember of their start only brings them nearer.
        let allowed = 4.0 * a.1.hypot(b.1);
        assert!((a.0 - b.0).abs() < allowed, "{k}: {a:?} {b:?}");
    }
}

#[test]
fn langevin_dynamics_in_a_harmonic_well_have_their_known_variances() {
    let (k, n) = (2.7, 20_000);
    let energy = well(k);
    let target = HeldEnergy {
        energy: &energy,
        time: 0.0,
    };
    let start = || [0.9, -1.0].repeat(n);
    let variance = |values: &[f64], centre: [f64; 2]| {
        let squares = values.iter().enumerate();
        squares
            .map(|(i, y)| (y - centre[i % 2]).powi(2))
            .sum::<f64>()
            / values.len() as f64
    };
    // 4 sigma of a variance of 2 n normals.
    let allowed = 4.0 / (n as f64).sqrt();
    let (mass, friction) = (1.9, 0.8);
    let kernel = Kernel::Baoab(Langevin { friction, mass });
    for h in [0.3, 0.9] {
        let (state, _) = run(kernel, target, start(), h, 60);
        // BAOAB (Leimkuhler and Matthews 2013): positions exact, momenta m (1 - h^2 k / (4 m)).
        let found = variance(&state.points, [0.7, -1.2]) * k;
        assert!((found - 1.0).abs() < allowed, "{h}: {found}");
        let found = variance(&state.momentum, [0.0; 2]) / (mass * (1.0 - h * h * k / (4.0 * mass)));
        assert!((found - 1.0).abs() < allowed, "{h}: momentum {found}");
    }
    // y' = (1 - h k) y + sqrt(2 h) z: variance 2 h / (1 - (1 - h k)^2).
    let h = 0.2;
    let (state, _) = run(
        Kernel::by_name("unadjusted").unwrap(),
        target,
        start(),
        h,
        40,
    );
    let found = variance(&state.points, [0.7, -1.2]) * k * (1.0 - 0.5 * h * k);
    assert!((found - 1.0).abs() < allowed, "{found}");
}

#[test]
fn leapfrog_keeps_its_energy_to_second_order() {
    // Halving the step divides the energy error by four, so 1 - acceptance (which grows with its square) by sixteen in the mean,
    // where errors are symmetric, and by four in size: acceptance at both steps must say so.
    let energy = well(2.7);
    let target = HeldEnergy {
        energy: &energy,
        time: 0.0,
    };
    let refused = |step: f64, leapfrog| {
        let kernel = Kernel::Hmc(Hmc {
            leapfrog,
            mass: 1.9,
        });
        1.0 - run(kernel, target, [0.1, -0.4].repeat(4000), step, 3).1
    };
    let ratio = refused(0.4, 4) / refused(0.2, 8);
    assert!((3.0..6.0).contains(&ratio), "{ratio}");
}

#[test]
fn a_chain_does_not_depend_on_the_others() {
    let energy = well(2.7);
    let target = HeldEnergy {
        energy: &energy,
        time: 0.0,
    };
    let start: Vec<f64> = (0..40).map(|i| 0.1 * f64::from(i) - 2.0).collect();
    for name in ALL {
        let kernel = Kernel::by_name(name).unwrap();
        let (all, _) = run(kernel, target, start.clone(), 0.2, 5);
        let (few, _) = run(kernel, target, start[..6].to_vec(), 0.2, 5);
        assert_eq!(few.points, all.points[..6], "{name}");
        // The same rows further down, told their numbers.
        let mut state = State::new(target, start[10..14].to_vec(), &kernel).unwrap();
        let draws = |step| Draws {
            seed: 4,
            step,
            first: 5,
        };
        kernel.prepare(draws(0), &mut state);
        for k in 0..5 {
            kernel.step(
                draws(k + 1),
                target,
                0.2,
                &mut state,
                &mut Scratch::default(),
            );
        }
        assert_eq!(state.points, all.points[10..14], "{name}");
    }
}

#[test]
fn what_the_state_holds_is_what_the_target_says() {
    let path = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
    let target = HeldEnergy {
        energy: &path,
        time: 0.2,
    };
    for name in ALL {
        let kernel = Kernel::by_name(name).unwrap();
        let (state, _) = run(kernel, target, path.sample(0.2, 50, 3), 0.1, 4);
        let fresh = State::new(target, state.points.clone(), &kernel).unwrap();
        assert_eq!(
            (&state.energy, &state.score),
            (&fresh.energy, &fresh.score),
            "{name}"
        );
    }
}

#[test]
fn proposals_without_a_number_are_left_and_counted() {
    // A normal whose energy is NaN beyond 1: chains stay inside.
    let energy = Closure::new(1, |_t, y: &[f64], score: &mut [f64]| {
        score[0] = -y[0];
        if y[0] > 1.0 {
            f64::NAN
        } else {
            0.5 * y[0] * y[0]
        }
    });
    let target = HeldEnergy {
        energy: &energy,
        time: 0.0,
    };
    for name in ["random-walk", "mala", "hmc"] {
        let kernel = Kernel::by_name(name).unwrap();
        let mut state = State::new(target, vec![0.5; 500], &kernel).unwrap();
        let mut info = StepInfo::default();
        for step in 0..20 {
            let draws = Draws {
                seed: 1,
                step,
                first: 0,
            };
            let one = kernel.step(draws, target, 0.6, &mut state, &mut Scratch::default());
            info.divergences += one.divergences;
        }
        assert!(info.divergences > 100, "{name}");
        assert!(state.points.iter().all(|y| *y <= 1.0));
    }
    assert!(State::new(target, vec![2.0], &Kernel::default()).is_err());
    assert!(State::new(target, vec![], &Kernel::default()).is_err());
}

#[test]
fn chains_tune_themselves_and_know_when_they_agree() {
    let path = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
    let target = HeldEnergy {
        energy: &path,
        time: 0.5,
    };
    for name in ["random-walk", "mala", "hmc"] {
        let kernel = Kernel::by_name(name).unwrap();
        let settings = ChainSettings {
            kernel,
            acceptance: kernel.target_acceptance(),
            step: 30.0,
            warm_up: 300,
            draws: 200,
            ..ChainSettings::default()
        };
        let start: Vec<f64> = (0..32).map(|i| 0.3 * f64::from(i % 8) - 1.0).collect();
        let mut last = 0;
        let chains = settings
            .run(target, start, &mut |done| last = done)
            .unwrap();
        assert_eq!((last, chains.draws.len()), (500, 200 * 32));
        let found = chains.summary;
        // The mean of 3200 acceptances, and a tuner that saw 300 noisy means of 16.
        let goal = kernel.target_acceptance().unwrap();
        assert!((found.acceptance - goal).abs() < 0.05, "{name}: {found:?}");
        assert!(found.r_hat.iter().all(|r| *r < 1.05), "{name}: {found:?}");
        assert!(
            found.effective_draws.iter().all(|n| *n > 150.0),
            "{name}: {found:?}"
        );
        assert_eq!(found.divergences, 0);
        for (i, exact) in path.start().mean().iter().enumerate() {
            let scale = Process::default().scale(0.5);
            let values: Vec<f64> = chains.draws.iter().skip(i).step_by(2).copied().collect();
            let (mean, spread) = estimate(values.iter().copied());
            let error = spread * (values.len() as f64 / found.effective_draws[i]).sqrt();
            assert!(
                (mean - scale * exact).abs() < 4.0 * error,
                "{name}: {mean} {exact} {error}"
            );
        }
    }
    let bad = ChainSettings {
        step: -1.0,
        ..ChainSettings::default()
    };
    let refused = |settings: ChainSettings| {
        let start = vec![0.0; 2];
        settings
            .run(target, start, &mut |_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(refused(bad).starts_with("step size is -1"));
    assert!(
        refused(ChainSettings {
            draws: 0,
            ..ChainSettings::default()
        })
        .contains("at least 1")
    );
    assert!(
        refused(ChainSettings {
            acceptance: Some(1.0),
            ..ChainSettings::default()
        })
        .contains("0.99")
    );
    let kernel = Kernel::Hmc(Hmc {
        leapfrog: 0,
        mass: 1.0,
    });
    assert!(
        refused(ChainSettings {
            kernel,
            ..ChainSettings::default()
        })
        .contains("leapfrog")
    );
    let kernel = Kernel::Baoab(Langevin {
        friction: 0.0,
        mass: 1.0,
    });
    assert!(
        refused(ChainSettings {
            kernel,
            ..ChainSettings::default()
        })
        .contains("friction")
    );
}

#[test]
fn names_and_files_agree() {
    for name in Kernel::NAMES {
        let kernel = Kernel::by_name(name).unwrap();
        assert_eq!(kernel.name(), name);
        let short = format!("{{\"kind\":\"{name}\"}}");
        assert_eq!(serde_json::from_str::<Kernel>(&short).unwrap(), kernel);
    }
    assert!(
        Kernel::by_name("gibbs")
            .unwrap_err()
            .to_string()
            .contains("mala")
    );
}
