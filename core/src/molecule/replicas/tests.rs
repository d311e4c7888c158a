//! Dynamics against exact moments, exchange against known distributions, resume against the uninterrupted run.

use super::super::tests::dipeptide;
use super::super::{Bond, GAS_CONSTANT, SolventModel};
use super::*;
use crate::engine::company::tests::together;

/// Two particles on a spring of no length: `U = k r^2`, harmonic in every coordinate of their difference.
fn spring(force: f64) -> (Topology, ForceField) {
    let topology = Topology {
        names: vec!["A".into(), "B".into()],
        elements: vec![6, 8],
        masses: vec![3.0, 7.0],
        charges: vec![0.0; 2],
        bonds: vec![Bond {
            atoms: [0, 1],
            force,
            length: 0.0,
        }],
        angles: Vec::new(),
        torsions: Vec::new(),
        types: vec![0; 2],
        type_count: 1,
        lennard_jones: vec![(0.0, 0.0)],
        exceptions: Vec::new(),
        born: None,
    };
    let field = ForceField::new(&topology, None).unwrap();
    (topology, field)
}

/// BAOAB gives `<q^2> = kT/K` in a harmonic well at every stable step, and `<v^2> = kT/m (1 - (h w)^2 / 4)`; with swaps between
/// temperatures both stay what they are.
#[test]
fn moments_in_a_harmonic_well_are_exact_at_every_temperature() {
    let force = 20_000.0;
    let (topology, field) = spring(force);
    // K = 2 k = 40000, mu = 2.1: w = 138 per ps, h w = 1.4: far from small, and stable.
    let settings = ReplicaSettings {
        temperatures: vec![250.0, 330.0, 450.0],
        solvents: vec![Solvent::Vacuum],
        ladders: 5,
        step: 0.01,
        friction: 8.0,
        moves: 10,
        seed: 3,
    };
    let mut run = Replicas::new(
        &field,
        &topology,
        settings,
        &[0.0, 0.0, 0.0, 0.1, 0.05, 0.0],
        Isa::detect(),
    )
    .unwrap();
    let (pool, sweeps) = (Pool::new(1), 12_000);
    let mut sums = [[0.0; 2]; 3];
    let mut series = vec![Vec::new(); 3];
    for sweep in 0..sweeps + 100 {
        run.advance(&pool, sweep >= 100).unwrap();
        if sweep < 100 {
            continue;
        }
        let state = run.state();
        for replica in 0..15 {
            let row = &state.positions[replica * 6..][..6];
            let fast = &state.velocities[replica * 6..][..6];
            let held = state.states[replica];
            let square: f64 = (0..3).map(|k| (row[k] - row[3 + k]).powi(2)).sum();
            let speed: f64 = (0..3).map(|k| (fast[k] - fast[3 + k]).powi(2)).sum();
            sums[held][0] += square;
            sums[held][1] += speed;
            if replica / 3 == 0 {
                series[held].push(square);
            }
        }
    }
    let mu = 3.0 * 7.0 / 10.0;
    let omega2 = 2.0 * force / mu;
    for (k, temperature) in [250.0, 330.0, 450.0].into_iter().enumerate() {
        let kt = GAS_CONSTANT * temperature;
        let n = 5.0 * sweeps as f64;
        // |q|^2 has mean 3 kT/K and standard deviation sqrt(6) kT/K; draws 0.1 ps apart at friction 8/ps are worth a third or more.
        let g = crate::free_energy::statistical_inefficiency(&series[k]);
        let sigma = (2.0 / 3.0 * g / n).sqrt();
        let place = sums[k][0] / n / (3.0 * kt / (2.0 * force));
        assert!(
            (place - 1.0).abs() < 4.0 * sigma,
            "{temperature}: {place} +- {sigma}"
        );
        let speed = sums[k][1] / n / (3.0 * kt / mu) / (1.0 - omega2 * 1e-4 / 4.0);
        assert!(
            (speed - 1.0).abs() < 4.0 * sigma,
            "{temperature}: {speed} +- {sigma}"
        );
    }
    for swap in run.swaps() {
        assert!(swap.taken * 5 > swap.tried, "{swap:?}");
    }
    assert!(run.round_trips()[0] > 100 && run.round_trips()[1] == 0);
}

