//! The full-grid classification loss: how well log-densities tell from which level a sample came.

use crate::energy::Energy;
use crate::system::log_sum::log_sum_exp;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["ouyang2026diffclf"];

/// -log softmax_j(-U(t_j, y) + F(t_j))\[level\] for every point, over all `times`, where the points were drawn at `times[level]`.
///
/// The exact marginals minimise the mean over levels; their value is the Bayes-optimal loss.
pub fn classification_losses(
    energy: &dyn Energy,
    times: &[f64],
    level: usize,
    points: &[f64],
) -> Vec<f64> {
    let mut grid = vec![0.0; points.len() / energy.dim() * times.len()];
    energy.log_density_grid(times, points, &mut grid);
    grid.chunks_exact_mut(times.len())
        .map(|row| {
            let own = row[level];
            log_sum_exp(row) - own
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::process::Process;
    use crate::system::two_modes;

    #[test]
    fn follows_the_definition_and_is_zero_for_one_level() {
        let path = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
        let points = path.sample(0.3, 4, 1);
        assert!(
            classification_losses(&path, &[0.3], 0, &points)
                .iter()
                .all(|loss| loss.abs() < 1e-14)
        );
        let times = [0.1, 0.3, 0.9];
        let losses = classification_losses(&path, &times, 1, &points);
        for (i, loss) in losses.iter().enumerate() {
            let densities = times.map(|time| {
                let mut out = [0.0];
                path.log_density(&[time], &points[2 * i..2 * i + 2], &mut out);
                out[0].exp()
            });
            let expected = -(densities[1] / densities.iter().sum::<f64>()).ln();
            assert!((loss - expected).abs() < 1e-12);
        }
    }
}
