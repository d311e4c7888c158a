//! Networks over particles in space: energies know neither the frame nor the names of equal particles, scores and velocities turn and
//! change places with them, and mirror images are told apart where that is asked for. A transformer alone knows the frame.

use super::*;
use crate::energy::{Energy, Velocity};

/// About a slanted axis, by the formula of Rodrigues.
fn turned(y: &[f64]) -> Vec<f64> {
    let axis = [2.0 / 7.0, -3.0 / 7.0, 6.0 / 7.0];
    let (sin, cos) = 1.1_f64.sin_cos();
    y.chunks(3)
        .flat_map(|p| {
            let along: f64 = p.iter().zip(axis).map(|(p, a)| p * a).sum();
            let cross = |i: usize| {
                let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                axis[j] * p[k] - axis[k] * p[j]
            };
            [0, 1, 2].map(|i| cos * p[i] + sin * cross(i) + (1.0 - cos) * along * axis[i])
        })
        .collect()
}

fn moved(y: &[f64]) -> Vec<f64> {
    let by = [0.8, -1.9, 0.3];
    y.iter().enumerate().map(|(i, y)| y + by[i % 3]).collect()
}

fn mirrored(y: &[f64]) -> Vec<f64> {
    y.chunks(3).flat_map(|p| [-p[0], p[1], p[2]]).collect()
}

/// The first and last particles, which are alike, change places.
fn exchanged(y: &[f64]) -> Vec<f64> {
    let n = y.len();
    [&y[n - 3..], &y[3..n - 3], &y[..3]].concat()
}

/// What equal particles and turns must leave.
type Change = fn(&[f64]) -> Vec<f64>;

fn check<T: Real>(spec: &ModelSpec, accuracy: f64) {
    let model = learned::<T>(spec, &params::<f64>(spec, 9), Isa::detect());
    let (turn_too, mirror_too) = match &spec.network {
        NetworkSpec::Egnn(egnn) => (true, !egnn.cross),
        NetworkSpec::Transformer(_) => (false, false),
        _ => (true, true),
    };
    let time = 0.4;
    let subspace = spec.subspace();
    let outward = |y: Vec<f64>| match subspace {
        Some(subspace) => subspace.rows_outward(&y),
        None => y,
    };
    let y = outward(points(spec, time, 1));
    let at = |y: &[f64]| {
        // Rows of all particles in and out, whatever the model has.
        let y = &match subspace {
            Some(subspace) => subspace.rows_inward(y),
            None => y.to_vec(),
        };
        let (mut energy, mut score) = ([0.0], vec![0.0; y.len()]);
        model.energy_and_score(&[time], y, &mut energy, &mut score);
        let mut velocity = vec![0.0; y.len()];
        if let Ok(of) = model.velocity() {
            of.velocity(&[time], y, &mut velocity);
        }
        (energy[0], outward(score), outward(velocity))
    };
    let here = at(&y);
    let same = |change: Change, what: &str| {
        let there = at(&change(&y));
        assert_close(there.0, here.0, accuracy * (1.0 + here.0.abs()), what);
        for (found, of) in [(&there.1, &here.1), (&there.2, &here.2)] {
            let size = of.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
            for (found, expected) in found.iter().zip(change(of)) {
                assert_close(*found, expected, accuracy * size, what);
            }
        }
    };
    if turn_too {
        same(turned, "a turn");
    }
    same(exchanged, "equal particles");
    if mirror_too {
        same(mirrored, "a mirror");
    } else if accuracy < 1e-9 {
        // How much depends on form and process; rounding is far below.
        let there = at(&mirrored(&y)).0;
        assert!((there - here.0).abs() > 1e-6, "{there} {}", here.0);
    }
    // Particles that differ may not change places.
    let names = at(&[&y[3..6], &y[..3], &y[6..]].concat()).0;
    assert!((names - here.0).abs() > 1e-3, "{names} {}", here.0);
    if spec.process.is_interpolant() || spec.without_centre {
        let there = at(&moved(&y));
        assert_close(there.0, here.0, 10.0 * accuracy, "a translation");
        for of in [here.1, here.2] {
            for axis in 0..3 {
                let sum: f64 = of.iter().skip(axis).step_by(3).sum();
                assert_close(sum, 0.0, 10.0 * accuracy, "the centre of mass");
            }
        }
    }
}

