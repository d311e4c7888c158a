//! The free-energy difference through a learned path, told.

use super::{Sheet, differences, facts, integrand_figure, overlap_figure, overlap_notices};
use diffclf::metric::Estimate;
use diffclf_run::free_energy::learn::LearnedFound;
use serde_json::json;

/// What is told of a learned path.
pub fn learn(found: &LearnedFound) -> Sheet {
    let (path, answer) = (&found.path, &found.difference);
    let mut record = json!({
        "method": "learn",
        "path": path,
        "result": answer,
        "model_error": answer.model_error,
        "integration": answer.integration,
        "mbar": answer.mbar,
        "learned_f": answer.learned,
        "stated": answer.stated,
        "stated_by_mbar": answer.by_mbar,
        "interval_95": answer.interval_95,
        "objective_teaches_f": found.classified,
        "steps": found.steps,
    });
    if let Some(Ok(bar)) = &found.direct {
        record["bar"] = json!(bar);
    }
    let mut lines = vec![
        (
            "95 % interval of the last row",
            answer.interval_95.map_or("unknown".into(), |[low, high]| {
                format!("{low:.4} to {high:.4}")
            }),
        ),
        (
            "error of the model, from the routes (kT)",
            format!("{:.4}", answer.model_error),
        ),
        (
            "error of the rows alone: TI, MBAR (kT)",
            format!(
                "{:.4}, {:.4}",
                answer.integration.statistical_error, answer.mbar.statistical_error
            ),
        ),
        (
            "independent rows of A and B",
            format!(
                "{:.0} and {:.0}",
                answer.independent_rows[0], answer.independent_rows[1]
            ),
        ),
    ];
    if let Some((a, b)) = &found.corrections {
        let (a, b) = (a.perturbation, b.perturbation);
        lines.extend([
            (
                "log(Z_0/Z_A), correction at A",
                format!("{:.4}", a.exponential),
            ),
            (
                "log(Z_1/Z_B), correction at B",
                format!("{:.4}", b.exponential),
            ),
            (
                "effective samples at A and B",
                format!("{:.0} and {:.0}", a.effective_samples, b.effective_samples),
            ),
        ]);
        record["corrections"] = json!({ "a": a, "b": b });
        if found.normalised {
            lines.push(("exact answer", "0 (both densities are normalised)".into()));
            record["exact"] = 0.0.into();
        }
    }
    Sheet {
        title: "Free energy through a learned path",
        tables: vec![
            differences("delta = log(Z_B/Z_A)", &routes(found)),
            facts("Quality", &lines),
        ],
        notices: notices(found),
        figures: vec![
            integrand_figure(&path.times, &path.slopes),
            overlap_figure(&path.overlap),
        ],
        record,
    }
}

fn routes(found: &LearnedFound) -> Vec<(String, Estimate)> {
    let answer = &found.difference;
    let mut rows = Vec::new();
    if let Some(Ok(bar)) = &found.direct {
        rows.push(("BAR, A and B directly".to_string(), bar.delta));
    }
    let mbar = (
        "MBAR over the learned path".to_string(),
        answer.mbar.estimate(),
    );
    let integral = (
        "TI over the learned path".to_string(),
        answer.integration.estimate(),
    );
    // The answer comes last.
    let (first, last) = match answer.by_mbar {
        true => (integral, mbar),
        false => (mbar, integral),
    };
    rows.push(first);
    rows.extend(
        answer
            .learned
            .map(|learned| ("learned F(t)".into(), learned.estimate())),
    );
    rows.push(last);
    rows
}

fn notices(found: &LearnedFound) -> Vec<String> {
    let mut notices = overlap_notices(&found.path.overlap);
    match &found.direct {
        Some(Ok(_)) => {}
        Some(Err(error)) => notices.push(format!("BAR between A and B: {error}")),
        None => notices.push(
            "no BAR between A and B: it needs the energies of both states at both sample sets"
                .into(),
        ),
    }
    let blind = found
        .difference
        .routes
        .iter()
        .find(|route| route.name == "blind");
    if let Some(route) = blind.filter(|route| route.gap.mean.abs() > 3.0 * route.gap.error) {
        notices.push(format!(
            "the scores do not fit the samples: a factor common to all times would move the answer by {:.3} kT, and no comparison of \
             times sees it; train longer, with score matching in the objective",
            route.gap
        ));
    }
    match &found.corrections {
        Some((a, b)) => {
            for (name, end) in [("A", a.perturbation), ("B", b.perturbation)] {
                if end.effective_samples < 100.0 {
                    notices.push(format!(
                        "the learned energy at {name} is far from the state's own: {:.0} effective samples; train longer",
                        end.effective_samples
                    ));
                }
            }
        }
        None => notices.push(
            "no energies of the states are known: this is the difference between the learned energies at the two ends, whose \
             additive constants are arbitrary"
                .into(),
        ),
    }
    notices
}
