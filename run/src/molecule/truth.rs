//! The molecule that rows are frames of: its exact energies at both ends of a path, for objectives that compare with them.

use super::{Molecule, solvent};
use crate::error::{Error, Result};
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Coordinates, Energy, OfPoints, Scale};
use diffclf::engine::Isa;
use diffclf::molecule::{SolvatedEnergy, SolventModel, ThermoState};
use diffclf::particles::View;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// What is known of the rows: frames of this molecule in nm, in these solvents at this temperature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoleculeChoice {
    /// Amber topology.
    pub topology: PathBuf,
    /// The solvent of the data, then that of the second endpoint: lambda from "0" to "1", or "vacuum".
    pub solvents: Vec<String>,
    /// K.
    pub temperature: f64,
    /// Radii of the solvent.
    #[serde(default)]
    pub model: SolventModel,
}

impl FromStr for MoleculeChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        #[derive(Deserialize)]
        struct Whole {
            value: MoleculeChoice,
        }
        let whole = toml::from_str::<Whole>(&format!("value = {text}"));
        whole
            .map(|whole| whole.value)
            .map_err(|error| error.message().to_string())
    }
}

impl MoleculeChoice {
    /// The energies of rows of so many numbers, frames in nm, at both ends of an interpolant.
    pub fn energy_of_rows(&self, columns: usize, isa: Isa) -> Result<Arc<dyn Energy>> {
        self.energy(&Coordinates::identity(columns), None, 2, isa)
    }

