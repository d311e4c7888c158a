//! Sequential Monte Carlo where Z is known: unbiased over many runs with an honest error, with and without proposals, on fixed and
//! on chosen levels; a path without overlap is refused.

use super::super::{Annealed, DiffusionKernels, Diffusivity, InterpolantKernels};
use super::*;
use crate::energy::Closure;
use crate::energy::Prior;
use crate::energy::exact::ExactPath;
use crate::process::{Process, TimeGrid};
use crate::system::{Covariance, two_modes};

/// Stiffness and centre of a ladder of wells in the plane; unnormalised, Z = 2 pi / k.
fn stiffness(t: f64) -> f64 {
    0.4 * (20.0_f64).powf(1.0 - t)
}

fn ladder() -> Closure<impl Fn(f64, &[f64], &mut [f64]) -> f64 + Send + Sync> {
    Closure::new(2, |t, y: &[f64], score: &mut [f64]| {
        let (k, x) = (
            stiffness(t),
            [y[0] - 0.5 * (1.0 - t), y[1] + 0.8 * (1.0 - t)],
        );
        score.copy_from_slice(&[-k * x[0], -k * x[1]]);
        0.5 * k * (x[0] * x[0] + x[1] * x[1])
    })
}

/// Wider than the first level, and off its centre.
fn start() -> GaussianMixture {
    GaussianMixture::new(
        2,
        vec![1.0],
        vec![0.2, -0.1],
        Covariance::Isotropic(vec![3.0]),
    )
    .unwrap()
}

#[test]
fn z_is_unbiased_and_its_error_honest() {
    let (energy, start) = (ladder(), start());
    let times = [1.0, 0.8, 0.6, 0.3, 0.0];
    let path = Path {
        energy: &energy,
        times: &times,
        start: Start::Mixture(&start),
        transport: None,
    };
    let z = std::f64::consts::TAU / stiffness(0.0);
    let base = Smc {
        moves: 2,
        // Step sizes that move well at each level; frozen, so that nothing depends on the particles but themselves.
        frozen_steps: Some(times.map(|t| 0.8 / stiffness(t)).to_vec()),
        threshold: 0.7,
        ..Smc::default()
    };
    let mut cases: Vec<(String, Smc)> = Vec::new();
    for resampling in [
        Resampling::Systematic,
        Resampling::Stratified,
        Resampling::Residual,
        Resampling::Multinomial,
    ] {
        cases.push((
            format!("{resampling:?}"),
            Smc {
                resampling,
                ..base.clone()
            },
        ));
    }
    cases.push(("ais".into(), base.annealed_importance_sampling()));
    for (name, smc) in cases {
        let (runs, mut ratios, mut variances, mut resampled) = (400, Vec::new(), Vec::new(), 0);
        for seed in 0..runs {
            let found = Smc {
                seed,
                ..smc.clone()
            }
            .run(&path, 200, &mut |_| ())
            .unwrap();
            ratios.push(found.log_z.value.exp() / z);
            variances.extend(found.log_z.error.map(|error| error.powi(2)));
            resampled += found.levels.iter().filter(|level| level.resampled).count();
        }
        let n = runs as f64;
        let mean = ratios.iter().sum::<f64>() / n;
        let spread = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
        assert!(
            (mean - 1.0).abs() < 4.0 * (spread / n).sqrt(),
            "{name}: {mean} {spread}"
        );
        // The estimated variance is exact for multinomial resampling and AIS as the particles grow (here 200, whose scatter adds about a
        // fifth, and the spread of 400 runs has its own error of 7 % and more), and an upper bound for the less noisy schemes.
        let known = variances.len() as f64;
        assert!(known > 0.9 * n, "{name}: {known}");
        let ratio = variances.iter().sum::<f64>() / known / spread;
        let upper = if matches!(smc.resampling, Resampling::Multinomial) {
            1.8
        } else {
            2.5
        };
        assert!((0.65..upper).contains(&ratio), "{name}: {ratio}");
        assert_eq!(name == "ais", resampled == 0, "{name}");
    }
}

