//! What the base of an energy costs. Without arguments: nanoseconds per row of a mixture's noised marginal, 16 components, one thread.
//! With two paths (`train.npy test.npy`, rows of doubles): fits a mixture to the first, prints the choice, the seconds and the
//! log-densities of the second as JSON.

use std::time::Instant;

use diffclf::Result;
use diffclf::base::{FitSettings, Level, Marginal, MixtureBase, RowSlice, Spread, Wanted, fit};
use diffclf::engine::{Isa, Pool, Real};
use diffclf::format::npy::NpyView;
use diffclf::process::Process;
use diffclf::rng::{Purpose, Stream};

fn main() -> Result<()> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if let [train, test] = paths.as_slice() {
        return judge(&read(train)?, &read(test)?);
    }
    println!(
        "nanoseconds per row and thread, 16 components, variance-preserving process, {}",
        Isa::detect()
    );
    println!(
        "| d | covariances | type | log b | + score | + score, time score, Laplacian | 4 times per point, each |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for dim in [2, 9, 64] {
        for rank in [0, dim / 4, dim] {
            if rank == 0 || rank > 1 {
                time::<f32>(dim, rank)?;
                time::<f64>(dim, rank)?;
            }
        }
    }
    Ok(())
}

/// A base of 16 components: diagonal (rank 0), of low rank, or full.
fn base(dim: usize, rank: usize) -> Result<MixtureBase> {
    let count = 16;
    let mut stream = Stream::new(1, Purpose::Test, dim as u64, rank as u64);
    let means = (0..count * dim).map(|_| 2.0 * stream.normal()).collect();
    let mut variances = |n: usize| (0..n).map(|_| 0.05 + stream.uniform()).collect::<Vec<_>>();
    let spread = if rank == 0 {
        Spread::Diagonal {
            variances: variances(count * dim),
            basis: None,
        }
    } else {
        // Householder reflections I - 2 v v^T / |v|^2 are orthonormal.
        let mut axes = vec![];
        for k in 0..count {
            let v: Vec<f64> = (0..dim).map(|i| 1.0 + ((i + 3 * k) as f64).sin()).collect();
            let square: f64 = v.iter().map(|x| x * x).sum();
            for i in 0..rank {
                axes.extend(
                    (0..dim).map(|j| f64::from(u8::from(i == j)) - 2.0 * v[i] * v[j] / square),
                );
            }
        }
        let rest = if rank < dim { variances(count) } else { vec![] };
        Spread::Axes {
            rank,
            axes,
            variances: variances(count * rank),
            rest,
        }
    };
    MixtureBase::new(dim, vec![1.0; count], means, spread)
}

fn time<T: Real>(dim: usize, rank: usize) -> Result<()> {
    let process = Process::by_name("vp")?;
    let marginal = Marginal::<T>::new(&base(dim, rank)?, None, Isa::detect())?;
    let mut scratch = marginal.scratch();
    let rows = 2048;
    let levels: Vec<Level> = (0..rows)
        .map(|i| {
            Level::at(
                &process,
                0.01 + 0.9 * ((i * 37) % rows) as f64 / rows as f64,
            )
        })
        .collect();
    let (mut points, mut point, mut room) = (vec![], vec![0.0; dim], vec![0.0; 2 * dim]);
    for (row, level) in levels.iter().enumerate() {
        marginal.sample(
            level,
            &mut Stream::new(2, Purpose::Test, 0, row as u64),
            &mut point,
            &mut room,
        );
        points.extend(point.iter().map(|x| T::from_f64(*x)));
    }
    let [mut a, mut b, mut c] = [(); 3].map(|()| vec![T::ZERO; rows]);
    let mut s = vec![T::ZERO; rows * dim];
    let mut measure = |kind: usize| {
        let mut best = f64::INFINITY;
        for _ in 0..30 {
            let begin = Instant::now();
            let wanted = Wanted {
                log_density: &mut a,
                score: (kind > 0 && kind < 3).then_some(&mut s[..]),
                time_score: (kind == 2).then_some(&mut b[..]),
                laplacian: (kind == 2).then_some(&mut c[..]),
            };
            // A quarter of the points, each at four times.
            let points = if kind == 3 {
                &points[..rows / 4 * dim]
            } else {
                &points[..]
            };
            marginal.evaluate(points, &levels, wanted, &mut scratch);
            best = best.min(begin.elapsed().as_secs_f64());
        }
        1e9 * best / rows as f64
    };
    let figures: Vec<String> = (0..4).map(|kind| format!("{:.0}", measure(kind))).collect();
    let name = match rank {
        0 => "diagonal".to_string(),
        r if r < dim => format!("low-rank({r})"),
        _ => "full".into(),
    };
    println!(
        "| {dim} | {name} | {} | {} |",
        std::any::type_name::<T>(),
        figures.join(" | ")
    );
    Ok(())
}

/// All rows of a file as doubles, and how many numbers a row has.
fn read(path: &str) -> Result<(Vec<f64>, usize)> {
    let bytes = std::fs::read(path)?;
    let array = NpyView::parse(&bytes)?;
    let (values, dim) = (array.to_vec_f64(), array.dim());
    Ok((values, dim))
}

fn judge((train, dim): &(Vec<f64>, usize), (test, _): &(Vec<f64>, usize)) -> Result<()> {
    let begin = Instant::now();
    let fitted = fit(
        &RowSlice::new(train, *dim),
        &FitSettings::default(),
        &Pool::with_all_cores(),
        Isa::detect(),
    )?;
    let seconds = begin.elapsed().as_secs_f64();
    let log_densities: Vec<f64> = test
        .chunks_exact(*dim)
        .map(|row| fitted.mixture.log_density(row))
        .collect();
    let result = serde_json::json!({
        "chosen": fitted.chosen,
        "tried": fitted.tried,
        "seconds": seconds,
        "block": fitted.block,
        "smallest_width": fitted.mixture.smallest_width(),
        "log_densities": log_densities,
    });
    println!("{result}");
    Ok(())
}
