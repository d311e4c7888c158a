//! Log-densities of particles, learned by an EGNN and compared with what is known: chains of thirteen harmonic bonds and of four bonds with
//! two lengths (exact log-density, mode by mode), and thirteen Lennard-Jones particles (frames of MALA).
//!
//! ```console
//! $ cargo run --release -p diffclf --example particle_densities -- 3000 2
//! ```
//! Steps of each training, threads. One line of JSON for each system.

use std::sync::Arc;
use std::time::Instant;

use diffclf::Result;
use diffclf::energy::{Closure, Coordinates, Energy, Form, LearnedEnergy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::network::{EgnnSpec, NetworkSpec};
use diffclf::particles::Subspace;
use diffclf::process::{Process, Spacing, TimeGrid};
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::mcmc::{HeldEnergy, Kernel};
use diffclf::sample::{Dynamics, Ensemble};
use diffclf::system::{BeadChain, Bond, LennardJones};
use diffclf::train::{Endpoints, InMemory, Shuffled, TrainSettings, Trainer, finish};

/// Rows to learn from, and as many others to compare at.
const ROWS: usize = 20_000;
const BATCH: usize = 128;

/// log p of a row, up to a constant.
type LogDensity<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

/// What is known of a system.
struct System<'a> {
    name: &'a str,
    particles: usize,
    bonds: Vec<[u32; 2]>,
    rows: Vec<f64>,
    log_density: LogDensity<'a>,
}

