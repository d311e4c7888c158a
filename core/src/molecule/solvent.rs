//! Implicit solvent: generalised Born with the radii of Onufriev, Bashford and Case (2004) and the surface term of Schaefer, Bartels and
//! Karplus (1998).
//!
//! With `psi_i = rho_i I_i`, `I_i` the screening integrals of Hawkins, Cramer and Truhlar (1996), `rho = R - 0.009 nm`:
//!
//! ```text
//! 1 / B_i  = 1 / rho_i - tanh(alpha psi - beta psi^2 + gamma psi^3) / R_i
//! polar    = -k (1/eps_in - 1/eps_out) ( 1/2 sum_i q_i^2 / B_i + sum_{i<j} q_i q_j / f_ij )
//! f_ij^2   = r^2 + B_i B_j exp(-r^2 / (4 B_i B_j))
//! surface  = 28.39 kJ/mol/nm^2 sum_i (R_i + 0.14 nm)^2 (R_i / B_i)^6
//! ```

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &[
    "hawkins1996parametrized",
    "onufriev2004exploring",
    "schaefer1998solution",
];

/// Coulomb's constant as Amber's generalised Born has it.
pub(super) const POLAR: f64 = 138.935_485;
/// What radii lose before they screen, nm.
pub(super) const OFFSET: f64 = 0.009;
/// kJ/mol/nm^2: 4 pi times 0.0054 kcal/mol/Angstrom^2.
pub(super) const SURFACE: f64 = 28.391_955_1;
/// Radius of a water molecule, nm.
pub(super) const PROBE: f64 = 0.14;
/// One over the dielectric constant inside minus that of water.
pub(super) const SCREENING: f64 = 1.0 - 1.0 / 78.5;

/// Which radii.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum SolventModel {
    /// OBC1, Amber's igb=2.
    #[default]
    Obc1,
    /// OBC2, Amber's igb=5.
    Obc2,
}

impl SolventModel {
    /// All names.
    pub const NAMES: [&'static str; 2] = ["obc1", "obc2"];

    /// The model of that name.
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "obc1" => Ok(Self::Obc1),
            "obc2" => Ok(Self::Obc2),
            _ => Err(Error::Value {
                name: "solvent model",
                found: format!("'{name}'"),
                expected: format!("one of {}", Self::NAMES.join(", ")),
            }),
        }
    }

    /// alpha, beta and gamma.
    pub(super) fn constants(self) -> [f64; 3] {
        match self {
            Self::Obc1 => [0.8, 0.0, 2.909_125],
            Self::Obc2 => [1.0, 0.8, 4.85],
        }
    }
}

/// How much of the solvent a copy of the molecule sees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Solvent {
    /// None: no generalised Born, no surface term.
    Vacuum,
    /// Surface term and generalised Born, whose charges (and no others) are multiplied by `lambda`: 0 switches the polar part off and
    /// leaves the surface term, 1 is the whole solvent.
    Implicit {
        /// Factor on the charges.
        lambda: f64,
    },
}

impl Solvent {
    /// The whole solvent.
    pub const WATER: Solvent = Solvent::Implicit { lambda: 1.0 };

    /// Factors on the polar and on the surface energy.
    pub fn factors(self) -> (f64, f64) {
        match self {
            Solvent::Vacuum => (0.0, 0.0),
            Solvent::Implicit { lambda } => (lambda * lambda, 1.0),
        }
    }

    /// Refuses a factor that is not a number.
    pub fn validate(self) -> Result<()> {
        match self {
            Solvent::Implicit { lambda } if !(0.0..=1.0).contains(&lambda) => Err(Error::Value {
                name: "lambda",
                found: lambda.to_string(),
                expected: "from 0 (no polar solvent) to 1 (all of it)".into(),
            }),
            _ => Ok(()),
        }
    }
}
