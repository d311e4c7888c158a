//! The springs that an energy over particles stands on, fitted to the rows that are trained on: which particles are bonded, and when springs are meant.

use crate::data::DataSet;
use crate::error::{Error, Result};
use crate::network::NetworkChoice;
use crate::resolve::{Outline, Resolved};
use crate::settings::Settings;
use crate::words;
use crate::words::Setting;
use diffclf::base::{SpringRows, Springs, Terms};
use diffclf::energy::Energy;
use diffclf::engine::Pool;
use diffclf::network::NetworkSpec;

/// Most rows of an endpoint that springs are fitted to.
const MOST_ROWS: usize = 8192;
/// Most functions of torsions and pairs: their fit takes as much time as their number cubed.
const MOST_SOFT: usize = 1200;

/// Bonds as text, `0-1,1-2`.
fn parse(text: &str) -> Result<Vec<[u32; 2]>> {
    let bond = |part: &str| {
        let (a, b) = part.trim().split_once('-')?;
        Some([a.trim().parse().ok()?, b.trim().parse().ok()?])
    };
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    parts
        .map(|part| {
            bond(part).ok_or_else(|| {
                Error::setting(
                    "bonds",
                    part.trim(),
                    "pairs of particles counted from 0, such as 0-1,1-2",
                )
            })
        })
        .collect()
}

/// The text of bonds.
pub fn written(bonds: &[[u32; 2]]) -> String {
    let text = |bond: &[u32; 2]| format!("{}-{}", bond[0], bond[1]);
    bonds.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The bonds that are known: those that are given, or those of the network.
pub fn bonds(settings: &Settings) -> Result<Vec<[u32; 2]>> {
    if let Some(text) = &settings.bonds {
        return parse(text);
    }
    Ok(match settings.network.as_ref().map(|named| &named.0) {
        Some(NetworkChoice::Egnn { bonds, .. }) => bonds.clone(),
        _ => Vec::new(),
    })
}

/// Types of the particles, none if all are alike.
fn types(settings: &Settings) -> Vec<u32> {
    match settings.network.as_ref().map(|named| &named.0) {
        Some(NetworkChoice::Egnn { types, .. } | NetworkChoice::Transformer { types, .. }) => {
            types.clone()
        }
        _ => Vec::new(),
    }
}

/// Refuses bonds and springs that cannot be meant.
pub fn check(settings: &Settings, asked: bool) -> Result<()> {
    let particles = settings.particles.is_some();
    if settings.bonds.is_some() && !particles {
        return Err(Error::Refused(words!(
            Setting::new("bonds"),
            " are between particles; say how many there are with ",
            Setting::new("particles")
        )));
    }
    if asked && (!particles || bonds(settings)?.is_empty()) {
        return Err(Error::Refused(words!(
            Setting::to("base", "springs"),
            " needs particles with bonds; give ",
            Setting::new("topology"),
            ", or ",
            Setting::new("particles"),
            " and ",
            Setting::to("bonds", "0-1,1-2")
        )));
    }
    Ok(())
}

/// Whether the network tells mirror images apart, so that springs may.
fn chiral(network: &NetworkSpec) -> bool {
    match network {
        NetworkSpec::Egnn(egnn) => egnn.cross,
        NetworkSpec::Pairs { .. } => false,
        _ => true,
    }
}

/// Fits the springs of a run; `truth` are the exact densities of the data, if an objective knows them.
pub fn fit(
    resolved: &Resolved,
    outline: &Outline,
    sets: &[DataSet],
    truth: Option<&dyn Energy>,
    pool: &Pool,
) -> Result<Springs> {
    let (spec, settings) = (&resolved.spec, &resolved.settings);
    let particles = settings.particles.unwrap_or(0);
    let mut ends = Vec::with_capacity(sets.len());
    for (k, set) in sets.iter().enumerate() {
        let rows = set.prepare(&resolved.standardisation)?;
        let Some([train, _]) = rows.in_order(k, outline.seed, outline.held_out) else {
            return Err(Error::Refused(words!(
                Setting::to("base", "springs"),
                " needs a fixed set of rows, but the system is sampled afresh at every step; add ",
                Setting::to("samples", "N")
            )));
        };
        // Spread over all of a series.
        let count = train.rows().min(MOST_ROWS);
        let mut row = vec![0f32; spec.dim];
        let mut all = Vec::with_capacity(count * spec.dim);
        for number in 0..count {
            train.copy_in_order(number * train.rows() / count, &mut row);
            all.extend(row.iter().map(|x| f64::from(*x)));
        }
        ends.push(all);
    }
    let coupling = spec.coupling.as_ref();
    if let (Some(coupling), [start, end]) = (coupling, ends.as_slice()) {
        let pairs = coupling.pairs(spec.shape(), start, end, outline.seed);
        ends = vec![pairs.start, pairs.end];
    }
    let scores = |end: usize| {
        let (rows, truth) = (ends.get(end)?, truth?);
        let mut scores = vec![0.0; rows.len()];
        let time = [0.0, spec.process.horizon()][end];
        truth.score(&[time], rows, &mut scores);
        Some(scores)
    };
    let scores = [scores(0), scores(1)];
    let energies = [0, 1].map(|end: usize| {
        let (rows, truth) = (ends.get(end)?, truth?);
        let mut energies = vec![0.0; rows.len() / spec.dim];
        let time = [0.0, spec.process.horizon()][end];
        truth.energy(&[time], rows, &mut energies);
        Some(energies)
    });
    let [start, end] = [ends.first(), ends.get(1)];
    let rows = SpringRows {
        start: start.ok_or(Error::Nothing)?,
        end: end.map(Vec::as_slice),
        paired: coupling.is_some(),
        scores: [scores[0].as_deref(), scores[1].as_deref()],
        energies: [energies[0].as_deref(), energies[1].as_deref()],
        subspace: spec.subspace(),
        dim: spec.dim,
        particles,
        mean: &spec.mean,
        variance: spec.variance,
        chiral: chiral(&spec.network),
    };
    let columns = rows.subspace.map_or(spec.dim, |of| of.columns());
    let (types, bonds) = (types(settings), bonds(settings)?);
    let terms = Terms::between(particles, &types, &bonds, columns / particles, MOST_SOFT)?;
    let (process, levels) = (&spec.process, spec.grid.times());
    Ok(Springs::fit(
        process,
        levels,
        terms,
        rows,
        outline.seed,
        pool,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_are_written_and_read() {
        let bonds = [[0, 1], [4, 2]];
        assert_eq!(written(&bonds), "0-1,4-2");
        assert_eq!(parse(" 0 - 1, 4-2,").unwrap(), bonds);
        for wrong in ["0", "0-x", "0,1"] {
            assert!(parse(wrong).unwrap_err().to_string().contains("0-1,1-2"));
        }
    }

    #[test]
    fn springs_need_particles_with_bonds() {
        let asked = |text: &str| {
            let settings: Settings = toml::from_str(text).unwrap();
            check(&settings, true).map_err(|refused| refused.to_string())
        };
        assert!(asked("").unwrap_err().contains("topology"));
        assert!(asked("particles = 3").unwrap_err().contains("bonds"));
        assert!(asked("bonds = '0-1'").unwrap_err().contains("particles"));
        asked("particles = 3\nbonds = '0-1'").unwrap();
        asked("particles = 3\nnetwork = { kind = 'egnn', bonds = [[0, 1]] }").unwrap();
    }
}
