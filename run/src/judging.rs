//! What a model is judged by: rows in its coordinates, trained on or not, samples of its own, and the log of its training.

use crate::data::{DataSet, Prepared};
use crate::error::{DataFault, Error, Result};
use crate::run_folder::{CONFIG, LOG};
use crate::settings::Settings;
use crate::weights::GivenWeights;
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Energy, LearnedEnergy, Prior};
use diffclf::metric::diagnose::{Data, Diagnosis, DiagnosisSettings, Facts, History, Subject};
use diffclf::model::{Content, DataRecord, Record};
use diffclf::rng::{Purpose, STREAMS};
use diffclf::sample::{Flow, Sampler, Solver, Task, depart, times_of};
use diffclf::system::System;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of each kind that are kept in memory.
pub(crate) const MOST_ROWS: usize = 20_000;

/// Rows of one endpoint.
pub(crate) struct Endpoint {
    /// Rows that were not trained on; empty if there are none.
    pub(crate) fresh: Vec<f64>,
    /// Rows that were trained on, where it is known which.
    pub(crate) trained: Option<Vec<f64>>,
    pub(crate) name: String,
    /// The rows stand for weighted ones.
    pub(crate) weighted: bool,
}

/// Files of rows to judge by, and of their weights, for both endpoints.
#[derive(Debug, Clone, Copy, Default)]
pub struct GivenFiles<'a> {
    /// Rows.
    pub data: [Option<&'a Path>; 2],
    /// Their weights.
    pub weights: [Option<&'a Path>; 2],
}

impl<'a> GivenFiles<'a> {
    /// Of paths that somebody owns.
    pub fn of(data: &'a [Option<PathBuf>; 2], weights: &'a [Option<PathBuf>; 2]) -> Self {
        Self {
            data: data.each_ref().map(|path| path.as_deref()),
            weights: weights.each_ref().map(|path| path.as_deref()),
        }
    }

    pub(crate) fn open(&self, endpoint: usize) -> Result<Option<(String, DataSet)>> {
        match (self.data[endpoint], self.weights[endpoint]) {
            (None, None) => Ok(None),
            (Some(path), weights) => {
                let set = with_weights(DataSet::file(path)?, weights)?;
                Ok(Some((path.display().to_string(), set)))
            }
            (None, Some(_)) => Err(Error::Refused(words!(
                Setting::new(["weights", "end_weights"][endpoint]),
                " belongs to rows that are given; give them too: ",
                Setting::to(
                    ["data", "end"][endpoint],
                    ["DATA.npy", "DATA1.npy"][endpoint]
                )
            ))),
        }
    }
}

/// Rows with the weights of a file, if there is one.
fn with_weights(set: DataSet, weights: Option<&Path>) -> Result<DataSet> {
    match weights {
        None => Ok(set),
        Some(path) => {
            let rows = set.record().rows.unwrap_or(0);
            set.with_weights(GivenWeights::file(path, rows)?)
        }
    }
}

/// See the module's text.
pub struct Judging {
    dim: usize,
    endpoints: Vec<Endpoint>,
    /// Where the rows came from, in words.
    pub origin: String,
    /// The rows were trained on: there are no others.
    pub only_trained: bool,
    history: Option<History>,
    /// Points generated at the model's smallest time.
    pub generated: Option<Vec<f64>>,
}

impl Judging {
    /// Rows from files, or from the systems the model was trained on.
    pub fn gather(content: &Content, files: GivenFiles<'_>, model: &Path) -> Result<Self> {
        Self::of(content, [files.open(0)?, files.open(1)?], model)
    }

    /// Rows of data sets, each under the name it is told by, or from the systems the model was trained on.
    pub fn of(
        content: &Content,
        sets: [Option<(String, DataSet)>; 2],
        model: &Path,
    ) -> Result<Self> {
        let ends = if content.spec.process.is_interpolant() {
            2
        } else {
            1
        };
        if ends == 1 && sets[1].is_some() {
            return Err(Error::Refused(words!(
                Setting::new("end"),
                " is for interpolants, and the model's process is ",
                content.spec.process.name(),
                "; leave it out"
            )));
        }
        if content.spec.coupling.is_some() {
            return Err(Error::Refused(words!(
                "what a model is judged by is made of independent pairs of rows, and this one was trained with ",
                Setting::to("coupling", "optimal-transport"),
                "; its free energies tell by how much their routes disagree"
            )));
        }
        let endpoints = sets
            .iter()
            .take(ends)
            .enumerate()
            .map(
                |(k, set)| match (set, training_file(&content.record, model, k)) {
                    (Some((name, set)), file) => from_set(content, (name, set), file, k),
                    (None, Some((name, set))) => from_set(content, (&name, &set), None, k),
                    (None, None) => from_record(content, k),
                },
            )
            .collect::<Result<Vec<_>>>()?;
        let only_trained = endpoints.iter().any(|endpoint| endpoint.fresh.is_empty());
        let dim = content.spec.dim;
        let origin = origin(&endpoints, dim, only_trained);
        Ok(Self {
            dim,
            endpoints,
            origin,
            only_trained,
            history: history(model, content.record.settings.stages.len()),
            generated: None,
        })
    }

    /// Generates samples at the smallest time of the model: down from noise, or, for an interpolant with a learned velocity, from rows of
    /// the second endpoint. Without a velocity there are none.
    pub fn generate(
        &mut self,
        content: &Content,
        energy: &LearnedEnergy,
        count: usize,
        seed: u64,
        progress: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let spec = &content.spec;
        if count == 0 || (spec.process.is_interpolant() && !spec.velocity) {
            return Ok(());
        }
        if let Some(end) = self.endpoints.get(1) {
            let rows: Vec<&[f64]> = end.rows(self.only_trained).chunks(spec.dim).collect();
            // All over the file: its rows may hang together.
            let kept = rows.len().min(count);
            let spread = (0..kept).flat_map(|k| rows[k * rows.len() / kept]);
            let mut points: Vec<f64> = spread.copied().collect();
            let times: Vec<f64> = spec.grid.times().iter().rev().copied().collect();
            let velocity = energy.velocity()?;
            let ends = (spec.process.horizon(), times[0]);
            depart(&spec.process, &velocity, ends, seed, 0, &mut points)?;
            let flow = Flow {
                energy,
                process: &spec.process,
                velocity: Some(&velocity),
                solver: Solver::Heun,
                divergence: None,
                seed,
            };
            flow.carry(&times, 0, &mut points, &mut |share| {
                progress((share * times.len() as f64) as usize);
            })?;
            self.generated = Some(points);
            return Ok(());
        }
        let mut times = times_of(&spec.grid);
        // Not the last step to time 0: what is compared is the marginal at the smallest time, its noise included.
        times.pop();
        let task = Task {
            energy,
            process: &spec.process,
            times: &times,
            start: &Prior::of(spec),
            particles: 0..count as u64,
            seed,
        };
        self.generated = Some(Sampler::by_name("ddim")?.run(&task, progress)?);
        Ok(())
    }

    /// Rows to judge by, in the model's coordinates.
    pub fn rows(&self) -> Data<'_> {
        self.data(|end| Some(end.rows(self.only_trained)))
            .unwrap_or(Data {
                start: &[],
                end: None,
                dim: self.dim,
            })
    }

    /// All rows that are known, trained on and not, in the model's coordinates: those of the start, and those of the second endpoint.
    pub fn all_rows(&self) -> (Vec<f64>, Option<Vec<f64>>) {
        let all = |end: &Endpoint| {
            let mut rows = end.trained.clone().unwrap_or_default();
            rows.extend(&end.fresh);
            rows
        };
        (all(&self.endpoints[0]), self.endpoints.get(1).map(all))
    }

    fn data<'a>(&'a self, of: impl Fn(&'a Endpoint) -> Option<&'a [f64]>) -> Option<Data<'a>> {
        Some(Data {
            start: of(&self.endpoints[0])?,
            end: match self.endpoints.get(1) {
                Some(end) => Some(of(end)?),
                None => None,
            },
            dim: self.dim,
        })
    }

    /// log of the volume that the model's coordinates lose, on average over the rows.
    fn log_volume(&self, content: &Content) -> f64 {
        let map = &content.standardisation;
        let rows = self.rows().start.chunks_exact(self.dim);
        let count = rows.len();
        if !map.is_curved() || count == 0 {
            return map.log_volume();
        }
        rows.map(|row| map.log_volume_at(row)).sum::<f64>() / count as f64
    }

    fn facts(&self, content: &Content) -> Facts {
        let (spec, stages) = (&content.spec, &content.record.settings.stages);
        let mut terms = stages.iter().flat_map(|stage| &stage.objectives);
        Facts {
            log_volume: self.log_volume(content),
            compares_levels: Some(terms.any(|term| term.objective.objective().compares_levels())),
            only_trained: self.only_trained,
            endless: spec.process.is_interpolant()
                && spec.network.particles().is_some()
                && !spec.without_centre,
            levelled: content.record.levelled,
        }
    }

    /// Runs the checks.
    pub fn diagnosis(
        &self,
        content: &Content,
        energy: &dyn Energy,
        settings: DiagnosisSettings,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Diagnosis> {
        let trained = if self.only_trained {
            None
        } else {
            self.data(|end| end.trained.as_deref())
        };
        let subject = Subject {
            energy,
            process: &content.spec.process,
            grid: &content.spec.grid,
            rows: self.rows(),
            trained,
            generated: self.generated.as_deref(),
            history: self.history,
            periods: content.spec.periods(),
            facts: self.facts(content),
        };
        Ok(Diagnosis::run(&subject, settings, progress)?)
    }
}

