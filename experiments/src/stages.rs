//! Methods compared at equal cost: they train in two stages, of which they share the first, score matching alone.

use crate::{Bench, Manner, Recipe};
use diffclf::model::{Checkpoint, Model};
use diffclf::train::State;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{read_container, read_model};
use diffclf_run::settings::Settings;
use diffclf_run::train::{Job, train};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two looks at a folder that another job has in hand.
const BUSY_PAUSE: Duration = Duration::from_secs(2);

/// `[experiment]` of a comparison of methods; `B` says how much is computed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Methods<B> {
    /// Name to objective of the second stage.
    methods: BTreeMap<String, String>,
    /// What the paper's recipe sets differently.
    paper: Settings,
    /// What all runs share.
    train: Settings,
    /// What single methods set differently, whatever the recipe.
    #[serde(default)]
    with: BTreeMap<String, Settings>,
    full: B,
    quick: B,
}

/// The comparison at one budget.
pub struct Chosen<'a, B> {
    /// Name to objective of the second stage.
    pub methods: &'a BTreeMap<String, String>,
    /// What all runs share.
    pub train: Settings,
    /// What single methods set differently.
    pub with: &'a BTreeMap<String, Settings>,
    /// How much is computed.
    pub budget: B,
}

/// How much is computed, training included.
pub trait Steps: Clone {
    /// Steps of the score stage and of the second one.
    fn steps(&mut self) -> &mut [u64; 2];
}

impl<B: Steps> Methods<B> {
    /// The comparison at a budget.
    pub fn at(&self, manner: Manner) -> Result<Chosen<'_, B>> {
        let mut budget = if manner.quick {
            &self.quick
        } else {
            &self.full
        }
        .clone();
        for steps in budget.steps() {
            *steps = (*steps as f64 * manner.share).ceil() as u64;
        }
        Ok(Chosen {
            methods: &self.methods,
            train: match manner.recipe {
                Recipe::Ours => self.train.clone(),
                Recipe::Paper => self.train.clone().overridden_by(&self.paper)?,
            },
            with: &self.with,
            budget,
        })
    }
}

impl<B> Chosen<'_, B> {
    /// The settings of a method: what all runs share, and what it sets differently.
    pub fn train_of(&self, method: &str) -> Result<Settings> {
        match self.with.get(method) {
            Some(own) => self.train.clone().overridden_by(own),
            None => Ok(self.train.clone()),
        }
    }
}

impl<B: Serialize> Chosen<'_, B> {
    /// Everything that decides the figures.
    pub fn record(&self) -> Result<serde_json::Value> {
        let record = match self.with.is_empty() {
            true => serde_json::to_value((self.methods, &self.train, &self.budget)),
            false => serde_json::to_value((self.methods, &self.train, &self.budget, self.with)),
        };
        record.map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))
    }
}

/// Trains what is not trained yet and returns the model. `settings` are those of the whole run; its score stage is kept under
/// the name `shared`, where the next method finds it; without a second stage it is what its model is.
pub fn two_stages(bench: &Bench, shared: &str, name: &str, settings: Settings) -> Result<Model> {
    let run = |name: &str, mut settings: Settings, first_stage: Option<State>| {
        let path: PathBuf = bench.folder.join("runs").join(name);
        settings.kernel = bench.kernel.clone();
        when_free(bench, || {
            train(Job {
                settings: settings.clone(),
                path: path.clone(),
                first_stage: first_stage.clone(),
                from: None,
                time: None,
                resume: true,
                force: false,
                checkpoint_every: Duration::from_secs(10),
                watch: bench.watch.clone(),
                pool: bench.pool.clone(),
            })
        })?;
        Ok::<_, Error>(path)
    };
    // The state at the end of a run of one stage is that of a run of two between its stages.
    let mut score = settings.clone();
    score.objective = Some("dsm".into());
    (score.score_steps, score.steps) = (Some(0), settings.score_steps);
    let first = run(shared, score, None)?;
    let path = match settings.steps {
        Some(0) => first,
        _ => run(name, settings, Some(last_state(&first)?))?,
    };
    read_model(&path.join("model.safetensors"))
}

/// Does work in a folder of its own; where another job of the same experiment is at it, waits: what it makes is ours too.
pub fn when_free(bench: &Bench, mut work: impl FnMut() -> Result<()>) -> Result<()> {
    let mut waited = false;
    loop {
        match work() {
            Err(Error::Busy { path }) if !bench.watch.stopped() => {
                if !waited {
                    let busy = path.display();
                    bench
                        .watch
                        .note(&format!("another process is at {busy}: waiting for it"));
                }
                waited = true;
                std::thread::sleep(BUSY_PAUSE);
            }
            other => return other,
        }
    }
}

/// The last checkpoint's state.
fn last_state(folder: &Path) -> Result<State> {
    let path = folder.join("checkpoint.safetensors");
    let checkpoint = Checkpoint::from_bytes(&read_container(&path)?)
        .map_err(|source| Error::about(&path, source))?;
    Ok(checkpoint.state)
}
