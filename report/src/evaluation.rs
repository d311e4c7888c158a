//! A model beside the exact answer, in tables.

use crate::page::Table;
use diffclf::metric::{Evaluation, Level};

/// Mode weights shown unless all are asked for.
const FEW_MODES: usize = 8;

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(String::from).to_vec()
}

/// The averages, with errors and optimum.
pub fn averages(evaluation: &Evaluation) -> Table {
    let average = &evaluation.average;
    let row = |name: &str, value: String| vec![name.to_string(), value];
    Table {
        caption: "Averages over the levels".into(),
        header: texts(["quantity", "value"]),
        rows: vec![
            row("Fisher divergence", format!("{:.4}", average.fisher)),
            row(
                "effective sample size",
                format!("{:.2} %", 100.0 * average.ess),
            ),
            row("R² of log-densities, mean", format!("{:.5}", average.r2)),
            row(
                "R² of log-densities, median",
                format!("{:.5}", average.median_r2),
            ),
            row(
                "classification loss",
                format!("{:.4}", average.classification),
            ),
            row("  its optimum", format!("{:.4}", average.optimum)),
            row("  excess", format!("{:.4}", average.excess)),
        ],
    }
}

/// Mode weights beside the exact ones, the first few or all.
pub fn modes(evaluation: &Evaluation, all: bool) -> Table {
    let weights = &evaluation.mode_weights;
    let shown = if all {
        weights.exact.len()
    } else {
        FEW_MODES.min(weights.exact.len())
    };
    let rows = (0..shown).map(|k| {
        vec![
            format!("{k}"),
            format!("{:.4}", weights.exact[k]),
            format!("{:.4}", weights.model[k]),
        ]
    });
    let hidden = weights.exact.len() - shown;
    let more = if hidden > 0 {
        format!(", {hidden} more are not shown")
    } else {
        String::new()
    };
    Table {
        caption: format!(
            "Mode weights at time {:.3e} (total variation {:.4}{more})",
            weights.time, weights.total_variation
        ),
        header: texts(["mode", "exact", "model"]),
        rows: rows.collect(),
    }
}

/// Levels 0, 1, 2, 4, 8, ... and the last: errors sit at small times.
fn selection(count: usize, all: bool) -> Vec<usize> {
    if all || count < 2 {
        return (0..count).collect();
    }
    let powers = std::iter::successors(Some(1), |k| Some(k * 2)).take_while(|k| k + 1 < count);
    std::iter::once(0)
        .chain(powers)
        .chain([count - 1])
        .collect()
}

/// Figures of levels, a selection or all.
pub fn levels(evaluation: &Evaluation, all: bool) -> Table {
    let row = |k: usize| {
        let level: &Level = &evaluation.levels[k];
        vec![
            format!("{k}"),
            format!("{:.5}", level.time),
            format!("{:.4}", level.fisher.mean),
            format!("{:.2} %", 100.0 * level.ess),
            format!("{:.5}", level.r2),
            format!("{:.3}", level.classification.mean),
            format!("{:.3}", level.optimum.mean),
            format!("{:.4}", level.excess.mean),
        ]
    };
    let count = evaluation.levels.len();
    Table {
        caption: if all {
            "Levels".into()
        } else {
            "Some levels".into()
        },
        header: texts([
            "level", "time", "Fisher", "ESS", "R²", "loss", "optimum", "excess",
        ]),
        rows: selection(count, all).into_iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::selection;

    #[test]
    fn the_selection_is_dense_at_small_times() {
        assert_eq!(
            selection(512, false),
            [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 511]
        );
        assert_eq!(selection(2, false), [0, 1]);
        assert_eq!(selection(3, false), [0, 1, 2]);
        assert_eq!(selection(5, true), [0, 1, 2, 3, 4]);
    }
}