    /// The energies in the coordinates of a model, in which rows are seen through `view`: those must turn and move with the molecule, so that one
    /// scale serves all.
    pub fn energy(
        &self,
        map: &Coordinates,
        view: Option<View>,
        endpoints: usize,
        isa: Isa,
    ) -> Result<Arc<dyn Energy>> {
        let refused =
            |problem: String| Error::Refused(words!(Setting::new("molecule"), " ", problem));
        if self.solvents.len() != endpoints {
            return Err(refused(format!(
                "has {} solvents, expected one for each of the {endpoints} endpoints",
                self.solvents.len()
            )));
        }
        let mut states = Vec::new();
        for text in &self.solvents {
            states.push(ThermoState {
                temperature: self.temperature,
                solvent: solvent(text).map_err(refused)?,
            });
        }
        let solvents: Vec<_> = states.iter().map(|state| state.solvent).collect();
        let molecule = Molecule::open(&self.topology, self.model, &solvents)?;
        let atoms = molecule.topology.atoms();
        let columns = view.as_ref().map_or(map.dim(), View::columns);
        if columns != 3 * atoms {
            return Err(refused(format!(
                "has {atoms} atoms, but a row has {columns} numbers, expected {}",
                3 * atoms
            )));
        }
        // Points without a centre have no other place than zero.
        let centred = map.dim() < columns;
        let rigid = map.shift.iter().enumerate().all(|(k, x)| match centred {
            true => *x == 0.0,
            false => *x == map.shift[k % 3],
        });
        let Scale::Common(scale) = map.scale else {
            return Err(refused(format!(
                "needs one scale for all columns: set particles = {atoms}"
            )));
        };
        if !rigid {
            return Err(refused(format!(
                "needs one shift for all atoms: set particles = {atoms}"
            )));
        }
        let energy = SolvatedEnergy::new(
            Arc::new(molecule.field),
            states[0],
            states.get(1).copied(),
            1.0 / scale,
            isa,
        )?;
        // The way from points to rows is linear and keeps lengths, so it may be taken after the scale as before it.
        Ok(match view {
            Some(view) => Arc::new(OfPoints {
                inner: Box::new(energy),
                view,
            }),
            None => Arc::new(energy),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::particles::{Frame, Subspace};
    use std::path::Path;

    fn choice(more: &str) -> std::result::Result<MoleculeChoice, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/aldp-solvation");
        let topology = folder.join("alanine-dipeptide.prmtop");
        format!("{{topology = '{}', {more}}}", topology.display()).parse()
    }

    /// Energies in the model's coordinates are those of the molecule, and their slopes go with them.
    #[test]
    fn energies_follow_the_coordinates() {
        let choice = choice("solvents = ['1', '0'], temperature = 300.0").unwrap();
        let map = Coordinates {
            shift: (0..66).map(|k| [0.3, -0.2, 0.1][k % 3]).collect(),
            scale: 0.18.into(),
            kinds: Vec::new(),
        };
        let truth = choice.energy(&map, None, 2, Isa::detect()).unwrap();
        let molecule = Molecule::open_whole(&choice.topology, SolventModel::Obc1).unwrap();
        let crd = choice.topology.with_extension("crd");
        let x = molecule.coordinates(&crd).unwrap();
        let mut y = x.clone();
        map.to_model(&mut y);
        let kt = 8.314_462_618e-3 * 300.0;
        for (time, expected) in [(0.0, -138.9697), (1.0, -71.5628)] {
            let mut energy = [0.0];
            truth.energy(&[time], &y, &mut energy);
            assert!((energy[0] * kt - expected).abs() < 1e-4);
            let mut score = vec![0.0; 66];
            truth.score(&[time], &y, &mut score);
            let direction: Vec<f64> = (0..66).map(|k| (f64::from(k) * 1.3).sin()).collect();
            let at = |h: f64| {
                let moved: Vec<f64> = y.iter().zip(&direction).map(|(y, e)| y + h * e).collect();
                let mut energy = [0.0];
                truth.energy(&[time], &moved, &mut energy);
                energy[0]
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            let along: f64 = score.iter().zip(&direction).map(|(s, e)| s * e).sum();
            assert!(
                (slope + along).abs() < 1e-4 * along.abs(),
                "{slope} {along}"
            );
        }
        let mut rate = [0.0];
        truth.energy_rate(&[0.4], &y, &mut rate);
        assert!((rate[0] * kt - (138.9697 - 71.5628)).abs() < 2e-4);
        // Turned onto another frame and freed of the centre it is the same molecule.
        let frame: Vec<f64> = (0..66).map(|k| (f64::from(k) * 0.7).cos()).collect();
        let view = View::new(
            66,
            Some(Frame::new(&frame, 22).unwrap()),
            Some(Subspace::new(22, 3).unwrap()),
        );
        let map = Coordinates {
            shift: vec![0.0; 63],
            ..map
        };
        let mut points = view.rows_inward(x);
        map.to_model(&mut points);
        let truth = choice.energy(&map, Some(view), 2, Isa::detect()).unwrap();
        let (mut energy, mut score) = ([0.0], [0.0; 63]);
        truth.energy_and_score(&[0.0], &points, &mut energy, &mut score);
        assert!((energy[0] * kt + 138.9697).abs() < 1e-4);
        for k in [0, 31, 62] {
            let at = |h: f64| {
                let mut moved = points.clone();
                moved[k] += h;
                let mut energy = [0.0];
                truth.energy(&[0.0], &moved, &mut energy);
                energy[0]
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((slope + score[k]).abs() < 1e-5 * (1.0 + slope.abs()));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(choice("solvents = ['1']").is_err());
        assert!(choice("solvents = ['1'], temperature = 300.0, colour = 3").is_err());
        let one = choice("solvents = ['1'], temperature = 300.0").unwrap();
        let told = |found: Result<Arc<dyn Energy>>| found.err().unwrap().to_string();
        let map = Coordinates::identity(66);
        let energy = |choice: &MoleculeChoice, map: &Coordinates, endpoints| {
            choice.energy(map, None, endpoints, Isa::detect())
        };
        assert!(told(energy(&one, &map, 2)).contains("2 endpoints"));
        assert!(told(energy(&one, &Coordinates::identity(6), 1)).contains("22 atoms"));
        let columns = Coordinates {
            scale: Scale::Columns(vec![1.0; 66]),
            ..map.clone()
        };
        assert!(told(energy(&one, &columns, 1)).contains("particles = 22"));
        let view = View::new(66, None, Some(Subspace::new(22, 3).unwrap()));
        let apart = Coordinates {
            shift: vec![0.1; 63],
            ..Coordinates::identity(63)
        };
        let found = one.energy(&apart, Some(view), 1, Isa::detect());
        assert!(told(found).contains("one shift"));
        let odd = choice("solvents = ['water'], temperature = 300.0").unwrap();
        assert!(told(energy(&odd, &map, 1)).contains("vacuum"));
    }
}
