//! From settings and rows of symbols to a model of states, in the same run folder, with the same log, checkpoints and resume.

use super::rows::{StatesRows, recognised};
use crate::data::DataSet;
use crate::error::{Error, Result};
use crate::last_word::HeldOutRows;
use crate::named::Named;
use crate::notice::Notice;
use crate::prepare::HELD_OUT_DRAWS;
use crate::resolve::Filling;
use crate::run_folder::RunFolder;
use crate::session::Session;
use crate::settings::Settings;
use crate::train::{Job, absolute, isa_of};
use crate::words;
use crate::words::Setting;
use diffclf::discrete::model::{Content, StatesCheckpoint, StatesSpec};
use diffclf::discrete::objective::StatesObjectiveName;
use diffclf::discrete::train::{StatesCourse, StatesSettings};
use diffclf::discrete::{Process, system};
use diffclf::model::Record;
use diffclf::objective::{Choice, Term, parse_sum};
use diffclf::process::{Spacing, TimeGrid, TimeSampler};
use diffclf::rng::STREAMS;
use diffclf::train::{Adam, Decay, Rate, StageSettings, State, Trainer};
use std::path::Path;
use std::sync::Arc;

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
    let numbers =
        s.dequantise.is_some() || s.process.is_some() || s.has_end() || s.particles.is_some();
    let is_npy = |path: &Path| path.extension().is_some_and(|e| e == "npy") && path.is_file();
    match (&s.data, sets) {
        (Some(path), None) if !numbers && job.from.is_none() && is_npy(path) => recognised(path),
        _ => Ok(false),
    }
}

