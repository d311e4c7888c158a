//! From settings and data to a model, in a run folder that can be left and taken up again at any moment.

use crate::archive;
use crate::beads;
use crate::data::DataSet;
use crate::endpoints::{open, rows};
use crate::error::{Error, Result};
use crate::files::{model_path, read_model};
use crate::kinds::told;
use crate::machine::Machine;
use crate::origin::Origin;
use crate::particles::viewed;
use crate::prepare::Preparation;
use crate::resolve::lowered_batch;
use crate::run_folder::{CONFIG, RunFolder};
use crate::session::{PointRows, Session};
use crate::settings::Settings;
use crate::states;
use crate::watch::Watch;
use crate::weights::weighted;
use crate::words;
use diffclf::engine::{Isa, Pool};
use diffclf::train::State;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run and the folder it belongs to.
pub struct Job {
    /// What to train.
    pub settings: Settings,
    /// Run folder.
    pub path: PathBuf,
    /// Start a new run from this state instead of fresh parameters: the end of a first stage that several runs share.
    pub first_stage: Option<State>,
    /// Start a new run from the parameters of this model, on its coordinates and its base.
    pub from: Option<PathBuf>,
    /// Fit the number of steps into this time.
    pub time: Option<Duration>,
    /// Continue a run that is there.
    pub resume: bool,
    /// Delete a run that is there.
    pub force: bool,
    /// Time between two checkpoints.
    pub checkpoint_every: Duration,
    /// Who follows it.
    pub watch: Arc<dyn Watch>,
    /// Threads.
    pub pool: Arc<Pool>,
}

/// Trains on the data that the settings name, to the end or as far as it gets.
pub fn train(job: Job) -> Result<()> {
    run(job, None)
}

/// Trains on these data, one set or the two endpoints of an interpolant. The settings name none: they give a run in which the data are
/// not written down.
pub fn train_on(job: Job, sets: Vec<DataSet>) -> Result<()> {
    run(job, Some(sets))
}

fn run(mut job: Job, sets: Option<Vec<DataSet>>) -> Result<()> {
    if let Some(text) = beads::fill(&mut job.settings)? {
        job.watch.note(&text);
    }
    if states::are_meant(&job, sets.as_deref())? {
        return states::train(job, sets);
    }
    let Begun {
        folder,
        preparation,
        origins,
    } = if job.resume && RunFolder::has_run(&job.path) {
        continued(&job, sets)?
    } else {
        begun(&job, sets)?
    };
    for notice in &preparation.notices {
        job.watch.notice(notice);
    }
    let isa = isa_of(&preparation.settings)?;
    let trainer = preparation.trainer(job.pool.clone(), isa)?;
    let held_out = preparation.held_out_rows.clone();
    let levels = preparation.levels()?;
    let (log, seconds) = folder.log(trainer.state().step)?;
    Session {
        folder,
        content: preparation.content,
        log,
        log_every: preparation.log_every,
        seconds,
        checkpoint_every: job.checkpoint_every,
        watch: job.watch,
        origins,
        rows: PointRows { held_out, levels },
        pool: job.pool,
        isa,
    }
    .train(trainer)
}

/// What is there before the first step.
struct Begun {
    folder: RunFolder,
    preparation: Preparation,
    origins: Vec<Origin>,
}

pub(crate) fn origins(sets: &[DataSet]) -> Vec<Origin> {
    sets.iter().filter_map(DataSet::origin).collect()
}

/// Digests of given data, and the names to find them by.
pub(crate) fn digests(sets: &[DataSet], settings: &Settings) -> Vec<(String, String)> {
    let paths = [&settings.data, &settings.end];
    let named = |(set, path): (&DataSet, &Option<PathBuf>)| {
        let name = match path {
            Some(path) => path.display().to_string(),
            None => set.record().name.clone(),
        };
        Some((set.record().sha256.clone()?, name.replace('\n', " ")))
    };
    let mut all: Vec<(String, String)> = sets.iter().zip(paths).filter_map(named).collect();
    let weights = [&settings.weights, &settings.end_weights];
    for (set, path) in sets.iter().zip(weights) {
        let name = match path {
            Some(path) => path.display().to_string(),
            None => format!("weights of {}", set.record().name),
        };
        let digest = set.record().weights.clone();
        all.extend(digest.map(|digest| (digest, name.replace('\n', " "))));
    }
    all
}

