//! BibTeX of the methods a run used, and of no others.

use diffclf::base::springs;
use diffclf::coupling;
use diffclf::discrete::diagnose;
use diffclf::discrete::model::Content as StatesContent;
use diffclf::model::Content;
use diffclf::{citation, free_energy, sample};

/// All entries, with an empty line between them.
const REFERENCES: &str = include_str!("references.bib");

/// The entries for a model; `judged` and `sampled` add those of the diagnosis and of the samples on the page.
pub fn bibtex(content: &Content, judged: bool, sampled: bool) -> String {
    let (spec, training) = (&content.spec, &content.record.settings);
    let terms = || training.stages.iter().flat_map(|stage| &stage.objectives);
    let mut keys: Vec<&str> = Vec::new();
    for term in terms() {
        keys.extend(term.objective.objective().cites());
    }
    // The weight of the score loss and the scaling of the network's input and output are those of EDM.
    if keys.contains(&"vincent2011connection") && !spec.process.is_interpolant() {
        keys.push("karras2022elucidating");
    }
    keys.extend(spec.process.cites());
    keys.extend(training.times.cites());
    keys.extend(spec.network.cites());
    if spec.springs.is_some() {
        keys.extend(springs::CITES);
    }
    if spec.coupling.is_some() {
        keys.extend(coupling::CITES);
    }
    // The optimiser.
    keys.push("kingma2015adam");
    if sampled {
        keys.extend(citation::of(sample::CITES, "ddim"));
    }
    if judged {
        // Basins of the data.
        keys.push("chazal2013persistence");
        keys.extend(citation::of(free_energy::CITES, "mbar"));
    }
    if judged && sampled {
        keys.push("szekely2013energy");
    }
    entries(&keys)
}

/// The same for a model of states.
pub fn states_bibtex(content: &StatesContent, judged: bool, sampled: bool) -> String {
    let training = &content.record.settings;
    let mut keys: Vec<&str> = Vec::new();
    for term in training.stages.iter().flat_map(|stage| &stage.objectives) {
        keys.extend(term.objective.objective().cites());
    }
    keys.extend(content.spec.process.generator().cites());
    keys.extend(content.spec.network.cites());
    keys.extend(training.times.cites());
    keys.push("kingma2015adam");
    if judged {
        keys.extend(diagnose::CITES);
    }
    if judged && sampled {
        keys.push("szekely2013energy");
    }
    entries(&keys)
}

/// The entries of keys, each once.
fn entries(keys: &[&str]) -> String {
    let mut entries: Vec<&str> = Vec::new();
    for entry in keys.iter().filter_map(|key| entry(key)) {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries.join("\n\n")
}

fn references() -> impl Iterator<Item = &'static str> {
    REFERENCES.trim_end().split("\n\n")
}

/// The entry of a key.
fn entry(key: &str) -> Option<&'static str> {
    references().find(|entry| key_of(entry) == key)
}

/// `KEY` of `@kind{KEY,`.
fn key_of(entry: &str) -> &str {
    let after = entry.split_once('{').map_or("", |(_, rest)| rest);
    after.split_once(',').map_or("", |(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::network::{EgnnSpec, NetworkSpec, TransformerSpec};
    use diffclf::objective::ObjectiveName;
    use diffclf::process::{Process, TimeSampler};
    use diffclf::{discrete, metric};

    /// All keys that a member of a family cites.
    fn cited() -> Vec<&'static str> {
        let mut keys = vec!["kingma2015adam", "chazal2013persistence"];
        for objective in ObjectiveName::ALL {
            let cites = objective.objective().cites();
            assert!(!cites.is_empty(), "{objective} cites nobody");
            keys.extend(cites);
        }
        for name in Process::NAMES {
            let cites = Process::by_name(name).unwrap().cites();
            assert!(!cites.is_empty(), "{name} cites nobody");
            keys.extend(cites);
        }
        for name in discrete::Process::NAMES {
            let process = discrete::Process::by_name(name).unwrap();
            keys.extend(process.generator().cites());
        }
        keys.extend(diagnose::CITES);
        for sampler in TimeSampler::ALL {
            keys.extend(sampler.cites());
        }
        assert_eq!(
            NetworkSpec::NAMES,
            ["mlp", "waves", "pairs", "egnn", "transformer"],
            "one is missing below"
        );
        keys.extend(coupling::CITES);
        keys.extend(NetworkSpec::default().cites());
        let pairs = NetworkSpec::Pairs {
            particles: 2,
            width: 4,
            depth: 1,
        };
        keys.extend(pairs.cites());
        let waves = NetworkSpec::Waves {
            width: 4,
            depth: 1,
            waves: 2,
        };
        keys.extend(waves.cites());
        keys.extend(NetworkSpec::Egnn(EgnnSpec::new(2, 4, 1)).cites());
        keys.extend(NetworkSpec::Transformer(TransformerSpec::new(2, 4, 1)).cites());
        for table in [
            sample::CITES,
            sample::mcmc::CITES,
            metric::CITES,
            free_energy::CITES,
            diffclf::molecule::CITES,
        ] {
            keys.extend(table.iter().flat_map(|(_, cites)| *cites));
        }
        keys
    }

    #[test]
    fn what_is_cited_has_an_entry_and_every_entry_is_cited() {
        let cited = cited();
        for key in &cited {
            assert!(entry(key).is_some(), "{key} has no entry in references.bib");
        }
        let mut keys: Vec<&str> = references().map(key_of).collect();
        for entry in references() {
            let key = key_of(entry);
            let count = |c: char| entry.matches(c).count();
            assert!(
                entry.starts_with('@') && count('{') == count('}'),
                "{entry}"
            );
            assert!(cited.contains(&key), "nobody cites {key}");
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), references().count(), "an entry stands twice");
    }
}
