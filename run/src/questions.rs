//! Questions that users ask of a model: the weight of a region, the free energy along columns, the most typical and the most unusual rows.
//!
//! Each is answered three times where that is possible, by the data, by the learned density and by generated samples, so that they can be
//! compared. The density is integrated by draws of the mixture that the energy stands on, weighted by what the network makes of them; its
//! error is that of the integral. Of the error of the model itself only the data tell.

use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::generate::Generation;
use crate::memory;
use crate::watch::Watch;
use crate::weights::GivenWeights;
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Kind, LearnedEnergy};
use diffclf::expression::Expression;
use diffclf::free_energy::statistical_inefficiency;
use diffclf::metric::Estimate;
use diffclf::model::Content;
use serde::Serialize;
use std::path::Path;

/// Points in the coordinates of the data, each with a weight.
pub struct Sample {
    dim: usize,
    points: Vec<f64>,
    weights: Vec<f64>,
    /// Whether neighbouring points may hang together, as rows of a series do.
    series: bool,
}

/// What a sample says of many indicators of which each point has one at most.
struct Shares {
    means: Vec<f64>,
    errors: Vec<f64>,
}

impl Sample {
    /// The rows of a file, brought into the ranges that the model gives out, with weights if there are any.
    pub fn file(content: &Content, path: &Path, weights: Option<&Path>) -> Result<Sample> {
        let mapped = MappedNpy::open(path)?;
        let view = mapped.view()?;
        let dim = view.dim();
        if dim != content.spec.dim {
            return Err(Error::Usage(format!(
                "{}: the rows have {dim} columns, but the model has {}; give rows of the kind it was trained on",
                path.display(),
                content.spec.dim
            )));
        }
        let rows = view.rows();
        memory::refuse_rows("data", rows, dim, 8)?;
        let mut points = vec![0.0; rows * dim];
        for (k, row) in points.chunks_exact_mut(dim).enumerate() {
            view.copy_row_f64(k, row);
            crate::data::refuse_non_finite(path, k, row)?;
        }
        Sample::of(
            content,
            points,
            match weights {
                Some(path) => GivenWeights::file(path, rows)?.values.values().to_vec(),
                None => vec![1.0; rows],
            },
        )
    }

    /// Rows in memory with their weights, in the order of a series.
    pub fn of(content: &Content, mut points: Vec<f64>, weights: Vec<f64>) -> Result<Sample> {
        let dim = content.spec.dim;
        if points.len() != dim * weights.len() {
            return Err(Error::Usage(format!(
                "{} numbers for {} rows, but the model has {dim} columns; give rows of the kind it was trained on",
                points.len(),
                weights.len()
            )));
        }
        for (i, x) in points.iter_mut().enumerate() {
            if let kind @ Kind::Periodic { .. } = content.standardisation.kind(i % dim) {
                *x = kind.bend(*x);
            }
        }
        Ok(Sample {
            dim,
            points,
            weights,
            series: true,
        })
    }

    /// The learned density at the model's smallest time; none where nothing is known to draw from.
    pub fn density(
        content: &Content,
        energy: &LearnedEnergy,
        draws: usize,
        seed: u64,
    ) -> Result<Option<Sample>> {
        let dim = content.spec.dim;
        memory::refuse_rows("draws", draws, dim, 48)?;
        let time = content.spec.grid.t_min();
        let Some(mut found) = energy.weighted_draws(time, draws, seed) else {
            return Ok(None);
        };
        content.standardisation.to_data(&mut found.points);
        Ok(Some(Sample {
            dim,
            points: found.points,
            weights: found.weights,
            series: false,
        }))
    }

