//! Coarse-grained topologies in files: a .pdb structure, or a .toml file that says what the beads are; and the Go model of their structure.

use crate::error::{Error, Result};
use crate::files::{MappedNpy, read_text};
use crate::named::Named;
use crate::network::NetworkChoice;
use crate::settings::Settings;
use crate::springs;
use crate::trajectory::{kind_of, read};
use crate::words;
use crate::words::Setting;
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

/// Puts what the settings' topology says of the particles where it is not given: their number, and types and bonds of the network. A word
/// about it; none without a topology.
pub fn fill(settings: &mut Settings) -> Result<Option<String>> {
    let Some(path) = &settings.topology else {
        return Ok(None);
    };
    let beads = BeadFile::read(path)?.beads;
    let count = beads.count();
    if settings.particles.is_some_and(|given| given != count) {
        return Err(Error::Refused(words!(
            Setting::new("topology"),
            format!(" has {count} particles; leave out "),
            Setting::new("particles"),
            ", or give the topology of these rows"
        )));
    }
    settings.particles = Some(count);
    let number = |k: &usize| *k as u32;
    let known_types: Vec<u32> = beads.types.iter().map(number).collect();
    let known_bonds = beads
        .bonds
        .iter()
        .map(|pair| [0, 1].map(|k| number(&pair[k])));
    let known_bonds: Vec<[u32; 2]> = known_bonds.collect();
    let text = format!(
        "{}: {count} particles of {} types, {} bonds",
        path.display(),
        known_types.iter().max().map_or(0, |most| most + 1),
        known_bonds.len()
    );
    // Molecules have a handedness.
    let network = settings.network.get_or_insert(Named(NetworkChoice::Egnn {
        types: Vec::new(),
        bonds: Vec::new(),
        cross: true,
        range: None,
        cutoff: None,
    }));
    match &mut network.0 {
        NetworkChoice::Egnn { types, bonds, .. } => {
            if types.is_empty() {
                *types = known_types;
            }
            if bonds.is_empty() {
                bonds.clone_from(&known_bonds);
            }
        }
        NetworkChoice::Transformer { types, .. } if types.is_empty() => *types = known_types,
        _ => {}
    }
    if !matches!(network.0, NetworkChoice::Egnn { .. }) && !known_bonds.is_empty() {
        let written = springs::written(&known_bonds);
        settings.bonds.get_or_insert(written);
    }
    Ok(Some(text))
}

/// Refuses rows that are no particles of the topology in space, and takes it out of settings that have all it says.
pub fn settle(settings: &mut Settings, columns: usize) -> Result<()> {
    let Some(path) = settings.topology.take() else {
        return Ok(());
    };
    match settings.particles {
        Some(count) if 3 * count != columns => Err(Error::Usage(format!(
            "{}: {count} particles, but rows have {columns} numbers; give the topology of these rows",
            path.display()
        ))),
        _ => Ok(()),
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
    fn a_topology_tells_what_is_not_given() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("beads.toml");
        let text = "masses = [12.0, 14.0, 12.0]\ntypes = [0, 1, 0]\nbonds = [[0, 1], [1, 2]]";
        std::fs::write(&path, text).unwrap();
        let filled = |text: &str| {
            let mut settings: Settings = toml::from_str(text).unwrap();
            settings.topology = Some(path.clone());
            let word = fill(&mut settings).map_err(|refused| refused.to_string())?;
            Ok::<_, String>((settings, word.unwrap()))
        };
        let (plain, word) = filled("").unwrap();
        assert!(word.contains("3 particles of 2 types, 2 bonds"), "{word}");
        let same = "particles = 3\nnetwork = { kind = \"egnn\", types = [0, 1, 0], bonds = [[0, 1], [1, 2]], cross = true }";
        let mut written: Settings = toml::from_str(same).unwrap();
        assert_eq!(fill(&mut written).unwrap(), None);
        written.topology = Some(path.clone());
        assert_eq!(plain, written);
        // What is given stands.
        let (own, _) = filled("network = { kind = \"transformer\", heads = 2 }").unwrap();
        let expected =
            "particles = 3\nnetwork = { kind = \"transformer\", types = [0, 1, 0], heads = 2 }";
        assert_eq!(
            own.network,
            toml::from_str::<Settings>(expected).unwrap().network
        );
        let (own, _) = filled("network = { kind = \"egnn\", types = [2, 1, 0] }").unwrap();
        let Some(Named(NetworkChoice::Egnn {
            types,
            bonds,
            cross,
            ..
        })) = own.network
        else {
            panic!("another network");
        };
        assert_eq!((types, bonds.len(), cross), (vec![2, 1, 0], 2, false));
        let (pairs, _) = filled("network = \"pairs\"").unwrap();
        assert_eq!(pairs.network, Some(Named(NetworkChoice::Pairs {})));
        let refused = filled("particles = 4").unwrap_err();
        assert!(refused.contains("has 3 particles"), "{refused}");
        // Rows of other particles, and of as many in the plane.
        let mut settled = plain.clone();
        settle(&mut settled, 9).unwrap();
        assert_eq!((settled.topology, settled.particles), (None, Some(3)));
        let refused = settle(&mut plain.clone(), 6).unwrap_err().to_string();
        assert!(refused.contains("6 numbers"), "{refused}");
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
