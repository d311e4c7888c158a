//! `Preparation`: all that a training needs besides threads, from settings and data, for a new run or one that goes on.

use crate::base::{BaseKind, FoundBase, fit_base};
use crate::data::{DataSet, Feed};
use crate::endpoints::{check, facts, mixtures, moments};
use crate::error::{Error, Result};
use crate::kinds::Kinds;
use crate::known_end;
use crate::last_word::{HeldOutRows, MOST_ROWS};
use crate::level::Levels;
use crate::machine::Machine;
use crate::memory;
use crate::notice::Notice;
use crate::resolve::{Place, Resolved, outline, resolve};
use crate::settings::{ScaleKind, Settings};
use crate::springs;
use crate::watch::Watch;
use crate::words;
use crate::words::Setting;
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, Kind};
use diffclf::engine::{Isa, Pool};
use diffclf::model::{Checkpoint, Content, Model, Record};
use diffclf::rng::STREAMS;
use diffclf::train::{Endpoints, EnergyCourse, Shuffled, Source, State, TrainSettings, Trainer};
use std::path::Path;
use std::sync::Arc;

/// Fewest draws of an evaluation on the held-out rows. A row's loss depends more on the noise it gets than on the model, so that few rows are
/// taken several times; the draws are the same at every evaluation. Without a gradient they cost about a step.
pub(crate) const HELD_OUT_DRAWS: usize = 2048;

/// What a trainer is made of.
pub struct Preparation {
    /// The settings with all defaults.
    pub settings: Settings,
    /// What the model file will say.
    pub content: Content,
    /// Where to start; none for fresh parameters.
    pub state: Option<State>,
    /// Steps between two lines of the log.
    pub log_every: u64,
    /// What a person should know of it.
    pub notices: Vec<Notice>,
    /// Rows that are not trained on, which have the last word about the density of a diffusion.
    pub held_out_rows: Option<HeldOutRows>,
    /// The exact densities, if an objective compares with them.
    truth: Option<Arc<dyn Energy>>,
    feeds: Vec<Feed>,
}

impl Preparation {
    /// A run from the start.
    pub fn fresh(
        settings: &Settings,
        sets: &[DataSet],
        pool: &Pool,
        isa: Isa,
        watch: &dyn Watch,
    ) -> Result<Self> {
        check(sets)?;
        let mut odd = Vec::new();
        let place = Place::Measured(moments(sets, &mut odd)?);
        let mut facts = facts(sets, place);
        let mut settings = settings.clone();
        if let ([set], true, None) = (sets, facts.given, settings.particles) {
            let whiten = settings.scale == Some(ScaleKind::Whiten);
            let kinds = Kinds::of(&settings, set)?;
            kinds.fill(&mut settings);
            facts.columns = Some(set.columns(whiten, &kinds.kinds)?);
            if !kinds.kinds.is_empty() {
                let named = |(j, kind): (usize, &Kind)| {
                    let name = set.record().columns.get(j);
                    let name = name.cloned().unwrap_or_else(|| j.to_string());
                    (*kind != Kind::Real).then(|| format!("{name} {}", kind.words()))
                };
                let text = kinds.kinds.iter().enumerate().filter_map(named);
                let text = text.collect::<Vec<_>>().join("; ");
                odd.push(Notice::Kinds { text });
            }
            facts.kinds = kinds.kinds;
        }
        let told = [&settings.periodic, &settings.positive, &settings.bounded];
        let asked = told.into_iter().flatten().any(|list| list != "none");
        if asked && facts.columns.is_none() {
            return Err(Error::Refused(words!(
                Setting::new("periodic"),
                ", ",
                Setting::new("positive"),
                " and ",
                Setting::new("bounded"),
                " belong to one set of rows that are given; leave them out for systems and for two endpoints"
            )));
        }
        let settings = &settings;
        let outline = outline(settings, &facts)?;
        match outline.base {
            BaseKind::Gaussian => {}
            BaseKind::Springs => {
                watch.note("fitting springs between bonded particles for the energy to stand on")
            }
            _ => watch.note("fitting a mixture for the energy to stand on"),
        }
        facts.base = fit_base(&outline, sets, pool, isa)?;
        let mut resolved = resolve(settings, &facts)?;
        odd.extend(coarse(sets, facts.base.as_ref())?);
        // One scale for all columns is what narrow ones suffer from.
        odd.retain(|notice| {
            resolved.settings.scale == Some(ScaleKind::Common)
                || !matches!(notice, Notice::NarrowColumns { .. })
        });
        resolved.notices.extend(odd);
        resolved.notices.extend(sets.iter().filter_map(worth));
        if resolved.settings.dequantise.is_none() {
            resolved.notices.extend(sets.iter().filter_map(whole));
        }
        let mut content = Content {
            spec: resolved.spec.clone(),
            standardisation: resolved.standardisation.clone(),
            frame: sets.first().and_then(DataSet::frame),
            record: Record {
                version: env!("CARGO_PKG_VERSION").into(),
                settings: resolved.train.clone(),
                steps: 0,
                data: sets.iter().map(|set| set.record().clone()).collect(),
                units: "kT".into(),
                streams: STREAMS,
                levelled: None,
            },
        };
        if resolved.settings.base == Some(BaseKind::Springs) {
            let truth = truth(&resolved.settings, &content, sets)?;
            let springs = springs::fit(&resolved, &outline, sets, truth.as_deref(), pool)?;
            resolved.notices.push(Notice::Springs {
                held: springs.held.len(),
                soft: springs.soft.len(),
                loose: springs.loose(),
            });
            content.spec.springs = Some(springs.clone());
            resolved.spec.springs = Some(springs);
        }
        Self::of(resolved, content, None, sets)
    }

