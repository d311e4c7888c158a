//! What a model is measured against away from the data: a Gaussian mixture fitted to rows it was trained on, and its exact noised marginals.
//!
//! Its density is known everywhere and can be drawn from, inflated if asked. Where it is not known which rows were trained on, every second
//! block of the rows is fitted and the others are judged by, so that no row is compared with a density that has seen it.

use super::noised::Data;
use super::{DiagnosisSettings, Subject};
use crate::Result;
use crate::base::{
    FitSettings, Level, Marginal, MixtureBase, RowSlice, Spread, Wanted, fit, fit_ends,
};
use crate::engine::{Isa, Pool};
use crate::process::Process;
use crate::rng::{Purpose, Stream};

/// Rows of the fit; of more, a subsample spread over all.
const MOST_ROWS: usize = 8000;
/// Blocks of rows, fitted and judged by in turns.
const BLOCKS: usize = 40;

/// Rows of both endpoints.
pub(crate) struct Table {
    start: Vec<f64>,
    end: Option<Vec<f64>>,
    dim: usize,
}

impl Table {
    pub fn data(&self) -> Data<'_> {
        Data {
            start: &self.start,
            end: self.end.as_deref(),
            dim: self.dim,
        }
    }

    /// Rows to fit a density to, and rows to judge it by: the trained ones, and none but the subject's; or, where those are not known, the two
    /// halves of the subject's, block by block.
    pub fn split(rows: Data<'_>, trained: Option<Data<'_>>) -> (Table, Option<Table>) {
        match trained {
            Some(trained) => {
                let table = Table {
                    start: trained.start.to_vec(),
                    end: trained.end.map(<[f64]>::to_vec),
                    dim: trained.dim,
                };
                (table, None)
            }
            None => (Table::blocks(rows, 0), Some(Table::blocks(rows, 1))),
        }
    }

    /// Every second block of the rows: those of even or of odd number.
    fn blocks(data: Data<'_>, odd: usize) -> Table {
        let dim = data.dim;
        let half = |rows: &[f64]| -> Vec<f64> {
            let n = rows.len() / dim;
            let block = n.div_ceil(BLOCKS).max(1);
            let rows = rows.chunks_exact(dim).enumerate();
            rows.filter(|(i, _)| i / block % 2 == odd)
                .flat_map(|(_, row)| row.iter().copied())
                .collect()
        };
        Table {
            start: half(data.start),
            end: data.end.map(half),
            dim,
        }
    }
}

/// See the module's text.
pub(super) struct Reference {
    marginal: Marginal<f64>,
    process: Process,
    /// Components of the first endpoint's mixture.
    pub components: usize,
    /// Rows that were fitted.
    pub rows: usize,
    /// Rows to judge by that were not fitted; none: all of the subject's.
    other: Option<Table>,
    fitted: Table,
}

impl Reference {
    /// Fits the mixture.
    pub fn of(subject: &Subject<'_>, settings: &DiagnosisSettings) -> Result<Self> {
        let (fitted, other) = Table::split(subject.rows, subject.trained);
        let how = FitSettings {
            most_components: settings.components,
            most_rows: MOST_ROWS,
            periods: subject.periods.to_vec(),
            seed: settings.seed,
            ..FitSettings::default()
        };
        let (pool, isa) = (Pool::new(1), Isa::detect());
        let dim = fitted.dim;
        let start = RowSlice::new(&fitted.start, dim);
        let ends: [Option<MixtureBase>; 2] = match &fitted.end {
            None => [Some(fit(&start, &how, &pool, isa)?.mixture), None],
            Some(end) => {
                let ends = fit_ends(&start, &RowSlice::new(end, dim), &how, &pool, isa)?;
                [Some(ends.start.mixture), Some(ends.end.mixture)]
            }
        };
        let [Some(start), end] = ends else {
            return Err(crate::Error::EmptyArray {
                shape: format!("(0, {dim})"),
            });
        };
        Ok(Self {
            components: start.components(),
            marginal: Marginal::new(&start, end.as_ref(), isa)?,
            process: *subject.process,
            rows: (fitted.start.len() / dim).min(MOST_ROWS),
            other,
            fitted,
        })
    }

    /// Rows to judge by that the mixture has not seen.
    pub fn unseen<'a>(&'a self, subject: &Subject<'a>) -> Data<'a> {
        self.other.as_ref().map_or(subject.rows, Table::data)
    }

    /// Rows that were fitted.
    pub fn fitted(&self) -> Data<'_> {
        self.fitted.data()
    }

    /// log b of every point at a time, of the mixture `inflation` times as wide.
    pub fn log_density(&self, time: f64, inflation: f64, points: &[f64]) -> Vec<f64> {
        let level = Level::at(&self.process, time).inflated(inflation);
        let mut out = vec![0.0; points.len() / self.marginal.dim()];
        let wanted = Wanted {
            log_density: &mut out,
            score: None,
            time_score: None,
            laplacian: None,
        };
        self.marginal
            .evaluate(points, &[level], wanted, &mut self.marginal.scratch());
        out
    }

    /// Draws at a time of the mixture `inflation` times as wide. `(seed, set)` tells draws apart.
    pub fn draw(
        &self,
        time: f64,
        inflation: f64,
        count: usize,
        (seed, set): (u64, u64),
    ) -> Vec<f64> {
        let dim = self.marginal.dim();
        let level = Level::at(&self.process, time).inflated(inflation);
        let (mut points, mut room) = (vec![0.0; count * dim], vec![0.0; 2 * dim]);
        for (row, point) in points.chunks_exact_mut(dim).enumerate() {
            let mut stream = Stream::new(seed, Purpose::Propose, set, row as u64);
            self.marginal.sample(&level, &mut stream, point, &mut room);
        }
        points
    }

    /// Share of the noise in the variances of an end at a time, `gamma^2 / (alpha^2 v + gamma^2)`: along the narrowest axis, and the mean over
    /// axes; both averaged over the components by weight.
    pub fn blur(&self, time: f64, end: bool) -> [f64; 2] {
        let noise = self.process.noise(time).powi(2);
        let (mixture, scale) = match self.marginal.end() {
            Some(other) if end => (other, self.process.x1_scale(time)),
            _ => (self.marginal.start(), self.process.x0_scale(time)),
        };
        let share = |variance: f64| noise / (scale * scale * variance + noise);
        let dim = mixture.dim();
        let mut sums = [0.0; 2];
        for (k, weight) in mixture.weights().iter().enumerate() {
            let (variances, rest): (&[f64], Option<f64>) = match mixture.spread() {
                Spread::Diagonal { variances, .. } => (&variances[k * dim..][..dim], None),
                Spread::Axes {
                    rank,
                    variances,
                    rest,
                    ..
                } => (&variances[k * rank..][..*rank], rest.get(k).copied()),
            };
            let others = (dim - variances.len()) as f64;
            let least = variances.iter().copied().chain(rest);
            sums[0] += weight * share(least.fold(f64::INFINITY, f64::min));
            let mean = variances.iter().map(|v| share(*v)).sum::<f64>();
            sums[1] += weight * (mean + rest.map_or(0.0, |v| others * share(v))) / dim as f64;
        }
        sums
    }
}

/// The largest log-density that noised rows can have at a time: that of a single repeated row, `-d/2 log(2 pi gamma^2)`.
pub(super) fn ceiling(process: &Process, time: f64, dim: usize) -> f64 {
    -(dim as f64) * (process.noise(time) * std::f64::consts::TAU.sqrt()).ln()
}
