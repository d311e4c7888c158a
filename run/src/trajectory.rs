//! Frames of atoms in files: read into the bytes of a .npy file, so that whoever reads arrays reads them too; written by the end of the
//! name. In nm, whatever the file's own unit.

use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::memory;
use crate::outputs;
use crate::simulate::Units;
use crate::words;
use crate::words::Setting;
use diffclf::format::npy::write_npy;
use diffclf::format::trajectory::{Kind, Selection, Trajectory};
use std::path::{Path, PathBuf};

/// The format of a file by the end of its name; none for arrays and tables.
pub fn kind_of(path: &Path) -> Option<Kind> {
    Kind::of_extension(path.extension()?.to_str()?)
}

/// Reads frames out of a file's bytes.
pub fn read(path: &Path, kind: Kind, bytes: &[u8]) -> Result<Trajectory> {
    // Packed frames are at most a few times smaller than the numbers they hold.
    memory::refuse(path.display().to_string(), 8 * bytes.len() as u128)?;
    Trajectory::read(kind, bytes).map_err(|source| Error::about(path, source))
}

/// The frames as a .npy file of float32, (frames, atoms, 3).
pub fn as_array(path: &Path, kind: Kind, bytes: &[u8]) -> Result<Vec<u8>> {
    let found = read(path, kind, bytes)?;
    let mut array = Vec::new();
    write_npy(
        &[found.frames(), found.atoms, 3],
        &found.positions,
        &mut array,
    )?;
    Ok(array)
}

/// What is converted.
#[derive(Debug, Clone, Default)]
pub struct Conversion {
    /// Files with frames of the same atoms, one after the other: trajectories, or arrays of (frames, atoms, 3) in nm.
    pub inputs: Vec<PathBuf>,
    /// A .pdb file that names the atoms.
    pub topology: Option<PathBuf>,
    /// Which atoms.
    pub atoms: Option<String>,
    /// Every so-manieth frame.
    pub every: usize,
}

/// Frames ready to be written, and a word about them.
pub struct Converted {
    /// The frames, in nm.
    pub frames: Trajectory,
    /// Where they come from.
    pub text: String,
}

impl Conversion {
    /// Reads, selects and thins.
    pub fn run(&self) -> Result<Converted> {
        if self.every == 0 {
            return Err(Error::setting("every", 0, "at least 1"));
        }
        let topology = match &self.topology {
            Some(path) => Some(open(path)?.0),
            None => None,
        };
        let mut all: Option<Trajectory> = None;
        let mut units = Vec::new();
        for path in &self.inputs {
            let (frames, unit) = open(path)?;
            units.push(unit);
            match &mut all {
                None => all = Some(frames),
                Some(all) if all.atoms == frames.atoms => all.positions.extend(frames.positions),
                Some(all) => {
                    return Err(Error::Usage(format!(
                        "{} has frames of {} atoms, and {} of {}; give files of the same atoms",
                        path.display(),
                        frames.atoms,
                        self.inputs[0].display(),
                        all.atoms
                    )));
                }
            }
        }
        let mut frames = all.ok_or(Error::Nothing)?;
        if let Some(topology) = topology {
            if topology.atoms != frames.atoms {
                return Err(Error::Refused(words!(
                    Setting::new("topology"),
                    format!(
                        " names {} atoms, but the frames have {}; give the .pdb file of these atoms",
                        topology.atoms, frames.atoms
                    )
                )));
            }
            (frames.names, frames.bonds) = (topology.names, topology.bonds);
        }
        let (found, atoms) = (frames.frames(), frames.atoms);
        if let Some(text) = &self.atoms {
            let chosen = Selection::parse(text)?.atoms(frames.atoms, &frames.names)?;
            frames = frames.select(&chosen);
        }
        if self.every > 1 {
            let every = frames
                .positions
                .chunks_exact(3 * frames.atoms)
                .step_by(self.every);
            frames.positions = every.flatten().copied().collect();
        }
        units.sort_unstable();
        units.dedup();
        Ok(Converted {
            text: format!(
                "{found} frames of {atoms} atoms (file in {}), {} frames of {} atoms kept, in nm",
                units.join(" and "),
                frames.frames(),
                frames.atoms
            ),
            frames,
        })
    }
}

/// A file's frames and its unit of length.
fn open(path: &Path) -> Result<(Trajectory, &'static str)> {
    let mapped = MappedNpy::open(path)?;
    if let Some(kind) = kind_of(path) {
        return Ok((read(path, kind, mapped.bytes())?, kind.unit()));
    }
    let view = mapped.view()?;
    if !view.dim().is_multiple_of(3) {
        return Err(Error::Usage(format!(
            "{}: rows of {} numbers are no particles in space; expected three for each",
            path.display(),
            view.dim()
        )));
    }
    let frames = Trajectory {
        atoms: view.dim() / 3,
        positions: view.to_vec_f32(),
        ..Trajectory::default()
    };
    Ok((frames, "nm, as arrays are taken to be"))
}

/// The files that chains go to: one for an array, or one for each chain of a trajectory.
pub fn outputs_of(path: &Path, chains: usize) -> Vec<PathBuf> {
    match kind_of(path) {
        Some(_) if chains > 1 => {
            let end = path
                .extension()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let stem = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let width = (chains - 1).to_string().len();
            (0..chains)
                .map(|k| path.with_file_name(format!("{stem}-{k:0width$}.{end}")))
                .collect()
        }
        _ => vec![path.to_path_buf()],
    }
}

