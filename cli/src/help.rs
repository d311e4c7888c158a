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

/// What objectives are for; one that is not here is listed after them.
const PURPOSES: [(&str, &[&str]); 5] = [
    ("learn the score", &["dsm", "target-score"]),
    (
        "compare levels: mode weights and normalisation too",
        &[
            "diffclf",
            "binary-diffclf",
            "bregman",
            "binary-bregman",
            "known-diffclf",
        ],
    ),
    ("learn the time score", &["ctsm", "tsm", "dre-infinity"]),
    ("keep the path consistent", &["fokker-planck", "bayes"]),
    (
        "an interpolant's velocity, in a network beside the energy",
        &["velocity"],
    ),
];

/// All objectives, a line for each purpose.
pub fn objectives() -> String {
    let all = ObjectiveName::ALL.map(|name| name.objective().name());
    let mut lines: Vec<String> = PURPOSES
        .iter()
        .map(|(purpose, names)| {
            let names: Vec<_> = names.iter().filter(|name| all.contains(name)).collect();
            let names = names.into_iter().copied().collect::<Vec<_>>().join(", ");
            if names.len() > 38 {
                format!("  {names}\n{:43}{purpose}", "")
            } else {
                format!("  {names:<41}{purpose}")
            }
        })
        .collect();
    let listed = |name: &str| PURPOSES.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<_> = all.into_iter().filter(|name| !listed(name)).collect();
    if !others.is_empty() {
        lines.push(format!("  {}", others.join(", ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_name_objectives_that_exist() {
        let all = ObjectiveName::ALL.map(|name| name.objective().name());
        for name in PURPOSES.iter().flat_map(|(_, names)| *names) {
            assert!(all.contains(name), "{name} is no objective");
        }
        let text = objectives();
        for name in all {
            assert!(text.contains(name), "{name} is missing in\n{text}");
        }
    }
}
