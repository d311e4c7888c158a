//! `diffclf demo`: why score matching alone cannot learn how much weight each mode has, and what cures it.
//!
//! Two models of the same mixture share a first stage of score matching. Then one goes on with score matching, the other
//! adds DiffCLF, for the same number of steps on the same rows, times and noise.

use crate::machine::MachineArgs;
use crate::print::print;
use crate::terminal::Terminal;
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, LearnedEnergy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::metric::{Evaluation, EvaluationSettings, mode_weights};
use diffclf::model::{Content, Record};
use diffclf::network::NetworkSpec;
use diffclf::objective::parse_terms;
use diffclf::process::{Process, TimeGrid};
use diffclf::system::System;
use diffclf::train::{Endpoints, State, StepReport, TrainSettings, Trainer};
use diffclf_report::axis::Axis;
use diffclf_report::curve::{Curve, Series};
use diffclf_report::heatmap::Heatmap;
use diffclf_report::page::{Figure, Page, Table};
use diffclf_report::text::table_text;
use diffclf_run::data::{DataSet, Prepared};
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{refuse_overwrite, write_atomic};
use diffclf_run::{Bar, Watch};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Rows per step.
const BATCH: usize = 512;
/// Times per row.
const LEVELS: usize = 4;
/// How much is computed.
#[derive(Clone, Copy)]
struct Budget {
    /// Steps of the shared first stage, and of the second.
    steps: [u64; 2],
    /// Levels of the time grid.
    grid: usize,
    /// Exact samples per level for the figures of merit, and how many of them are classified.
    samples: [usize; 2],
    /// Exact samples for a look at the mode weights during training.
    look: usize,
}

const FULL: Budget = Budget {
    steps: [1500, 2000],
    grid: 128,
    samples: [1024, 256],
    look: 4096,
};

const QUICK: Budget = Budget {
    steps: [30, 40],
    grid: 16,
    samples: [64, 16],
    look: 64,
};

/// The smallest time: its noise is a fourth of a mode's width, so the picture is that of the data.
const SMALLEST_TIME: f64 = 0.01;
/// Looks at the mode weights during training.
const LOOKS: u64 = 35;
/// Cells of a picture's side.
const CELLS: usize = 160;
const PAGE: &str = "diffclf-demo.html";

/// See in at most two minutes what the program is for.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Trains two small models of a mixture with mode weights 2/3 and 1/3, prints a table and writes a page \
                  with pictures. Without -o, an existing page is not touched: the new one gets the next free number."
)]
pub struct Args {
    /// The page [default: diffclf-demo.html]
    #[arg(short, long, value_name = "PAGE.html")]
    output: Option<PathBuf>,
    /// Replace an existing page
    #[arg(long)]
    force: bool,
    /// A fraction of the work: to see that it runs, not what it learns
    #[arg(long)]
    quick: bool,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// A trained model and how it came out.
struct Outcome {
    name: &'static str,
    energy: LearnedEnergy<f32>,
    evaluation: Evaluation,
    seconds: f64,
    /// Weight of the first mode as training went on.
    weights: Series,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let output = page_path(&args)?;
    let budget = if args.quick { QUICK } else { FULL };
    let steps = budget.steps;
    let (pool, isa) = (args.machine.pool()?, args.machine.isa()?);
    let system = System::by_name("two-modes", 2, 0)?;
    let mixture = system
        .mixture()
        .cloned()
        .ok_or_else(|| Error::Failed("two-modes is no mixture".into()))?;
    let origin = DataSet::system(0, system, 0, None, 0)?;
    let standardisation = origin.moments(&mut Vec::new())?.coordinates();
    let process = Process::by_name("vp")?;
    let mut spec = ModelSpec::new(2, process);
    spec.grid = TimeGrid::new(
        budget.grid,
        SMALLEST_TIME,
        spec.grid.t_max(),
        spec.grid.spacing(),
    )?;
    spec.network = NetworkSpec::Mlp {
        width: 64,
        depth: 3,
    };
    let content = Content {
        spec,
        standardisation,
        record: Record {
            version: env!("CARGO_PKG_VERSION").into(),
            settings: settings("dsm", steps)?,
            steps: 0,
            data: vec![origin.record().clone()],
            units: "kT".into(),
            streams: diffclf::rng::STREAMS,
        },
    };
    let law = content.standardisation.mixture_to_model(&mixture)?;
    let exact = ExactPath::new(process, law, None)?;
    let rows = origin.prepare(&content.standardisation)?;

