//! The time of one call of `log_density` in the data's coordinates: a model file, a .npy file of points, how often. Prints the median
//! in seconds. The Rust side of `benches/python.py`.

use diffclf::energy::Energy;
use diffclf::engine::{Isa, Pool};
use diffclf::format::npy::Npy;
use diffclf::model::Model;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, model, points, repeats] = &arguments[..] else {
        return Err("usage: evaluate_points MODEL POINTS.npy REPEATS".into());
    };
    let model = Model::from_bytes(&std::fs::read(model)?)?;
    let points = Npy::parse(std::fs::read(points)?)?.to_vec_f64();
    let energy = model.in_data_coordinates(Arc::new(Pool::with_all_cores()), Isa::detect())?;
    let time = [model.content.spec.grid.t_min()];
    let mut out = vec![0.0; points.len() / model.content.spec.dim];
    energy.log_density(&time, &points, &mut out);
    let mut seconds = Vec::new();
    for _ in 0..repeats.parse::<usize>()?.max(1) {
        let begin = Instant::now();
        energy.log_density(&time, &points, &mut out);
        seconds.push(begin.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    println!("{}", seconds[seconds.len() / 2]);
    Ok(())
}