    /// Generated samples.
    pub fn generated(
        content: &Content,
        energy: &LearnedEnergy,
        number: usize,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Sample> {
        let asked = Generation {
            number: Some(number),
            seed,
            ..Generation::default()
        };
        let done = asked.run(content, energy, watch)?;
        let found = done.finish(&format!("{number} samples"));
        Ok(Sample {
            dim: content.spec.dim,
            weights: vec![1.0; found.number],
            points: found.points,
            series: false,
        })
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.points.chunks_exact(self.dim)
    }

    /// Share of the points that fulfil a condition.
    pub fn weight(&self, region: &Expression) -> Estimate {
        let inside: Vec<Option<usize>> = self
            .rows()
            .map(|row| region.holds(row).then_some(0))
            .collect();
        let series: Vec<f64> = inside
            .iter()
            .map(|bin| f64::from(u8::from(bin.is_some())))
            .collect();
        let Shares { means, errors } = self.shares(&inside, 1, self.inefficiency(&series));
        Estimate {
            mean: means[0],
            error: errors[0],
        }
    }

    /// Rows per independent row. A series that never changes tells nothing: its rows count as independent.
    fn inefficiency(&self, series: &[f64]) -> f64 {
        let constant = series.windows(2).all(|pair| pair[0] == pair[1]);
        if self.series && !constant {
            statistical_inefficiency(series)
        } else {
            1.0
        }
    }

    /// Shares of bins: `sum w 1 / sum w`, and the standard error of that ratio.
    fn shares(&self, bins: &[Option<usize>], count: usize, inefficiency: f64) -> Shares {
        let total: f64 = self.weights.iter().sum();
        let (mut means, mut inside) = (vec![0.0; count], vec![0.0; count]);
        for (bin, w) in bins.iter().zip(&self.weights) {
            if let Some(bin) = bin {
                means[*bin] += w / total;
                inside[*bin] += (w / total).powi(2);
            }
        }
        let squares: f64 = self.weights.iter().map(|w| (w / total).powi(2)).sum();
        // sum w^2 (1 - m)^2 inside and w^2 m^2 outside.
        let errors = means.iter().zip(&inside).map(|(m, inside)| {
            let square = inside * (1.0 - m).powi(2) + (squares - inside).max(0.0) * m * m;
            (square * inefficiency).sqrt()
        });
        Shares {
            errors: errors.collect(),
            means,
        }
    }

    /// Effective share of the weights.
    pub fn effective(&self) -> f64 {
        let sum: f64 = self.weights.iter().sum();
        let squares: f64 = self.weights.iter().map(|w| w * w).sum();
        sum * sum / squares / self.len() as f64
    }
}

/// Names of the columns that a model was trained on; empty if it knows none.
pub fn names(content: &Content) -> &[String] {
    content
        .record
        .data
        .first()
        .map_or(&[], |data| data.columns.as_slice())
}

/// What a free energy is told along: a column, or a number made of columns.
pub struct Along {
    /// In words.
    pub label: String,
    expression: Expression,
    /// Where it lies, if it has a period.
    period: Option<[f64; 2]>,
}

impl Along {
    /// From its text.
    pub fn new(text: &str, content: &Content) -> Result<Along> {
        let (names, dim) = (names(content), content.spec.dim);
        // A number by itself is the number of a column.
        let column = crate::kinds::column_of(text.trim(), names, dim);
        let written = match column {
            Some(j) => format!("x{j}"),
            None => text.into(),
        };
        let kind = column.map(|j| content.standardisation.kind(j));
        let label = match column {
            Some(j) => names.get(j).cloned().unwrap_or(format!("column {j}")),
            None => text.into(),
        };
        // Under its number a column is found even where another is named like a number.
        let plain = if column.is_some() { &[] } else { names };
        Ok(Along {
            expression: Expression::number(&written, plain, dim)?,
            label,
            period: match kind {
                Some(Kind::Periodic { low, period }) => Some([low, low + period]),
                _ => None,
            },
        })
    }
}

/// Free energy over a grid, in kT above its lowest bin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Surface {
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Ends of the bins along each axis.
    pub edges: Vec<Vec<f64>>,
    /// `-log` of the density of each bin, the last axis running fastest; none where nothing was seen.
    pub free_energy: Vec<Option<f64>>,
    /// Standard errors.
    pub error: Vec<Option<f64>>,
    /// Share of each bin.
    pub share: Vec<f64>,
}