/// Equipartition in the stiffest bonds, whatever else acts on them: `<w . grad U> = kT <div w>` with `w = (r - r0) r^` moving a hydrogen
/// along its bond, `div w = 1 + 2 (r - r0)/r`.
#[test]
fn bonds_of_the_dipeptide_have_the_energy_of_their_temperature() {
    let (topology, start) = dipeptide();
    let field = ForceField::new(&topology, Some(SolventModel::Obc1)).unwrap();
    let settings = ReplicaSettings {
        temperatures: vec![300.0, 400.0],
        solvents: vec![Solvent::Implicit { lambda: 0.0 }, Solvent::WATER],
        ladders: 2,
        moves: 20,
        friction: 5.0,
        seed: 9,
        ..ReplicaSettings::default()
    };
    let mut run = Replicas::new(&field, &topology, settings, &start, Isa::detect()).unwrap();
    let hydrogens: Vec<(usize, usize, f64)> = topology
        .bonds
        .iter()
        .filter_map(|bond| {
            let [a, b] = bond.atoms;
            let found = match (topology.elements[a], topology.elements[b]) {
                (1, _) => (a, b),
                (_, 1) => (b, a),
                _ => return None,
            };
            Some((found.0, found.1, bond.length))
        })
        .collect();
    assert_eq!(hydrogens.len(), 12);
    let (pool, warm, sweeps) = (Pool::new(1), 100, 600);
    let mut series = vec![Vec::new(); 4];
    let (mut x, mut force) = (vec![0.0; 66], vec![0.0; 66]);
    for sweep in 0..warm + sweeps {
        run.advance(&pool, sweep >= warm).unwrap();
        for (k, state) in run.states().to_vec().into_iter().enumerate() {
            let mut sum = 0.0;
            for ladder in 0..2 {
                run.positions(ladder, k, &mut x);
                let mut terms = [EnergyTerms::default()];
                field
                    .energies_and_forces(
                        Isa::detect(),
                        &x,
                        &[state.solvent],
                        &mut terms,
                        &mut force,
                    )
                    .unwrap();
                // Copies are where their states say, with the energies that swaps went by.
                let again = run.terms(ladder, k);
                assert!((again.total(state.solvent) - terms[0].total(state.solvent)).abs() < 1e-9);
                for &(atom, other, rest) in &hydrogens {
                    let along: [f64; 3] =
                        std::array::from_fn(|axis| x[3 * atom + axis] - x[3 * other + axis]);
                    let r = along.iter().map(|a| a * a).sum::<f64>().sqrt();
                    let pull: f64 = (0..3)
                        .map(|axis| along[axis] / r * force[3 * atom + axis])
                        .sum();
                    sum += -(r - rest) * pull / state.kt() - 1.0 - 2.0 * (r - rest) / r;
                }
            }
            if sweep >= warm {
                series[k].push(sum / 24.0);
            }
        }
    }
    for (series, state) in series.iter().zip(run.states()) {
        let n = series.len() as f64;
        let mean = series.iter().sum::<f64>() / n;
        let variance = series.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let g = crate::free_energy::statistical_inefficiency(series);
        let sigma = (variance * g / n).sqrt();
        assert!(
            mean.abs() < 4.0 * sigma + 0.005,
            "{state:?}: {mean} +- {sigma}"
        );
        assert!(sigma < 0.05, "{sigma}");
    }
}