/// How much is computed, for so many points of the larger checks.
pub fn diagnosis_settings(points: usize, seed: u64) -> DiagnosisSettings {
    DiagnosisSettings {
        classified: points,
        path_points: (points / 16).max(20),
        basin_points: points,
        compared: (points * 3 / 16).max(20),
        components: DiagnosisSettings::default().components,
        seed,
    }
}

/// Where rows came from, in words.
pub(crate) fn origin(endpoints: &[Endpoint], dim: usize, only_trained: bool) -> String {
    let names: Vec<&str> = endpoints.iter().map(|end| end.name.as_str()).collect();
    let rows = |endpoint: &Endpoint| endpoint.rows(only_trained).len() / dim;
    let weighted = if endpoints.iter().any(|endpoint| endpoint.weighted) {
        ", kept by their weights"
    } else {
        ""
    };
    format!(
        "{}, {} rows that were {}trained on{weighted}",
        names.join(" and "),
        rows(&endpoints[0]),
        if only_trained { "" } else { "not " }
    )
}

/// There are no rows to judge by.
pub(crate) fn no_rows(endpoint: usize) -> Error {
    let (what, key, file) = [
        ("", "data", "DATA.npy"),
        (" of the second endpoint", "end", "DATA1.npy"),
    ][endpoint];
    Error::Refused(words!(
        "the model was trained on a file, so there are no rows",
        what,
        " to judge it by; give them: ",
        Setting::to(key, file)
    ))
}

