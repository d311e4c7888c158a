//! Commands on a model of states: the same flags, rows of symbols.

use crate::annealing::{OutputArgs, SmcArgs};
use crate::opened::{ModelArgs, RecordArgs};
use crate::print::print;
use crate::terminal::Terminal;
use diffclf::Error as CoreError;
use diffclf::discrete::LearnedStates;
use diffclf::discrete::model::StatesModel;
use diffclf::discrete::sample::Kernel;
use diffclf::format::npy::write_npy;
use diffclf_run::Watch;
use diffclf_run::data::read_rows;
use diffclf_run::density::Quantity;
use diffclf_run::error::{Error, Result};
use diffclf_run::outputs;
use diffclf_run::states::{
    StatesAnnealing, StatesFound, StatesGeneration, StatesJudgement, densities,
};
use diffclf_run::watch::Done;
use serde_json::json;
use std::path::Path;

/// A model of states and its energy.
pub type Opened = (StatesModel, LearnedStates);

/// `density` of states.
pub fn density(
    (model, energy): &Opened,
    quantity: Quantity,
    points: &Path,
    time: Option<f64>,
    output: &Path,
    force: bool,
    quiet: bool,
) -> Result<()> {
    let (values, dim) = read_rows(points)?;
    let name = points.display().to_string();
    let found = densities(
        quantity,
        (&model.content.spec, energy),
        (&name, &values, dim),
        time,
    )?;
    if found.values.iter().any(|value| value.is_nan()) {
        let what = "density, energy or score at these points";
        return Err(Error::Core(CoreError::ModelNotFinite {
            what,
            time: found.time,
        }));
    }
    outputs::write(output, force, |writer| {
        write_npy(&found.shape, &found.values, writer)
    })?;
    if !quiet {
        let text = format!(
            "{} rows of states at time {}, in {}",
            found.rows,
            found.time,
            output.display()
        );
        Terminal::new(quiet).note(&text);
    }
    Ok(())
}

/// `sample` of states.
pub fn sample(
    (model, energy): &Opened,
    asked: &StatesGeneration,
    name: &str,
    output: &Path,
    record: &RecordArgs,
) -> Result<()> {
    let done = asked.run((&model.content, energy), &Terminal::new(record.quiet))?;
    let sites = model.content.spec.space.sites;
    let found = &done.found;
    let number = found.rows.len() / sites;
    outputs::write(output, record.force, |writer| {
        write_npy(&[number, sites], &found.rows, writer)
    })?;
    let (above, of) = (found.clipped.above, found.clipped.of);
    record.write(|| {
        json!({
            "command": "sample",
            "model": name,
            "number": number,
            "method": found.method,
            "steps": asked.steps,
            "seed": asked.seed,
            "ratios_above_bound": above,
            "ratios": of,
        })
    })?;
    let mut text = format!("{number} rows of states in {}", output.display());
    if above > 0 {
        text +=
            &format!("; {above} of {of} ratios were above what any true density has, and were cut");
    }
    done.finish(&text);
    Ok(())
}

/// `evaluate` of states.
pub fn evaluate(
    (model, energy): &Opened,
    asked: &StatesJudgement<'_>,
    name: &str,
    all: bool,
    record: &RecordArgs,
) -> Result<()> {
    let content = &model.content;
    let done = asked.run((content, energy), &Terminal::new(record.quiet))?;
    let found = done.finish("done");
    let e = &found.evaluation;
    let mut text = format!(
        "{name} against {} ({} noise, {} sites of {} states, {} levels)\n\n",
        found.system,
        content.spec.process.generator().name(),
        content.spec.space.sites,
        content.spec.space.states,
        e.levels.len()
    );
    text += &format!(
        "  classification loss   {:.4} ± {:.4}, least {:.4}, excess {:.4} ± {:.4}\n",
        e.classification.mean,
        e.classification.error,
        e.optimum.mean,
        e.excess.mean,
        e.excess.error
    );
    if let Some(counted) = &found.enumerated {
        text += &format!(
            "  KL to the exact law   {:.5} nats as normalised, {:.5} divided by its sum; log sum {:+.5}\n",
            counted.divergence, counted.normalised_divergence, counted.log_total
        );
    }
    if let Some((learned, exact)) = found.up {
        text += &format!("  weight of the positive phase   {learned:.4}, exact {exact:.4}\n");
    }
    text += "\n  time        KL by samples       ESS\n";
    let step = if all { 1 } else { e.levels.len().div_ceil(8) };
    for level in e.levels.iter().step_by(step) {
        text += &format!(
            "  {:<9.3e}  {:+.4} ± {:.4}    {:.3}\n",
            level.time, level.divergence.mean, level.divergence.error, level.ess
        );
    }
    if !all {
        text += "(all levels with --all)\n";
    }
    print(&text)?;
    record.write(|| json!({ "model": name, "process": content.spec.process, "steps": content.record.steps, "found": found }))
}

