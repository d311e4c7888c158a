//! Right models pass every check, and each kind of wrong model fails the check that is there to find it.

use super::*;
use crate::energy::exact::ExactPath;
use crate::metric::Estimate;
use crate::process::{Linear, Spacing};
use crate::system::{Covariance, GaussianMixture};

const PLAIN: Remedy = Remedy {
    compares_levels: None,
    over_fitted: false,
    usual: "dsm+diffclf",
};

fn modes(weights: [f64; 2]) -> GaussianMixture {
    let covariance = Covariance::Diagonal(vec![0.05, 0.12, 0.2, 0.07]);
    GaussianMixture::new(2, weights.to_vec(), vec![-1.0, 0.4, 1.3, -0.6], covariance).unwrap()
}

fn path(start: GaussianMixture) -> ExactPath {
    ExactPath::new(Process::default(), start, None).unwrap()
}

fn grid(levels: usize) -> TimeGrid {
    TimeGrid::new(levels, 1e-3, 0.999, Spacing::Power { rho: 3.0 }).unwrap()
}

fn data(rows: &[f64]) -> Data<'_> {
    Data {
        start: rows,
        end: None,
        dim: 2,
    }
}

fn settings() -> DiagnosisSettings {
    DiagnosisSettings {
        classified: 2000,
        path_points: 200,
        basin_points: 1500,
        compared: 300,
        components: 8,
        seed: 3,
    }
}

/// An energy whose F is wrong by a slope in time.
struct Tilted<'a>(&'a dyn Energy, f64);

impl Energy for Tilted<'_> {
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn free_energy(&self, time: f64) -> f64 {
        self.0.free_energy(time) + self.1 * time
    }
    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.energy(times, points, out);
    }
    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.score(times, points, out);
    }
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.time_score(times, points, out);
    }
}

/// The diagnosis of `energy` by fresh rows of a mixture with weights 0.7 and 0.3, and by generated samples of the same.
fn diagnosis(energy: &dyn Energy, grid: &TimeGrid) -> Diagnosis {
    let truth = path(modes([0.7, 0.3]));
    let (rows, trained) = (
        modes([0.7, 0.3]).sample(1500, 1).0,
        modes([0.7, 0.3]).sample(1500, 2).0,
    );
    let generated = truth.sample(grid.t_min(), 1000, 9);
    let subject = Subject {
        energy,
        process: truth.process(),
        grid,
        rows: data(&rows),
        trained: Some(data(&trained)),
        generated: Some(&generated),
        history: None,
        periods: &[],
        facts: Facts::default(),
    };
    Diagnosis::run(&subject, settings(), &mut |_| ()).unwrap()
}

fn verdict(diagnosis: &Diagnosis, name: &str) -> Verdict {
    let check = diagnosis
        .checks
        .iter()
        .find(|check| check.name.contains(name));
    check.unwrap().verdict
}

#[test]
fn the_exact_density_passes_every_check() {
    let found = diagnosis(&path(modes([0.7, 0.3])), &grid(48));
    for check in &found.checks {
        assert_eq!(check.verdict, Verdict::Pass, "{check:#?}");
    }
    assert_eq!(found.verdict, Verdict::Pass);
    assert_eq!(found.modes.basins.len(), 2);
    // The density of kernels around 1500 points in the plane is close to the truth: most draws count.
    assert!(found.modes.ess > 0.7, "{}", found.modes.ess);
    let share = found.modes.basins[0].density.unwrap();
    assert!((share.mean - 0.7).abs() < 4.0 * share.error, "{share}");
    let over = found.calibration.overconfidence;
    assert!(over.mean.abs() < 4.0 * over.error, "{over}");
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(
        serde_json::from_str::<Diagnosis>(&text).unwrap().checks,
        found.checks
    );
}

#[test]
fn wrong_mode_weights_fail_the_audit_alone() {
    let found = diagnosis(&path(modes([0.4, 0.6])), &grid(48));
    assert_eq!(verdict(&found, "mode weights"), Verdict::Fail);
    let distance = found.modes.density_distance.unwrap();
    assert!(
        (distance.mean - 0.3).abs() < 4.0 * distance.error,
        "{distance}"
    );
    assert_eq!(verdict(&found, "generated"), Verdict::Pass);
    assert_eq!(found.verdict, Verdict::Fail);
    // A small error of the weights is a warning, a tiny one nothing.
    let found = diagnosis(&path(modes([0.6, 0.4])), &grid(48));
    assert_eq!(verdict(&found, "mode weights"), Verdict::Warn);
    let found = diagnosis(&path(modes([0.69, 0.31])), &grid(48));
    assert_eq!(verdict(&found, "mode weights"), Verdict::Pass);
}

