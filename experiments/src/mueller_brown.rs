//! The Mueller-Brown surface learned from samples: independent samples and long Langevin dynamics on the learned energy, beside the exact
//! density.

use crate::Bench;
use crate::dynamics::{Budget, Scene, Subject};
use crate::side_by_side::View;
use diffclf::metric::Estimate;
use diffclf::rng::Purpose;
use diffclf::system::{Basins, MuellerBrown, System};
use diffclf_run::error::Result;
use diffclf_run::simulate::{Scheme, Simulation, Units};

/// The surface.
pub struct Surface;

/// Name of the system.
const SYSTEM: &str = "mueller-brown";
/// Time step, friction and mass of the literature, at kT 23.
const STEP: f64 = 0.005;
const FRICTION: f64 = 1.0;
const MASS: f64 = 0.5;
/// Points farther out than this are lost, as in the literature.
const FARTHEST: f64 = 20.0;
/// Where chains start: the deepest well.
const START: [f64; 2] = [-0.558_280_35, 1.441_69];
/// Points of each of the four legs of the path.
const LEG: usize = 25;

impl Subject for Surface {
    const REFERENCE: &'static str = "exact";
    const VIEW: View = View {
        js_bins: 100,
        js_limits: None,
        pmf_bins: 64,
        window: [-1.8, 1.1, -0.5, 2.0],
        labels: ["x", "y"],
    };
    const PATH: &'static str = "length along the wells and passes";

    fn scene(_bench: &Bench, budget: &Budget, seed: u64) -> Result<Scene> {
        let system = System::by_name(SYSTEM, 2, 0)?;
        let exact = |half: u32| -> Vec<f64> {
            let rows = system.sample_for(Purpose::Reference(half), budget.samples, seed);
            rows.into_iter().map(f64::from).collect()
        };
        let surface = MuellerBrown::shared();
        let basins = Basins::of(&surface);
        let [upper, middle, lower] = *basins.wells();
        let [(first, _), (second, _)] = *basins.passes();
        let stations = [upper.minimum, first, middle.minimum, second, lower.minimum];
        Ok(Scene {
            dim: 2,
            data: None,
            reference: exact(0),
            again: Some(exact(1)),
            start: START.repeat(budget.chains),
            simulation: Simulation {
                scheme: Scheme::LangevinLeapfrog,
                units: Units::Reduced,
                step: STEP,
                friction: FRICTION,
                temperature: surface.temperature(),
                masses: vec![MASS],
                frames: 0,
                thin: 0,
                time: None,
                bonds: Vec::new(),
                particles: false,
                seed,
            },
            exact: Some(SYSTEM.into()),
            plane: Box::new(|point| [point[0], point[1]]),
            states: [upper, middle, lower]
                .map(|well| {
                    let weight = Estimate {
                        mean: well.weight,
                        error: 0.0,
                    };
                    (well.name.replace(' ', "_"), weight)
                })
                .to_vec(),
            state: Box::new(move |point| basins.place(point)),
            farthest: FARTHEST,
            path: path(&stations),
            barrier: Some([upper.minimum.to_vec(), first.to_vec()]),
        })
    }
}

/// Points on straight lines from station to station, each with the length behind it.
fn path(stations: &[[f64; 2]]) -> Vec<(f64, Vec<f64>)> {
    let mut found = Vec::new();
    let mut behind = 0.0;
    for pair in stations.windows(2) {
        let [dx, dy] = [pair[1][0] - pair[0][0], pair[1][1] - pair[0][1]];
        let length = dx.hypot(dy);
        found.extend((0..LEG).map(|k| {
            let share = k as f64 / LEG as f64;
            let point = vec![pair[0][0] + share * dx, pair[0][1] + share * dy];
            (behind + share * length, point)
        }));
        behind += length;
    }
    found.extend(stations.last().map(|end| (behind, end.to_vec())));
    found
}