/// Most bins of a surface.
const MOST_BINS: usize = 1 << 20;

/// Free energies of samples over one grid, chosen by the last of them.
pub fn surfaces(samples: &[&Sample], along: &[Along], bins: usize) -> Result<Vec<Surface>> {
    if along.is_empty() || along.len() > 2 {
        return Err(Error::Refused(words!(
            Setting::new("along"),
            format!(" names {} columns, expected one or two", along.len())
        )));
    }
    let total = bins.checked_pow(along.len() as u32);
    let Some(total) = total.filter(|total| (2..=MOST_BINS).contains(total)) else {
        return Err(Error::setting(
            "bins",
            bins,
            format!("at least 2 along an axis, and at most {MOST_BINS} in all"),
        ));
    };
    let values: Vec<Vec<Vec<f64>>> = samples
        .iter()
        .map(|sample| {
            let of = |a: &Along| sample.rows().map(|row| a.expression.value(row)).collect();
            along.iter().map(of).collect()
        })
        .collect();
    let mut edges = Vec::with_capacity(along.len());
    for (k, a) in along.iter().enumerate() {
        let [low, high] = match a.period {
            Some(ends) => ends,
            None => {
                let last = values.len().saturating_sub(1);
                middle(&values[last][k], &samples[last].weights, &a.label)?
            }
        };
        let at = |i: usize| low + (high - low) * i as f64 / bins as f64;
        edges.push((0..=bins).map(at).collect::<Vec<f64>>());
    }
    let of = |(sample, values): (&&Sample, &Vec<Vec<f64>>)| {
        let bin = |i: usize| {
            let mut bin = 0;
            for (values, edges) in values.iter().zip(&edges) {
                let place = (values[i] - edges[0]) / (edges[bins] - edges[0]);
                let inside = (0.0..1.0).contains(&place) || values[i] == edges[bins];
                bin = bin * bins
                    + inside.then_some(((place * bins as f64) as usize).min(bins - 1))?;
            }
            Some(bin)
        };
        let of_rows: Vec<Option<usize>> = (0..sample.len()).map(bin).collect();
        let slowest = values.iter().map(|series| sample.inefficiency(series));
        let shares = sample.shares(&of_rows, total, slowest.fold(1.0, f64::max));
        let least = shares.means.iter().fold(0.0_f64, |a, b| a.max(*b));
        let log = |share: &f64| (*share > 0.0).then(|| -(share / least).ln());
        let error = |(share, error): (&f64, &f64)| (*share > 0.0).then(|| error / share);
        Surface {
            axes: along.iter().map(|a| a.label.clone()).collect(),
            edges: edges.clone(),
            free_energy: shares.means.iter().map(log).collect(),
            error: shares.means.iter().zip(&shares.errors).map(error).collect(),
            share: shares.means,
        }
    };
    Ok(samples.iter().zip(&values).map(of).collect())
}

/// The range of the middle 99.9 % of values by weight, a little widened.
fn middle(values: &[f64], weights: &[f64], label: &str) -> Result<[f64; 2]> {
    let both = values.iter().copied().zip(weights.iter().copied());
    let mut sorted: Vec<(f64, f64)> = both.filter(|(x, _)| x.is_finite()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let edge = 0.0005 * sorted.iter().map(|(_, w)| w).sum::<f64>();
    let first = |mut rows: Box<dyn Iterator<Item = &(f64, f64)> + '_>| {
        let mut sum = 0.0;
        let beyond = |row: &&(f64, f64)| {
            sum += row.1;
            sum > edge
        };
        rows.find(beyond).map(|(x, _)| *x)
    };
    match (
        first(Box::new(sorted.iter())),
        first(Box::new(sorted.iter().rev())),
    ) {
        (Some(low), Some(high)) if low < high => {
            let room = 0.02 * (high - low);
            Ok([low - room, high + room])
        }
        _ => Err(Error::Refused(words!(
            Setting::new("along"),
            format!(": {label} has no range: all of its values are the same, or no numbers")
        ))),
    }
}

