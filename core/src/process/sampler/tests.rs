//! The samplers as a family: distinct times in range, the right frequencies, refusals, names in files.

use super::*;
use crate::process::Spacing;
use crate::rng::Purpose;

#[test]
fn times_are_distinct_and_in_range() {
    let process = Process::default();
    let grid = TimeGrid::default_for(&process);
    for sampler in TimeSampler::ALL {
        for row in 0..200 {
            let mut times = [0.0; 16];
            sampler
                .fill_times(
                    &process,
                    &grid,
                    8,
                    &mut Stream::new(1, Purpose::Test, 0, row),
                    &mut times,
                )
                .unwrap();
            assert!(
                times
                    .iter()
                    .all(|t| (grid.t_min()..=grid.t_max()).contains(t))
            );
            assert!((1..16).all(|i| !times[..i].contains(&times[i])));
            if sampler.on_grid() {
                let mut levels = [0; 16];
                sampler
                    .fill_levels(
                        &Process::default(),
                        &grid,
                        &mut Stream::new(1, Purpose::Test, 0, row),
                        &mut levels,
                    )
                    .unwrap();
                assert_eq!(levels.map(|level| grid.times()[level as usize]), times);
            } else {
                assert!(
                    sampler
                        .fill_levels(
                            &Process::default(),
                            &grid,
                            &mut Stream::new(1, Purpose::Test, 0, row),
                            &mut [0]
                        )
                        .is_err()
                );
            }
        }
    }
}

#[test]
fn close_times_are_within_the_share_of_the_time_scale() {
    for name in ["vp", "ve", "edm", "linear", "trigonometric"] {
        let process = Process::by_name(name).unwrap();
        let grid = TimeGrid::default_for(&process);
        let sampler = TimeSampler::Close(Close { share: 1.0 });
        let (mut rows, mut below, mut near) = (0, 0, 0);
        for row in 0..2000 {
            let mut times = [0.0; 3];
            let mut stream = Stream::new(4, Purpose::Test, 0, row);
            sampler
                .fill_times(&process, &grid, 8, &mut stream, &mut times)
                .unwrap();
            let reach = process.time_scale(times[0], 1.0) / 12f64.sqrt();
            assert!(times[1..].iter().all(|t| (t - times[0]).abs() <= reach));
            // The ends of the grid cut off what lies beyond.
            if times[0] - reach < grid.t_min() || times[0] + reach > grid.t_max() {
                continue;
            }
            rows += 1;
            below += u32::from(times[1] < times[0]);
            near += u32::from((times[1] - times[0]).abs() < 0.5 * reach);
        }
        assert!(rows > 1000, "{name}: {rows}");
        for count in [below, near] {
            let off = f64::from(count) - f64::from(rows) / 2.0;
            assert!(
                off.abs() < 2.0 * f64::from(rows).sqrt(),
                "{name}: {count} of {rows}"
            );
        }
    }
    let process = Process::default();
    let grid = TimeGrid::default_for(&process);
    let refused = TimeSampler::Close(Close { share: 0.0 }).validate(&process, &grid, 8, 2);
    assert!(refused.unwrap_err().to_string().contains("from 1e-6"));
}

#[test]
fn grid_samplers_visit_levels_equally() {
    let grid = TimeGrid::new(12, 0.1, 0.9, Spacing::Linear {}).unwrap();
    for sampler in [
        TimeSampler::Grid(Grid {}),
        TimeSampler::GridStratified(GridStratified {}),
    ] {
        let mut counts = [0; 12];
        let rows = 20_000;
        for row in 0..rows {
            let mut levels = [0; 4];
            sampler
                .fill_levels(
                    &Process::default(),
                    &grid,
                    &mut Stream::new(2, Purpose::Test, 0, row),
                    &mut levels,
                )
                .unwrap();
            if sampler == (TimeSampler::GridStratified(GridStratified {})) {
                assert!(
                    levels
                        .iter()
                        .enumerate()
                        .all(|(i, &level)| level as usize / 3 == i)
                );
            }
            levels.iter().for_each(|&level| counts[level as usize] += 1);
        }
        // A level is in a row of 4 of 12 with probability 1/3, so its count is binomial(rows, 1/3).
        let (mean, sigma) = (rows as f64 / 3.0, (rows as f64 * 2.0 / 9.0).sqrt());
        assert!(
            counts
                .iter()
                .all(|&c| (f64::from(c) - mean).abs() < 4.0 * sigma),
            "{counts:?}"
        );
    }
    let mut all = [0; 12];
    TimeSampler::Grid(Grid {})
        .fill_levels(
            &Process::default(),
            &grid,
            &mut Stream::new(3, Purpose::Test, 0, 0),
            &mut all,
        )
        .unwrap();
    all.sort_unstable();
    assert_eq!(all, std::array::from_fn(|i| i as u32));
}

