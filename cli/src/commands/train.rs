//! `diffclf train`: from samples to a model, in a run folder that can be left and taken up again at any moment.

use crate::commands::report::after_training;
use crate::help;
use crate::machine::MachineArgs;
use crate::settings::SettingsArgs;
use crate::terminal::Terminal;
use diffclf::discrete::objective::StatesObjectiveName;
use diffclf_run::budget::parse_time;
use diffclf_run::error::{Error, Result};
use diffclf_run::run_folder::CONFIG;
use diffclf_run::settings::Settings;
use diffclf_run::train::{Job, train};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The budget of a quick run.
const QUICK: Duration = Duration::from_secs(60);

fn examples() -> String {
    format!(
        "\
Examples:
  diffclf train samples.npy -o runs/mine
  diffclf train samples.npy -o runs/first --quick             a first model in a minute
  diffclf train samples.npy -o runs/mine --time 10m           as many steps as fit
  diffclf train samples.npy -o runs/mine --resume
  diffclf train -o runs/mine --resume --steps 8000            more steps for a finished run
  diffclf train samples.npy --weights w.npy -o runs/weighted
  diffclf train samples.npy -o runs/more --from runs/mine --steps 4000
  diffclf train --system mog40 --dim 8 --samples 60000 -o runs/mog40
  diffclf train --system two-modes --end-system moons -o runs/bridge
  diffclf train samples.npy --config run.toml --rate 0.0005 -o runs/slow
  diffclf train samples.npy --objective 'dsm+0.1*fokker-planck(laplacian=difference)' -o runs/fp

Objectives (a weighted sum of them; docs/objectives.md says which to choose):
{objectives}
For rows of states (--states K, or a file of small whole numbers):
{of_states}
Settings follow in parentheses: binary-bregman(generator=kl), bayes(gap=4,stop-gradient=yes).

A configuration file holds the same settings as the flags, with _ for -:
  objective = \"dsm+diffclf\"
  score_steps = 4000
  steps = 4000
  process = {{ kind = \"vp\", beta_max = 20.0 }}

The run folder holds config.toml (all settings), log.jsonl (every figure), checkpoint.safetensors,
model.safetensors, report.html (a page with pictures and a diagnosis) and, for data in files,
data.sha256. A run that was stopped in any way, even by kill -9, continues with --resume and ends
with the very bytes of an uninterrupted run (on the same kind of machine, whatever the number of
threads). With more --steps than it had, a run that came to its end gets a further stage.

Exit codes: 0 success, 1 failed, 2 wrong usage or input, 3 numbers became infinite or NaN,
130 interrupted.",
        objectives = help::objectives(),
        of_states = StatesObjectiveName::help().trim_end()
    )
}

/// Learn an energy from samples.
#[derive(Debug, clap::Args)]
#[command(after_help = examples())]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Keep the data's own coordinates; their mean and variance go into the model instead
    #[arg(long, help_heading = "Data")]
    no_standardise: bool,
    /// TOML file with settings; flags override it
    #[arg(long, value_name = "RUN.toml", help_heading = "Run")]
    config: Option<PathBuf>,
    /// Run folder [default: runs/NAME, after the data]
    #[arg(short, long, value_name = "RUNDIR", help_heading = "Run")]
    output: Option<PathBuf>,
    /// A first model in a minute: a smaller network, and no page at the end
    #[arg(long, help_heading = "Run", conflicts_with = "resume")]
    quick: bool,
    /// Fit the number of steps into this time, by the pace of the first few: 90s, 10m, 1.5h; two processes at once need more
    #[arg(long, value_name = "TIME", help_heading = "Run", conflicts_with_all = ["resume", "steps", "score_steps"])]
    time: Option<String>,
    /// Start from the parameters of a trained model, on its coordinates and its base: more steps for a finished run, or the same kind of
    /// rows anew
    #[arg(
        long,
        value_name = "MODEL",
        help_heading = "Run",
        conflicts_with = "resume"
    )]
    from: Option<PathBuf>,
    /// Continue the run in the folder (or start it, if there is none yet)
    #[arg(long, help_heading = "Run")]
    resume: bool,
    /// Delete a run that is in the folder already
    #[arg(long, help_heading = "Run", conflicts_with = "resume")]
    force: bool,
    /// Seconds between two checkpoints
    #[arg(
        long,
        value_name = "SECONDS",
        allow_negative_numbers = true,
        default_value_t = 10.0,
        help_heading = "Run"
    )]
    checkpoint_every: f64,
    /// Do not write report.html at the end
    #[arg(long, help_heading = "Run")]
    no_report: bool,
    /// No progress on the terminal
    #[arg(long, help_heading = "Run")]
    quiet: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let mut settings = args.settings.settings()?;
    if args.no_standardise {
        settings.standardise = Some(false);
    }
    settings.kernel = args.machine.kernel.clone();
    if args.quick {
        settings.width = settings.width.or(Some(64));
        settings.depth = settings.depth.or(Some(3));
    }
    if let Some(config) = &args.config {
        settings = Settings::read(config)?.overridden_by(&settings)?;
    }
    let path = run_path(&args, &settings)?;
    let (data, end) = (settings.data.clone(), settings.end.clone());
    train(Job {
        path: path.clone(),
        checkpoint_every: checkpoint_pause(args.checkpoint_every)?,
        pool: args.machine.pool()?,
        settings,
        first_stage: None,
        from: args.from.clone(),
        time: match &args.time {
            Some(text) => Some(parse_time(text)?),
            None => args.quick.then_some(QUICK),
        },
        resume: args.resume,
        force: args.force,
        watch: Arc::new(Terminal::interruptible(args.quiet)?),
    })?;
    if !(args.no_report || args.quick) {
        // A resumed run has its data in its settings, unless they have moved.
        let saved = Settings::read(&path.join(CONFIG))?;
        let files = [data.or(saved.data), end.or(saved.end)];
        let files = files.each_ref().map(|file| file.as_deref());
        // The page of an earlier session is this run's own.
        let replace = args.force || args.resume;
        after_training(&path, files, &args.machine.machine(), replace, args.quiet);
    }
    Ok(())
}

fn checkpoint_pause(seconds: f64) -> Result<Duration> {
    // A year is as good as never.
    if (0.0..=3.2e7).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(Error::setting(
            "checkpoint_every",
            seconds,
            "a number of seconds",
        ))
    }
}

/// Where the run goes: as asked, or named after the data.
fn run_path(args: &Args, settings: &Settings) -> Result<PathBuf> {
    if let Some(path) = &args.output {
        return Ok(path.clone());
    }
    let name = match (&settings.data, &settings.system) {
        (Some(data), _) => data
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned()),
        (None, system) => system.clone(),
    };
    match name {
        Some(name) => Ok(Path::new("runs").join(name)),
        None => Err(Error::Nothing),
    }
}
