//! Flags that `sample` and `anneal` share for interpolants.

use crate::help;
use diffclf::sample::Diffusivity;
use diffclf_run::bridge::{BridgeChoice, Endpoint, VelocityOrigin, noise};
use diffclf_run::named::word;
use std::path::PathBuf;

/// Flags of interpolants.
#[derive(Debug, Clone, clap::Args)]
pub struct BridgeArgs {
    /// Endpoint to go to: start (time 0) or end (time 1) [default: start]
    #[arg(
        long,
        value_name = "ENDPOINT",
        value_parser = word::<Endpoint>,
        help_heading = "Interpolants"
    )]
    towards: Option<Endpoint>,
    /// Rows of the other endpoint to start from: a .npy file [default: fresh ones, if it is a built-in system]
    #[arg(long, value_name = "ROWS.npy", help_heading = "Interpolants")]
    rows: Option<PathBuf>,
    #[arg(long, help = help::velocity(), value_name = "ORIGIN", help_heading = "Interpolants", value_parser = word::<VelocityOrigin>)]
    velocity: Option<VelocityOrigin>,
    /// Noise g of the SDE: a number, or g(t) = factor gamma(t) as '{kind = "bridge", factor = 0.5}' [default: 0.5; 0.01 in anneal with the
    /// exact velocity]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "G",
        help_heading = "Interpolants",
        value_parser = noise
    )]
    g: Option<Diffusivity>,
}

impl BridgeArgs {
    /// What is chosen.
    pub fn choice(&self) -> BridgeChoice {
        BridgeChoice {
            towards: self.towards,
            rows: self.rows.clone(),
            velocity: self.velocity,
            g: self.g,
        }
    }
}
