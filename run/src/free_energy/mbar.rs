//! MBAR: all states from all samples, with everything that tells whether to trust it.

use super::input::{FileEnergies, read_series};
use super::{Resample, tenths};
use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::machine::Machine;
use crate::watch::Watch;
use crate::words;
use crate::words::Setting;
use diffclf::free_energy::{
    Blocks, Convergence, Ensemble, Matrix, Mbar, MbarSettings, Overlap, ReducedEnergies, Selection,
    Surface, convergence, detect_equilibration, statistical_inefficiency, subsample,
};
use diffclf::metric::Estimate;
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct MbarRequest {
    /// Reduced energies: a .npy file of shape (states, samples).
    pub energies: PathBuf,
    /// Samples of each state.
    pub counts: Vec<usize>,
    /// The file has shape (samples, states).
    pub transposed: bool,
    /// Leave out the start of each state's series, before it has equilibrated.
    pub equilibrate: bool,
    /// Keep only as many samples of each state's series as are independent.
    pub subsample: bool,
    /// Bootstrap for a second error bar.
    pub resample: Resample,
    /// Estimates from growing shares of the data.
    pub convergence: bool,
    /// What else to compute.
    pub targets: MbarTargets,
    /// Tolerance of the solution.
    pub tolerance: f64,
}

/// What is computed with the weights of the samples.
#[derive(Debug, Clone, Default)]
pub struct MbarTargets {
    /// State for expectations and surfaces.
    pub state: usize,
    /// Values of observables at every sample.
    pub observables: Vec<PathBuf>,
    /// Energies of further states at every sample.
    pub perturbed: Option<PathBuf>,
    /// Values of a coordinate at every sample.
    pub coordinate: Option<PathBuf>,
    /// Bins of the surface: lowest edge, highest edge, number.
    pub bins: Option<[f64; 3]>,
}

/// What was found.
#[derive(Debug)]
pub struct MbarFound {
    /// Samples of each state that were used.
    pub counts: Vec<usize>,
    /// Samples used and given, if some were left out.
    pub kept: Option<(usize, usize)>,
    /// States whose samples are correlated, with their statistical inefficiency.
    pub correlated: Vec<(usize, f64)>,
    /// Newton steps.
    pub iterations: usize,
    /// delta of each state to the first.
    pub relative: Vec<Estimate>,
    /// Covariance of the log normalisers.
    pub covariance: Vec<f64>,
    /// Effective samples of each state.
    pub effective: Vec<f64>,
    /// Overlap of the states.
    pub overlap: Overlap,
    /// Errors by the bootstrap.
    pub bootstrap_errors: Option<Vec<f64>>,
    /// Estimates of the last state from growing shares.
    pub convergence: Option<Convergence>,
    /// State of the expectations and of the surface.
    pub state: usize,
    /// Means of the observables, with their files.
    pub expectations: Vec<(PathBuf, Estimate)>,
    /// delta of the further states to the first.
    pub perturbed: Option<Vec<Estimate>>,
    /// The free-energy surface.
    pub surface: Option<Surface>,
}

/// Samples to keep.
struct Kept {
    counts: Vec<usize>,
    /// All of them, if nothing was left out.
    index: Option<Vec<usize>>,
    correlated: Vec<(usize, f64)>,
}

