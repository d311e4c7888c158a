//! `RowWeights`: how much each row of a sample counts. Weighted rows stand for the law in which a row is drawn with a probability
//! proportional to its weight: by a row at a quantile of the weights, by sums with weights, or by the rows that a draw keeps.

use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// Weights of rows, not negative, scaled to sum to the effective number of rows, `(sum w)^2 / sum w^2`: a sum of them counts rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowWeights {
    values: Vec<f64>,
    effective: f64,
}

impl RowWeights {
    /// Takes the weights of `rows` rows. Refuses another number of them, numbers that are negative or not finite, and zeros alone.
    pub fn new(mut values: Vec<f64>, rows: usize) -> Result<RowWeights> {
        let refused = |found: String, expected: String| Error::Value {
            name: "the list of row weights",
            found,
            expected,
        };
        if values.len() != rows {
            return Err(refused(
                format!("{} numbers", values.len()),
                format!("{rows}, one for each row"),
            ));
        }
        let wrong = |w: &f64| !(w.is_finite() && *w >= 0.0);
        if let Some(row) = values.iter().position(wrong) {
            return Err(refused(
                format!("{} in row {row} (counted from 0)", values[row]),
                "finite numbers that are not negative; leave such rows out".into(),
            ));
        }
        let most = values.iter().fold(0.0_f64, |a, b| a.max(*b));
        if most == 0.0 {
            return Err(refused(
                format!("{rows} zeros"),
                "at least one that is above zero".into(),
            ));
        }
        // By the largest first: sums of squares neither overflow nor vanish.
        values.iter_mut().for_each(|w| *w /= most);
        let (sum, squares) = values
            .iter()
            .fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
        values.iter_mut().for_each(|w| *w *= sum / squares);
        Ok(RowWeights {
            values,
            effective: sum * sum / squares,
        })
    }

    /// The weights.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Effective number of rows: so many equally weighted ones have means of the same error.
    pub fn effective(&self) -> f64 {
        self.effective
    }
}

/// Rows that stand for weighted ones with equal weights: row k is kept with the probability `w_k / max w`, so that no row is
/// there twice, their order is that of the table, and rows that were independent stay so. There are no more than [`RowWeights::effective`] in the
/// mean; none if all weights are zero.
pub fn kept(weights: &[f64], seed: u64, purpose: Purpose) -> Vec<usize> {
    let most = weights.iter().fold(0.0_f64, |a, b| a.max(*b));
    let keeps = |row: &usize| {
        let mut stream = Stream::new(seed, purpose, 0, *row as u64);
        stream.uniform() * most < weights[*row]
    };
    (0..weights.len()).filter(keeps).collect()
}

/// Rows by the quantiles of their weights.
#[derive(Debug, Clone)]
pub struct Quantiles {
    /// Sums of the weights up to each row, itself included.
    sums: Vec<f64>,
}

impl Quantiles {
    /// Of rows with these weights, which must not all be zero.
    pub fn new(weights: impl Iterator<Item = f64>) -> Quantiles {
        let mut sum = 0.0;
        let sums = weights.map(|w| {
            sum += w;
            sum
        });
        Quantiles {
            sums: sums.collect(),
        }
    }

    /// Sum of all weights.
    pub fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }

    /// The row at a share of the weights from 0 to below 1; never one of weight zero.
    pub fn row(&self, share: f64) -> usize {
        let place = share * self.total();
        // Rounding may reach the end: the last row that adds something is the last answer.
        let last = self.sums.partition_point(|sum| *sum < self.total());
        self.sums.partition_point(|sum| *sum <= place).min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_weights_are_refused_in_words() {
        for (values, words) in [
            (vec![1.0, 2.0], "2 numbers, expected 3, one for each row"),
            (vec![1.0, -0.5, 1.0], "-0.5 in row 1"),
            (vec![1.0, 1.0, f64::NAN], "NaN in row 2"),
            (vec![f64::INFINITY, 1.0, 1.0], "inf in row 0"),
            (vec![0.0, -0.0, 0.0], "3 zeros"),
        ] {
            let message = RowWeights::new(values, 3).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn they_sum_to_the_effective_number_of_rows() {
        // (1 + 2 + 5)^2 / (1 + 4 + 25) = 64 / 30, whatever the scale.
        for scale in [1.0, 1e-300, 1e300] {
            let weights = RowWeights::new([1.0, 2.0, 5.0].map(|w| w * scale).to_vec(), 3).unwrap();
            assert!((weights.effective() - 64.0 / 30.0).abs() < 1e-12);
            assert!((weights.values().iter().sum::<f64>() - weights.effective()).abs() < 1e-12);
            assert!((weights.values()[2] / weights.values()[0] - 5.0).abs() < 1e-12);
        }
        let equal = RowWeights::new(vec![0.3; 7], 7).unwrap();
        assert!((equal.effective() - 7.0).abs() < 1e-12);
    }

    #[test]
    fn quantiles_skip_rows_without_weight() {
        let quantiles = Quantiles::new([0.0, 1.0, 0.0, 3.0, 0.0].into_iter());
        assert_eq!(quantiles.row(0.0), 1);
        assert_eq!(quantiles.row(0.2499), 1);
        assert_eq!(quantiles.row(0.25), 3);
        assert_eq!(quantiles.row(1.0 - f64::EPSILON / 2.0), 3);
        assert_eq!(quantiles.row(1.0), 3);
    }

    #[test]
    fn kept_rows_are_as_often_there_as_their_weights_say() {
        // Weights 0.25, 1, 0.5, 0 in turn, 4000 rows of each: shares 1/7, 4/7, 2/7, 0 of about 7000.
        let values: Vec<f64> = (0..16_000).map(|k| [0.5, 2.0, 1.0, 0.0][k % 4]).collect();
        let kept = kept(&values, 3, Purpose::Test);
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        let mut counts = [0.0; 4];
        kept.iter().for_each(|row| counts[row % 4] += 1.0);
        // Binomial: 4 sqrt(4000 p (1 - p)).
        for (count, p) in counts.into_iter().zip([0.25, 1.0, 0.5, 0.0]) {
            let sigma = (4000.0_f64 * p * (1.0 - p)).sqrt();
            assert!((count - 4000.0 * p).abs() <= 4.0 * sigma, "{count} {p}");
        }
    }
}
