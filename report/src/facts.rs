//! A model in words: everything its file says about it, line by line.

use diffclf::discrete::model as states;
use diffclf::energy::{Kind, ModelSpec, Scale};
use diffclf::model::{Content, Record};
use diffclf::process::TimeGrid;
use diffclf::train::StageSettings;
use serde_json::json;
use std::fmt::Display;

/// The description, line by line.
pub fn facts(content: &Content) -> Vec<(&'static str, String)> {
    let (spec, record) = (&content.spec, &content.record);
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
        ("dimension", dimension_text(content)),
        ("process", words(json!(spec.process))),
        ("time grid", grid_text(&spec.grid)),
        ("network", words(json!(spec.network))),
        ("energy", energy_text(spec)),
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
                    Scale::Matrix(rows) => format!("a matrix of {} rows (whitened)", rows.len()),
                }
            ),
        ),
        ("units", record.units.clone()),
    ];
    let kinds = content.standardisation.kinds.iter().enumerate();
    let named = |j: usize| {
        let names = record.data.first().map_or(&[][..], |data| &data.columns);
        names.get(j).cloned().unwrap_or_else(|| j.to_string())
    };
    facts.extend(
        kinds
            .filter(|(_, kind)| **kind != Kind::Real)
            .map(|(j, kind)| ("column", format!("{}: {}", named(j), kind.words()))),
    );
    facts.extend(record_facts(record));
    facts
}

/// A choice in words: its name first, then its parameters.
fn words(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(fields) => {
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
}

fn grid_text(grid: &TimeGrid) -> String {
    format!(
        "{} levels from {} to {}, {}",
        grid.levels(),
        grid.t_min(),
        grid.t_max(),
        words(json!(grid.spacing()))
    )
}

/// A model of states, line by line.
pub fn states_facts(content: &states::Content) -> Vec<(&'static str, String)> {
    let (spec, record) = (&content.spec, &content.record);
    let mut facts = vec![
        (
            "rows",
            format!("{} sites of {} states", spec.space.sites, spec.space.states),
        ),
        ("process", words(json!(spec.process))),
        ("time grid", grid_text(&spec.grid)),
        ("network", words(json!(spec.network))),
        ("time features", spec.features.to_string()),
        ("parameters", spec.layout().len().to_string()),
    ];
    facts.extend(record_facts(record));
    facts
}

/// How a model was trained, line by line.
fn record_facts<O: Display>(record: &Record<O>) -> Vec<(&'static str, String)> {
    let settings = &record.settings;
    let mut facts = Vec::new();
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

/// The dimension of log-densities, and what becomes of rows that have more numbers.
fn dimension_text(content: &Content) -> String {
    let (dim, columns) = (content.spec.dim, content.columns());
    let mut text = dim.to_string();
    if content.spec.without_centre {
        text += &format!(": particles of rows of {columns} numbers without their centre");
    }
    if content.frame.is_some() {
        text += ", turned onto a frame";
    }
    text
}

/// The form, and what it stands on besides a Gaussian.
fn energy_text(spec: &ModelSpec) -> String {
    let form = words(json!(spec.form));
    match (&spec.base, &spec.springs) {
        (Some(base), _) => format!("{form}, on a mixture of {}", base.start.components()),
        (_, Some(springs)) => format!(
            "{form}, on springs of {} bonds and angles, {} torsions and pairs",
            springs.held.len(),
            springs.soft.len()
        ),
        _ => form,
    }
}

fn velocity_text(spec: &ModelSpec) -> String {
    match (spec.process.is_interpolant(), spec.velocity) {
        (false, _) => "follows from the score",
        (true, true) => "a network of its own: sample and anneal can use it",
        (true, false) => "none: train with +velocity to sample it",
    }
    .into()
}

fn stage_text<O: Display>(stage: &StageSettings<O>) -> String {
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
