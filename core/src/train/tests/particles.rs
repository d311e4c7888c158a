//! Energies of particles without their centre, learned from chains whose log-densities are known: the dimension, the volume and the weights of modes.

use super::*;
use crate::energy::{Energy, LearnedEnergy};
use crate::network::{EgnnSpec, TransformerSpec};
use crate::particles::Subspace;
use crate::rng::{Part, Purpose, Stream};
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

/// Trains on a chain; the mean of `log p - log p_model` over exact rows, and the share of rows whose every bond is longer than `split` under the model
/// and in truth.
fn learned(
    chain: &Chain,
    network: NetworkSpec,
    turned: bool,
    (steps, rate): (u64, f64),
    split: f64,
) -> (f64, f64, f64) {
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
    let mut endpoints = one(chain);
    if turned {
        let rows = Turned::new(endpoints.start, 4, Part::Training, 3, false).unwrap();
        endpoints.start = Arc::new(rows);
    }
    let mut run = trainer(&spec, &settings, endpoints, None);
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
    let (mut gap, mut all, mut longer, mut truth) = (0.0, 0.0, 0.0, 0.0);
    for (row, found) in rows.chunks_exact(chain.law.columns()).zip(&found) {
        let exact = chain.law.log_density(row);
        gap += (exact - (found - volume)) / 2000.0;
        let weight = (found - volume - exact).exp();
        let long = chain.law.bonds(row).all(|r| r > split);
        all += weight;
        longer += if long { weight } else { 0.0 };
        truth += if long { 1.0 / 2000.0 } else { 0.0 };
    }
    (gap, longer / all, truth)
}

#[test]
fn the_log_density_of_a_gaussian_chain_is_learned() {
    let chain = Chain::new(4, Bond::Harmonic { k: 1.7 });
    let egnn = EgnnSpec {
        types: vec![0, 1, 1, 0],
        ..EgnnSpec::new(4, 12, 2)
    };
    let (gap, ..) = learned(&chain, NetworkSpec::Egnn(egnn), false, (400, 5e-3), 1.0);
    // Nine dimensions. A dimension too many or too few would cost a nat, the Gaussian that the model starts from about two.
    assert!(gap.abs() < 0.3, "{gap}");
}

#[test]
fn the_weights_of_bonds_with_two_lengths_are_learned() {
    let bond = Bond::DoubleWell {
        short: 1.0,
        long: 2.2,
        height: 4.0,
        tilt: 1.3,
    };
    let chain = Chain::new(3, bond);
    let types = vec![0, 1, 0];
    let egnn = NetworkSpec::Egnn(EgnnSpec {
        types: types.clone(),
        ..EgnnSpec::new(3, 16, 2)
    });
    let (gap, found, truth) = learned(&chain, egnn, false, (800, 5e-3), 1.6);
    assert!(
        gap.abs() < 0.3 && (found - truth).abs() < 0.08,
        "{gap} {found} {truth}"
    );
    // A transformer learns rotations from rows that are turned.
    let transformer = NetworkSpec::Transformer(TransformerSpec {
        types,
        heads: 2,
        head_width: 8,
        ..TransformerSpec::new(3, 16, 2)
    });
    let (gap, found, truth) = learned(&chain, transformer, true, (800, 5e-3), 1.6);
    assert!(
        gap.abs() < 0.6 && (found - truth).abs() < 0.12,
        "{gap} {found} {truth}"
    );
}