    /// A run from its last checkpoint. The checkpoint, the settings and the data must be those of one run; `folder` names it.
    pub fn resumed(
        settings: &Settings,
        sets: &[DataSet],
        checkpoint: Checkpoint,
        folder: &Path,
    ) -> Result<Self> {
        check(sets)?;
        let Checkpoint { mut content, state } = checkpoint;
        for (found, expected) in sets.iter().zip(&content.record.data) {
            let (found_record, weights) = (found.record(), &expected.weights);
            if found_record.sha256 != expected.sha256 || found_record.weights != *weights {
                return Err(Error::OtherData {
                    name: found.record().name.clone(),
                    folder: folder.to_path_buf(),
                });
            }
        }
        // A run from before F was solved for in the end goes on as it began.
        let mut settings = settings.clone();
        let levelling = content.record.settings.levelling;
        settings.levelling.get_or_insert(levelling);
        let resolved = Self::like(&settings, sets, &content)?;
        // A run may have got further stages since.
        let mut begun = resolved.train.clone();
        begun.stages.truncate(content.record.settings.stages.len());
        let fits = resolved.spec == content.spec
            && begun == content.record.settings
            && sets.len() == content.record.data.len()
            && sets[0].dim()? == content.spec.dim;
        if !fits {
            return Err(Error::OtherSettings {
                folder: folder.to_path_buf(),
            });
        }
        content.record.settings = resolved.train.clone();
        Self::of(resolved, content, Some(state), sets)
    }

    fn of(
        resolved: Resolved,
        content: Content,
        state: Option<State>,
        sets: &[DataSet],
    ) -> Result<Self> {
        let train = &content.record.settings;
        let levels = train.stages.iter().map(|stage| stage.levels).max();
        memory::refuse_training(&content.spec, levels.unwrap_or(1))?;
        let share = train.held_out.map_or(0.0, |rule| rule.share);
        let coupling = content.spec.coupling.as_ref();
        let batch = coupling.map_or(train.batch, |coupling| coupling.rows);
        let mut feeds = Vec::with_capacity(sets.len());
        for (k, set) in sets.iter().enumerate() {
            let rows = set.prepare(&content.standardisation)?;
            feeds.push(rows.feed(k, batch, train.seed, share));
        }
        if let (Some(coupling), [start, end]) = (coupling, feeds.as_slice()) {
            feeds = Feed::coupled(coupling, &content.spec, [start, end], train.batch).to_vec();
        }
        if train.rotate {
            let turned = |feed: Feed| feed.turned(&content.spec, train.seed);
            feeds = feeds.into_iter().map(turned).collect::<Result<_>>()?;
        }
        let held_out_rows = match (sets, train.held_out) {
            ([set], Some(rule)) => {
                let rows = set.prepare(&content.standardisation)?;
                let shares = rows.in_order(0, train.seed, rule.share);
                refuse_weightless(shares.as_ref())?;
                shares.map(|[_, rest]| taken(&rest, content.spec.dim))
            }
            _ => None,
        };
        if let (Some(feed), Some(set)) = (feeds.first(), sets.first()) {
            known_end::check(&content, feed, set.record().rows)?;
        }
        Ok(Self {
            held_out_rows,
            truth: truth(&resolved.settings, &content, sets)?,
            settings: resolved.settings,
            log_every: resolved.log_every,
            notices: resolved.notices,
            content,
            state,
            feeds,
        })
    }

