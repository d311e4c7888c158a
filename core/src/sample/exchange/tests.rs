//! Replica exchange on a mixture whose modes a chain at the cold end never leaves.

use super::*;
use crate::energy::exact::ExactPath;
use crate::process::Process;
use crate::system::two_modes;

#[test]
fn weights_of_distant_modes_are_found_from_one_of_them() {
    let path = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
    let times = [0.6, 0.4, 0.3, 0.24, 0.19, 0.15, 0.11, 0.08, 0.05, 0.02];
    let ladders = 24;
    // All start in the smaller mode.
    let points = [1.2, -0.4].repeat(times.len() * ladders);
    let settings = Exchange {
        warm_up: 150,
        sweeps: 500,
        moves: 2,
        seed: 1,
        ..Exchange::default()
    };
    let ladder = Ladder {
        energy: &path,
        times: &times,
    };
    let mut sweeps = 0;
    let found = settings
        .run(ladder, &points, &mut |done| sweeps = done)
        .unwrap();
    assert_eq!((sweeps, found.draws.len()), (650, 500 * ladders * 2));
    // Every round trip forgets the mode; the indicator's own effective number gives its error.
    let side: Vec<f64> = found
        .draws
        .chunks_exact(2)
        .map(|y| f64::from(y[0] < 0.1))
        .collect();
    let share = side.iter().sum::<f64>() / side.len() as f64;
    let error = (share * (1.0 - share) / effective_draws(&side, ladders)).sqrt();
    assert!(
        (share - 2.0 / 3.0).abs() < 4.0 * error && error < 0.05,
        "{share} {error}"
    );
    assert!(found.round_trips > 100, "{}", found.round_trips);
    assert!(
        found
            .swap_acceptance
            .iter()
            .all(|a| (0.15..0.99).contains(a)),
        "{:?}",
        found.swap_acceptance
    );
    assert!(
        found.acceptance.iter().all(|a| (a - 0.75).abs() < 0.1),
        "{:?}",
        found.acceptance
    );
    assert_eq!((found.from_hot[0], found.from_hot[9]), (1.0, 0.0));
    assert!(
        found
            .from_hot
            .windows(2)
            .all(|pair| pair[1] < pair[0] + 0.05),
        "{:?}",
        found.from_hot
    );
    assert!(found.r_hat.iter().all(|r| *r < 1.1), "{:?}", found.r_hat);
    // The cold end alone never leaves its mode (from a small first step: a large one might leap over).
    let cold = Ladder {
        energy: &path,
        times: &[0.02, 0.01],
    };
    let careful = Exchange {
        step: 1e-3,
        ..settings
    };
    let stuck = careful
        .run(cold, &points[..2 * 2 * ladders], &mut |_| ())
        .unwrap();
    assert!(stuck.draws.chunks_exact(2).all(|y| y[0] > 0.1));
}

#[test]
fn bad_input_is_refused() {
    let path = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
    let run = |times: &[f64], numbers: usize, sweeps| {
        let settings = Exchange {
            sweeps,
            ..Exchange::default()
        };
        let ladder = Ladder {
            energy: &path,
            times,
        };
        settings
            .run(ladder, &vec![0.1; numbers], &mut |_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(run(&[0.3], 2, 5).contains("at least two levels"));
    assert!(run(&[0.3, 0.2], 6, 5).contains("rows of 2 numbers"));
    assert!(run(&[0.3, 0.2], 8, 0).contains("at least one sweep"));
}
