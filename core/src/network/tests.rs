//! The family is closed: its names are those of files and documents.

use super::*;

#[test]
fn names_are_those_of_files_and_documents() {
    let wrong = serde_json::from_str::<NetworkSpec>(r#"{"kind": "none of them"}"#);
    let message = wrong.unwrap_err().to_string();
    let (_, known) = message.split_once("expected ").unwrap();
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    assert_eq!(known, NetworkSpec::NAMES);
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/architecture.md");
    let Ok(text) = std::fs::read_to_string(docs) else {
        return eprintln!("skipped: the documents are not beside the crate");
    };
    for name in NetworkSpec::NAMES {
        let row = format!("| `{name}` |");
        assert!(text.contains(&row), "docs/architecture.md has no row {row}");
    }
}

#[test]
fn sizes_that_cannot_be_built_are_refused() {
    let refused = |spec: NetworkSpec| {
        let role = Role {
            name: "net",
            output: Output::Vector,
            dim: 6,
            features: 4,
        };
        spec.network(role).validate().unwrap_err().to_string()
    };
    let (width, depth) = (8, 2);
    assert!(refused(NetworkSpec::Mlp { width: 0, depth }).contains("width"));
    assert!(refused(NetworkSpec::Mlp { width, depth: 65 }).contains("depth"));
    let none = NetworkSpec::Waves {
        width,
        depth,
        waves: 0,
    };
    assert!(refused(none).contains("waves"));
    for particles in [0, 1, 4] {
        let message = refused(NetworkSpec::Pairs {
            particles,
            width,
            depth,
        });
        assert!(message.contains("a divisor of the dimension"), "{message}");
    }
}
