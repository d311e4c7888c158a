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

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let inefficiency = statistical_inefficiency(values);
    (mean, (variance * inefficiency / count).sqrt())
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
    let (nats, error) = mean_and_error(&own);
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
        let gain = mean_and_error(&gains);
        word.over_base = Some(gain);
        if gain.0.is_nan() || gain.0 < 0.0 {
            word.base_kept = true;
            (word.nats, word.error) = mean_and_error(&base);
            model.params.copy_from_slice(&fresh);
            if let Some(average) = &mut model.average {
                average.copy_from_slice(&fresh);
            }
        }
    }
    Ok(word)
}
