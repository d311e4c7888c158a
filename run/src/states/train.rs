//! From settings and rows of symbols to a model of states, in the same run folder, with the same log, checkpoints and resume.

use super::rows::{StatesRows, recognised};
use crate::budget::fit_steps;
use crate::data::{DataSet, Feed};
use crate::error::{Error, Result};
use crate::last_word::HeldOutRows;
use crate::named::Named;
use crate::network::NetworkChoice;
use crate::notice::Notice;
use crate::prepare::{HELD_OUT_DRAWS, worth};
use crate::resolve::{Filling, rate};
use crate::run_folder::RunFolder;
use crate::session::Session;
use crate::settings::Settings;
use crate::train::{self, Job, TakenUp, absolute, inherited, isa_of, taken_up};
use crate::weights::{weighted, weights_of_drawn_rows};
use crate::words;
use crate::words::Setting;
use diffclf::discrete::model::{Content, StatesCheckpoint, StatesSpec};
use diffclf::discrete::objective::StatesObjectiveName;
use diffclf::discrete::train::{StatesCourse, StatesSettings};
use diffclf::discrete::{Process, Space, system};
use diffclf::engine::{Isa, Pool};
use diffclf::model::Record;
use diffclf::objective::{Choice, Term, parse_sum};
use diffclf::process::{Spacing, TimeGrid, TimeSampler};
use diffclf::rng::STREAMS;
use diffclf::train::{Adam, StageSettings, State, Trainer};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Whether a job is one of states: asked for, a system of states, a run of states that goes on, or a file that holds nothing else.
pub fn are_meant(job: &Job, sets: Option<&[DataSet]>) -> Result<bool> {
    let s = &job.settings;
    if let Some(states) = s.states {
        return Ok(states > 0);
    }
    if job.resume && RunFolder::has_run(&job.path) {
        let saved = Settings::read(&job.path.join(crate::run_folder::CONFIG))?;
        return Ok(saved.states.is_some_and(|states| states > 0));
    }
    if s.system.as_deref().is_some_and(system::is_known) {
        return Ok(true);
    }
    if let Some(from) = &job.from {
        return Ok(super::open(from)?.is_some());
    }
    let numbers =
        s.dequantise.is_some() || s.process.is_some() || s.has_end() || s.particles.is_some();
    let is_npy = |path: &Path| path.extension().is_some_and(|e| e == "npy") && path.is_file();
    match (&s.data, sets) {
        (Some(path), None) if !numbers && is_npy(path) => recognised(path),
        _ => Ok(false),
    }
}

/// What does not belong to states.
fn refuse_strangers(s: &Settings) -> Result<()> {
    let strangers = [
        ("end", s.end.is_some()),
        ("end_system", s.end_system.is_some()),
        ("end_weights", s.end_weights.is_some()),
        ("levelling", s.levelling.is_some()),
        ("scale", s.scale.is_some()),
        ("periodic", s.periodic.is_some()),
        ("positive", s.positive.is_some()),
        ("bounded", s.bounded.is_some()),
        ("dequantise", s.dequantise.is_some()),
        ("topology", s.topology.is_some()),
        ("particles", s.particles.is_some()),
        ("form", s.form.is_some()),
        ("base", s.base.is_some()),
        ("bonds", s.bonds.is_some()),
        ("molecule", s.molecule.is_some()),
        ("process", s.process.is_some()),
    ];
    match strangers.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Error::Refused(words!(
            Setting::new(name),
            " does not go with states; leave it out, or ask for rows of numbers with ",
            Setting::to("states", "0")
        ))),
        None => Ok(()),
    }
}

/// A run with all its defaults.
struct Resolved {
    filling: Filling,
    spec: StatesSpec,
    train: StatesSettings,
    log_every: u64,
}

