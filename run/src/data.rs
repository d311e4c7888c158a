//! `DataSet`: where training rows come from, a memory-mapped file, an array in memory, a fixed set drawn from a system, or a system
//! sampled afresh. It owns what it holds, so that a training can outlive whoever opened it.

mod array;
mod prepared;

pub use array::Array;
pub use prepared::{Feed, Prepared};

use crate::error::{DataFault, Error, Result};
use crate::files::MappedNpy;
use crate::memory::refuse_rows;
use crate::notice::Notice;
use crate::origin::Origin;
use crate::values::{MOST_VIEWED, Mapped, Stored, Values};
use crate::weights::GivenWeights;
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Coordinates, Moments};
use diffclf::format::npy::{ColumnStatistics, Npy};
use diffclf::format::sha256_hex;
use diffclf::model::DataRecord;
use diffclf::particles::View;
use diffclf::rng::Purpose;
use diffclf::system::{GaussianMixture, System};
use diffclf::weights::RowWeights;
use std::path::Path;
use std::sync::Arc;

/// Draws for the mean and variance of a system that is no mixture.
const SYSTEM_DRAWS: usize = 1 << 16;
/// A column this much narrower than the average one is worth a word: one scale serves all columns.
const NARROW: f64 = 0.01;

/// One endpoint's rows.
pub struct DataSet {
    rows: Rows,
    /// What happens to a row before anybody sees it.
    view: Option<Arc<View>>,
    /// How much each row counts; none where all count the same.
    weights: Option<Arc<RowWeights>>,
    pub(crate) record: DataRecord,
}

enum Rows {
    File(Arc<MappedNpy>),
    Array(Array, usize),
    Drawn(Arc<System>, Arc<Vec<f32>>),
    Fresh(Arc<System>),
}

impl DataSet {
    /// Maps a file and names its content.
    pub fn file(path: &Path) -> Result<Self> {
        let map = MappedNpy::open(path)?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let record = DataRecord {
            name: name.to_string_lossy().into_owned(),
            system_seed: None,
            rows: Some(map.view()?.rows()),
            sha256: Some(sha256_hex(map.bytes())),
            steps: Vec::new(),
            origins: Vec::new(),
            columns: map.names().to_vec(),
            weights: None,
        };
        Ok(Self {
            rows: Rows::File(Arc::new(map)),
            view: None,
            weights: None,
            record,
        })
    }

    /// An array of `rows` rows of `dim` columns. Under the name of a .npy file with the same numbers it is that file: the digest, the
    /// rows and so the model are the same to the last bit.
    pub fn from_array(
        name: &str,
        values: impl Into<Array>,
        rows: usize,
        dim: usize,
    ) -> Result<Self> {
        Self::from_shaped(name, values, &[rows, dim])
    }

    /// The same with any number of axes, of which the first counts the rows.
    pub fn from_shaped(name: &str, values: impl Into<Array>, shape: &[usize]) -> Result<Self> {
        let values = values.into();
        let rows = shape.first().copied().unwrap_or(0);
        let dim = shape.iter().skip(1).product();
        if rows == 0 || dim == 0 || rows.checked_mul(dim) != Some(values.len()) {
            let fault = DataFault::Shape {
                values: values.len(),
                rows,
                dim,
            };
            return Err(fault_of(name, fault));
        }
        let record = DataRecord {
            name: name.into(),
            system_seed: None,
            rows: Some(rows),
            sha256: Some(values.sha256(shape)?),
            steps: Vec::new(),
            origins: Vec::new(),
            columns: Vec::new(),
            weights: None,
        };
        Ok(Self {
            rows: Rows::Array(values, dim),
            view: None,
            weights: None,
            record,
        })
    }

    /// The same rows with the names of their columns, which the model remembers.
    pub fn with_columns(mut self, names: Vec<String>) -> Self {
        self.record.columns = names;
        self
    }

