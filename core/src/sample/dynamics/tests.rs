//! Dynamics on surfaces with known answers: averages, equipartition, independence of threads, resuming.

use super::*;
use crate::energy::{Closure, Energy, SystemEnergy};
use crate::sample::effective_draws;
use crate::sample::mcmc::Langevin;
use crate::system::{Basins, MuellerBrown, System};

fn surface() -> SystemEnergy {
    SystemEnergy::new(System::by_name("mueller-brown", 2, 0).unwrap()).unwrap()
}

/// The literature's settings: kT 23, masses 0.5, friction 1; time in its reduced unit.
fn dynamics(kernel: Kernel, step: f64, thin: usize) -> Dynamics {
    Dynamics {
        kernel,
        step,
        masses: vec![0.5 / 23.0; 2],
        thin,
        seed: 7,
    }
}

fn kernels() -> [Kernel; 3] {
    let (friction, mass) = (1.0, 1.0);
    [
        Kernel::Baoab(Langevin { friction, mass }),
        Kernel::LangevinLeapfrog(Langevin { friction, mass }),
        Kernel::Ghmc(Langevin { friction, mass }),
    ]
}

/// The average over the exact density: equal weights on a fine grid converge exponentially, and faster than 1e-4 here.
fn average(surface: &MuellerBrown, f: &dyn Fn([f64; 2]) -> f64) -> f64 {
    let n = 300;
    let (hx, hy) = (4.8 / f64::from(n), 4.7 / f64::from(n));
    let points = (0..n * n).map(|k| {
        let x = -3.0 + (f64::from(k / n) + 0.5) * hx;
        let y = -1.5 + (f64::from(k % n) + 0.5) * hy;
        let weight = (-surface.potential(x, y) / 23.0 - surface.log_z()).exp() * hx * hy;
        weight * f([x, y])
    });
    points.sum()
}

/// Frames and energies of chains that start from exact samples.
fn frames(
    dynamics: &Dynamics,
    chains: usize,
    frames: usize,
    threads: usize,
) -> (Vec<f64>, Vec<f64>) {
    let energy = surface();
    let target = HeldEnergy {
        energy: &energy,
        time: 0.0,
    };
    let start = System::by_name("mueller-brown", 2, 0)
        .unwrap()
        .sample(chains, 3);
    let start = start.iter().map(|x| f64::from(*x)).collect();
    let mut ensemble = Ensemble::start(dynamics, &vec![target; threads], start).unwrap();
    let mut points = vec![0.0; frames * chains * 2];
    let mut energies = vec![0.0; frames * chains];
    ensemble.advance(frames, &mut points, &mut energies);
    (points, energies)
}

