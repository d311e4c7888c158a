//! Dynamics with replica exchange into a folder: frames, energies, a record; stopped and continued to the same bytes.

use super::analysis::{Findings, Series};
use super::folder::{Checkpoint, Folder, Layout};
use super::{Molecule, name};
use crate::company;
use crate::error::{Error, Result};
use crate::memory;
use crate::watch::Watch;
use crate::words;
use crate::words::Setting;
use diffclf::engine::{Isa, Pool};
use diffclf::molecule::{ReplicaSettings, Replicas, SwapCount, ThermoState, Topology};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Sampling {
    /// Temperatures, solvents, ladders, steps, seed.
    pub replicas: ReplicaSettings,
    /// Frames of each solvent at the lowest temperature, all ladders together.
    pub frames: usize,
    /// Sweeps from one frame to the next.
    pub every: u64,
    /// Sweeps before the first.
    pub warm_up: u64,
    /// Time between checkpoints.
    pub checkpoint_every: Duration,
    /// Goes on with the run in the folder.
    pub resume: bool,
    /// Replaces what is there.
    pub force: bool,
}

/// What came out.
#[derive(Debug, Clone, Serialize)]
pub struct Sampled {
    /// The states of a ladder.
    pub states: Vec<ThermoState>,
    /// How it was run.
    pub settings: ReplicaSettings,
    /// Digest of the topology.
    pub topology: String,
    /// Frames of each solvent.
    pub frames: usize,
    /// ps between frames.
    pub interval: f64,
    /// ps before the first.
    pub warm_up: f64,
    /// ns of dynamics over all copies, warm-up included.
    pub nanoseconds: f64,
    /// Seconds it took, over all parts of an interrupted run.
    pub seconds: f64,
    /// Swaps between neighbouring states.
    pub swaps: Vec<SwapCount>,
    /// Journeys from the hottest to the coldest temperature and back.
    pub temperature_round_trips: usize,
    /// Journeys between the last and the first solvent and back.
    pub solvent_round_trips: usize,
    /// Weights of basins and free energies; none where states have too little in common for MBAR.
    pub findings: Option<Findings>,
    /// Why there are none.
    pub problem: Option<String>,
}

