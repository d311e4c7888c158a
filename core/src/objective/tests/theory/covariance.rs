//! More levels, less variance: the estimator's covariance over 200 replicates of a model with two parameters (the paper's
//! corollary on the asymptotic covariance).

use super::*;

/// log p_t(y) of two modes whose weight has the logit `a`, plus `b t`: true at (logit 0.7, 0).
struct TwoParameters {
    process: Process,
}

impl TwoParameters {
    /// Value and gradient in (a, b).
    fn log_density(&self, [a, b]: [f64; 2], t: f64, y: f64) -> (f64, [f64; 2]) {
        let (scale, gamma) = (self.process.scale(t), self.process.noise(t));
        let mode = |mean: f64, variance: f64| {
            normal_density(y, scale * mean, scale * scale * variance + gamma * gamma)
        };
        let (p, q) = (mode(-1.1, 0.15), mode(0.9, 0.3));
        let w = 1.0 / (1.0 + (-a).exp());
        let total = w * p + (1.0 - w) * q;
        (total.ln() + b * t, [w * (1.0 - w) * (p - q) / total, t])
    }
}

/// Minimises the mean DiffCLF loss of `rows` rows of N levels with Newton's method (Gauss-Newton's Hessian: the covariance of the
/// gradients of the classes, exact for a softmax up to second derivatives, which vanish in the mean).
fn estimate(model: &TwoParameters, levels: usize, rows: u64, seed: u64) -> [f64; 2] {
    let path = line(model.process);
    let mut data = Vec::new();
    for number in 0..rows {
        let mut stream = Stream::new(seed, Purpose::Test, levels as u64, number);
        let times: Vec<f64> = (0..levels).map(|_| 0.05 + 0.9 * stream.uniform()).collect();
        let mut x0 = [0.0];
        path.start().sample_point(&mut stream, &mut x0);
        for i in 0..levels {
            let noise = model.process.noise(times[i]) * stream.normal();
            data.push((
                times.clone(),
                i,
                model.process.scale(times[i]) * x0[0] + noise,
            ));
        }
    }
    let mut theta = [0.3, 0.0];
    for _ in 0..20 {
        let (mut gradient, mut hessian) = ([0.0; 2], [[0.0; 2]; 2]);
        for (times, own, y) in &data {
            let classes: Vec<_> = times
                .iter()
                .map(|&t| model.log_density(theta, t, *y))
                .collect();
            let most = classes.iter().fold(f64::NEG_INFINITY, |m, c| m.max(c.0));
            let total: f64 = classes.iter().map(|c| (c.0 - most).exp()).sum();
            let share = |c: &(f64, [f64; 2])| (c.0 - most).exp() / total;
            let mean = [0, 1].map(|k| classes.iter().map(|c| share(c) * c.1[k]).sum::<f64>());
            for k in 0..2 {
                gradient[k] += mean[k] - classes[*own].1[k];
                for l in 0..2 {
                    let second: f64 = classes.iter().map(|c| share(c) * c.1[k] * c.1[l]).sum();
                    hessian[k][l] += second - mean[k] * mean[l];
                }
            }
        }
        let det = hessian[0][0] * hessian[1][1] - hessian[0][1] * hessian[1][0];
        let step = [
            (hessian[1][1] * gradient[0] - hessian[0][1] * gradient[1]) / det,
            (hessian[0][0] * gradient[1] - hessian[1][0] * gradient[0]) / det,
        ];
        for k in 0..2 {
            theta[k] -= step[k].clamp(-1.0, 1.0);
        }
        if step.iter().all(|s| s.abs() < 1e-8) {
            break;
        }
    }
    theta
}

#[test]
fn the_estimator_varies_less_with_more_levels() {
    let model = TwoParameters { process: vp() };
    let truth = [(0.7f64 / 0.3).ln(), 0.0];
    let replicates = 200;
    let mut last = [f64::INFINITY; 2];
    for levels in [2, 4, 8] {
        let estimates: Vec<[f64; 2]> = (0..replicates)
            .map(|seed| estimate(&model, levels, 60, seed))
            .collect();
        for k in 0..2 {
            let n = replicates as f64;
            let mean = estimates.iter().map(|e| e[k]).sum::<f64>() / n;
            let variance = estimates.iter().map(|e| (e[k] - mean).powi(2)).sum::<f64>() / n;
            // The estimator is consistent: its mean is the truth within four standard errors and a bias of order 1/rows, here
            // below half its own spread.
            let allowed = 4.0 * (variance / n).sqrt() + 0.5 * variance.sqrt();
            assert!((mean - truth[k]).abs() < allowed, "N={levels}, {k}: {mean}");
            // A variance of 200 replicates has a relative error of sqrt(2/200) = 0.1; four of them are 0.4, so it must fall by
            // a factor below 0.7 at each doubling to be seen, and it does.
            assert!(
                variance < 0.7 * last[k],
                "N={levels}, {k}: {variance} after {}",
                last[k]
            );
            last[k] = variance;
        }
    }
}
