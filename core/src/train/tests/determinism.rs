//! The same bits for any number of threads and processes; every kernel path beside double precision; draws that belong to their row.

use super::*;
use crate::energy::tests as energies;
use crate::engine::Real;
use crate::engine::company::tests::together;
use crate::objective::tests::{Sum, clouds, endpoints, step, step_on};
use crate::process::sampler::{Grid, GridStratified, Uniform};

/// Score matching, classification among four levels, an interpolant, particles: batches of many tiles.
fn cases() -> Vec<(ModelSpec, Sum, usize)> {
    let model = |process: &str, form, width| ModelSpec {
        network: NetworkSpec::Mlp { width, depth: 3 },
        mean: vec![0.0; 8],
        ..ModelSpec {
            dim: 8,
            features: 16,
            ..small(process, form)
        }
    };
    let sum = |terms, levels, times| Sum {
        terms,
        levels,
        times,
    };
    vec![
        (
            model("vp", Form::InnerProduct, 64),
            sum("dsm", 1, TimeSampler::Grid(Grid {})),
            1000,
        ),
        (
            model("vp", Form::InnerProduct, 64),
            sum(
                "dsm+diffclf",
                4,
                TimeSampler::GridStratified(GridStratified {}),
            ),
            300,
        ),
        (
            model("ve", Form::ResidualSquaredNorm, 40),
            sum("dsm+diffclf", 3, TimeSampler::Uniform(Uniform {})),
            200,
        ),
        (
            model("linear", Form::InnerProductPlusScalar, 48),
            sum(
                "dsm+diffclf",
                2,
                TimeSampler::GridStratified(GridStratified {}),
            ),
            300,
        ),
        (
            energies::spec(energies::diffusions()[0], None, false),
            sum("dsm+diffclf", 2, TimeSampler::Grid(Grid {})),
            150,
        ),
    ]
}

/// Parameters of the usual start with small numbers where it has zeros.
fn params(spec: &ModelSpec) -> Vec<f32> {
    let start: Vec<f32> = spec.layout().initialise(1);
    let nudges: Vec<f32> = energies::params(spec, 2);
    start
        .iter()
        .zip(&nudges)
        .map(|(s, n)| if *s == 0.0 { 0.1 * n } else { *s })
        .collect()
}

fn run<T: Real>(
    spec: &ModelSpec,
    sum: Sum,
    batch: usize,
    params: &[f32],
    pool: Pool,
    isa: Isa,
) -> (Losses, Vec<T>) {
    let mut step = step_on::<T>(pool, spec, sum, batch, true, isa);
    let rows = clouds(spec);
    let params: Vec<T> = params.iter().map(|&p| T::from_f64(p as f64)).collect();
    let (mut losses, mut gradient) = (Losses::default(), vec![T::ZERO; params.len()]);
    // Twice: nothing may be left over from the run before.
    for number in [4, 3] {
        step.run(
            &params,
            number,
            &endpoints(spec, &rows),
            &mut losses,
            &mut gradient,
        )
        .unwrap();
    }
    (losses, gradient)
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    for (spec, sum, batch) in cases() {
        let params = params(&spec);
        for isa in Isa::available() {
            let bits = |threads| {
                bits(run::<f32>(
                    &spec,
                    sum,
                    batch,
                    &params,
                    Pool::new(threads),
                    isa,
                ))
            };
            let one = bits(1);
            for threads in [2, 5, 64] {
                assert!(
                    one == bits(threads),
                    "{sum:?}, {isa}, {threads} threads differ from 1"
                );
            }
        }
    }
}

fn bits((losses, gradient): (Losses, Vec<f32>)) -> (Vec<u64>, Vec<u32>) {
    (
        losses.terms.iter().map(|l| l.to_bits()).collect(),
        gradient.iter().map(|g| g.to_bits()).collect(),
    )
}

#[test]
fn the_same_bits_for_any_number_of_processes() {
    for (spec, sum, batch) in cases() {
        let (params, isa) = (params(&spec), Isa::detect());
        let alone = bits(run(&spec, sum, batch, &params, Pool::new(1), isa));
        for (size, threads) in [(2, 1), (3, 2), (4, 1), (5, 1)] {
            let (spec, params) = (spec.clone(), params.clone());
            let found = together(size, move |company| {
                let pool = Pool::new(threads).in_company(company);
                bits(run(&spec, sum, batch, &params, pool, isa))
            });
            assert!(
                found.iter().all(|bits| *bits == alone),
                "{sum:?}, {size} processes"
            );
        }
    }
}

#[test]
fn every_kernel_path_follows_double_precision() {
    for (spec, sum, batch) in cases() {
        let params = params(&spec);
        let (exact, reference) =
            run::<f64>(&spec, sum, batch, &params, Pool::new(1), Isa::PORTABLE);
        let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
        let length = norm(&mut reference.iter().copied());
        for isa in Isa::available() {
            let (losses, gradient) = run::<f32>(&spec, sum, batch, &params, Pool::new(1), isa);
            for (found, exact) in losses.terms.iter().zip(&exact.terms) {
                assert!(
                    (found / exact - 1.0).abs() < 1e-4,
                    "{sum:?}, {isa}: {found} {exact}"
                );
            }
            let apart = norm(
                &mut gradient
                    .iter()
                    .zip(&reference)
                    .map(|(g, r)| f64::from(*g) - r),
            );
            assert!(
                apart < 1e-4 * length,
                "{sum:?}, {isa}: gradients differ by {apart} of {length}"
            );
        }
    }
}

#[test]
fn draws_belong_to_their_row() {
    for (spec, sum, _) in cases() {
        let rows = clouds(&spec);
        let draws = |batch, threads, number| {
            step::<f32>(&spec, sum, batch, false, threads, Isa::detect())
                .draws(number, &endpoints(&spec, &rows))
        };
        let (few, many, later) = (draws(7, 1, 3), draws(64, 5, 3), draws(7, 1, 4));
        let (d, n) = (spec.dim, sum.levels);
        assert_eq!(few.start, many.start[..7 * d]);
        assert_eq!(few.noise, many.noise[..7 * n * d]);
        assert_eq!(few.times, many.times[..7 * n]);
        assert!(few.noise.iter().zip(&later.noise).all(|(a, b)| a != b));
        // Rows of one batch differ from each other.
        assert!(
            (0..d)
                .all(|c| many.noise[c] != many.noise[n * d + c]
                    && many.start[c] != many.start[d + c])
        );
    }
}

/// Training and held-out evaluation draw different noise and times for the same row of the same step.
#[test]
fn held_out_draws_are_others() {
    let (spec, sum, _) = cases().swap_remove(2);
    let rows = clouds(&spec);
    let draws = |part| {
        let plan = StepSpec {
            part,
            ..step::<f32>(&spec, sum, 8, false, 1, Isa::detect())
                .plan()
                .clone()
        };
        let step =
            Step::<f32>::new(&spec, plan, false, Arc::new(Pool::new(1)), Isa::detect()).unwrap();
        step.draws(0, &endpoints(&spec, &rows))
    };
    use crate::rng::Part;
    let (train, held_out) = (draws(Part::Training), draws(Part::HeldOut));
    assert!(train.noise.iter().zip(&held_out.noise).all(|(a, b)| a != b));
    assert!(train.times.iter().zip(&held_out.times).all(|(a, b)| a != b));
}
