//! Learned energies against a second implementation with dual numbers, against central differences, and against the identities
//! of their parameterisation. The sheet of cases serves the objectives' tests too.

mod contract;
mod derivatives;
mod identities;
mod particles;
mod periodic;
pub(crate) mod reference;

use std::sync::Arc;

use super::{Form, LearnedEnergy, ModelSpec};
use crate::base::{BaseEnds, MixtureBase, Spread, Spring, Springs, Term};
use crate::engine::{Isa, Pool, Real};
use crate::network::{EgnnSpec, NetworkSpec, TransformerSpec};
use crate::process::{
    Edm, Linear, Process, Spacing, TimeGrid, Trigonometric, VarianceExploding, VariancePreserving,
};
use crate::rng::{Purpose, Stream};

pub(crate) const FORMS: [Form; 5] = [
    Form::InnerProduct,
    Form::InnerProductPlusScalar,
    Form::SquaredNorm,
    Form::ResidualSquaredNorm,
    Form::Scalar,
];

/// A small model: 3 coordinates, or 3 particles in the plane if `form` is `None`; nothing in it is symmetric.
pub(crate) fn spec(process: Process, form: Option<Form>, centred: bool) -> ModelSpec {
    let (dim, network) = match form {
        Some(_) => (3, NetworkSpec::Mlp { width: 7, depth: 3 }),
        None => (
            6,
            NetworkSpec::Pairs {
                particles: 3,
                width: 5,
                depth: 2,
            },
        ),
    };
    let (t_min, t_max, spacing) = match process {
        Process::Edm(_) => (0.05, 0.9 * process.horizon(), Spacing::Power { rho: 3.0 }),
        _ => (0.05, 0.9, Spacing::Linear {}),
    };
    let mean = [0.7, -0.4, 1.1, 0.2, -1.3, 0.5];
    ModelSpec {
        grid: TimeGrid::new(9, t_min, t_max, spacing).unwrap(),
        network,
        form: form.unwrap_or(Form::Scalar),
        features: 6,
        mean: mean[..dim]
            .iter()
            .map(|m| if centred { 0.0 } else { *m })
            .collect(),
        variance: 0.6,
        ..ModelSpec::new(dim, process)
    }
}

/// A message-passing network with all it can have over three particles in space, two of them alike and bonded to the third.
pub(crate) fn molecule(process: Process, form: Form, centred: bool) -> ModelSpec {
    let mean = [0.7, -0.4, 1.1, 0.2, -1.3, 0.5, 0.1, -0.8, 0.3];
    ModelSpec {
        dim: 9,
        network: NetworkSpec::Egnn(EgnnSpec {
            types: vec![0, 1, 0],
            bonds: vec![[0, 1], [2, 1]],
            cross: true,
            range: 1.5,
            cutoff: Some(2.5),
            ..EgnnSpec::new(3, 4, 2)
        }),
        mean: mean.map(|m| if centred { 0.0 } else { m }).to_vec(),
        ..spec(process, Some(form), centred)
    }
}

/// Attention between the particles of [`molecule`].
pub(crate) fn attentive(process: Process, form: Form, centred: bool) -> ModelSpec {
    ModelSpec {
        network: NetworkSpec::Transformer(TransformerSpec {
            types: vec![0, 1, 0],
            heads: 2,
            head_width: 3,
            ..TransformerSpec::new(3, 8, 2)
        }),
        ..molecule(process, form, centred)
    }
}

/// The same of particles without their centre.
pub(crate) fn without_centre(mut spec: ModelSpec) -> ModelSpec {
    let particles = spec.network.particles().unwrap();
    spec.dim -= spec.dim / particles;
    spec.mean.truncate(spec.dim);
    spec.without_centre = true;
    spec
}

pub(crate) fn diffusions() -> [Process; 3] {
    [
        Process::VariancePreserving(VariancePreserving {
            beta_min: 0.3,
            beta_max: 11.0,
        }),
        Process::VarianceExploding(VarianceExploding {
            sigma_min: 0.05,
            sigma_max: 8.0,
        }),
        Process::Edm(Edm { sigma_max: 5.0 }),
    ]
}

pub(crate) fn interpolants() -> [Process; 2] {
    [
        Process::Linear(Linear { a: 0.7 }),
        Process::Trigonometric(Trigonometric { a: 1.3 }),
    ]
}