#[test]
fn frames_and_equal_particles_do_not_matter() {
    for process in diffusions().into_iter().chain(interpolants()) {
        for form in FORMS {
            // |x|^2 / 2 has a centre.
            if process.is_interpolant() && form == Form::ResidualSquaredNorm {
                continue;
            }
            for told_apart in [true, false] {
                let mut spec = molecule(process, form, true);
                spec.velocity = process.is_interpolant();
                // Three particles lie in a plane, and a plane is its own mirror image: a fourth.
                (spec.dim, spec.mean) = (12, vec![0.0; 12]);
                if let NetworkSpec::Egnn(egnn) = &mut spec.network {
                    egnn.cross = told_apart;
                    egnn.particles = 4;
                    egnn.types = vec![0, 1, 2, 0];
                    egnn.bonds = vec![[0, 1], [3, 1]];
                }
                check::<f64>(&spec, 1e-11);
                check::<f32>(&spec, 1e-5);
                let free = without_centre(spec);
                check::<f64>(&free, 1e-11);
                check::<f32>(&free, 1e-5);
            }
            let mut spec = attentive(process, form, true);
            spec.velocity = process.is_interpolant();
            (spec.dim, spec.mean) = (12, vec![0.0; 12]);
            if let NetworkSpec::Transformer(transformer) = &mut spec.network {
                transformer.particles = 4;
                transformer.types = vec![0, 1, 2, 0];
            }
            check::<f64>(&spec, 1e-11);
            check::<f32>(&spec, 1e-5);
            let free = without_centre(spec);
            check::<f64>(&free, 1e-11);
            check::<f32>(&free, 1e-5);
        }
    }
}

/// A network that says nothing gives the Gaussian of the subspace, whose dimension is that of all but one particle.
#[test]
fn without_a_centre_the_gaussian_has_fewer_dimensions() {
    for process in diffusions() {
        let mut spec = without_centre(attentive(process, Form::Scalar, true));
        spec.variance = 0.7;
        let model = learned::<f64>(&spec, &vec![0.0; spec.layout().len()], Isa::detect());
        let time = 0.4;
        let (scale, noise) = (process.scale(time), process.noise(time));
        let variance = scale * scale * spec.variance + noise * noise;
        // Three particles in space, anywhere: the centre does not count.
        let row = [0.7, -0.4, 1.1, 0.2, -1.3, 0.5, 0.1, -0.8, 0.3];
        let subspace = spec.subspace().unwrap();
        let mut energy = [0.0];
        model.energy(&[time], &subspace.rows_inward(&row), &mut energy);
        let mut square = 0.0;
        for axis in 0..3 {
            let mean = (row[axis] + row[3 + axis] + row[6 + axis]) / 3.0;
            square += (0..3)
                .map(|i| (row[3 * i + axis] - mean).powi(2))
                .sum::<f64>();
        }
        let expected = 0.5 * square / variance + 3.0 * (std::f64::consts::TAU * variance).ln();
        assert_close(
            energy[0],
            expected,
            1e-12 * (1.0 + expected.abs()),
            process.name(),
        );
    }
    let mut spec = without_centre(molecule(diffusions()[0], Form::Scalar, true));
    spec.mean[1] = 0.5;
    assert!(
        spec.validate()
            .unwrap_err()
            .to_string()
            .contains("no place")
    );
    let mut spec = super::spec(diffusions()[0], Some(Form::Scalar), true);
    spec.without_centre = true;
    assert!(
        spec.validate()
            .unwrap_err()
            .to_string()
            .contains("at least 2 particles")
    );
}

#[test]
fn particles_that_cannot_be_are_refused() {
    let refused = |change: &dyn Fn(&mut EgnnSpec)| {
        let mut spec = molecule(diffusions()[0], Form::Scalar, true);
        if let NetworkSpec::Egnn(egnn) = &mut spec.network {
            change(egnn);
        }
        spec.validate().unwrap_err().to_string()
    };
    assert!(refused(&|s| s.particles = 4).contains("a divisor"));
    assert!(refused(&|s| s.types = vec![0, 1]).contains("one for each particle"));
    assert!(refused(&|s| s.types = vec![0, 9, 0]).contains("one for each particle"));
    assert!(refused(&|s| s.bonds = vec![[0, 3]]).contains("two different particles"));
    assert!(refused(&|s| s.bonds = vec![[1, 1]]).contains("two different particles"));
    assert!(refused(&|s| s.range = f64::NAN).contains("range"));
    assert!(refused(&|s| s.cutoff = Some(0.0)).contains("cutoff"));
    assert!(refused(&|s| s.width = 0).contains("width"));
    assert!(refused(&|s| s.depth = 65).contains("depth"));
    let refused = |change: &dyn Fn(&mut TransformerSpec)| {
        let mut spec = attentive(diffusions()[0], Form::Scalar, true);
        if let NetworkSpec::Transformer(transformer) = &mut spec.network {
            change(transformer);
        }
        spec.validate().unwrap_err().to_string()
    };
    assert!(refused(&|s| s.particles = 2).contains("a divisor"));
    assert!(refused(&|s| s.types = vec![0, 1]).contains("one for each particle"));
    assert!(refused(&|s| s.width = 0).contains("width"));
    assert!(refused(&|s| s.depth = 65).contains("depth"));
    assert!(refused(&|s| s.heads = 0).contains("heads"));
    assert!(refused(&|s| s.head_width = 0).contains("head_width"));
    let mut flat = molecule(diffusions()[0], Form::Scalar, true);
    flat.dim = 6;
    flat.mean.truncate(6);
    assert!(
        flat.validate()
            .unwrap_err()
            .to_string()
            .contains("three dimensions")
    );
}
