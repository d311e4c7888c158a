//! Exact laws pass every check, under both kinds of noise; each kind of wrong model fails the check that is there to find it.

use super::*;
use crate::discrete::Process;
use crate::discrete::sample::{Method, Reversal};
use crate::discrete::system::{ExactStates, Lattice, ProductMixture, Table, Target};
use crate::process::Spacing;
use crate::rng::Purpose;
use std::sync::Arc;

fn grid() -> TimeGrid {
    TimeGrid::new(40, 1e-3, 1.0, Spacing::Power { rho: 3.0 }).unwrap()
}

/// A magnet of nine spins whose phases hold about 0.69 and 0.31.
fn magnet(field: f64) -> Arc<dyn Target> {
    Arc::new(Table::of(&Lattice::ising(3, 3, 0.45, field)).unwrap())
}

fn exact(target: &Arc<dyn Target>, name: &str) -> ExactStates {
    ExactStates {
        target: target.clone(),
        process: Process::by_name(name).unwrap(),
    }
}

fn rows(target: &dyn Target, count: usize, seed: u64) -> Vec<f64> {
    let mut row = vec![0; target.space().sites];
    let mut out = Vec::new();
    for k in 0..count {
        target.sample(&mut Stream::new(seed, Purpose::Test, 7, k as u64), &mut row);
        out.extend(row.iter().map(|s| f64::from(*s)));
    }
    out
}

/// An energy whose F is off by this much at time zero and right at one, or which is tempered.
struct Wrong<'a> {
    inner: &'a dyn Energy,
    tilt: f64,
    power: f64,
}

impl Energy for Wrong<'_> {
    fn space(&self) -> Space {
        self.inner.space()
    }
    fn process(&self) -> &Process {
        self.inner.process()
    }
    fn free_energy(&self, time: f64) -> f64 {
        self.inner.free_energy(time) + self.tilt * (1.0 - time)
    }
    fn energy(&self, time: f64, rows: &[u8], out: &mut [f64]) {
        self.inner.energy(time, rows, out);
        out.iter_mut().for_each(|u| *u *= self.power);
    }
}

/// The diagnosis of `energy` by rows of `target`, and by rows that `maker` makes.
fn diagnosis(
    energy: &dyn Energy,
    target: &Arc<dyn Target>,
    maker: Option<&ExactStates>,
) -> StatesDiagnosis {
    let (grid, sites) = (grid(), target.space().sites);
    let (judged, trained) = (rows(&**target, 3000, 1), rows(&**target, 3000, 2));
    let data = |start| Data {
        start,
        end: None,
        dim: sites,
    };
    let generated = maker.map(|maker| {
        let reversal = Reversal {
            energy: maker,
            method: Method::Jumps,
            times: grid.times(),
            seed: 4,
        };
        reversal.run(0..400, &mut |_| ()).unwrap().0
    });
    let subject = StatesSubject {
        energy,
        grid: &grid,
        rows: data(&judged),
        trained: Some(data(&trained)),
        generated: generated.as_deref(),
        history: None,
        compares_levels: None,
        only_trained: false,
        levelled: None,
    };
    let settings = DiagnosisSettings {
        classified: 2000,
        path_points: 200,
        basin_points: 3000,
        compared: 300,
        components: 1,
        seed: 3,
    };
    StatesDiagnosis::run(&subject, settings, &mut |_| ()).unwrap()
}

fn verdict(found: &StatesDiagnosis, name: &str) -> Verdict {
    let mut checks = found.checks.iter();
    let check = checks.find(|check| check.name.contains(name)).unwrap();
    check.verdict
}

#[test]
fn exact_laws_pass_every_check() {
    let target = magnet(0.05);
    for noise in Process::NAMES {
        let exact = exact(&target, noise);
        let found = diagnosis(&exact, &target, Some(&exact));
        for check in &found.checks {
            assert_eq!(check.verdict, Verdict::Pass, "{noise}: {check:#?}");
        }
        assert_eq!(found.sum.rows, Some(512));
        // Under masks nothing but the lack of rows with masks is left of the sum.
        let log = found.sum.levels[0].log.mean;
        assert!(log.abs() < 1e-9, "{noise}: {log}");
        // Nearest neighbours at this coupling: a tree is ahead of independent sites, and the truth ahead of a tree.
        let tree = found.held_out.tree.unwrap();
        assert!(tree.lead.mean > 4.0 * tree.lead.error);
        assert!(tree.nats.mean > found.held_out.sites.nats.mean + 0.5);
        let text = serde_json::to_string(&found).unwrap();
        let again: StatesDiagnosis = serde_json::from_str(&text).unwrap();
        assert_eq!(again.checks, found.checks);
    }
}