/// Every process with every form and with pairs; diffusions with mean zero and not.
pub(crate) fn sheet() -> Vec<ModelSpec> {
    let forms: Vec<Option<Form>> = FORMS.into_iter().map(Some).chain([None]).collect();
    let mut specs = Vec::new();
    for &form in &forms {
        for process in diffusions() {
            specs.push(spec(process, form, true));
            specs.push(spec(process, form, false));
        }
        specs.extend(interpolants().map(|process| spec(process, form, true)));
    }
    // Vectors over pairs, in sums that hold all of their uses.
    for (process, form) in [
        (diffusions()[0], Form::ResidualSquaredNorm),
        (interpolants()[1], Form::InnerProductPlusScalar),
    ] {
        specs.push(ModelSpec {
            form,
            ..spec(process, None, true)
        });
    }
    for (process, form) in [
        (diffusions()[0], Form::InnerProduct),
        (diffusions()[2], Form::Scalar),
        (interpolants()[0], Form::InnerProductPlusScalar),
    ] {
        specs.push(molecule(process, form, process.is_interpolant()));
    }
    // Waves, in every use of the network.
    for (process, form) in [
        (diffusions()[0], Form::InnerProductPlusScalar),
        (interpolants()[0], Form::Scalar),
    ] {
        specs.push(ModelSpec {
            network: NetworkSpec::Waves {
                width: 5,
                depth: 2,
                waves: 3,
            },
            ..spec(process, Some(form), process.is_interpolant())
        });
    }
    // On mixtures: components with axes of their own, and two ends that share a basis.
    for (process, form) in [
        (diffusions()[0], Form::InnerProduct),
        (diffusions()[1], Form::Scalar),
        (diffusions()[2], Form::InnerProductPlusScalar),
        (interpolants()[0], Form::InnerProduct),
        (interpolants()[1], Form::Scalar),
    ] {
        specs.push(ModelSpec {
            base: Some(base(process.is_interpolant())),
            ..spec(process, Some(form), process.is_interpolant())
        });
    }
    specs
}

/// Particles that attend to each other, and particles without their centre.
pub(crate) fn particle_sheet() -> Vec<ModelSpec> {
    let mut specs = Vec::new();
    for (process, form) in [
        (diffusions()[0], Form::InnerProduct),
        (diffusions()[2], Form::Scalar),
        (interpolants()[0], Form::InnerProductPlusScalar),
    ] {
        specs.push(attentive(process, form, process.is_interpolant()));
    }
    // Without their centre: two points stand for three particles.
    for (process, form) in [
        (diffusions()[0], Form::Scalar),
        (diffusions()[1], Form::InnerProduct),
        (interpolants()[1], Form::InnerProductPlusScalar),
    ] {
        for with in [molecule, attentive] {
            specs.push(without_centre(with(process, form, true)));
        }
        let pairs = spec(process, None, true);
        specs.push(without_centre(ModelSpec { form, ..pairs }));
    }
    // On springs, with a centre and without.
    for (k, mut on) in [
        molecule(diffusions()[0], Form::Scalar, true),
        without_centre(molecule(diffusions()[2], Form::InnerProduct, true)),
        without_centre(attentive(interpolants()[0], Form::InnerProduct, true)),
    ]
    .into_iter()
    .enumerate()
    {
        on.springs = Some(springs(&on.process, k));
        specs.push(on);
    }
    // A torsion needs four particles.
    let mut on = four(interpolants()[0]);
    on.springs = Some(springs_of_four(&on.process));
    specs.push(on);
    specs
}

/// A chain of four particles without their centre.
fn four(process: Process) -> ModelSpec {
    let of_three = molecule(process, Form::InnerProduct, true);
    without_centre(ModelSpec {
        dim: 12,
        network: NetworkSpec::Egnn(EgnnSpec {
            bonds: vec![[0, 1], [2, 1], [2, 3]],
            cross: true,
            ..EgnnSpec::new(4, 4, 1)
        }),
        mean: vec![0.0; 12],
        ..of_three
    })
}

/// The springs of [`springs`] with a torsion between them.
fn springs_of_four(process: &Process) -> Springs {
    let mut springs = springs(process, 1);
    let torsion = Term {
        of: vec![0, 1, 2, 3],
        class: 0,
    };
    let pair = Term {
        of: vec![3, 0],
        class: 1,
    };
    springs.soft = vec![torsion, pair];
    let numbers = [0.9, -0.5, 0.3, 0.7, 0.2, -0.4, 0.6, -0.1, 0.3];
    for (k, end) in springs.leaning.iter_mut().enumerate() {
        *end = numbers.map(|x| x - 0.2 * k as f64).to_vec();
    }
    springs
}

/// Springs of two classes of bonds and an angle between three particles, and two pairs that lean, whose numbers change along straight lines.
fn springs(process: &Process, k: usize) -> Springs {
    let spring = |middle, slope, stiffness, skew| Spring {
        middle,
        slope,
        stiffness,
        skew,
    };
    let term = |of: &[u32], class| Term {
        of: of.to_vec(),
        class,
    };
    let ends = if process.is_interpolant() { 2 } else { 1 };
    Springs {
        held: vec![term(&[0, 1], 0), term(&[2, 1], 1), term(&[0, 1, 2], 2)],
        soft: vec![term(&[2, 0], 0), term(&[0, 1], 1)],
        length: 0.9,
        times: vec![0.02, process.horizon()],
        springs: vec![
            vec![
                spring(0.8, -0.4, 2.3, 0.0),
                spring(1.3, 0.7, 0.9, 0.0),
                spring(-0.3, 0.5, 1.1, 0.8),
            ],
            vec![
                spring(0.5, -0.1 * k as f64, 0.2, 0.0),
                spring(1.9, -0.3, 0.0, 0.0),
                spring(0.1, -0.2, 0.6, -0.5),
            ],
        ],
        leaning: vec![
            vec![0.7, -0.3, 0.2, 0.4, 0.1, -0.6],
            vec![-0.5, 0.2, 0.1, 0.3, -0.2, 0.4],
        ][..ends]
            .to_vec(),
        strengths: vec![[1.0, 0.2][..ends].to_vec(), [0.3, 0.9][..ends].to_vec()],
        offsets: vec![-0.6, 1.1],
        curvatures: vec![3.1, 0.7],
    }
}

