//! Bayes (RNE) regularisation: the squared residual of Bayes' rule between a time and one `delta` earlier,
//! `r = log p_s(y_s) - log p_t(y_t) + log k(y_t | y_s) - log k(y_s | y_t)` (He et al. 2025), times `(tau / delta)^2`.
//!
//! The forward kernel of a diffusion is exact, `Y_t = m Y_s + c e` with `m = S_t / S_s`, `c^2 = gamma_t^2 - m^2 gamma_s^2`. The
//! backward kernel is one Euler-Maruyama step with the model's score, `N(y_t - delta (f y_t - g^2 score), delta g^2)`. With
//! the forward noise `e` their log-ratio is `(|b|^2 - |e|^2)/2 - d/2 log(c^2 / (delta g^2))`,
//! `b = (1/m - 1 + delta f)/(sqrt(delta) g) y_t - c/(m sqrt(delta) g) e - sqrt(delta) g score`: no difference of large numbers.
//!
//! `E[r | y]/delta` tends to minus the Fokker-Planck residual `R`, and `E[r^2 | y]/delta^2` to `R^2 + |g^2 hess log p + 2 k|_F^2 / 2`
//! with `2 k = -f - (g^2)'/(2 g^2)` from the mismatch of both kernels. The square keeps that term, which the printed limit
//! lacks, however small delta is, and so the true marginals do not minimise it: flatter densities have a smaller loss.

use super::column::{ObjectiveColumn, TimeWeight};
use super::partner::Partner;
use super::setting::SettingList;
use super::{Objective, Scene, Teaches, diffusions_only};
use crate::energy::ModelSpec;
use crate::engine::Node;
use crate::{Error, Result};

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bayes {
    /// Distance of both times, in levels of the grid.
    pub gap: u32,
    /// Do not differentiate the score in the backward kernel.
    pub stop_gradient: bool,
    /// Weight over time.
    pub weight: TimeWeight,
}

impl Bayes {
    /// The usual settings.
    pub const USUAL: Bayes = Bayes {
        gap: 1,
        stop_gradient: false,
        weight: TimeWeight::Balanced,
    };
}

impl Objective for Bayes {
    fn name(&self) -> &'static str {
        "bayes"
    }

    fn about(&self) -> &'static str {
        "residual of Bayes' rule between two close times of a diffusion"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Consistency
    }

    fn cites(&self) -> &'static [&'static str] {
        &["he2025rne"]
    }

    fn settings(&mut self) -> SettingList<'_> {
        vec![
            ("gap", &mut self.gap),
            ("stop-gradient", &mut self.stop_gradient),
            ("weight", &mut self.weight),
        ]
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        diffusions_only(
            self.name(),
            spec,
            "the kernel between two times of an interpolant is not known",
        )?;
        if self.gap as usize >= spec.grid.levels() {
            return Err(Error::Value {
                name: "gap",
                found: self.gap.to_string(),
                expected: format!("below {}, the levels of the grid", spec.grid.levels()),
            });
        }
        Ok(())
    }

    fn compares_levels(&self) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let partner = Partner::Behind(self.gap);
        let late = scene.own_log_density();
        let slots = scene.filled(partner);
        let (early, forward) = (scene.log_density_behind(slots[0], partner), slots[1]);
        let (points, mut score) = (scene.points(), scene.score());
        if self.stop_gradient {
            score = scene.graph().detach(score);
        }
        let columns = [
            ObjectiveColumn::BackwardPoint(partner),
            ObjectiveColumn::BackwardNoise(partner),
            ObjectiveColumn::BackwardScore(partner),
            ObjectiveColumn::KernelRatio(partner),
            ObjectiveColumn::BayesWeight(partner, self.weight),
        ];
        let [of_point, of_noise, of_score, ratio, weight] =
            columns.map(|column| scene.objective_column(column));
        let g = scene.graph();
        let (from_point, from_noise, from_score) = (
            g.mul_column(points, of_point),
            g.mul_column(forward, of_noise),
            g.mul_column(score, of_score),
        );
        let backward = g.sub(from_point, from_noise);
        let backward = g.sub(backward, from_score);
        let (b, e) = (g.row_dot(backward, backward), g.row_dot(forward, forward));
        let squares = g.sub(b, e);
        let squares = g.scale(squares, 0.5);
        let kernels = g.sub(squares, ratio);
        let densities = g.sub(early, late);
        let r = g.add(densities, kernels);
        let square = g.mul(r, r);
        let weighted = g.mul(square, weight);
        scene.mean_over_levels(weighted)
    }
}
