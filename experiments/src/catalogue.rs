//! The experiments there are, and how they are written down.

use crate::aldp_cg::AlanineDipeptide;
use crate::blindness::Blindness;
use crate::cell::CellRecord;
use crate::chignolin::Chignolin;
use crate::classifier::Classifier;
use crate::composition::Composition;
use crate::dynamics::Dynamics;
use crate::ising::Ising;
use crate::limits::Limits;
use crate::mueller_brown::Surface;
use crate::properties::Properties;
use crate::stages::Methods;
use crate::{Bench, Manner, aldp_solvation, boltzmann, dynamics, gaussian};
use diffclf_report::page::Figure;
use diffclf_run::error::{Error, Result};
use diffclf_run::words;
use diffclf_run::words::Setting;
use serde::Deserialize;
use std::collections::BTreeMap;

/// An experiment's two files, which are part of the program.
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    run: &'static str,
    expected: &'static str,
}

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        [$(Entry {
            name: $name,
            run: include_str!(concat!("../", $name, "/run.toml")),
            expected: include_str!(concat!("../", $name, "/expected.json")),
        }),*]
    };
}

/// All experiments, in the paper's order.
pub const CATALOGUE: &[Entry] = &experiments![
    "blindness",
    "classifier",
    "mog40-dm",
    "mog2-dm",
    "mog-si",
    "compose-or",
    "compose-and",
    "boltzmann-si",
    "mueller-brown",
    "aldp-cg",
    "chignolin",
    "aldp-solvation",
    "properties",
    "limits",
    "ising-discrete",
];

/// Looks an experiment up.
pub fn find(name: &str) -> Result<&'static Entry> {
    CATALOGUE
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| {
            let names: Vec<_> = CATALOGUE.iter().map(|entry| entry.name).collect();
            Error::Usage(format!(
                "there is no experiment {name:?}; expected one of {}",
                names.join(", ")
            ))
        })
}

impl Entry {
    /// What is computed.
    pub fn definition(&self) -> Result<Definition> {
        toml::from_str(self.run)
            .map_err(|error| Error::Failed(format!("{}/run.toml: {error}", self.name)))
    }

    /// What the paper prints.
    pub fn expected(&self) -> Result<Vec<Expected>> {
        serde_json::from_str(self.expected)
            .map_err(|error| Error::Failed(format!("{}/expected.json: {error}", self.name)))
    }
}

/// `run.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What is shown.
    pub title: String,
    /// Where the paper has it.
    pub paper: String,
    /// How long it takes.
    pub cost: Cost,
    /// What the paper claims about the order of its methods, at every budget.
    #[serde(default)]
    pub orders: Vec<Order>,
    /// Claims about cells that only the full budget has.
    #[serde(default)]
    pub full_orders: Vec<Order>,
    experiment: Kind,
}

/// Minutes on two cores.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// With `--quick`.
    pub quick: f64,
    /// At the paper's budget.
    pub full: f64,
    /// `measured` or `extrapolated`.
    pub how: String,
}

/// A claim: one group of cells has a smaller figure than another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Which figure.
    pub figure: String,
    /// The group with the smaller one.
    pub less: String,
    /// The group with the larger one.
    pub than: String,
}

/// A number of the paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Group of cells: a cell's name without the seed.
    pub cell: String,
    /// Which figure.
    pub figure: String,
    /// What the paper prints.
    pub value: f64,
    /// How far from it a figure is still alike: twice the spread it prints, at least half a unit of the last digit.
    pub tolerance: f64,
    /// Whether it is a known answer: right at every budget, and neither more nor less is better.
    #[serde(default)]
    pub exact: bool,
    /// Where.
    pub source: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Kind {
    /// What losses see of mixture weights.
    Blindness(Blindness),
    /// The classifier during training.
    Classifier(Classifier),
    /// Learned energies of Gaussian mixtures beside the exact ones.
    Gaussian(Box<Methods<gaussian::Budget>>),
    /// Samples of two models composed.
    Composition(Box<Composition>),
    /// Particles led by an interpolant and weighted by learned energies.
    Boltzmann(Box<Methods<boltzmann::Budget>>),
    /// Dynamics on a learned energy of the Mueller-Brown surface.
    MuellerBrown(Box<Methods<dynamics::Budget>>),
    /// Dynamics on a learned energy of coarse-grained alanine dipeptide.
    AldpCg(Box<Methods<dynamics::Budget>>),
    /// Dynamics on a learned energy of ten C-alpha beads of chignolin.
    Chignolin(Box<Methods<dynamics::Budget>>),
    /// Free energies of solvation along a learned path.
    AldpSolvation(Box<Methods<aldp_solvation::Budget>>),
    /// What objectives cost.
    Properties(Properties),
    /// What losses become as times get close.
    Limits(Limits),
    /// Weights of the two phases of a lattice of spins.
    Ising(Ising),
}

/// Something with cells.
pub trait Experiment {
    /// The names of the cells. Those that differ only in a last `-sK`, the seed, are averaged.
    fn cells(&self) -> Vec<String>;
    /// Everything that decides the figures: a cell computed under other settings is not used.
    fn settings(&self) -> Result<serde_json::Value>;
    /// Whether it takes frames of the user's in place of its own.
    fn takes_frames(&self) -> bool {
        false
    }
    /// Computes one cell.
    fn run(&self, cell: &str, bench: &Bench) -> Result<CellRecord>;
    /// Pictures of the finished cells.
    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>>;
}

/// A picture and the name of its file.
pub struct Picture {
    /// File name without extension.
    pub name: String,
    /// The picture with its caption.
    pub figure: Figure,
}

impl Definition {
    /// The experiment at a budget.
    pub fn experiment(&self, manner: Manner) -> Result<Box<dyn Experiment + '_>> {
        let quick = manner.quick;
        match &self.experiment {
            Kind::Gaussian(table) => Ok(Box::new(table.at(manner)?)),
            Kind::Composition(composition) => Ok(Box::new(composition.at(manner)?)),
            Kind::Boltzmann(generator) => Ok(Box::new(generator.at(manner)?)),
            Kind::MuellerBrown(methods) => {
                Ok(Box::new(Dynamics::<Surface>::of(methods.at(manner)?)))
            }
            Kind::AldpCg(methods) => Ok(Box::new(Dynamics::<AlanineDipeptide>::of(
                methods.at(manner)?,
            ))),
            Kind::Chignolin(methods) => {
                Ok(Box::new(Dynamics::<Chignolin>::of(methods.at(manner)?)))
            }
            Kind::AldpSolvation(methods) => Ok(Box::new(methods.at(manner)?)),
            _ if manner.share != 1.0 => Err(Error::Refused(words!(
                Setting::new("share"),
                " is for experiments that train models in two stages; leave it out here"
            ))),
            Kind::Blindness(blindness) => Ok(Box::new(blindness.at(quick))),
            Kind::Classifier(classifier) => Ok(Box::new(classifier.at(quick))),
            Kind::Properties(properties) => Ok(Box::new(properties.at(quick))),
            Kind::Limits(limits) => Ok(Box::new(limits)),
            Kind::Ising(ising) => Ok(Box::new(ising.at(quick))),
        }
    }

    /// The claims that can be checked at a budget.
    pub fn orders(&self, quick: bool) -> impl Iterator<Item = &Order> {
        let full = if quick { &[][..] } else { &self.full_orders };
        self.orders.iter().chain(full)
    }
}