    let total = steps[0] + 2 * steps[1];
    let mut course = Course {
        spec: &content.spec,
        exact: &exact,
        rows: &rows,
        budget,
        pool,
        isa,
        progress: Terminal::new(args.quiet).begin("demo", total, 0),
        done: 0,
    };
    let begin = Instant::now();
    let shared = course.train("dsm", None)?;
    let seconds = begin.elapsed().as_secs_f64();
    let outcomes = [
        course.second_stage("DSM", "dsm", &shared, seconds)?,
        course.second_stage("DSM + DiffCLF", "dsm+diffclf", &shared, seconds)?,
    ];
    course.progress.finish("done");

    let table = figures_of_merit(&exact, &outcomes, steps);
    write_page(&output, &table, &content, &exact, (&outcomes, steps))?;
    let weights = outcomes
        .each_ref()
        .map(|o| o.evaluation.mode_weights.model[0].mean);
    print(&format!(
        "{}\nScore matching alone gives the first mode a weight of {:.2}, the classification between noise levels {:.2}; the \
         truth is {:.2}.\nPictures: {}\n",
        table_text(&table),
        weights[0],
        weights[1],
        exact.start().weights()[0],
        output.display()
    ))
}

/// The page's name: as asked, or the first free one.
fn page_path(args: &Args) -> Result<PathBuf> {
    if let Some(path) = &args.output {
        refuse_overwrite(path, args.force)?;
        return Ok(path.clone());
    }
    let numbered = (2..1000).map(|k| PathBuf::from(format!("diffclf-demo-{k}.html")));
    std::iter::once(PathBuf::from(PAGE))
        .chain(numbered)
        .find(|path| args.force || refuse_overwrite(path, false).is_ok())
        .ok_or_else(|| Error::Exists { path: PAGE.into() })
}

/// Two stages: the score, then `second`.
fn settings(second: &str, [first, then]: [u64; 2]) -> Result<TrainSettings> {
    let mut settings = TrainSettings::two_stages(BATCH, first, then, LEVELS);
    settings.stages[1].objectives = parse_terms(second)?;
    for stage in &mut settings.stages {
        stage.rate.peak = 3e-3;
        stage.rate.warm_up = first / 15;
    }
    settings.average = Some(0.995);
    Ok(settings)
}

/// The end of a stage.
struct Stage {
    state: State,
    /// Moving average of the parameters.
    params: Vec<f32>,
    /// Step and weight of the first mode, along the way.
    weights: Vec<(f64, f64)>,
}

/// Both trainings.
struct Course<'a> {
    spec: &'a ModelSpec,
    exact: &'a ExactPath,
    rows: &'a Prepared,
    budget: Budget,
    pool: Arc<Pool>,
    isa: Isa,
    progress: Box<dyn Bar>,
    done: u64,
}