/// Neither threads nor a break change a bit.
#[test]
fn a_run_that_is_resumed_goes_on_as_it_would_have() {
    let (topology, start) = dipeptide();
    let field = ForceField::new(&topology, Some(SolventModel::Obc1)).unwrap();
    let settings = ReplicaSettings {
        temperatures: vec![300.0, 360.0, 430.0],
        solvents: vec![
            Solvent::Vacuum,
            Solvent::Implicit { lambda: 0.0 },
            Solvent::WATER,
        ],
        moves: 7,
        seed: 4,
        ..ReplicaSettings::default()
    };
    let begin =
        || Replicas::new(&field, &topology, settings.clone(), &start, Isa::detect()).unwrap();
    let (one, two) = (Pool::new(1), Pool::new(2));
    let mut whole = begin();
    for _ in 0..12 {
        whole.advance(&one, true).unwrap();
    }
    let mut part = begin();
    for _ in 0..5 {
        part.advance(&two, true).unwrap();
    }
    let text = serde_json::to_string(&part.state()).unwrap();
    let state: ReplicaState = serde_json::from_str(&text).unwrap();
    let mut part =
        Replicas::resume(&field, &topology, settings.clone(), &state, Isa::detect()).unwrap();
    for _ in 0..7 {
        part.advance(&two, true).unwrap();
    }
    assert_eq!(part.state(), whole.state());
    assert!(whole.swaps().iter().any(|swap| swap.taken > 0));
    let mut damaged = [state.clone(), state.clone(), state.clone()];
    damaged[0].states[0] = 1;
    damaged[1].positions.pop();
    damaged[2].velocities[5] = f64::NAN;
    for damaged in &damaged {
        assert!(
            Replicas::resume(&field, &topology, settings.clone(), damaged, Isa::detect()).is_err()
        );
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let (topology, field) = spring(100.0);
    let usual = ReplicaSettings {
        solvents: vec![Solvent::Vacuum],
        ..ReplicaSettings::default()
    };
    let start = [0.0, 0.0, 0.0, 0.1, 0.0, 0.0];
    let refused = |settings: ReplicaSettings, words: &str| {
        let message = Replicas::new(&field, &topology, settings, &start, Isa::detect())
            .err()
            .unwrap()
            .to_string();
        assert!(message.contains(words), "{message}");
    };
    refused(
        ReplicaSettings {
            temperatures: vec![],
            ..usual.clone()
        },
        "rising temperatures",
    );
    refused(
        ReplicaSettings {
            temperatures: vec![400.0, 300.0],
            ..usual.clone()
        },
        "rising temperatures",
    );
    refused(
        ReplicaSettings {
            step: 0.5,
            ..usual.clone()
        },
        "bonds to hydrogen",
    );
    refused(
        ReplicaSettings {
            friction: f64::NAN,
            ..usual.clone()
        },
        "per ps",
    );
    refused(
        ReplicaSettings {
            moves: 0,
            ..usual.clone()
        },
        "at least 1",
    );
    refused(
        ReplicaSettings {
            ladders: 1 << 40,
            ..usual.clone()
        },
        "65536",
    );
    refused(
        ReplicaSettings {
            solvents: vec![Solvent::WATER],
            ..usual.clone()
        },
        "solvent model",
    );
    assert!(Replicas::new(&field, &topology, usual, &start[..5], Isa::detect()).is_err());
}

/// Copies that are moved by several processes end where one process takes them, to the last bit.
#[test]
fn processes_share_the_copies() {
    let run = |pool: &Pool| {
        let (topology, field) = spring(20_000.0);
        let settings = ReplicaSettings {
            temperatures: vec![250.0, 330.0, 450.0],
            solvents: vec![Solvent::Vacuum],
            // Blocks for each of three processes, the last one not full.
            ladders: 3 * COPIES - 2,
            step: 0.01,
            friction: 8.0,
            moves: 10,
            seed: 3,
        };
        let start = [0.0, 0.0, 0.0, 0.1, 0.05, 0.0];
        let mut run = Replicas::new(&field, &topology, settings, &start, Isa::detect()).unwrap();
        for _ in 0..40 {
            run.advance(pool, true).unwrap();
        }
        let state = run.state();
        assert!(run.swaps().iter().any(|swap| swap.taken > 0));
        (state.positions, state.velocities, state.states)
    };
    let one = run(&Pool::new(1));
    for found in together(3, move |company| run(&Pool::new(2).in_company(company))) {
        assert_eq!(found, one);
    }
}