impl MbarRequest {
    /// Solves and computes what is asked for.
    pub fn run(&self, machine: &Machine, watch: &dyn Watch) -> Result<MbarFound> {
        let mapped = MappedNpy::open(&self.energies)?;
        let file = FileEnergies::new(&mapped, self.transposed)?;
        self.refuse_turned(&file)?;
        let settings = MbarSettings {
            tolerance: self.tolerance,
            pool: Some(machine.pool()?),
            isa: machine.isa()?,
            ..MbarSettings::default()
        };
        let kept = self.keep(&file);
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
            .map_err(|source| Error::about(&self.energies, source))?;
        let states = mbar.states();
        let bootstrap_errors = match self.resample.checked()? {
            None => None,
            Some(replicas) => {
                let block = self.blocks(energies, &kept.counts);
                let found = mbar.bootstrap(replicas, &block, self.resample.seed)?;
                let errors = (0..states).map(|k| found.difference(0, k).error);
                Some(errors.collect())
            }
        };
        let convergence = match self.convergence {
            true => Some(course(energies, &kept.counts, &settings, watch)?),
            false => None,
        };
        let targets = Targets {
            asked: &self.targets,
            transposed: self.transposed,
            mbar: &mbar,
            kept: &kept,
        };
        let used = kept.index.as_ref().map(Vec::len);
        Ok(MbarFound {
            kept: used.map(|used| (used, file.samples())),
            iterations: mbar.iterations(),
            relative: (0..states).map(|k| mbar.difference(0, k)).collect(),
            covariance: mbar.covariance().to_vec(),
            effective: mbar.effective_samples(),
            overlap: mbar.overlap(),
            bootstrap_errors,
            convergence,
            state: self.targets.state,
            expectations: targets.expectations()?,
            perturbed: targets.perturbed()?,
            surface: targets.surface()?,
            correlated: kept.correlated,
            counts: kept.counts,
        })
    }

    fn keep(&self, energies: &dyn ReducedEnergies) -> Kept {
        let counts = &self.counts;
        let fits = counts.len() == energies.states()
            && counts.iter().try_fold(0usize, |sum, n| sum.checked_add(*n))
                == Some(energies.samples());
        // What does not fit is refused by the solver, in its own words.
        if !fits {
            return Kept {
                counts: counts.clone(),
                index: None,
                correlated: vec![],
            };
        }
        let mut index = Vec::new();
        let mut kept = Vec::new();
        let mut correlated = Vec::new();
        let mut first = 0;
        for (state, &count) in counts.iter().enumerate() {
            let series = series_of(energies, counts, state);
            let start = if self.equilibrate && count > 1 {
                detect_equilibration(&series, (count / 100).max(1)).start
            } else {
                0
            };
            let g = statistical_inefficiency(&series[start..]);
            let chosen = if self.subsample {
                subsample(count - start, g)
            } else {
                (0..count - start).collect()
            };
            if !self.subsample && count > 10 && g > 2.0 && g < count as f64 {
                correlated.push((state, g));
            }
            kept.push(chosen.len());
            index.extend(chosen.iter().map(|n| first + start + n));
            first += count;
        }
        let all = index.len() == energies.samples();
        Kept {
            counts: kept,
            index: (!all).then_some(index),
            correlated,
        }
    }

    /// Counts that fit the file only if it is read the other way.
    fn refuse_turned(&self, energies: &dyn ReducedEnergies) -> Result<()> {
        let (states, samples) = (energies.states(), energies.samples());
        let sum = self
            .counts
            .iter()
            .fold(0usize, |sum, n| sum.saturating_add(*n));
        if states == samples || self.counts.len() != samples || sum != states {
            return Ok(());
        }
        let advice = if self.transposed {
            "leave out "
        } else {
            "add "
        };
        Err(Error::Refused(words!(
            self.energies.display(),
            format!(
                ": read as {states} states and {samples} samples, but the counts are those of {samples} states and {states} samples; "
            ),
            advice,
            Setting::new("transposed")
        )))
    }

