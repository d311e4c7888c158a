//! Velocity regression: `|v(t, y) - dX_t/dt|^2` with a vector network of its own beside the energy, so that
//! `v = E[dX_t/dt | Y_t = y]`, which the SDE and the ODE of an interpolant need (Albergo et al. 2023).

use super::column::ObjectiveColumn;
use super::{Objective, Scene, Teaches};
use crate::energy::ModelSpec;
use crate::engine::Node;
use crate::{Error, Result};

/// See the module's text.
pub struct VelocityRegression;

impl Objective for VelocityRegression {
    fn name(&self) -> &'static str {
        "velocity"
    }

    fn about(&self) -> &'static str {
        "regression of the velocity, in a network beside the energy"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Velocity
    }

    fn cites(&self) -> &'static [&'static str] {
        &["albergo2023stochastic"]
    }

    fn needs_velocity(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        let wrong = |found: String, expected: &str| {
            Err(Error::Value {
                name: "objective",
                found,
                expected: expected.into(),
            })
        };
        if !spec.process.is_interpolant() {
            return wrong(
                format!("velocity with the {} process", spec.process.name()),
                "an interpolant (linear, trigonometric): the velocity of a diffusion follows from its score",
            );
        }
        if !spec.velocity {
            return wrong(
                "velocity for a model without a velocity network".into(),
                "a model definition with `velocity = true`",
            );
        }
        Ok(())
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let velocity = scene.velocity();
        let rate = scene.source_sum(ObjectiveColumn::StartRate, ObjectiveColumn::EndRate);
        let g = scene.graph();
        let square = g.squared_distance(velocity, rate);
        scene.mean_over_levels(square)
    }
}
