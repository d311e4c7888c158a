//! What numbers of a simulation mean: reduced units, or those of molecules.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The gas constant, kJ/(mol K) (CODATA 2018, exact).
const R: f64 = 8.314_462_618_153_24e-3;

/// The unit of the coordinates, and with it all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Units {
    /// Any length, mass and time; the temperature is kT, in mass length^2 / time^2.
    #[default]
    Reduced,
    /// nm, atomic mass units, fs for the time step, 1/ps for the friction, K.
    Nm,
    /// Angstrom, and the others as for nm.
    Angstrom,
}

impl Units {
    /// kT in mass length^2 / time^2, the time in ps for molecules: `kJ/mol = u nm^2 / ps^2`.
    pub fn thermal_energy(self, temperature: f64) -> f64 {
        match self {
            Units::Reduced => temperature,
            Units::Nm => R * temperature,
            Units::Angstrom => 100.0 * R * temperature,
        }
    }

    /// The time step in the unit of time that friction and kT have.
    pub fn time(self, step: f64) -> f64 {
        match self {
            Units::Reduced => step,
            Units::Nm | Units::Angstrom => 1e-3 * step,
        }
    }

    /// The length of 1 in nm, where there is one.
    pub fn nm(self) -> Option<f64> {
        match self {
            Units::Reduced => None,
            Units::Nm => Some(1.0),
            Units::Angstrom => Some(0.1),
        }
    }

    /// Names of the units of the time step, friction, temperature, mass and length.
    pub fn names(self) -> [&'static str; 5] {
        match self {
            Units::Reduced => [
                "(reduced)",
                "(reduced)",
                "(kT, reduced)",
                "(reduced)",
                "reduced units",
            ],
            Units::Nm => ["fs", "/ps", "K", "u", "nm"],
            Units::Angstrom => ["fs", "/ps", "K", "u", "Angstrom"],
        }
    }
}

/// Masses over kT of every coordinate: from one mass for all, one for each particle, or one for each coordinate.
pub fn masses_over_kt(masses: &[f64], dim: usize, thermal_energy: f64) -> Result<Vec<f64>> {
    let each: Vec<f64> = match masses.len() {
        1 => vec![masses[0]; dim],
        n if n == dim => masses.to_vec(),
        n if 3 * n == dim => masses.iter().flat_map(|m| [*m; 3]).collect(),
        n => {
            let particles = match dim.is_multiple_of(3) {
                true => format!(", {} for particles in space", dim / 3),
                false => String::new(),
            };
            return Err(Error::setting(
                "masses",
                format!("{n} numbers"),
                format!("1 for all{particles}, or {dim}, one for each coordinate"),
            ));
        }
    };
    if let Some(mass) = each.iter().find(|m| !(m.is_finite() && **m > 0.0)) {
        return Err(Error::setting("masses", *mass, "positive finite numbers"));
    }
    Ok(each.iter().map(|m| m / thermal_energy).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_chemistry() {
        // kT at 300 K is 2.494339 kJ/mol; a carbon moves by sqrt(kT/m) = 0.4558 nm/ps = 4.558 A/ps.
        assert!((Units::Nm.thermal_energy(300.0) - 2.494_338_785).abs() < 1e-8);
        for (units, speed) in [(Units::Nm, 0.455_8), (Units::Angstrom, 4.558)] {
            let kt = units.thermal_energy(300.0);
            let masses = masses_over_kt(&[12.011, 1.008], 6, kt).unwrap();
            assert!((1.0 / masses[2].sqrt() / speed - 1.0).abs() < 2e-4);
            assert!((masses[0] / masses[5] - 12.011 / 1.008).abs() < 1e-12);
            assert_eq!(units.time(2.0), 0.002);
        }
        assert_eq!(masses_over_kt(&[0.5], 2, 23.0).unwrap(), [0.5 / 23.0; 2]);
        let message = masses_over_kt(&[1.0; 4], 15, 1.0).unwrap_err().to_string();
        assert!(message.contains("5 for particles"), "{message}");
        assert!(masses_over_kt(&[1.0, 0.0], 2, 1.0).is_err());
    }
}