impl Endpoint {
    pub(crate) fn rows(&self, trained: bool) -> &[f64] {
        match &self.trained {
            Some(rows) if trained => rows,
            _ => &self.fresh,
        }
    }
}

/// The file that the run's settings name as that of an endpoint's training, if it is there and still the same.
pub(crate) fn training_file<O>(
    record: &Record<O>,
    model: &Path,
    endpoint: usize,
) -> Option<(String, DataSet)> {
    let expected = record.data.get(endpoint)?.sha256.as_ref()?;
    let settings = Settings::read(&model.with_file_name(CONFIG)).ok()?;
    let named = [&settings.data, &settings.end]
        .into_iter()
        .nth(endpoint)?
        .clone()?;
    let folder = model.parent().unwrap_or(Path::new(""));
    // As it was named, from here or from the folder of the run; or moved along with the run.
    let places: [Option<PathBuf>; 3] = [
        Some(named.clone()),
        Some(folder.join(&named)),
        named.file_name().map(|name| folder.join(name)),
    ];
    let sets = places.into_iter().flatten().filter(|path| path.is_file());
    let mut sets =
        sets.filter_map(|path| Some((path.display().to_string(), DataSet::file(&path).ok()?)));
    let (name, set) = sets.find(|(_, set)| set.record().sha256.as_ref() == Some(expected))?;
    let weights = training_weights(record, model, (endpoint, set.record().rows?));
    let set = match weights {
        Some((_, weights)) => set.with_weights(weights).ok()?,
        None => set,
    };
    Some((name, set))
}