    /// The trainer, at its first step or at that of the state.
    pub fn trainer(&self, pool: Arc<Pool>, isa: Isa) -> Result<Trainer> {
        let mut trainer = self.trainer_of(&self.content.record.settings, pool, isa)?;
        if let Some(state) = &self.state {
            trainer.resume(state.clone())?;
        }
        Ok(trainer)
    }

    /// A fresh trainer with these settings.
    pub(crate) fn trainer_of(
        &self,
        train: &TrainSettings,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<Trainer> {
        let held_out = self.held_out().filter(|_| train.held_out.is_some());
        let held_out = held_out.map(|(endpoints, rows)| {
            let draws = rows.clamp(HELD_OUT_DRAWS, train.batch.max(HELD_OUT_DRAWS));
            (endpoints, draws)
        });
        let endpoints = self.endpoints(|feed| Some(&feed.train));
        let endpoints = endpoints.ok_or(Error::Nothing)?;
        let spec = &self.content.spec;
        let course = EnergyCourse::new(spec, train, endpoints, held_out, pool, isa)?;
        let course = course.with_truth(self.truth.clone());
        Ok(Trainer::of(course, train)?)
    }

    /// A new run from the parameters of a model: on its coordinates and its base, so that they mean what they meant.
    pub fn warm(
        settings: &Settings,
        sets: &[DataSet],
        model: &Model,
        (pool, isa): (Arc<Pool>, Isa),
        from: &Path,
    ) -> Result<Self> {
        check(sets)?;
        // Every number is looked at; where the data lie is the model's affair.
        moments(sets, &mut Vec::new())?;
        let mut content = model.content.clone();
        let resolved = Self::like(settings, sets, &content)?;
        let fits = resolved.spec == content.spec && sets[0].dim()? == content.spec.dim;
        if !fits {
            return Err(Error::OtherModel {
                from: from.to_path_buf(),
            });
        }
        content.record = Record {
            version: env!("CARGO_PKG_VERSION").into(),
            settings: resolved.train.clone(),
            steps: 0,
            data: sets.iter().map(|set| set.record().clone()).collect(),
            units: "kT".into(),
            streams: STREAMS,
            levelled: None,
        };
        let mut prepared = Self::of(resolved, content, None, sets)?;
        let mut state = prepared.trainer(pool, isa)?.state().clone();
        state.params.copy_from_slice(model.best());
        if !state.average.is_empty() {
            state.average.copy_from_slice(model.best());
        }
        prepared.state = Some(state);
        Ok(prepared)
    }

    /// The settings resolved for coordinates and a base that are chosen already.
    fn like(settings: &Settings, sets: &[DataSet], content: &Content) -> Result<Resolved> {
        let mut facts = facts(sets, Place::of(content));
        facts.kinds = content.standardisation.kinds.clone();
        facts.base = content.spec.base.clone().map(|ends| FoundBase {
            shape: format!("{} {}", ends.start.components(), ends.start.spread_name()),
            nats: (f64::INFINITY, 0.0),
            finest: ends.start.smallest_width(),
            multiplicity: 1.0,
            kernels_ahead: None,
            ends,
        });
        let mut resolved = resolve(settings, &facts)?;
        resolved.spec.springs = content.spec.springs.clone();
        resolved.notices.clear();
        Ok(resolved)
    }

    fn endpoints<'a>(
        &'a self,
        source: impl Fn(&'a Feed) -> Option<&'a Arc<dyn Source>>,
    ) -> Option<Endpoints> {
        Some(Endpoints {
            start: source(self.feeds.first()?)?.clone(),
            end: self.feeds.get(1).and_then(source).cloned(),
        })
    }

    /// Rows for F(t) of all levels: those that are trained on, and others to judge by where there are any.
    pub fn levels(&self) -> Result<Levels> {
        Ok(Levels {
            fit: self
                .endpoints(|feed| Some(&feed.train))
                .ok_or(Error::Nothing)?,
            check: self.held_out(),
        })
    }

    /// Rows that are not trained on, and how many each endpoint has of them.
    fn held_out(&self) -> Option<(Endpoints, usize)> {
        let held_out = |feed: &Feed| feed.held_out.as_ref().map(|(_, rows)| *rows);
        let rows = self.feeds.iter().filter_map(held_out).min()?;
        let endpoints = self.endpoints(|feed| feed.held_out.as_ref().map(|(source, _)| source));
        Some((endpoints?, rows))
    }
}

/// What stands in the way of a density: rounded values, columns that follow from others, and repeated rows.
fn coarse(sets: &[DataSet], base: Option<&FoundBase>) -> Result<Vec<Notice>> {
    let mut notices = Vec::new();
    for set in sets.iter().filter(|set| set.is_given()) {
        // Columns that are spread over their steps are rounded no more.
        let steps = set.rounding()?;
        let rounded = |column: &usize| steps[*column] > 0.0;
        if let Some(first) = (0..steps.len()).find(rounded) {
            notices.push(Notice::Rounded {
                count: (0..steps.len()).filter(rounded).count(),
                first,
                step: steps[first],
            });
        }
    }
    // Particles without their centre are no function of each other, whatever their rows are.
    for set in sets.iter().filter(|set| set.is_given() && set.is_whole()) {
        notices.extend(set.dependence()?.map(Notice::Dependent));
    }
    if let Some(base) = base.filter(|base| base.multiplicity > 1.5) {
        notices.push(Notice::Repeated {
            times: base.multiplicity,
        });
    }
    Ok(notices)
}

/// Refuses a part of the rows in which none counts.
fn refuse_weightless(shares: Option<&[Shuffled; 2]>) -> Result<()> {
    let none = |share: &Shuffled| share.rows() > 0 && share.total_weight() <= 0.0;
    let part = shares.and_then(|shares| shares.iter().position(none));
    match part {
        None => Ok(()),
        Some(part) => Err(Error::Refused(words!(
            "all rows that are ",
            ["trained on", "held out"][part],
            " have the weight zero; leave rows of weight zero out of the data, or choose another ",
            Setting::new("held_out")
        ))),
    }
}

/// Columns of whole numbers that were spread over their steps unasked.
fn whole(set: &DataSet) -> Option<Notice> {
    let record = set.record();
    let name = |(j, step): (usize, &f64)| {
        let name = record.columns.get(j);
        (*step > 0.0).then(|| name.cloned().unwrap_or_else(|| j.to_string()))
    };
    let columns: Vec<String> = record.steps.iter().enumerate().filter_map(name).collect();
    (!columns.is_empty()).then(|| Notice::Whole {
        columns: columns.join(", "),
    })
}

/// What weighted rows are worth.
pub(crate) fn worth(set: &DataSet) -> Option<Notice> {
    Some(Notice::Weighted {
        rows: set.record().rows?,
        effective: set.effective_rows()?,
    })
}

/// The first rows of a share, in their order.
pub(crate) fn taken(share: &Shuffled, dim: usize) -> HeldOutRows {
    let mut rows = Vec::new();
    let mut row = vec![0f32; dim];
    for k in 0..share.rows().min(MOST_ROWS) {
        share.copy_in_order(k, &mut row);
        rows.extend(row.iter().map(|x| f64::from(*x)));
    }
    let weight = |k: usize| share.is_weighted().then(|| share.weight(k));
    HeldOutRows {
        weights: (0..rows.len() / dim).filter_map(weight).collect(),
        rows,
    }
}

/// The exact densities of the data in the model's coordinates, if an objective compares with them.
fn truth(
    settings: &Settings,
    content: &Content,
    sets: &[DataSet],
) -> Result<Option<Arc<dyn Energy>>> {
    let stages = &content.record.settings.stages;
    let mut terms = stages.iter().flat_map(|stage| &stage.objectives);
    let Some(term) = terms.find(|t| t.objective.objective().needs_truth(&content.spec)) else {
        return Ok(None);
    };
    if let Some(molecule) = &settings.molecule {
        let machine = Machine {
            threads: None,
            kernel: settings.kernel.clone(),
        };
        let (map, view) = (&content.standardisation, content.view());
        return Ok(Some(molecule.energy(
            map,
            view,
            sets.len(),
            machine.isa()?,
        )?));
    }
    let mut known = Vec::with_capacity(sets.len());
    for set in sets {
        let Some(mixture) = set.mixture() else {
            return Err(Error::Refused(words!(
                "the objective ",
                term.objective,
                " compares with exact densities, but those of ",
                set.record().name,
                " are not known; train on a mixture (",
                Setting::new("system"),
                " ",
                mixtures().join(", "),
                "), name the ",
                Setting::new("molecule"),
                " that the rows are frames of, or choose another objective"
            )));
        };
        known.push(content.standardisation.mixture_to_model(mixture)?);
    }
    let end = if known.len() > 1 { known.pop() } else { None };
    let start = known.pop().ok_or(Error::Nothing)?;
    Ok(Some(Arc::new(ExactPath::new(
        content.spec.process,
        start,
        end,
    )?)))
}
