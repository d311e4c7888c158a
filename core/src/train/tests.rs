//! Training: the same bits for any number of threads and after any interruption, stops that are reported, files that read
//! back, rows dealt fairly, and a run that learns.

mod determinism;
mod fit;
mod learning;
mod objectives;
mod particles;
mod rows;
mod stops;
mod trainer;

use std::sync::Arc;

use super::*;
use crate::energy::{Coordinates, Form, ModelSpec};
use crate::engine::{Isa, Pool};
use crate::network::NetworkSpec;
use crate::process::sampler::GridStratified;
use crate::process::{Process, Spacing, TimeGrid, TimeSampler};

/// A model that trains in microseconds; its statistics are not those of a standardised set.
fn small(process: &str, form: Form) -> ModelSpec {
    let process = Process::by_name(process).unwrap();
    ModelSpec {
        grid: TimeGrid::new(12, 0.02, 0.95, Spacing::Linear {}).unwrap(),
        network: NetworkSpec::Mlp { width: 9, depth: 2 },
        form,
        features: 6,
        mean: vec![0.4, -0.3],
        variance: 0.7,
        ..ModelSpec::new(2, process)
    }
}

/// Two short stages with everything switched on.
fn settings(steps: [u64; 2]) -> TrainSettings {
    TrainSettings {
        seed: 5,
        times: TimeSampler::GridStratified(GridStratified {}),
        average: Some(0.9),
        ..TrainSettings::two_stages(16, steps[0], steps[1], 2)
    }
}

fn trainer(
    spec: &ModelSpec,
    settings: &TrainSettings,
    train: Endpoints,
    held_out: Option<(Endpoints, usize)>,
) -> Trainer {
    let pool = Arc::new(Pool::new(1));
    Trainer::new(spec, settings, train, held_out, pool, Isa::detect()).unwrap()
}

fn one(start: &(impl Source + Clone + 'static)) -> Endpoints {
    Endpoints {
        start: Arc::new(start.clone()),
        end: None,
    }
}
