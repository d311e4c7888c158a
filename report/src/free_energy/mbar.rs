//! MBAR, told.

use super::{
    Sheet, convergence_figure, differences, effort, facts, overlap_figure, overlap_notices,
};
use crate::page::Table;
use diffclf::free_energy::Surface;
use diffclf::metric::Estimate;
use diffclf_run::free_energy::mbar::MbarFound;
use serde_json::{Value, json};

/// What is told of MBAR; `wanted` is the error in kT that is wanted of the last state relative to the first.
pub fn mbar(found: &MbarFound, wanted: f64) -> Sheet {
    let mut figures = vec![overlap_figure(&found.overlap)];
    figures.extend(found.convergence.as_ref().map(convergence_figure));
    let mut tables = vec![states_table(found), quality(found, wanted)];
    tables.extend(target_tables(found));
    Sheet {
        title: "MBAR",
        tables,
        notices: notices(found),
        figures,
        record: record(found),
    }
}

fn record(found: &MbarFound) -> Value {
    let mut record = json!({
        "method": "mbar",
        "counts": found.counts,
        "iterations": found.iterations,
        "relative_to_state_0": found.relative,
        "covariance": found.covariance,
        "effective_samples": found.effective,
        "overlap": found.overlap,
    });
    if let Some(errors) = &found.bootstrap_errors {
        record["bootstrap_errors"] = json!(errors);
    }
    if let Some(course) = &found.convergence {
        record["convergence"] = json!(course);
    }
    if !found.expectations.is_empty() {
        let means: Vec<Estimate> = found.expectations.iter().map(|(_, e)| *e).collect();
        record["expectations"] = json!(means);
    }
    if let Some(relative) = &found.perturbed {
        record["perturbed"] = json!(relative);
    }
    if let Some(surface) = &found.surface {
        record["surface"] = json!(surface);
    }
    record
}

fn notices(found: &MbarFound) -> Vec<String> {
    let mut notices = Vec::new();
    if !found.correlated.is_empty() {
        let states = found.correlated.iter();
        let states: Vec<String> = states
            .map(|(state, g)| format!("{state} ({g:.1})"))
            .collect();
        notices.push(format!(
            "samples are correlated (statistical inefficiency) in states {}: errors are too small unless they are subsampled",
            states.join(", ")
        ));
    }
    if let Some((used, given)) = found.kept {
        notices.push(format!("{used} of {given} samples are kept"));
    }
    notices.extend(overlap_notices(&found.overlap));
    let effective = found.effective.iter().enumerate();
    if let Some((k, few)) = effective.into_iter().find(|(_, count)| **count < 20.0) {
        notices.push(format!(
            "state {k} rests on {few:.1} effective samples: its error bar cannot be trusted"
        ));
    }
    let course = found.convergence.as_ref();
    if let Some(course) = course.filter(|course| course.tension() > 3.0) {
        notices.push(format!(
            "the first and the last samples disagree by {:.1} errors: the series have not settled",
            course.tension()
        ));
    }
    notices
}

fn quality(found: &MbarFound, wanted: f64) -> Table {
    let overlap = &found.overlap;
    let last = found.relative.last().map_or(f64::NAN, |e| e.error);
    facts(
        "Quality",
        &[
            ("scalar overlap (0 to 1)", format!("{:.4}", overlap.scalar)),
            (
                "weakest link",
                overlap.links.first().map_or("none".into(), |link| {
                    format!("{} - {}: {:.4}", link.from, link.to, link.overlap)
                }),
            ),
            (
                "rows of the overlap matrix sum to 1 within",
                format!("{:.1e}", overlap.row_error),
            ),
            ("Newton steps", found.iterations.to_string()),
            ("last state, for the wanted error", effort(last, wanted)),
        ],
    )
}

fn states_table(found: &MbarFound) -> Table {
    let bootstrap = found.bootstrap_errors.as_ref();
    let mut header: Vec<String> = ["state", "samples", "delta to state 0", "error"]
        .map(String::from)
        .to_vec();
    if bootstrap.is_some() {
        header.push("bootstrap error".into());
    }
    header.extend(["Delta_f = -delta", "effective samples"].map(String::from));
    let rows = found.relative.iter().enumerate().map(|(k, e)| {
        let mut row = vec![
            k.to_string(),
            found.counts[k].to_string(),
            format!("{:.6}", e.mean),
            format!("{:.6}", e.error),
        ];
        row.extend(bootstrap.map(|errors| format!("{:.6}", errors[k])));
        row.push(format!("{:.6}", 0.0 - e.mean));
        row.push(format!("{:.1}", found.effective[k]));
        row
    });
    Table {
        caption: "delta = log(Z_k/Z_0)".into(),
        header,
        rows: rows.collect(),
    }
}

fn target_tables(found: &MbarFound) -> Vec<Table> {
    let mut tables = Vec::new();
    if !found.expectations.is_empty() {
        let row = |(path, e): &(std::path::PathBuf, Estimate)| {
            vec![
                path.display().to_string(),
                format!("{:.6}", e.mean),
                format!("{:.6}", e.error),
            ]
        };
        tables.push(Table {
            caption: format!("Expectations in state {}", found.state),
            header: ["observable", "mean", "error"].map(String::from).to_vec(),
            rows: found.expectations.iter().map(row).collect(),
        });
    }
    if let Some(relative) = &found.perturbed {
        let rows: Vec<_> = relative
            .iter()
            .enumerate()
            .map(|(k, e)| (format!("new state {k} to state 0"), *e))
            .collect();
        tables.push(differences("Perturbed states", &rows));
    }
    let surface = found.surface.as_ref();
    tables.extend(surface.map(|surface| surface_table(found.state, surface)));
    tables
}

fn surface_table(state: usize, surface: &Surface) -> Table {
    let rows = surface.free_energy.iter().enumerate().map(|(bin, found)| {
        let place = format!("{:.4} to {:.4}", surface.edges[bin], surface.edges[bin + 1]);
        let (value, error) = found.map_or(("no samples".into(), String::new()), |e| {
            (format!("{:.4}", e.mean), format!("{:.4}", e.error))
        });
        vec![place, value, error, surface.samples[bin].to_string()]
    });
    Table {
        caption: format!(
            "Free energy along the coordinate in state {state}: -log density, lowest bin 0 (kT)"
        ),
        header: ["bin", "free energy", "error to the lowest", "samples"]
            .map(String::from)
            .to_vec(),
        rows: rows.collect(),
    }
}