/// A new run in its folder, which is made only once nothing is left to refuse.
fn begun(job: &Job, sets: Option<Vec<DataSet>>) -> Result<Begun> {
    let began = Instant::now();
    let mut settings = job.settings.clone();
    if let Some(from) = &job.from {
        settings = inherited(&settings, from)?;
    }
    if !job.resume {
        RunFolder::refuse_existing(&job.path, job.force)?;
    } else if sets.is_none() && settings.data.is_none() && settings.system.is_none() {
        return Err(Error::NoRun {
            folder: job.path.clone(),
        });
    }
    let sets = match sets {
        Some(sets) => sets,
        None => open(&settings, &*job.watch)?,
    };
    if let Some(first) = sets.first() {
        beads::settle(&mut settings, first.dim()?)?;
    }
    let settings = &settings;
    let sets = weighted(settings, sets)?;
    let sets = viewed(settings, dequantised(settings, sets)?)?;
    let isa = isa_of(settings)?;
    let mut preparation = match &job.from {
        Some(from) => {
            let machine = (job.pool.clone(), isa);
            Preparation::warm(settings, &sets, &read_model(from)?, machine, from)?
        }
        None => {
            let mut fresh = Preparation::fresh(settings, &sets, &job.pool, isa, &*job.watch)?;
            fresh.state = job.first_stage.clone();
            fresh
        }
    };
    if let Some(time) = job.time {
        let text = preparation.fit_into(time, began, &job.pool, isa)?;
        job.watch.note(&text);
    }
    let settings = absolute(preparation.settings.clone())?;
    let folder = RunFolder::create(&job.path, &settings, &digests(&sets, &settings), job.force)?;
    Ok(Begun {
        folder,
        preparation,
        origins: origins(&sets),
    })
}

/// The settings of the run that a model came from, as far as its folder tells, with those that are given in their place.
pub(crate) fn inherited(given: &Settings, from: &Path) -> Result<Settings> {
    let config = model_path(from).with_file_name(CONFIG);
    if !config.is_file() {
        return Ok(given.clone());
    }
    let mut saved = Settings::read(&config)?;
    // A budget of its own: the steps of the first run are no wish for the second.
    (saved.steps, saved.score_steps, saved.held_out_every) = (None, Some(0), None);
    saved.more_steps = None;
    if given.data.is_none() && given.system.is_none() {
        return saved.overridden_by(given);
    }
    // Rows of their own have a share of their own.
    (saved.held_out, saved.batch) = (None, None);
    saved.overridden_by(given)
}

/// What a run that goes on is about.
pub(crate) struct TakenUp<R> {
    pub folder: RunFolder,
    pub settings: Settings,
    pub rows: R,
}

/// Takes up a run that is there, with the rows that `open` finds by its settings. `about` tells how many rows there are, and the digests and names of given ones.
pub(crate) fn taken_up<R>(
    job: &Job,
    open: impl FnOnce(&Settings) -> Result<R>,
    about: impl FnOnce(&R, &Settings) -> (Option<usize>, Vec<(String, String)>, String),
) -> Result<TakenUp<R>> {
    let mut wanted = job.settings.clone();
    // What it says is among the settings.
    wanted.topology = None;
    let folder = RunFolder::take(&job.path)?;
    let mut saved = folder.settings()?;
    // Data may have moved since; their content is compared with the checkpoint's.
    saved.data = wanted.data.clone().or(saved.data);
    saved.end = wanted.end.clone().or(saved.end);
    saved.weights = wanted.weights.clone().or(saved.weights);
    saved.end_weights = wanted.end_weights.clone().or(saved.end_weights);
    let rows = open(&saved)?;
    let (count, now, first) = about(&rows, &saved);
    // A batch that was lowered is asked for again in vain, and is no other setting.
    wanted.held_out = wanted.held_out.or(saved.held_out);
    let lowered = |batch| lowered_batch(batch, count, wanted.held_out);
    wanted.batch = wanted.batch.map(lowered);
    let longer = extend(&mut saved, &mut wanted);
    saved.refuse_conflicts(&wanted, &job.path)?;
    // Before the first checkpoint only the folder knows the data.
    let began_with = folder.data()?;
    let other = (0..now.len().max(began_with.len()))
        .find(|k| now.get(*k).map(|(digest, _)| digest) != began_with.get(*k));
    if let Some(k) = other.filter(|_| !began_with.is_empty()) {
        let name = now.get(k).map(|(_, name)| name.clone());
        return Err(Error::OtherData {
            name: name.unwrap_or(first),
            folder: job.path.clone(),
        });
    }
    if let Some(text) = longer {
        job.watch.note(&text);
        folder.write_settings(&absolute(saved.clone())?)?;
    }
    Ok(TakenUp {
        folder,
        settings: saved,
        rows,
    })
}

