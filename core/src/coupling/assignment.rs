//! The assignment problem: to each row of a square table a column of its own, so that the sum of their costs is least.

/// The column of each row of a table of `n` by `n` finite costs, row after row. By shortest augmenting paths with potentials (Jonker and Volgenant 1987): rows are
/// added one by one, each along the cheapest chain of exchanges; `n^3` operations at worst.
pub fn assignment(costs: &[f64], n: usize) -> Vec<u32> {
    const NONE: usize = usize::MAX;
    let (mut of_row, mut of_column) = (vec![0.0; n], vec![0.0; n]);
    let mut row_of = vec![NONE; n];
    let mut column_of = vec![NONE; n];
    let (mut distance, mut before) = (vec![0.0; n], vec![NONE; n]);
    // Columns that are not reached yet come last.
    let mut order: Vec<usize> = (0..n).collect();
    for first in 0..n {
        distance.fill(f64::INFINITY);
        let (mut row, mut reached, mut length) = (first, 0, 0.0);
        let last = loop {
            let costs = &costs[row * n..][..n];
            let (mut nearest, mut best) = (reached, f64::INFINITY);
            for (place, &column) in order.iter().enumerate().skip(reached) {
                let through = length + costs[column] - of_row[row] - of_column[column];
                if through < distance[column] {
                    distance[column] = through;
                    before[column] = row;
                }
                let d = distance[column];
                // Of equally near columns a free one ends the search.
                if d < best || d == best && row_of[column] == NONE {
                    (nearest, best) = (place, d);
                }
            }
            length = best;
            let column = order[nearest];
            order.swap(reached, nearest);
            reached += 1;
            if row_of[column] == NONE {
                break column;
            }
            row = row_of[column];
        };
        of_row[first] += length;
        for &column in &order[..reached - 1] {
            let by = length - distance[column];
            of_row[row_of[column]] += by;
            of_column[column] -= by;
        }
        let mut column = last;
        loop {
            let row = before[column];
            row_of[column] = row;
            std::mem::swap(&mut column, &mut column_of[row]);
            if row == first {
                break;
            }
        }
    }
    column_of.into_iter().map(|column| column as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn cost(costs: &[f64], n: usize, columns: &[u32]) -> f64 {
        let at = |(row, column): (usize, &u32)| costs[row * n + *column as usize];
        columns.iter().enumerate().map(at).sum()
    }

    fn cheapest(costs: &[f64], n: usize, row: usize, used: u32) -> f64 {
        if row == n {
            return 0.0;
        }
        let free = (0..n).filter(|column| used & 1 << column == 0);
        free.map(|c| costs[row * n + c] + cheapest(costs, n, row + 1, used | 1 << c))
            .fold(f64::INFINITY, f64::min)
    }

    /// Every column once, and as cheap as the cheapest of all permutations, for numbers of both signs and for small whole ones, of which many are equal.
    #[test]
    fn none_is_cheaper() {
        for n in 1..8 {
            for trial in 0..40 {
                let mut stream = Stream::new(1, Purpose::Test, n as u64, trial);
                let mut draw = || match trial % 2 {
                    0 => stream.normal(),
                    _ => stream.below(4) as f64,
                };
                let costs: Vec<f64> = (0..n * n).map(|_| draw()).collect();
                let columns = assignment(&costs, n);
                let mut all = columns.clone();
                all.sort_unstable();
                assert!(all.iter().enumerate().all(|(k, c)| k == *c as usize));
                let best = cheapest(&costs, n, 0, 0);
                assert!((cost(&costs, n, &columns) - best).abs() < 1e-12);
            }
        }
    }

    /// On a line the cheapest assignment of squared distances keeps the order.
    #[test]
    fn points_of_a_line_keep_their_order() {
        let n = 300;
        let mut stream = Stream::new(2, Purpose::Test, 0, 0);
        let mut draw =
            |scale: f64| -> Vec<f64> { (0..n).map(|_| scale * stream.normal()).collect() };
        let (x, y) = (draw(1.0), draw(3.0));
        let costs: Vec<f64> = x
            .iter()
            .flat_map(|x| y.iter().map(move |y| (x - y).powi(2)))
            .collect();
        let rank = |values: &[f64], k: usize| values.iter().filter(|v| **v < values[k]).count();
        for (row, column) in assignment(&costs, n).iter().enumerate() {
            assert_eq!(rank(&x, row), rank(&y, *column as usize));
        }
    }
}
