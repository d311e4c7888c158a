//! Rows of symbols out of files, arrays and systems: checked, counted, dealt to a training.

use crate::data::{DataSet, Feed, Prepared};
use crate::error::{Error, Result};
use crate::last_word::HeldOutRows;
use crate::prepare::taken;
use diffclf::discrete::system::Target;
use diffclf::discrete::{MOST_STATES, Space};
use diffclf::energy::Coordinates;
use diffclf::model::DataRecord;
use diffclf::rng::{Purpose, Stream};
use diffclf::train::{Source, Table};
use std::path::Path;
use std::sync::Arc;

/// Rows drawn to learn the laws of a system's sites.
const DRAWS: u64 = 1 << 15;

/// Where rows of symbols come from.
pub enum StatesRows {
    /// A table: given, or drawn once from a system.
    Table {
        /// The rows.
        set: Box<DataSet>,
        /// What the model remembers of them.
        record: DataRecord,
    },
    /// A system, drawn from at every step.
    Fresh {
        /// The system.
        target: Arc<dyn Target>,
        /// What the model remembers of it.
        record: DataRecord,
    },
}

/// Draws rows of a system afresh.
struct FreshRows {
    target: Arc<dyn Target>,
    seed: u64,
}

impl Source for FreshRows {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let mut stream = Stream::new(self.seed, Purpose::Rows(0), step, unit as u64);
        // A row is short; its bytes and its numbers are two things.
        let mut row = [0; 256];
        if out.len() <= row.len() {
            let row = &mut row[..out.len()];
            self.target.sample(&mut stream, row);
            out.iter_mut()
                .zip(row)
                .for_each(|(out, s)| *out = f32::from(*s));
        } else {
            let mut row = vec![0; out.len()];
            self.target.sample(&mut stream, &mut row);
            out.iter_mut()
                .zip(row)
                .for_each(|(out, s)| *out = f32::from(s));
        }
    }
}

/// What the rows are like.
pub struct Counted {
    /// Sites, and one more state than the largest symbol.
    pub space: Space,
    /// The share of rows in which each site shows each state.
    pub shares: Vec<f64>,
    /// Rows counted, or the equally weighted ones that they are worth.
    pub rows: f64,
}

impl StatesRows {
    /// Rows that are given.
    pub fn given(set: DataSet) -> StatesRows {
        let record = set.record().clone();
        let set = Box::new(set);
        StatesRows::Table { set, record }
    }

    /// Rows of a system; with `samples`, so many drawn once.
    pub fn system(
        target: Arc<dyn Target>,
        system_seed: u64,
        samples: Option<usize>,
        seed: u64,
    ) -> Result<StatesRows> {
        let record = DataRecord {
            name: target.name().into(),
            system_seed: Some(system_seed),
            rows: samples,
            sha256: None,
            steps: Vec::new(),
            columns: Vec::new(),
            origins: Vec::new(),
            weights: None,
        };
        let Some(count) = samples else {
            return Ok(StatesRows::Fresh { target, record });
        };
        let sites = target.space().sites;
        crate::memory::refuse_rows("samples", count, sites, 4)?;
        let mut values = vec![0f32; count * sites];
        let mut row = vec![0; sites];
        for (k, values) in values.chunks_exact_mut(sites).enumerate() {
            target.sample(
                &mut Stream::new(seed, Purpose::Drawn(0), 0, k as u64),
                &mut row,
            );
            values
                .iter_mut()
                .zip(&row)
                .for_each(|(v, s)| *v = f32::from(*s));
        }
        let set = DataSet::from_array(target.name(), values, count, sites)?;
        let set = Box::new(set);
        Ok(StatesRows::Table { set, record })
    }

    /// What the model remembers.
    pub fn record(&self) -> &DataRecord {
        match self {
            StatesRows::Table { record, .. } | StatesRows::Fresh { record, .. } => record,
        }
    }

    /// Number of rows, if it is fixed, and whether they are given.
    pub fn count(&self) -> (Option<usize>, bool) {
        (self.record().rows, self.record().sha256.is_some())
    }

    /// The equally weighted rows that they are worth, where they have weights.
    pub fn effective(&self) -> Option<usize> {
        match self {
            StatesRows::Table { set, .. } => set.effective_rows().map(|rows| rows as usize),
            StatesRows::Fresh { .. } => None,
        }
    }

