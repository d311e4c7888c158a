//! Samplers and kernels on exact energies: frequencies within four standard errors, tau-leaping's order from its own operator.

use super::*;
use crate::discrete::sample::{Anneal, Kernel, Method, Reversal};
use crate::discrete::system::Lattice;

fn ising() -> ExactStates {
    let table = Table::of(&Lattice::ising(2, 2, 0.35, 0.25)).unwrap();
    ExactStates {
        target: Arc::new(table),
        process: Process::default(),
    }
}

/// Frequencies of all rows against their probabilities at a time.
fn check_frequencies(exact: &ExactStates, time: f64, rows: &[u8], slack: f64) {
    let space = exact.space();
    let all = Space {
        states: exact.process.symbols(space.states),
        ..space
    };
    let n = (rows.len() / space.sites) as f64;
    let possible = noisy_rows(space, &exact.process);
    let mut log_p = vec![0.0; possible.len() / space.sites];
    exact.log_density(time, &possible, &mut log_p);
    let mut counts = vec![0.0; log_p.len()];
    for row in rows.chunks_exact(space.sites) {
        counts[all.number_of(row)] += 1.0;
    }
    for (count, log_p) in counts.iter().zip(&log_p) {
        let p = log_p.exp();
        let error = (n * p * (1.0 - p)).sqrt();
        assert!(
            (count - n * p).abs() < 4.0 * error + slack * n + 1.0,
            "{count} {}",
            n * p
        );
    }
}

#[test]
fn jumps_are_exact() {
    let exact = ising();
    let times = [0.01, 1.0];
    let reversal = Reversal {
        energy: &exact,
        method: Method::Jumps,
        times: &times,
        seed: 5,
    };
    let (rows, clipped) = reversal.run(0..8000, &mut |_| {}).unwrap();
    assert_eq!(clipped.above, 0);
    // The start lacks the alpha = 0.001 that is left at time 1.
    check_frequencies(&exact, 0.01, &rows, 5e-4);
    let (few, _) = reversal.run(0..10, &mut |_| {}).unwrap();
    assert_eq!(few, rows[..40]);
    let masked = ExactStates {
        process: Process::by_name("masked").unwrap(),
        ..exact
    };
    let reversal = Reversal {
        energy: &masked,
        method: Method::Jumps,
        times: &[0.1, 1.0],
        seed: 6,
    };
    let (rows, _) = reversal.run(0..8000, &mut |_| {}).unwrap();
    check_frequencies(&masked, 0.1, &rows, 2e-3);
}

#[test]
fn leaps_in_small_steps_come_close() {
    let exact = ising();
    let grid: Vec<f64> = (0..=200)
        .map(|k| 0.02 + 0.98 * f64::from(k) / 200.0)
        .collect();
    let leap = Reversal {
        energy: &exact,
        method: Method::TauLeaping,
        times: &grid,
        seed: 1,
    };
    let (rows, _) = leap.run(0..8000, &mut |_| {}).unwrap();
    check_frequencies(&exact, 0.02, &rows, 0.01);
    assert!(
        Reversal {
            method: Method::Ancestral,
            ..leap
        }
        .run(0..1, &mut |_| {})
        .is_err()
    );
    let masked = ExactStates {
        process: Process::by_name("masked").unwrap(),
        ..exact
    };
    for method in [Method::TauLeaping, Method::Ancestral] {
        let leap = Reversal {
            energy: &masked,
            method,
            times: &grid,
            seed: 2,
        };
        let (rows, _) = leap.run(0..8000, &mut |_| {}).unwrap();
        check_frequencies(&masked, 0.02, &rows, 0.01);
    }
}