/// What is asked of an annealing of rows of so many sites.
pub fn annealing(
    smc: &SmcArgs,
    target: Option<String>,
    sites: usize,
    resample_below: f64,
) -> Result<StatesAnnealing> {
    let kernel = match smc.moving.as_str() {
        // The usual kernel of points has no meaning here; Gibbs is the usual one of states.
        "gibbs" | "mala" => Kernel::Gibbs,
        "metropolis" => Kernel::Metropolis,
        other => {
            return Err(Error::Usage(format!(
                "--moving is {other}, expected gibbs or metropolis for states"
            )));
        }
    };
    Ok(StatesAnnealing {
        target,
        particles: smc.particles,
        runs: smc.runs,
        sweeps: smc.moves.div_ceil(sites),
        levels: smc.levels,
        resample_below,
        kernel,
        seed: smc.seed,
    })
}

/// `anneal` of states.
pub fn anneal(
    (model, energy): &Opened,
    target: Option<String>,
    smc: &SmcArgs,
    ais: bool,
    name: &str,
    out: &OutputArgs,
) -> Result<()> {
    let sites = model.content.spec.space.sites;
    let below = if ais { 0.0 } else { smc.threshold };
    let asked = annealing(smc, target, sites, below)?;
    let done = asked.run((&model.content, energy), &Terminal::new(out.quiet))?;
    let of = match &asked.target {
        Some(target) => format!("the weights of {target}"),
        None => "the model at its smallest time (0 for a density)".into(),
    };
    let about = json!({ "command": "anneal", "model": name, "target": asked.target });
    annealed(done, (&asked, sites), &of, out, about)
}

/// Writes what an annealing left, and tells of it; `about` begins the record.
pub fn annealed(
    done: Done<StatesFound>,
    (asked, sites): (&StatesAnnealing, usize),
    of: &str,
    out: &OutputArgs,
    mut about: serde_json::Value,
) -> Result<()> {
    let found = &done.found;
    let rows = found.weights.len();
    let points = match &out.weights {
        Some(path) => {
            outputs::write(path, out.force, |writer| {
                write_npy(&[rows], &found.weights, writer)
            })?;
            found.rows.clone()
        }
        None => found.equally_weighted(sites, asked.seed),
    };
    outputs::write(&out.output, out.force, |writer| {
        write_npy(&[rows, sites], &points, writer)
    })?;
    let found = done.finish(&format!(
        "{rows} rows of states in {}",
        out.output.display()
    ));
    print(&format!(
        "log Z of {of}: {:.4}\neffective share of the weights: {:.3}\n",
        found.log_z, found.ess
    ))?;
    let figures = json!({
        "particles": rows,
        "runs": asked.runs,
        "sweeps": asked.sweeps,
        "seed": asked.seed,
        "log_z": found.log_z,
        "ess": found.ess,
    });
    if let (Some(about), serde_json::Value::Object(figures)) = (about.as_object_mut(), figures) {
        about.extend(figures);
    }
    out.write_record(&about)
}

impl ModelArgs {
    /// The model, if it is one of states.
    pub fn open_states(&self) -> Result<Option<Opened>> {
        let Some(model) = diffclf_run::states::open(&self.model)? else {
            return Ok(None);
        };
        let (pool, isa) = self.machine()?;
        let energy = diffclf_run::states::energy(&model, pool, isa)?;
        Ok(Some((model, energy)))
    }
}