    /// Blocks of the bootstrap: single samples if they are independent, else as long as the correlation asks.
    fn blocks(&self, energies: &dyn ReducedEnergies, counts: &[usize]) -> Vec<Blocks> {
        let block = |state: usize| {
            if self.subsample || counts[state] < 2 {
                Blocks::SINGLE
            } else {
                Blocks::of_series(&series_of(energies, counts, state))
            }
        };
        (0..counts.len()).map(block).collect()
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

/// The chosen samples in memory.
fn selected(energies: &dyn ReducedEnergies, index: &[usize]) -> Vec<f64> {
    let mut values = vec![0.0; energies.states() * index.len()];
    for (state, row) in values.chunks_exact_mut(index.len().max(1)).enumerate() {
        energies.gather(state, index, row);
    }
    values
}

fn course(
    energies: &dyn ReducedEnergies,
    counts: &[usize],
    settings: &MbarSettings,
    watch: &dyn Watch,
) -> Result<Convergence> {
    let mut bar = watch.begin("convergence", 20, 0);
    let mut done = 0;
    let found = convergence(&tenths(), &mut |range| {
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
        bar.set(done, &|| "shares of the data".into());
        Ok(mbar.difference(0, counts.len() - 1))
    })?;
    bar.finish("done");
    Ok(found)
}

/// What the weights of the samples are used for.
struct Targets<'a> {
    asked: &'a MbarTargets,
    transposed: bool,
    mbar: &'a Mbar<'a>,
    kept: &'a Kept,
}

impl Targets<'_> {
    /// Values at the samples that were kept.
    fn values_of(&self, path: &Path) -> Result<Vec<f64>> {
        let values = read_series(path)?;
        match &self.kept.index {
            Some(index) if index.iter().all(|n| *n < values.len()) => {
                Ok(index.iter().map(|n| values[*n]).collect())
            }
            None if values.len() == self.kept.counts.iter().sum::<usize>() => Ok(values),
            _ => Err(Error::Usage(format!(
                "{}: {} numbers, expected one for every sample of the energies",
                path.display(),
                values.len()
            ))),
        }
    }

    fn expectations(&self) -> Result<Vec<(PathBuf, Estimate)>> {
        let files = &self.asked.observables;
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let values = files
            .iter()
            .map(|path| self.values_of(path))
            .collect::<Result<Vec<_>>>()?;
        let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        let target = Ensemble::State(self.asked.state);
        let found = self.mbar.expectations(target, &values)?;
        Ok(files.iter().cloned().zip(found).collect())
    }

    fn perturbed(&self) -> Result<Option<Vec<Estimate>>> {
        let Some(path) = &self.asked.perturbed else {
            return Ok(None);
        };
        let mapped = MappedNpy::open(path)?;
        // One new state may be a plain list of numbers.
        let single = mapped.view()?.shape().len() == 1;
        let file = if single {
            None
        } else {
            Some(FileEnergies::new(&mapped, self.transposed)?)
        };
        let values = match (&file, &self.kept.index) {
            (None, _) => self.values_of(path)?,
            (Some(file), Some(index)) if index.iter().all(|n| *n < file.samples()) => {
                selected(file, index)
            }
            (Some(file), _) => selected(file, &(0..file.samples()).collect::<Vec<_>>()),
        };
        let states = file.as_ref().map_or(1, FileEnergies::states);
        let found = self
            .mbar
            .perturbed(&Matrix::new(&values, states)?)
            .map_err(|source| Error::about(path, source))?;
        Ok(Some((0..states).map(|k| found.relative(k)).collect()))
    }

    fn surface(&self) -> Result<Option<Surface>> {
        let Some(path) = &self.asked.coordinate else {
            return Ok(None);
        };
        let coordinate = self.values_of(path)?;
        let edges = edges(self.asked.bins, &coordinate)?;
        let target = Ensemble::State(self.asked.state);
        Ok(Some(self.mbar.surface(target, &coordinate, &edges)?))
    }
}

fn edges(bins: Option<[f64; 3]>, coordinate: &[f64]) -> Result<Vec<f64>> {
    let [low, high, bins] = bins.unwrap_or_else(|| {
        let low = coordinate.iter().copied().fold(f64::INFINITY, f64::min);
        let high = coordinate.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The highest sample belongs to the last bin.
        [low, high + 1e-9 * (high - low).abs().max(1e-300), 20.0]
    });
    if !(low < high && (1.0..=10_000.0).contains(&bins)) {
        return Err(Error::setting(
            "bins",
            format!("from {low} to {high} in {bins} bins"),
            "a rising range and 1 to 10000 bins",
        ));
    }
    let bins = bins as usize;
    Ok((0..=bins)
        .map(|i| low + (high - low) * i as f64 / bins as f64)
        .collect())
}