/// `log p - log p_model` at rows that were not learned from.
fn gaps(system: &System<'_>, steps: u64, pool: &Arc<Pool>) -> Result<Vec<f64>> {
    let subspace = Subspace::new(system.particles, 3)?;
    let dim = subspace.dim();
    let points = subspace.rows_inward(&system.rows);
    let square: f64 = points.iter().map(|x| x * x).sum();
    let scale = (square / points.len() as f64).sqrt();
    let points: Vec<f64> = points.iter().map(|x| x / scale).collect();
    let (first, others) = points.split_at(ROWS * dim);
    let network = EgnnSpec {
        bonds: system.bonds.clone(),
        ..EgnnSpec::new(system.particles, 32, 3)
    };
    let spec = ModelSpec {
        network: NetworkSpec::Egnn(network),
        form: Form::Scalar,
        without_centre: true,
        grid: TimeGrid::new(512, 1e-3, 0.999, Spacing::Linear {})?,
        ..ModelSpec::new(dim, Process::default())
    };
    let table = InMemory::new(first.iter().map(|x| *x as f32).collect(), dim);
    let identity = Coordinates::identity(dim);
    let source = Shuffled::split(0, Arc::new(table), &identity, BATCH, 7, 0).0;
    let from = Endpoints {
        start: Arc::new(source),
        end: None,
    };
    let settings = TrainSettings::two_stages(BATCH, steps / 2, steps - steps / 2, 2);
    let isa = Isa::detect();
    let mut trainer = Trainer::new(&spec, &settings, from, None, pool.clone(), isa)?;
    finish(&mut trainer)?;
    let params = trainer.averaged().to_vec();
    let model = LearnedEnergy::<f32>::new(spec.clone(), params, pool.clone(), isa)?;
    let count = others.len() / dim;
    let mut found = vec![0.0; count];
    model.log_density(&[spec.grid.t_min()], others, &mut found);
    let volume = dim as f64 * scale.ln();
    let rows = system.rows[ROWS * subspace.columns()..].chunks_exact(subspace.columns());
    let exact = rows.map(|row| (system.log_density)(row));
    Ok(exact.zip(&found).map(|(p, q)| p - (q - volume)).collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation.
fn spread(values: &[f64]) -> f64 {
    let mean = mean(values);
    let square = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (square / values.len() as f64).sqrt()
}

fn rows_of(law: &BeadChain) -> Vec<f64> {
    let mut rows = vec![0.0; 2 * ROWS * law.columns()];
    for (k, row) in rows.chunks_exact_mut(law.columns()).enumerate() {
        law.sample_row(&mut Stream::new(5, Purpose::Test, 0, k as u64), row);
    }
    rows
}

/// Frames of many chains of MALA, the first third left out, and the acceptance.
fn frames_of(cluster: LennardJones) -> Result<(Vec<f64>, f64)> {
    let dim = cluster.columns();
    let energy = Closure::new(dim, move |_, row: &[f64], score: &mut [f64]| {
        cluster.energy_and_score(row, score)
    });
    let dynamics = Dynamics {
        kernel: Kernel::by_name("mala")?,
        step: 0.001,
        masses: Vec::new(),
        thin: 400,
        seed: 1,
    };
    let chains = 80;
    let frames = 3 * ROWS / chains;
    let target = HeldEnergy {
        energy: &energy,
        time: 0.0,
    };
    let start = LennardJones::icosahedron().repeat(chains);
    let mut ensemble = Ensemble::start(&dynamics, &[target], start)?;
    let mut points = vec![0.0; frames * chains * dim];
    ensemble.advance(frames, &mut points, &mut vec![0.0; frames * chains]);
    Ok((points.split_off(ROWS * dim), ensemble.acceptance()))
}

fn chain_bonds(beads: u32) -> Vec<[u32; 2]> {
    (1..beads).map(|bead| [bead - 1, bead]).collect()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let steps = numbers.next().transpose()?.unwrap_or(3000);
    let threads = numbers.next().transpose()?.unwrap_or(2);
    let pool = Arc::new(Pool::new(threads as usize));
    let well = Bond::DoubleWell {
        short: 1.0,
        long: 2.2,
        height: 4.0,
        tilt: 1.3,
    };
    let harmonic = BeadChain::new(13, Bond::Harmonic { k: 1.7 })?;
    let wells = BeadChain::new(5, well)?;
    let cluster = LennardJones::new(13, 1.0, 1.0)?;
    let (frames, acceptance) = frames_of(cluster)?;
    let systems = [
        System {
            name: "harmonic chain",
            particles: 13,
            bonds: chain_bonds(13),
            rows: rows_of(&harmonic),
            log_density: Box::new(|row| harmonic.log_density(row)),
        },
        System {
            name: "double wells",
            particles: 5,
            bonds: chain_bonds(5),
            rows: rows_of(&wells),
            log_density: Box::new(|row| wells.log_density(row)),
        },
        System {
            name: "Lennard-Jones",
            particles: 13,
            bonds: Vec::new(),
            rows: frames,
            log_density: Box::new(|row| -cluster.energy_and_score(row, &mut vec![0.0; 39])),
        },
    ];
    for system in &systems {
        let start = Instant::now();
        let gaps = gaps(system, steps, &pool)?;
        let error = spread(&gaps) / (gaps.len() as f64).sqrt();
        let mut line = format!(
            r#"{{"system": "{}", "particles": {}, "steps": {steps}, "gap": {:.4}, "error": {error:.4}, "spread": {:.4}, "seconds": {:.0}"#,
            system.name,
            system.particles,
            mean(&gaps),
            spread(&gaps),
            start.elapsed().as_secs_f64(),
        );
        let columns = 3 * system.particles;
        let rows = system.rows[ROWS * columns..].chunks_exact(columns);
        if system.name == "double wells" {
            // Where the weights of the modes are right the gap is the same for any number of long bonds.
            let longer = |row: &[f64]| wells.bonds(row).filter(|r| *r > 1.6).count();
            let count: Vec<usize> = rows.map(longer).collect();
            let modes = (0..system.particles).map(|mode| {
                let of_mode = gaps.iter().zip(&count).filter(|(_, count)| **count == mode);
                let of_mode: Vec<f64> = of_mode.map(|(gap, _)| *gap).collect();
                let error = spread(&of_mode) / (of_mode.len() as f64).sqrt();
                format!("[{}, {:.4}, {error:.4}]", of_mode.len(), mean(&of_mode))
            });
            let modes = modes.collect::<Vec<_>>().join(", ");
            line += &format!(r#", "rows_gap_error_by_long_bonds": [{modes}]"#);
        } else if system.name == "Lennard-Jones" {
            let energies: Vec<f64> = rows.map(|row| -(system.log_density)(row)).collect();
            line += &format!(
                r#", "spread_of_energies": {:.4}, "mala_acceptance": {acceptance:.3}"#,
                spread(&energies)
            );
        }
        println!("{line}}}");
    }
    Ok(())
}
