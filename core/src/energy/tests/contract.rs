//! The provided methods of the trait, on an energy known by heart.

use crate::energy::Energy;

/// U = t |y|^2, F = 3 t.
struct Square;

impl Energy for Square {
    fn dim(&self) -> usize {
        2
    }
    fn free_energy(&self, time: f64) -> f64 {
        3.0 * time
    }
    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        for (i, (value, y)) in out.iter_mut().zip(points.chunks(2)).enumerate() {
            *value = times[i % times.len()] * (y[0] * y[0] + y[1] * y[1]);
        }
    }
    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        for (i, (value, y)) in out.iter_mut().zip(points).enumerate() {
            *value = -2.0 * times[(i / 2) % times.len()] * y;
        }
    }
    fn time_score(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        for (value, y) in out.iter_mut().zip(points.chunks(2)) {
            *value = 3.0 - y[0] * y[0] - y[1] * y[1];
        }
    }
}

#[test]
fn provided_methods_agree_with_the_definition() {
    let points = [1.0, 2.0, 0.5, -1.0, 0.0, 3.0];
    let squares = [5.0, 1.25, 9.0];
    let mut out = [0.0; 3];
    Square.log_density(&[0.5], &points, &mut out);
    assert_eq!(out, squares.map(|square| 1.5 - 0.5 * square));
    Square.log_density(&[0.5, 1.0, 2.0], &points, &mut out);
    assert_eq!(out, [1.5 - 2.5, 3.0 - 1.25, 6.0 - 18.0]);
    let mut grid = [0.0; 6];
    Square.log_density_grid(&[0.5, 2.0], &points, &mut grid);
    for (row, square) in grid.chunks(2).zip(squares) {
        assert_eq!(row, [1.5 - 0.5 * square, 6.0 - 2.0 * square]);
    }
    let (mut energy, mut score) = ([0.0; 3], [0.0; 6]);
    Square.energy_and_score(&[0.5], &points, &mut energy, &mut score);
    assert_eq!(energy, squares.map(|square| 0.5 * square));
    assert_eq!(score, points.map(|y| -y));
}
