//! `diffclf evaluate`: a model beside the exact answer of the system it was trained on.

use crate::help;
use crate::opened::{ModelArgs, RecordArgs};
use crate::print::print;
use crate::states;
use crate::terminal::Terminal;
use diffclf_report::evaluation::{averages, levels, modes};
use diffclf_report::text::table_text;
use diffclf_run::error::Result;
use diffclf_run::evaluate::Judgement;
use diffclf_run::exact::Systems;
use diffclf_run::states::StatesJudgement;

const EXAMPLES: &str = "\
Examples:
  diffclf evaluate runs/mog40/model.safetensors
  diffclf evaluate model.safetensors --system mog40 --levels 128 --json figures.json
  diffclf evaluate model.safetensors --all

Every figure is an average over samples of the exact marginals. Fisher: mean squared error of the
score, per dimension. ESS: effective sample size of the model's density as an importance weight. R2:
agreement of log-densities up to a constant. Classification: loss of telling the noise level of a
sample among all levels of the grid; no model can be better than its optimum, so look at the excess.";

/// Judge a model against a system whose answer is known.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[arg(long, help = help::judged_system(), value_name = "NAME")]
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
    if let Some(opened) = args.model.open_states()? {
        let asked = StatesJudgement {
            system: args.system.as_deref(),
            system_seed: args.system_seed,
            levels: args.levels,
            samples: (args.samples, args.classified),
            seed: args.seed,
        };
        return states::evaluate(&opened, &asked, &args.model.name(), args.all, &args.record);
    }
    let (model, energy) = args.model.open()?;
    let content = &model.content;
    let asked = Judgement {
        systems: Systems {
            system: args.system.as_deref(),
            end_system: args.end_system.as_deref(),
            system_seed: args.system_seed,
        },
        levels: args.levels,
        samples: args.samples,
        classified: args.classified,
        seed: args.seed,
    };
    let found = asked.run(content, &energy, &Terminal::new(args.record.quiet))?;
    let title = format!(
        "{} against {} ({} process, dimension {}, {} levels)",
        args.model.name(),
        found.systems.join(" and "),
        content.spec.process.name(),
        content.spec.dim,
        found.grid.levels()
    );
    let evaluation = &found.evaluation;
    let more = if args.all {
        ""
    } else {
        "(all levels and modes with --all)\n"
    };
    let nats = &found.likelihood;
    print(&format!(
        "{title}\n\nlog-likelihood of fresh samples at the smallest time: {:.3} nats per row, exact {:.3}, difference {:+.3} ± {:.3}\n\n{}\n{}\n{}{more}",
        nats.model,
        nats.exact,
        nats.lead.mean,
        nats.lead.error,
        table_text(&averages(evaluation)),
        table_text(&modes(evaluation, args.all)),
        table_text(&levels(evaluation, args.all))
    ))?;
    args.record.write(|| {
        serde_json::json!({
            "model": args.model.name(),
            "systems": found.systems,
            "process": content.spec.process,
            "grid": found.grid,
            "steps": content.record.steps,
            "evaluation": evaluation,
            "likelihood": found.likelihood,
        })
    })
}
