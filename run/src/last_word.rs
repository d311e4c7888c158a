//! The last word of a training: the log-density of rows that were held out, and the mixture itself where the network made them no
//! more likely.

use crate::error::Result;
use diffclf::energy::{Energy, LearnedEnergy};
use diffclf::engine::{Isa, Pool};
use diffclf::free_energy::statistical_inefficiency;
use diffclf::model::Model;
use std::sync::Arc;

/// Most rows that are asked.
pub const MOST_ROWS: usize = 4096;

/// Rows that were held out, in the model's coordinates and the order of the file.
#[derive(Debug, Clone, Default)]
pub struct HeldOutRows {
    /// The numbers, row after row.
    pub rows: Vec<f64>,
    /// Their weights; empty if all count the same.
    pub weights: Vec<f64>,
}

/// What they said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastWord {
    /// Mean log-density in the data's coordinates, in nats per row.
    pub nats: f64,
    /// Its standard error, by the effective number of rows.
    pub error: f64,
    /// How much more likely the rows are than under the mixture alone, and the standard error of that.
    pub over_base: Option<(f64, f64)>,
    /// The mixture is kept: the network made the rows less likely.
    pub base_kept: bool,
}

impl LastWord {
    /// In a line.
    pub fn text(&self) -> String {
        let Self { nats, error, .. } = self;
        let beside = match self.over_base {
            None => String::new(),
            Some((gain, error)) if self.base_kept => format!(
                "; the network was worse by {:.3} +- {error:.3}, so the model is the mixture alone",
                -gain
            ),
            Some((gain, error)) => {
                format!(", {gain:+.3} +- {error:.3} over the fitted mixture alone")
            }
        };
        format!("held-out log-density: {nats:.3} +- {error:.3} nats per row{beside}")
    }
}

fn mean_and_error(values: &[f64], weights: &[f64]) -> (f64, f64) {
    if !weights.is_empty() {
        return weighted_mean_and_error(values, weights);
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let inefficiency = statistical_inefficiency(values);
    (mean, (variance * inefficiency / count).sqrt())
}

/// `sum w x / sum w`, and the standard error of that ratio, `sqrt(g sum w^2 (x - mean)^2) / sum w` with the inefficiency g of the series `w (x - mean)`.
fn weighted_mean_and_error(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let total: f64 = weights.iter().sum();
    // A row of weight zero says nothing, whatever its number.
    let of = |centre: f64| -> Vec<f64> {
        let both = values.iter().zip(weights);
        both.map(|(x, w)| if *w > 0.0 { w * (x - centre) } else { 0.0 })
            .collect()
    };
    let mean = of(0.0).iter().sum::<f64>() / total;
    let off = of(mean);
    let square: f64 = off.iter().map(|x| x * x).sum();
    let few = values.len() as f64 / (values.len() as f64 - 1.0).max(1.0);
    let error = (square * few * statistical_inefficiency(&off)).sqrt() / total;
    (mean, error)
}

/// Draws of each level's normaliser.
const DRAWS: usize = 4096;
/// Effective share of them below which the learned F stays.
const FEWEST_EFFECTIVE: f64 = 0.02;

/// Puts F(t) of a model on a mixture where the integrals say it is; leaves it where they do not know.
pub fn normalise(model: &mut Model, pool: &Arc<Pool>, isa: Isa) -> Result<()> {
    let (spec, seed) = (&model.content.spec, model.content.record.settings.seed);
    let energy = LearnedEnergy::<f32>::new(spec.clone(), model.best().to_vec(), pool.clone(), isa)?;
    let Some(found) = energy.normalisers(spec.grid.times(), DRAWS, seed) else {
        return Ok(());
    };
    let known = found.iter().all(|level| level.effective > FEWEST_EFFECTIVE);
    let layout = spec.layout();
    if let (Some(entry), true) = (layout.get("free_energy"), known) {
        let range = entry.range();
        for params in [Some(&mut model.params), model.average.as_mut()]
            .into_iter()
            .flatten()
        {
            for (f, level) in params[range.clone()].iter_mut().zip(&found) {
                *f = -level.log_z as f32;
            }
        }
    }
    Ok(())
}

/// Asks the held-out rows. A model on a mixture that makes them less likely than the mixture becomes that mixture.
pub fn last_word(
    model: &mut Model,
    held_out: &HeldOutRows,
    pool: &Arc<Pool>,
    isa: Isa,
) -> Result<LastWord> {
    let (spec, rows) = (model.content.spec.clone(), &held_out.rows);
    let map = &model.content.standardisation;
    let volumes = rows
        .chunks_exact(spec.dim)
        .map(|row| map.log_volume_at(row));
    let volumes: Vec<f64> = volumes.collect();
    let values = |params: Vec<f32>| -> Result<Vec<f64>> {
        let energy = LearnedEnergy::<f32>::new(spec.clone(), params, pool.clone(), isa)?;
        let mut out = vec![0.0; rows.len() / spec.dim];
        energy.log_density(&[spec.grid.t_min()], rows, &mut out);
        for (x, volume) in out.iter_mut().zip(&volumes) {
            *x -= volume;
        }
        Ok(out)
    };
    let own = values(model.best().to_vec())?;
    let (nats, error) = mean_and_error(&own, &held_out.weights);
    let mut word = LastWord {
        nats,
        error,
        over_base: None,
        base_kept: false,
    };
    if spec.base.is_some() {
        // The last layers of a fresh network are zero: it adds nothing.
        let fresh: Vec<f32> = spec.layout().initialise(model.content.record.settings.seed);
        let base = values(fresh.clone())?;
        let gains: Vec<f64> = own
            .iter()
            .zip(&base)
            .map(|(own, base)| own - base)
            .collect();
        let gain = mean_and_error(&gains, &held_out.weights);
        word.over_base = Some(gain);
        if gain.0.is_nan() || gain.0 < 0.0 {
            word.base_kept = true;
            (word.nats, word.error) = mean_and_error(&base, &held_out.weights);
            model.params.copy_from_slice(&fresh);
            if let Some(average) = &mut model.average {
                average.copy_from_slice(&fresh);
            }
        }
    }
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::rng::{Purpose, Stream};

    /// Weights that are copies give the mean of the copies; the error is that of a ratio, tested by its spread over replicates.
    #[test]
    fn weighted_means_have_errors_that_hold() {
        let (mean, _) = mean_and_error(&[1.0, 4.0, -2.0, 9.0], &[1.0, 2.0, 1.0, 0.0]);
        assert!((mean - 7.0 / 4.0).abs() < 1e-12);
        let equal = mean_and_error(&[0.3, 1.0, 0.7, -0.2, 0.1], &[2.0; 5]);
        let plain = mean_and_error(&[0.3, 1.0, 0.7, -0.2, 0.1], &[]);
        assert!((equal.0 - plain.0).abs() < 1e-12 && (equal.1 - plain.1).abs() < 1e-12);
        // Exponential numbers weighted by themselves: the mean is 2.
        let (mut off, mut square) = (0.0, 0.0);
        let replicates = 200;
        for r in 0..replicates {
            let mut stream = Stream::new(5, Purpose::Test, 71, r);
            let x: Vec<f64> = (0..400).map(|_| -(1.0 - stream.uniform()).ln()).collect();
            let (mean, error) = mean_and_error(&x, &x);
            off += (mean - 2.0).powi(2);
            square += error * error;
        }
        // Two sums of 200 squares: their ratio is known to sqrt(2 * 2 / 200) = 0.14 at most.
        assert!((off / square - 1.0).abs() < 4.0 * 0.14, "{}", off / square);
    }
}
