//! DRE-infinity: classification of `t` against `t' = t + delta` with the classifier linearised in delta,
//! `h = 1/2 + (delta/4) time_score(t, y)`, loss `L = -log(1 - h(y_t))/2 - log h(y_t')/2` (Choi et al. 2022).
//!
//! As delta shrinks, `8/delta^2 (L - log 2)` tends to time score matching minus a constant, so that is what is reported, times
//! `tau^2`. The distance is a share of the local time scale ([`Partner::Ahead`]), so `h` of a good model stays near 1/2 at every
//! time. Blind energies, as a score stage leaves them, can have an `h` outside (0, 1), where the loss is not defined: below 1/4 the
//! logarithms are continued by their tangents, which lead back. Both points use one noise: the loss is a difference of nearly
//! equal terms.

use super::column::{ObjectiveColumn, TimeWeight};
use super::partner::Partner;
use super::setting::SettingList;
use super::{Objective, Scene, Teaches};
use crate::Result;
use crate::energy::ModelSpec;
use crate::engine::{Function, Node};

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DreInfinity {
    /// Distance of both times as a share of the local time scale.
    pub delta: f64,
    /// Weight over time.
    pub weight: TimeWeight,
}

impl DreInfinity {
    /// The usual settings.
    pub const USUAL: DreInfinity = DreInfinity {
        delta: 0.01,
        weight: TimeWeight::Balanced,
    };
}

impl Objective for DreInfinity {
    fn name(&self) -> &'static str {
        "dre-infinity"
    }

    fn about(&self) -> &'static str {
        "classification of two close times, linearised"
    }

    fn teaches(&self) -> Teaches {
        Teaches::TimeScore
    }

    fn cites(&self) -> &'static [&'static str] {
        &["choi2022density"]
    }

    fn settings(&mut self) -> SettingList<'_> {
        vec![("delta", &mut self.delta), ("weight", &mut self.weight)]
    }

    fn sees_slope(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        self.weight.validate(spec)
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let partner = Partner::ahead(self.delta);
        let here = scene.time_score();
        let points = scene.filled(partner)[0];
        let there = scene.time_score_at(points);
        let gap = scene.objective_column(ObjectiveColumn::PartnerGap(partner));
        let weight = scene.objective_column(ObjectiveColumn::PartnerWeight(partner, self.weight));
        let g = scene.graph();
        // -log(1/2 + x/4) - log 2 = -log(1 + x/2) = -log u; the tangent begins at u = 1/2:
        // log max(u, 1/2) - 2 (max(u, 1/2) - u), with |v| as sqrt(v^2 + 1e-20), exactly |v| away from 0; v = u - 1/2.
        let mut term = |score: Node, sign: f64| {
            let x = g.mul(score, gap);
            let above = g.affine(x, 0.5 * sign, 0.5);
            let square = g.mul(above, above);
            let square = g.affine(square, 1.0, 1e-20);
            let size = g.power(square, 0.5);
            let twice = g.add(above, size);
            let kept = g.affine(twice, 0.5, 0.5);
            let logarithm = g.unary(Function::Ln, kept);
            let lost = g.sub(size, above);
            g.sub(logarithm, lost)
        };
        let (from_here, from_there) = (term(here, -1.0), term(there, 1.0));
        let sum = g.add(from_here, from_there);
        let loss = g.scale(sum, -0.5);
        let weighted = g.mul(loss, weight);
        scene.mean_over_levels(weighted)
    }
}
