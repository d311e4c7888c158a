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
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::Resampling;
use diffclf_run::Watch;
use diffclf_run::data::read_rows;
use diffclf_run::density::Quantity;
use diffclf_run::error::{Error, Result};
use diffclf_run::outputs;
use diffclf_run::states::{StatesAnnealing, StatesGeneration, StatesJudgement, densities};
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
        (&model.content, energy),
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
    let asked = StatesAnnealing {
        target,
        particles: smc.particles,
        runs: smc.runs,
        sweeps: smc.moves.div_ceil(sites),
        levels: smc.levels,
        resample_below: if ais { 0.0 } else { smc.threshold },
        kernel,
        seed: smc.seed,
    };
    let done = asked.run((&model.content, energy), &Terminal::new(out.quiet))?;
    let found = &done.found;
    let rows = found.weights.len();
    let points = match &out.weights {
        Some(path) => {
            outputs::write(path, out.force, |writer| {
                write_npy(&[rows], &found.weights, writer)
            })?;
            found.rows.clone()
        }
        None => {
            let mut ancestors = vec![0; rows];
            let mut stream = Stream::new(smc.seed, Purpose::Equalise, 0, 0);
            Resampling::Systematic.draw(&found.weights, &mut stream, &mut ancestors);
            ancestors
                .iter()
                .flat_map(|&a| &found.rows[a as usize * sites..][..sites])
                .copied()
                .collect()
        }
    };
    outputs::write(&out.output, out.force, |writer| {
        write_npy(&[rows, sites], &points, writer)
    })?;
    let found = done.finish(&format!(
        "{rows} rows of states in {}",
        out.output.display()
    ));
    let of = match &asked.target {
        Some(target) => format!("the weights of {target}"),
        None => "the model at its smallest time (0 for a density)".into(),
    };
    print(&format!(
        "log Z of {of}: {:.4}\neffective share of the weights: {:.3}\n",
        found.log_z, found.ess
    ))?;
    out.write_record(&json!({
        "command": "anneal",
        "model": name,
        "target": asked.target,
        "particles": rows,
        "runs": asked.runs,
        "sweeps": asked.sweeps,
        "seed": smc.seed,
        "log_z": found.log_z,
        "ess": found.ess,
    }))
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
