//! Help texts that list the members of a family, from the family's own list.

use diffclf::energy::Form;
use diffclf::objective::ObjectiveName;
use diffclf::process::{Process, TimeSampler};
use diffclf::system::System;
use diffclf::train::Decay;
use diffclf_run::named::words_of;

/// `--system`.
pub fn system() -> String {
    format!(
        "Learn a built-in system instead of a file: {}",
        System::NAMES.join(", ")
    )
}

/// `--dim`.
pub fn dim() -> String {
    let free: Vec<_> = System::NAMES
        .into_iter()
        .filter(|name| !System::is_planar(name))
        .collect();
    format!(
        "Dimension of the system ({} take any; the others live in the plane)",
        free.join(", ")
    )
}

/// `--form`.
pub fn form() -> String {
    format!(
        "How the network gives the energy: {} [default: follows process and network]",
        words_of::<Form>().join(", ")
    )
}

/// `--decay`.
pub fn decay() -> String {
    format!(
        "Learning rate after the warm-up: {}, in each stage [default: cosine]",
        words_of::<Decay>().join(" or ")
    )
}

/// `--process`.
pub fn process() -> String {
    format!(
        "Noising process: {}, or with parameters '{{kind = \"vp\", beta_max = 10.0}}' [default: vp; linear if there is a second \
         endpoint]",
        Process::NAMES.join(", ")
    )
}

/// `--times`.
pub fn times() -> String {
    format!(
        "How times are drawn: {} [default: multiscale; close for losses that contain density ratios]",
        TimeSampler::ALL.map(|sampler| sampler.name()).join(", ")
    )
}

/// All objectives, grouped by what they teach.
pub fn objectives() -> String {
    ObjectiveName::help().trim_end().to_string()
}
