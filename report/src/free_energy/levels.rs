//! Free energies of a model's levels, told.

use super::{Sheet, facts, integrand_figure, overlap_figure, overlap_notices};
use crate::curve::{Curve, Series};
use crate::page::{Figure, Table};
use diffclf_run::free_energy::levels::LevelsFound;
use serde_json::json;

/// What is told of the levels of the model of this name.
pub fn levels(found: &LevelsFound, model: &str) -> Sheet {
    let (found, only_trained) = (&found.path, found.only_trained);
    let largest = found
        .gaps
        .iter()
        .map(|gap| gap.mean.abs())
        .fold(0.0, f64::max);
    let mut notices = overlap_notices(&found.overlap);
    if only_trained {
        notices.push(
            "these rows were trained on and there are no others: gaps may look smaller than they are; train with rows held out".into(),
        );
    }
    let last = found.gaps[found.gaps.len() - 1];
    if largest > 0.5 {
        notices.push(format!(
            "F(t) is off by up to {largest:.2} kT: train longer, with a classification term in the objective"
        ));
    }
    let chosen: Vec<usize> = (0..9).map(|i| i * (found.times.len() - 1) / 8).collect();
    let table = Table {
        caption:
            "Gap log Z_t + F(t) between MBAR and the learned F, relative to the first level (kT)"
                .into(),
        header: ["time", "gap", "error"].map(String::from).to_vec(),
        rows: chosen
            .iter()
            .map(|&k| {
                let gap = found.gaps[k];
                vec![
                    format!("{:.4}", found.times[k]),
                    format!("{:.4}", gap.mean),
                    format!("{:.4}", gap.error),
                ]
            })
            .collect(),
    };
    let summary = facts(
        "First to last level",
        &[
            ("log(Z_1/Z_0) by MBAR", format!("{:.4}", found.mbar)),
            ("as learned, F(0) - F(1)", format!("{:.4}", found.learned)),
            ("gap", format!("{last:.4}")),
            ("largest gap of a level", format!("{largest:.4}")),
            ("scalar overlap", format!("{:.4}", found.overlap.scalar)),
        ],
    );
    let line = Series {
        name: "gap".into(),
        points: found
            .times
            .iter()
            .zip(&found.gaps)
            .map(|(t, gap)| (*t, gap.mean))
            .collect(),
    };
    let curve = Curve {
        alt: "gap between MBAR and the learned F along the levels",
        x_label: "time",
        y_label: "gap (kT)",
        x_logarithmic: false,
        y_logarithmic: false,
        series: &[line],
    };
    let figures = vec![
        overlap_figure(&found.overlap),
        Figure {
            svg: curve.svg(),
            caption: "What the learned F(t) misses at each level.".into(),
        },
        integrand_figure(&found.times, &found.slopes),
    ];
    Sheet {
        title: "Free energies of a model's levels",
        tables: vec![summary, table],
        notices,
        figures,
        record: json!({ "method": "levels", "model": model, "result": found }),
    }
}
