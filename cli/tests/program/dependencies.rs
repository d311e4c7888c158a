//! What the program is made of: licences that allow its use anywhere, and no crate in two versions unawares. Works without a network: all
//! that is asked is `Cargo.lock` and the sources that a build needs anyway.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Licences that ask for no more than to be named.
const FREE: [&str; 9] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "Zlib",
    "0BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Unlicense",
    "Unicode-3.0",
];

/// Crates that others bring in several versions: nalgebra in tests, the rest until their users move on.
const TWICE: [&str; 4] = ["glam", "hashbrown", "miniz_oxide", "syn"];

/// Whether an expression of SPDX, without nested parentheses of choices, can be met by free licences.
fn is_free(expression: &str) -> bool {
    let text = expression.replace('/', " OR ");
    text.split(" AND ").all(|part| {
        let part = part.trim_matches(['(', ')']);
        part.split(" OR ")
            .any(|licence| FREE.contains(&licence.trim()))
    })
}

/// The machine's own platform: sources for others need not be here.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.unwrap().to_string()
}

fn packages() -> Vec<Value> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--format-version", "1"])
        .args(["--manifest-path", root, "--filter-platform", &host()])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["packages"].as_array().unwrap().clone()
}

#[test]
fn dependencies_are_free_and_there_once() {
    assert!(is_free("MIT/Apache-2.0") && is_free("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(is_free("MIT OR LGPL-2.1-or-later") && !is_free("LGPL-2.1-or-later"));
    assert!(!is_free("MIT AND GPL-3.0") && !is_free(""));
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_string();
        let (name, licence) = (text("name"), text("license"));
        assert!(is_free(&licence), "{name} is licensed as '{licence}'");
        let source = text("source");
        // Ours, or from the registry: no repositories, whose content may change.
        let known = source.is_empty() || source.starts_with("registry+");
        assert!(known, "{name} comes from {source}");
        versions.entry(name).or_default().insert(text("version"));
    }
    let twice: Vec<_> = versions
        .iter()
        .filter(|(name, versions)| versions.len() > 1 && !TWICE.contains(&name.as_str()))
        .collect();
    assert!(twice.is_empty(), "in several versions: {twice:?}");
}
