//! Limits of close times: the binary classification loss and DRE-infinity tend to time score matching, the residual of Bayes' rule to that
//! of the Fokker-Planck equation. By quadrature on the line, with the constants that hold and the printed ones beside.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::CellRecord;
use diffclf::energy::Energy;
use diffclf::energy::exact::ExactPath;
use diffclf::process::Process;
use diffclf::system::{Covariance, GaussianMixture};
use diffclf_report::curve::{Curve, Series};
use diffclf_report::page::Figure;
use diffclf_run::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// `[experiment]` of the limits.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Where the two times meet.
    time: f64,
    /// Distances of the two times, falling.
    distances: Vec<f64>,
    /// The data.
    truth: Modes,
    /// What the model believes the data to be.
    model: Modes,
    /// How much faster the model runs through its times than the process: at 1 its path would be that of other data, and obey the
    /// Fokker-Planck equation.
    speed: f64,
    /// The other end of the interpolant.
    end: Modes,
}

/// A mixture on the line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Modes {
    weights: Vec<f64>,
    means: Vec<f64>,
    variances: Vec<f64>,
}

impl Modes {
    fn mixture(&self) -> Result<GaussianMixture> {
        let covariance = Covariance::Isotropic(self.variances.clone());
        Ok(GaussianMixture::new(
            1,
            self.weights.clone(),
            self.means.clone(),
            covariance,
        )?)
    }
}

const CELLS: [&str; 5] = [
    "binary",
    "binary-interpolant",
    "dre-infinity",
    "bayes-mean",
    "bayes-square",
];

/// Truth and model on the line.
struct Pair {
    truth: Line,
    model: Line,
}

/// A path on the line, run through at a speed.
struct Line {
    path: ExactPath,
    speed: f64,
}

impl Line {
    fn log_density(&self, t: f64, y: f64) -> f64 {
        let mut out = [0.0];
        self.path.log_density(&[self.speed * t], &[y], &mut out);
        out[0]
    }

    fn score(&self, t: f64, y: f64) -> f64 {
        let mut out = [0.0];
        self.path.score(&[self.speed * t], &[y], &mut out);
        out[0]
    }

    fn time_score(&self, t: f64, y: f64) -> f64 {
        let mut out = [0.0];
        self.path.time_score(&[self.speed * t], &[y], &mut out);
        self.speed * out[0]
    }
}

/// The trapezoid rule, which converges at once for functions that vanish at both ends.
fn integral(half: f64, points: usize, f: impl Fn(f64) -> f64) -> f64 {
    let width = 2.0 * half / points as f64;
    (0..=points)
        .map(|k| f(-half + k as f64 * width))
        .sum::<f64>()
        * width
}

/// Mean over the truth at a time.
fn mean(pair: &Pair, t: f64, points: usize, f: impl Fn(f64) -> f64) -> f64 {
    integral(8.0, points, |y| pair.truth.log_density(t, y).exp() * f(y))
}

/// What is computed at a distance, its limit, and the same as the paper prints both.
struct Limit<'a> {
    value: Box<dyn Fn(f64) -> f64 + 'a>,
    limit: f64,
    printed_value: Box<dyn Fn(f64) -> f64 + 'a>,
    printed_limit: f64,
}

/// Points on the line for losses, and for the two nested integrals of Bayes' rule.
const FINE: usize = 3200;
const COARSE: usize = 320;

impl Pair {
    /// `8/delta^2 (L - log 2)` tends to `L_tSM - E[(d/dt log p)^2]`; the paper prints plus.
    fn time_score_matching<'a>(&'a self, t: f64, loss: impl Fn(f64) -> f64 + 'a) -> Limit<'a> {
        let exact = |y| self.truth.time_score(t, y);
        let matching = mean(self, t, FINE, |y| {
            (self.model.time_score(t, y) - exact(y)).powi(2)
        });
        let constant = mean(self, t, FINE, |y| exact(y).powi(2));
        let loss = std::rc::Rc::new(loss);
        let value = move |delta: f64| 8.0 / (delta * delta) * (loss(delta) - 2f64.ln());
        Limit {
            value: Box::new(value.clone()),
            limit: matching - constant,
            printed_value: Box::new(value),
            printed_limit: matching + constant,
        }
    }