impl Course<'_> {
    /// Runs a trainer to the end of its stage, with a look at the mode weights now and then.
    fn train(&mut self, second: &str, from: Option<&State>) -> Result<Stage> {
        let settings = settings(second, self.budget.steps)?;
        let look = (settings.steps() / LOOKS).max(1);
        let feed = self.rows.feed(0, settings.batch, settings.seed, 0.0);
        let endpoints = Endpoints {
            start: feed.train,
            end: None,
        };
        let mut trainer = Trainer::new(
            self.spec,
            &settings,
            endpoints,
            None,
            self.pool.clone(),
            self.isa,
        )?;
        if let Some(state) = from {
            trainer.resume(state.clone())?;
        }
        let stage = trainer.state().stage;
        let label = if stage == 0 { "dsm, shared" } else { second };
        let mut weights = Vec::new();
        diffclf::train::run(&mut trainer, &mut |trainer: &Trainer,
                                                report: &StepReport|
         -> Result<ControlFlow<()>> {
            self.done += 1;
            let loss = report.losses.total;
            self.progress
                .set(self.done, &|| format!("{label}: loss {loss:.4}"));
            let step = trainer.state().step;
            if step.is_multiple_of(look) {
                let energy = self.energy(trainer.averaged())?;
                let found = mode_weights(&energy, self.exact, SMALLEST_TIME, self.budget.look, 7)?;
                weights.push((step as f64, found.model[0].mean));
            }
            Ok(if trainer.state().stage == stage {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        })?;
        Ok(Stage {
            state: trainer.state().clone(),
            params: trainer.averaged().to_vec(),
            weights,
        })
    }

    fn energy(&self, params: &[f32]) -> Result<LearnedEnergy<f32>> {
        Ok(LearnedEnergy::new(
            self.spec.clone(),
            params.to_vec(),
            self.pool.clone(),
            self.isa,
        )?)
    }

    fn second_stage(
        &mut self,
        name: &'static str,
        objective: &str,
        shared: &Stage,
        seconds_before: f64,
    ) -> Result<Outcome> {
        let begin = Instant::now();
        let stage = self.train(objective, Some(&shared.state))?;
        let seconds = seconds_before + begin.elapsed().as_secs_f64();
        let energy = self.energy(&stage.params)?;
        let settings = EvaluationSettings {
            samples_per_level: self.budget.samples[0],
            classification_samples_per_level: self.budget.samples[1],
            seed: 5,
            ..EvaluationSettings::default()
        };
        let evaluation = Evaluation::run(
            &energy,
            self.exact,
            &self.spec.grid,
            settings,
            &mut |_, _| (),
        )?;
        Ok(Outcome {
            name,
            energy,
            evaluation,
            seconds,
            weights: Series {
                name: name.into(),
                points: [&shared.weights[..], &stage.weights].concat(),
            },
        })
    }
}

fn figures_of_merit(exact: &ExactPath, outcomes: &[Outcome; 2], steps: [u64; 2]) -> Table {
    let row = |name: &str, best: String, of: &dyn Fn(&Evaluation) -> String| {
        let mut row = vec![name.to_string(), best];
        row.extend(outcomes.iter().map(|outcome| of(&outcome.evaluation)));
        row
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let optimum = outcomes[0].evaluation.average.optimum.mean;
    let weights = exact.start().weights();
    let evaluations = (steps[0] + steps[1]) * (BATCH * LEVELS) as u64;
    let mut rows: Vec<_> = (0..2)
        .map(|k| {
            row(
                &format!("weight of mode {}", k + 1),
                format!("{:.3}", weights[k]),
                &|e| format!("{:.3}", e.mode_weights.model[k]),
            )
        })
        .collect();
    rows.extend([
        row("R² of log-density, smallest time", "1".into(), &|e| {
            format!("{:.4}", e.levels[0].r2)
        }),
        row("R² of log-density, all levels", "1".into(), &|e| {
            format!("{:.4}", e.average.r2)
        }),
        row("ESS, smallest time", percent(1.0), &|e| {
            percent(e.levels[0].ess)
        }),
        row("ESS, all levels", percent(1.0), &|e| percent(e.average.ess)),
        row("classification loss", format!("{optimum:.3}"), &|e| {
            format!("{:.3}", e.average.classification.mean)
        }),
        row("  above its optimum", "0".into(), &|e| {
            format!("{:.4}", e.average.excess)
        }),
        row("score evaluations", String::new(), &|_| {
            evaluations.to_string()
        }),
    ]);
    let mut time = vec!["training time".to_string(), String::new()];
    time.extend(
        outcomes
            .iter()
            .map(|outcome| format!("{:.1} s", outcome.seconds)),
    );
    rows.push(time);
    let mut header = vec!["two modes".to_string(), "truth / best".into()];
    header.extend(outcomes.iter().map(|outcome| outcome.name.to_string()));
    Table {
        caption: "The same mixture, learned twice with the same number of score evaluations".into(),
        header,
        rows,
    }
}

/// The picture's frame in the user's coordinates: both modes with five standard deviations around them.
const FRAME: [(f64, f64); 2] = [(-2.0, 2.4), (-2.3, 2.1)];

/// The density on the cells of the frame, scaled so that it sums to one there: learned densities are compared by shape.
fn density(content: &Content, energy: &dyn Energy) -> Vec<f64> {
    let at =
        |(low, high): (f64, f64), k: usize| low + (high - low) * (k as f64 + 0.5) / CELLS as f64;
    let points: Vec<f64> = (0..CELLS * CELLS)
        .flat_map(|k| [at(FRAME[0], k % CELLS), at(FRAME[1], k / CELLS)])
        .collect();
    let mut values = vec![0.0; CELLS * CELLS];
    content
        .in_data_coordinates(energy)
        .log_density(&[SMALLEST_TIME], &points, &mut values);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let cell: f64 = FRAME
        .iter()
        .map(|(low, high)| (high - low) / CELLS as f64)
        .product();
    let mass: f64 = values.iter().map(|v| (v - largest).exp() * cell).sum();
    values.iter().map(|v| (v - largest).exp() / mass).collect()
}

fn write_page(
    path: &Path,
    table: &Table,
    content: &Content,
    exact: &ExactPath,
    (outcomes, steps): (&[Outcome; 2], [u64; 2]),
) -> Result<()> {
    let truth = density(content, exact);
    let top = truth.iter().copied().fold(0.0, f64::max);
    let picture = |values: &[f64], name: &str| {
        let alt = format!("density of two modes: {name}");
        let svg = Heatmap {
            alt: &alt,
            x: Axis::linear("x1", FRAME[0].0, FRAME[0].1),
            y: Axis::linear("x2", FRAME[1].0, FRAME[1].1),
            columns: CELLS,
            values,
            colour: Axis::linear("density", 0.0, top),
        }
        .svg();
        Figure {
            svg,
            caption: name.into(),
        }
    };
    let weight = exact.start().weights()[0];
    let mut pictures = vec![picture(
        &truth,
        &format!("Truth: mode weights {:.2} and {:.2}", weight, 1.0 - weight),
    )];
    for outcome in outcomes {
        let found = outcome.evaluation.mode_weights.model[0].mean;
        let caption = format!(
            "{}: mode weights {found:.2} and {:.2}",
            outcome.name,
            1.0 - found
        );
        pictures.push(picture(&density(content, &outcome.energy), &caption));
    }
    let ends =
        |points: &[(f64, f64)]| [points.first(), points.last()].map(|p| p.map_or(0.0, |p| p.0));
    let truth_line = ends(&outcomes[0].weights.points).map(|step| (step, weight));
    let series = [
        outcomes[0].weights.clone(),
        outcomes[1].weights.clone(),
        Series {
            name: "truth".into(),
            points: truth_line.to_vec(),
        },
    ];
    let curve = Curve {
        alt: "weight of the first mode during training",
        x_label: "step",
        y_label: "weight of mode 1",
        x_logarithmic: false,
        y_logarithmic: false,
        series: &series,
    };
    let mut page = Page::new("Two modes, and how much weight each has");
    page.paragraph(
        "Score matching learns in which direction density grows. Between two distant modes there is nothing to learn from, \
         so the score says almost nothing about how probability is shared between them: a learned energy comes out with \
         some weights, not with the right ones. DiffCLF also asks, for every noisy sample, which noise level it came from. \
         To answer, the densities of all levels must fit together, and at the noisiest level the modes have merged: from \
         there the right weights reach the data.",
    )
    .table(table)
    .heading("The learned densities")
    .paragraph(&format!(
        "At the smallest time, {SMALLEST_TIME}, in the data's own coordinates; one colour scale for all three, and each \
         density sums to one over its picture."
    ))
    .figures(&pictures)
    .heading("During training")
    .paragraph(&format!(
        "Both models share their first {} steps of score matching; the next {} use the same rows, times and noise.",
        steps[0], steps[1]
    ))
    .figures(&[Figure {
        svg: curve.svg(),
        caption: "Weight of the first mode, estimated on exact samples.".into(),
    }])
    .heading("Again")
    .verbatim("diffclf demo");
    let html = page.html();
    write_atomic(path, |writer| Ok(writer.write_all(html.as_bytes())?))
}