#[test]
fn a_wrong_normaliser_spoils_the_calibration() {
    let truth = path(modes([0.7, 0.3]));
    let found = diagnosis(&Tilted(&truth, 6.0), &grid(48));
    assert_eq!(verdict(&found, "calibration"), Verdict::Fail);
    assert_eq!(verdict(&found, "MBAR"), Verdict::Fail);
    // F is too large by 6 t, so log Z + F grows by that from the first level on.
    let first = found.normaliser.levels[0].time;
    for level in &found.normaliser.levels[1..] {
        let expected = 6.0 * (level.time - first);
        assert!(
            (level.gap.mean - expected).abs() < 5.0 * level.gap.error,
            "{level:?}"
        );
    }
    // The shape at each level is right, and so are mode weights.
    assert_eq!(verdict(&found, "mode weights"), Verdict::Pass);
    // Every link is wrong by the slope times its step.
    for link in &found.path.links {
        let expected = -6.0 * (link.times[1] - link.times[0]);
        let log = link.log_mean_weight;
        assert!(
            (log.mean - expected).abs() < 5.0 * log.error + 1e-9,
            "{link:?}"
        );
    }
}

#[test]
fn a_density_of_spikes_is_over_fitted() {
    let trained = modes([0.7, 0.3]).sample(60, 2).0;
    let rows = modes([0.7, 0.3]).sample(600, 1).0;
    let weights = vec![1.0 / 60.0; 60];
    let kernels = Covariance::Isotropic(vec![1e-3; 60]);
    let spikes = path(GaussianMixture::new(2, weights, trained.clone(), kernels).unwrap());
    let grid = grid(32);
    let subject = Subject {
        energy: &spikes,
        process: spikes.process(),
        grid: &grid,
        rows: data(&rows),
        trained: Some(data(&trained)),
        generated: None,
        history: None,
        periods: &[],
        facts: Facts::default(),
    };
    let found = OverFitting::of(&subject, 600, 0).unwrap();
    assert_eq!(found.check().verdict, Verdict::Fail, "{found:?}");
    // Without the rows, the log of the training tells something.
    let silent = Subject {
        trained: None,
        ..subject
    };
    let check = |history| {
        let subject = Subject { history, ..silent };
        OverFitting::of(&subject, 600, 0).unwrap().check().verdict
    };
    assert_eq!(check(None), Verdict::Skipped);
    let history = History {
        best_step: 10,
        best: 1.0,
        last: 1.1,
        range: 2.0,
        noise: Some(0.05),
    };
    assert_eq!(check(Some(history)), Verdict::Pass);
    let risen = History {
        last: 1.9,
        ..history
    };
    assert_eq!(check(Some(risen)), Verdict::Warn);
    // The same rise in a course that jumps about by as much, or of which too little is known, is none.
    for noise in [Some(0.4), None] {
        assert_eq!(check(Some(History { noise, ..risen })), Verdict::Pass);
    }
    // A course that falls from 3 to 1 by steps of 0.1, with jumps of 0.06 up and down: bends of 0.12.
    let course: Vec<(u64, f64)> = (0..20)
        .map(|k| {
            (
                k,
                3.0 - 0.1 * k as f64 + if k % 2 == 0 { 0.06 } else { -0.06 },
            )
        })
        .collect();
    let found = History::of(&course).unwrap();
    assert_eq!((found.best_step, found.last), (19, found.best));
    assert!((found.noise.unwrap() - 1.4826 * 0.12 / 1.5_f64.sqrt()).abs() < 1e-9);
    assert!(History::of(&[]).is_none() && History::of(&course[..4]).unwrap().noise.is_none());
}

