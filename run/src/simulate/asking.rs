//! A simulation as a user asks for it: what is left open follows the units, the rows and the topology of the beads.

use super::{Landscape, Scheme, Simulation, Units, start_of};
use crate::beads::BeadFile;
use crate::error::{DataFault, Error, Result};
use crate::files::MappedNpy;
use crate::watch::Watch;
use crate::words;
use crate::words::Setting;
use diffclf::observable::Observable;
use std::path::{Path, PathBuf};

/// Draws of a system by which chains that leave it are noticed.
const DATA_ROWS: usize = 4096;
/// More chains than this are a slip of the finger.
const MOST_CHAINS: usize = 1 << 20;
/// Mean lengths of bonds, in nm, beyond which the unit is doubted: those of atoms have 0.1, those of beads up to 0.5.
const USUAL_BONDS: std::ops::Range<f64> = 0.07..0.8;
/// Rows that are looked at for it.
const BOND_ROWS: usize = 100;

/// What is asked for; empty and absent is what may be left open.
#[derive(Debug, Clone)]
pub struct Asking {
    /// How chains move.
    pub scheme: Scheme,
    /// What the numbers mean.
    pub units: Units,
    /// Time step.
    pub step: f64,
    /// Friction.
    pub friction: f64,
    /// Temperature; 1 in reduced units if absent, and asked for in others.
    pub temperature: Option<f64>,
    /// Masses; the topology's if empty, else 1.
    pub masses: Vec<f64>,
    /// Bonds whose lengths are watched; the topology's if empty.
    pub bonds: Vec<[usize; 2]>,
    /// The beads: a .pdb or .toml file.
    pub topology: Option<PathBuf>,
    /// Whether rows are particles in space; told by their shape and bonds if absent.
    pub particles: Option<bool>,
    /// Number of chains, from the first rows on; all rows if absent, one where none are given.
    pub chains: Option<usize>,
    /// Frames of each chain.
    pub frames: usize,
    /// Steps from one frame to the next.
    pub thin: usize,
    /// Time of the energy; the smallest if absent.
    pub time: Option<f64>,
    /// Seed.
    pub seed: u64,
}

/// Rows that are given, and where they come from.
pub struct Given {
    /// The file or the argument, for errors.
    pub name: String,
    /// The numbers.
    pub values: Vec<f64>,
    /// Numbers of a row.
    pub dim: usize,
    /// Whether they are particles in space by their shape.
    pub shaped: bool,
}

/// All that a simulation needs.
pub struct Settled {
    /// What is done.
    pub simulation: Simulation,
    /// Where chains start.
    pub start: Vec<f64>,
    /// Rows by which chains that leave the data are noticed.
    pub data: Vec<f64>,
}

impl Given {
    /// Reads an array, a table or a trajectory.
    pub fn read(path: &Path) -> Result<Self> {
        let mapped = MappedNpy::open(path)?;
        let view = mapped.view()?;
        Ok(Self {
            name: path.display().to_string(),
            values: view.to_vec_f64(),
            dim: view.dim(),
            shaped: in_space(view.shape()),
        })
    }

    /// Refuses rows of another size, and numbers that are none.
    fn checked(self, dim: usize) -> Result<Self> {
        if self.dim != dim {
            return Err(Error::Usage(format!(
                "{}: rows of {} numbers, but the energy has {dim}; give rows of its kind",
                self.name, self.dim
            )));
        }
        match self.values.iter().position(|x| !x.is_finite()) {
            None => Ok(self),
            Some(at) => Err(Error::Data {
                fault: DataFault::NotFinite {
                    row: at / dim,
                    column: at % dim,
                    value: self.values[at],
                },
                name: self.name,
            }),
        }
    }
}

/// Whether an array of this shape holds particles in space.
pub fn in_space(shape: &[usize]) -> bool {
    matches!(shape, [_, _, 3])
}