/// The weights that the run's settings name for an endpoint's rows, if they are there and still the same.
fn training_weights<O>(
    record: &Record<O>,
    model: &Path,
    (endpoint, rows): (usize, usize),
) -> Option<(PathBuf, GivenWeights)> {
    let expected = record.data.get(endpoint)?.weights.as_ref()?;
    let settings = Settings::read(&model.with_file_name(CONFIG)).ok()?;
    let named = [settings.weights, settings.end_weights]
        .into_iter()
        .nth(endpoint)??;
    let folder = model.parent().unwrap_or(Path::new(""));
    let places = [named.clone(), folder.join(&named)];
    places.into_iter().find_map(|path| {
        let weights = GivenWeights::file(&path, rows).ok()?;
        (weights.sha256 == *expected).then_some((path, weights))
    })
}

/// The files that a question about a model is asked of: those that are given, or those that it was trained on, where they are found. The
/// very rows of a training come with its weights.
pub fn asked_files(
    content: &Content,
    model: &Path,
    data: Option<PathBuf>,
    weights: Option<PathBuf>,
) -> Result<Option<(PathBuf, Option<PathBuf>)>> {
    if data.is_none() && weights.is_some() {
        return Err(Error::Refused(words!(
            Setting::new("weights"),
            " belongs to rows that are given; give them too: ",
            Setting::to("data", "DATA.npy")
        )));
    }
    let Some(data) = data.or_else(|| training_path(content, model)) else {
        return Ok(None);
    };
    let trained_on = content.record.data.first();
    let trained_with = trained_on.and_then(|record| record.weights.as_ref());
    if weights.is_some() || trained_with.is_none() {
        return Ok(Some((data, weights)));
    }
    let set = DataSet::file(&data)?;
    let same = trained_on.is_some_and(|record| record.sha256 == set.record().sha256);
    if !same {
        return Ok(Some((data, None)));
    }
    let rows = set.record().rows.unwrap_or(0);
    match training_weights(&content.record, model, (0, rows)) {
        Some((path, _)) => Ok(Some((data, Some(path)))),
        None => Err(lost_weights(&data.display().to_string(), "weights")),
    }
}

fn lost_weights(name: &str, key: &'static str) -> Error {
    Error::Refused(words!(
        "the model was trained on ",
        name,
        " with weights of its rows, which are not found; give them: ",
        Setting::to(key, "WEIGHTS.npy")
    ))
}

/// Where the rows are that a model was trained on, if they are there and still the same.
pub fn training_path(content: &Content, model: &Path) -> Option<PathBuf> {
    training_file(&content.record, model, 0).map(|(path, _)| PathBuf::from(path))
}

/// Rows that are given: if they are those that were trained on, the held-out ones are known. If not, those of the training come from its own file.
fn from_set(
    content: &Content,
    (name, set): (&str, &DataSet),
    training: Option<(String, DataSet)>,
    endpoint: usize,
) -> Result<Endpoint> {
    let dim = content.columns();
    let name = name.to_string();
    if set.columns_given()? != dim {
        return Err(Error::Data {
            name,
            fault: DataFault::Columns {
                found: set.columns_given()?,
                expected: dim,
            },
        });
    }
    set.refuse_non_finite()?;
    let prepare = |set: &DataSet| {
        // Rounded values were learned spread over their steps.
        let steps = content.record.data.get(endpoint);
        let steps = steps.map_or(&[][..], |data| &data.steps);
        let view = content.view().map(Arc::new);
        set.prepare_through(&content.standardisation, steps, view)
    };
    split(&content.record, (name, set), training, endpoint, &prepare)
}

