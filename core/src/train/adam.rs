//! Adam (Kingma and Ba 2015) with global-norm clipping and an exponential moving average of the parameters.

use crate::engine::{Pool, Real};

/// Parameters that a thread takes at once: fewer are not worth waking one.
const PIECE: usize = 1 << 14;

/// Settings of the optimiser.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Adam {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
}

impl Default for Adam {
    fn default() -> Adam {
        Adam {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
        }
    }
}

/// Scales the gradient down to norm `limit` if it is longer; returns the norm it had.
pub fn clip<T: Real>(gradient: &mut [T], limit: Option<f64>) -> f64 {
    // Sixteen partial sums in a fixed order: exact to the last bits and the same on every machine.
    let mut lanes = [0.0f64; 16];
    let (blocks, rest) = gradient.as_chunks::<16>();
    for block in blocks {
        for (lane, x) in lanes.iter_mut().zip(block) {
            *lane += x.to_f64() * x.to_f64();
        }
    }
    let norm = (lanes.iter().sum::<f64>()
        + rest.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>())
    .sqrt();
    if let Some(limit) = limit
        && norm > limit
    {
        let factor = T::from_f64(limit / norm);
        gradient.iter_mut().for_each(|x| *x = *x * factor);
    }
    norm
}

impl Adam {
    /// One update; `step` counts from 1. Every number is for itself, so that any number of threads gives the same.
    pub fn update<T: Real>(
        &self,
        step: u64,
        rate: f64,
        gradient: &[T],
        (params, m, v): (&mut [T], &mut [T], &mut [T]),
        pool: &Pool,
    ) {
        let correction = |beta: f64| 1.0 - beta.powf(step as f64);
        let scale = T::from_f64(rate / correction(self.beta1));
        let inverse = T::from_f64(1.0 / correction(self.beta2));
        let (b1, b2, epsilon) = (
            T::from_f64(self.beta1),
            T::from_f64(self.beta2),
            T::from_f64(self.epsilon),
        );
        let (c1, c2) = (T::from_f64(1.0 - self.beta1), T::from_f64(1.0 - self.beta2));
        pool.pieces([params, m, v], PIECE, |start, [params, m, v]| {
            for (((p, &g), m), v) in params.iter_mut().zip(&gradient[start..]).zip(m).zip(v) {
                *m = b1 * *m + c1 * g;
                *v = b2 * *v + c2 * g * g;
                *p = *p - scale * *m / ((*v * inverse).sqrt() + epsilon);
            }
        });
    }
}

/// `average += (1 - decay) (params - average)`, with a decay that grows from 0 so that the start is forgotten:
/// `min(decay, (1 + step) / (10 + step))`.
pub fn average<T: Real>(step: u64, decay: f64, params: &[T], average: &mut [T], pool: &Pool) {
    let decay = decay.min((1 + step) as f64 / (10 + step) as f64);
    let share = T::from_f64(1.0 - decay);
    pool.pieces([average], PIECE, |start, [average]| {
        for (a, &p) in average.iter_mut().zip(&params[start..]) {
            *a += share * (p - *a);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps by hand, with the formulas of the paper written out.
    #[test]
    fn adam_agrees_with_the_formulas() {
        let adam = Adam::default();
        let (mut p, mut m, mut v) = ([1.0f64, -2.0], [0.0; 2], [0.0; 2]);
        let gradients = [[0.5, -0.1], [-0.3, 0.2]];
        let (mut pe, mut me, mut ve) = (p, m, v);
        for (k, g) in gradients.iter().enumerate() {
            let state = (&mut p[..], &mut m[..], &mut v[..]);
            adam.update(k as u64 + 1, 0.01, g, state, &Pool::new(1));
            for i in 0..2 {
                me[i] = 0.9 * me[i] + 0.1 * g[i];
                ve[i] = 0.999 * ve[i] + 0.001 * g[i] * g[i];
                let (mh, vh) = (
                    me[i] / (1.0 - 0.9f64.powi(k as i32 + 1)),
                    ve[i] / (1.0 - 0.999f64.powi(k as i32 + 1)),
                );
                pe[i] -= 0.01 * mh / (vh.sqrt() + 1e-8);
                assert!((p[i] - pe[i]).abs() < 1e-12);
            }
        }
    }

    /// Pieces of any threads, the last one short.
    #[test]
    fn threads_give_the_same_numbers() {
        let count = 3 * PIECE + 77;
        let number = |k: usize| ((k * 37 % 1001) as f32 - 500.0) * 1e-3;
        let gradient: Vec<f32> = (0..count).map(number).collect();
        let run = |threads: usize| {
            let pool = Pool::new(threads);
            let mut params: Vec<f32> = (0..count).map(|k| number(k + 5)).collect();
            let (mut m, mut v) = (vec![0.0; count], vec![0.0; count]);
            let mut mean = params.clone();
            for step in 1..4 {
                let state = (&mut params[..], &mut m[..], &mut v[..]);
                Adam::default().update(step, 0.01, &gradient, state, &pool);
                average(step, 0.99, &params, &mut mean, &pool);
            }
            (params, m, v, mean)
        };
        let one = run(1);
        assert!(one.0[count - 1] != number(count + 4));
        for threads in [2, 5] {
            assert_eq!(run(threads), one);
        }
    }

    #[test]
    fn clipping_keeps_the_direction_and_short_gradients() {
        let mut g: Vec<f64> = (0..37).map(|i| i as f64 - 12.0).collect();
        let before = g.clone();
        let norm = clip(&mut g, Some(1.0));
        assert!((norm - before.iter().map(|x| x * x).sum::<f64>().sqrt()).abs() < 1e-9);
        assert!((g.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((g[3] * norm - before[3]).abs() < 1e-9);
        let short = g.clone();
        clip(&mut g, Some(2.0));
        assert_eq!(g, short);
    }

    #[test]
    fn average_forgets_the_start() {
        let mut a = vec![5.0f64];
        for step in 0..2000 {
            average(step, 0.99, &[1.0], &mut a, &Pool::new(1));
        }
        assert!((a[0] - 1.0).abs() < 1e-6);
    }
}