/// Both sheets.
pub(crate) fn full_sheet() -> Vec<ModelSpec> {
    let mut specs = sheet();
    specs.extend(particle_sheet());
    specs
}

/// A mixture in 3 dimensions, or two; nothing in it is symmetric.
pub(crate) fn base(interpolant: bool) -> BaseEnds {
    let basis = |angle: f64| {
        let (sin, cos) = angle.sin_cos();
        vec![cos, sin, 0.0, -sin, cos, 0.0, 0.0, 0.0, 1.0]
    };
    let means = vec![0.2, -0.5, 1.4, 1.3, 0.1, 0.6];
    let variances = vec![0.2, 0.5, 0.9, 0.4, 0.1, 0.3];
    let mixture = |weights: Vec<f64>, means: Vec<f64>, spread| {
        MixtureBase::new(3, weights, means, spread).unwrap()
    };
    if interpolant {
        let spread = |variances| Spread::Diagonal {
            variances,
            basis: Some(basis(0.7)),
        };
        return BaseEnds {
            start: mixture(vec![0.7, 0.3], means, spread(variances)),
            end: Some(mixture(
                vec![1.0],
                vec![-0.3, 0.4, 0.8],
                spread(vec![1.1, 0.3, 0.6]),
            )),
        };
    }
    let spread = Spread::Axes {
        rank: 3,
        axes: [basis(0.4), basis(-1.1)].concat(),
        variances,
        rest: vec![],
    };
    BaseEnds {
        start: mixture(vec![0.6, 0.4], means, spread),
        end: None,
    }
}

pub(crate) fn name(spec: &ModelSpec) -> String {
    let network = match spec.network {
        NetworkSpec::Mlp { .. } => "mlp",
        NetworkSpec::Waves { .. } => "waves",
        NetworkSpec::Pairs { .. } => "pairs",
        NetworkSpec::Egnn(_) => "egnn",
        NetworkSpec::Transformer(_) => "transformer",
    };
    format!(
        "{}, {network}{}, {:?}, mean {:?}, {}",
        spec.process.name(),
        if spec.without_centre {
            " without centre"
        } else {
            ""
        },
        spec.form,
        spec.mean[0],
        if spec.base.is_some() {
            "on a mixture"
        } else if spec.springs.is_some() {
            "on springs"
        } else {
            "on a Gaussian"
        }
    )
}

/// Parameters none of which is zero, F(t) included.
pub(crate) fn params<T: Real>(spec: &ModelSpec, seed: u64) -> Vec<T> {
    let start: Vec<f64> = spec.layout().initialise(seed);
    let mut stream = Stream::new(seed, Purpose::Test, 0, 0);
    start
        .iter()
        .map(|p| T::from_f64(p + 0.3 * stream.normal()))
        .collect()
}

pub(crate) fn learned<T: Real>(spec: &ModelSpec, params: &[f64], isa: Isa) -> LearnedEnergy<T> {
    let params = params.iter().map(|&p| T::from_f64(p)).collect();
    LearnedEnergy::new(spec.clone(), params, Arc::new(Pool::new(1)), isa).unwrap()
}

/// Times strictly inside cells of the grid, so that F has a slope there.
fn times(spec: &ModelSpec) -> Vec<f64> {
    let grid = spec.grid.times();
    [(0, 0.4), (3, 0.7), (7, 0.2)]
        .map(|(k, share): (usize, f64)| grid[k] + share * (grid[k + 1] - grid[k]))
        .to_vec()
}

/// Points where the model's Gaussian has its mass.
fn points(spec: &ModelSpec, time: f64, n: usize) -> Vec<f64> {
    let (scale, noise) = (spec.process.scale(time), spec.process.noise(time));
    let spread = (scale * scale * spec.variance + noise * noise).sqrt();
    let mut stream = Stream::new(21, Purpose::Test, 0, time.to_bits());
    (0..n * spec.dim)
        .map(|k| scale * spec.mean[k % spec.dim] + 1.2 * spread * stream.normal())
        .collect()
}

/// Central difference with five points: its error is of fourth order, so `h` can be large enough for rounding not to matter.
fn difference(h: f64, f: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

#[track_caller]
fn assert_close(found: f64, expected: f64, allowed: f64, what: &str) {
    assert!(
        (found - expected).abs() <= allowed,
        "{what}: {found}, expected {expected}"
    );
}
