//! What columns are like: centre and spread, rounded or not, measured on rows from all over the table.

use crate::data::{DataSet, Prepared};
use crate::error::{Error, Result};
use crate::kinds::recognised_period;
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Coordinates, Kind, MOST_WHITENED, Scale, nearest};
use diffclf::train::Table;
use diffclf::weights::Quantiles;

/// Spreads beyond which a number counts as no farther out when columns are compared.
const FARTHEST: f64 = 4.0;
/// Rows by which columns are measured.
const MEASURED: usize = 20_000;
/// A spread this many times that of the middle 95 % is that of a few rows far out.
const FAR_OUT: f64 = 1.5;

impl DataSet {
    /// Fills the steps of rounded columns with uniform noise, the same for a row whenever it is read: values on a grid have no density,
    /// values spread over the cells of the grid have one. Of all rounded columns, or, unless
    /// they are among those whose kind is `told`, of whole numbers that are no angles.
    pub fn dequantised(mut self, every: bool, told: &[usize]) -> Result<Self> {
        if !self.is_given() {
            return Ok(self);
        }
        let (sample, dim) = self.sample()?;
        let (mut steps, mut origins) = (vec![0.0; dim], vec![0.0; dim]);
        for column in 0..dim {
            let values: Vec<f64> = sample.iter().skip(column).step_by(dim).copied().collect();
            let whole = values.iter().all(|x| x.fract() == 0.0);
            let spared = !whole || told.contains(&column) || recognised_period(&values).is_some();
            if !every && spared {
                continue;
            }
            let first = values.first().copied().unwrap_or(0.0);
            let step = step(values);
            if every || step == 1.0 {
                (steps[column], origins[column]) =
                    (step, first.rem_euclid(step.max(f64::MIN_POSITIVE)));
            }
        }
        if steps.iter().any(|step| *step > 0.0) {
            (self.record.steps, self.record.origins) = (steps, origins);
        }
        Ok(self)
    }

    /// The step of each column whose values are rounded, else 0.
    pub fn rounding(&self) -> Result<Vec<f64>> {
        let (sample, dim) = self.sample()?;
        Ok((0..dim)
            .map(|column| step(sample.iter().skip(column).step_by(dim).copied().collect()))
            .collect())
    }

    /// Rows from all over the table, no more than measure a column well.
    pub(crate) fn sample(&self) -> Result<(Vec<f64>, usize)> {
        self.sample_of(false)
    }

    /// The same; by their weights, if they count: a row of great weight is there more than once.
    fn sample_of(&self, weighted: bool) -> Result<(Vec<f64>, usize)> {
        let dim = self.columns_given()?;
        let whole = self.prepare_through(&Coordinates::identity(dim), &self.record.steps, None);
        let Prepared::Fixed(table, _) = whole? else {
            return Ok((Vec::new(), dim));
        };
        let rows = table.rows();
        let count = rows.min(MEASURED);
        let quantiles = self.weights().filter(|_| weighted);
        let quantiles = quantiles.map(|weights| Quantiles::new(weights.iter().copied()));
        let mut sample = vec![0.0; count * dim];
        for (k, row) in sample.chunks_exact_mut(dim).enumerate() {
            let place = match &quantiles {
                Some(quantiles) => quantiles.row((k as f64 + 0.5) / count as f64),
                None => rows * k / count,
            };
            table.read(place, 0, row);
        }
        Ok((sample, dim))
    }

    /// The first row in which a column has a value of this kind, and the value.
    pub(crate) fn first_value(
        &self,
        column: usize,
        wanted: &dyn Fn(f64) -> bool,
    ) -> Result<Option<(usize, f64)>> {
        let Prepared::Fixed(table, _) = self.prepare(&Coordinates::identity(self.dim()?))? else {
            return Ok(None);
        };
        let mut x = [0.0];
        for row in 0..table.rows() {
            table.read(row, column, &mut x);
            if wanted(x[0]) {
                return Ok(Some((row, x[0])));
            }
        }
        Ok(None)
    }

