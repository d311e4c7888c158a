//! `diffclf free-energy mbar`: all states from all samples, with everything that tells whether to trust it.

use super::input::{FileEnergies, counts, numbers, read_series};
use super::output::{
    Output, convergence_figure, differences, effort, facts, overlap_figure, overlap_notices,
};
use crate::machine::MachineArgs;
use crate::terminal::Terminal;
use diffclf::free_energy::{
    Blocks, Matrix, Mbar, MbarSettings, ReducedEnergies, Selection, Surface, Target, convergence,
    detect_equilibration, statistical_inefficiency, subsample,
};
use diffclf::metric::Estimate;
use diffclf_report::page::Table;
use diffclf_run::Watch;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::MappedNpy;
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy mbar u_kn.npy --counts 500,500,0,500
  diffclf free-energy mbar u_nk.npy --transposed --counts 1000x12 --subsample --page overlap.html
  diffclf free-energy mbar u_kn.npy --counts 500x4 --observable x.npy --state 2
  diffclf free-energy mbar u_kn.npy --counts 500x4 --coordinate x.npy --bins -2,2,40 --json surface.json
  diffclf free-energy mbar u_kn.npy --counts 500x4 --perturbed u_new.npy --bootstrap 100

u_kn.npy holds the reduced energy (kT) of every sample in every state, one row per state; samples are ordered by the state
they come from, as --counts says. A state may have no samples. The file is read in place: it may be larger than memory.
pymbar's u_kn and N_k are the same arrays.";

/// MBAR: free energies of many states from all their samples.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Reduced energies: a .npy file of shape (states, samples)
    #[arg(value_name = "U_KN.npy")]
    energies: PathBuf,
    /// Samples of each state: 500,500,0,500 or 500x4
    #[arg(long, value_name = "N0,N1,...")]
    counts: String,
    /// The file has shape (samples, states)
    #[arg(long)]
    transposed: bool,
    /// Leave out the start of each state's series, before it has equilibrated
    #[arg(long)]
    equilibrate: bool,
    /// Keep only as many samples of each state's series as are independent
    #[arg(long)]
    subsample: bool,
    /// Bootstrap replicas for a second error bar
    #[arg(long, value_name = "N")]
    bootstrap: Option<usize>,
    /// Seed of the bootstrap
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Estimates from growing shares of the data, forward and backward
    #[arg(long)]
    convergence: bool,
    /// Wanted error of the last state relative to the first, in kT, for the number of samples it needs
    #[arg(long, value_name = "KT", default_value_t = 0.1)]
    error: f64,
    /// State for expectations and surfaces
    #[arg(long, value_name = "K", default_value_t = 0, help_heading = "Targets")]
    state: usize,
    /// Values of an observable at every sample: its mean in --state
    #[arg(long, value_name = "A.npy", help_heading = "Targets")]
    observable: Vec<PathBuf>,
    /// Energies of further states at every sample: their free energies
    #[arg(long, value_name = "U_NEW.npy", help_heading = "Targets")]
    perturbed: Option<PathBuf>,
    /// Values of a coordinate at every sample: the free-energy surface of --state along it
    #[arg(long, value_name = "X.npy", help_heading = "Targets")]
    coordinate: Option<PathBuf>,
    /// Bins of the surface: lowest edge, highest edge, number
    #[arg(
        long,
        value_name = "LOW,HIGH,N",
        allow_hyphen_values = true,
        help_heading = "Targets",
        requires = "coordinate"
    )]
    bins: Option<String>,
    /// Tolerance of the solution
    #[arg(long, value_name = "TOL", default_value_t = 1e-12)]
    tolerance: f64,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Samples to keep.