/// A run that is there, from its last checkpoint.
fn continued(job: &Job, sets: Option<Vec<DataSet>>) -> Result<Begun> {
    let taken = taken_up(
        job,
        |saved| {
            let sets = match sets {
                Some(sets) => sets,
                None => open(saved, &*job.watch)?,
            };
            let sets = weighted(saved, sets)?;
            viewed(saved, dequantised(saved, sets)?)
        },
        |sets, saved| {
            let name = sets[0].record().name.clone();
            (rows(sets), digests(sets, saved), name)
        },
    )?;
    let TakenUp {
        folder,
        settings: saved,
        rows: sets,
    } = taken;
    let preparation = match folder.checkpoint()? {
        Some(checkpoint) => Preparation::resumed(&saved, &sets, checkpoint, &job.path)?,
        None => Preparation::fresh(&saved, &sets, &job.pool, isa_of(&saved)?, &*job.watch)?,
    };
    Ok(Begun {
        folder,
        preparation,
        origins: origins(&sets),
    })
}

/// More steps than the run has are a further stage on its objective; tells so.
fn extend(saved: &mut Settings, wanted: &mut Settings) -> Option<String> {
    let more = saved.more_steps.iter().flatten();
    let planned = more.fold(saved.steps?, |sum, steps| sum.saturating_add(*steps));
    let asked = wanted.steps?;
    if asked >= planned {
        wanted.steps = None;
    }
    let more = asked.checked_sub(planned).filter(|more| *more > 0)?;
    saved.more_steps.get_or_insert_default().push(more);
    Some(format!(
        "{asked} steps on the objective instead of {planned}: a further stage of {more} steps"
    ))
}

/// The data with the steps of rounded values filled, if that is asked for; unasked, those of whole numbers.
fn dequantised(settings: &Settings, sets: Vec<DataSet>) -> Result<Vec<DataSet>> {
    let plain = sets.len() == 1 && settings.particles.is_none();
    let spread = |set: DataSet, every: bool| {
        let told = told(settings, &set.record().columns, set.columns_given()?)?;
        set.dequantised(every, &told)
    };
    match settings.dequantise {
        Some(true) => sets.into_iter().map(|set| spread(set, true)).collect(),
        None if plain => sets.into_iter().map(|set| spread(set, false)).collect(),
        _ => Ok(sets),
    }
}

/// The kernels, which decide the last bits: the settings remember them.
pub(crate) fn isa_of(settings: &Settings) -> Result<Isa> {
    let kernel = settings.kernel.clone();
    Machine {
        threads: None,
        kernel,
    }
    .isa()
}

/// Paths that still lead to the data when the run is resumed from another folder.
pub(crate) fn absolute(mut settings: Settings) -> Result<Settings> {
    let paths = [
        &mut settings.data,
        &mut settings.end,
        &mut settings.weights,
        &mut settings.end_weights,
    ];
    for path in paths.into_iter().flatten() {
        let (file, key) = match archive::split(path) {
            Some((file, key)) => (file, key),
            None => (path.clone(), None),
        };
        let whole = std::fs::canonicalize(&file).map_err(|source| Error::Read {
            path: file.clone(),
            source,
        })?;
        *path = match key {
            None => whole,
            Some(key) => {
                let mut name = whole.into_os_string();
                name.push(format!(":{key}"));
                name.into()
            }
        };
        // Settings are text, and so is the name in the model file.
        if path.to_str().is_none() {
            return Err(Error::Refused(words!(
                path.display(),
                " has a name that is not UTF-8, which settings cannot hold; rename the file or the folder"
            )));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
