//! Densities of rows of symbols, and new rows.

use super::rows::{not_a_symbol, symbol_of};
use crate::density::{Evaluated, Quantity};
use crate::error::{Error, Result};
use crate::memory;
use crate::watch::{Done, Watch};
use crate::words;
use crate::words::Setting;
use diffclf::discrete::energy::time_scores;
use diffclf::discrete::model::{Content, StatesSpec};
use diffclf::discrete::sample::{Clipped, Method, Reversal};
use diffclf::discrete::{Energy, LearnedStates};

/// The symbols of rows of numbers, those of noise included.
pub(super) fn symbols(
    spec: &StatesSpec,
    name: &str,
    values: &[f64],
    dim: usize,
) -> Result<Vec<u8>> {
    if dim != spec.space.sites {
        return Err(Error::Core(diffclf::Error::Shape {
            what: name.into(),
            found: format!("{dim} columns"),
            expected: format!("{}, the sites of the model", spec.space.sites),
        }));
    }
    let symbol = |(k, value): (usize, &f64)| {
        let found = symbol_of(*value as f32, spec.symbols());
        found.map(|s| s as u8).ok_or_else(|| {
            not_a_symbol(
                name,
                (k / dim, k % dim),
                *value as f32,
                Some(spec.symbols()),
            )
        })
    };
    values.iter().enumerate().map(symbol).collect()
}

/// Values of a model at rows of numbers (`dim` columns), at a time or at its smallest one. The score of states is the logarithm of the
/// ratios of all changes, `rows x sites x symbols`.
pub fn densities(
    quantity: Quantity,
    (spec, energy): (&StatesSpec, &dyn Energy),
    (name, values, dim): (&str, &[f64], usize),
    time: Option<f64>,
) -> Result<Evaluated> {
    let rows = symbols(spec, name, values, dim)?;
    let (count, grid) = (rows.len() / dim, &spec.grid);
    let time = time.unwrap_or(grid.t_min());
    if !(grid.t_min()..=grid.t_max()).contains(&time) {
        let expected = format!(
            "between {} and {}, the times of the model",
            grid.t_min(),
            grid.t_max()
        );
        return Err(Error::setting("time", time, expected));
    }
    let mut shape = vec![count];
    if quantity == Quantity::Score {
        shape.extend([dim, spec.symbols()]);
    }
    let mut out = vec![0.0; shape.iter().product()];
    match quantity {
        Quantity::LogDensity => energy.log_density(time, &rows, &mut out),
        Quantity::Energy => energy.energy(time, &rows, &mut out),
        Quantity::Score => energy.log_ratios(time, &rows, &mut out),
        Quantity::TimeScore => time_scores(energy, time, &rows, &mut out),
        Quantity::FlowLogDensity => {
            return Err(Error::Usage(
                "states have no probability flow; leave out the flow".into(),
            ));
        }
    }
    Ok(Evaluated {
        values: out,
        shape,
        rows: count,
        time,
        outside: None,
    })
}

/// New rows of a model.
#[derive(Debug, Clone, Default)]
pub struct StatesGeneration {
    /// How many.
    pub number: usize,
    /// `jumps`, `tau-leaping` or `ancestral`; none: jumps.
    pub method: Option<String>,
    /// Steps of the latter two; none: the levels of the model's grid.
    pub steps: Option<usize>,
    /// Seed.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct StatesGenerated {
    /// Symbols, row after row.
    pub rows: Vec<u8>,
    /// The method.
    pub method: String,
    /// Ratios that no true density has.
    pub clipped: Clipped,
}

/// Rows that are made at once.
const BLOCK: usize = 4096;

impl StatesGeneration {
    /// Makes them.
    pub fn run(
        &self,
        (content, energy): (&Content, &LearnedStates),
        watch: &dyn Watch,
    ) -> Result<Done<StatesGenerated>> {
        let name = self.method.as_deref().unwrap_or("jumps");
        let method = Method::by_name(name)?;
        if self.number == 0 {
            return Err(Error::setting("number", 0, "at least 1"));
        }
        memory::refuse_rows("number", self.number, content.spec.space.sites, 1)?;
        let grid = &content.spec.grid;
        let times = match (self.steps, method) {
            (Some(_), Method::Jumps) => {
                return Err(Error::Refused(words!(
                    Setting::new("steps"),
                    " belongs to tau-leaping and ancestral: jumps come at times of their own; leave it out"
                )));
            }
            (Some(steps), _) => grid.with_levels(steps.saturating_add(1))?.times().to_vec(),
            (None, _) => grid.times().to_vec(),
        };
        let reversal = Reversal {
            energy,
            method,
            times: &times,
            seed: self.seed,
        };
        let mut bar = watch.begin("sample", self.number as u64, 0);
        let (mut rows, mut clipped) = (Vec::new(), Clipped::default());
        let mut first = 0;
        while first < self.number {
            let end = (first + BLOCK).min(self.number);
            let (part, some) = reversal.run(first..end, &mut |done| {
                if method == Method::Jumps {
                    bar.set((first + done) as u64, &|| "rows".into());
                }
            })?;
            rows.extend(part);
            clipped.above += some.above;
            clipped.of += some.of;
            bar.set(end as u64, &|| "rows".into());
            if watch.stopped() {
                break;
            }
            first = end;
        }
        let found = StatesGenerated {
            rows,
            method: name.into(),
            clipped,
        };
        Ok(Done::new(found, bar))
    }
}