    /// The same rows with weights: they stand for the law in which a row has a probability proportional to its weight.
    pub fn with_weights(mut self, weights: GivenWeights) -> Result<Self> {
        if self.weights.is_some() {
            return Err(Error::Refused(words!(
                "the rows of ",
                self.record.name,
                " have weights twice; give them once"
            )));
        }
        self.record.weights = Some(weights.sha256);
        self.weights = Some(weights.values);
        Ok(self)
    }

    /// How many rows the weighted ones are worth; none where all count the same.
    pub fn effective_rows(&self) -> Option<f64> {
        self.weights.as_ref().map(|weights| weights.effective())
    }

    /// The weights of the rows; none where all count the same.
    pub(crate) fn weights(&self) -> Option<&[f64]> {
        self.weights.as_ref().map(|weights| weights.values())
    }

    /// A system at an endpoint; with `samples`, so many rows are drawn once with `seed`.
    pub fn system(
        endpoint: usize,
        system: System,
        system_seed: u64,
        samples: Option<usize>,
        seed: u64,
    ) -> Result<Self> {
        if let Some(rows) = samples
            && rows < 2
        {
            return Err(Error::setting("samples", rows, "at least 2"));
        }
        if let Some(rows) = samples {
            // The draws themselves, and a copy while they are put in place.
            refuse_rows("samples", rows, system.dim(), 8)?;
        }
        let record = DataRecord {
            name: system.name().into(),
            system_seed: Some(system_seed),
            rows: samples,
            sha256: None,
            steps: Vec::new(),
            origins: Vec::new(),
            columns: Vec::new(),
            weights: None,
        };
        let rows = match samples {
            Some(rows) => {
                let values = system.sample_for(Purpose::Drawn(endpoint as u32), rows, seed);
                Rows::Drawn(Arc::new(system), Arc::new(values))
            }
            None => Rows::Fresh(Arc::new(system)),
        };
        Ok(Self {
            rows,
            view: None,
            weights: None,
            record,
        })
    }

    /// The same rows through a view: turned onto a frame, without their centre.
    pub fn through(mut self, view: View) -> Result<Self> {
        if let Rows::Fresh(_) = self.rows {
            return Err(Error::Refused(words!(
                "rows that are drawn afresh at every step keep their centre and frame; add ",
                Setting::to("samples", "N"),
                ", or choose ",
                Setting::to("centre", "kept")
            )));
        }
        let columns = self.columns_given()?;
        if columns != view.columns() || columns > MOST_VIEWED {
            return Err(fault_of(
                &self.record.name,
                DataFault::Columns {
                    found: columns,
                    expected: view.columns().min(MOST_VIEWED),
                },
            ));
        }
        self.view = Some(Arc::new(view));
        Ok(self)
    }

    /// Whether rows are seen as they are given.
    pub fn is_whole(&self) -> bool {
        self.view.is_none()
    }

    /// The row onto which all are turned, if they are.
    pub fn frame(&self) -> Option<Vec<f64>> {
        self.view.as_ref()?.reference().map(<[f64]>::to_vec)
    }

    /// The first row as it is given.
    pub fn first_row(&self) -> Result<Vec<f64>> {
        let mut row = vec![0.0; self.columns_given()?];
        match &self.rows {
            Rows::File(map) => map.view()?.copy_row_f64(0, &mut row),
            Rows::Array(values, _) => values.copy_f64(0, &mut row),
            Rows::Drawn(_, values) => {
                for (out, x) in row.iter_mut().zip(values.iter()) {
                    *out = f64::from(*x);
                }
            }
            Rows::Fresh(_) => return Err(Error::Nothing),
        }
        Ok(row)
    }

    /// Whether the rows were given, in a file or an array, and not drawn from a system.
    pub fn is_given(&self) -> bool {
        matches!(self.rows, Rows::File(_) | Rows::Array(..))
    }

    /// The file it is read from, if there is one.
    pub fn origin(&self) -> Option<Origin> {
        match (&self.rows, &self.record.sha256) {
            (Rows::File(map), Some(sha256)) => Some(Origin::new(map.clone(), sha256.clone())),
            _ => None,
        }
    }

    /// What the model file says of it.
    pub fn record(&self) -> &DataRecord {
        &self.record
    }