/// Coverage of 95 % intervals over 300 runs: by families with few and many resamplings, by independent runs, and by AIS. Below 95 % by no
/// more than 4 sqrt(0.95 * 0.05 / runs); above, families may be on the safe side. Where few families are left, the error is unknown,
/// and never 0.
#[test]
fn errors_of_log_z_cover() {
    let (energy, start) = (ladder(), start());
    let times: Vec<f64> = (0..=12).map(|k| 1.0 - f64::from(k) / 12.0).collect();
    let path = Path {
        energy: &energy,
        times: &times,
        start: Start::Mixture(&start),
        transport: None,
    };
    let exact = (std::f64::consts::TAU / stiffness(0.0)).ln();
    let base = Smc {
        moves: 1,
        frozen_steps: Some(times.iter().map(|t| 0.8 / stiffness(*t)).collect()),
        ..Smc::default()
    };
    let always = Smc {
        threshold: 1.0,
        resampling: Resampling::Multinomial,
        ..base.clone()
    };
    let cases = [
        ("multinomial at every level", always.clone(), 400, 0.9),
        ("few particles", always.clone(), 40, 0.0),
        ("systematic at need", base.clone(), 200, 0.9),
        (
            "eight runs",
            Smc {
                runs: 8,
                ..always.clone()
            },
            400,
            0.9,
        ),
        (
            "five runs, few particles",
            Smc { runs: 5, ..always },
            100,
            0.8,
        ),
        ("ais", base.annealed_importance_sampling(), 400, 0.5),
    ];
    for (name, smc, particles, least_known) in cases {
        let (runs, mut known, mut covered) = (300, 0.0, 0.0);
        for seed in 0..runs {
            let seed = 1000 + seed;
            let found = Smc {
                seed,
                ..smc.clone()
            }
            .run(&path, particles, &mut |_| ());
            let log_z = found.unwrap().log_z;
            if let Some(error) = log_z.error {
                assert!(error > 0.0, "{name}");
                known += 1.0;
                covered += f64::from(u8::from((log_z.value - exact).abs() < 1.96 * error));
            }
        }
        assert!(
            known >= least_known * f64::from(runs as u32),
            "{name}: {known} known"
        );
        if known > 30.0 {
            let least = 0.95 - 4.0 * (0.95_f64 * 0.05 / known).sqrt();
            assert!(covered / known > least, "{name}: {covered} of {known}");
        }
    }
}

fn vp() -> (Process, ExactPath, GaussianMixture) {
    let process = Process::by_name("vp").unwrap();
    let target = two_modes().unwrap();
    let path = ExactPath::new(process, target.clone(), None).unwrap();
    let start = Prior::new(&process, 0.9999, &target.mean(), 1.1 * target.variance());
    (process, path, start.mixture().unwrap())
}

fn falling(process: &Process, levels: usize) -> Vec<f64> {
    let grid = TimeGrid::default_for(process).with_levels(levels).unwrap();
    grid.times().iter().rev().copied().collect()
}

/// Weight of the first mode and its standard error; each family counts as one draw.
fn first_mode(found: &Particles, mixture: &GaussianMixture) -> (f64, f64) {
    let rows = found.points.chunks_exact(2).zip(&found.weights);
    let share: f64 = rows
        .filter(|(y, _)| mixture.nearest(y) == 0)
        .map(|(_, w)| w)
        .sum();
    let n = (found.families as f64).min(found.ess() * found.weights.len() as f64);
    (share, (share * (1.0 - share) / n).sqrt())
}

