//! Annealed particles in tables and as JSON.

use crate::page::Table;
use diffclf::sample::{Baseline, Exchange, Exchanged, Particles};
use diffclf_run::compose::RegionShares;
use serde_json::{Value, json};

/// The figures of runs, side by side.
pub fn runs(caption: String, runs: &[(&str, &Particles)]) -> Table {
    let text = |f: &dyn Fn(&Particles) -> String, name: &str| {
        let mut row = vec![name.to_string()];
        row.extend(runs.iter().map(|(_, run)| f(run)));
        row
    };
    let mut header = vec!["quantity".to_string()];
    header.extend(runs.iter().map(|(name, _)| name.to_string()));
    Table {
        caption,
        header,
        rows: vec![
            text(&|run| format!("{:.3}", run.log_z), "log Z"),
            text(
                &|run| format!("{:.1} %", 100.0 * run.ess()),
                "effective sample size",
            ),
            text(
                &|run| format!("{:.3}", run.least_overlap()),
                "least overlap of levels",
            ),
            text(&|run| run.levels.len().to_string(), "levels"),
            text(
                &|run| {
                    run.levels
                        .iter()
                        .filter(|level| level.resampled)
                        .count()
                        .to_string()
                },
                "resampled",
            ),
            text(&|run| run.families.to_string(), "surviving families"),
            text(
                &|run| format!("{:.2}", mean_acceptance(run)),
                "mean acceptance",
            ),
        ],
    }
}

/// What to beware of in the figures of runs, line by line.
pub fn notes(runs: &[(&str, &Particles)]) -> String {
    let mut notes = String::new();
    if runs
        .iter()
        .any(|(_, run)| run.baseline == Baseline::FirstLevel)
    {
        notes += "note: the start's density is not known, so its points count as draws of the model's first level: log Z is relative to that \
             level, and shares of modes that moves do not connect are as wrong as it is there\n";
    }
    if runs.iter().any(|(_, run)| run.biased_moves) {
        notes += "note: these moves have no acceptance test, so weights and log Z carry the error of their step size; mala, hmc and \
             random-walk have none\n";
    }
    notes
}

fn mean_acceptance(run: &Particles) -> f64 {
    run.levels.iter().map(|level| level.acceptance).sum::<f64>() / run.levels.len() as f64
}

/// A run as JSON.
pub fn record(run: &Particles) -> Value {
    json!({
        "log_z": run.log_z,
        "baseline": run.baseline,
        "biased_moves": run.biased_moves,
        "ess": run.ess(),
        "least_overlap": run.least_overlap(),
        "families": run.families,
        "particles": run.weights.len(),
        "levels": run.levels,
    })
}

/// How replica exchange went, with so many ladders of so many levels.
pub fn exchange(found: &Exchanged, settings: &Exchange, ladders: usize, levels: usize) -> Table {
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let row = |name: &str, value: String| vec![name.to_string(), value];
    Table {
        caption: format!(
            "{ladders} ladders of {levels} levels, {} sweeps",
            settings.sweeps
        ),
        header: vec!["quantity".into(), "value".into()],
        rows: vec![
            row(
                "swap acceptance, least",
                format!("{:.2}", least(&found.swap_acceptance)),
            ),
            row(
                "move acceptance, least",
                format!("{:.2}", least(&found.acceptance)),
            ),
            row("round trips", found.round_trips.to_string()),
            row(
                "effective draws, least",
                format!("{:.0}", least(&found.effective_draws)),
            ),
            row("split R-hat, largest", format!("{:.3}", most(&found.r_hat))),
        ],
    }
}

/// Shares of regions beside the truth.
pub fn regions(shares: &RegionShares) -> Table {
    let row = |k: usize, name: &str| {
        let exact = shares.truth.get(k).copied().unwrap_or(0.0);
        let error = shares.found[k] - exact;
        vec![
            name.to_string(),
            format!("{exact:.4}"),
            format!("{:.4}", shares.found[k]),
            format!("{error:+.4}"),
        ]
    };
    let names = &shares.names;
    let mut rows: Vec<Vec<String>> = (0..names.len()).map(|k| row(k, &names[k])).collect();
    rows.push(row(names.len(), "elsewhere"));
    Table {
        caption: "\nShares of regions".into(),
        header: ["region", "truth", "found", "error"]
            .map(String::from)
            .to_vec(),
        rows,
    }
}
