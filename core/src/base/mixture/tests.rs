//! Mixtures of every kind against full matrices, their samples, and hostile files.

use super::*;
use crate::rng::Purpose;
use crate::system::matrix::tests::random_covariance;
use crate::system::mixture::tests::examples;

/// Lopsided bases: diagonal, diagonal in a turned basis, full, of low rank.
pub(in super::super) fn bases(dim: usize, row: u64) -> [MixtureBase; 4] {
    let [_, diagonal, full] = examples(dim, row).try_into().unwrap();
    let rank = (dim / 2).max(1);
    let (mut axes, mut variances, mut rest) = (vec![], vec![], vec![]);
    for k in 0..3 {
        axes.extend(basis(dim, 30 + 10 * row + k)[..rank * dim].iter());
        variances.extend((0..rank).map(|i| 0.3 + 0.4 * (i + k as usize) as f64));
        rest.push(0.11 + 0.05 * k as f64);
    }
    if rank == dim {
        rest.clear();
    }
    let low = Spread::Axes {
        rank,
        axes,
        variances,
        rest,
    };
    [
        MixtureBase::try_from(&diagonal).unwrap(),
        turned(dim, row, Some(basis(dim, 20 + row))),
        MixtureBase::try_from(&full).unwrap(),
        MixtureBase::new(dim, full.weights().to_vec(), diagonal.means().to_vec(), low).unwrap(),
    ]
}

/// A diagonal base in a given basis.
pub(in super::super) fn turned(dim: usize, row: u64, basis: Option<Vec<f64>>) -> MixtureBase {
    let diagonal = &examples(dim, row + 50)[1];
    let Covariance::Diagonal(variances) = diagonal.covariance().clone() else {
        panic!("the second example is diagonal")
    };
    MixtureBase::new(
        dim,
        diagonal.weights().to_vec(),
        diagonal.means().to_vec(),
        Spread::Diagonal { variances, basis },
    )
    .unwrap()
}

fn basis(dim: usize, row: u64) -> Vec<f64> {
    symmetric_eigen(&random_covariance(dim, row), dim).1
}

#[test]
fn densities_are_those_of_the_full_matrices() {
    for dim in [1, 2, 5] {
        for base in bases(dim, 3) {
            let target = base.to_gaussian_mixture().unwrap();
            for (point, _) in [target.sample(6, 1)] {
                for point in point.chunks(dim) {
                    let (found, expected) = (base.log_density(point), target.log_density(point));
                    assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()));
                }
            }
            let smallest = (0..3)
                .flat_map(|k| symmetric_eigen(&base.component_covariance(k), dim).0)
                .fold(f64::INFINITY, f64::min);
            assert!((base.smallest_width() - smallest.sqrt()).abs() < 1e-9);
        }
    }
}

#[test]
fn samples_have_the_inflated_moments() {
    let (dim, n) = (3, 20_000);
    for base in bases(dim, 4) {
        let (mut sum, mut squares) = (vec![0.0; dim], vec![0.0; dim * dim]);
        let (mut point, mut room) = (vec![0.0; dim], vec![0.0; dim]);
        for row in 0..n {
            let mut stream = Stream::new(4, Purpose::Test, 1, row);
            base.sample_point(2.0, &mut stream, &mut point, &mut room);
            add(1.0, &point, &mut sum);
            for i in 0..dim {
                add(point[i], &point, &mut squares[i * dim..][..dim]);
            }
        }
        // Second moments: sum_k w_k (4 Sigma_k + mu_k mu_k^T). A product of two normals of variance v has variance at most
        // 3 v^2; 4 sigma of its mean.
        for i in 0..dim {
            for j in 0..dim {
                let expected: f64 = (0..3)
                    .map(|k| {
                        let m = base.component_mean(k);
                        base.weights()[k]
                            * (4.0 * base.component_covariance(k)[i * dim + j] + m[i] * m[j])
                    })
                    .sum();
                let scale = squares[i * dim + i].max(squares[j * dim + j]) / n as f64;
                let found = squares[i * dim + j] / n as f64;
                assert!((found - expected).abs() < 4.0 * 1.8 * scale / (n as f64).sqrt());
            }
        }
    }
}

#[test]
fn files_bring_back_every_bit_and_hostile_ones_are_refused() {
    for base in bases(3, 5) {
        let text = serde_json::to_string(&base).unwrap();
        assert_eq!(serde_json::from_str::<MixtureBase>(&text).unwrap(), base);
    }
    let [diagonal, .., low] = bases(3, 5);
    let edit = |base: &MixtureBase, change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = serde_json::to_value(base).unwrap();
        change(&mut value);
        serde_json::from_value::<MixtureBase>(value)
            .unwrap_err()
            .to_string()
    };
    type Change<'a> = &'a dyn Fn(&mut serde_json::Value);
    let cases: [(&MixtureBase, Change<'_>, &str); 11] = [
        (&diagonal, &|v| v["dim"] = 0.into(), "dimension"),
        (&diagonal, &|v| v["dim"] = u64::MAX.into(), "numbers"),
        (&diagonal, &|v| v["weights"][1] = 0.into(), "positive"),
        (
            &diagonal,
            &|v| v["weights"] = serde_json::json!([]),
            "0 weights",
        ),
        (
            &diagonal,
            &|v| v["means"] = serde_json::json!([1.0]),
            "means",
        ),
        (
            &diagonal,
            &|v| v["spread"]["variances"][2] = (-1.0).into(),
            "variance",
        ),
        (
            &diagonal,
            &|v| v["spread"]["variances"][2] = 1e200.into(),
            "variance",
        ),
        (
            &diagonal,
            &|v| v["spread"]["kind"] = "round".into(),
            "round",
        ),
        (
            &low,
            &|v| v["spread"]["rank"] = 0.into(),
            "axes per component",
        ),
        (
            &low,
            &|v| v["spread"]["axes"][0] = 3.0.into(),
            "orthonormal",
        ),
        (
            &low,
            &|v| v["spread"]["rest"] = serde_json::json!([0.1]),
            "rest",
        ),
    ];
    for (base, change, word) in cases {
        let message = edit(base, change);
        assert!(message.contains(word), "{message}");
    }
}