/// A gap of two nats is not hidden by a smaller one that is more certain, nor is a band of levels by another.
#[test]
fn every_gap_is_judged() {
    let gap = |mean: f64, error: f64| Gap {
        time: 0.1,
        gap: Estimate { mean, error },
    };
    let check = |gaps: Vec<Gap>| {
        let found = OverFitting {
            gaps,
            history: None,
            copies: 0.0,
        };
        found.check().verdict
    };
    assert_eq!(check(vec![gap(0.05, 0.001), gap(2.0, 0.1)]), Verdict::Fail);
    assert_eq!(
        check(vec![gap(0.05, 0.001), gap(0.5, 0.1), gap(3.0, 1.0)]),
        Verdict::Warn
    );
    assert_eq!(check(vec![gap(0.05, 0.001), gap(2.0, 0.6)]), Verdict::Pass);
    let truth = path(modes([0.7, 0.3]));
    let mut found = diagnosis(&truth, &grid(48));
    let mut band = |k: usize, observed: f64, mean: f64, error: f64| {
        found.calibration.bands[k].observed = observed;
        found.calibration.bands[k].excess = Estimate { mean, error };
    };
    band(3, 0.5, 0.02, 0.0001);
    band(5, 0.02, 0.01, 0.001);
    assert_eq!(found.calibration.check(&PLAIN).verdict, Verdict::Warn);
    found.normaliser.levels[2].gap = Estimate {
        mean: 0.3,
        error: 0.001,
    };
    found.normaliser.levels[4].gap = Estimate {
        mean: -2.0,
        error: 0.45,
    };
    assert_eq!(found.normaliser.check(&PLAIN, None).verdict, Verdict::Fail);
    // An F that had to be moved far speaks against the energies, however well it fits now.
    for level in &mut found.normaliser.levels {
        level.gap.mean = 0.0;
    }
    let verdict = |mean| {
        let moved = Estimate { mean, error: 0.1 };
        found.normaliser.check(&PLAIN, Some(moved)).verdict
    };
    let expected = [Verdict::Pass, Verdict::Warn, Verdict::Fail];
    assert_eq!([0.1, 0.5, -3.0].map(verdict), expected);
}

/// A density with something added to its logarithm, of time and place.
struct Plus<'a, F>(&'a dyn Energy, F);

impl<F: Fn(f64, &[f64]) -> f64 + Send + Sync> Energy for Plus<'_, F> {
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn free_energy(&self, time: f64) -> f64 {
        self.0.free_energy(time)
    }
    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.energy(times, points, out);
        for (i, (out, point)) in out.iter_mut().zip(points.chunks_exact(2)).enumerate() {
            *out -= (self.1)(times[i.min(times.len() - 1)], point);
        }
    }
    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.score(times, points, out);
    }
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.time_score(times, points, out);
    }
}

#[test]
fn densities_that_explode_away_from_the_data_fail() {
    let truth = path(modes([0.7, 0.3]));
    let grid = grid(32);
    // A hill around (-3.5, 2.5), three widths and more away from all rows, of 60, 200 and 3000 nats above what is there.
    for height in [60.0, 200.0, 3000.0] {
        let hill = |_: f64, y: &[f64]| {
            let away = (y[0] + 3.5).powi(2) + (y[1] - 2.5).powi(2);
            height * (-0.5 * away).exp()
        };
        let found = diagnosis(&Plus(&truth, hill), &grid);
        let checks = ["normalisation", "tails"].map(|name| verdict(&found, name));
        assert!(
            checks.contains(&Verdict::Fail),
            "{height}: {:#?}",
            found.checks
        );
    }
    // Growth like a square of the distance, as of a network multiplied by a large number: no integral at all.
    let found = diagnosis(
        &Plus(&truth, |_: f64, y: &[f64]| {
            40.0 * (y[0] * y[0] + y[1] * y[1] - 9.0).max(0.0)
        }),
        &grid,
    );
    assert_eq!(verdict(&found, "normalisation"), Verdict::Fail);
    assert_eq!(verdict(&found, "tails"), Verdict::Fail);
    assert!(
        found.normalisation.levels[0].by_width[3].log
            > found.normalisation.levels[0].by_width[0].log + 3.0
    );
    // A floor under the density: nothing falls, and the integral has no end.
    let found = diagnosis(&Floor(&truth, -3.0), &grid);
    assert_eq!(verdict(&found, "tails"), Verdict::Fail);
    assert_eq!(verdict(&found, "normalisation"), Verdict::Fail);
}

/// A density that is nowhere below a value.
struct Floor<'a>(&'a dyn Energy, f64);

impl Energy for Floor<'_> {
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn free_energy(&self, time: f64) -> f64 {
        self.0.free_energy(time)
    }
    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.energy(times, points, out);
        out.iter_mut().for_each(|u| *u = u.min(-self.1));
    }
    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.score(times, points, out);
    }
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.time_score(times, points, out);
    }
}