    /// The rows' exact law, where it is a known mixture.
    pub fn mixture(&self) -> Option<&GaussianMixture> {
        if !self.is_whole() {
            return None;
        }
        match &self.rows {
            Rows::File(_) | Rows::Array(..) => None,
            Rows::Drawn(system, _) | Rows::Fresh(system) => system.mixture(),
        }
    }

    /// Dimension of a row as it is seen.
    pub fn dim(&self) -> Result<usize> {
        match &self.view {
            Some(view) => Ok(view.dim()),
            None => self.columns_given(),
        }
    }

    /// Columns of a row as it is given.
    pub fn columns_given(&self) -> Result<usize> {
        match &self.rows {
            Rows::File(map) => Ok(map.view()?.dim()),
            Rows::Array(_, dim) => Ok(*dim),
            Rows::Drawn(system, _) | Rows::Fresh(system) => Ok(system.dim()),
        }
    }

    /// Mean and variance; refuses data that have no density. `notices` gets what is odd but allowed.
    pub fn moments(&self, notices: &mut Vec<Notice>) -> Result<Moments> {
        match &self.rows {
            Rows::File(map) => {
                let (view, name) = (map.view()?, map.path().display().to_string());
                let read = |row: usize, out: &mut [f64]| view.copy_row_f64(row, out);
                let shape = [view.rows(), view.dim()];
                measured(&name, shape, &read, self.through_what(), notices)
            }
            Rows::Array(values, dim) => {
                let read = |row: usize, out: &mut [f64]| values.copy_f64(row * dim, out);
                let shape = [values.len() / dim, *dim];
                measured(
                    &self.record.name,
                    shape,
                    &read,
                    self.through_what(),
                    notices,
                )
            }
            Rows::Drawn(system, values) if !self.is_whole() => {
                let dim = system.dim();
                let read = |row: usize, out: &mut [f64]| {
                    for (out, x) in out.iter_mut().zip(&values[row * dim..]) {
                        *out = f64::from(*x);
                    }
                };
                let shape = [values.len() / dim, dim];
                measured(
                    &self.record.name,
                    shape,
                    &read,
                    self.through_what(),
                    notices,
                )
            }
            Rows::Drawn(system, _) | Rows::Fresh(system) => Ok(system_moments(system)),
        }
    }

    /// What a row is seen through, and how much it counts.
    fn through_what(&self) -> (Option<&View>, Option<&[f64]>) {
        (self.view.as_deref(), self.weights())
    }

    /// Refuses numbers that are not finite. Rows to judge by may be anything else: a column that never changes is no fault of theirs.
    pub fn refuse_non_finite(&self) -> Result<()> {
        let (rows, dim) = match &self.rows {
            Rows::File(map) => (map.view()?.rows(), map.view()?.dim()),
            Rows::Array(values, dim) => (values.len() / dim, *dim),
            Rows::Drawn(..) | Rows::Fresh(_) => return Ok(()),
        };
        let mut buffer = vec![0.0; dim];
        for row in 0..rows {
            match &self.rows {
                Rows::File(map) => map.view()?.copy_row_f64(row, &mut buffer),
                Rows::Array(values, dim) => values.copy_f64(row * dim, &mut buffer),
                Rows::Drawn(..) | Rows::Fresh(_) => {}
            }
            refuse_non_finite(Path::new(&self.record.name), row, &buffer)?;
        }
        Ok(())
    }

    /// The rows in the model's coordinates.
    pub fn prepare(&self, coordinates: &Coordinates) -> Result<Prepared> {
        self.prepare_with(coordinates, &self.record.steps)
    }

    /// The same, with these steps filled.
    pub fn prepare_with(&self, coordinates: &Coordinates, steps: &[f64]) -> Result<Prepared> {
        self.prepare_through(coordinates, steps, self.view.clone())
    }