#[test]
fn wrong_models_fail_what_finds_them() {
    let target = magnet(0.05);
    let truth = exact(&target, "uniform");
    // F that is off between the levels: no sum, no classification.
    let tilted = Wrong {
        inner: &truth,
        tilt: 2.5,
        power: 1.0,
    };
    let found = diagnosis(&tilted, &target, Some(&truth));
    assert_eq!(verdict(&found, "normalisation"), Verdict::Fail);
    assert!(verdict(&found, "calibration") > Verdict::Pass);
    assert_eq!(verdict(&found, "shares"), Verdict::Pass);
    assert_eq!(verdict(&found, "generated samples"), Verdict::Pass);
    // Divided by its sum it is the truth, and has no better likelihood.
    assert!((found.held_out.log_sum - 2.5 * (1.0 - 1e-3)).abs() < 1e-9);
    assert!(found.held_out.nats.mean < 0.0);
    let plain = Remedy {
        compares_levels: None,
        over_fitted: false,
        usual: "score-entropy+diffclf",
    };
    // Levels that were moved far to add up to one are told.
    let right = diagnosis(&truth, &target, None).sum;
    for (mean, expected) in [
        (0.1, Verdict::Pass),
        (-0.6, Verdict::Warn),
        (3.0, Verdict::Fail),
    ] {
        let moved = Some(Estimate { mean, error: 0.0 });
        assert_eq!(right.check(&plain, moved).verdict, expected);
    }
    // A magnet of the opposite field: all is right but the weights of the phases.
    let mirrored = exact(&magnet(-0.05), "uniform");
    let found = diagnosis(&mirrored, &target, Some(&mirrored));
    assert_eq!(verdict(&found, "normalisation"), Verdict::Pass);
    assert_eq!(verdict(&found, "shares"), Verdict::Fail);
    assert_eq!(verdict(&found, "generated samples"), Verdict::Fail);
    // Independent sites: a density, calibrated for itself, and far behind a tree.
    let flat: Arc<dyn Target> = Arc::new(Table::of(&Lattice::ising(3, 3, 0.0, 0.1)).unwrap());
    let found = diagnosis(&exact(&flat, "uniform"), &target, None);
    assert_eq!(verdict(&found, "held-out"), Verdict::Fail);
    assert_eq!(verdict(&found, "generated samples"), Verdict::Skipped);
    assert_eq!(found.verdict, Verdict::Fail);
}

/// Too many rows to add: annealing finds the sum, and what is missing of it.
#[test]
fn sums_over_many_rows_are_annealed() {
    let space = Space {
        sites: 14,
        states: 4,
    };
    let target: Arc<dyn Target> = Arc::new(ProductMixture::random(space, 2, 5).unwrap());
    for noise in Process::NAMES {
        let truth = exact(&target, noise);
        let found = diagnosis(&truth, &target, None);
        assert_eq!(found.sum.rows, None);
        let log = found.sum.levels[0].log;
        assert!(log.error < 0.05, "{noise}: {log}");
        // Four runs: an error of their own, of Student's law with three degrees of freedom.
        assert!(log.mean.abs() < 8.0 * log.error.max(1e-3), "{noise}: {log}");
        assert_eq!(verdict(&found, "normalisation"), Verdict::Pass);
        assert_eq!(
            verdict(&found, "shares"),
            Verdict::Pass,
            "{noise}: {:#?}",
            found.shares.density
        );
        let tilted = Wrong {
            inner: &truth,
            tilt: -0.7,
            power: 1.0,
        };
        let found = diagnosis(&tilted, &target, None);
        assert_eq!(verdict(&found, "normalisation"), Verdict::Fail, "{noise}");
    }
    let hot = Wrong {
        inner: &exact(&target, "uniform"),
        tilt: 0.0,
        power: 0.5,
    };
    let found = diagnosis(&hot, &target, None);
    assert!(verdict(&found, "calibration") > Verdict::Pass);
}

/// A tree of pairs is exact for a chain of letters, whose law is a tree.
#[test]
fn a_tree_is_fitted_to_a_chain() {
    let space = Space {
        sites: 6,
        states: 3,
    };
    let chain = crate::discrete::system::Language::random(space, 3).unwrap();
    let many = symbols_of(&rows(&chain, 40_000, 5));
    let tree = Tree::fit(&many, 6, 3).unwrap();
    let all: Vec<u8> = (0..729)
        .flat_map(|n| {
            let mut row = [0; 6];
            space.row_of(n, &mut row);
            row
        })
        .collect();
    let found = tree.log_density(&all);
    let total: f64 = found.iter().map(|x| x.exp()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    let mut truth = vec![0.0; 729];
    chain.log_marginals(&Process::default(), 1.0, &all, &mut truth);
    let divergence: f64 = truth
        .iter()
        .zip(&found)
        .map(|(p, q)| p.exp() * (p - q))
        .sum();
    // 2 + 5 * 6 free numbers out of 40000 rows: half of that over the rows, four times.
    assert!(
        (0.0..4.0 * 16.0 / 40_000.0).contains(&divergence),
        "{divergence}"
    );
    assert!(Tree::fit(&[], 6, 3).is_none());
}

#[test]
fn rows_that_are_none_are_refused() {
    let target = magnet(0.05);
    let truth = exact(&target, "uniform");
    let grid = grid();
    let judge = |rows: &[f64], dim: usize| {
        let subject = StatesSubject {
            energy: &truth,
            grid: &grid,
            rows: Data {
                start: rows,
                end: None,
                dim,
            },
            trained: None,
            generated: None,
            history: None,
            compares_levels: None,
            only_trained: false,
            levelled: None,
        };
        StatesDiagnosis::run(&subject, DiagnosisSettings::default(), &mut |_| ())
    };
    for (rows, dim, words) in [
        (vec![0.0; 9 * 30], 3, "9 symbols"),
        (vec![2.0; 9 * 30], 9, "0 to 1"),
        (vec![1.0; 9 * 3], 9, "at least 20"),
    ] {
        let text = judge(&rows, dim).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
}
