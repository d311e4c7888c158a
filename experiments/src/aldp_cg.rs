//! Coarse-grained alanine dipeptide learned from real frames: the plane of phi and psi of independent samples and of long Langevin
//! dynamics on the learned energy, beside the data.

use crate::Bench;
use crate::dynamics::{Budget, Scene, Subject, spread, states_of};
use crate::side_by_side::View;
use diffclf::format::npy::{NpyView, write_npy};
use diffclf::metric::Estimate;
use diffclf::observable::Observable;
use diffclf::particles::centre;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::write_atomic;
use diffclf_run::simulate::{Scheme, Simulation, Units};
use std::f64::consts::PI;

/// The frames, see `aldp-cg/DATA.md`.
const FRAMES: &[u8] = include_bytes!("../aldp-cg/frames.npy");
/// Beads and numbers of a frame.
const BEADS: usize = 5;
const DIM: usize = 3 * BEADS;
/// Masses of the beads: C, N, C, C, N.
const MASSES: [f64; BEADS] = [12.0108, 14.0067, 12.0108, 12.0108, 14.0067];
/// Beads farther out than this, in nm, are lost.
const FARTHEST: f64 = 100.0;
/// Points of the path.
const TURNS: usize = 72;

/// The molecule.
pub struct AlanineDipeptide;

impl Subject for AlanineDipeptide {
    const REFERENCE: &'static str = "data";
    const VIEW: View = View {
        js_bins: 64,
        js_limits: None,
        pmf_bins: 64,
        window: [-PI, PI, -PI, PI],
        labels: ["phi", "psi"],
    };
    const PATH: &'static str = "phi, turned with all else at rest";

    fn scene(bench: &Bench, budget: &Budget, seed: u64) -> Result<Scene> {
        let data = frames()?;
        let path = bench.folder.join("frames-nm.npy");
        let rows: Vec<f32> = data.iter().map(|x| *x as f32).collect();
        write_atomic(&path, |writer| {
            write_npy(&[rows.len() / DIM, BEADS, 3], &rows, writer)
        })?;
        let states = states_of(&angles(&data), 1, 2, half)?;
        let weight = |k: usize| Estimate {
            mean: states.weights[k],
            error: states.errors[k],
        };
        Ok(Scene {
            dim: DIM,
            data: Some(path),
            start: spread(&data, DIM, budget.chains),
            simulation: Simulation {
                scheme: Scheme::LangevinLeapfrog,
                units: Units::Nm,
                step: 2.0,
                friction: 1.0,
                temperature: 300.0,
                masses: MASSES.to_vec(),
                frames: 0,
                thin: 0,
                time: None,
                bonds: vec![[0, 1], [1, 2], [2, 3], [3, 4]],
                particles: true,
                seed,
            },
            exact: None,
            again: None,
            plane: Box::new(|frame| [PHI.of(frame), PSI.of(frame)]),
            states: vec![("left".into(), weight(0)), ("right".into(), weight(1))],
            state: Box::new(half),
            farthest: FARTHEST,
            path: turned(&data[..DIM]),
            barrier: None,
            reference: data,
        })
    }
}

const PHI: Observable = Observable::Dihedral([0, 1, 2, 3]);
const PSI: Observable = Observable::Dihedral([1, 2, 3, 4]);

/// 1 where phi > 0.
fn half([phi, _]: [f64; 2]) -> usize {
    usize::from(phi > 0.0)
}

/// The frames in nm, each about its centre.
fn frames() -> Result<Vec<f64>> {
    let view = NpyView::parse(FRAMES)?;
    let mut rows = view.to_vec_f64();
    if view.dim() != DIM {
        return Err(Error::Failed(format!(
            "frames of {} numbers, expected {DIM}",
            view.dim()
        )));
    }
    for frame in rows.chunks_exact_mut(DIM) {
        centre(frame, 3);
        frame.iter_mut().for_each(|x| *x *= 0.1);
    }
    Ok(rows)
}

/// phi and psi of frames.
fn angles(frames: &[f64]) -> Vec<f64> {
    let frames = frames.chunks_exact(DIM);
    frames.flat_map(|f| [PHI.of(f), PSI.of(f)]).collect()
}

/// A frame with its first bead turned about the axis of the next two, all the way round: phi alone changes.
fn turned(frame: &[f64]) -> Vec<(f64, Vec<f64>)> {
    let bead = |k: usize| [0, 1, 2].map(|c| frame[3 * k + c]);
    let (first, origin, end) = (bead(0), bead(1), bead(2));
    let axis = [0, 1, 2].map(|c| end[c] - origin[c]);
    let length = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
    let axis = axis.map(|x| x / length);
    let arm = [0, 1, 2].map(|c| first[c] - origin[c]);
    let along: f64 = (0..3).map(|c| arm[c] * axis[c]).sum();
    let across = [0, 1, 2].map(|c| arm[c] - along * axis[c]);
    let beside = [
        axis[1] * across[2] - axis[2] * across[1],
        axis[2] * across[0] - axis[0] * across[2],
        axis[0] * across[1] - axis[1] * across[0],
    ];
    let mut found: Vec<(f64, Vec<f64>)> = (0..TURNS)
        .map(|k| {
            let (sine, cosine) = (2.0 * PI * k as f64 / TURNS as f64).sin_cos();
            let mut row = frame.to_vec();
            for c in 0..3 {
                row[c] = origin[c] + along * axis[c] + cosine * across[c] + sine * beside[c];
            }
            (PHI.of(&row), row)
        })
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts of the set, by cgnet's and mdtraj's definitions.
    #[test]
    fn the_frames_are_what_they_should_be() {
        let frames = frames().unwrap();
        assert_eq!(frames.len(), 10_000 * DIM);
        for (bond, length) in [
            ([0, 1], 0.1329),
            ([1, 2], 0.1465),
            ([2, 3], 0.1544),
            ([3, 4], 0.1335),
        ] {
            let values = Observable::Distance(bond).of_all(&frames, DIM).unwrap();
            let mean = values.iter().sum::<f64>() / 10_000.0;
            assert!((mean - length).abs() < 1e-4, "{bond:?}: {mean}");
        }
        let variance = frames.iter().map(|x| x * x).sum::<f64>() / frames.len() as f64;
        assert!(
            (variance.sqrt() - 0.09465).abs() < 1e-4,
            "{}",
            variance.sqrt()
        );
        let states = states_of(&angles(&frames), 1, 2, half).unwrap();
        let crossings = states.transitions[1] + states.transitions[2];
        assert!(
            (states.weights[1] - 0.0239).abs() < 1e-6 && crossings == 6,
            "{states:?}"
        );
    }

    /// Turning changes phi alone: no bond, no other angle.
    #[test]
    fn a_path_turns_phi_alone() {
        let frames = frames().unwrap();
        let path = turned(&frames[..DIM]);
        assert_eq!(path.len(), TURNS);
        let others = [
            Observable::Distance([0, 1]),
            Observable::Angle([0, 1, 2]),
            PSI,
        ];
        for (phi, row) in &path {
            assert_eq!(PHI.of(row), *phi);
            for other in others {
                assert!((other.of(row) - other.of(&frames[..DIM])).abs() < 1e-12);
            }
        }
        let step = 2.0 * PI / TURNS as f64;
        assert!(
            path.windows(2)
                .all(|p| (p[1].0 - p[0].0 - step).abs() < 1e-9)
        );
    }
}
