//! `diffclf evaluate`: a model beside the exact answer of the system it was trained on.

use crate::opened::{ModelArgs, RecordArgs};
use crate::print::print;
use crate::terminal::Terminal;
use diffclf::metric::{Evaluation, EvaluationSettings, Level};
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::Watch;
use diffclf_run::error::Result;
use diffclf_run::exact::{Systems, exact_path};

const EXAMPLES: &str = "\
Examples:
  diffclf evaluate runs/mog40/model.safetensors
  diffclf evaluate model.safetensors --system mog40 --levels 128 --json figures.json
  diffclf evaluate model.safetensors --all

Every figure is an average over samples of the exact marginals. Fisher: mean squared error of the score, per
dimension. ESS: effective sample size of the model's density as an importance weight. R2: agreement of log-densities
up to a constant. Classification: loss of telling the noise level of a sample among all levels of the grid; no model
can be better than its optimum, so look at the excess.";

/// Mode weights shown unless all are asked for.
const FEW_MODES: usize = 8;

/// Judge a model against a system whose answer is known.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// System with known marginals: mog40, mog2, two-modes [default: the one the model was trained on]
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// System at the second endpoint of an interpolant [default: the one the model was trained on]
    #[arg(long, value_name = "NAME")]
    end_system: Option<String>,
    /// Seed of the systems' own parameters [default: that of the training]
    #[arg(long, value_name = "SEED")]
    system_seed: Option<u64>,
    /// Levels of the grid, which are also the classes [default: the model's own grid]
    #[arg(long, value_name = "L")]
    levels: Option<usize>,
    /// Exact samples per level
    #[arg(long, value_name = "N", default_value_t = 1024)]
    samples: usize,
    /// How many of them enter the classification loss
    #[arg(long, value_name = "N", default_value_t = 64)]
    classified: usize,
    /// Seed of the samples
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Show all levels and modes, not a selection
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.record.check([])?;
    let (model, energy) = args.model.open()?;
    let content = &model.content;
    let named = Systems {
        system: args.system.as_deref(),
        end_system: args.end_system.as_deref(),
        system_seed: args.system_seed,
    };
    let (exact, names) = exact_path(&named, content)?;
    let grid = match args.levels {
        Some(levels) => content.spec.grid.with_levels(levels)?,
        None => content.spec.grid.clone(),
    };
    let settings = EvaluationSettings {
        samples_per_level: args.samples,
        classification_samples_per_level: args.classified.min(args.samples),
        seed: args.seed,
        ..EvaluationSettings::default()
    };
    let mut progress = Terminal::new(args.record.quiet).begin("evaluate", grid.levels() as u64, 0);
    let evaluation = Evaluation::run(&energy, &exact, &grid, settings, &mut |done, _| {
        progress.set(done as u64, &|| "levels".into());
    })?;
    progress.finish("done");

    let title = format!(
        "{} against {} ({} process, dimension {}, {} levels)",
        args.model.name(),
        names.join(" and "),
        content.spec.process.name(),
        content.spec.dim,
        grid.levels()
    );
    print(&format!(
        "{title}\n\n{}\n{}\n{}",
        table_text(&averages(&evaluation)),
        table_text(&modes(&evaluation, args.all)),
        table_text(&levels(&evaluation, args.all))
    ))?;
    args.record.write(|| {
        serde_json::json!({
            "model": args.model.name(),
            "systems": names,
            "process": content.spec.process,
            "grid": grid,
            "steps": content.record.steps,
            "evaluation": evaluation,
        })
    })
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(String::from).to_vec()
}

/// The averages, with errors and optimum.
fn averages(evaluation: &Evaluation) -> Table {
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

fn modes(evaluation: &Evaluation, all: bool) -> Table {
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
        format!(", {hidden} more with --all")
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

fn levels(evaluation: &Evaluation, all: bool) -> Table {
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
            "Some levels (all with --all)".into()
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