struct Kept {
    counts: Vec<usize>,
    /// All of them, if nothing was left out.
    index: Option<Vec<usize>>,
    notices: Vec<String>,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.output.check()?;
    let counts = counts(&args.counts).map_err(|text| Error::Usage(format!("--counts: {text}")))?;
    let mapped = MappedNpy::open(&args.energies)?;
    let file = FileEnergies::new(&mapped, args.transposed)?;
    let settings = MbarSettings {
        tolerance: args.tolerance,
        pool: Some(args.machine.pool()?),
        isa: args.machine.isa()?,
        ..MbarSettings::default()
    };
    let kept = keep(&args, &file, counts)?;
    let copy = kept.index.as_ref().map(|index| selected(&file, index));
    let matrix = copy
        .as_ref()
        .map(|copy| Matrix::new(copy, file.states()))
        .transpose()?;
    let energies: &dyn ReducedEnergies = match &matrix {
        Some(matrix) => matrix,
        None => &file,
    };
    let mbar = Mbar::solve(energies, &kept.counts, &settings)
        .map_err(|source| Error::about(&args.energies, source))?;
    let states = mbar.states();
    let overlap = mbar.overlap();
    let effective = mbar.effective_samples();
    let all: Vec<Estimate> = (0..states).map(|k| mbar.difference(0, k)).collect();
    let last = all[states - 1];
    let mut record = json!({
        "method": "mbar",
        "counts": kept.counts,
        "iterations": mbar.iterations(),
        "relative_to_state_0": all,
        "covariance": mbar.covariance(),
        "effective_samples": effective,
        "overlap": overlap,
    });
    let mut notices = kept.notices.clone();
    notices.extend(overlap_notices(&overlap));
    if let Some(k) = (0..states).find(|k| effective[*k] < 20.0) {
        notices.push(format!(
            "state {k} rests on {:.1} effective samples: its error bar cannot be trusted",
            effective[k]
        ));
    }

    let errors = match args.bootstrap {
        None => None,
        Some(replicas) => {
            let block = blocks(&args, energies, &kept.counts)?;
            let found = mbar.bootstrap(replicas, &block, args.seed)?;
            Some(
                (0..states)
                    .map(|k| found.difference(0, k).error)
                    .collect::<Vec<_>>(),
            )
        }
    };
    if let Some(errors) = &errors {
        record["bootstrap_errors"] = json!(errors);
    }
    let mut tables = vec![states_table(&mbar, &all, errors.as_deref(), &effective)];
    tables.push(facts(
        "Quality",
        &[
            ("scalar overlap (0 to 1)", format!("{:.4}", overlap.scalar)),
            (
                "weakest link",
                overlap.links.first().map_or("none".into(), |link| {
                    format!("{} - {}: {:.4}", link.from, link.to, link.overlap)
                }),
            ),
            (
                "rows of the overlap matrix sum to 1 within",
                format!("{:.1e}", overlap.row_error),
            ),
            ("Newton steps", mbar.iterations().to_string()),
            (
                "last state, for the wanted error",
                effort(last.error, args.error),
            ),
        ],
    ));
    let mut figures = vec![overlap_figure(&overlap)];

    if args.convergence {
        let course = course(&args, energies, &kept.counts, &settings)?;
        if course.tension() > 3.0 {
            notices.push(format!(
                "the first and the last samples disagree by {:.1} errors: the series have not settled",
                course.tension()
            ));
        }
        figures.push(convergence_figure(&course));
        record["convergence"] = json!(course);
    }
    targets(&args, &mbar, &kept, &mut tables, &mut record)?;
    args.output
        .give("MBAR", &tables, &notices, &figures, record)
}

fn states_table(
    mbar: &Mbar<'_>,
    all: &[Estimate],
    bootstrap: Option<&[f64]>,
    effective: &[f64],
) -> Table {
    let mut header: Vec<String> = ["state", "samples", "delta to state 0", "error"]
        .map(String::from)
        .to_vec();
    if bootstrap.is_some() {
        header.push("bootstrap error".into());
    }
    header.extend(["Delta_f = -delta", "effective samples"].map(String::from));
    let rows = all.iter().enumerate().map(|(k, e)| {
        let mut row = vec![
            k.to_string(),
            mbar.counts()[k].to_string(),
            format!("{:.6}", e.mean),
            format!("{:.6}", e.error),
        ];
        row.extend(bootstrap.map(|errors| format!("{:.6}", errors[k])));
        row.push(format!("{:.6}", 0.0 - e.mean));
        row.push(format!("{:.1}", effective[k]));
        row
    });
    Table {
        caption: "delta = log(Z_k/Z_0)".into(),
        header,
        rows: rows.collect(),
    }
}

/// The series by which a state's samples are judged: the energy difference to the next state with samples.
fn series_of(energies: &dyn ReducedEnergies, counts: &[usize], state: usize) -> Vec<f64> {
    let first: usize = counts[..state].iter().sum();
    let sampled = |k: &usize| counts[*k] > 0;
    let neighbour = (state + 1..counts.len())
        .find(sampled)
        .or_else(|| (0..state).rev().find(sampled));
    let mut own = vec![0.0; counts[state]];
    energies.read(state, first, &mut own);
    if let Some(neighbour) = neighbour {
        let mut other = vec![0.0; counts[state]];
        energies.read(neighbour, first, &mut other);
        for (own, other) in own.iter_mut().zip(other) {
            // A sample that the neighbour forbids says nothing about correlation.
            *own = if other.is_finite() { other - *own } else { 0.0 };
        }
    }
    own
}

