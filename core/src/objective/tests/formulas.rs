//! Every loss written out a second time: plain loops over the draws of a step, a model of dual numbers, no graph.

use super::*;
use crate::base::{BaseEnds, MixtureBase, Spread};
use crate::energy::Energy;
use crate::energy::tests::reference::{self, Reference, mixture_log_density};
use crate::train::Draws;

/// A mean over the batch, and the size of the terms that cancel in it.
pub(crate) struct Value {
    pub(crate) value: f64,
    pub(crate) size: f64,
}

/// What a formula asks of a model.
pub(crate) trait Model {
    fn log_density(&self, time: f64, y: &[f64]) -> f64;
    fn score(&self, time: f64, y: &[f64]) -> Vec<f64>;
    fn time_score(&self, time: f64, y: &[f64]) -> f64;
    /// `d^2 log p / dy_i dy_j`.
    fn hessian(&self, time: f64, y: &[f64], i: usize, j: usize) -> f64;
    fn velocity(&self, time: f64, y: &[f64]) -> Vec<f64>;
}

impl Model for Reference<'_> {
    fn log_density(&self, time: f64, y: &[f64]) -> f64 {
        self.log_density(time, y)
    }
    fn score(&self, time: f64, y: &[f64]) -> Vec<f64> {
        self.score(time, y)
    }
    fn time_score(&self, time: f64, y: &[f64]) -> f64 {
        self.time_score(time, y)
    }
    fn hessian(&self, time: f64, y: &[f64], i: usize, j: usize) -> f64 {
        -self.hessian(time, y, i, j)
    }
    fn velocity(&self, time: f64, y: &[f64]) -> Vec<f64> {
        self.velocity(time, y)
    }
}