impl Sampling {
    /// Runs it from `starts` (nm, row after row, taken in turn) into `path`.
    pub fn run(
        &self,
        molecule: &Molecule,
        starts: &[f64],
        path: &Path,
        pool: &Pool,
        isa: Isa,
        watch: &dyn Watch,
    ) -> Result<Sampled> {
        let Molecule {
            topology,
            field,
            digest,
        } = molecule;
        let settings = &self.replicas;
        let (dim, ladders, states) = (3 * topology.atoms(), settings.ladders, settings.states());
        if self.frames == 0 || self.every == 0 {
            return Err(Error::Setting {
                name: "frames",
                found: format!("{} frames, {} sweeps apart", self.frames, self.every),
                expected: "at least 1 each".into(),
            });
        }
        memory::refuse_rows("frames", self.frames, dim, 4)?;
        memory::refuse_rows("frames", self.frames, states.len(), 40)?;
        // A frame is a row of every ladder.
        let frames = self.frames.div_ceil(ladders.max(1));
        let sweeps = (frames as u64)
            .checked_mul(self.every)
            .and_then(|sweeps| sweeps.checked_add(self.warm_up));
        let steps = sweeps.and_then(|sweeps| sweeps.checked_mul(settings.moves));
        let (Some(sweeps), Some(_)) = (sweeps, steps) else {
            return Err(Error::Setting {
                name: "frames",
                found: self.frames.to_string(),
                expected: "a run of fewer than 2^64 steps".into(),
            });
        };
        let names: Vec<String> = settings
            .solvents
            .iter()
            .map(|solvent| name(*solvent))
            .collect();
        if (1..names.len()).any(|k| names[..k].contains(&names[k])) {
            return Err(Error::Setting {
                name: "lambda",
                found: names.join(", "),
                expected: "every solvent once".into(),
            });
        }
        // What cannot be run is refused before the folder is touched.
        let mut run = Replicas::new(field, topology, settings.clone(), starts, isa)?;
        let layout = Layout {
            names: &names,
            dim,
            ladders,
            states: states.len(),
        };
        let (mut folder, saved) = Folder::take(path, &layout, self.resume, self.force)?;
        let (mut done, mut before) = (0, 0.0);
        if let Some(saved) = saved {
            let same = saved.settings == *settings
                && saved.topology == *digest
                && saved.warm_up == self.warm_up
                && saved.every == self.every;
            if !same || saved.frames > frames {
                return Err(Error::Refused(words!(
                    "the run in ",
                    path.display(),
                    " has other settings, another topology or more frames; give its own to ",
                    Setting::new("resume"),
                    " it, or choose another folder"
                )));
            }
            run = Replicas::resume(field, topology, settings.clone(), &saved.state, isa)?;
            (done, before) = (saved.frames, saved.seconds);
        }
        let begin = Instant::now();
        let mut last = begin;
        let mut bar = watch.begin("dynamics", sweeps, run.sweeps());
        while done < frames {
            run.advance(pool, run.sweeps() >= self.warm_up)?;
            let counted = run.sweeps().saturating_sub(self.warm_up);
            if counted > 0 && counted.is_multiple_of(self.every) {
                record(&mut run, topology, &mut folder, ladders)?;
                done += 1;
            }
            let [heated, dried] = run.round_trips();
            bar.set(run.sweeps(), &|| {
                format!("{:.0} ps, {heated} and {dried} round trips", run.time())
            });
            let stopped = watch.stopped();
            if stopped || company::elapsed(last) >= self.checkpoint_every {
                last = Instant::now();
                folder.save(&Checkpoint {
                    settings: settings.clone(),
                    warm_up: self.warm_up,
                    every: self.every,
                    topology: digest.clone(),
                    frames: done,
                    seconds: before + begin.elapsed().as_secs_f64(),
                    state: run.state(),
                })?;
            }
            if stopped && done < frames {
                bar.finish("stopped");
                return Err(Error::Interrupted(format!(
                    "{done} of {frames} frames are saved in {}; the same command goes on from there when told to resume",
                    path.display()
                )));
            }
        }
        let series = Series {
            states: &states,
            ladders,
            energies: &folder.energies.numbers(frames)?,
            angles: &folder.angles.numbers(frames)?,
            temperatures: settings.temperatures.len(),
            solvated: field.solvates(),
        };
        // What cannot be analysed is kept all the same.
        let (findings, problem) = match Findings::of(&series, topology.backbone().is_some()) {
            Ok(findings) => (Some(findings), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let [temperature_round_trips, solvent_round_trips] = run.round_trips();
        let found = Sampled {
            settings: settings.clone(),
            topology: digest.clone(),
            frames: frames * ladders,
            interval: (self.every * settings.moves) as f64 * settings.step,
            warm_up: (self.warm_up * settings.moves) as f64 * settings.step,
            nanoseconds: run.time() * 1e-3 * settings.replicas() as f64,
            seconds: before + begin.elapsed().as_secs_f64(),
            swaps: run.swaps().to_vec(),
            temperature_round_trips,
            solvent_round_trips,
            findings,
            problem,
            states: states.clone(),
        };
        let document =
            serde_json::to_value(&found).map_err(|error| Error::Failed(error.to_string()))?;
        folder.finish(&layout, frames, &document)?;
        bar.finish(&format!(
            "{} frames of each solvent in {}",
            found.frames,
            path.display()
        ));
        Ok(found)
    }
}

/// One frame: centred coordinates of the coldest copies in single precision, energies and angles of all.
fn record(
    run: &mut Replicas<'_>,
    topology: &Topology,
    folder: &mut Folder,
    ladders: usize,
) -> Result<()> {
    let temperatures = run.settings().temperatures.len();
    let states = run.states().len();
    let backbone = topology.backbone();
    let atoms = topology.atoms();
    let mut x = vec![0.0; 3 * atoms];
    for ladder in 0..ladders {
        for state in 0..states {
            let terms = run.terms(ladder, state);
            folder
                .energies
                .push([terms.vacuum(), terms.polar, terms.surface].into_iter())?;
            run.positions(ladder, state, &mut x);
            let angles = backbone.map_or([f64::NAN; 2], |(phi, psi)| {
                [phi, psi].map(|atoms| Topology::dihedral(&x, atoms))
            });
            folder.angles.push(angles.into_iter())?;
            if state % temperatures == 0 {
                let mean: [f64; 3] = std::array::from_fn(|axis| {
                    x.iter().skip(axis).step_by(3).sum::<f64>() / atoms as f64
                });
                let part = &mut folder.frames[state / temperatures].1;
                part.push_f32(x.iter().enumerate().map(|(k, x)| (x - mean[k % 3]) as f32))?;
            }
        }
    }
    Ok(())
}
