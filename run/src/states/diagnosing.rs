//! Is a model of states any good? Rows to judge it by, and its verdict.

use super::rows::{not_a_symbol, symbol_of};
use crate::data::DataSet;
use crate::diagnose::{Diagnosed, Diagnosing};
use crate::error::{DataFault, Error, Result};
use crate::judging::{
    Endpoint, GivenFiles, MOST_ROWS, diagnosis_settings, history, no_rows, origin, split,
    training_file,
};
use crate::memory::refuse_rows;
use crate::watch::Watch;
use crate::words;
use crate::words::Setting;
use diffclf::discrete::diagnose::{StatesDiagnosis, StatesSubject};
use diffclf::discrete::model::Content;
use diffclf::discrete::sample::{Method, Reversal};
use diffclf::discrete::system::{self, Target};
use diffclf::discrete::{Energy, LearnedStates};
use diffclf::energy::Coordinates;
use diffclf::metric::diagnose::{Data, DiagnosisSettings, History};
use diffclf::rng::{Purpose, Stream};
use std::path::Path;

/// What a model of states is judged by.
pub struct StatesJudging {
    rows: Endpoint,
    sites: usize,
    history: Option<History>,
    /// Where the rows came from, in words.
    pub origin: String,
    /// The rows were trained on: there are no others.
    pub only_trained: bool,
    /// Rows that the model made at its smallest time.
    pub generated: Option<Vec<u8>>,
}

impl StatesJudging {
    /// Rows from files, or from the system the model was trained on.
    pub fn gather(content: &Content, files: GivenFiles<'_>, model: &Path) -> Result<Self> {
        if files.data[1].is_some() || files.weights[1].is_some() {
            return Err(Error::Refused(words!(
                Setting::new("end"),
                " is for interpolants, and states have none; leave it out"
            )));
        }
        Self::of(content, files.open(0)?, model)
    }

    /// Rows of a data set under the name it is told by, or from the system the model was trained on.
    pub fn of(content: &Content, set: Option<(String, DataSet)>, model: &Path) -> Result<Self> {
        let sites = content.spec.space.sites;
        let rows = match (set, training_file(&content.record, model, 0)) {
            (Some((name, set)), file) => given(content, (name, &set), file)?,
            (None, Some((name, set))) => given(content, (name, &set), None)?,
            (None, None) => drawn(content)?,
        };
        let only_trained = rows.fresh.is_empty();
        Ok(Self {
            origin: origin(std::slice::from_ref(&rows), sites, only_trained),
            only_trained,
            history: history(model, content.record.settings.stages.len()),
            generated: None,
            rows,
            sites,
        })
    }

    /// Makes rows by the chain in reverse, jump by jump.
    pub fn generate(
        &mut self,
        content: &Content,
        energy: &dyn Energy,
        count: usize,
        seed: u64,
        progress: &mut dyn FnMut(usize),
    ) -> Result<()> {
        if count > 0 {
            let reversal = Reversal {
                energy,
                method: Method::Jumps,
                times: content.spec.grid.times(),
                seed,
            };
            self.generated = Some(reversal.run(0..count, progress)?.0);
        }
        Ok(())
    }

    /// Rows to judge by.
    pub fn rows(&self) -> Data<'_> {
        self.data(self.rows.rows(self.only_trained))
    }

    fn data<'a>(&self, start: &'a [f64]) -> Data<'a> {
        Data {
            start,
            end: None,
            dim: self.sites,
        }
    }

    /// Runs the checks.
    pub fn diagnosis(
        &self,
        content: &Content,
        energy: &dyn Energy,
        settings: DiagnosisSettings,
        progress: &mut dyn FnMut(usize),
    ) -> Result<StatesDiagnosis> {
        let trained = self.rows.trained.as_deref().filter(|_| !self.only_trained);
        let stages = &content.record.settings.stages;
        let mut terms = stages.iter().flat_map(|stage| &stage.objectives);
        let subject = StatesSubject {
            energy,
            grid: &content.spec.grid,
            rows: self.rows(),
            trained: trained.map(|rows| self.data(rows)),
            generated: self.generated.as_deref(),
            history: self.history,
            compares_levels: Some(terms.any(|term| term.objective.objective().compares_levels())),
            only_trained: self.only_trained,
            levelled: content.record.levelled,
        };
        Ok(StatesDiagnosis::run(&subject, settings, progress)?)
    }
}