fn resolve(settings: &Settings, rows: &StatesRows) -> Result<Resolved> {
    let asked = settings.states.filter(|states| *states > 0);
    let counted = rows.counted(asked)?;
    let mut filling = Filling {
        settings: settings.clone(),
        notices: Vec::new(),
    };
    if let StatesRows::Table { set, .. } = rows {
        filling.notices.extend(worth(set));
    }
    let (count, given) = rows.count();
    let held_out = filling.held_out(rows.effective().or(count), given)?;
    let batch = filling.batch(512, count);
    let log_every = filling.log_every()?;
    let s = &mut filling.settings;
    s.states = Some(counted.space.states);
    let process = Process::by_name(s.noise.get_or_insert_with(|| "uniform".into()))?;
    let mut spec = StatesSpec::new(counted.space, process)?;
    let spacing = s
        .spacing
        .get_or_insert(Named(Spacing::Power { rho: 3.0 }))
        .0;
    let (low, high) = (*s.t_min.get_or_insert(1e-4), *s.t_max.get_or_insert(1.0));
    spec.grid = TimeGrid::new(*s.grid_levels.get_or_insert(128), low, high, spacing)?;
    spec.network = NetworkChoice::over_sites(s)?;
    spec.features = *s.features.get_or_insert(32);
    spec.set_laws(&counted.shares, counted.rows);
    spec.validate()?;
    let usual = StatesObjectiveName::SUM.to_string();
    let terms: Vec<Term<StatesObjectiveName>> = parse_sum(s.objective.get_or_insert(usual))?;
    let entropy = StatesObjectiveName::ALL[0];
    let alone = terms
        .iter()
        .all(|term| term.objective.name() == entropy.name());
    let most = terms
        .iter()
        .map(|term| term.objective.objective().level_range().1)
        .min();
    let levels = *s
        .levels
        .get_or_insert(if alone { 1 } else { most.unwrap_or(4).min(4) });
    let steps = *s.steps.get_or_insert(6000);
    let score_steps = *s.score_steps.get_or_insert(0);
    let rate = rate(s, 2e-3);
    let stage = |steps, objectives| StageSettings {
        steps,
        levels,
        objectives,
        rate,
    };
    let first = terms
        .iter()
        .find(|term| term.objective.name() == entropy.name());
    let score = first.copied().unwrap_or(Term {
        objective: entropy,
        weight: 1.0,
    });
    let mut stages = vec![stage(steps, terms.clone())];
    for more in s.more_steps.iter().flatten() {
        stages.push(stage(*more, terms.clone()));
    }
    if score_steps > 0 {
        stages.insert(0, stage(score_steps, vec![score]));
    }
    let positive = |value: f64| if value == 0.0 { None } else { Some(value) };
    let train = StatesSettings {
        seed: *s.seed.get_or_insert(0),
        batch,
        times: s.times.get_or_insert(Named(TimeSampler::default())).0,
        clip: positive(*s.clip.get_or_insert(1.0)),
        adam: Adam::default(),
        average: positive(*s.average.get_or_insert(0.999)),
        held_out,
        rotate: false,
        levelling: false,
        stages,
    };
    Ok(Resolved {
        filling,
        spec,
        train,
        log_every,
    })
}

/// The rows that settings or a caller name.
fn open(settings: &Settings, sets: Option<Vec<DataSet>>) -> Result<StatesRows> {
    let given = |set| {
        let mut sets = weighted(settings, vec![set])?;
        Ok(StatesRows::given(sets.remove(0)))
    };
    if let Some(set) = sets.and_then(|sets| sets.into_iter().next()) {
        return given(set);
    }
    match (&settings.data, &settings.system) {
        (Some(path), None) => given(DataSet::file(path)?),
        (None, Some(_)) if settings.weights.is_some() => Err(weights_of_drawn_rows("weights")),
        (None, Some(name)) => {
            let (seed, states) = (
                settings.system_seed.unwrap_or(0),
                settings.states.filter(|k| *k > 0),
            );
            let target = system::by_name(name, settings.dim, states, seed)?;
            StatesRows::system(target, seed, settings.samples, settings.seed.unwrap_or(0))
        }
        (Some(_), Some(_)) => Err(Error::Refused(words!(
            "both a file and ",
            Setting::new("system"),
            " are given, expected one of them"
        ))),
        (None, None) => Err(Error::Nothing),
    }
}

/// A run in its folder before the first step.
struct Begun {
    folder: RunFolder,
    rows: StatesRows,
    resolved: Resolved,
    content: Content,
    state: Option<State>,
}

