//! How far chains can be trusted: split R-hat and the effective number of draws (Gelman et al., BDA3; Vehtari et al. 2021, without
//! ranks), of one quantity in several chains.

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["vehtari2021rank"];

/// `draws[i]` is the `i`-th draw of chain `i % chains`: as [`Chains`](super::Chains) keeps them.
fn column(values: &[f64], chains: usize, chain: usize) -> impl Iterator<Item = f64> + Clone {
    values.iter().skip(chain).step_by(chains).copied()
}

/// Mean and variance (divided by n - 1).
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let (n, sum) = values
        .clone()
        .fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
    let mean = sum / n;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (n - 1.0))
}

/// Split R-hat: each chain is cut in two, and the spread between the halves is compared with the spread within. 1 when all halves
/// tell the same; above 1.01 the chains have not forgotten where they began. NaN for fewer than four draws of a chain.
///
/// `values` holds the draws of one quantity, all chains' first draws, then all second ones, and so on.
pub fn split_r_hat(values: &[f64], chains: usize) -> f64 {
    let draws = values.len() / chains;
    let half = draws / 2;
    if half < 2 {
        return f64::NAN;
    }
    // The middle draw of an odd number is dropped.
    let parts = [0, draws - half].map(|start| &values[start * chains..(start + half) * chains]);
    let halves: Vec<(f64, f64)> = parts
        .iter()
        .flat_map(|part| (0..chains).map(|chain| moments(column(part, chains, chain))))
        .collect();
    let within = halves.iter().map(|half| half.1).sum::<f64>() / halves.len() as f64;
    let between = moments(halves.iter().map(|half| half.0)).1;
    let n = half as f64;
    (((n - 1.0) / n * within + between) / within).sqrt()
}

/// Effective number of draws: how many independent ones would give the mean the same error.
///
/// `n m / (1 + 2 sum rho_t)` with the autocorrelations `rho_t` of all `m` chains together (they count the difference between chains),
/// summed by Geyer's initial monotone sequence. NaN for fewer than four draws of a chain.
pub fn effective_draws(values: &[f64], chains: usize) -> f64 {
    let draws = values.len() / chains;
    if draws < 4 {
        return f64::NAN;
    }
    let all: Vec<(f64, f64)> = (0..chains)
        .map(|chain| moments(column(values, chains, chain)))
        .collect();
    let n = draws as f64;
    let within = all.iter().map(|chain| chain.1).sum::<f64>() / chains as f64;
    let between = if chains > 1 {
        moments(all.iter().map(|chain| chain.0)).1
    } else {
        0.0
    };
    let variance = (n - 1.0) / n * within + between;
    let covariance = |lag: usize| {
        let mut sum = 0.0;
        for (chain, (mean, _)) in all.iter().enumerate() {
            for t in 0..draws - lag {
                let (a, b) = (t * chains + chain, (t + lag) * chains + chain);
                sum += (values[a] - mean) * (values[b] - mean);
            }
        }
        sum / (n * chains as f64)
    };
    let rho = |lag: usize| 1.0 - (within - n / (n - 1.0) * covariance(lag)) / variance;
    // Sums of neighbouring pairs are positive and fall for a reversible chain: noise begins where that ends.
    let mut total = 0.0;
    let mut last = f64::INFINITY;
    for lag in (0..draws - 1).step_by(2) {
        let pair = if lag == 0 {
            1.0 + rho(1)
        } else {
            rho(lag) + rho(lag + 1)
        };
        if pair < 0.0 || pair.is_nan() {
            break;
        }
        last = pair.min(last);
        total += last;
    }
    // tau = 2 total - 1; antithetic chains may be better than independent draws, but not without limit.
    let tau = (2.0 * total - 1.0).max(1.0 / (n * chains as f64).log10());
    n * chains as f64 / tau
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    /// Chains of `y' = a y + sqrt(1 - a^2) z`, each shifted by `offset` times its number.
    fn chains(a: f64, draws: usize, count: usize, offset: f64) -> Vec<f64> {
        let mut values = vec![0.0; draws * count];
        for chain in 0..count {
            let mut stream = Stream::new(3, Purpose::Test, 1, chain as u64);
            let mut y = stream.normal();
            for draw in 0..draws {
                y = a * y + (1.0 - a * a).sqrt() * stream.normal();
                values[draw * count + chain] = y + offset * chain as f64;
            }
        }
        values
    }

    #[test]
    fn autoregressive_chains_have_a_known_answer() {
        // Effective share (1 - a) / (1 + a). The estimate's relative error is below 10 % for these lengths (seen over seeds: 4 %).
        for a in [0.0, 0.6, -0.3, 0.9] {
            let (draws, count) = (4000, 4);
            let values = chains(a, draws, count, 0.0);
            let found = effective_draws(&values, count) / (draws * count) as f64;
            let expected = (1.0 - a) / (1.0 + a);
            assert!(
                (found / expected - 1.0).abs() < 0.2,
                "{a}: {found} {expected}"
            );
            assert!((split_r_hat(&values, count) - 1.0).abs() < 0.02);
        }
    }

    #[test]
    fn chains_that_disagree_are_found_out() {
        let apart = chains(0.3, 500, 4, 1.0);
        assert!(split_r_hat(&apart, 4) > 1.3);
        assert!(effective_draws(&apart, 4) < 20.0);
        // One chain that drifts disagrees with itself.
        let drift: Vec<f64> = (0..400).map(|k| f64::from(k) / 100.0).collect();
        assert!(split_r_hat(&drift, 1) > 1.5);
        assert!(
            split_r_hat(&[1.0, 2.0, 3.0], 1).is_nan() && effective_draws(&[1.0; 3], 1).is_nan()
        );
    }
}