#[test]
fn averages_on_the_mueller_brown_surface_are_those_of_the_integral() {
    // Averages of x, y, V/kT and the weight of the lower right well, by quadrature. Chains start from the exact law, so there is nothing
    // to forget; errors from the effective number of draws. Time steps at which the schemes' own error is far below.
    let (surface, basins) = (
        MuellerBrown::default(),
        Basins::of(&MuellerBrown::default()),
    );
    type Observable<'a> = Box<dyn Fn([f64; 2]) -> f64 + 'a>;
    let observables: [(&str, Observable<'_>); 4] = [
        ("x", Box::new(|p| p[0])),
        ("y", Box::new(|p| p[1])),
        ("V/kT", Box::new(|p| surface.potential(p[0], p[1]) / 23.0)),
        (
            "lower right",
            Box::new(|p| f64::from(u8::from(basins.place(p) == 2))),
        ),
    ];
    let chains = 200;
    for kernel in kernels() {
        let step = match kernel {
            Kernel::Ghmc(_) => 0.01,
            _ => 0.004,
        };
        let (points, _) = frames(&dynamics(kernel, step, 20), chains, 60, 2);
        for (name, f) in &observables {
            let exact = average(&surface, f);
            let values: Vec<f64> = points.chunks_exact(2).map(|p| f([p[0], p[1]])).collect();
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
            let error = (variance / effective_draws(&values, chains)).sqrt();
            assert!(
                (mean - exact).abs() < 4.0 * error + 1e-3,
                "{}, {name}: {mean} {exact} {error}",
                kernel.name()
            );
        }
    }
}

#[test]
fn momenta_are_in_equilibrium_whatever_the_masses() {
    // Equipartition: p^2 / (m kT) has mean 1 and variance 2 for each coordinate.
    let stiff = Closure::new(3, |_t, y: &[f64], score: &mut [f64]| {
        for (i, k) in [1.0, 4.0, 9.0].iter().enumerate() {
            score[i] = -k * (y[i] - 0.3);
        }
        0.5 * (0..3)
            .map(|i| [1.0, 4.0, 9.0][i] * (y[i] - 0.3_f64).powi(2))
            .sum::<f64>()
    });
    let target = HeldEnergy {
        energy: &stiff,
        time: 0.0,
    };
    let chains = 4000;
    for kernel in kernels() {
        let settings = Dynamics {
            kernel,
            step: 0.02,
            masses: vec![0.5, 2.0, 11.0],
            thin: 400,
            seed: 2,
        };
        let mut ensemble = Ensemble::start(&settings, &[target], vec![0.3; 3 * chains]).unwrap();
        let (mut points, mut energies) = (vec![0.0; 3 * chains], vec![0.0; chains]);
        ensemble.advance(1, &mut points, &mut energies);
        let state = ensemble.snapshot();
        let error = 4.0 * (2.0 / chains as f64).sqrt();
        for i in 0..3 {
            let column = state.momentum.iter().skip(i).step_by(3);
            let mean = column.map(|p| p * p).sum::<f64>() / (chains as f64 * settings.masses[i]);
            // The leapfrog's momenta lie half a step behind: off by (h omega / 2)^2 at most.
            assert!(
                (mean - 1.0).abs() < error + 1e-3,
                "{}: {mean}",
                kernel.name()
            );
        }
        let mean = ensemble.kinetic_temperature().unwrap();
        assert!((mean - 1.0).abs() < error, "{mean}");
        // Configurations know nothing of masses: variance 1/k.
        for (i, k) in [1.0, 4.0, 9.0].iter().enumerate() {
            let column = points.iter().skip(i).step_by(3);
            let variance = column.map(|y| k * (y - 0.3).powi(2)).sum::<f64>() / chains as f64;
            assert!(
                (variance - 1.0).abs() < error + 2e-3,
                "{}: {variance}",
                kernel.name()
            );
        }
    }
}

#[test]
fn an_acceptance_test_mends_a_step_that_is_too_large() {
    // At this step, 1.35 over the fastest frequency, the leapfrog is visibly wrong in the mean energy (its variance along that axis is
    // 1.8 of the exact one); GHMC is not. The mean of V/kT by quadrature.
    let surface = MuellerBrown::default();
    let exact = average(&surface, &|p| surface.potential(p[0], p[1]) / 23.0);
    let mean = |kernel: Kernel| {
        let (_, energies) = frames(&dynamics(kernel, 0.015, 10), 1000, 12, 2);
        // U = V/kT + log Z.
        let values: Vec<f64> = energies.iter().map(|u| u - surface.log_z()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        let error = (variance / effective_draws(&values, 1000)).sqrt();
        (mean - exact, error)
    };
    let [_, leapfrog, ghmc] = kernels();
    let (off, error) = mean(ghmc);
    assert!(off.abs() < 4.0 * error, "ghmc: {off} {error}");
    let (off, error) = mean(leapfrog);
    assert!(off.abs() > 6.0 * error, "leapfrog: {off} {error}");
}

#[test]
fn threads_and_interruptions_change_nothing() {
    let energy = surface();
    let target = HeldEnergy {
        energy: &energy,
        time: 0.0,
    };
    for kernel in kernels() {
        let settings = dynamics(kernel, 0.005, 3);
        let (one, u) = frames(&settings, 7, 10, 1);
        let (three, v) = frames(&settings, 7, 10, 3);
        assert_eq!((&one, &u), (&three, &v));
        // Stopped after 4 frames, and on from there.
        let start = System::by_name("mueller-brown", 2, 0).unwrap().sample(7, 3);
        let start = start.iter().map(|x| f64::from(*x)).collect();
        let mut ensemble = Ensemble::start(&settings, &[target; 2], start).unwrap();
        let (mut points, mut energies) = (vec![0.0; 140], vec![0.0; 70]);
        ensemble.advance(4, &mut points[..56], &mut energies[..28]);
        let mut again = Ensemble::resume(&settings, &[target; 3], ensemble.snapshot()).unwrap();
        assert_eq!((again.steps(), again.chains()), (12, 7));
        again.advance(6, &mut points[56..], &mut energies[28..]);
        assert_eq!((points, energies), (one, u));
    }
}

#[test]
fn what_cannot_move_is_refused() {
    let energy = surface();
    let target = HeldEnergy {
        energy: &energy,
        time: 0.0,
    };
    let [good, ..] = kernels();
    let start = |settings: &Dynamics, points: Vec<f64>| {
        Ensemble::start(settings, &[target], points)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let text = start(&dynamics(good, 0.0, 1), vec![0.1; 2]);
    assert!(text.contains("time step"), "{text}");
    let text = start(&dynamics(good, 0.1, 0), vec![0.1; 2]);
    assert!(text.contains("frame"), "{text}");
    let mut masses = dynamics(good, 0.1, 1);
    masses.masses = vec![1.0; 3];
    assert!(start(&masses, vec![0.1; 2]).contains("one for each coordinate"));
    masses.masses = vec![1.0, -1.0];
    assert!(start(&masses, vec![0.1; 2]).contains("positive"));
    let text = start(&dynamics(good, 0.1, 1), vec![0.1, 0.1, f64::NAN, 0.1]);
    assert!(text.contains("point 1"), "{text}");
    assert!(Ensemble::start(&dynamics(good, 0.1, 1), &[], vec![0.1; 2]).is_err());
    assert_eq!(energy.dim(), 2);
}