/// What does not belong to states.
fn refuse_strangers(job: &Job) -> Result<()> {
    let s = &job.settings;
    let strangers = [
        ("end", s.end.is_some()),
        ("end_system", s.end_system.is_some()),
        ("weights", s.weights.is_some()),
        ("levelling", s.levelling.is_some()),
        ("more_steps", s.more_steps.is_some()),
        ("scale", s.scale.is_some()),
        ("periodic", s.periodic.is_some()),
        ("positive", s.positive.is_some()),
        ("bounded", s.bounded.is_some()),
        ("dequantise", s.dequantise.is_some()),
        ("particles", s.particles.is_some()),
        ("form", s.form.is_some()),
        ("base", s.base.is_some()),
        ("network", s.network.is_some()),
        ("molecule", s.molecule.is_some()),
        ("process", s.process.is_some()),
        ("from", job.from.is_some()),
        ("time", job.time.is_some()),
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
    let (count, given) = rows.count();
    let held_out = filling.held_out(count, None, given)?;
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
    spec.width = *s.width.get_or_insert(128);
    spec.depth = *s.depth.get_or_insert(3);
    spec.features = *s.features.get_or_insert(32);
    spec.set_laws(&counted.counts, counted.rows);
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
    let rate = Rate {
        peak: *s.rate.get_or_insert(2e-3),
        decay: *s.decay.get_or_insert(Decay::Cosine),
        warm_up: *s.warm_up.get_or_insert(0),
    };
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
    let mut stages = vec![stage(steps, terms)];
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
    if let Some(set) = sets.and_then(|sets| sets.into_iter().next()) {
        return Ok(StatesRows::given(set));
    }
    match (&settings.data, &settings.system) {
        (Some(path), None) => Ok(StatesRows::given(DataSet::file(path)?)),
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

/// Trains on states, to the end or as far as it gets.
pub fn train(job: Job, sets: Option<Vec<DataSet>>) -> Result<()> {
    refuse_strangers(&job)?;
    let goes_on = job.resume && RunFolder::has_run(&job.path);
    if !job.resume {
        RunFolder::refuse_existing(&job.path, job.force)?;
    }
    let taken = if goes_on {
        Some(RunFolder::take(&job.path)?)
    } else {
        None
    };
    let mut settings = match &taken {
        Some(folder) => folder.settings()?,
        None => job.settings.clone(),
    };
    if let Some(folder) = &taken {
        settings.data = job.settings.data.clone().or(settings.data);
        settings.refuse_conflicts(&job.settings, folder.path())?;
    }
    let rows = open(&settings, sets)?;
    let Resolved {
        mut filling,
        spec,
        train,
        log_every,
    } = resolve(&settings, &rows)?;
    let isa = isa_of(&settings)?;
    let mut content = Content {
        spec,
        record: Record {
            version: env!("CARGO_PKG_VERSION").into(),
            settings: train,
            steps: 0,
            data: vec![rows.record().clone()],
            units: "kT".into(),
            streams: STREAMS,
            levelled: None,
        },
    };
    let mut state: Option<State> = None;
    let folder = match taken {
        Some(folder) => {
            if let Some(checkpoint) = folder.checkpoint::<Content>()? {
                content = continued(checkpoint, &content, &mut state, folder.path())?;
            }
            filling.notices.clear();
            folder
        }
        None => {
            let settings = absolute(filling.settings.clone())?;
            let name = settings.data.as_ref().map_or_else(
                || rows.record().name.clone(),
                |path| path.display().to_string(),
            );
            let digest = rows
                .record()
                .sha256
                .clone()
                .map(|sha256| (sha256, name.replace('\n', " ")));
            let digests: Vec<(String, String)> = digest.into_iter().collect();
            RunFolder::create(&job.path, &settings, &digests, job.force)?
        }
    };
    let space = content.spec.space;
    if job.settings.states.is_none() && job.settings.system.is_none() && !goes_on {
        let (sites, states) = (space.sites, space.states);
        filling.notices.push(Notice::States { sites, states });
    }
    for notice in &filling.notices {
        job.watch.notice(notice);
    }
    let (trainer, held_out) = trainer(&content, &rows, state, &job, isa)?;
    let origins = match &rows {
        StatesRows::Table { set, .. } => set.origin().into_iter().collect(),
        StatesRows::Fresh { .. } => Vec::new(),
    };
    let (log, seconds) = folder.log(trainer.state().step)?;
    Session {
        folder,
        content,
        log,
        log_every,
        seconds,
        checkpoint_every: job.checkpoint_every,
        watch: job.watch,
        origins,
        ending: held_out,
        pool: job.pool,
        isa,
    }
    .train(trainer)
}

/// A checkpoint's content, if it is one of this run on these rows.
fn continued(
    checkpoint: StatesCheckpoint,
    content: &Content,
    state: &mut Option<State>,
    folder: &Path,
) -> Result<Content> {
    let saved = &checkpoint.content;
    let (found, expected) = (&content.record.data[0], &saved.record.data[0]);
    if found.sha256 != expected.sha256 {
        return Err(Error::OtherData {
            name: found.name.clone(),
            folder: folder.to_path_buf(),
        });
    }
    if saved.spec != content.spec || saved.record.settings != content.record.settings {
        return Err(Error::OtherSettings {
            folder: folder.to_path_buf(),
        });
    }
    *state = Some(checkpoint.state);
    Ok(checkpoint.content)
}

fn trainer(
    content: &Content,
    rows: &StatesRows,
    state: Option<State>,
    job: &Job,
    isa: diffclf::engine::Isa,
) -> Result<(Trainer, Option<HeldOutRows>)> {
    let train = &content.record.settings;
    let share = train.held_out.map_or(0.0, |rule| rule.share);
    let (feed, held_out_rows) = rows.feed(train.batch, train.seed, share)?;
    let held_out = feed.held_out.map(|(source, count)| {
        let draws = count.clamp(HELD_OUT_DRAWS, train.batch.max(HELD_OUT_DRAWS));
        (source, draws)
    });
    let course = StatesCourse::new(
        &content.spec,
        train,
        feed.train,
        held_out,
        Arc::clone(&job.pool),
        isa,
    )?;
    let mut trainer = Trainer::of(course, train)?;
    if let Some(state) = state {
        trainer.resume(state)?;
    }
    Ok((trainer, held_out_rows))
}
