//! Runs on finite state spaces: rows of symbols in, a model of states out, and what is done with one.

mod annealing;
mod composing;
mod diagnosing;
mod judging;
mod levelling;
mod rows;
mod train;
mod values;

pub use annealing::{StatesAnnealing, StatesFound};
pub use composing::{StatesCompound, read_all};
pub use diagnosing::StatesJudging;
pub(crate) use diagnosing::draws;
pub use judging::{StatesJudged, StatesJudgement};
pub use rows::{StatesRows, recognised};
pub use train::{are_meant, train};
pub use values::{StatesGenerated, StatesGeneration, densities};

use crate::error::{Error, Result};
use crate::files::{model_path, read_container};
use crate::memory;
use diffclf::discrete::LearnedStates;
use diffclf::discrete::model::{Content, StatesModel};
use diffclf::discrete::system::{self, ExactStates};
use diffclf::engine::{Isa, Pool};
use diffclf::format::model::ModelFile;
use diffclf::model::Describes;
use std::path::Path;
use std::sync::Arc;

/// The model of states in a file or a run folder; none if the file holds a model of another kind.
pub fn open(path: &Path) -> Result<Option<StatesModel>> {
    let path = model_path(path);
    let bytes = read_container(&path)?;
    let about = |source| Error::about(&path, source);
    if ModelFile::from_bytes(&bytes).map_err(about)?.kind() != Content::MODEL {
        return Ok(None);
    }
    let model = StatesModel::from_bytes(&bytes).map_err(about)?;
    let parameters = model.content.layout().len() as u128;
    memory::refuse(
        format!("a model of {parameters} parameters"),
        12 * parameters,
    )?;
    Ok(Some(model))
}

/// The energy of a model.
pub fn energy(model: &StatesModel, pool: Arc<Pool>, isa: Isa) -> Result<LearnedStates> {
    let params = model.best().to_vec();
    Ok(LearnedStates::new(
        model.content.spec.clone(),
        params,
        pool,
        isa,
    )?)
}

/// The exact densities of the system that a model was trained on, or of the one that is named.
pub fn exact(content: &Content, name: Option<&str>, seed: Option<u64>) -> Result<ExactStates> {
    let trained = content.record.data.first();
    let name = match (name, trained) {
        (Some(name), _) => name.to_string(),
        (None, Some(data)) if system::is_known(&data.name) => data.name.clone(),
        _ => {
            return Err(Error::Usage(
                "the model was trained on rows whose probabilities are not known; name a system of states to judge it by, such as ising"
                    .into(),
            ));
        }
    };
    let seed = seed.or(trained.and_then(|data| data.system_seed));
    let space = content.spec.space;
    let target = system::by_name(
        &name,
        Some(space.sites),
        Some(space.states),
        seed.unwrap_or(0),
    )?;
    Ok(ExactStates {
        target,
        process: content.spec.process,
    })
}

impl crate::session::Trained for Content {
    type Rows = Option<crate::last_word::HeldOutRows>;

    fn losses(&self, stage: usize) -> Vec<&'static str> {
        let terms = self.record.settings.stages[stage].objectives.iter();
        terms.map(|t| t.objective.objective().name()).collect()
    }

    /// Levels are made to add up to one, and held-out rows have the last word.
    fn finish(
        model: &mut StatesModel,
        held_out: &Self::Rows,
        pool: &Arc<Pool>,
        isa: Isa,
    ) -> Result<Option<String>> {
        let spec = model.content.spec.clone();
        let learned = energy(model, pool.clone(), isa)?;
        let found = levelling::shifts(&model.content, &learned);
        let place = spec.layout().get("free_energy").map(|e| e.range());
        if let (Some(place), true) = (place, found.shifts.iter().all(|f| f.is_finite())) {
            let both = [Some(&mut model.params), model.average.as_mut()];
            for params in both.into_iter().flatten() {
                let each = params[place.clone()].iter_mut().zip(&found.shifts);
                each.for_each(|(f, shift)| *f += *shift as f32);
            }
            model.content.record.levelled = found.moved;
        }
        let Some(rows) = held_out else {
            return Ok(None);
        };
        let symbols: Vec<u8> = rows.rows.iter().map(|x| *x as u8).collect();
        let mut values = vec![0.0; symbols.len() / spec.space.sites];
        let learned = energy(model, pool.clone(), isa)?;
        use diffclf::discrete::Energy;
        learned.log_density(spec.grid.t_min(), &symbols, &mut values);
        let nats = diffclf::metric::Estimate::of(&values);
        Ok(Some(format!(
            "held-out log-probability: {:.3} +- {:.3} nats per row",
            nats.mean, nats.error
        )))
    }
}