    /// Where its columns lie once they are straightened, and how they hang together if that is asked for.
    pub fn columns(&self, correlated: bool, kinds: &[Kind]) -> Result<Columns> {
        let (mut sample, dim) = self.sample_of(true)?;
        for (i, x) in sample.iter_mut().enumerate() {
            *x = kinds.get(i % dim).map_or(*x, |kind| kind.straighten(*x));
        }
        if sample.is_empty() {
            let moments = self.moments(&mut Vec::new())?;
            let std = moments.variance.sqrt();
            return Ok(Columns {
                places: moments.mean.into_iter().map(|mean| [mean, std]).collect(),
                correlations: None,
                kinds: Vec::new(),
            });
        }
        let place = |column: usize| {
            let values: Vec<f64> = sample.iter().skip(column).step_by(dim).copied().collect();
            match kinds.get(column).and_then(Kind::period) {
                Some(period) => circular(&values, period),
                None => spread(values),
            }
        };
        let places: Vec<[f64; 2]> = (0..dim).map(place).collect();
        let correlations =
            (correlated && dim <= MOST_WHITENED).then(|| correlations(sample, &places));
        Ok(Columns {
            places,
            correlations,
            kinds: kinds.to_vec(),
        })
    }
}

/// Centre and spread of values on a circle: the direction of their mean, and the standard deviation about it within half a period.
fn circular(values: &[f64], period: f64) -> [f64; 2] {
    let (mut sin, mut cos) = (0.0, 0.0);
    for x in values {
        let angle = std::f64::consts::TAU * x / period;
        sin += angle.sin();
        cos += angle.cos();
    }
    let centre = sin.atan2(cos) * period / std::f64::consts::TAU;
    let square = values.iter().map(|x| nearest(x - centre, period).powi(2));
    [centre, (square.sum::<f64>() / values.len() as f64).sqrt()]
}

/// Where columns lie.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// Centre and spread of each: mean and standard deviation, or, where a few rows far out would decide them, those of the rows within the
    /// middle 95 %.
    pub places: Vec<[f64; 2]>,
    /// Their correlations in row-major order, if they were asked for.
    pub correlations: Option<Vec<f64>>,
    /// Their kinds; none if all are real.
    pub kinds: Vec<Kind>,
}

impl Columns {
    /// The map that takes each column by its own spread.
    pub fn apart(&self) -> Coordinates {
        Coordinates {
            shift: self.places.iter().map(|place| place[0]).collect(),
            scale: self.spreads().into(),
            kinds: self.kinds.clone(),
        }
    }

    /// The map that takes their correlations away too.
    pub fn whitened(&self) -> Result<Coordinates> {
        let dim = self.places.len();
        let Some(correlations) = &self.correlations else {
            return Err(Error::Refused(words!(
                Setting::to("scale", "whiten"),
                format!(
                    " mixes the numbers of a row, of which there are {dim}; it does so for up to {MOST_WHITENED}; choose "
                ),
                Setting::to("scale", "column")
            )));
        };
        let Some(factor) = Scale::of_covariance(correlations, dim) else {
            return Err(Error::Refused(words!(
                Setting::to("scale", "whiten"),
                " needs columns none of which is a sum of others, but one is; leave it out, or choose ",
                Setting::to("scale", "column")
            )));
        };
        Ok(Coordinates {
            scale: Scale::from(self.spreads()).times(&factor),
            ..self.apart()
        })
    }

    fn spreads(&self) -> Vec<f64> {
        self.places.iter().map(|place| place[1]).collect()
    }
}

/// Correlations of the columns, in which rows far out count no more than others.
fn correlations(mut sample: Vec<f64>, places: &[[f64; 2]]) -> Vec<f64> {
    let dim = places.len();
    for row in sample.chunks_exact_mut(dim) {
        for (x, [centre, spread]) in row.iter_mut().zip(places) {
            *x = ((*x - centre) / spread).clamp(-FARTHEST, FARTHEST);
        }
    }
    let mut matrix = vec![0.0; dim * dim];
    for row in sample.chunks_exact(dim) {
        for (i, x) in row.iter().enumerate() {
            let sums = &mut matrix[i * dim..][..=i];
            sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y);
        }
    }
    let spread: Vec<f64> = (0..dim).map(|i| matrix[i * dim + i].sqrt()).collect();
    for i in 0..dim {
        for j in 0..=i {
            let value = matrix[i * dim + j] / (spread[i] * spread[j]);
            matrix[i * dim + j] = value;
            matrix[j * dim + i] = value;
        }
    }
    matrix
}

