//! Coarse-grained topologies in files: a .pdb structure, or a .toml file that says what the beads are; and the Go model of their structure.

use crate::error::{Error, Result};
use crate::files::{MappedNpy, read_text};
use crate::trajectory::{kind_of, read};
use diffclf::format::trajectory::Kind;
use diffclf::molecule::{Beads, GoModel, GoSettings};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What a .toml file may say: a structure, and what is to be otherwise than it says; or all of it without one.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    structure: Option<PathBuf>,
    names: Option<Vec<String>>,
    types: Option<Vec<usize>>,
    masses: Option<Vec<f64>>,
    bonds: Option<Vec<[usize; 2]>>,
    go: Option<GoSettings>,
}

/// Beads, and the strengths of their Go model.
#[derive(Debug, Clone, PartialEq)]
pub struct BeadFile {
    /// The beads.
    pub beads: Beads,
    /// `[go]`, or what it is by default.
    pub go: GoSettings,
}

impl BeadFile {
    /// Reads a .pdb or .toml file. A structure that a .toml file names is looked for beside it.
    pub fn read(path: &Path) -> Result<BeadFile> {
        if kind_of(path) == Some(Kind::Pdb) {
            return Ok(BeadFile {
                beads: structure(path)?,
                go: GoSettings::default(),
            });
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let refused = |reason: String| Error::Config {
            path: path.to_path_buf(),
            reason,
        };
        match path.extension().is_some_and(|end| end == "toml") {
            true => Self::parse(&read_text(path)?, |name| structure(&folder.join(name)))
                .map_err(|error| refused(error.to_string())),
            false => Err(refused(
                "it is no topology of beads; expected a .pdb file, or a .toml file".into(),
            )),
        }
    }

    /// Reads the text of a .toml file; `structure` finds the beads of the file it names.
    pub fn parse(text: &str, structure: impl FnOnce(&Path) -> Result<Beads>) -> Result<BeadFile> {
        let written: Written =
            toml::from_str(text).map_err(|error| Error::Usage(error.to_string()))?;
        let mut beads = match &written.structure {
            Some(path) => structure(path)?,
            None => Beads::default(),
        };
        if let Some(masses) = written.masses {
            beads.masses = masses;
        }
        let count = beads.masses.len();
        beads.types = match written.types {
            Some(types) => types,
            None if beads.types.is_empty() => (0..count).collect(),
            None => beads.types,
        };
        beads.names = match written.names {
            Some(names) => names,
            None if beads.names.is_empty() => (0..count).map(|k| format!("bead:{k}")).collect(),
            None => beads.names,
        };
        beads.bonds = written.bonds.unwrap_or(beads.bonds);
        Ok(BeadFile {
            beads: beads.checked()?,
            go: written.go.unwrap_or_default(),
        })
    }

    /// The Go model of the structure.
    pub fn go_model(&self) -> Result<GoModel> {
        if self.beads.structure.is_empty() {
            return Err(Error::Usage(
                "a Go model needs a native structure; give a .pdb file, or structure = \"FILE.pdb\" in the .toml file".into(),
            ));
        }
        Ok(GoModel::new(&self.beads.structure, self.go)?)
    }
}

fn structure(path: &Path) -> Result<Beads> {
    let mapped = MappedNpy::open(path)?;
    let frames = read(path, Kind::Pdb, mapped.bytes())?;
    Beads::of_structure(&frames).map_err(|source| Error::about(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::energy::Energy;

    #[test]
    fn toml_says_what_beads_are_with_a_structure_or_without() {
        let none = |_: &Path| Err(Error::Usage("no file is asked for".into()));
        let own = "masses = [12.0, 14.0, 16.0]\nbonds = [[0, 1], [1, 2]]";
        let found = BeadFile::parse(own, none).unwrap();
        assert_eq!(found.beads.types, [0, 1, 2]);
        assert_eq!(found.beads.masses, [12.0, 14.0, 16.0]);
        assert!(
            found
                .go_model()
                .unwrap_err()
                .to_string()
                .contains("structure =")
        );
        let refused = |text: &str| BeadFile::parse(text, none).unwrap_err().to_string();
        assert!(refused("mass = [1.0]").contains("unknown field"));
        assert!(refused("masses = [1.0]\ntypes = [0, 1]").contains("2 types"));
        assert!(refused("").contains("none"));
        assert!(refused("structure = 'a.pdb'").contains("no file"));
    }

    #[test]
    fn a_go_model_stands_beside_its_structure() {
        let place = tempfile::tempdir().unwrap();
        let native = include_str!("../../experiments/chignolin/native.pdb");
        std::fs::write(place.path().join("native.pdb"), native).unwrap();
        let path = place.path().join("model.toml");
        let text = "structure = 'native.pdb'\nmasses = [12.0108, 12.0108, 12.0108, 12.0108, 12.0108, 12.0108, 12.0108, 12.0108, 12.0108, 12.0108]\n[go]\nepsilon = 1.4\n";
        std::fs::write(&path, text).unwrap();
        let found = BeadFile::read(&path).unwrap();
        assert_eq!((found.beads.count(), found.beads.bonds.len()), (10, 9));
        assert_eq!((found.go.epsilon, found.beads.masses[3]), (1.4, 12.0108));
        // Two tyrosines at the beginning and one at the end, two threonines.
        assert_eq!(found.beads.types, [0, 0, 1, 2, 3, 4, 5, 4, 6, 0]);
        let model = found.go_model().unwrap();
        assert_eq!((model.dim(), model.contacts().count()), (30, 9));
        let plain = BeadFile::read(&place.path().join("native.pdb")).unwrap();
        assert_eq!(plain.go, GoSettings::default());
        std::fs::write(&path, "structure = 'other.pdb'").unwrap();
        let error = BeadFile::read(&path).unwrap_err().to_string();
        assert!(
            error.contains("model.toml") && error.contains("other.pdb"),
            "{error}"
        );
        let wrong = BeadFile::read(Path::new("a.xyz")).unwrap_err();
        assert!(matches!(wrong, Error::Config { .. }), "{wrong}");
    }
}