/// The law after n leaps from the exact late law, by the leaps' own kernel: twice the leaps, half the error.
#[test]
fn tau_leaping_is_of_first_order() {
    use crate::discrete::sample::reverse_law;
    let exact = ising();
    let space = exact.space();
    let rows = noisy_rows(space, &exact.process);
    let law = |time: f64| -> Vec<f64> {
        let mut out = vec![0.0; 16];
        exact.log_density(time, &rows, &mut out);
        out.iter().map(|x| x.exp()).collect()
    };
    let (low, high) = (0.2, 0.9);
    let error = |leaps: u32| -> f64 {
        let mut p = law(high);
        for k in (0..leaps).rev() {
            let at = |k: u32| low + (high - low) * f64::from(k) / f64::from(leaps);
            let mut ratios = vec![0.0; rows.len() * 2];
            exact.log_ratios(at(k + 1), &rows, &mut ratios);
            let mut next = vec![0.0; 16];
            for (i, row) in rows.chunks_exact(4).enumerate() {
                for (j, to) in rows.chunks_exact(4).enumerate() {
                    let chance: f64 = (0..4)
                        .map(|s| {
                            let mut law = [0.0; 2];
                            let own = &ratios[(i * 4 + s) * 2..][..2];
                            reverse_law(
                                &exact.process,
                                2,
                                (at(k + 1), at(k)),
                                own,
                                row[s],
                                &mut law,
                            );
                            law[usize::from(to[s])]
                        })
                        .product();
                    next[j] += p[i] * chance;
                }
            }
            p = next;
        }
        p.iter().zip(law(low)).map(|(p, q)| (p - q).abs()).sum()
    };
    let errors = [error(16), error(32), error(64)];
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((order - 1.0).abs() < 0.1, "{errors:?}");
    }
}

#[test]
fn kernels_keep_a_level() {
    for process in [Process::default(), Process::by_name("masked").unwrap()] {
        let exact = ExactStates { process, ..ising() };
        let time = 0.3;
        for kernel in [Kernel::Gibbs, Kernel::Metropolis] {
            let mut rows = crate::discrete::metric::noisy_rows(&exact, time, 8000, (3, 0));
            let mut streams: Vec<Stream> = (0..8000)
                .map(|k| Stream::new(4, Purpose::Test, 0, k))
                .collect();
            for _ in 0..3 {
                kernel.sweep(&exact, time, &mut rows, &mut streams);
            }
            check_frequencies(&exact, time, &rows, 0.0);
        }
        // From anywhere else they lead there.
        let mut rows = vec![0; 4 * 8000];
        let mut streams: Vec<Stream> = (0..8000)
            .map(|k| Stream::new(5, Purpose::Test, 0, k))
            .collect();
        for _ in 0..40 {
            Kernel::Gibbs.sweep(&exact, time, &mut rows, &mut streams);
        }
        check_frequencies(&exact, time, &rows, 1e-3);
    }
}

/// The partition function of a lattice, through the levels of another one.
#[test]
fn annealing_finds_log_z() {
    let (exact, lattice) = (ising(), Lattice::ising(2, 2, 0.5, 0.1));
    let truth = Table::of(&lattice).unwrap().log_partition();
    let times: Vec<f64> = (0..=20)
        .map(|k| 0.02 + 0.98 * f64::from(k) / 20.0)
        .collect();
    let target = |row: &[u8]| crate::discrete::system::LogWeights::log_weight(&lattice, row);
    for (resample_below, target, truth) in [
        (0.0, None, 0.0),
        (0.9, Some(&target as &(dyn Fn(&[u8]) -> f64 + Sync)), truth),
    ] {
        let anneal = Anneal {
            energy: &exact,
            times: &times,
            target,
            kernel: Kernel::Gibbs,
            sweeps: 1,
            resample_below,
            particles: 500,
            runs: 16,
            seed: 7,
        };
        let found = anneal.run(&mut |_| {}).unwrap();
        let error = found.log_z.error.unwrap();
        assert!(
            error < 0.05 && (found.log_z.value - truth).abs() < 4.0 * error,
            "{:?} {truth}",
            found.log_z
        );
        assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12 && found.ess > 0.3);
    }
}