/// The step of a column's values, if they are rounded: most are repeated, and all gaps between them are multiples of the smallest.
fn step(mut values: Vec<f64>) -> f64 {
    let count = values.len();
    values.sort_by(f64::total_cmp);
    values.dedup();
    if values.len() < 2 || 2 * values.len() > count {
        return 0.0;
    }
    let gaps = || values.windows(2).map(|pair| pair[1] - pair[0]);
    let least = gaps().fold(f64::INFINITY, f64::min);
    let multiple = |gap: f64| {
        let times = gap / least;
        (times - times.round()).abs() < 1e-3 * times.max(1.0)
    };
    if gaps().all(multiple) { least } else { 0.0 }
}

/// Centre and spread of one column; see [`DataSet::columns`].
fn spread(mut values: Vec<f64>) -> [f64; 2] {
    let moments = |values: &[f64]| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        [mean, (square / count).sqrt()]
    };
    let whole = moments(&values);
    values.sort_by(f64::total_cmp);
    let edge = values.len() / 40;
    let (low, high) = (values[edge], values[values.len() - 1 - edge]);
    values.iter_mut().for_each(|x| *x = x.clamp(low, high));
    let middle = moments(&values);
    if middle[1] > 0.0 && whole[1] > FAR_OUT * middle[1] {
        middle
    } else {
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_values_are_seen_and_others_are_not() {
        let whole: Vec<f64> = (0..100).map(|i| f64::from(i * i % 13)).collect();
        assert_eq!(step(whole.clone()), 1.0);
        let tenths = whole.iter().map(|x| 0.1 * x + 3.0).collect::<Vec<_>>();
        assert!((step(tenths) - 0.1).abs() < 1e-9);
        assert_eq!(step((0..100).map(|i| f64::from(i).sqrt()).collect()), 0.0);
        // Repeated, but on no grid.
        let odd: Vec<f64> = whole.iter().map(|x| (x + 1.0).sqrt()).collect();
        assert_eq!(step(odd), 0.0);
    }

    #[test]
    fn a_few_rows_far_out_do_not_decide_the_spread() {
        let mut values: Vec<f64> = (0..1000).map(|i| (f64::from(i) - 499.5) / 288.7).collect();
        let plain = spread(values.clone());
        assert!(
            plain[0].abs() < 1e-9 && (plain[1] - 1.0).abs() < 1e-3,
            "{plain:?}"
        );
        values.extend([1e6, -2e6]);
        let found = spread(values);
        assert!(
            found[0].abs() < 0.1 && (found[1] - 1.0).abs() < 0.1,
            "{found:?}"
        );
    }

    /// Correlated columns of unlike spreads, with one row far out, become uncorrelated columns of spread 1.
    #[test]
    fn whitened_columns_are_uncorrelated() {
        let wave = |i: usize, step: f64| (step * i as f64).sin();
        let mut values: Vec<f64> = (0..4000)
            .flat_map(|i| {
                let (a, b) = (wave(i, 1.7), wave(i, 0.9));
                [1e6 + 20.0 * a, 0.01 * (a + 0.1 * b)]
            })
            .collect();
        let set = DataSet::from_array("a", values.clone(), 4000, 2).unwrap();
        let map = set.columns(true, &[]).unwrap().whitened().unwrap();
        map.to_model(&mut values);
        let mean = |f: &dyn Fn(&[f64]) -> f64| values.chunks_exact(2).map(f).sum::<f64>() / 4000.0;
        for (found, expected) in [
            (mean(&|r| r[0]), 0.0),
            (mean(&|r| r[1]), 0.0),
            (mean(&|r| r[0] * r[0]), 1.0),
            (mean(&|r| r[1] * r[1]), 1.0),
            (mean(&|r| r[0] * r[1]), 0.0),
        ] {
            // Numbers about 1e6 keep ten digits of a spread of 14.
            assert!((found - expected).abs() < 1e-8, "{found} {expected}");
        }
        // log |det|: spreads 20/sqrt 2 and 0.01 sqrt(1.01/2), correlation 1/sqrt 1.01.
        let volume = (20.0 * 0.01 * 0.1 / 2.0f64).ln();
        assert!(
            (map.log_volume() - volume).abs() < 1e-3,
            "{}",
            map.log_volume()
        );
        let twice: Vec<f64> = (0..200).map(|i| wave(i / 2, 1.7)).collect();
        let set = DataSet::from_array("b", twice, 100, 2).unwrap();
        let error = set.columns(true, &[]).unwrap().whitened().unwrap_err();
        assert!(error.to_string().contains("a sum of others"), "{error}");
    }

    #[test]
    fn circles_have_a_centre_of_their_own() {
        // Around the seam at +-2, spread 0.1.
        let values: Vec<f64> = (0..1000)
            .map(|i| nearest(2.0 + 0.1 * f64::from(i - 500) / 288.8, 4.0))
            .collect();
        let [centre, spread] = circular(&values, 4.0);
        assert!(nearest(centre - 2.0, 4.0).abs() < 1e-3, "{centre}");
        assert!((spread - 0.1).abs() < 1e-3, "{spread}");
    }

    /// Unasked, whole numbers alone are spread: neither tenths nor angles in whole degrees. Where the grid begins is known.
    #[test]
    fn whole_numbers_are_told_from_other_grids() {
        let values: Vec<f64> = (0..1500)
            .flat_map(|i| {
                let k = f64::from(i * i % 13);
                [k - 4.0, 0.1 * k, f64::from(i * 7 % 360) - 180.0, k + 0.25]
            })
            .collect();
        let set = || DataSet::from_array("a", values.clone(), 1500, 4).unwrap();
        let own = set().dequantised(false, &[]).unwrap();
        assert_eq!(own.record().steps, [1.0, 0.0, 0.0, 0.0]);
        assert!(
            set()
                .dequantised(false, &[0])
                .unwrap()
                .record()
                .steps
                .is_empty()
        );
        let all = set().dequantised(true, &[]).unwrap();
        let steps = &all.record().steps;
        assert!(steps[0] == 1.0 && (steps[1] - 0.1).abs() < 1e-12 && steps[2] == 1.0);
        assert_eq!(
            (all.record().origins[0], all.record().origins[3]),
            (0.0, 0.25)
        );
    }

    #[test]
    fn dequantised_rows_fill_their_steps_and_stay_the_same() {
        let values: Vec<f64> = (0..2000)
            .map(|i| {
                if i % 2 == 0 {
                    f64::from(i % 7)
                } else {
                    0.3 * f64::from(i).sin()
                }
            })
            .collect();
        let set = DataSet::from_array("a", values.clone(), 1000, 2)
            .unwrap()
            .dequantised(true, &[])
            .unwrap();
        assert_eq!(set.record().steps, [1.0, 0.0]);
        let map = Coordinates::identity(2);
        let (Prepared::Fixed(first, _), Prepared::Fixed(second, _)) =
            (set.prepare(&map).unwrap(), set.prepare(&map).unwrap())
        else {
            panic!("an array is a table")
        };
        let mut offsets = Vec::new();
        for row in 0..1000 {
            let (mut a, mut b) = ([0.0; 2], [0f32; 2]);
            first.read(row, 0, &mut a);
            second.copy_row(row, &map, &mut b);
            assert_eq!(a.map(|x| x as f32), b);
            assert_eq!(a[1], values[2 * row + 1]);
            offsets.push(a[0] - values[2 * row]);
        }
        assert!(offsets.iter().all(|x| x.abs() <= 0.5));
        // Mean of 1000 uniform numbers: 0.0091.
        let mean = offsets.iter().sum::<f64>() / 1000.0;
        assert!(mean.abs() < 4.0 * 0.0092, "{mean}");
    }
}
