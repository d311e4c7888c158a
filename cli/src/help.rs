//! Help texts that list the members of a family, from the family's own list.

use diffclf::energy::Form;
use diffclf::engine::Isa;
use diffclf::free_energy::Rule;
use diffclf::metric::Regions;
use diffclf::objective::ObjectiveName;
use diffclf::process::{Process, Spacing, TimeSampler};
use diffclf::sample::mcmc::Kernel;
use diffclf::sample::{Integrator, Resampling};
use diffclf::system::System;
use diffclf::train::Decay;
use diffclf_experiments::catalogue::CATALOGUE;
use diffclf_run::anneal::AnnealMethod;
use diffclf_run::endpoints::{mixtures, with_density};
use diffclf_run::generate::Generation;
use diffclf_run::named::{word, words_of};
use diffclf_run::simulate::{Scheme, Units};

/// `--system`.
pub fn system() -> String {
    format!(
        "Learn a built-in system instead of a file: {}",
        System::NAMES.join(", ")
    ) + &format!(
        "; of states: {}",
        diffclf::discrete::system::NAMES
            .map(|(name, _)| name)
            .join(", ")
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

/// `--spacing`.
pub fn spacing() -> String {
    format!(
        "Spacing of the time grid: {}, or '{{kind = \"power\", rho = 7.0}}' [default: follows the process]",
        words_of::<Spacing>().join(", ")
    )
}

/// `--system` of `evaluate`.
pub fn judged_system() -> String {
    format!(
        "System with known marginals: {} [default: the one the model was trained on]",
        mixtures().join(", ")
    )
}

/// `--system` of `compose`.
pub fn composed_system() -> String {
    format!(
        "A built-in system of the expression with exact densities: NAME=SYSTEM ({})",
        mixtures().join(", ")
    )
}

/// `--system` of `simulate`.
pub fn simulated_system() -> String {
    format!(
        "A system of the expression with a known density: NAME=SYSTEM ({}, or go:FILE, the structure-based model of a .pdb structure or .toml topology)",
        with_density().join(", ")
    )
}

/// `--scheme`.
pub fn scheme() -> String {
    format!(
        "How chains move: {}; the last passes an acceptance test, and its configurations are exact at any step",
        words_of::<Scheme>().join(", ")
    )
}

/// `--units`.
pub fn units() -> String {
    format!(
        "Units of the coordinates, and with them all others: {}",
        words_of::<Units>().join(", ")
    )
}

/// `--system` of `compare`.
pub fn compared_system() -> String {
    format!(
        "Compare with exact samples of a built-in system instead: {}",
        System::NAMES.join(", ")
    )
}

/// `--target`.
pub fn target() -> String {
    format!(
        "System whose exact density takes the place of the last marginal: {}",
        with_density().join(", ")
    )
}

/// `--velocity`.
pub fn velocity() -> String {
    format!(
        "Where the velocity comes from: learned (the objective velocity), or exact between two built-in mixtures ({}) \
         [default: learned]",
        mixtures().join(", ")
    )
}

/// `--regions`.
pub fn regions() -> String {
    let known = words_of::<Regions>().iter().filter_map(|name| {
        let regions: Regions = word(name).ok()?;
        Some(format!("{name} ({})", regions.composition()))
    });
    format!(
        "Also print the shares of regions beside the truth: {}",
        known.collect::<Vec<_>>().join(", ")
    )
}

/// `--method` of `anneal`.
pub fn anneal_method() -> String {
    let known = words_of::<AnnealMethod>().iter().filter_map(|name| {
        let method: AnnealMethod = word(name).ok()?;
        Some(format!("{name} ({})", method.about()))
    });
    format!(
        "How particles are run: {}",
        known.collect::<Vec<_>>().join(", ")
    )
}

/// `--method` of `sample`.
pub fn sampling_method() -> String {
    format!(
        "Method: {} [default: ddim; flow for an interpolant]",
        Generation::methods().join(", ")
    )
}

/// `--integrator`.
pub fn integrator() -> String {
    format!(
        "Steps of reverse-sde: {} [default: exponential]",
        words_of::<Integrator>().join(" or ")
    )
}

/// `--moving`.
pub fn moving() -> String {
    format!(
        "Kernel that moves particles at a level: {}",
        Kernel::NAMES.join(", ")
    )
}

/// `--resampling`.
pub fn resampling() -> String {
    format!("How ancestors are drawn: {}", Resampling::NAMES.join(", "))
}

/// `--kernel`.
pub fn kernel() -> String {
    format!(
        "Instruction set of the kernels: {} [default: the widest of this machine]",
        Isa::NAMES.join(", ")
    )
}

/// `free-energy ti`.
pub fn integration() -> String {
    format!(
        "Thermodynamic integration by the rules {}",
        Rule::ALL.map(Rule::name).join(", ")
    )
}

/// The name of an experiment.
pub fn experiment() -> String {
    let names: Vec<_> = CATALOGUE.iter().map(|entry| entry.name).collect();
    format!("The experiment: {} (see --list)", names.join(", "))
}

/// All objectives, grouped by what they teach.
pub fn objectives() -> String {
    ObjectiveName::help().trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;
    use diffclf_experiments::Recipe;
    use diffclf_run::bridge::{Endpoint, VelocityOrigin};

    /// The program breaks longer lines at 100 columns, wherever they are, and leaves rags.
    #[test]
    fn what_stands_after_the_flags_fits_on_the_lines() {
        fn walk(command: &clap::Command, wide: &mut Vec<String>) {
            let text = command.get_after_help().map(ToString::to_string);
            let lines = text.iter().flat_map(|text| text.lines());
            wide.extend(
                lines
                    .filter(|line| line.chars().count() > 100)
                    .map(String::from),
            );
            for inner in command.get_subcommands() {
                walk(inner, wide);
            }
        }
        let mut wide = Vec::new();
        walk(&Cli::command(), &mut wide);
        assert_eq!(wide, Vec::<String>::new());
    }

    /// Flags that take numbers, as clap knows them, are those that `extremes.rs` tries with extreme values.
    #[test]
    fn every_number_has_its_extremes() {
        use clap::builder::ValueParser;
        use std::any::TypeId;
        fn walk(path: String, command: &clap::Command, found: &mut Vec<String>) {
            let numbers = [
                TypeId::of::<usize>(),
                TypeId::of::<u64>(),
                TypeId::of::<f64>(),
            ];
            for argument in command.get_arguments() {
                let kind = ValueParser::type_id(argument.get_value_parser());
                let name = argument.get_long().unwrap_or_default();
                if numbers.iter().any(|number| kind == *number) {
                    found.push(format!("{path} --{name}"));
                }
            }
            for inner in command.get_subcommands() {
                let path = format!("{path} {}", inner.get_name());
                walk(path.trim().into(), inner, found);
            }
        }
        let mut found = Vec::new();
        walk(String::new(), &Cli::command(), &mut found);
        let table = include_str!("../tests/program/extremes.txt");
        let mut tried: Vec<String> = table
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.split_once('|')?.0.trim().to_string()))
            .collect();
        found.sort();
        tried.sort();
        assert_eq!(
            found, tried,
            "cli/tests/program/extremes.txt has a line for each"
        );
    }

    /// The commands from the root to the one that is named, and its text on one argument, or on itself.
    fn text(path: &str, argument: &str) -> String {
        let root = Cli::command();
        let command = path.split(' ').fold(&root, |command, name| {
            let found = command.find_subcommand(name);
            found.unwrap_or_else(|| panic!("{name} is no command"))
        });
        let help = match argument {
            "" => command.get_about(),
            name => {
                let found = command.get_arguments().find(|a| a.get_id() == name);
                found
                    .unwrap_or_else(|| panic!("{path} has no {name}"))
                    .get_help()
            }
        };
        help.map_or(String::new(), |help| help.to_string())
    }

    #[test]
    fn every_list_has_every_member() {
        let (mixtures, known) = (mixtures(), with_density());
        let samplers = TimeSampler::ALL.map(|sampler| sampler.name());
        let sets = Isa::NAMES;
        let rules = Rule::ALL.map(Rule::name);
        let experiments: Vec<_> = CATALOGUE.iter().map(|entry| entry.name).collect();
        let methods = Generation::methods();
        let lists: [(&str, &str, &[&str]); 26] = [
            ("simulate", "system", &known),
            ("simulate", "scheme", words_of::<Scheme>()),
            ("simulate", "units", words_of::<Units>()),
            ("train", "system", &System::NAMES),
            ("train", "process", words_of::<Process>()),
            ("train", "spacing", words_of::<Spacing>()),
            ("train", "times", &samplers),
            ("train", "form", words_of::<Form>()),
            ("train", "decay", words_of::<Decay>()),
            ("train", "kernel", &sets),
            ("free-energy learn", "spacing", words_of::<Spacing>()),
            ("free-energy ti", "", &rules),
            ("evaluate", "system", &mixtures),
            ("compose", "system", &mixtures),
            ("compose", "regions", words_of::<Regions>()),
            ("compose", "moving", &Kernel::NAMES),
            ("compose", "resampling", words_of::<Resampling>()),
            ("compare", "system", &System::NAMES),
            ("anneal", "target", &known),
            ("anneal", "method", words_of::<AnnealMethod>()),
            ("anneal", "velocity", words_of::<VelocityOrigin>()),
            ("anneal", "towards", words_of::<Endpoint>()),
            ("sample", "method", &methods),
            ("sample", "integrator", words_of::<Integrator>()),
            ("reproduce", "name", &experiments),
            ("reproduce", "recipe", words_of::<Recipe>()),
        ];
        for (command, argument, names) in lists {
            let text = text(command, argument);
            let words: Vec<&str> = text
                .split(|c: char| !(c.is_alphanumeric() || c == '-'))
                .collect();
            assert!(!names.is_empty(), "{command} {argument}");
            for name in names {
                assert!(
                    words.contains(name),
                    "{command} {argument}: {name} is not in {text:?}"
                );
            }
        }
    }

    #[test]
    fn every_member_is_in_the_docs() {
        let page = |name: &str| {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
            std::fs::read_to_string(path.join(name)).unwrap()
        };
        let methods = Generation::methods();
        let metrics: Vec<_> = diffclf::metric::CITES
            .iter()
            .map(|(name, _)| *name)
            .collect();
        let families: [(&str, &[&str]); 4] = [
            ("guide.md", &Process::NAMES),
            ("guide.md", &methods),
            ("guide.md", &Kernel::NAMES),
            ("architecture.md", &metrics),
        ];
        for (docs, names) in families {
            let text = page(docs);
            for name in names {
                assert!(
                    text.contains(&format!("`{name}`")),
                    "{name} is not in docs/{docs}"
                );
            }
        }
    }

    /// No list of a family's members is written by hand in a command: one that ends in dots, or holds some of them, is out of date sooner or
    /// later.
    #[test]
    fn no_list_is_written_by_hand() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let source = std::fs::read_to_string(&path).unwrap();
                for line in source.lines().filter(|line| !line.contains("diffclf ")) {
                    let named = |names: &[&str]| {
                        let words = line.split(|c: char| !(c.is_alphanumeric() || c == '-'));
                        words.filter(|word| names.contains(word)).count()
                    };
                    let families: [&[&str]; 3] =
                        [&System::NAMES, &Kernel::NAMES, words_of::<Resampling>()];
                    for names in families {
                        assert!(named(names) < 2, "{}: {line}", path.display());
                    }
                }
            }
        }
    }
}