impl Asking {
    /// Fills in what is open, and refuses what does not fit.
    pub fn settle(
        &self,
        landscape: &Landscape<'_>,
        start: Option<Given>,
        data: Option<Given>,
        watch: &dyn Watch,
    ) -> Result<Settled> {
        let dim = landscape.dim()?;
        if let Some(chains) = self.chains
            && !(1..=MOST_CHAINS).contains(&chains)
        {
            let expected = format!("a number from 1 to {MOST_CHAINS}");
            return Err(Error::setting("chains", chains, expected));
        }
        let temperature = self.temperature_of_units()?;
        let start = start.map(|rows| rows.checked(dim)).transpose()?;
        let data = data.map(|rows| rows.checked(dim)).transpose()?;
        let shaped = start.as_ref().is_some_and(|rows| rows.shaped);
        let (rows, chains) = match start {
            Some(rows) => {
                let count = rows.values.len() / dim;
                (rows.values, self.chains.unwrap_or(count))
            }
            None => {
                let chains = self.chains.unwrap_or(1);
                let rows = start_of(landscape, chains.max(DATA_ROWS), self.seed)?;
                (rows, chains)
            }
        };
        let Some(first) = rows.get(..chains.saturating_mul(dim)) else {
            return Err(Error::Refused(words!(
                Setting::new("chains"),
                format!(
                    " is {chains}, but the start has {} rows; give more rows, or fewer chains",
                    rows.len() / dim
                )
            )));
        };
        let start = first.to_vec();
        let (masses, bonds) = self.masses_and_bonds(dim)?;
        let simulation = Simulation {
            scheme: self.scheme,
            units: self.units,
            step: self.step,
            friction: self.friction,
            temperature,
            masses,
            frames: self.frames,
            thin: self.thin,
            time: self.time,
            particles: self.particles.unwrap_or(shaped || !bonds.is_empty()),
            bonds,
            seed: self.seed,
        };
        simulation.check(chains, dim)?;
        if let Some(doubt) = doubt(&simulation, &rows, dim) {
            watch.note(&doubt);
        }
        Ok(Settled {
            simulation,
            start,
            data: data.map_or(rows, |rows| rows.values),
        })
    }

    /// kT has a usual value, a temperature in kelvin has none.
    fn temperature_of_units(&self) -> Result<f64> {
        match (self.temperature, self.units) {
            (Some(temperature), _) => Ok(temperature),
            (None, Units::Reduced) => Ok(1.0),
            (None, Units::Nm | Units::Angstrom) => Err(Error::Refused(words!(
                "the units are those of molecules, and nothing says how warm they are; give ",
                Setting::to("temperature", "300"),
                " (in K)"
            ))),
        }
    }

    /// Masses and bonds, those of the topology where they are not given.
    fn masses_and_bonds(&self, dim: usize) -> Result<(Vec<f64>, Vec<[usize; 2]>)> {
        let (mut masses, mut bonds) = (self.masses.clone(), self.bonds.clone());
        if let Some(path) = &self.topology {
            let beads = BeadFile::read(path)?.beads;
            if 3 * beads.count() != dim {
                return Err(Error::Usage(format!(
                    "{}: {} beads, but rows have {dim} numbers; give the topology of these rows",
                    path.display(),
                    beads.count()
                )));
            }
            if masses.is_empty() {
                masses = beads.masses;
            }
            if bonds.is_empty() {
                bonds = beads.bonds;
            }
        }
        if masses.is_empty() {
            masses.push(1.0);
        }
        Ok((masses, bonds))
    }
}

/// A word about units that make bonds of molecules ten times too long or too short.
fn doubt(simulation: &Simulation, rows: &[f64], dim: usize) -> Option<String> {
    let nm = simulation.units.nm()?;
    let rows = rows.chunks_exact(dim).take(BOND_ROWS);
    let lengths = rows.flat_map(|row| {
        let bonds = simulation.bonds.iter();
        bonds.map(move |bond| Observable::Distance(*bond).of(row))
    });
    let (sum, count) = lengths.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
    let mean = sum / count * nm;
    let other = match simulation.units {
        _ if count == 0.0 || USUAL_BONDS.contains(&mean) => return None,
        Units::Nm if mean > USUAL_BONDS.end => {
            "; if the coordinates are in Angstrom, say so (units angstrom)"
        }
        Units::Angstrom if mean < USUAL_BONDS.start => {
            "; if the coordinates are in nm, say so (units nm)"
        }
        _ => "",
    };
    Some(format!(
        "warning: with these units bonds are {mean:.3} nm long, and those of molecules are 0.1 to 0.5{other}"
    ))
}
