//! An energy of particles without their centre, learned from chains whose log-density is known: the dimension and the volume are right.

use super::*;
use crate::energy::{Energy, LearnedEnergy};
use crate::network::EgnnSpec;
use crate::particles::Subspace;
use crate::rng::{Purpose, Stream};
use crate::system::{BeadChain, Bond};

/// Fresh rows of a chain, in coordinates of the subspace, over a scale.
#[derive(Clone)]
struct Chain {
    law: BeadChain,
    subspace: Subspace,
    scale: f64,
}

impl Chain {
    fn new(beads: usize, bond: Bond) -> Chain {
        let law = BeadChain::new(beads, bond).unwrap();
        let subspace = Subspace::new(beads, 3).unwrap();
        let mut chain = Chain {
            law,
            subspace,
            scale: 1.0,
        };
        let rows = chain.rows(4000, 1);
        let square: f64 = rows.iter().map(|x| x * x).sum();
        chain.scale = (square / 4000.0 / subspace.dim() as f64).sqrt();
        chain
    }

    fn rows(&self, count: u64, seed: u64) -> Vec<f64> {
        let mut rows = vec![0.0; count as usize * self.law.columns()];
        for (k, row) in rows.chunks_exact_mut(self.law.columns()).enumerate() {
            let mut stream = Stream::new(seed, Purpose::Test, 0, k as u64);
            self.law.sample_row(&mut stream, row);
        }
        rows
    }
}

impl Source for Chain {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let mut row = [0.0; 64];
        let row = &mut row[..self.law.columns()];
        let mut stream = Stream::new(1, Purpose::Data, step, unit as u64);
        self.law.sample_row(&mut stream, row);
        let mut point = [0.0; 64];
        let point = &mut point[..self.subspace.dim()];
        self.subspace.inward(row, point);
        for (out, x) in out.iter_mut().zip(point) {
            *out = (*x / self.scale) as f32;
        }
    }
}

/// Trains on a chain; the mean of `log p - log p_model` over exact rows.
fn learned(chain: &Chain, network: NetworkSpec, (steps, rate): (u64, f64)) -> f64 {
    let dim = chain.subspace.dim();
    let spec = ModelSpec {
        grid: TimeGrid::default_for(&Process::default())
            .with_levels(64)
            .unwrap(),
        network,
        form: Form::Scalar,
        features: 16,
        without_centre: true,
        ..ModelSpec::new(dim, Process::default())
    };
    let mut settings = TrainSettings {
        average: Some(0.99),
        ..TrainSettings::two_stages(96, 0, steps, 2)
    };
    settings.stages[1].rate.peak = rate;
    let mut run = trainer(&spec, &settings, one(chain), None);
    finish(&mut run).unwrap();
    let params = run.averaged().to_vec();
    let pool = Arc::new(Pool::new(1));
    let energy = LearnedEnergy::<f32>::new(spec.clone(), params, pool, Isa::detect()).unwrap();
    let rows = chain.rows(2000, 7);
    let mut points = chain.subspace.rows_inward(&rows);
    points.iter_mut().for_each(|x| *x /= chain.scale);
    let mut found = vec![0.0; 2000];
    energy.log_density(&[spec.grid.t_min()], &points, &mut found);
    let volume = dim as f64 * chain.scale.ln();
    let rows = rows.chunks_exact(chain.law.columns()).zip(&found);
    let gaps = rows.map(|(row, found)| chain.law.log_density(row) - (found - volume));
    gaps.sum::<f64>() / 2000.0
}

#[test]
fn the_log_density_of_a_gaussian_chain_is_learned() {
    let chain = Chain::new(4, Bond::Harmonic { k: 1.7 });
    let egnn = EgnnSpec {
        types: vec![0, 1, 1, 0],
        ..EgnnSpec::new(4, 12, 2)
    };
    let gap = learned(&chain, NetworkSpec::Egnn(egnn), (400, 5e-3));
    // So short a run leaves 0.3 nats. The three dimensions of the centre, with its Gaussian of the noisiest level, would cost 2.8.
    assert!(gap.abs() < 0.6, "{gap}");
}
