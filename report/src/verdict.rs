//! A diagnosis in words and tables.

use crate::page::Table;
use diffclf::metric::Estimate;
use diffclf::metric::diagnose::{Diagnosis, ModeAudit, Verdict};

/// Basins shown.
const FEW_BASINS: usize = 12;

/// Checks with this verdict.
pub fn count(diagnosis: &Diagnosis, verdict: Verdict) -> usize {
    let same = diagnosis
        .checks
        .iter()
        .filter(|check| check.verdict == verdict);
    same.count()
}

/// `warn (5 pass, 1 warn)`.
pub fn verdict_text(diagnosis: &Diagnosis) -> String {
    let kinds = [
        Verdict::Pass,
        Verdict::Warn,
        Verdict::Fail,
        Verdict::Skipped,
    ];
    let counts: Vec<String> = kinds
        .iter()
        .map(|kind| (count(diagnosis, *kind), kind.name()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    format!("{} ({})", diagnosis.verdict.name(), counts.join(", "))
}

/// The basins, side by side in data, density and samples.
pub fn basins(modes: &ModeAudit) -> Table {
    let percent = |share: Option<Estimate>| {
        share.map_or("-".into(), |s| {
            format!("{:.1} ± {:.1} %", 100.0 * s.mean, 100.0 * s.error)
        })
    };
    let rows = modes.basins.iter().take(FEW_BASINS).enumerate();
    let hidden = modes.basins.len().saturating_sub(FEW_BASINS);
    let more = if hidden > 0 {
        format!("; {hidden} smaller ones are not shown")
    } else {
        String::new()
    };
    Table {
        caption: format!("Basins, and the probability each holds{more}"),
        header: ["basin", "data", "density", "generated"]
            .map(String::from)
            .to_vec(),
        rows: rows
            .map(|(k, basin)| {
                vec![
                    (k + 1).to_string(),
                    percent(Some(basin.data)),
                    percent(basin.density),
                    percent(basin.generated),
                ]
            })
            .collect(),
    }
}
