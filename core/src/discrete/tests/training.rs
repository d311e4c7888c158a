//! A learned energy: its programs against plain loops, its file, the same bytes on any number of threads, and that it learns.

use super::by_hand::by_hand;
use super::losses::{Drawn, random_params, small_spec, small_specs};
use super::*;
use crate::discrete::LearnedStates;
use crate::discrete::metric::{all_log_densities, enumerated};
use crate::discrete::model::{Content, StatesCheckpoint, StatesModel, StatesSpec};
use crate::discrete::network::SitesNetwork;
use crate::discrete::system::Lattice;
use crate::discrete::train::{StatesCourse, StatesSettings};
use crate::engine::{Isa, Pool};
use crate::model::{DataRecord, Record};
use crate::objective::parse_sum;
use crate::process::TimeSampler;
use crate::rng::STREAMS;
use crate::train::{Adam, Decay, Rate, StageSettings, Trainer, finish};

fn settings(terms: &str, levels: usize, steps: u64, batch: usize) -> StatesSettings {
    StatesSettings {
        seed: 3,
        batch,
        times: TimeSampler::default(),
        clip: Some(1.0),
        adam: Adam::default(),
        average: Some(0.99),
        held_out: None,
        rotate: false,
        levelling: false,
        stages: vec![StageSettings {
            steps,
            levels,
            objectives: parse_sum(terms).unwrap(),
            rate: Rate {
                peak: 3e-3,
                decay: Decay::Cosine,
                warm_up: 0,
            },
        }],
    }
}

fn learned(spec: &StatesSpec, params: Vec<f32>) -> LearnedStates {
    LearnedStates::new(spec.clone(), params, Arc::new(Pool::new(1)), Isa::detect()).unwrap()
}

#[test]
fn programs_agree_with_plain_loops() {
    let space = Space {
        sites: 3,
        states: 3,
    };
    let processes = [Process::default(), Process::by_name("masked").unwrap()];
    for spec in processes
        .into_iter()
        .flat_map(|process| small_specs(space, process))
    {
        let process = spec.process;
        let params = random_params(&spec);
        let energy = learned(&spec, params.iter().map(|x| *x as f32).collect());
        let rows = noisy_rows(spec.space, &process);
        let count = rows.len() / 3;
        for level in [0, 5, 11] {
            let time = spec.grid.times()[level];
            let mut found = vec![0.0; count];
            energy.log_density(time, &rows, &mut found);
            for (row, found) in rows.chunks_exact(3).zip(&found) {
                let expected = by_hand(&spec, &params, level, row);
                assert!(
                    (found - expected).abs() < 1e-4 * (1.0 + expected.abs()),
                    "{found} {expected}"
                );
            }
            let symbols = spec.symbols();
            let (mut ratios, mut apart) = (vec![0.0; rows.len() * symbols], vec![0.0; 3 * symbols]);
            energy.log_ratios(time, &rows, &mut ratios);
            for (row, ratios) in rows.chunks_exact(3).zip(ratios.chunks_exact(3 * symbols)) {
                for (k, out) in apart.iter_mut().enumerate() {
                    let mut other = row.to_vec();
                    other[k / symbols] = (k % symbols) as u8;
                    *out = by_hand(&spec, &params, level, &other)
                        - by_hand(&spec, &params, level, row);
                }
                for (a, b) in ratios.iter().zip(&apart) {
                    assert!((a - b).abs() < 2e-4 * (1.0 + b.abs()), "{a} {b}");
                }
            }
        }
    }
}

