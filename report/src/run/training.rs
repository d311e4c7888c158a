//! The course of training, from a run's log: losses by term, and time by stage.

use crate::curve::{Curve, Series};
use crate::page::Table;
use diffclf_run::watch::duration_text;
use serde_json::Value;
use std::time::Duration;

/// A figure per term of the losses: its name and the picture.
pub fn losses(log: &[Value]) -> Vec<(String, String)> {
    let mut names: Vec<String> = Vec::new();
    for entry in log {
        let Some(terms) = entry["loss"].as_object() else {
            continue;
        };
        for name in terms.keys().filter(|name| *name != "total") {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
        .into_iter()
        .map(|name| {
            let points = |key: &str| -> Vec<(f64, f64)> {
                log.iter()
                    .filter_map(|entry| {
                        Some((entry["step"].as_f64()?, entry[key][&name].as_f64()?))
                    })
                    .collect()
            };
            let series: Vec<Series> = [("training", "loss"), ("held out", "held_out")]
                .map(|(label, key)| Series {
                    name: label.into(),
                    points: points(key),
                })
                .into_iter()
                .filter(|series| !series.points.is_empty())
                .collect();
            let positive = series.iter().flat_map(|s| &s.points).all(|p| p.1 > 0.0);
            let svg = Curve {
                alt: &format!("{name} loss against training steps"),
                x_label: "step",
                y_label: &format!("{name} loss"),
                x_logarithmic: false,
                y_logarithmic: positive,
                series: &series,
            }
            .svg();
            (name, svg)
        })
        .collect()
}

/// Steps and time by stage.
pub fn timing(log: &[Value], page_seconds: f64) -> Table {
    let mut stages: Vec<(u64, u64, f64)> = Vec::new();
    for entry in log {
        let figures = (
            entry["stage"].as_u64(),
            entry["step"].as_u64(),
            entry["seconds"].as_f64(),
        );
        let (Some(stage), Some(step), Some(seconds)) = figures else {
            continue;
        };
        match stages.last_mut() {
            Some(last) if last.0 == stage => (last.1, last.2) = (step, seconds),
            _ => stages.push((stage, step, seconds)),
        }
    }
    let time = |seconds: f64| duration_text(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)));
    let mut before = (0, 0.0);
    let mut rows: Vec<Vec<String>> = stages
        .iter()
        .map(|(stage, step, seconds)| {
            let (steps, spent) = (step - before.0.min(*step), seconds - before.1);
            before = (*step, *seconds);
            vec![
                format!("training, stage {}", stage + 1),
                steps.to_string(),
                time(spent),
                format!("{:.1} ms", 1000.0 * spent / steps.max(1) as f64),
            ]
        })
        .collect();
    rows.push(vec![
        "this page".into(),
        String::new(),
        time(page_seconds),
        String::new(),
    ]);
    Table {
        caption: "Time by the clock".into(),
        header: ["", "steps", "time", "per step"].map(String::from).to_vec(),
        rows,
    }
}

/// Seconds of training that the log tells of.
pub fn seconds(log: &[Value]) -> Option<f64> {
    log.last()?["seconds"].as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_log_gives_curves_and_times() {
        let log = [
            json!({ "step": 10, "stage": 0, "seconds": 1.0, "loss": { "dsm": 2.0, "total": 2.0 } }),
            json!({ "step": 20, "stage": 0, "seconds": 2.0, "loss": { "dsm": 1.0, "total": 1.0 },
                    "held_out": { "dsm": 1.5, "total": 1.5 } }),
            json!({ "step": 30, "stage": 1, "seconds": 5.0, "loss": { "dsm": 0.9, "diffclf": 1.2, "total": 2.1 } }),
        ];
        let figures = losses(&log);
        assert_eq!(figures[0].0, "dsm");
        assert_eq!(figures[1].0, "diffclf");
        assert!(figures[0].1.contains("held out") && !figures[1].1.contains("held out"));
        let table = timing(&log, 0.5);
        assert_eq!(
            table.rows[0],
            ["training, stage 1", "20", "2.0 s", "100.0 ms"]
        );
        assert_eq!(
            table.rows[1],
            ["training, stage 2", "10", "3.0 s", "300.0 ms"]
        );
        assert_eq!(seconds(&log), Some(5.0));
        assert!(losses(&[]).is_empty() && timing(&[], 1.0).rows.len() == 1);
    }
}