fn keep(args: &Args, energies: &dyn ReducedEnergies, counts: Vec<usize>) -> Result<Kept> {
    let fits = counts.len() == energies.states()
        && counts.iter().try_fold(0usize, |sum, n| sum.checked_add(*n)) == Some(energies.samples());
    // What does not fit is refused by the solver, in its own words.
    if !fits {
        return Ok(Kept {
            counts,
            index: None,
            notices: vec![],
        });
    }
    let mut notices = Vec::new();
    let mut index = Vec::new();
    let mut kept = Vec::new();
    let mut correlated = Vec::new();
    let mut first = 0;
    for (state, &count) in counts.iter().enumerate() {
        let series = series_of(energies, &counts, state);
        let start = if args.equilibrate && count > 1 {
            detect_equilibration(&series, (count / 100).max(1)).start
        } else {
            0
        };
        let g = statistical_inefficiency(&series[start..]);
        let chosen = if args.subsample {
            subsample(count - start, g)
        } else {
            (0..count - start).collect()
        };
        if !args.subsample && count > 10 && g > 2.0 && g < count as f64 {
            correlated.push(format!("{state} ({g:.1})"));
        }
        kept.push(chosen.len());
        index.extend(chosen.iter().map(|n| first + start + n));
        first += count;
    }
    if !correlated.is_empty() {
        notices.push(format!(
            "samples are correlated (statistical inefficiency) in states {}: errors are too small unless --subsample is given",
            correlated.join(", ")
        ));
    }
    let all = index.len() == energies.samples();
    if !all {
        notices.push(format!(
            "{} of {} samples are kept",
            index.len(),
            energies.samples()
        ));
    }
    Ok(Kept {
        counts: kept,
        index: (!all).then_some(index),
        notices,
    })
}

/// The chosen samples in memory.
fn selected(energies: &dyn ReducedEnergies, index: &[usize]) -> Vec<f64> {
    let mut values = vec![0.0; energies.states() * index.len()];
    for (state, row) in values.chunks_exact_mut(index.len().max(1)).enumerate() {
        energies.gather(state, index, row);
    }
    values
}

/// Blocks of the bootstrap: single samples if they are independent, else as long as the correlation asks.
fn blocks(args: &Args, energies: &dyn ReducedEnergies, counts: &[usize]) -> Result<Vec<Blocks>> {
    let block = |state: usize| {
        if args.subsample || counts[state] < 2 {
            Blocks::SINGLE
        } else {
            Blocks::of_series(&series_of(energies, counts, state))
        }
    };
    Ok((0..counts.len()).map(block).collect())
}

fn course(
    args: &Args,
    energies: &dyn ReducedEnergies,
    counts: &[usize],
    settings: &MbarSettings,
) -> Result<diffclf::free_energy::Convergence> {
    let shares: Vec<f64> = (1..=10).map(|i| f64::from(i) / 10.0).collect();
    let mut progress = Terminal::new(args.quiet).begin("convergence", 20, 0);
    let mut done = 0;
    let found = convergence(&shares, &mut |range| {
        let mut index = Vec::new();
        let mut kept = Vec::new();
        let mut first = 0;
        for &count in counts {
            let part = range(count);
            kept.push(part.len());
            index.extend(part.map(|n| first + n));
            first += count;
        }
        let part = Selection::new(energies, index)?;
        let mbar = Mbar::solve(&part, &kept, settings)?;
        done += 1;
        progress.set(done, &|| "shares of the data".into());
        Ok(mbar.difference(0, counts.len() - 1))
    })?;
    progress.finish("done");
    Ok(found)
}

/// Values at the samples that were kept.
fn values_of(path: &std::path::Path, kept: &Kept, samples: usize) -> Result<Vec<f64>> {
    let values = read_series(path)?;
    match &kept.index {
        Some(index) if index.iter().all(|n| *n < values.len()) => {
            Ok(index.iter().map(|n| values[*n]).collect())
        }
        None if values.len() == samples => Ok(values),
        _ => Err(Error::Usage(format!(
            "{}: {} numbers, expected one for every sample of the energies",
            path.display(),
            values.len()
        ))),
    }
}