impl Begun {
    fn of(folder: RunFolder, rows: StatesRows, resolved: Resolved) -> Begun {
        let content = content_of(&resolved, &rows);
        Begun {
            folder,
            rows,
            resolved,
            content,
            state: None,
        }
    }
}

fn content_of(resolved: &Resolved, rows: &StatesRows) -> Content {
    Content {
        spec: resolved.spec.clone(),
        record: Record {
            version: env!("CARGO_PKG_VERSION").into(),
            settings: resolved.train.clone(),
            steps: 0,
            data: vec![rows.record().clone()],
            units: "kT".into(),
            streams: STREAMS,
            levelled: None,
        },
    }
}

/// Digests of given rows and of their weights, and the names to find them by.
fn digests(rows: &StatesRows, settings: &Settings) -> Vec<(String, String)> {
    match rows {
        StatesRows::Table { set, record } if record.sha256.is_some() => {
            train::digests(std::slice::from_ref(set), settings)
        }
        _ => Vec::new(),
    }
}

/// Trains on states, to the end or as far as it gets.
pub fn train(job: Job, sets: Option<Vec<DataSet>>) -> Result<()> {
    refuse_strangers(&job.settings)?;
    let goes_on = job.resume && RunFolder::has_run(&job.path);
    let begun = if goes_on {
        continued(&job, sets)?
    } else {
        begun(&job, sets)?
    };
    let Begun {
        folder,
        rows,
        mut resolved,
        content,
        state,
    } = begun;
    if goes_on {
        resolved.filling.notices.clear();
    } else if job.settings.states.is_none() && job.settings.system.is_none() {
        let Space { sites, states } = content.spec.space;
        let notice = Notice::States { sites, states };
        resolved.filling.notices.push(notice);
    }
    for notice in &resolved.filling.notices {
        job.watch.notice(notice);
    }
    let isa = isa_of(&resolved.filling.settings)?;
    let lessons = Lessons::new(&content, &rows)?;
    let mut trainer = lessons.trainer(&content.record.settings, &job.pool, isa)?;
    if let Some(state) = state {
        trainer.resume(state)?;
    }
    let origins = match &rows {
        StatesRows::Table { set, .. } => set.origin().into_iter().collect(),
        StatesRows::Fresh { .. } => Vec::new(),
    };
    let (log, seconds) = folder.log(trainer.state().step)?;
    Session {
        folder,
        content,
        log,
        log_every: resolved.log_every,
        seconds,
        checkpoint_every: job.checkpoint_every,
        watch: job.watch,
        origins,
        rows: lessons.held_out_rows,
        pool: job.pool,
        isa,
    }
    .train(trainer)
}

/// A new run in its folder.
fn begun(job: &Job, sets: Option<Vec<DataSet>>) -> Result<Begun> {
    let began = Instant::now();
    let mut settings = job.settings.clone();
    if let Some(from) = &job.from {
        settings = inherited(&settings, from)?;
        refuse_strangers(&settings)?;
    }
    if !job.resume {
        RunFolder::refuse_existing(&job.path, job.force)?;
    } else if sets.is_none() && settings.data.is_none() && settings.system.is_none() {
        return Err(Error::NoRun {
            folder: job.path.clone(),
        });
    }
    let rows = open(&settings, sets)?;
    let isa = isa_of(&settings)?;
    let mut resolved = resolve(&settings, &rows)?;
    let mut state = job.first_stage.clone();
    if let Some(from) = &job.from {
        state = Some(warm(&mut resolved, &rows, from, (&job.pool, isa))?);
    }
    if let Some(time) = job.time {
        let lessons = Lessons::new(&content_of(&resolved, &rows), &rows)?;
        let (settings, train) = (&mut resolved.filling.settings, &mut resolved.train);
        let text = fit_steps(settings, train, (time, began), &|train| {
            lessons.trainer(train, &job.pool, isa)
        })?;
        job.watch.note(&text);
    }
    let settings = absolute(resolved.filling.settings.clone())?;
    let digests = digests(&rows, &settings);
    let folder = RunFolder::create(&job.path, &settings, &digests, job.force)?;
    Ok(Begun {
        state,
        ..Begun::of(folder, rows, resolved)
    })
}