    fn prepared(set: &DataSet) -> Result<Prepared> {
        set.prepare(&Coordinates::identity(set.dim()?))
    }

    /// Looks at every symbol. `states` is how many there may be; none: as many as there are.
    pub fn counted(&self, states: Option<usize>) -> Result<Counted> {
        match self {
            StatesRows::Fresh { target, .. } => {
                let space = target.space();
                let mut shares = vec![0.0; space.sites * space.states];
                let mut row = vec![0; space.sites];
                for k in 0..DRAWS {
                    target.sample(&mut Stream::new(0, Purpose::Departure(0), 0, k), &mut row);
                    for (site, s) in row.iter().enumerate() {
                        shares[site * space.states + usize::from(*s)] += 1.0 / DRAWS as f64;
                    }
                }
                Ok(Counted {
                    space,
                    shares,
                    rows: DRAWS as f64,
                })
            }
            StatesRows::Table { set, .. } => {
                let Prepared::Fixed(table, map) = Self::prepared(set)? else {
                    return Err(Error::Nothing);
                };
                let sites = set.dim()?;
                let mut counts = vec![0f64; sites * MOST_STATES];
                let weights = set.weights();
                let mut row = vec![0f32; sites];
                let mut most = 0;
                let mut total = 0.0;
                for number in 0..table.rows() {
                    table.copy_row(number, &map, &mut row);
                    let weight = weights.map_or(1.0, |weights| weights[number]);
                    total += weight;
                    for (site, value) in row.iter().enumerate() {
                        let symbol =
                            symbol_of(*value, states.unwrap_or(MOST_STATES)).ok_or_else(|| {
                                not_a_symbol(&set.record().name, (number, site), *value, states)
                            })?;
                        counts[site * MOST_STATES + symbol] += weight;
                        most = most.max(symbol);
                    }
                }
                let space = Space {
                    sites,
                    states: states.unwrap_or((most + 1).max(2)),
                };
                let shares = counts
                    .chunks_exact(MOST_STATES)
                    .flat_map(|c| c[..space.states].iter().map(|count| count / total))
                    .collect();
                Ok(Counted {
                    space,
                    shares,
                    rows: set.effective_rows().unwrap_or(table.rows() as f64),
                })
            }
        }
    }

    /// Sources of rows to train on and held out, and the held-out rows themselves.
    pub fn feed(&self, batch: usize, seed: u64, share: f64) -> Result<(Feed, Option<HeldOutRows>)> {
        match self {
            StatesRows::Fresh { target, .. } => {
                let train = Arc::new(FreshRows {
                    target: target.clone(),
                    seed,
                });
                Ok((
                    Feed {
                        train,
                        held_out: None,
                    },
                    None,
                ))
            }
            StatesRows::Table { set, .. } => {
                let rows = Self::prepared(set)?;
                let held_out = match share {
                    0.0 => None,
                    _ => rows
                        .in_order(0, seed, share)
                        .map(|[_, rest]| taken(&rest, set.dim().unwrap_or(1))),
                };
                Ok((rows.feed(0, batch, seed, share), held_out))
            }
        }
    }
}

/// The symbol that a number is, if it is one of so many.
pub(super) fn symbol_of(value: f32, states: usize) -> Option<usize> {
    let symbol = value as usize;
    (value >= 0.0 && symbol as f32 == value && symbol < states).then_some(symbol)
}

pub(super) fn not_a_symbol(
    name: &str,
    (row, site): (usize, usize),
    value: f32,
    states: Option<usize>,
) -> Error {
    let most = states.unwrap_or(MOST_STATES) - 1;
    Error::Usage(format!(
        "{name} holds {value} in row {row}, column {site} (counted from 0), expected a whole number from 0 to {most}: rows of states are symbols of \
         each site"
    ))
}

/// Whether a file holds what can only be symbols: an integer type, and no number beyond 0 to 15.
pub fn recognised(path: &Path) -> Result<bool> {
    let map = crate::files::MappedNpy::open(path)?;
    let view = map.view()?;
    let whole = view.type_name().contains("int") || view.type_name() == "bool";
    if !whole || view.dim() < 2 {
        return Ok(false);
    }
    let mut row = vec![0f32; view.dim()];
    for number in 0..view.rows() {
        view.copy_row(number, &mut row);
        if row.iter().any(|x| symbol_of(*x, 16).is_none()) {
            return Ok(false);
        }
    }
    Ok(true)
}
