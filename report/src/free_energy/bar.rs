//! BAR, told.

use super::{Sheet, convergence_figure, differences, effort, facts};
use diffclf::free_energy::LOW_OVERLAP;
use diffclf::metric::Estimate;
use diffclf_run::free_energy::bar::BarFound;
use serde_json::json;

/// What is told of BAR; `wanted` is the error in kT that is wanted.
pub fn bar(found: &BarFound, wanted: f64) -> Sheet {
    let delta = found.bar.delta;
    let with = |error: f64| Estimate { error, ..delta };
    let mut rows = vec![
        ("Bennett's error".to_string(), delta),
        ("MBAR's error".to_string(), with(found.bar.mbar_error)),
    ];
    let mut record = json!({
        "method": "bar",
        "result": found.bar,
        "samples": found.samples,
        "statistical_inefficiency": found.inefficiency,
    });
    if let Some(error) = found.bootstrap_error {
        rows.push(("bootstrap error".into(), with(error)));
        record["bootstrap_error"] = error.into();
    }
    let mut notices = Vec::new();
    let mut figures = Vec::new();
    match &found.convergence {
        Ok(course) => {
            if course.tension() > 3.0 {
                notices.push(format!(
                    "the first and the last works disagree by {:.1} errors: the series have not settled",
                    course.tension()
                ));
            }
            figures.push(convergence_figure(course));
            record["convergence"] = json!(course);
        }
        Err(error) => notices.push(format!("no convergence from shares of the works: {error}")),
    }
    let overlap = found.bar.overlap;
    if overlap < LOW_OVERLAP {
        notices.push(format!(
            "the overlap is {overlap:.4}, below {LOW_OVERLAP}: the error bars cannot be trusted; put states in between"
        ));
    }
    if !found.subsampled && found.inefficiency.iter().any(|g| *g > 2.0) {
        notices.push(format!(
            "the works are correlated (statistical inefficiencies {:.1} and {:.1}): errors are too small unless they are subsampled",
            found.inefficiency[0], found.inefficiency[1]
        ));
    }
    let quality = [
        (
            "works, forward and reverse",
            format!("{} and {}", found.samples[0], found.samples[1]),
        ),
        ("overlap (0 to 1)", format!("{overlap:.4}")),
        ("for the wanted error", effort(delta.error, wanted)),
    ];
    Sheet {
        title: "BAR",
        tables: vec![differences("BAR", &rows), facts("Samples", &quality)],
        notices,
        figures,
        record,
    }
}
