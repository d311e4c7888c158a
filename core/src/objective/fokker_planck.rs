//! Fokker-Planck regularisation: `tau^2 R^2` with the residual of the equation for the log-density of a diffusion,
//! `R = d/dt log p - [g^2/2 (lap log p + |score|^2) - f y . score - d f]`. The divergence of the drift is `d f`, not `f`.
//!
//! The Laplacian is the trace of the score's Jacobian. Its default estimate has two independent Rademacher probes (Hutchinson
//! 1989), one for each factor of the square, so that the product is unbiased; a single probe squared is not. `difference`
//! replaces the Jacobian-vector product by a central difference of the score along the probe, as ScoreMD does (Plainer et al.
//! 2025): less work per evaluation, and no third derivative. `exact` sums the diagonal, for few dimensions.

use super::column::{ObjectiveColumn, TimeWeight};
use super::probe::Probe;
use super::setting::{SettingList, Words};
use super::{Objective, Scene, Teaches, diffusions_only};
use crate::energy::{Column, ModelSpec};
use crate::engine::Node;
use crate::{Error, Result};

/// How the Laplacian is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Laplacian {
    /// Two random probes, derivatives exact.
    Hutchinson,
    /// Two random probes, differences of the score.
    Difference,
    /// The whole diagonal.
    Exact,
}

impl Words for Laplacian {
    const WORDS: &'static [(&'static str, Laplacian)] = &[
        ("hutchinson", Laplacian::Hutchinson),
        ("difference", Laplacian::Difference),
        ("exact", Laplacian::Exact),
    ];
}

/// Largest dimension of the exact Laplacian: one more pass over the network for each.
const MOST_EXACT: usize = 32;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FokkerPlanck {
    /// The Laplacian.
    pub laplacian: Laplacian,
    /// Step of the differences, in units of gamma(t).
    pub step: f64,
    /// Weight over time.
    pub weight: TimeWeight,
}

impl FokkerPlanck {
    /// The usual settings.
    pub const USUAL: FokkerPlanck = FokkerPlanck {
        laplacian: Laplacian::Hutchinson,
        step: 0.01,
        weight: TimeWeight::Balanced,
    };
}

impl Objective for FokkerPlanck {
    fn name(&self) -> &'static str {
        "fokker-planck"
    }

    fn about(&self) -> &'static str {
        "residual of the Fokker-Planck equation of a diffusion"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Consistency
    }

    fn cites(&self) -> &'static [&'static str] {
        &["lai2023fp"]
    }

    fn settings(&mut self) -> SettingList<'_> {
        vec![
            ("laplacian", &mut self.laplacian),
            ("step", &mut self.step),
            ("weight", &mut self.weight),
        ]
    }

    fn sees_slope(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        diffusions_only(
            self.name(),
            spec,
            "an interpolant's equation needs the divergence of its velocity",
        )?;
        if self.laplacian == Laplacian::Exact && spec.dim > MOST_EXACT {
            return Err(Error::Value {
                name: "laplacian",
                found: format!("exact in {} dimensions", spec.dim),
                expected: format!("hutchinson or difference above {MOST_EXACT} dimensions"),
            });
        }
        Ok(())
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let rest = without_laplacian(scene);
        let tau = scene.objective_column(ObjectiveColumn::TimeScale(self.weight));
        let half = scene.objective_column(ObjectiveColumn::HalfDiffusion);
        let [first, second] = match self.laplacian {
            Laplacian::Exact => {
                let laplacian = diagonal(scene);
                [laplacian, laplacian]
            }
            Laplacian::Hutchinson => [0, 1].map(|k| along(scene, k)),
            Laplacian::Difference => [0, 1].map(|k| difference(scene, k, self.step)),
        };
        let of_base = scene.base_laplacian();
        let g = scene.graph();
        let mut residual = |laplacian: Node| {
            // No derivative passes through a mixture: its own part is exact and needs no probes.
            let laplacian = of_base.map_or(laplacian, |base| g.add(laplacian, base));
            let part = g.mul(half, laplacian);
            let residual = g.sub(rest, part);
            g.mul(residual, tau)
        };
        let (first, second) = (residual(first), residual(second));
        let product = g.mul(first, second);
        scene.mean_over_levels(product)
    }
}

/// `d/dt log p - g^2/2 |score|^2 + f y . score + d f`.
fn without_laplacian(scene: &mut Scene<'_>) -> Node {
    let (time_score, score, points) = (scene.time_score(), scene.score(), scene.points());
    let half = scene.objective_column(ObjectiveColumn::HalfDiffusion);
    let drift = scene.objective_column(ObjectiveColumn::Drift);
    let dim = scene.spec().dim as f64;
    let g = scene.graph();
    let square = g.row_dot(score, score);
    let square = g.mul(square, half);
    let inner = g.row_dot(points, score);
    let divergence = g.affine(inner, 1.0, dim);
    let transport = g.mul(divergence, drift);
    let sum = g.sub(time_score, square);
    g.add(sum, transport)
}

/// `e . J e` of the score's Jacobian along probe number `k`.
fn along(scene: &mut Scene<'_>, k: usize) -> Node {
    let (score, points, probe) = (scene.score(), scene.points(), scene.filled(Probe(k))[0]);
    let g = scene.graph();
    let inner = g.row_dot(score, probe);
    let product = g.grad_of_sum(inner, &[points])[0];
    g.row_dot(product, probe)
}

/// `e . (score(y + h e) - score(y - h e)) / (2 h)`, `h = step gamma`.
fn difference(scene: &mut Scene<'_>, k: usize, step: f64) -> Node {
    let (points, probe) = (scene.points(), scene.filled(Probe(k))[0]);
    let gamma = scene.column(Column::Noise);
    let g = scene.graph();
    let h = g.scale(gamma, step);
    let shift = g.mul_column(probe, h);
    let (plus, minus) = (g.add(points, shift), g.sub(points, shift));
    let (plus, minus) = (
        scene.score_beyond_base(plus),
        scene.score_beyond_base(minus),
    );
    let g = scene.graph();
    let rise = g.sub(plus, minus);
    let rise = g.row_dot(rise, probe);
    let inverse = g.power(h, -1.0);
    let rise = g.mul(rise, inverse);
    g.scale(rise, 0.5)
}

/// The trace of the score's Jacobian.
fn diagonal(scene: &mut Scene<'_>) -> Node {
    let (score, points) = (scene.score(), scene.points());
    let dim = scene.spec().dim;
    let g = scene.graph();
    let mut sum: Option<Node> = None;
    for c in 0..dim {
        let component = g.slice(score, c, 1);
        let gradient = g.grad_of_sum(component, &[points])[0];
        let own = g.slice(gradient, c, 1);
        sum = Some(match sum {
            Some(sum) => g.add(sum, own),
            None => own,
        });
    }
    match sum {
        Some(sum) => sum,
        None => unreachable!("a point has at least one coordinate"),
    }
}