/// Rows that are given, apart from those that were trained on.
pub(crate) fn split<O>(
    record: &Record<O>,
    (name, set): (String, &DataSet),
    training: Option<(String, DataSet)>,
    endpoint: usize,
    prepare: &dyn Fn(&DataSet) -> Result<Prepared>,
) -> Result<Endpoint> {
    let settings = &record.settings;
    // Which rows other streams held out is not known: all of them count as trained on.
    let known = record.streams == STREAMS;
    let rule = settings.held_out.filter(|_| known);
    let share = rule.map_or(0.0, |rule| rule.share);
    let shares = |set: &DataSet, share: f64| -> Result<[Vec<f64>; 2]> {
        let found = prepare(set)?.shares((endpoint, settings.seed), share, MOST_ROWS);
        found.ok_or(Error::Nothing)
    };
    let trained_on = record.data.get(endpoint);
    let same = trained_on.is_some_and(|data| data.sha256 == set.record().sha256);
    // The very rows of the training count as they did there, unless told otherwise.
    let lost =
        same && set.weights().is_none() && trained_on.is_some_and(|data| data.weights.is_some());
    let set = match (&training, lost) {
        (_, false) => set,
        (Some((_, file)), true) if file.weights().is_some() => file,
        _ => return Err(lost_weights(&name, ["weights", "end_weights"][endpoint])),
    };
    let (fresh, trained) = if same {
        let [trained, fresh] = shares(set, share)?;
        (fresh, Some(trained))
    } else {
        let trained = match &training {
            Some((_, file)) => Some(shares(file, share)?[0].clone()),
            None => None,
        };
        let [fresh, _] = shares(set, 0.0)?;
        (fresh, trained)
    };
    Ok(Endpoint {
        fresh,
        trained,
        name,
        weighted: set.weights().is_some(),
    })
}

/// The system the model was trained on: fresh draws, and the very rows if a fixed set was drawn.
fn from_record(content: &Content, endpoint: usize) -> Result<Endpoint> {
    let record = content.record.data.get(endpoint);
    let Some((record, system_seed)) =
        record.and_then(|data: &DataRecord| Some((data, data.system_seed?)))
    else {
        return Err(no_rows(endpoint));
    };
    let system = System::by_name(&record.name, content.columns(), system_seed)?;
    let seed = content.record.settings.seed;
    let (judge, drawn) = (
        Purpose::Judge(endpoint as u32),
        Purpose::Drawn(endpoint as u32),
    );
    let standardise = |rows: Vec<f32>| -> Vec<f64> {
        let rows: Vec<f64> = rows.into_iter().map(f64::from).collect();
        let mut rows = content.rows_inward(rows);
        content.standardisation.to_model(&mut rows);
        rows
    };
    Ok(Endpoint {
        fresh: standardise(system.sample_for(judge, MOST_ROWS, seed)),
        trained: record
            .rows
            .filter(|_| content.record.streams >= 2)
            .map(|rows| standardise(system.sample_for(drawn, rows.min(MOST_ROWS), seed))),
        name: format!("fresh rows of {}", record.name),
        weighted: false,
    })
}

/// Lines of a run's log; none if there is no log.
pub fn log_lines(path: &Path) -> Vec<serde_json::Value> {
    let text = crate::files::read_text(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The held-out loss in the last stage, if the log beside the model tells of it.
pub(crate) fn history(model: &Path, stages: usize) -> Option<History> {
    let last_stage = stages.saturating_sub(1) as u64;
    let losses: Vec<(u64, f64)> = log_lines(&model.with_file_name(LOG))
        .iter()
        .filter(|entry| entry["stage"].as_u64() == Some(last_stage))
        .filter_map(|entry| {
            Some((
                entry["step"].as_u64()?,
                entry["held_out"]["total"].as_f64()?,
            ))
        })
        .collect();
    History::of(&losses)
}
