//! Thermodynamic integration, told.

use super::{Sheet, differences, effort, facts, integrand_figure};
use diffclf_run::free_energy::ti::TiFound;
use serde_json::json;

/// What is told of thermodynamic integration; `wanted` is the error in kT that is wanted.
pub fn ti(found: &TiFound, wanted: f64) -> Sheet {
    let results: Vec<_> = found
        .results
        .iter()
        .map(|(rule, e)| (rule.name().to_string(), *e))
        .collect();
    let spread = found.spread();
    let error = results[2].1.error;
    let mut notices = Vec::new();
    if spread > 2.0 * error {
        notices.push(format!(
            "the rules differ by {spread:.4} kT, more than twice the statistical error: add values of lambda where the slope bends"
        ));
    }
    let record = json!({
        "method": "ti",
        "lambdas": found.lambdas,
        "slopes": found.slopes,
        "statistical_inefficiency": found.inefficiency,
        "results": results.iter().map(|(name, e)| json!({ "rule": name, "delta": e })).collect::<Vec<_>>(),
        "spread_of_rules": spread,
    });
    let quality = [
        ("spread of the rules (kT)", format!("{spread:.4}")),
        ("for the wanted error", effort(error, wanted)),
    ];
    Sheet {
        title: "Thermodynamic integration",
        tables: vec![
            differences("Thermodynamic integration", &results),
            facts("Quality", &quality),
        ],
        notices,
        figures: vec![integrand_figure(&found.lambdas, &found.slopes)],
        record,
    }
}
