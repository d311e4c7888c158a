//! States of a series: how much time chains spend in each, with its error, and how often they go from one to another.

use crate::sample::{effective_draws, split_r_hat};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["vehtari2021rank"];

/// What chains say of their states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct States {
    /// Share of the frames in each state.
    pub weights: Vec<f64>,
    /// Its standard error, from the effective number of frames; not known (NaN) where no chain ever enters or leaves the state.
    pub errors: Vec<f64>,
    /// Integrated autocorrelation time of being in the state, in frames.
    pub correlation_times: Vec<f64>,
    /// Split R-hat of being in the state: above 1.01 the chains do not agree.
    pub r_hat: Vec<f64>,
    /// How often a chain goes from state i to state j from one frame to the next, row by row.
    pub transitions: Vec<u64>,
}

impl States {
    /// From the states of the frames, chain after chain of equal lengths; every state is below `count`.
    pub fn of(series: &[usize], chains: usize, count: usize) -> Result<States> {
        if chains == 0 || series.is_empty() || !series.len().is_multiple_of(chains) {
            return Err(Error::Shape {
                what: "the series of states".into(),
                found: format!("{} frames in {chains} chains", series.len()),
                expected: "chains of equal lengths".into(),
            });
        }
        if let Some(state) = series.iter().find(|state| **state >= count) {
            return Err(Error::Value {
                name: "state of a frame",
                found: state.to_string(),
                expected: format!("below {count}"),
            });
        }
        let frames = series.len() / chains;
        let total = series.len() as f64;
        let mut found = States {
            weights: Vec::new(),
            errors: Vec::new(),
            correlation_times: Vec::new(),
            r_hat: Vec::new(),
            transitions: vec![0; count * count],
        };
        for chain in series.chunks_exact(frames) {
            for pair in chain.windows(2).filter(|pair| pair[0] != pair[1]) {
                found.transitions[pair[0] * count + pair[1]] += 1;
            }
        }
        for state in 0..count {
            // All chains' first frames, then all second ones.
            let inside: Vec<f64> = (0..series.len())
                .map(|k| series[k % chains * frames + k / chains])
                .map(|found| f64::from(u8::from(found == state)))
                .collect();
            let weight = inside.iter().sum::<f64>() / total;
            // A state that is never entered or left tells nothing of its error.
            let effective = match weight > 0.0 && weight < 1.0 {
                true => effective_draws(&inside, chains),
                false => f64::NAN,
            };
            found.weights.push(weight);
            found
                .errors
                .push((weight * (1.0 - weight) / effective).sqrt());
            found.correlation_times.push(total / effective);
            found.r_hat.push(split_r_hat(&inside, chains));
        }
        Ok(found)
    }
}

/// The state of a value: how many borders it is not below. An angle beyond the last border is back in the first state where `periodic`.
pub fn state_of(value: f64, borders: &[f64], periodic: bool) -> usize {
    let state = borders.iter().filter(|border| value >= **border).count();
    match periodic && state == borders.len() && borders.len() > 1 {
        true => 0,
        false => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    #[test]
    fn a_chain_of_two_states_has_a_known_answer() {
        // From 0 to 1 with probability a, back with b: weight a/(a+b), eigenvalue 1-a-b, autocorrelation time (2-a-b)/(a+b).
        let (a, b, chains, frames) = (0.02, 0.06, 8, 20_000);
        let mut series = Vec::new();
        for chain in 0..chains {
            let mut stream = Stream::new(5, Purpose::Test, 0, chain);
            let mut state = usize::from(stream.uniform() < 0.25);
            for _ in 0..frames {
                let move_on = stream.uniform() < if state == 0 { a } else { b };
                state = if move_on { 1 - state } else { state };
                series.push(state);
            }
        }
        let found = States::of(&series, chains as usize, 2).unwrap();
        assert!((found.weights[1] - 0.25).abs() < 4.0 * found.errors[1]);
        let exact = (0.25 * 0.75 * (2.0 - a - b) / (a + b) / (8.0 * 20_000.0_f64)).sqrt();
        assert!(
            (found.errors[1] / exact - 1.0).abs() < 0.2,
            "{} {exact}",
            found.errors[1]
        );
        assert!((found.correlation_times[0] / 24.0 - 1.0).abs() < 0.3);
        // Rates: n w a transitions from 0, with a spread of about its root.
        let expected = 160_000.0 * 0.75 * a;
        assert!((found.transitions[1] as f64 - expected).abs() < 4.0 * expected.sqrt());
        assert!(found.transitions[1].abs_diff(found.transitions[2]) <= 8);
        assert!(found.r_hat[0] < 1.01);
        assert!(States::of(&series, 7, 2).is_err() && States::of(&series, 8, 1).is_err());
        let never = States::of(&[0; 40], 4, 2).unwrap();
        assert!(never.weights == [1.0, 0.0] && never.errors[1].is_nan());
    }

    #[test]
    fn borders_divide_a_line_and_a_circle() {
        assert_eq!(
            [-1.0, 0.0, 0.7].map(|x| state_of(x, &[0.0], false)),
            [0, 1, 1]
        );
        assert_eq!(
            [-3.0, -1.0, 1.0, 3.0].map(|x| state_of(x, &[-2.0, 2.0], true)),
            [0, 1, 1, 0]
        );
        assert_eq!([-1.0, 1.0].map(|x| state_of(x, &[0.0], true)), [0, 1]);
    }
}