#[test]
fn integrals_are_measured_where_the_constant_is_wrong() {
    let truth = path(modes([0.7, 0.3]));
    for (off, expected) in [
        (0.02, Verdict::Pass),
        (0.3, Verdict::Fail),
        (-0.3, Verdict::Fail),
    ] {
        let found = diagnosis(&Plus(&truth, |_: f64, _: &[f64]| off), &grid(32));
        assert_eq!(
            verdict(&found, "normalisation"),
            expected,
            "{:#?}",
            found.checks[0]
        );
        for level in &found.normalisation.levels {
            let integral = level.integral;
            assert!(
                (integral.log - off).abs() < 4.0 * integral.error,
                "{off}: {integral:?}"
            );
        }
        assert_eq!(found.normalisation.levels.len(), 4);
    }
}

#[test]
fn likelihoods_stand_beside_those_of_a_mixture() {
    let truth = path(modes([0.7, 0.3]));
    let found = diagnosis(&truth, &grid(32)).held_out;
    let target = modes([0.7, 0.3]);
    let rows = target.sample(20_000, 8).0;
    let entropy: Vec<f64> = rows
        .chunks_exact(2)
        .map(|row| target.log_density(row))
        .collect();
    let entropy = Estimate::of(&entropy);
    assert!(
        (found.nats.mean - entropy.mean).abs() < 4.0 * found.nats.error.hypot(entropy.error),
        "{found:?}"
    );
    let (mixture, kernels) = (found.mixture.unwrap(), found.kernels.unwrap());
    // Two Gaussians are two Gaussians; kernels of 1500 rows are wider than they are.
    assert!(
        mixture.lead.mean.abs() < 0.02 && kernels.lead.mean > 0.02,
        "{found:?}"
    );
    // Wider than the data by a factor: worse by a known number of nats, and the integral is still one.
    let wide = |factor: f64| {
        let variances = [0.05, 0.12, 0.2, 0.07].map(|v| factor * v).to_vec();
        GaussianMixture::new(
            2,
            vec![0.7, 0.3],
            vec![-1.0, 0.4, 1.3, -0.6],
            Covariance::Diagonal(variances),
        )
        .unwrap()
    };
    for (factor, expected) in [(1.6, Verdict::Warn), (4.0, Verdict::Fail)] {
        let found = diagnosis(&path(wide(factor)), &grid(32));
        assert_eq!(
            verdict(&found, "held-out"),
            expected,
            "{:#?}",
            found.checks[2]
        );
        assert!(verdict(&found, "normalisation") < Verdict::Fail);
        let lost = 0.5 * 2.0 * (factor.ln() + 1.0 / factor - 1.0);
        let lead = found.held_out.mixture.unwrap().lead;
        assert!(
            (lead.mean + lost).abs() < 4.0 * lead.error + 0.02,
            "{lead} {lost}"
        );
    }
    // The volume that the coordinates lose is taken off.
    let rows = target.sample(800, 1).0;
    let grid = grid(32);
    let subject = Subject {
        energy: &truth,
        process: truth.process(),
        grid: &grid,
        rows: data(&rows),
        trained: None,
        generated: None,
        history: None,
        periods: &[],
        facts: Facts {
            log_volume: 2.5,
            ..Facts::default()
        },
    };
    let found = Diagnosis::run(&subject, settings(), &mut |_| ()).unwrap();
    assert!((found.held_out.nats.mean - entropy.mean + 2.5).abs() < 0.2);
    assert!((found.held_out.mixture.unwrap().nats.mean - entropy.mean + 2.5).abs() < 0.3);
    assert_eq!(found.held_out.rows, 400);
    // A row that is more likely than one repeated without end.
    let spike = |time: f64, y: &[f64]| {
        let near = (y[0] - rows[200]).hypot(y[1] - rows[201]) < 0.05;
        if near && time < 0.01 { 54_061.0 } else { 0.0 }
    };
    let energy = Plus(&truth, spike);
    let found = Diagnosis::run(
        &Subject {
            energy: &energy,
            ..subject
        },
        settings(),
        &mut |_| (),
    )
    .unwrap();
    assert_eq!(verdict(&found, "held-out"), Verdict::Fail);
}