    /// The same through the view of a model.
    pub(crate) fn prepare_through(
        &self,
        coordinates: &Coordinates,
        steps: &[f64],
        view: Option<Arc<View>>,
    ) -> Result<Prepared> {
        let coordinates = coordinates.clone();
        let stored = match &self.rows {
            Rows::File(map) => {
                map.read_out_of_order()?;
                Stored::File(
                    Npy::parse(Mapped(map.clone())).map_err(|e| Error::about(map.path(), e))?,
                )
            }
            Rows::Array(values, dim) => Stored::Memory(values.clone(), *dim),
            Rows::Drawn(system, values) => Stored::Memory(Array::F32(values.clone()), system.dim()),
            Rows::Fresh(system) => return Ok(Prepared::Fresh(system.clone(), coordinates)),
        };
        let steps = steps.to_vec();
        Ok(Prepared::Fixed(
            Arc::new(Values {
                stored,
                steps,
                view,
                weights: self.weights.clone(),
            }),
            coordinates,
        ))
    }
}

/// One pass over all rows: every number is checked, columns are measured.
fn measured(
    name: &str,
    [rows, dim]: [usize; 2],
    read: &dyn Fn(usize, &mut [f64]),
    (view, weights): (Option<&View>, Option<&[f64]>),
    notices: &mut Vec<Notice>,
) -> Result<Moments> {
    let seen = view.map_or(dim, View::dim);
    let mut statistics = ColumnStatistics::new(seen);
    let (mut buffer, mut inside) = (vec![0.0; dim], vec![0.0; seen]);
    for row in 0..rows {
        read(row, &mut buffer);
        refuse_non_finite(Path::new(name), row, &buffer)?;
        let weight = weights.map_or(1.0, |weights| weights[row]);
        match view {
            Some(view) => {
                view.inward(&mut buffer, &mut inside);
                statistics.add_weighted(&inside, weight);
            }
            None => statistics.add_weighted(&buffer, weight),
        }
    }
    let columns = statistics.constant_columns();
    if !columns.is_empty() {
        return Err(fault_of(name, DataFault::Constant { columns, rows }));
    }
    let variance = statistics.scalar_variance();
    if !(variance.is_finite() && variance > 0.0) {
        return Err(fault_of(name, DataFault::Variance(variance)));
    }
    let columns = statistics.variance();
    let narrow = |column: &usize| columns[*column] < NARROW * NARROW * variance;
    if let Some(first) = (0..seen).find(narrow) {
        notices.push(Notice::NarrowColumns {
            count: (0..seen).filter(narrow).count(),
            first,
            columns: dim,
        });
    }
    Ok(Moments {
        mean: statistics.mean().to_vec(),
        variance,
    })
}

fn fault_of(name: &str, fault: DataFault) -> Error {
    Error::Data {
        name: name.into(),
        fault,
    }
}

/// Names the first number of a row that is not a finite 32-bit number.
pub fn refuse_non_finite(path: &Path, row: usize, values: &[f64]) -> Result<()> {
    match values.iter().position(|x| !(*x as f32).is_finite()) {
        None => Ok(()),
        Some(column) => {
            let value = values[column];
            Err(fault_of(
                &path.display().to_string(),
                DataFault::NotFinite { row, column, value },
            ))
        }
    }
}

/// All rows of a file, and their number of columns.
pub fn read_rows(path: &Path) -> Result<(Vec<f64>, usize)> {
    let mapped = MappedNpy::open(path)?;
    let view = mapped.view()?;
    let mut values = vec![0.0; view.rows() * view.dim()];
    for (row, values) in values.chunks_exact_mut(view.dim()).enumerate() {
        view.copy_row_f64(row, values);
        refuse_non_finite(path, row, values)?;
    }
    Ok((values, view.dim()))
}

/// Exact for mixtures, from many draws otherwise.
fn system_moments(system: &System) -> Moments {
    if let Some(mixture) = system.mixture() {
        return Moments {
            mean: mixture.mean(),
            variance: mixture.variance(),
        };
    }
    let mut statistics = ColumnStatistics::new(system.dim());
    for point in system.sample(SYSTEM_DRAWS, 0).chunks_exact(system.dim()) {
        statistics.add_row(&point.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
    }
    Moments {
        mean: statistics.mean().to_vec(),
        variance: statistics.scalar_variance(),
    }
}

#[cfg(test)]
mod tests;
