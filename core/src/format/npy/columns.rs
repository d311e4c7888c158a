//! `ColumnStatistics`: mean, variance and range of every column in one pass over the rows.

/// Running statistics by Welford's update (Technometrics 4, 1962): with the n-th row x, `delta = x - mean`, `mean +=
/// delta / n`, `square += delta (x - mean)`. Stable also where the mean is large against the spread, which the
/// textbook sum of squares is not.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStatistics {
    count: usize,
    /// Sum of the weights of the rows.
    total: f64,
    mean: Vec<f64>,
    square: Vec<f64>,
    minimum: Vec<f64>,
    maximum: Vec<f64>,
}

impl ColumnStatistics {
    /// No rows yet, `dim` columns.
    pub fn new(dim: usize) -> Self {
        Self {
            count: 0,
            total: 0.0,
            mean: vec![0.0; dim],
            square: vec![0.0; dim],
            minimum: vec![f64::INFINITY; dim],
            maximum: vec![f64::NEG_INFINITY; dim],
        }
    }

    /// Takes one more row in.
    ///
    /// # Panics
    /// When the row is not as long as the statistics are wide, as slice indexing does.
    pub fn add_row(&mut self, row: &[f64]) {
        self.add_weighted(row, 1.0);
    }

    /// Takes one more row in, with a weight; of weight zero it is none.
    ///
    /// # Panics
    /// As [`ColumnStatistics::add_row`].
    pub fn add_weighted(&mut self, row: &[f64], weight: f64) {
        if weight == 0.0 {
            return;
        }
        assert_eq!(
            row.len(),
            self.mean.len(),
            "a row has {} numbers",
            self.mean.len()
        );
        self.count += 1;
        self.total += weight;
        let share = weight / self.total;
        for (((&value, mean), square), (minimum, maximum)) in row
            .iter()
            .zip(&mut self.mean)
            .zip(&mut self.square)
            .zip(self.minimum.iter_mut().zip(&mut self.maximum))
        {
            let delta = value - *mean;
            *mean += delta * share;
            *square += weight * delta * (value - *mean);
            *minimum = minimum.min(value);
            *maximum = maximum.max(value);
        }
    }

    /// Rows taken in.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Mean of each column.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Population variance of each column: the mean squared distance from the mean; zero while there is no row.
    pub fn variance(&self) -> Vec<f64> {
        self.square
            .iter()
            .map(|square| square / self.divisor())
            .collect()
    }

    /// The scalar variance of the data: the average of the columns' variances, `E|x - mean|^2 / d`.
    pub fn scalar_variance(&self) -> f64 {
        let columns = self.square.len().max(1) as f64;
        self.square.iter().sum::<f64>() / (self.divisor() * columns)
    }

    fn divisor(&self) -> f64 {
        if self.count == 0 { 1.0 } else { self.total }
    }

    /// Smallest value of each column.
    pub fn minimum(&self) -> &[f64] {
        &self.minimum
    }

    /// Largest value of each column.
    pub fn maximum(&self) -> &[f64] {
        &self.maximum
    }

    /// Columns that hold one value throughout: a density over them does not exist, so they must be dropped before
    /// training.
    pub fn constant_columns(&self) -> Vec<usize> {
        (0..self.mean.len())
            .filter(|&column| self.minimum[column] == self.maximum[column])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count_as_copies() {
        let rows = [[1.0, 7.0], [-2.0, 0.5], [4.0, 1e3], [0.3, -6.0]];
        let (mut weighted, mut copies) = (ColumnStatistics::new(2), ColumnStatistics::new(2));
        for (row, times) in rows.iter().zip([2, 0, 1, 3]) {
            weighted.add_weighted(row, 0.5 * f64::from(times));
            (0..times).for_each(|_| copies.add_row(row));
        }
        let close =
            |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9 * b.abs());
        assert!(close(weighted.mean(), copies.mean()));
        assert!(close(&weighted.variance(), &copies.variance()));
        assert!(close(
            &[weighted.scalar_variance()],
            &[copies.scalar_variance()]
        ));
        assert_eq!(weighted.minimum(), copies.minimum());
    }

    #[test]
    fn agrees_with_the_two_pass_formula_far_from_zero() {
        // Spread 1e-3 around 1e6: a sum of squares in f64 would keep only about four digits of the variance.
        let rows: Vec<[f64; 2]> = (0..1000)
            .map(|i| [1e6 + 1e-3 * f64::from(i % 7), -2.5 + 0.25 * f64::from(i)])
            .collect();
        let mut statistics = ColumnStatistics::new(2);
        rows.iter().for_each(|row| statistics.add_row(row));
        let variance = statistics.variance();
        for column in 0..2 {
            let mean = rows.iter().map(|row| row[column]).sum::<f64>() / 1000.0;
            let exact = rows
                .iter()
                .map(|row| (row[column] - mean).powi(2))
                .sum::<f64>()
                / 1000.0;
            assert!((statistics.mean()[column] - mean).abs() < 1e-14 * 1e6);
            // Inputs near 1e6 carry 1e-10 of rounding against a spread of 2e-3: 1e-6 relative is what both formulas
            // can share.
            assert!(
                (variance[column] - exact).abs() < 1e-6 * exact,
                "{} {exact}",
                variance[column]
            );
        }
        assert!((statistics.scalar_variance() - (variance[0] + variance[1]) / 2.0).abs() < 1e-9);
        assert_eq!(statistics.count(), 1000);
        assert_eq!(statistics.minimum(), [1e6, -2.5]);
        assert_eq!(statistics.maximum()[1], -2.5 + 0.25 * 999.0);
    }

    #[test]
    fn constant_columns_are_found_exactly() {
        let mut statistics = ColumnStatistics::new(3);
        for i in 0..50 {
            statistics.add_row(&[0.1, 0.1 + 1e-16 * f64::from(i), f64::from(i)]);
        }
        assert_eq!(statistics.constant_columns(), [0]);
        assert_eq!(statistics.variance()[0], 0.0);
    }

    #[test]
    fn without_rows_nothing_is_divided_by_zero() {
        let statistics = ColumnStatistics::new(2);
        assert_eq!(statistics.variance(), [0.0, 0.0]);
        assert_eq!(statistics.scalar_variance(), 0.0);
    }
}