#[test]
fn continuous_samplers_have_their_moments() {
    for name in ["vp", "ve", "edm"] {
        let process = Process::by_name(name).unwrap();
        let grid = TimeGrid::default_for(&process);
        let (rows, mean, std) = (20_000, -0.4, 0.3);
        let mut logs = vec![0.0; rows];
        for (row, log) in logs.iter_mut().enumerate() {
            let mut time = [0.0];
            let mut stream = Stream::new(5, Purpose::Test, 1, row as u64);
            TimeSampler::LogSnrNormal(LogSnrNormal { mean, std })
                .fill_times(&process, &grid, 8, &mut stream, &mut time)
                .unwrap();
            *log = process.noise_level(time[0]).ln();
        }
        // The range cuts beyond 10 sigma only. Mean: sigma/sqrt(n); variance: sigma^2 sqrt(2/n).
        let found = logs.iter().sum::<f64>() / rows as f64;
        assert!(
            (found - mean).abs() < 4.0 * std / (rows as f64).sqrt(),
            "{name}: {found}"
        );
        let variance = logs.iter().map(|x| (x - found).powi(2)).sum::<f64>() / rows as f64;
        assert!(
            (variance / std.powi(2) - 1.0).abs() < 4.0 * (2.0 / rows as f64).sqrt(),
            "{name}: {variance}"
        );
    }
    let process = Process::default();
    let grid = TimeGrid::new(8, 0.2, 0.8, Spacing::Linear {}).unwrap();
    let mut times = [0.0; 3];
    TimeSampler::Stratified(Stratified {})
        .fill_times(
            &process,
            &grid,
            8,
            &mut Stream::new(6, Purpose::Test, 0, 0),
            &mut times,
        )
        .unwrap();
    assert!(times[0] < 0.4 && (0.4..0.6).contains(&times[1]) && times[2] > 0.6);
}

#[test]
fn impossible_settings_are_refused() {
    let vp = Process::default();
    let grid = TimeGrid::new(4, 0.2, 0.8, Spacing::Linear {}).unwrap();
    for sampler in TimeSampler::ALL {
        assert!(sampler.validate(&vp, &grid, 8, 4).is_ok(), "{sampler:?}");
    }
    assert!(
        TimeSampler::Grid(Grid {})
            .validate(&vp, &grid, 8, 5)
            .is_err()
    );
    let far = TimeSampler::LogSnrNormal(LogSnrNormal {
        mean: 300.0,
        std: 0.1,
    });
    assert!(far.validate(&vp, &grid, 8, 1).is_err());
    assert!(
        TimeSampler::LogSnrNormal(LogSnrNormal {
            mean: 0.0,
            std: -0.1
        })
        .validate(&vp, &grid, 8, 1)
        .is_err()
    );
    assert!(
        TimeSampler::LogSnrNormal(LogSnrNormal::DEFAULT)
            .validate(&Process::by_name("linear").unwrap(), &grid, 8, 1)
            .is_err()
    );
}

#[test]
fn files_name_the_kind() {
    for sampler in TimeSampler::ALL {
        let text = serde_json::to_string(&sampler).unwrap();
        assert_eq!(serde_json::from_str::<TimeSampler>(&text).unwrap(), sampler);
    }
    let text = serde_json::to_string(&TimeSampler::GridStratified(GridStratified {})).unwrap();
    assert_eq!(text, r#"{"kind":"grid-stratified"}"#);
    let default: TimeSampler = serde_json::from_str(r#"{"kind": "log-snr-normal"}"#).unwrap();
    assert_eq!(default, TimeSampler::LogSnrNormal(LogSnrNormal::DEFAULT));
    assert!(serde_json::from_str::<TimeSampler>(r#"{"kind": "grid", "mean": 1}"#).is_err());
    assert!(serde_json::from_str::<TimeSampler>(r#"{"kind": "grids"}"#).is_err());
}

#[test]
fn multiscale_rows_visit_small_noise_and_neighbours() {
    let process = Process::default();
    let grid = TimeGrid::default_for(&process);
    let rows = 20_000;
    let (mut first, mut near) = (0, 0);
    for row in 0..rows {
        let mut stream = Stream::new(5, Purpose::Test, 0, row);
        let mut levels = [0; 2];
        TimeSampler::default()
            .fill_levels(&process, &grid, &mut stream, &mut levels)
            .unwrap();
        first += u64::from(levels[0] == 0);
        near += u64::from(levels[0].abs_diff(levels[1]) < 8);
    }
    // Level 0 owns the log-SNR from its own to the middle of the first gap.
    let snr = |t: f64| process.log_snr(t);
    let t = grid.times();
    let share = (snr(t[0]) - snr(0.5 * (t[0] + t[1]))) / (snr(t[0]) - snr(t[511]));
    let expected = 0.5 * share + 0.5 / 512.0;
    // 4 sigma of a binomial share.
    let sigma = (expected * (1.0 - expected) / rows as f64).sqrt();
    assert!((first as f64 / rows as f64 - expected).abs() < 4.0 * sigma);
    // A log-uniform distance up to 512 is below 8 in ln 8 / ln 512 = 1/3 of the draws; fewer far ones fit at the ends.
    assert!(near as f64 / rows as f64 > 1.0 / 3.0);
}

/// A sampler that all but misses the grid finds a time in a trial and none in the middle of a run.
#[test]
fn a_sampler_that_seldom_hits_is_refused_before_the_run() {
    let process = Process::default();
    let grid = TimeGrid::default_for(&process);
    let refused = |text: &str| {
        let sampler: TimeSampler = serde_json::from_str(text).unwrap();
        sampler.validate(&process, &grid, 3, 4).is_err()
    };
    for text in [
        r#"{"kind": "log-snr-normal", "mean": 8.4, "std": 1.0}"#,
        r#"{"kind": "log-snr-normal", "mean": -40.0, "std": 9.0}"#,
        r#"{"kind": "close", "share": 1e-15}"#,
        r#"{"kind": "close", "share": 0.0}"#,
    ] {
        assert!(refused(text), "{text}");
    }
    assert!(!refused(
        r#"{"kind": "log-snr-normal", "mean": 3.0, "std": 1.0}"#
    ));
    assert!(!refused(r#"{"kind": "close", "share": 1e-6}"#));
}