/// The state from which a run goes on with the parameters of a model, on its laws of the sites.
fn warm(
    resolved: &mut Resolved,
    rows: &StatesRows,
    from: &Path,
    (pool, isa): (&Arc<Pool>, Isa),
) -> Result<State> {
    let other = || Error::OtherModel {
        from: from.to_path_buf(),
    };
    let model = super::open(from)?.ok_or_else(other)?;
    let spec = &model.content.spec;
    if resolved.spec.space != spec.space {
        return Err(other());
    }
    resolved.spec.laws.clone_from(&spec.laws);
    if resolved.spec != *spec {
        return Err(other());
    }
    let content = content_of(resolved, rows);
    let trainer = Lessons::new(&content, rows)?.trainer(&resolved.train, pool, isa)?;
    let mut state = trainer.state().clone();
    state.params.copy_from_slice(model.best());
    if !state.average.is_empty() {
        state.average.copy_from_slice(model.best());
    }
    Ok(state)
}

/// A run that is there, from its last checkpoint.
fn continued(job: &Job, sets: Option<Vec<DataSet>>) -> Result<Begun> {
    let TakenUp {
        folder,
        settings,
        rows,
    } = taken_up(
        job,
        |saved| open(saved, sets),
        |rows, saved| {
            let name = rows.record().name.clone();
            (rows.count().0, digests(rows, saved), name)
        },
    )?;
    let resolved = resolve(&settings, &rows)?;
    let checkpoint = folder.checkpoint::<Content>()?;
    let mut begun = Begun::of(folder, rows, resolved);
    if let Some(checkpoint) = checkpoint {
        adopt(&mut begun, checkpoint, &job.path)?;
    }
    Ok(begun)
}

/// Goes on from a checkpoint, if it is one of this run on these rows.
fn adopt(begun: &mut Begun, checkpoint: StatesCheckpoint, folder: &Path) -> Result<()> {
    let (saved, content) = (checkpoint.content, &mut begun.content);
    let (found, expected) = (&content.record.data[0], &saved.record.data[0]);
    if found.sha256 != expected.sha256 || found.weights != expected.weights {
        return Err(Error::OtherData {
            name: found.name.clone(),
            folder: folder.to_path_buf(),
        });
    }
    // A run that began from a model keeps that model's laws; one may have got further stages since.
    if content.spec.laws.len() == saved.spec.laws.len() {
        content.spec.laws.clone_from(&saved.spec.laws);
    }
    let mut train = content.record.settings.clone();
    train.stages.truncate(saved.record.settings.stages.len());
    if saved.spec != content.spec || saved.record.settings != train {
        return Err(Error::OtherSettings {
            folder: folder.to_path_buf(),
        });
    }
    content.record.steps = saved.record.steps;
    content.record.version = saved.record.version;
    begun.state = Some(checkpoint.state);
    Ok(())
}

/// What trainers of a run are made of.
struct Lessons {
    spec: StatesSpec,
    feed: Feed,
    /// Rows that have the last word.
    held_out_rows: Option<HeldOutRows>,
}

impl Lessons {
    fn new(content: &Content, rows: &StatesRows) -> Result<Lessons> {
        let train = &content.record.settings;
        let share = train.held_out.map_or(0.0, |rule| rule.share);
        let (feed, held_out_rows) = rows.feed(train.batch, train.seed, share)?;
        Ok(Lessons {
            spec: content.spec.clone(),
            feed,
            held_out_rows,
        })
    }

    /// A trainer at its first step.
    fn trainer(&self, train: &StatesSettings, pool: &Arc<Pool>, isa: Isa) -> Result<Trainer> {
        let held_out = self.feed.held_out.as_ref();
        let held_out = held_out.filter(|_| train.held_out.is_some());
        let held_out = held_out.map(|(source, count)| {
            let draws = (*count).clamp(HELD_OUT_DRAWS, train.batch.max(HELD_OUT_DRAWS));
            (source.clone(), draws)
        });
        let from = self.feed.train.clone();
        let course = StatesCourse::new(&self.spec, train, from, held_out, pool.clone(), isa)?;
        Ok(Trainer::of(course, train)?)
    }
}

#[cfg(test)]
mod tests;