#[test]
fn threads_change_no_bit_and_files_come_back() {
    let target: Arc<dyn Target> = Arc::new(mixture());
    let spec = small_spec(target.space(), Process::default());
    let settings = settings("score-entropy(sites=2)+diffclf", 3, 6, 70);
    let run = |threads: usize| {
        let source = Arc::new(Drawn(target.clone(), 9));
        let pool = Arc::new(Pool::new(threads));
        let course =
            StatesCourse::new(&spec, &settings, source, None, pool, Isa::detect()).unwrap();
        let mut trainer = Trainer::of(course, &settings).unwrap();
        finish(&mut trainer).unwrap();
        trainer.state().clone()
    };
    let state = run(1);
    assert_eq!(state, run(2));
    let content = Content {
        spec: spec.clone(),
        record: Record {
            version: "0".into(),
            settings: settings.clone(),
            steps: 6,
            data: vec![DataRecord {
                name: "x".into(),
                system_seed: None,
                rows: None,
                sha256: None,
                steps: Vec::new(),
                columns: Vec::new(),
                origins: Vec::new(),
                weights: None,
            }],
            units: "kT".into(),
            streams: STREAMS,
            levelled: None,
        },
    };
    let model = StatesModel {
        content: content.clone(),
        params: state.params.clone(),
        average: Some(state.average.clone()),
    };
    let bytes = model.to_bytes().unwrap();
    assert_eq!(StatesModel::from_bytes(&bytes).unwrap(), model);
    let checkpoint = StatesCheckpoint { content, state };
    assert_eq!(
        StatesCheckpoint::from_bytes(&checkpoint.to_bytes().unwrap()).unwrap(),
        checkpoint
    );
    // A model of points is none of states, and the other way round.
    let error = crate::model::Model::from_bytes(&bytes)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("it is a model of states, expected a model"),
        "{error}"
    );
    let mut bad = model.clone();
    bad.content.spec.laws[0] = -1.0;
    assert!(StatesModel::from_bytes(&bad.to_bytes().unwrap()).is_err());
    let mut odd = model;
    odd.content.spec.features = 5;
    assert!(StatesModel::from_bytes(&odd.to_bytes().unwrap()).is_err());
}

#[test]
fn wrong_settings_are_refused() {
    let space = Space {
        sites: 3,
        states: 3,
    };
    let spec = small_spec(space, Process::default());
    let try_terms = |terms: &str, levels| {
        let settings = settings(terms, levels, 1, 4);
        let source = Arc::new(Drawn(Arc::new(mixture()), 9));
        StatesCourse::new(
            &spec,
            &settings,
            source,
            None,
            Arc::new(Pool::new(1)),
            Isa::detect(),
        )
        .map(|_| ())
    };
    assert!(try_terms("score-entropy", 1).is_ok());
    for (terms, levels, word) in [
        ("diffclf", 1, "between 2"),
        ("binary-diffclf", 3, "between 2 and 2"),
        ("diffclf+diffclf", 2, "twice"),
    ] {
        let message = try_terms(terms, levels).unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
    let message = parse_sum::<crate::discrete::objective::StatesObjectiveName>("dsm")
        .unwrap_err()
        .to_string();
    assert!(message.contains("score-entropy"), "{message}");
    for (sites, states) in [(0, 2), (3, 1), (3, 251), (1 << 20, 2)] {
        assert!(StatesSpec::new(Space { sites, states }, Process::default()).is_err());
    }
}

/// A small lattice, a small network, a few seconds: the learned density is the lattice's.
fn learns_a_lattice(network: SitesNetwork, (steps, batch): (u64, usize), nats: f64) {
    let table = Table::of(&Lattice::ising(2, 3, 0.45, 0.1)).unwrap();
    let law = table.blurred(Process::default().keep(0.02));
    let target: Arc<dyn Target> = Arc::new(table);
    let mut spec = small_spec(target.space(), Process::default());
    spec.laws.fill(0.5);
    spec.network = network;
    let settings = settings("score-entropy+diffclf", 4, steps, batch);
    let source = Arc::new(Drawn(target.clone(), 9));
    let course = StatesCourse::new(
        &spec,
        &settings,
        source,
        None,
        Arc::new(Pool::new(1)),
        Isa::detect(),
    )
    .unwrap();
    let mut trainer = Trainer::of(course, &settings).unwrap();
    finish(&mut trainer).unwrap();
    let energy = learned(&spec, trainer.averaged().to_vec());
    let all = all_log_densities(&energy, 0.02).unwrap();
    let found = enumerated(&all, &law);
    // Independent sites are 1.1 nats away.
    assert!(
        found.normalised_divergence < nats && found.log_total.abs() < 0.1,
        "{found:?}"
    );
}

#[test]
fn a_perceptron_learns_a_lattice() {
    learns_a_lattice(
        SitesNetwork::Mlp {
            width: 32,
            depth: 2,
        },
        (1500, 256),
        0.03,
    );
}

#[test]
fn a_transformer_learns_a_lattice() {
    learns_a_lattice(
        SitesNetwork::Transformer {
            width: 16,
            depth: 1,
            heads: 2,
            head_width: 8,
        },
        (400, 64),
        0.1,
    );
}
