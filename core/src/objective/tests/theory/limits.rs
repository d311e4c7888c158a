//! Limits of close times, by quadrature on the line, with the constants that hold and the printed ones that do not.

use super::*;

/// A model that is wrong everywhere: the exact path plus this.
fn wrong(t: f64, y: &[f64]) -> f64 {
    0.4 * (1.1 * y[0] + 2.0 * t).sin() + 0.1 * t * y[0]
}

fn density(path: &ExactPath, t: f64, y: f64) -> f64 {
    let mut out = [0.0];
    path.log_density(&[t], &[y], &mut out);
    out[0].exp()
}

fn exact_time_score(path: &ExactPath, t: f64, y: f64) -> f64 {
    let mut out = [0.0];
    path.time_score(&[t], &[y], &mut out);
    out[0]
}

const TIME: f64 = 0.3;

fn on_the_line(f: impl Fn(f64) -> f64) -> f64 {
    integral(-7.0, 7.0, 2800, f)
}

/// `8/delta^2 (L - log 2)` of the binary loss and of DRE-infinity tend to `L_tSM - E[(d/dt log p)^2]`. The paper prints plus.
#[test]
fn close_times_turn_the_binary_loss_into_time_score_matching() {
    for path in [line(vp()), line(linear())] {
        let model = Changed {
            path: &path,
            change: &wrong,
            speed: 1.0,
        };
        let weighted = |f: &dyn Fn(f64) -> f64| on_the_line(|y| density(&path, TIME, y) * f(y));
        let tsm = weighted(&|y| {
            (model.time_score(TIME, &[y]) - exact_time_score(&path, TIME, y)).powi(2)
        });
        let constant = weighted(&|y| exact_time_score(&path, TIME, y).powi(2));
        let limit = tsm - constant;
        assert!(constant > 0.5 * tsm.abs(), "{tsm} {constant}");
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let binary = |delta: f64| {
            let later = TIME + delta;
            let loss = on_the_line(|y| {
                let margin = model.log_density(later, &[y]) - model.log_density(TIME, &[y]);
                0.5 * density(&path, TIME, y) * softplus(margin)
                    + 0.5 * density(&path, later, y) * softplus(-margin)
            });
            8.0 / (delta * delta) * (loss - 2f64.ln())
        };
        let dre = |delta: f64| {
            let loss = on_the_line(|y| {
                let h = 0.5 + 0.25 * delta * model.time_score(TIME, &[y]);
                -0.5 * density(&path, TIME, y) * (1.0 - h).ln()
                    - 0.5 * density(&path, TIME + delta, y) * h.ln()
            });
            8.0 / (delta * delta) * (loss - 2f64.ln())
        };
        for (name, of) in [("binary", &binary as &dyn Fn(f64) -> f64), ("dre", &dre)] {
            // The error is of first order: Richardson's combination of two distances leaves the second.
            let found = 2.0 * of(1e-3) - of(2e-3);
            assert!(
                (found - limit).abs() < 1e-3 * (tsm + constant),
                "{name}: {found}, expected {limit}"
            );
            assert!(
                (found - (tsm + constant)).abs() > constant,
                "{name}: the printed sign"
            );
        }
    }
}

/// Mean and mean square of the residual of Bayes' rule given `y_s`, by quadrature over the forward noise.
fn bayes_moments(path: &ExactPath, model: &dyn Model, y_s: f64, delta: f64) -> (f64, f64) {
    let p = path.process();
    let (s, t) = (TIME, TIME + delta);
    let m = p.scale(t) / p.scale(s);
    let c2 = p.noise(t).powi(2) - m * m * p.noise(s).powi(2);
    let (f, g2) = (p.drift(t), p.diffusion_squared(t));
    let r = |e: f64| {
        let y_t = m * y_s + c2.sqrt() * e;
        let back = y_t - delta * (f * y_t - g2 * model.score(t, &[y_t])[0]);
        model.log_density(s, &[y_s]) - model.log_density(t, &[y_t])
            + normal_density(y_t, m * y_s, c2).ln()
            - normal_density(y_s, back, delta * g2).ln()
    };
    let moment = |power: i32| {
        integral(-9.0, 9.0, 600, |e| {
            normal_density(e, 0.0, 1.0) * r(e).powi(power)
        })
    };
    (moment(1), moment(2))
}

/// `E[r | y]/delta` tends to minus the Fokker-Planck residual R, `E[r^2 | y]/delta^2` to `R^2 + (g^2 (log p)'' + 2 k)^2 / 2` with
/// `2 k = -f - (g^2)'/(2 g^2)`, the mismatch of the exact forward and the Euler-Maruyama backward kernel. The printed
/// `E[r^2]/delta` tends to zero, not to `R^2`.
#[test]
fn close_times_turn_bayes_rule_into_the_fokker_planck_equation() {
    let path = line(vp());
    let model = Changed {
        path: &path,
        change: &wrong,
        speed: 1.0,
    };
    let p = path.process();
    let (f, g2) = (p.drift(TIME), p.diffusion_squared(TIME));
    for y in [-1.6, -0.3, 0.8] {
        let score = model.score(TIME, &[y])[0];
        let second = model.hessian(TIME, &[y], 0, 0);
        let residual = model.time_score(TIME, &[y])
            - (0.5 * g2 * (second + score * score) - f * y * score - f);
        let growth = difference(1e-3, |h| p.diffusion_squared(TIME + h)) / (2.0 * g2);
        let limit = residual * residual + 0.5 * (g2 * second - f - growth).powi(2);
        let at = |delta: f64| bayes_moments(&path, &model, y, delta);
        let (a, b) = (at(2e-4), at(1e-4));
        let mean = 2.0 * b.0 / 1e-4 - a.0 / 2e-4;
        let square = 2.0 * b.1 / 1e-8 - a.1 / 4e-8;
        let size = residual.abs() + g2 * (second.abs() + score * score);
        assert!(
            (mean + residual).abs() < 5e-3 * size,
            "{y}: {mean}, expected {}",
            -residual
        );
        assert!(
            (square - limit).abs() < 1e-2 * (limit + size),
            "{y}: {square}, expected {limit}"
        );
        // The printed scaling.
        assert!(b.1 / 1e-4 < 0.01 * limit, "{y}: {}", b.1 / 1e-4);
    }
}

/// The divergence of the drift f y is d f. With f alone the exact marginals of two dimensions violate the equation.
#[test]
fn exact_marginals_obey_the_fokker_planck_equation() {
    let path = plane(vp());
    let model = Changed {
        path: &path,
        change: &nothing,
        speed: 1.0,
    };
    let p = path.process();
    let (f, g2) = (p.drift(TIME), p.diffusion_squared(TIME));
    for y in [[-0.9, 0.3], [0.2, -0.8], [1.4, 0.5]] {
        let score = model.score(TIME, &y);
        let laplacian = model.hessian(TIME, &y, 0, 0) + model.hessian(TIME, &y, 1, 1);
        let square = score[0] * score[0] + score[1] * score[1];
        let inner = y[0] * score[0] + y[1] * score[1];
        let residual = |divergence: f64| {
            model.time_score(TIME, &y) - (0.5 * g2 * (laplacian + square) - f * inner - divergence)
        };
        assert!(residual(2.0 * f).abs() < 1e-7, "{}", residual(2.0 * f));
        assert!(residual(f).abs() > 0.5);
    }
}