/// The rows of the largest and of the smallest log-density, `count` each: row, log-density.
pub fn extremes(log_density: &[f64], count: usize) -> [Vec<(usize, f64)>; 2] {
    let mut order: Vec<usize> = (0..log_density.len()).collect();
    order.sort_by(|a, b| log_density[*b].total_cmp(&log_density[*a]));
    let of = |rows: &mut dyn Iterator<Item = usize>| -> Vec<(usize, f64)> {
        rows.take(count)
            .map(|row| (row, log_density[row]))
            .collect()
    };
    [
        of(&mut order.iter().copied()),
        of(&mut order.iter().rev().copied()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(points: Vec<f64>, weights: Vec<f64>) -> Sample {
        Sample {
            dim: 1,
            points,
            weights,
            series: false,
        }
    }

    /// Uniform draws weighted into an exponential law: shares, errors and free energies are those of the integral.
    #[test]
    fn weighted_points_stand_for_their_density() {
        let n = 40_000;
        let points: Vec<f64> = (0..n)
            .map(|i| 4.0 * (f64::from(i) * 0.618_033_988_749_895).fract())
            .collect();
        let weights: Vec<f64> = points.iter().map(|x| (-x).exp()).collect();
        let found = sample(points, weights);
        let region = Expression::condition("1 < x0 < 2", &[], 1).unwrap();
        let weight = found.weight(&region);
        let mass = |a: f64, b: f64| ((-a).exp() - (-b).exp()) / (1.0 - (-4.0_f64).exp());
        // Evenly spread points do better than their error says.
        assert!((weight.mean - mass(1.0, 2.0)).abs() < weight.error);
        // sqrt(E w^2 (1_R - m)^2 / n) / E w with m = 0.23688, E w = 0.24542: E w^2 (1_R - m)^2 = 0.008518 inside + 0.006191 outside.
        assert!((weight.error - 0.002_471).abs() < 1e-5, "{}", weight.error);
        let along = [Along {
            label: "x".into(),
            expression: Expression::number("x0", &[], 1).unwrap(),
            period: Some([0.0, 4.0]),
        }];
        let surface = surfaces(&[&found], &along, 8).unwrap().remove(0);
        for (k, f) in surface.free_energy.iter().enumerate() {
            // Equal bins of an exponential law: half a kT each.
            assert!((f.unwrap() - 0.5 * k as f64).abs() < 0.02, "{k}: {f:?}");
        }
        assert!((surface.share.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(surfaces(&[&found], &along, 1).is_err());
        assert!(surfaces(&[&found], &[], 8).is_err());
    }

    /// Rows of a series are worth fewer: an error from blocks of 50 equal rows is sqrt(50) times that of independent ones.
    #[test]
    fn rows_of_a_series_are_worth_fewer() {
        let points: Vec<f64> = (0..20_000)
            .map(|i| (f64::from(i / 50) * 0.754_877_666).fract())
            .collect();
        let weights = vec![1.0; points.len()];
        let mut found = sample(points, weights);
        let region = Expression::condition("x0 < 0.2", &[], 1).unwrap();
        let loose = found.weight(&region).error;
        found.series = true;
        let tight = found.weight(&region).error;
        assert!((loose - (0.16_f64 / 20_000.0).sqrt()).abs() < 1e-4);
        assert!(tight > 3.0 * loose, "{tight} {loose}");
    }

    #[test]
    fn extremes_are_in_order() {
        let [typical, unusual] = extremes(&[-3.0, 0.5, f64::NEG_INFINITY, 0.1], 2);
        assert_eq!(typical, [(1, 0.5), (3, 0.1)]);
        assert_eq!(unusual, [(2, f64::NEG_INFINITY), (0, -3.0)]);
    }
}