/// Refuses, before any work, frames without a unit in a format that has one.
pub fn writable(path: &Path, units: Units) -> Result<()> {
    match kind_of(path) {
        Some(_) => length_for(path, units).map(|_| ()),
        None => Ok(()),
    }
}

/// Writes chains of particles by the end of the name: an array of float64 with all chains' frames, chain after chain, or a file of
/// frames for each. `spacing` is the time between frames in ps.
pub fn write_chains(
    path: &Path,
    points: &[f64],
    shape: (usize, usize, bool),
    (units, spacing): (Units, f64),
    force: bool,
) -> Result<Vec<PathBuf>> {
    let (chains, dim, particles) = shape;
    let paths = outputs_of(path, chains);
    let rows = points.len() / dim;
    let array = |path: &Path, force: bool| {
        let shape = match particles {
            true => vec![rows, dim / 3, 3],
            false => vec![rows, dim],
        };
        outputs::write(path, force, |writer| write_npy(&shape, points, writer))
    };
    let Some(kind) = kind_of(path) else {
        array(path, force)?;
        return Ok(paths);
    };
    let scale = length_for(path, units)?;
    let kept = path.with_extension("npy");
    for (path, chain) in paths.iter().zip(points.chunks_exact(rows / chains * dim)) {
        let frames = Trajectory {
            atoms: dim / 3,
            positions: chain.iter().map(|x| (x * scale) as f32).collect(),
            ..Trajectory::default()
        };
        let written = outputs::write(path, force, |writer| {
            frames.write(kind, spacing as f32, writer)
        });
        // A format that cannot hold chains that were lost must not lose the others with them.
        if let Err(error @ (Error::Content { .. } | Error::Core(_))) = written {
            array(&kept, false)?;
            return Err(Error::Failed(format!(
                "{error}; all chains are kept in {}",
                kept.display()
            )));
        }
        written?;
    }
    Ok(paths)
}

/// nm of a length of 1, refused where a file needs lengths and there are none.
pub fn length_for(path: &Path, units: Units) -> Result<f64> {
    units.nm().ok_or_else(|| {
        Error::Refused(words!(
            path.display(),
            " holds atoms in space, but the coordinates have no unit; say which with ",
            Setting::to("units", "nm"),
            ", or write .npy"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PDB: &str = "\
ATOM      1  N   ALA A   1      11.104   6.134  -6.504  1.00  0.00           N
ATOM      2  CA  ALA A   1      11.639   6.071  -5.147  1.00  0.00           C
ATOM      3  CA  GLY A   2       1.639   0.071  -5.000  1.00  0.00           C
CONECT    1    2
END
";

    #[test]
    fn selected_atoms_of_several_files_become_one_array() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("a.pdb"), PDB).unwrap();
        let mut conversion = Conversion {
            inputs: vec![at("a.pdb"), at("a.pdb")],
            atoms: Some("CA".into()),
            every: 1,
            ..Conversion::default()
        };
        let found = conversion.run().unwrap();
        assert_eq!((found.frames.atoms, found.frames.frames()), (2, 2));
        assert!((found.frames.positions[0] - 1.1639).abs() < 1e-6);
        assert!(found.text.contains("Angstrom") && found.text.contains("2 atoms kept, in nm"));
        // Through a format without names, with them from a topology.
        let points: Vec<f64> = (0..18).map(f64::from).collect();
        let written = write_chains(
            &at("t.dcd"),
            &points,
            (1, 9, true),
            (Units::Angstrom, 1.0),
            false,
        );
        assert_eq!(written.unwrap(), [at("t.dcd")]);
        conversion.inputs = vec![at("t.dcd")];
        assert!(
            conversion
                .run()
                .is_err_and(|e| e.to_string().contains("it names 0"))
        );
        conversion.topology = Some(at("a.pdb"));
        let found = conversion.run().unwrap();
        assert!((found.frames.positions[0] - 0.3).abs() < 1e-6);
        let mapped = MappedNpy::open(&at("t.dcd")).unwrap();
        assert_eq!(mapped.view().unwrap().shape(), [2, 3, 3]);
        conversion.atoms = Some("9".into());
        assert!(conversion.run().is_err());
        conversion.inputs.push(at("none.xtc"));
        assert!(conversion.run().is_err());
    }

    #[test]
    fn many_chains_have_a_file_each() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t.xtc");
        let points = vec![0.25; 12 * 3 * 2];
        let written = write_chains(&path, &points, (12, 3, true), (Units::Nm, 1.0), false).unwrap();
        assert_eq!(written.len(), 12);
        assert!(written[3].ends_with("t-03.xtc") && written[3].exists());
        let refused = write_chains(&path, &points, (12, 3, true), (Units::Reduced, 1.0), true);
        assert!(refused.unwrap_err().to_string().contains("units = nm"));
    }

    #[test]
    fn chains_that_a_format_cannot_hold_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("chains.xtc");
        let mut points = vec![0.1; 2 * 3 * 6];
        points[20] = f64::NAN;
        let told = write_chains(&path, &points, (2, 6, true), (Units::Nm, 0.1), false);
        let told = told.unwrap_err().to_string();
        let kept = place.path().join("chains.npy");
        assert!(
            told.contains("all chains are kept in") && told.contains("chains.npy"),
            "{told}"
        );
        assert_eq!(
            MappedNpy::open(&kept).unwrap().view().unwrap().shape(),
            [6, 2, 3]
        );
        assert!(writable(&path, Units::Reduced).is_err());
        assert!(writable(&path, Units::Nm).is_ok());
    }
}