/// Rows that are given; of those of the training the held-out ones are known.
fn given(
    content: &Content,
    (name, set): (String, &DataSet),
    training: Option<(String, DataSet)>,
) -> Result<Endpoint> {
    let space = content.spec.space;
    let found = set.columns_given()?;
    if found != space.sites {
        let expected = space.sites;
        let fault = DataFault::Columns { found, expected };
        return Err(Error::Data { name, fault });
    }
    let identity = Coordinates::identity(space.sites);
    let rows = split(&content.record, (name, set), training, 0, &|set| {
        set.prepare(&identity)
    })?;
    let every = rows.fresh.iter().chain(rows.trained.iter().flatten());
    for (k, value) in every.enumerate() {
        let value = *value as f32;
        if symbol_of(value, space.states).is_none() {
            let place = (k / space.sites, k % space.sites);
            return Err(not_a_symbol(&rows.name, place, value, Some(space.states)));
        }
    }
    Ok(rows)
}

/// Fresh draws of the system that a model was trained on, and the very rows if a fixed set was drawn.
fn drawn(content: &Content) -> Result<Endpoint> {
    let record = content.record.data.first();
    let known = record.filter(|data| system::is_known(&data.name) && data.system_seed.is_some());
    let record = known.ok_or_else(|| no_rows(0))?;
    let target = super::exact(content, None, None)?.target;
    let seed = content.record.settings.seed;
    let trained = record.rows.map(|rows| rows.min(MOST_ROWS));
    Ok(Endpoint {
        fresh: draws(&*target, Purpose::Judge(0), MOST_ROWS, seed),
        trained: trained.map(|rows| draws(&*target, Purpose::Drawn(0), rows, seed)),
        name: format!("fresh rows of {}", record.name),
        weighted: false,
    })
}

/// Rows of a system as numbers.
pub(crate) fn draws(target: &dyn Target, purpose: Purpose, count: usize, seed: u64) -> Vec<f64> {
    let mut row = vec![0; target.space().sites];
    let mut rows = Vec::with_capacity(count * row.len());
    for k in 0..count {
        target.sample(&mut Stream::new(seed, purpose, 0, k as u64), &mut row);
        rows.extend(row.iter().map(|s| f64::from(*s)));
    }
    rows
}

impl Diagnosing {
    /// Makes the checks of a model of states.
    pub fn run_states(
        &self,
        (content, energy): (&Content, &LearnedStates),
        watch: &dyn Watch,
    ) -> Result<Diagnosed<StatesDiagnosis>> {
        let sites = content.spec.space.sites;
        refuse_rows("points", self.points, sites * content.spec.symbols(), 32)?;
        refuse_rows("generate", self.generate, sites, 16)?;
        let files = GivenFiles::of(&self.data, &self.weights);
        let judging = StatesJudging::gather(content, files, &self.model)?;
        self.judge_states(judging, (content, energy), watch)
    }

    /// Makes them by rows that are gathered.
    pub fn judge_states(
        &self,
        mut judging: StatesJudging,
        (content, energy): (&Content, &LearnedStates),
        watch: &dyn Watch,
    ) -> Result<Diagnosed<StatesDiagnosis>> {
        let settings = diagnosis_settings(self.points, self.seed);
        let mut bar = watch.begin("diagnose", StatesDiagnosis::PARTS as u64 + 1, 0);
        judging.generate(content, energy, self.generate, self.seed, &mut |_| {
            bar.set(0, &|| "rows".into());
        })?;
        let diagnosis = judging.diagnosis(content, energy, settings, &mut |done| {
            bar.set(1 + done as u64, &|| "checks".into());
        })?;
        bar.finish("done");
        Ok(Diagnosed {
            diagnosis,
            settings,
            origin: judging.origin,
            only_trained: judging.only_trained,
        })
    }
}