    fn binary(&self, t: f64) -> Limit<'_> {
        self.time_score_matching(t, move |delta| {
            let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
            let margin = |y| self.model.log_density(t + delta, y) - self.model.log_density(t, y);
            0.5 * mean(self, t, FINE, |y| softplus(margin(y)))
                + 0.5 * mean(self, t + delta, FINE, |y| softplus(-margin(y)))
        })
    }

    fn dre(&self, t: f64) -> Limit<'_> {
        self.time_score_matching(t, move |delta| {
            let h = |y| 0.5 + 0.25 * delta * self.model.time_score(t, y);
            // Far out, where no sample lies, the linear probability may leave the unit interval.
            let bound = |p: f64| p.max(1e-300).ln();
            -0.5 * mean(self, t, FINE, |y| bound(1.0 - h(y)))
                - 0.5 * mean(self, t + delta, FINE, |y| bound(h(y)))
        })
    }

    /// Mean (or mean square) of Bayes' residual over the forward noise, at a point.
    fn residual(&self, t: f64, delta: f64, y_s: f64, power: i32) -> f64 {
        let p = self.truth.path.process();
        let (s, t) = (t, t + delta);
        let m = p.scale(t) / p.scale(s);
        let c2 = p.noise(t).powi(2) - m * m * p.noise(s).powi(2);
        let (f, g2) = (p.drift(t), p.diffusion_squared(t));
        let log_normal =
            |x: f64, mean: f64, v: f64| -0.5 * ((x - mean).powi(2) / v + (2.0 * PI * v).ln());
        let own = self.model.log_density(s, y_s);
        integral(7.0, 140, |e| {
            let y_t = m * y_s + c2.sqrt() * e;
            let back = y_t - delta * (f * y_t - g2 * self.model.score(t, y_t));
            let r = own - self.model.log_density(t, y_t) + log_normal(y_t, m * y_s, c2)
                - log_normal(y_s, back, delta * g2);
            log_normal(e, 0.0, 1.0).exp() * r.powi(power)
        })
    }

    /// The Fokker-Planck residual, and `g^2 (log p)'' + 2 k` with `2 k = -f - (g^2)'/(2 g^2)`.
    fn fokker_planck(&self, t: f64, y: f64) -> (f64, f64) {
        let p = self.truth.path.process();
        let (f, g2) = (p.drift(t), p.diffusion_squared(t));
        let s = self.model.score(t, y);
        let step = 1e-4;
        let second = (self.model.score(t, y + step) - self.model.score(t, y - step)) / (2.0 * step);
        let growth =
            (p.diffusion_squared(t + step) - p.diffusion_squared(t - step)) / (4.0 * step * g2);
        let residual = self.model.time_score(t, y) - (0.5 * g2 * (second + s * s) - f * y * s - f);
        (residual, g2 * second - f - growth)
    }

    /// `E[E[r | y]^2]/delta^2` tends to the mean squared Fokker-Planck residual.
    fn bayes_mean(&self, t: f64) -> Limit<'_> {
        let square =
            move |delta: f64| mean(self, t, COARSE, |y| self.residual(t, delta, y, 1).powi(2));
        let limit = mean(self, t, FINE, |y| self.fokker_planck(t, y).0.powi(2));
        Limit {
            value: Box::new(move |delta| square(delta) / (delta * delta)),
            limit,
            printed_value: Box::new(move |delta| square(delta) / delta),
            printed_limit: limit,
        }
    }

    /// `E[r^2]/delta^2` tends to that plus half the mean square of the mismatch of the two kernels.
    fn bayes_square(&self, t: f64) -> Limit<'_> {
        let square = move |delta: f64| mean(self, t, COARSE, |y| self.residual(t, delta, y, 2));
        let residual = mean(self, t, FINE, |y| self.fokker_planck(t, y).0.powi(2));
        let mismatch = mean(self, t, FINE, |y| self.fokker_planck(t, y).1.powi(2));
        Limit {
            value: Box::new(move |delta| square(delta) / (delta * delta)),
            limit: residual + 0.5 * mismatch,
            printed_value: Box::new(move |delta| square(delta) / delta),
            printed_limit: residual,
        }
    }
}

impl Limits {
    fn pair(&self, process: &str) -> Result<Pair> {
        let process = Process::by_name(process)?;
        let line = |modes: &Modes, speed: f64| -> Result<Line> {
            let end = process.is_interpolant().then(|| self.end.mixture());
            let path = ExactPath::new(process, modes.mixture()?, end.transpose()?)?;
            Ok(Line { path, speed })
        };
        Ok(Pair {
            truth: line(&self.truth, 1.0)?,
            model: line(&self.model, self.speed)?,
        })
    }
}

impl Experiment for &Limits {
    fn cells(&self) -> Vec<String> {
        CELLS.map(String::from).to_vec()
    }

    fn settings(&self) -> Result<serde_json::Value> {
        serde_json::to_value(self)
            .map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))
    }

    fn run(&self, cell: &str, _bench: &Bench) -> Result<CellRecord> {
        let interpolant = cell == "binary-interpolant";
        let pair = self.pair(if interpolant { "linear" } else { "vp" })?;
        let limit = match cell {
            "binary" | "binary-interpolant" => pair.binary(self.time),
            "dre-infinity" => pair.dre(self.time),
            "bayes-mean" => pair.bayes_mean(self.time),
            "bayes-square" => pair.bayes_square(self.time),
            _ => return Err(Error::Failed(format!("{cell} is no limit"))),
        };
        let ratios: Vec<(f64, f64)> = self
            .distances
            .iter()
            .map(|&delta| (delta, (limit.value)(delta) / limit.limit))
            .collect();
        let [.., before, last] = ratios[..] else {
            return Err(Error::Failed("a limit needs two distances".into()));
        };
        let off = |point: (f64, f64)| (point.1 - 1.0).abs();
        let order = (off(before) / off(last)).ln() / (before.0 / last.0).ln();
        let printed = (limit.printed_value)(last.0) / limit.printed_limit;
        let figures = [
            ("limit", limit.limit.into()),
            ("ratio", last.1.into()),
            ("order", order.into()),
            ("ratio_as_printed", printed.into()),
        ];
        let errors = ratios.iter().map(|point| (point.0, off(*point))).collect();
        Ok(CellRecord {
            figures: figures
                .map(|(name, figure)| (name.to_string(), figure))
                .into(),
            series: [("error".to_string(), errors)].into(),
            ..CellRecord::default()
        })
    }

    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let series: Vec<Series> = records
            .iter()
            .filter_map(|(cell, record)| {
                Some(Series {
                    name: cell.clone(),
                    points: record.series.get("error")?.clone(),
                })
            })
            .collect();
        let caption = "Relative distance from the limit over the distance of the two times";
        let svg = Curve {
            alt: caption,
            x_label: "distance of the two times",
            y_label: "relative error",
            x_logarithmic: true,
            y_logarithmic: true,
            series: &series,
        }
        .svg();
        Ok(vec![Picture {
            name: "limits".into(),
            figure: Figure {
                svg,
                caption: caption.into(),
            },
        }])
    }
}
