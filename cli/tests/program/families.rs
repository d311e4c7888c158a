//! Every member of a family stands in the help and in the docs.

use super::Place;
use diffclf::objective::ObjectiveName;
use diffclf::process::TimeSampler;
use diffclf::system::System;

fn page(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::read_to_string(path.join(name)).unwrap()
}

#[test]
fn every_objective_is_in_help_and_docs() {
    let help = Place::new().run("train --help");
    let docs = page("objectives.md");
    for objective in ObjectiveName::ALL {
        let objective = objective.objective();
        let name = objective.name();
        assert!(
            help.contains(&format!("    {name} ")) && help.contains(objective.about()),
            "{name} is missing in train --help"
        );
        assert!(
            docs.contains(&format!("| `{name}` |")),
            "{name} has no row in the table of docs/objectives.md"
        );
    }
}

#[test]
fn every_system_and_time_sampler_is_in_help_and_docs() {
    let help = Place::new().run("train --help");
    let words: Vec<&str> = help
        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
        .collect();
    for name in System::NAMES {
        assert!(words.contains(&name), "{name} is missing in train --help");
    }
    let docs = page("objectives.md");
    for sampler in TimeSampler::ALL {
        let name = sampler.name();
        assert!(words.contains(&name), "{name} is missing in train --help");
        assert!(
            docs.contains(&format!("`{name}`")),
            "{name} is missing in docs/objectives.md"
        );
    }
}
