//! The iteration against closed answers, its own likelihood, and itself on other numbers of threads.

use super::*;
use crate::rng::{Purpose, Stream};
use crate::system::mixture::tests::examples;

fn em<'a>(rows: &'a [f64], dim: usize, floor: &'a [f64], prior: f64) -> Em<'a> {
    Em {
        rows,
        weights: &[],
        dim,
        floor,
        periods: &[],
        prior,
        pool: None,
        isa: Isa::detect(),
    }
}

fn labels(n: usize, count: usize) -> Vec<usize> {
    (0..n)
        .map(|i| Stream::new(4, Purpose::Test, 8, i as u64).below(count as u64) as usize)
        .collect()
}

#[test]
fn one_component_is_the_sample_covariance() {
    let (dim, n) = (5, 333);
    let (rows, _) = examples(dim, 3)[2].sample(n, 5);
    let floor = [0.01, 0.02, 0.03, 0.04, 0.05];
    for shape in [Shape::Full, Shape::Diagonal] {
        let em = em(&rows, dim, &floor, 0.0);
        let start = em.start(shape, &vec![0; n], 1).unwrap();
        let (_, model) = em.run(start, (1e-12, 3)).unwrap();
        let mean = |i: usize| rows.iter().skip(i).step_by(dim).sum::<f64>() / n as f64;
        for i in 0..dim {
            assert!((model.means[i] - mean(i)).abs() < 1e-12);
            for j in 0..dim {
                let pairs = rows.chunks_exact(dim);
                let sum: f64 = pairs.map(|r| (r[i] - mean(i)) * (r[j] - mean(j))).sum();
                let expected = sum / n as f64 + if i == j { floor[i] } else { 0.0 };
                let found = match shape {
                    Shape::Full => model.covariances[i * dim + j],
                    _ if i == j => model.covariances[i],
                    _ => continue,
                };
                assert!((found - expected).abs() < 1e-11, "{found} {expected}");
            }
        }
    }
}

#[test]
fn the_likelihood_never_falls_without_a_prior() {
    let (dim, n) = (3, 700);
    for example in examples(dim, 4) {
        let (rows, _) = example.sample(n, 6);
        for shape in [Shape::Full, Shape::Diagonal] {
            let em = em(&rows, dim, &[0.0; 3], 0.0);
            let mut model = em.start(shape, &labels(n, 3), 3).unwrap();
            let mut last = f64::NEG_INFINITY;
            for _ in 0..40 {
                let sums = em.sums(&model, None);
                // A tenth of a row per weight is all that is not pure maximum likelihood.
                assert!(sums.log_likelihood > last - 1e-2, "{last}");
                last = sums.log_likelihood;
                em.maximise(&mut model, &sums).unwrap();
            }
            let direct: f64 = model.log_densities(em.isa, &rows).iter().sum();
            assert!(direct >= last - 1e-2);
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let (dim, n) = (4, 5003);
    let (rows, _) = examples(dim, 5)[2].sample(n, 7);
    let run = |pool: Option<&Pool>| {
        let em = Em {
            pool,
            ..em(&rows, dim, &[1e-6; 4], 6.0)
        };
        let start = em.start(Shape::LowRank(2), &labels(n, 5), 5).unwrap();
        let (mean, model) = em.run(start, (1e-9, 8)).unwrap();
        (mean, model.means, model.covariances)
    };
    let alone = run(None);
    for threads in [1, 2, 5] {
        assert!(run(Some(&Pool::new(threads))) == alone, "{threads} threads");
    }
}

/// A row of weight 3 is three rows, and a row of weight 0 is none: on the line, in the plane of a full matrix, and on a circle.
#[test]
fn weights_count_as_copies() {
    let (dim, n) = (2, 411);
    let (rows, _) = examples(dim, 7)[2].sample(n, 9);
    let weights: Vec<f64> = (0..n).map(|i| [1.0, 3.0, 0.0, 2.0][i % 4]).collect();
    let copies = |i: usize| std::iter::repeat_n(i, weights[i] as usize);
    let places: Vec<usize> = (0..n).flat_map(copies).collect();
    let repeated: Vec<f64> = places
        .iter()
        .flat_map(|i| rows[i * dim..][..dim].to_vec())
        .collect();
    let one = labels(n, 3);
    let all: Vec<usize> = places.iter().map(|i| one[*i]).collect();
    let floor = [1e-6, 2e-6];
    for (shape, periods) in [
        (Shape::Full, vec![]),
        (Shape::Diagonal, vec![]),
        (Shape::Diagonal, vec![5.0, 0.0]),
    ] {
        let weighted = Em {
            weights: &weights,
            periods: &periods,
            ..em(&rows, dim, &floor, 4.0)
        };
        let plain = Em {
            periods: &periods,
            ..em(&repeated, dim, &floor, 4.0)
        };
        let run = |em: &Em<'_>, labels: &[usize]| {
            let start = em.start(shape, labels, 3).unwrap();
            em.run(start, (0.0, 20)).unwrap()
        };
        let ((a, weighted), (b, plain)) = (run(&weighted, &one), run(&plain, &all));
        assert!((a - b).abs() < 1e-9, "{a} {b}");
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-7);
        assert!(close(&weighted.weights, &plain.weights));
        assert!(close(&weighted.means, &plain.means));
        assert!(close(&weighted.covariances, &plain.covariances));
    }
}