#[test]
fn copies_of_trained_rows_are_no_others() {
    let truth = path(modes([0.7, 0.3]));
    let fifty = modes([0.7, 0.3]).sample(50, 4).0;
    let repeated = |times: usize| fifty.repeat(times);
    let (rows, trained) = (repeated(10), repeated(90));
    let grid = grid(16);
    let subject = Subject {
        energy: &truth,
        process: truth.process(),
        grid: &grid,
        rows: data(&rows),
        trained: Some(data(&trained)),
        generated: None,
        history: None,
        periods: &[],
        facts: Facts::default(),
    };
    let found = Diagnosis::run(&subject, settings(), &mut |_| ()).unwrap();
    assert_eq!(verdict(&found, "over-fitting"), Verdict::Warn);
    assert_eq!(found.over_fitting.copies, 1.0);
    assert!(found.effective_rows <= 50.0);
    // The error of a mean over copies is that over the rows themselves: nothing is gained by repeating.
    let once = Noised::new(data(&fifty), truth.process(), 0);
    let often = Noised::new(data(&rows), truth.process(), 0);
    let error = |noised: &Noised<'_>, count: usize| {
        let (points, rows) = noised.points_and_rows(1e-3, count);
        let values: Vec<f64> = points.chunks_exact(2).map(|y| y[0]).collect();
        noised.estimate(&values, &rows).error
    };
    let (once, often) = (error(&once, 50), error(&often, 500));
    assert!((often / once - 1.0).abs() < 0.25, "{once} {often}");
}

/// A column that is the sum of two others: the mean over directions hides it, the narrowest direction does not.
#[test]
fn a_column_that_follows_from_others_is_seen_in_the_data() {
    let rows: Vec<f64> = modes([0.7, 0.3])
        .sample(600, 4)
        .0
        .chunks_exact(2)
        .flat_map(|row| [row[0], row[1], row[0] + row[1]])
        .collect();
    let variances = vec![0.6, 0.5, 0.9];
    let start = GaussianMixture::new(
        3,
        vec![1.0],
        vec![-0.3, 0.1, -0.2],
        Covariance::Diagonal(variances),
    )
    .unwrap();
    let truth = path(start);
    let grid = grid(16);
    let rows = Data {
        start: &rows,
        end: None,
        dim: 3,
    };
    let subject = Subject {
        energy: &truth,
        process: truth.process(),
        grid: &grid,
        rows,
        trained: None,
        generated: None,
        history: None,
        periods: &[],
        facts: Facts::default(),
    };
    let found = Diagnosis::run(&subject, settings(), &mut |_| ()).unwrap();
    assert!(found.coverage.finest.unwrap() > 0.5, "{:?}", found.coverage);
    assert!(verdict(&found, "coverage") > Verdict::Pass);
}

#[test]
fn advice_fits_the_model() {
    let truth = path(modes([0.7, 0.3]));
    let tilted = diagnosis(&Tilted(&truth, 6.0), &grid(24));
    let advice = |compares_levels, over_fitted| {
        let remedy = Remedy {
            compares_levels,
            over_fitted,
            usual: "dsm+diffclf",
        };
        tilted.calibration.check(&remedy).meaning
    };
    assert!(advice(Some(false), false).contains("such as dsm+diffclf"));
    assert!(advice(Some(true), false).contains("in the objective already"));
    let heart = advice(Some(true), true);
    assert!(
        heart.contains("by heart") && !heart.contains("longer"),
        "{heart}"
    );
}

/// Exact models, 100 with independent rows and 100 with rows of which each comes five times in a row. Expected are 1 % of alarms by the two-sample test and
/// next to none by limits of four standard errors, 2 of 200 (and 2 are found); four deviations more are 8.
#[test]
fn exact_models_raise_few_alarms() {
    let truth = path(modes([0.7, 0.3]));
    let grid = grid(24);
    let mut alarms = Vec::new();
    for model in 0..200 {
        let copies = if model % 2 == 0 { 1 } else { 5 };
        let draw = |rows: usize, seed: u64| -> Vec<f64> {
            let distinct = modes([0.7, 0.3]).sample(rows / copies, seed).0;
            (0..rows)
                .flat_map(|i| distinct[i / copies * 2..][..2].to_vec())
                .collect()
        };
        let (rows, trained) = (draw(600, 3 * model), draw(600, 3 * model + 1));
        let generated = truth.sample(grid.t_min(), 300, 7000 + model);
        let subject = Subject {
            energy: &truth,
            process: truth.process(),
            grid: &grid,
            rows: data(&rows),
            trained: Some(data(&trained)),
            generated: Some(&generated),
            history: None,
            periods: &[],
            facts: Facts::default(),
        };
        let settings = DiagnosisSettings {
            classified: 400,
            path_points: 60,
            basin_points: 300,
            compared: 60,
            components: 4,
            seed: model,
        };
        let found = Diagnosis::run(&subject, settings, &mut |_| ()).unwrap();
        let worth = found.effective_rows;
        assert!(
            if copies == 1 {
                worth > 300.0
            } else {
                worth < 240.0
            },
            "{worth}"
        );
        let bad = found
            .checks
            .iter()
            .filter(|check| check.verdict > Verdict::Pass);
        alarms.extend(bad.map(|check| format!("{model} {}: {}", check.name, check.finding)));
    }
    println!("{} alarms: {alarms:#?}", alarms.len());
    assert!(alarms.len() <= 8, "{alarms:#?}");
}