#[test]
fn mode_weights_and_log_z_of_an_exact_path() {
    let (process, energy, start) = vp();
    let times = falling(&process, 60);
    let kernels = DiffusionKernels {
        process,
        energy: &energy,
    };
    // Algorithm 1, Algorithm 2, and Algorithm 2 without moves.
    for (moves, transport) in [
        (4, None),
        (1, Some(&kernels as &dyn Transport)),
        (0, Some(&kernels as &dyn Transport)),
    ] {
        let path = Path {
            energy: &energy,
            times: &times,
            start: Start::Mixture(&start),
            transport,
        };
        let smc = Smc {
            moves,
            threshold: 0.5,
            least_overlap: 0.02,
            seed: 3,
            ..Smc::default()
        };
        let mut seen = 0;
        let found = smc.run(&path, 2000, &mut |_| seen += 1).unwrap();
        assert_eq!((seen, found.levels.len()), (60, 60));
        let what = format!(
            "{moves} moves, transport {}: {:?}",
            transport.is_some(),
            found.log_z
        );
        assert!(
            found.log_z.value.abs() < 4.0 * found.log_z.error.unwrap(),
            "{what}"
        );
        assert!(found.log_z.error.unwrap() < 0.2, "{what}");
        let (share, error) = first_mode(&found, energy.start());
        assert!(
            (share - 2.0 / 3.0).abs() < 4.0 * error,
            "{what}, {share} {error}"
        );
        assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        if moves == 4 {
            let late: Vec<f64> = found.levels[20..].iter().map(|l| l.acceptance).collect();
            let mean = late.iter().sum::<f64>() / late.len() as f64;
            assert!((mean - 0.75).abs() < 0.05, "{mean}");
        }
        let equal = found.equally_weighted(500, 1);
        let share = equal.chunks_exact(2).filter(|y| y[0] < 0.0).count() as f64 / 500.0;
        assert!((share - 2.0 / 3.0).abs() < 4.0 * error + 0.01, "{share}");
    }
}

#[test]
fn interpolant_kernels_go_both_ways() {
    let process = Process::by_name("linear").unwrap();
    let first = two_modes().unwrap();
    let (means, covariance) = (
        vec![-0.9, -1.1, 1.3, 0.8],
        Covariance::Isotropic(vec![0.1, 0.2]),
    );
    let second = GaussianMixture::new(2, vec![2.0, 1.0], means, covariance).unwrap();
    let energy = ExactPath::new(process, first.clone(), Some(second.clone())).unwrap();
    let kernels = InterpolantKernels {
        process,
        velocity: &energy,
        energy: &energy,
        g: Diffusivity::Constant { value: 0.3 },
    };
    let up: Vec<f64> = (0..=200).map(|k| f64::from(k) / 200.0).collect();
    let down: Vec<f64> = up.iter().rev().copied().collect();
    for (times, start, end) in [(&down, &second, &first), (&up, &first, &second)] {
        let path = Path {
            energy: &energy,
            times,
            start: Start::Mixture(start),
            transport: Some(&kernels),
        };
        let smc = Smc {
            moves: 0,
            threshold: 0.5,
            seed: 5,
            ..Smc::default()
        };
        let found = smc.run(&path, 2000, &mut |_| ()).unwrap();
        assert!(
            found.log_z.value.abs() < 4.0 * found.log_z.error.unwrap(),
            "{:?}",
            found.log_z
        );
        assert!(
            found.log_z.error.unwrap() < 0.2 && found.ess() > 0.3,
            "{:?}",
            found.log_z
        );
        let (share, error) = first_mode(&found, end);
        assert!((share - 2.0 / 3.0).abs() < 4.0 * error, "{share} {error}");
    }
}

#[test]
fn chosen_levels_keep_their_overlap() {
    let (_, energy, start) = vp();
    let path = Path {
        energy: &energy,
        times: &[0.9999, 1e-4],
        start: Start::Mixture(&start),
        transport: None,
    };
    let smc = Smc {
        moves: 4,
        adaptive: Some(0.8),
        seed: 2,
        ..Smc::default()
    };
    let found = smc.run(&path, 1500, &mut |_| ()).unwrap();
    assert_eq!(found.levels.last().unwrap().time, 1e-4);
    let inner = &found.levels[1..found.levels.len() - 1];
    assert!(inner.len() > 3 && inner.len() < 60, "{}", inner.len());
    for level in inner {
        assert!((0.79..0.9).contains(&level.conditional_ess), "{level:?}");
    }
    assert!(
        found.log_z.value.abs() < 4.0 * found.log_z.error.unwrap(),
        "{:?}",
        found.log_z
    );
    // Two levels are a path without overlap, and say what to do.
    let smc = Smc {
        adaptive: None,
        least_overlap: 0.3,
        ..smc
    };
    let message = smc
        .run(&path, 1500, &mut |_| ())
        .expect_err("no overlap")
        .to_string();
    assert!(
        message.contains("0.9999 and 0.0001") && message.contains("adaptive levels"),
        "{message}"
    );
}

