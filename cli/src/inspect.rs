//! `diffclf inspect`: everything a model file or checkpoint says about itself.

use crate::error::{Error, Result};
use crate::files::{model_path, read_bytes};
use crate::print::print;
use diffclf::energy::{ModelSpec, Scale};
use diffclf::format::model::ModelFile;
use diffclf::model::Content;
use diffclf::train::StageSettings;
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf inspect runs/mine/model.safetensors
  diffclf inspect runs/mine/checkpoint.safetensors --json | jq .content.content.record";

/// Tell everything that a model file holds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model file or checkpoint, or the run folder that holds the model
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let path = model_path(&args.model);
    let about = |source| Error::about(&path, source);
    let bytes = read_bytes(&path)?;
    let file = ModelFile::from_bytes(&bytes).map_err(about)?;
    let tensors = || file.tensors().iter();
    if args.json {
        let tensors: Vec<_> = tensors()
            .map(|(name, tensor)| json!({ "name": name, "type": tensor.data().type_name(), "shape": tensor.shape() }))
            .collect();
        let document =
            json!({ "kind": file.kind(), "content": file.content(), "tensors": tensors });
        return print(&format!("{document:#}\n"));
    }
    // A checkpoint wraps what a model file holds.
    let content = match file.content().get("content") {
        Some(content) => Content::deserialize(content).map_err(|error| {
            about(diffclf::Error::ModelContent {
                problem: format!(
                    "its description does not fit ({error}); it was written by another release"
                ),
            })
        })?,
        None => file.content_as().map_err(about)?,
    };
    let mut text = format!(
        "{}: a {}, {} bytes, intact\n\n",
        path.display(),
        file.kind(),
        bytes.len()
    );
    for (name, value) in facts(&content) {
        text += &format!("  {name:<18}{value}\n");
    }
    text += "\nTensors\n";
    for (name, tensor) in tensors() {
        let shape: Vec<_> = tensor.shape().iter().map(usize::to_string).collect();
        text += &format!(
            "  {name:<28}{} {}\n",
            tensor.data().type_name(),
            shape.join(" x ")
        );
    }
    print(&text)
}

/// The description, line by line.
pub fn facts(content: &Content) -> Vec<(&'static str, String)> {
    let (spec, record) = (&content.spec, &content.record);
    let settings = &record.settings;
    let words = |value: serde_json::Value| -> String {
        match value {
            serde_json::Value::Object(fields) => {
                // The name of a choice first, then its parameters.
                let mut fields: Vec<_> = fields.into_iter().collect();
                fields.sort_by_key(|(key, _)| key != "kind");
                let fields = fields
                    .into_iter()
                    .map(|(key, value)| match (key.as_str(), value) {
                        ("kind", serde_json::Value::String(kind)) => kind,
                        (_, value) => format!("{key} {value}"),
                    });
                fields.collect::<Vec<_>>().join(", ")
            }
            serde_json::Value::String(text) => text,
            value => value.to_string(),
        }
    };
    let shown = |numbers: &[f64]| -> String {
        let few: Vec<_> = numbers.iter().take(4).map(|x| format!("{x:.6}")).collect();
        let more = if numbers.len() > few.len() {
            ", ..."
        } else {
            ""
        };
        format!("[{}{more}]", few.join(", "))
    };
    let mut facts = vec![
        ("dimension", spec.dim.to_string()),
        ("process", words(json!(spec.process))),
        (
            "time grid",
            format!(
                "{} levels from {} to {}, {}",
                spec.grid.levels(),
                spec.grid.t_min(),
                spec.grid.t_max(),
                words(json!(spec.grid.spacing()))
            ),
        ),
        ("network", words(json!(spec.network))),
        ("energy", words(json!(spec.form))),
        ("velocity", velocity_text(spec)),
        ("time features", spec.features.to_string()),
        ("parameters", spec.layout().len().to_string()),
        (
            "data in model",
            format!("mean {}, variance {:.6}", shown(&spec.mean), spec.variance),
        ),
        (
            "standardisation",
            format!(
                "(x - {}) / {}",
                shown(&content.standardisation.shift),
                match &content.standardisation.scale {
                    Scale::Common(scale) => format!("{scale:.6}"),
                    Scale::Columns(scales) => shown(scales),
                }
            ),
        ),
        ("units", record.units.clone()),
    ];
    for data in &record.data {
        let rows = data
            .rows
            .map_or("sampled afresh".into(), |rows| format!("{rows} rows"));
        let seed = data
            .system_seed
            .map_or(String::new(), |seed| format!(", system with seed {seed}"));
        let sum = data
            .sha256
            .as_ref()
            .map_or(String::new(), |sum| format!(", sha256 {sum}"));
        facts.push(("trained on", format!("{}{seed}, {rows}{sum}", data.name)));
    }
    facts.push(("steps", format!("{} of {}", record.steps, settings.steps())));
    facts.extend(
        settings
            .stages
            .iter()
            .map(|stage| ("stage", stage_text(stage))),
    );
    facts.extend([
        ("batch", settings.batch.to_string()),
        ("times", words(json!(settings.times))),
        (
            "clip",
            settings.clip.map_or("none".into(), |x| x.to_string()),
        ),
        (
            "average",
            settings.average.map_or("none".into(), |x| x.to_string()),
        ),
        (
            "held out",
            settings.held_out.map_or("nothing".into(), |rule| {
                format!(
                    "{} of the rows, every {} steps, patience {}",
                    rule.share, rule.every, rule.patience
                )
            }),
        ),
        (
            "optimiser",
            format!("adam, {}", words(json!(settings.adam))),
        ),
        ("seed", settings.seed.to_string()),
        ("written by", format!("diffclf {}", record.version)),
    ]);
    facts
}

fn velocity_text(spec: &ModelSpec) -> String {
    match (spec.process.is_interpolant(), spec.velocity) {
        (false, _) => "follows from the score",
        (true, true) => "a network of its own: sample and anneal can use it",
        (true, false) => "none: train with +velocity to sample it",
    }
    .into()
}

fn stage_text(stage: &StageSettings) -> String {
    let terms = stage.objectives.iter().map(|term| {
        let name = term.objective.to_string();
        if term.weight == 1.0 {
            name.to_string()
        } else {
            format!("{}*{name}", term.weight)
        }
    });
    format!(
        "{} steps on {}, {} levels, rate {} {:?}, warm-up {}",
        stage.steps,
        terms.collect::<Vec<_>>().join("+"),
        stage.levels,
        stage.rate.peak,
        stage.rate.decay,
        stage.rate.warm_up
    )
    .to_lowercase()
}
