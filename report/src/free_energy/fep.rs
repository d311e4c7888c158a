//! Free-energy perturbation, told.

use super::{Sheet, differences, effort, facts};
use diffclf::metric::Estimate;
use diffclf_run::free_energy::fep::{Direction, FepFound};
use serde_json::json;

/// What is told of perturbation; `wanted` is the error in kT that is wanted.
pub fn fep(found: &FepFound, wanted: f64) -> Sheet {
    let mut rows = Vec::new();
    let mut notices = Vec::new();
    let mut record = json!({ "method": "fep" });
    let directions = [
        ("forward", Some(&found.forward), 1.0),
        ("reverse", found.reverse.as_ref(), -1.0),
    ];
    for (name, direction, sign) in directions {
        let Some(direction) = direction else { continue };
        rows.extend(direction_rows(name, direction, sign));
        notices.extend(direction_notices(name, direction));
        if let Some(error) = direction.bootstrap_error {
            record[name]["bootstrap_error"] = error.into();
        }
        record[name]["result"] = json!(direction.result);
        record[name]["samples"] = direction.samples.into();
    }
    if let Some((gap, error)) = found.hysteresis() {
        if gap.abs() > 3.0 * error {
            notices.push(format!(
                "the two directions differ by {:.1} errors (hysteresis {gap:.3} kT): use bar",
                gap.abs() / error
            ));
        }
        record["hysteresis"] = gap.into();
    }
    let forward = &found.forward.result;
    let mut quality = vec![(
        "effective samples, forward",
        format!("{:.1}", forward.effective_samples),
    )];
    // Independent works are taken at their word.
    if found.correlated {
        quality.push((
            "statistical inefficiency",
            format!("{:.2}", forward.inefficiency),
        ));
    }
    quality.push((
        "for the wanted error",
        effort(forward.exponential.error, wanted),
    ));
    Sheet {
        title: "Free-energy perturbation",
        tables: vec![
            differences("Free-energy perturbation", &rows),
            facts("Samples", &quality),
        ],
        notices,
        figures: Vec::new(),
        record,
    }
}

/// Estimates of delta: those of reverse works change their sign.
fn direction_rows(name: &str, direction: &Direction, sign: f64) -> Vec<(String, Estimate)> {
    let result = &direction.result;
    let turned = |e: Estimate, error: f64| Estimate {
        mean: sign * e.mean,
        error,
    };
    let (average, cumulant) = (result.exponential, result.cumulant);
    let mut rows = vec![
        (
            format!("{name}, exponential average"),
            turned(average, average.error),
        ),
        (
            format!("{name}, second-order cumulant"),
            turned(cumulant, cumulant.error),
        ),
    ];
    rows.extend(
        direction
            .bootstrap_error
            .map(|error| (format!("{name}, bootstrap error"), turned(average, error))),
    );
    rows
}

fn direction_notices(name: &str, direction: &Direction) -> Vec<String> {
    let result = &direction.result;
    let mut notices = Vec::new();
    if result.tension() > 3.0 {
        notices.push(format!(
            "{name}: the exponential and the cumulant estimate differ by {:.1} errors: the works are far from Gaussian, or \
             the rare works that carry the average are missing",
            result.tension()
        ));
    }
    if result.effective_samples < 50.0 {
        notices.push(format!(
            "{name}: only {:.1} of {} samples carry the average; use works in both directions (bar), or states in between",
            result.effective_samples, direction.samples
        ));
    }
    notices
}