#[test]
fn lines_of_descent_can_be_followed() {
    let (energy, start) = (ladder(), start());
    let path = Path {
        energy: &energy,
        times: &[1.0, 0.5, 0.0],
        start: Start::Mixture(&start),
        transport: None,
    };
    let smc = Smc {
        moves: 1,
        threshold: 0.9,
        genealogy: true,
        ..Smc::default()
    };
    let found = smc.run(&path, 200, &mut |_| ()).unwrap();
    let genealogy = found.genealogy.unwrap();
    let resampled = found.levels.iter().map(|level| level.resampled);
    assert!(resampled.eq(genealogy.ancestors.iter().map(Option::is_some)));
    let mut firsts: Vec<u32> = (0..200).map(|i| genealogy.line(i)[0]).collect();
    for i in [0, 77, 199] {
        let line = genealogy.line(i);
        assert_eq!(line.len(), 3);
        let parents = genealogy.ancestors[2].as_ref();
        assert_eq!(line[2], parents.map_or(i, |parents| parents[i as usize]));
    }
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), found.families);
    assert!(smc.run(&path, 200, &mut |_| ()).unwrap().points == found.points);
}

#[test]
fn annealed_langevin_follows_the_path() {
    let (process, energy, _) = vp();
    let times = falling(&process, 100);
    let prior = Prior::new(
        &process,
        0.9999,
        &energy.start().mean(),
        energy.start().variance(),
    );
    let times = &times[..80];
    let last = times[79];
    for (name, step) in [("mala", 0.3), ("unadjusted", 0.05)] {
        let annealed = Annealed {
            kernel: Kernel::by_name(name).unwrap(),
            moves: 8,
            step,
            seed: 4,
        };
        let n = 2000;
        let (points, acceptance) = annealed
            .run(&energy, times, &prior, n, &mut |_| ())
            .unwrap();
        assert_eq!(acceptance.len(), 80);
        let share = points.chunks_exact(2).filter(|y| y[0] < 0.05).count() as f64 / n as f64;
        // 4 sigma, and 3 % for what slow chains remember (and 1 % in the unadjusted step).
        assert!(
            (share - 2.0 / 3.0).abs() < 4.0 * 0.0106 + 0.04,
            "{name}: {share} at {last}"
        );
    }
    let none = Annealed::default().run(&energy, &[], &prior, 3, &mut |_| ());
    assert!(none.unwrap_err().to_string().contains("at least one time"));
}

#[test]
fn bad_input_is_refused() {
    let (energy, start) = (ladder(), start());
    let refused = |smc: Smc, times: &[f64], particles: usize| {
        let path = Path {
            energy: &energy,
            times,
            start: Start::Mixture(&start),
            transport: None,
        };
        smc.run(&path, particles, &mut |_| ())
            .unwrap_err()
            .to_string()
    };
    let smc = Smc::default;
    assert!(refused(smc(), &[], 10).contains("at least one"));
    assert!(refused(smc(), &[1.0, 0.5, 0.7], 10).contains("rising or all falling"));
    assert!(refused(smc(), &[1.0], 1).contains("at least 2"));
    assert!(
        refused(
            Smc {
                threshold: 1.5,
                ..smc()
            },
            &[1.0],
            10
        )
        .contains("threshold")
    );
    assert!(refused(Smc { step: 0.0, ..smc() }, &[1.0], 10).contains("step size"));
    assert!(
        refused(
            Smc {
                adaptive: Some(0.0),
                ..smc()
            },
            &[1.0],
            10
        )
        .contains("adaptive")
    );
    let frozen = Some(vec![0.1; 3]);
    assert!(
        refused(
            Smc {
                frozen_steps: frozen,
                ..smc()
            },
            &[1.0],
            10
        )
        .contains("each of the 1")
    );
    let path = Path {
        energy: &energy,
        times: &[1.0],
        start: Start::Points(&[0.0; 3]),
        transport: None,
    };
    let message = Smc::default()
        .run(&path, 10, &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(message.contains("expected 20"), "{message}");
}
