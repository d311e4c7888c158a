//! A perceptron that also sees waves of the coordinates, for densities with edges in few dimensions: with `f = x W_f`,
//! `h_0 = silu(x W_x + phi(t) W_t + b_0 + g(t) (sin(f) W_s + cos(f) W_c))`, then as the perceptron; `g = sigmoid(phi(t) W_g + b_g)`.
//!
//! A perceptron learns low frequencies first and sharp edges last (spectral bias); waves of several octaves give it the edges (Tancik and others 2020).
//! Noise washes high frequencies out, so the gate `g` lets them in by time. The frequencies are learned; they start normal, the columns in turn with
//! standard deviations of 1, 2, 4, 8 and 16 per unit of the scaled coordinates.

use super::layout::{Init, Layout};
use super::{Input, Mlp, Network, Role, Site};
use crate::Result;
use crate::citation::Cites;
use crate::engine::{Function, Node};

/// Octaves of the starting frequencies.
const OCTAVES: u32 = 5;

/// Sizes and name of such a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Waves {
    mlp: Mlp,
    waves: usize,
}

impl Waves {
    /// A perceptron over all coordinates and that many waves of them.
    pub fn new(role: Role<'_>, width: usize, depth: usize, waves: usize) -> Waves {
        Waves {
            mlp: Mlp::new(role, width, depth),
            waves,
        }
    }

    /// `g(t) (sin(f) W_s + cos(f) W_c)`.
    fn of_waves(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let name = &self.mlp.name;
        let [wf, ws, wc, wg, bg] = ["wf", "ws", "wc", "wg", "bg"].map(|n| site.param(name, n));
        let f = x.points.linear(site.graph, wf, false);
        let sines = site.graph.unary(Function::Sin, f);
        let cosines = site.graph.unary(Function::Cos, f);
        let sines = site.graph.matmul(sines, ws, false);
        let cosines = site.graph.matmul(cosines, wc, false);
        let both = site.graph.add(sines, cosines);
        let gate = site.time.rows(site.graph, wg, bg);
        let gate = site.graph.unary(Function::Sigmoid, gate);
        site.graph.mul(gate, both)
    }
}

impl Network for Waves {
    fn cites(&self) -> Cites {
        &["tancik2020fourier"]
    }

    fn validate(&self) -> Result<()> {
        self.mlp.validate()?;
        if self.waves == 0 || self.waves > 1 << 14 {
            return super::mlp::wrong("waves", self.waves, "between 1 and 16384");
        }
        Ok(())
    }

    fn declare(&self, layout: &mut Layout) {
        self.mlp.declare(layout);
        let (n, m, w) = (&self.mlp.name, self.waves, self.mlp.width);
        let fan = |k: usize| Init::Normal(1.0 / (k as f64).sqrt());
        let frequencies = Init::Octaves {
            least: 1.0,
            octaves: OCTAVES,
        };
        layout.add(format!("{n}.wf"), self.mlp.input, m, frequencies);
        layout.add(format!("{n}.ws"), m, w, fan(m));
        layout.add(format!("{n}.wc"), m, w, fan(m));
        let features = self.mlp.features;
        layout.add(format!("{n}.wg"), features, w, fan(features));
        layout.add(format!("{n}.bg"), 1, w, Init::Zero);
    }

    fn output(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let waves = self.of_waves(site, x);
        let hidden = self.mlp.hidden(site, x, Some(waves));
        self.mlp.read_out(site, hidden)
    }

    fn inner_product(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let waves = self.of_waves(site, x);
        let hidden = self.mlp.hidden(site, x, Some(waves));
        self.mlp.inner(site, x, hidden)
    }
}
