//! Chignolin, ten C-alpha beads, from frames to the plane of its slow coordinates: of a Go model's own trajectory, or of frames that are given.

use crate::Bench;
use crate::dynamics::{Budget, Scene, Subject, spread, states_of};
use crate::side_by_side::{View, after};
use diffclf::energy::compose::Expression;
use diffclf::format::npy::{NpyView, write_npy};
use diffclf::metric::Estimate;
use diffclf::observable::{Observable, Tica};
use diffclf::particles::centre;
use diffclf_run::beads::BeadFile;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{MappedNpy, write_atomic};
use diffclf_run::simulate::{GO, Landscape, Scheme, Simulation, Units};
use std::path::{Path, PathBuf};

/// The native structure, the Go model and the slow coordinates, see `chignolin/DATA.md`.
const NATIVE: &str = include_str!("../chignolin/native.pdb");
const MODEL: &str = include_str!("../chignolin/go.toml");
const MEAN: &[u8] = include_bytes!("../chignolin/tica-mean.npy");
const COEFFICIENTS: &[u8] = include_bytes!("../chignolin/tica-coefficients.npy");

/// Beads and numbers of a frame.
const BEADS: usize = 10;
const DIM: usize = 3 * BEADS;
/// Beads farther out than this, in nm, are lost.
const FARTHEST: f64 = 100.0;
/// Border between folded and unfolded along the first slow coordinate.
const BORDER: f64 = 0.2;
/// Frames of the path.
const PATH: usize = 80;
/// The Go model's own trajectory: chains, their frames, those left out at the beginning, and steps of 5 fs from frame to frame.
const CHAINS: usize = 20;
const FRAMES: usize = 1100;
const LEFT_OUT: usize = 100;
const THIN: usize = 1000;
const STEP: f64 = 5.0;

/// The peptide.
pub struct Chignolin;

impl Subject for Chignolin {
    const REFERENCE: &'static str = "data";
    const VIEW: View = View {
        js_bins: 100,
        js_limits: Some([-0.9, 2.81, -1.41, 0.56]),
        pmf_bins: 100,
        window: [-0.9, 2.81, -1.41, 0.56],
        labels: ["TIC 1", "TIC 2"],
    };
    const PATH: &'static str = "frame of the reference";
    const TAKES_FRAMES: bool = true;

    fn scene(bench: &Bench, budget: &Budget, seed: u64) -> Result<Scene> {
        let model = written(bench)?;
        let beads = BeadFile::read(&model)?.beads;
        let simulation = Simulation {
            scheme: Scheme::LangevinLeapfrog,
            units: Units::Nm,
            step: 2.0,
            friction: 1.0,
            temperature: 340.0,
            masses: beads.masses.clone(),
            frames: 0,
            thin: 0,
            time: None,
            bonds: beads.bonds.clone(),
            particles: true,
            seed,
        };
        let (path, exact) = match &bench.data {
            Some(path) => (path.clone(), None),
            None => {
                let system = format!("{GO}{}", model.display());
                let path = bench.folder.join("frames.npy");
                if !path.is_file() {
                    trajectory(&simulation, &system, &beads.structure, bench, &path)?;
                }
                (path, Some(system))
            }
        };
        let data = frames(&path)?;
        let tica = tica()?;
        let features = Observable::of_chain(BEADS);
        let plane = move |frame: &[f64]| {
            let values: Vec<f64> = features.iter().map(|feature| feature.of(frame)).collect();
            let mut out = [0.0; 2];
            tica.project(&values, &mut out);
            out
        };
        let points: Vec<f64> = data.chunks_exact(DIM).flat_map(&plane).collect();
        let chains = if exact.is_some() { CHAINS } else { 1 };
        let states = states_of(&points, chains, 2, unfolded)?;
        let weight = |k: usize| Estimate {
            mean: states.weights[k],
            error: states.errors[k],
        };
        // Around the first time that the trajectory goes over.
        let sides: Vec<usize> = points
            .chunks_exact(2)
            .map(|p| unfolded([p[0], p[1]]))
            .collect();
        let over = sides.windows(2).position(|pair| pair[0] != pair[1]);
        let first = over.unwrap_or(0).saturating_sub(PATH / 2);
        let along = data.chunks_exact(DIM).skip(first).take(PATH).enumerate();
        Ok(Scene {
            dim: DIM,
            data: Some(path),
            again: None,
            start: spread(&data, DIM, budget.chains),
            simulation,
            exact,
            plane: Box::new(plane),
            states: vec![("folded".into(), weight(0)), ("unfolded".into(), weight(1))],
            state: Box::new(unfolded),
            farthest: FARTHEST,
            path: along
                .map(|(k, frame)| ((first + k) as f64, frame.to_vec()))
                .collect(),
            barrier: None,
            reference: data,
        })
    }
}