/// One source row with its draws.
pub(crate) struct Row<'a> {
    pub(crate) spec: &'a ModelSpec,
    pub(crate) model: &'a dyn Model,
    /// The score of Bayes' backward kernel: another model where gradients stop.
    pub(crate) backward: &'a dyn Model,
    pub(crate) truth: &'a ExactPath,
    pub(crate) times: Vec<f64>,
    pub(crate) x0: Vec<f64>,
    pub(crate) x1: Vec<f64>,
    pub(crate) noise: Vec<Vec<f64>>,
    pub(crate) partner_noise: Vec<Vec<f64>>,
    pub(crate) probes: [Vec<Vec<f64>>; 2],
    pub(crate) end_noise: Vec<f64>,
    pub(crate) anchors: Vec<f64>,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn log_sum_exp(x: &[f64]) -> f64 {
    let most = x.iter().fold(f64::NEG_INFINITY, |m, x| m.max(*x));
    most + x.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Rate of a schedule by its central difference.
fn rate(f: impl Fn(f64) -> f64, t: f64) -> f64 {
    let h = 1e-4 * t;
    (8.0 * (f(t + h) - f(t - h)) - f(t + 2.0 * h) + f(t - 2.0 * h)) / (12.0 * h)
}

/// `phi'(r) r - phi(r)` and `phi'(r)` at `log r`.
pub(crate) fn binary_generator(name: &str, log_r: f64) -> (f64, f64) {
    match name {
        "js" => (softplus(log_r), -softplus(-log_r)),
        "kl" => (log_r.exp(), log_r),
        "log" => (log_r - 1.0, -(-log_r).exp()),
        _ => (0.5 * (2.0 * log_r).exp(), log_r.exp()),
    }
}

/// An exact log-density.
type LogDensity<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

impl Row<'_> {
    fn d(&self) -> usize {
        self.spec.dim
    }

    fn alpha(&self, t: f64) -> f64 {
        reference::endpoints(&self.spec.process, t).0
    }

    fn beta(&self, t: f64) -> f64 {
        reference::endpoints(&self.spec.process, t).1
    }

    fn gamma(&self, t: f64) -> f64 {
        let (scale, sigma) = reference::schedule(&self.spec.process, t);
        scale * sigma
    }

    fn sigma(&self, t: f64) -> f64 {
        reference::schedule(&self.spec.process, t).1
    }

    fn scale(&self, t: f64) -> f64 {
        reference::schedule(&self.spec.process, t).0
    }

    /// `alpha x_0 + beta x_1 + gamma z`.
    fn point(&self, t: f64, z: &[f64]) -> Vec<f64> {
        let (a, b, c) = (self.alpha(t), self.beta(t), self.gamma(t));
        (0..self.d())
            .map(|k| {
                let x1 = self.x1.get(k).copied().unwrap_or(0.0);
                a * self.x0[k] + b * x1 + c * z[k]
            })
            .collect()
    }

    fn y(&self, i: usize) -> Vec<f64> {
        self.point(self.times[i], &self.noise[i])
    }

    fn mirror(&self, i: usize) -> Vec<f64> {
        let minus: Vec<f64> = self.noise[i].iter().map(|z| -z).collect();
        self.point(self.times[i], &minus)
    }

    /// `alpha' x_0 + beta' x_1`.
    fn motion(&self, t: f64) -> Vec<f64> {
        let (a, b) = (rate(|t| self.alpha(t), t), rate(|t| self.beta(t), t));
        (0..self.d())
            .map(|k| a * self.x0[k] + b * self.x1.get(k).copied().unwrap_or(0.0))
            .collect()
    }

    /// Linear between the levels of the grid.
    fn tau(&self, weight: &str, t: f64) -> f64 {
        let above = self.spec.grid.times().iter().position(|&level| level >= t);
        match above {
            Some(k) if k > 0 => {
                let (low, high) = (self.spec.grid.times()[k - 1], self.spec.grid.times()[k]);
                let (from, to) = (self.level_tau(weight, low), self.level_tau(weight, high));
                from + (to - from) * (t - low) / (high - low)
            }
            _ => self.level_tau(weight, t),
        }
    }

    fn level_tau(&self, weight: &str, t: f64) -> f64 {
        let (gamma, slope) = (self.gamma(t), rate(|t| self.gamma(t), t));
        match weight {
            "noise" => (gamma / slope).abs(),
            "one" => 1.0,
            _ => {
                let (a, b) = (rate(|t| self.alpha(t), t), rate(|t| self.beta(t), t));
                let d = self.d() as f64;
                let v = self.spec.variance + self.spec.mean.iter().map(|m| m * m).sum::<f64>() / d;
                gamma / (2.0 * slope * slope + v * (a * a + b * b)).sqrt()
            }
        }
    }

    /// Log-densities of a point at the row's times.
    fn classes(&self, y: &[f64]) -> Vec<f64> {
        self.times
            .iter()
            .map(|&t| self.model.log_density(t, y))
            .collect()
    }

    /// `f = S'/S` and `g^2 = 2 S^2 sigma sigma'`.
    fn sde(&self, t: f64) -> (f64, f64) {
        let f = rate(|t| self.scale(t), t) / self.scale(t);
        let g2 = 2.0 * self.scale(t).powi(2) * self.sigma(t) * rate(|t| self.sigma(t), t);
        (f, g2)
    }

    /// The loss of one term, and the size of what cancels in it.
    pub(crate) fn loss(&self, term: &ObjectiveName) -> (f64, f64) {
        let objective = term.objective();
        let settings = term.values();
        let setting =
            |name: &str| -> &str { &settings.iter().find(|s| s.0 == name).expect("a setting").1 };
        let n = self.times.len();
        let mean = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        match objective.name() {
            "dsm" => (mean(&|i| self.dsm(i)), 0.0),
            "diffclf" => {
                let loss = |i: usize| {
                    let classes = self.classes(&self.y(i));
                    log_sum_exp(&classes) - classes[i]
                };
                (mean(&loss), 0.0)
            }
            "binary-diffclf" => {
                let loss = |i: usize| {
                    let classes = self.classes(&self.y(i));
                    softplus(classes[1 - i] - classes[i])
                };
                (mean(&loss), 0.0)
            }
            "binary-bregman" => self.binary_bregman(setting("generator")),
            "bregman" => (mean(&|i| self.bregman(i, setting("generator"))), 0.0),
            "known-diffclf" => (self.known_diffclf(setting("ends")), 0.0),
            "anchor" => (mean(&|i| self.anchor(i)), 0.0),
            "ctsm" => (mean(&|i| self.ctsm(i, setting("weight"))), 0.0),
            "tsm" => {
                let loss = |i: usize| {
                    let (t, y) = (self.times[i], self.y(i));
                    let mut exact = [0.0];
                    self.truth.time_score(&[t], &y, &mut exact);
                    let error = self.model.time_score(t, &y) - exact[0];
                    (error * self.tau(setting("weight"), t)).powi(2)
                };
                (mean(&loss), 0.0)
            }
            "dre-infinity" => {
                let delta: f64 = setting("delta").parse().unwrap();
                // Differences of logarithms of numbers near 1, divided by delta^2.
                let loss = |i: usize| self.dre_infinity(i, delta, setting("weight"));
                (mean(&loss), 8e-4 / (delta * delta))
            }
            "fokker-planck" => {
                let step: f64 = setting("step").parse().unwrap();
                let way = setting("laplacian");
                let loss = |i: usize| self.fokker_planck(i, way, step, setting("weight"));
                (mean(&loss), 1e-3 * mean(&|i| loss(i).abs()))
            }
            "bayes" => {
                let gap: f64 = setting("gap").parse().unwrap();
                let loss = |i: usize| self.bayes(i, gap, setting("weight"));
                (mean(&loss), 1e3)
            }
            "target-score" => (mean(&|i| self.target_score(i)), 0.0),
            "velocity" => {
                let loss = |i: usize| {
                    let t = self.times[i];
                    let (v, motion) = (self.model.velocity(t, &self.y(i)), self.motion(t));
                    v.iter().zip(&motion).map(|(v, m)| (v - m).powi(2)).sum()
                };
                (mean(&loss), 0.0)
            }
            other => panic!("no formula for {other}"),
        }
    }

    fn dsm(&self, i: usize) -> f64 {
        let t = self.times[i];
        let (gamma, sigma) = (self.gamma(t), self.sigma(t));
        let square = |sign: f64, y: &[f64]| -> f64 {
            let score = self.model.score(t, y);
            let target = self.noise[i].iter().map(|z| -sign * z / gamma);
            score.iter().zip(target).map(|(s, t)| (s - t).powi(2)).sum()
        };
        if self.spec.process.is_interpolant() {
            gamma * gamma * 0.5 * (square(1.0, &self.y(i)) + square(-1.0, &self.mirror(i)))
        } else {
            let sd2 = self.spec.variance;
            gamma * gamma * (sigma * sigma + sd2) / sd2 * square(1.0, &self.y(i))
        }
    }

    /// `E_s[phi'(r) r - phi(r)] - E_t[phi'(r)]`, both parts as functions of `log r`.
    fn binary_bregman(&self, generator: &str) -> (f64, f64) {
        let log_ratio = |y: &[f64]| {
            let classes = self.classes(y);
            classes[1] - classes[0]
        };
        let at_s = binary_generator(generator, log_ratio(&self.y(0))).0;
        let at_t = binary_generator(generator, log_ratio(&self.y(1))).1;
        (at_s - at_t, at_s.abs() + at_t.abs())
    }

    fn bregman(&self, i: usize, generator: &str) -> f64 {
        let classes = self.classes(&self.y(i));
        let total = log_sum_exp(&classes);
        let r: Vec<f64> = classes.iter().map(|l| (l - total).exp()).collect();
        let phi = |r: f64| match generator {
            "entropy" => (r * r.ln(), 1.0 + r.ln()),
            "js" => (
                r * r.ln() - (1.0 + r) * (1.0 + r).ln(),
                r.ln() - (1.0 + r).ln(),
            ),
            "square" => (0.5 * r * r, r),
            _ => (1.0 / r, -1.0 / (r * r)),
        };
        let sum: f64 = r.iter().map(|&r| phi(r).1 * r - phi(r).0).sum();
        sum - phi(r[i]).1
    }

    fn known_diffclf(&self, ends: &str) -> f64 {
        let diffusion = !self.spec.process.is_interpolant();
        let last = self.spec.grid.t_max();
        let mut known: Vec<(Vec<f64>, LogDensity<'_>)> = Vec::new();
        let exact = |t: f64| {
            move |y: &[f64]| {
                let mut out = [0.0];
                self.truth.log_density(&[t], y, &mut out);
                out[0]
            }
        };
        if ends != "last" {
            known.push((self.x0.clone(), Box::new(exact(0.0))));
        }
        if ends != "first" && diffusion {
            let a2 = self.scale(last).powi(2) * self.spec.variance + self.gamma(last).powi(2);
            let gaussian = move |y: &[f64]| {
                let centre = self.spec.mean.iter().map(|m| self.scale(last) * m);
                let square: f64 = y.iter().zip(centre).map(|(y, c)| (y - c).powi(2)).sum();
                -0.5 * square / a2 - 0.5 * self.d() as f64 * (std::f64::consts::TAU * a2).ln()
            };
            known.push((self.point(last, &self.end_noise), Box::new(gaussian)));
        } else if ends != "first" {
            known.push((self.x1.clone(), Box::new(exact(1.0))));
        }
        let (n, e) = (self.times.len(), known.len());
        let mut sum = 0.0;
        for i in 0..n + e {
            let y = if i < n {
                self.y(i)
            } else {
                known[i - n].0.clone()
            };
            let mut classes = self.classes(&y);
            classes.extend(known.iter().map(|(_, density)| density(&y)));
            sum += log_sum_exp(&classes) - classes[i];
        }
        sum / (n + e) as f64
    }

    fn ctsm(&self, i: usize, weight: &str) -> f64 {
        let t = self.times[i];
        let (gamma, slope) = (self.gamma(t), rate(|t| self.gamma(t), t));
        let z = &self.noise[i];
        let square = |sign: f64, y: &[f64]| {
            let target = slope / gamma * (dot(z, z) - self.d() as f64)
                + sign * dot(z, &self.motion(t)) / gamma;
            (self.tau(weight, t) * (self.model.time_score(t, y) - target)).powi(2)
        };
        if self.spec.process.is_interpolant() {
            0.5 * (square(1.0, &self.y(i)) + square(-1.0, &self.mirror(i)))
        } else {
            square(1.0, &self.y(i))
        }
    }

    fn dre_infinity(&self, i: usize, delta: f64, weight: &str) -> f64 {
        let t = self.times[i];
        let mut gap = delta * self.tau("balanced", t).min(self.spec.process.horizon());
        if t + gap > self.spec.grid.t_max() {
            gap = -gap;
        }
        let there = self.point(t + gap, &self.noise[i]);
        let h = |y: &[f64]| 0.5 + 0.25 * gap * self.model.time_score(t, y);
        let log = |h: f64| h.max(0.25).ln() - 4.0 * (0.25 - h).max(0.0);
        let loss = -0.5 * log(1.0 - h(&self.y(i))) - 0.5 * log(h(&there));
        8.0 / (gap * gap) * self.tau(weight, t).powi(2) * (loss - 2f64.ln())
    }

    fn anchor(&self, i: usize) -> f64 {
        let (t, d) = (self.times[i], self.d());
        let spread = Spread::Diagonal {
            variances: vec![self.spec.variance; d],
            basis: None,
        };
        let gaussian = BaseEnds {
            start: MixtureBase::new(d, vec![1.0], self.spec.mean.clone(), spread).unwrap(),
            end: None,
        };
        let base = self.spec.base.as_ref().unwrap_or(&gaussian);
        let ratio = |y: &[f64]| {
            let known = [1.0, 1.5, 2.0, 3.0].map(|inflation| {
                mixture_log_density(self.spec, (base, inflation), t, y) - 4f64.ln()
            });
            self.model.log_density(t, y) - log_sum_exp(&known)
        };
        let softplus = |z: f64| z.exp().ln_1p();
        softplus(-ratio(&self.y(i))) + softplus(ratio(&self.anchors[i * d..][..d]))
    }

    fn fokker_planck(&self, i: usize, way: &str, step: f64, weight: &str) -> f64 {
        let (t, y, d) = (self.times[i], self.y(i), self.d());
        let (f, g2) = self.sde(t);
        let score = self.model.score(t, &y);
        let laplacian = |model: &dyn Model, way: &str, k: usize| -> f64 {
            if way == "exact" {
                return (0..d).map(|c| model.hessian(t, &y, c, c)).sum();
            }
            let e = &self.probes[k][i];
            if way == "hutchinson" {
                let mut sum = 0.0;
                for a in 0..d {
                    for b in 0..d {
                        sum += e[a] * e[b] * model.hessian(t, &y, a, b);
                    }
                }
                return sum;
            }
            let h = step * self.gamma(t);
            let moved = |sign: f64| -> Vec<f64> {
                let y: Vec<f64> = y.iter().zip(e).map(|(y, e)| y + sign * h * e).collect();
                model.score(t, &y)
            };
            (dot(&moved(1.0), e) - dot(&moved(-1.0), e)) / (2.0 * h)
        };
        // A mixture's part is exact, however the network's is found. Without parameters a model is its mixture.
        let zeros = vec![0.0; self.spec.layout().len()];
        let mixture = Reference::new(self.spec, &zeros);
        let laplacian = |k: usize| match &self.spec.base {
            None => laplacian(self.model, way, k),
            Some(_) => {
                laplacian(self.model, way, k) - laplacian(&mixture, way, k)
                    + laplacian(&mixture, "exact", k)
            }
        };
        let residual = |k: usize| {
            let right = 0.5 * g2 * (laplacian(k) + dot(&score, &score))
                - f * dot(&y, &score)
                - d as f64 * f;
            self.model.time_score(t, &y) - right
        };
        self.tau(weight, t).powi(2) * residual(0) * residual(1)
    }

    fn bayes(&self, i: usize, gap: f64, weight: &str) -> f64 {
        let (t, d) = (self.times[i], self.d() as f64);
        let times = self.spec.grid.times();
        let below = times.iter().rposition(|&g| g <= t).unwrap();
        let place = if below + 1 < times.len() {
            below as f64 + (t - times[below]) / (times[below + 1] - times[below])
        } else {
            below as f64
        };
        if place < gap {
            return 0.0;
        }
        let (k, share) = ((place - gap) as usize, (place - gap).fract());
        let s = times[k] + share * (times[(k + 1).min(times.len() - 1)] - times[k]);
        let delta = t - s;
        let rho = self.sigma(s) / self.sigma(t);
        let (z, e) = (&self.noise[i], &self.partner_noise[i]);
        let z_s: Vec<f64> = z
            .iter()
            .zip(e)
            .map(|(z, e)| rho * z + (1.0 - rho * rho).sqrt() * e)
            .collect();
        let (y_s, y_t) = (self.point(s, &z_s), self.y(i));
        let normal = |x: &[f64], mean: &[f64], variance: f64| {
            let square: f64 = x.iter().zip(mean).map(|(x, m)| (x - m).powi(2)).sum();
            -0.5 * square / variance - 0.5 * d * (std::f64::consts::TAU * variance).ln()
        };
        let m = self.scale(t) / self.scale(s);
        let forward: Vec<f64> = y_s.iter().map(|y| m * y).collect();
        let c2 = self.gamma(t).powi(2) - m * m * self.gamma(s).powi(2);
        let (f, g2) = self.sde(t);
        let score = self.backward.score(t, &y_t);
        let backward: Vec<f64> = y_t
            .iter()
            .zip(&score)
            .map(|(y, score)| y - delta * (f * y - g2 * score))
            .collect();
        let r = self.model.log_density(s, &y_s) - self.model.log_density(t, &y_t)
            + normal(&y_t, &forward, c2)
            - normal(&y_s, &backward, delta * g2);
        (self.tau(weight, t) / delta * r).powi(2)
    }

    fn target_score(&self, i: usize) -> f64 {
        let t = self.times[i];
        let score = self.model.score(t, &self.y(i));
        let mut exact = vec![0.0; self.d()];
        let (weight, share);
        if self.spec.process.is_interpolant() {
            weight = match &self.spec.springs {
                None => self.gamma(t).powi(2),
                Some(springs) => {
                    let end = if t <= 0.5 { 0 } else { springs.times.len() - 1 };
                    let kappa = springs.curvatures[end].max(1.0 / self.spec.variance);
                    let (near, far) = match end {
                        0 => (self.alpha(t), self.beta(t)),
                        _ => (self.beta(t), self.alpha(t)),
                    };
                    let spread = far * far * self.spec.variance + self.gamma(t).powi(2);
                    let open = kappa * spread / (near * near);
                    1.0 / (kappa * (0.05 + open / (1.0 + open)))
                }
            };
            if t <= 0.5 {
                self.truth.score(&[0.0], &self.x0, &mut exact);
                share = self.alpha(t);
            } else {
                self.truth.score(&[1.0], &self.x1, &mut exact);
                share = self.beta(t);
            }
        } else {
            let (s2, sd2) = (self.sigma(t).powi(2), self.spec.variance);
            weight = self.scale(t).powi(2) * s2 * sd2 / (s2 + sd2);
            share = self.scale(t);
            self.truth.score(&[0.0], &self.x0, &mut exact);
        }
        let square = |(s, e): (&f64, &f64)| (s - e / share).powi(2);
        weight * score.iter().zip(&exact).map(square).sum::<f64>()
    }
}

fn rows(flat: &[f32], row: usize, n: usize, d: usize) -> Vec<Vec<f64>> {
    let flat = flat.get(row * n * d..(row + 1) * n * d).unwrap_or(&[]);
    flat.chunks(d)
        .map(|z| z.iter().map(|&z| f64::from(z)).collect())
        .collect()
}

/// Mean over the batch of each term, unweighted.
pub(crate) fn by_formula(
    spec: &ModelSpec,
    sum: Sum,
    batch: usize,
    params: &[f64],
    number: u64,
) -> Vec<Value> {
    by_formula_with(spec, sum, batch, params, params, number)
}

/// The same with other parameters for the score of Bayes' backward kernel.
pub(crate) fn by_formula_with(
    spec: &ModelSpec,
    sum: Sum,
    batch: usize,
    params: &[f64],
    backward: &[f64],
    number: u64,
) -> Vec<Value> {
    let clouds = clouds(spec);
    let step = step::<f64>(spec, sum, batch, false, 1, Isa::detect());
    let draws: Draws = step.draws(number, &endpoints(spec, &clouds));
    let (model, backward) = (Reference::new(spec, params), Reference::new(spec, backward));
    let truth = truth(spec);
    let (d, n) = (spec.dim, sum.levels);
    let terms = &step.plan().terms;
    let mut totals: Vec<Value> = terms
        .iter()
        .map(|_| Value {
            value: 0.0,
            size: 0.0,
        })
        .collect();
    for row in 0..batch {
        let first = |flat: &[f32]| rows(flat, row, 1, d).concat();
        let at = Row {
            spec,
            model: &model,
            backward: &backward,
            truth: &truth,
            times: draws.times[row * n..][..n].to_vec(),
            x0: first(&draws.start),
            x1: first(&draws.end),
            noise: rows(&draws.noise, row, n, d),
            partner_noise: rows(&draws.partner_noise, row, n, d),
            probes: [0, 1].map(|k| rows(&draws.probes[k], row, n, d)),
            end_noise: first(&draws.end_noise),
            anchors: match draws.anchors.len() {
                0 => vec![],
                _ => draws.anchors[row * n * d..][..n * d].to_vec(),
            },
        };
        for (total, term) in totals.iter_mut().zip(terms) {
            let (value, size) = at.loss(&term.objective);
            total.value += value / batch as f64;
            total.size += size / batch as f64;
        }
    }
    totals
}