#[test]
fn a_grid_with_gaps_or_without_ends_is_noticed() {
    let truth = path(modes([0.7, 0.3]));
    let coarse = diagnosis(
        &truth,
        &TimeGrid::new(4, 1e-3, 0.999, Spacing::Linear {}).unwrap(),
    );
    assert!(verdict(&coarse, "overlap") > Verdict::Pass);
    let late = diagnosis(
        &truth,
        &TimeGrid::new(32, 0.2, 0.999, Spacing::Linear {}).unwrap(),
    );
    assert_eq!(verdict(&late, "coverage"), Verdict::Fail);
    let short = diagnosis(
        &truth,
        &TimeGrid::new(32, 1e-3, 0.15, Spacing::Linear {}).unwrap(),
    );
    assert_eq!(verdict(&short, "coverage"), Verdict::Fail);
}

#[test]
fn samples_that_miss_a_mode_are_told_apart() {
    let truth = path(modes([0.7, 0.3]));
    let grid = grid(32);
    let rows = modes([0.7, 0.3]).sample(800, 1).0;
    let generated = path(modes([0.98, 0.02])).sample(grid.t_min(), 800, 4);
    let subject = Subject {
        energy: &truth,
        process: truth.process(),
        grid: &grid,
        rows: data(&rows),
        trained: None,
        generated: Some(&generated),
        history: None,
        periods: &[],
        facts: Facts::default(),
    };
    let found = Diagnosis::run(&subject, settings(), &mut |_| ()).unwrap();
    assert_eq!(verdict(&found, "generated"), Verdict::Fail);
    assert_eq!(verdict(&found, "mode weights"), Verdict::Fail);
    assert!(found.modes.generated_distance.unwrap().mean > 0.2);
    assert!(found.modes.density_distance.unwrap().mean < 0.05);
}

#[test]
fn an_interpolant_is_judged_by_both_its_ends() {
    let process = Process::Linear(Linear { a: 0.6 });
    let (start, end) = (modes([0.7, 0.3]), modes([0.2, 0.8]));
    let truth = ExactPath::new(process, start.clone(), Some(end.clone())).unwrap();
    let (x0, x1) = (start.sample(900, 1).0, end.sample(700, 2).0);
    let grid = TimeGrid::default_for(&process).with_levels(64).unwrap();
    let rows = Data {
        start: &x0,
        end: Some(&x1),
        dim: 2,
    };
    let subject = Subject {
        energy: &truth,
        process: &process,
        grid: &grid,
        rows,
        trained: None,
        generated: None,
        history: None,
        periods: &[],
        facts: Facts::default(),
    };
    let found = Diagnosis::run(&subject, settings(), &mut |_| ()).unwrap();
    assert_eq!(found.verdict, Verdict::Pass, "{:#?}", found.checks);
    assert!(found.coverage.end_blur.is_some() && found.coverage.memory.is_none());
}

#[test]
fn impossible_requests_are_refused() {
    let truth = path(modes([0.7, 0.3]));
    let grid = grid(8);
    let rows = modes([0.7, 0.3]).sample(30, 1).0;
    let run = |rows: Data<'_>, settings: DiagnosisSettings| {
        let subject = Subject {
            energy: &truth,
            process: truth.process(),
            grid: &grid,
            rows,
            trained: None,
            generated: None,
            history: None,
            periods: &[],
            facts: Facts::default(),
        };
        Diagnosis::run(&subject, settings, &mut |_| ()).map(|_| ())
    };
    assert!(run(data(&rows), settings()).is_ok());
    assert!(run(data(&rows[..10]), settings()).is_err());
    assert!(
        run(
            Data {
                dim: 3,
                ..data(&rows)
            },
            settings()
        )
        .is_err()
    );
    let two = Data {
        end: Some(&rows),
        ..data(&rows)
    };
    assert!(run(two, settings()).is_err());
    let few = DiagnosisSettings {
        classified: 3,
        ..settings()
    };
    assert!(run(data(&rows), few).is_err());
}