#[test]
fn a_component_without_rows_keeps_a_shape() {
    let (dim, n) = (2, 60);
    let (rows, _) = examples(dim, 6)[1].sample(n, 8);
    // Nothing belongs to the third cluster.
    let em = em(&rows, dim, &[1e-6; 2], 4.0);
    let start = em.start(Shape::Full, &labels(n, 2), 3).unwrap();
    let (mean, model) = em.run(start, (1e-6, 50)).unwrap();
    assert!(mean.is_finite() && model.weights.iter().all(|w| *w > 0.0));
}

/// On circles the likelihood never falls either, and a component that lies on the seam is found whole.
#[test]
fn components_lie_across_the_seam() {
    let period = 3.0;
    let n = 4000;
    // A third around the seam at 1.5 with spread 0.3, the rest around 0.2 with 0.15; the second column is plain.
    let rows: Vec<f64> = (0..n)
        .flat_map(|i| {
            let mut stream = Stream::new(9, Purpose::Test, 3, i as u64);
            let (centre, wide) = if i % 3 == 0 { (1.5, 0.3) } else { (0.2, 0.15) };
            let x = crate::energy::nearest(centre + wide * stream.normal(), period);
            [x, 0.5 + 0.4 * stream.normal()]
        })
        .collect();
    let em = Em {
        periods: &[period, 0.0],
        ..em(&rows, 2, &[0.0; 2], 0.0)
    };
    let start: Vec<usize> = rows
        .chunks(2)
        .map(|row| usize::from(row[0] > 0.9))
        .collect();
    let mut model = em.start(Shape::Diagonal, &start, 2).unwrap();
    let mut last = f64::NEG_INFINITY;
    for _ in 0..60 {
        let sums = em.sums(&model, None);
        assert!(sums.log_likelihood >= last - 1e-9 * last.abs());
        last = sums.log_likelihood;
        em.maximise(&mut model, &sums).unwrap();
    }
    let k = usize::from(model.weights[1] < model.weights[0]);
    // 1333 rows: mean to 0.3/sqrt(1333) = 0.008, spread to 0.006, weight to 0.0075.
    let mean = crate::energy::nearest(model.means[2 * k] - 1.5, period);
    assert!(mean.abs() < 4.0 * 0.0085, "{mean}");
    let wide = model.covariances[2 * k].sqrt();
    assert!((wide - 0.3).abs() < 4.0 * 0.007, "{wide}");
    assert!((model.weights[k] - 1.0 / 3.0).abs() < 4.0 * 0.008);
    // The same density a period away.
    let there: Vec<f64> = rows[..40]
        .chunks(2)
        .flat_map(|r| [r[0] - period, r[1]])
        .collect();
    let (a, b) = (
        model.log_densities(Isa::detect(), &rows[..40]),
        model.log_densities(Isa::detect(), &there),
    );
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9));
}
