//! Processes against matrix exponentials, systems against sums over all rows.

use super::*;
use crate::discrete::energy::time_scores;
use crate::discrete::system::{Language, Lattice};

/// `exp(a)` by scaling and squaring of a Taylor series.
fn exponential(a: &[f64], n: usize) -> Vec<f64> {
    let times = |a: &[f64], b: &[f64]| -> Vec<f64> {
        (0..n * n)
            .map(|k| (0..n).map(|j| a[k / n * n + j] * b[j * n + k % n]).sum())
            .collect()
    };
    let small: Vec<f64> = a.iter().map(|x| x / 1024.0).collect();
    let mut sum: Vec<f64> = (0..n * n)
        .map(|k| f64::from(u8::from(k / n == k % n)))
        .collect();
    let mut term = sum.clone();
    for order in 1..20 {
        term = times(&term, &small);
        term.iter_mut().for_each(|x| *x /= f64::from(order));
        sum.iter_mut().zip(&term).for_each(|(s, t)| *s += t);
    }
    (0..10).fold(sum, |m, _| times(&m, &m))
}

#[test]
fn conditionals_are_exponentials_of_the_generator() {
    for process in processes() {
        for (states, from, to) in [(2, 0.0, 0.3), (5, 0.2, 0.9)] {
            let n = process.symbols(states);
            // The generator's shape does not change, so that its integral is the total noise times it.
            let noise = (process.keep(from) / process.keep(to)).ln();
            let mut q = vec![0.0; n * n];
            for a in 0..n {
                for b in (0..n).filter(|b| *b != a) {
                    let rate = process.jump_rate(states, to, a as u8, b as u8) / process.rate(to);
                    q[a * n + b] = noise * rate;
                    q[a * n + a] -= noise * rate;
                }
            }
            let kernel = exponential(&q, n);
            let keep = process.keep(to) / process.keep(from);
            for a in 0..n {
                for b in 0..n {
                    let found = process.transition(states, keep, a as u8, b as u8);
                    assert!(
                        (found - kernel[a * n + b]).abs() < 1e-10,
                        "{process:?} {a} {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn schedules_agree_with_their_rates() {
    for process in processes() {
        let schedule = process.generator().schedule();
        assert_eq!(schedule.keep(0.0), 1.0);
        for time in [0.1, 0.5, 0.9] {
            let h = 1e-6;
            let slope = (schedule.keep(time - h) / schedule.keep(time + h)).ln() / (2.0 * h);
            assert!((slope / schedule.rate(time) - 1.0).abs() < 1e-6);
            assert!((schedule.time_of(schedule.keep(time)) - time).abs() < 1e-12);
        }
    }
    for bad in [
        Schedule::Linear { floor: 0.0 },
        Schedule::Linear { floor: f64::NAN },
        Schedule::Geometric {
            least: 1.0,
            most: 0.5,
        },
    ] {
        assert!(bad.validate().is_err(), "{bad:?}");
    }
}

/// Marginals of a system by the sum over all rows of data.
fn check_marginals(target: Arc<dyn Target>) {
    let (space, (data, law)) = (target.space(), data_law(&*target));
    assert!(
        (law.iter().sum::<f64>() - 1.0).abs() < 1e-10,
        "{}",
        target.name()
    );
    for process in processes() {
        let rows = noisy_rows(space, &process);
        for time in [0.05, 0.6, 1.0] {
            let keep = process.keep(time);
            let mut found = vec![0.0; rows.len() / space.sites];
            target.log_marginals(&process, keep, &rows, &mut found);
            for (row, found) in rows.chunks_exact(space.sites).zip(&found) {
                let sum: f64 = data
                    .iter()
                    .zip(&law)
                    .map(|(x, p)| p * chance(&process, space.states, keep, x, row))
                    .sum();
                assert!(
                    (found.exp() - sum).abs() < 1e-10 * sum.max(1e-3),
                    "{} {process:?} {row:?}",
                    target.name()
                );
            }
        }
    }
}

#[test]
fn marginals_are_sums_over_all_rows() {
    check_marginals(Arc::new(mixture()));
    let potts = Lattice::potts(2, 2, 0.7, vec![0.3, 0.0, -0.4]);
    check_marginals(Arc::new(Table::of(&potts).unwrap()));
    let ising = Lattice::ising(2, 3, 0.4, 0.1);
    check_marginals(Arc::new(Table::of(&ising).unwrap()));
    check_marginals(Arc::new(ising.strip().layers().unwrap()));
    let space = Space {
        sites: 4,
        states: 3,
    };
    check_marginals(Arc::new(Language::random(space, 3).unwrap()));
}

#[test]
fn transfer_matrices_and_enumeration_agree() {
    let strip = Lattice::ising(4, 3, 0.35, 0.15).strip();
    let (table, layers) = (Table::of(&strip).unwrap(), strip.layers().unwrap());
    assert!((table.log_partition() - layers.log_partition()).abs() < 1e-10);
    for (p, log_q) in table.probabilities().iter().zip(layers.enumerated()) {
        assert!((p - log_q.exp()).abs() < 1e-12);
    }
    // Ising by hand: two spins, two bonds on a torus of two sites.
    let pair = Table::of(&Lattice::ising(1, 2, 0.5, 0.2)).unwrap();
    let by_hand =
        (2.0 * 0.5f64 + 0.4).exp() + (2.0 * 0.5f64 - 0.4).exp() + 2.0 * (-2.0 * 0.5f64).exp();
    assert!((pair.log_partition() - by_hand.ln()).abs() < 1e-12);
    assert!(Lattice::ising(3, 3, 0.5, 0.1).layers().is_err());
    assert!(Table::of(&Lattice::ising(5, 5, 0.5, 0.1)).is_err());
}

#[test]
fn the_walsh_transform_blurs_like_site_by_site() {
    let table = Table::of(&Lattice::ising(3, 3, 0.3, 0.2)).unwrap();
    for keep in [1.0, 0.7, 0.01] {
        let sites = crate::discrete::system::blur_sites(table.space(), table.probabilities(), keep);
        for (a, b) in table.blurred(keep).iter().zip(&sites) {
            assert!((a - b).abs() < 1e-14);
        }
    }
}

#[test]
fn time_scores_are_derivatives_and_reverse_rates_turn_the_flow_round() {
    let target: Arc<dyn Target> = Arc::new(mixture());
    let space = target.space();
    for process in processes() {
        let exact = ExactStates {
            target: target.clone(),
            process,
        };
        let rows = noisy_rows(space, &process);
        let count = rows.len() / space.sites;
        let time = 0.4;
        let at = |time: f64| {
            let mut out = vec![0.0; count];
            exact.log_density(time, &rows, &mut out);
            out
        };
        let mut slopes = vec![0.0; count];
        time_scores(&exact, time, &rows, &mut slopes);
        let (h, now) = (1e-5, at(time));
        for ((up, down), slope) in at(time + h).iter().zip(at(time - h)).zip(&slopes) {
            let difference = (up - down) / (2.0 * h);
            assert!(
                (difference - slope).abs() < 1e-6 * (1.0 + slope.abs()),
                "{difference} {slope}"
            );
        }
        // sum_y p(y) Q~(y, y') + p(y') Q~(y', y') = -d/dt p(y'), with Q~(y, y') = Q(y', y) p(y') / p(y).
        let symbols = process.symbols(space.states);
        let mut ratios = vec![0.0; rows.len() * symbols];
        exact.log_ratios(time, &rows, &mut ratios);
        let all = Space {
            states: symbols,
            ..space
        };
        let mut flow = vec![0.0; count];
        for (k, row) in rows.chunks_exact(space.sites).enumerate() {
            for site in 0..space.sites {
                for source in process.sources(space.states, row[site]) {
                    let ratio = ratios[(k * space.sites + site) * symbols + usize::from(source)];
                    let rate =
                        process.jump_rate(space.states, time, source, row[site]) * ratio.exp();
                    let mut to = row.to_vec();
                    to[site] = source;
                    flow[all.number_of(&to)] += now[k].exp() * rate;
                    flow[k] -= now[k].exp() * rate;
                }
            }
        }
        for ((flow, slope), log_p) in flow.iter().zip(&slopes).zip(&now) {
            assert!((flow + slope * log_p.exp()).abs() < 1e-10, "{process:?}");
        }
    }
}

/// Shares of a symbol at a site, and of pairs, within four standard errors.
#[test]
fn systems_sample_their_own_law() {
    let space = Space {
        sites: 4,
        states: 3,
    };
    let systems: [Arc<dyn Target>; 4] = [
        Arc::new(ProductMixture::random(space, 2, 1).unwrap()),
        Arc::new(Language::random(space, 2).unwrap()),
        Arc::new(Table::of(&Lattice::ising(2, 3, 0.4, 0.2)).unwrap()),
        Arc::new(Lattice::ising(3, 2, 0.4, 0.2).strip().layers().unwrap()),
    ];
    for target in systems {
        let (rows, law) = data_law(&*target);
        let draws = 20_000;
        let mut counts = vec![0.0; rows.len()];
        let mut row = vec![0; target.space().sites];
        for k in 0..draws {
            target.sample(&mut Stream::new(3, Purpose::Test, 0, k), &mut row);
            counts[target.space().number_of(&row)] += 1.0;
        }
        for (count, p) in counts.iter().zip(&law) {
            let n = draws as f64;
            assert!(
                (count - n * p).abs() <= 4.5 * (n * p * (1.0 - p)).sqrt() + 1.0,
                "{} {count} {}",
                target.name(),
                n * p
            );
        }
    }
}