/// 1 beyond the border.
fn unfolded([slow, _]: [f64; 2]) -> usize {
    usize::from(slow >= BORDER)
}

/// Puts native structure and Go model into the folder of the results; the path of the model.
fn written(bench: &Bench) -> Result<PathBuf> {
    let model = bench.folder.join("go.toml");
    for (name, text) in [("native.pdb", NATIVE), ("go.toml", MODEL)] {
        write_atomic(&bench.folder.join(name), |writer| {
            Ok(writer.write_all(text.as_bytes())?)
        })?;
    }
    Ok(model)
}

/// Slow coordinates of all distances and consecutive dihedrals.
fn tica() -> Result<Tica> {
    let numbers = |bytes| -> Result<Vec<f64>> { Ok(NpyView::parse(bytes)?.to_vec_f64()) };
    Ok(Tica::given(numbers(MEAN)?, numbers(COEFFICIENTS)?)?)
}

/// Frames of a file in nm, each about its centre.
fn frames(path: &Path) -> Result<Vec<f64>> {
    let mapped = MappedNpy::open(path)?;
    let view = mapped.view()?;
    if view.dim() != DIM {
        return Err(Error::Usage(format!(
            "{}: frames of {} numbers, expected {DIM}: ten C-alpha beads in nm",
            path.display(),
            view.dim()
        )));
    }
    let mut rows = view.to_vec_f64();
    for frame in rows.chunks_exact_mut(DIM) {
        centre(frame, 3);
    }
    Ok(rows)
}

/// The Go model's own trajectory, from its native structure.
fn trajectory(
    simulation: &Simulation,
    system: &str,
    native: &[f64],
    bench: &Bench,
    path: &Path,
) -> Result<()> {
    let asked = Simulation {
        scheme: Scheme::Baoab,
        step: STEP,
        frames: FRAMES,
        thin: THIN,
        seed: 0,
        ..simulation.clone()
    };
    let expression = Expression::parse("A")?;
    let landscape = Landscape {
        expression: &expression,
        models: &[],
        systems: &[("A", system)],
        system_seed: 0,
    };
    let machine = (bench.pool.threads(), bench.isa);
    let start = native.repeat(CHAINS);
    let done = asked.run(&landscape, &start, &start, machine, None, &*bench.watch)?;
    let found = done.finish(&format!(
        "{CHAINS} chains of {FRAMES} frames of the Go model"
    ));
    let rows = after(&found.points, CHAINS, DIM, LEFT_OUT);
    let rows: Vec<f32> = rows.iter().map(|x| *x as f32).collect();
    write_atomic(path, |writer| {
        write_npy(&[rows.len() / DIM, BEADS, 3], &rows, writer)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crystal structure lies among the folded frames of the reference trajectory: (-0.368, -0.053), by an independent computation.
    #[test]
    fn the_native_structure_is_folded() {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in [("native.pdb", NATIVE), ("go.toml", MODEL)] {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let file = BeadFile::read(&place.path().join("go.toml")).unwrap();
        assert_eq!(file.go_model().unwrap().beads(), BEADS);
        assert_eq!(file.beads.masses, [12.0108; BEADS]);
        let features = Observable::of_chain(BEADS);
        let values: Vec<f64> = features
            .iter()
            .map(|f| f.of(&file.beads.structure))
            .collect();
        let mut point = [0.0; 2];
        tica().unwrap().project(&values, &mut point);
        assert!(
            (point[0] + 0.368).abs() < 1e-3 && (point[1] + 0.053).abs() < 1e-3,
            "{point:?}"
        );
        assert_eq!(unfolded(point), 0);
    }

    #[test]
    fn frames_of_other_beads_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.npy");
        let mut bytes = Vec::new();
        write_npy(&[4, 9, 3], &[0.5_f32; 108], &mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let error = frames(&path).unwrap_err().to_string();
        assert!(
            error.contains("27 numbers") && error.contains("ten"),
            "{error}"
        );
    }
}