fn targets(
    args: &Args,
    mbar: &Mbar<'_>,
    kept: &Kept,
    tables: &mut Vec<Table>,
    record: &mut Value,
) -> Result<()> {
    let samples = kept.counts.iter().sum();
    if !args.observable.is_empty() {
        let values = args
            .observable
            .iter()
            .map(|path| values_of(path, kept, samples))
            .collect::<Result<Vec<_>>>()?;
        let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        let found = mbar.expectations(Target::State(args.state), &values)?;
        tables.push(Table {
            caption: format!("Expectations in state {}", args.state),
            header: ["observable", "mean", "error"].map(String::from).to_vec(),
            rows: args
                .observable
                .iter()
                .zip(&found)
                .map(|(path, e)| {
                    vec![
                        path.display().to_string(),
                        format!("{:.6}", e.mean),
                        format!("{:.6}", e.error),
                    ]
                })
                .collect(),
        });
        record["expectations"] = json!(found);
    }
    if let Some(path) = &args.perturbed {
        let mapped = MappedNpy::open(path)?;
        // One new state may be a plain list of numbers.
        let single = mapped.view()?.shape().len() == 1;
        let file = if single {
            None
        } else {
            Some(FileEnergies::new(&mapped, args.transposed)?)
        };
        let values = match (&file, &kept.index) {
            (None, _) => values_of(path, kept, samples)?,
            (Some(file), Some(index)) if index.iter().all(|n| *n < file.samples()) => {
                selected(file, index)
            }
            (Some(file), _) => selected(file, &(0..file.samples()).collect::<Vec<_>>()),
        };
        let states = file.as_ref().map_or(1, FileEnergies::states);
        let found = mbar
            .perturbed(&Matrix::new(&values, states)?)
            .map_err(|source| Error::about(path, source))?;
        let relative: Vec<Estimate> = (0..states).map(|k| found.relative(k)).collect();
        let rows: Vec<_> = relative
            .iter()
            .enumerate()
            .map(|(k, e)| (format!("new state {k} to state 0"), *e))
            .collect();
        tables.push(differences("Perturbed states", &rows));
        record["perturbed"] = json!(relative);
    }
    if let Some(path) = &args.coordinate {
        let coordinate = values_of(path, kept, samples)?;
        let edges = edges(args, &coordinate)?;
        let surface = mbar.surface(Target::State(args.state), &coordinate, &edges)?;
        tables.push(surface_table(args.state, &surface));
        record["surface"] = json!(surface);
    }
    Ok(())
}

fn edges(args: &Args, coordinate: &[f64]) -> Result<Vec<f64>> {
    let (low, high, bins) = match &args.bins {
        None => {
            let low = coordinate.iter().copied().fold(f64::INFINITY, f64::min);
            let high = coordinate.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // The highest sample belongs to the last bin.
            (low, high + 1e-9 * (high - low).abs().max(1e-300), 20.0)
        }
        Some(text) => match numbers(text).as_deref() {
            Ok([low, high, bins]) => (*low, *high, *bins),
            _ => {
                return Err(Error::Usage(format!(
                    "--bins is '{text}', expected three numbers: lowest edge, highest edge, number of bins"
                )));
            }
        },
    };
    if !(low < high && (1.0..=10_000.0).contains(&bins)) {
        return Err(Error::Usage(format!(
            "--bins from {low} to {high} in {bins} bins, expected a rising range and 1 to 10000 bins"
        )));
    }
    let bins = bins as usize;
    Ok((0..=bins)
        .map(|i| low + (high - low) * i as f64 / bins as f64)
        .collect())
}

fn surface_table(state: usize, surface: &Surface) -> Table {
    let rows = surface.free_energy.iter().enumerate().map(|(bin, found)| {
        let place = format!("{:.4} to {:.4}", surface.edges[bin], surface.edges[bin + 1]);
        let (value, error) = found.map_or(("no samples".into(), String::new()), |e| {
            (format!("{:.4}", e.mean), format!("{:.4}", e.error))
        });
        vec![place, value, error, surface.samples[bin].to_string()]
    });
    Table {
        caption: format!(
            "Free energy along the coordinate in state {state}: -log density, lowest bin 0 (kT)"
        ),
        header: ["bin", "free energy", "error to the lowest", "samples"]
            .map(String::from)
            .to_vec(),
        rows: rows.collect(),
    }
}
