//! `DataSet`: where training rows come from, a memory-mapped file, an array in memory, a fixed set drawn from a system, or a system
//! sampled afresh. It owns what it holds, so that a training can outlive whoever opened it.

use crate::error::{DataFault, Error, Result};
use crate::files::MappedNpy;
use crate::memory::refuse_rows;
use crate::notice::Notice;
use crate::origin::Origin;
use crate::resolve::held_out_rows;
use crate::values::{MOST_VIEWED, Mapped, Stored, Values};
use crate::weights::GivenWeights;
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Coordinates, ModelSpec, Moments};
use diffclf::format::npy::{ColumnStatistics, Npy, write_npy};
use diffclf::format::{sha256_hex, sha256_of};
use diffclf::model::DataRecord;
use diffclf::particles::View;
use diffclf::rng::{Part, Purpose};
use diffclf::system::{GaussianMixture, System};
use diffclf::train::{Resampled, Shuffled, Source, Table, Turned};
use diffclf::weights::{RowWeights, kept};
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

/// Numbers in memory, row-major, whoever owns them: nothing is copied.
#[derive(Clone)]
pub enum Array {
    /// In single precision.
    F32(Arc<dyn AsRef<[f32]> + Send + Sync>),
    /// In double precision.
    F64(Arc<dyn AsRef<[f64]> + Send + Sync>),
}

impl Array {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::F32(values) => (**values).as_ref().len(),
            Self::F64(values) => (**values).as_ref().len(),
        }
    }

    /// Where the first number lies.
    pub fn address(&self) -> usize {
        match self {
            Self::F32(values) => (**values).as_ref().as_ptr().addr(),
            Self::F64(values) => (**values).as_ref().as_ptr().addr(),
        }
    }

    /// Digest of the .npy file that would hold it.
    pub(crate) fn sha256(&self, shape: &[usize]) -> Result<String> {
        let digest = match self {
            Self::F32(values) => sha256_of(|writer| write_npy(shape, (**values).as_ref(), writer)),
            Self::F64(values) => sha256_of(|writer| write_npy(shape, (**values).as_ref(), writer)),
        };
        Ok(digest?)
    }

    /// The numbers from `first` on.
    pub fn copy_f64(&self, first: usize, out: &mut [f64]) {
        match self {
            Self::F32(values) => {
                for (out, x) in out.iter_mut().zip(&(**values).as_ref()[first..]) {
                    *out = f64::from(*x);
                }
            }
            Self::F64(values) => {
                let count = out.len();
                out.copy_from_slice(&(**values).as_ref()[first..][..count]);
            }
        }
    }
}

impl From<Vec<f32>> for Array {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(Arc::new(values))
    }
}

impl From<Vec<f64>> for Array {
    fn from(values: Vec<f64>) -> Self {
        Self::F64(Arc::new(values))
    }
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

/// An endpoint's rows in the model's coordinates.
#[derive(Clone)]
pub enum Prepared {
    /// A table to shuffle.
    Fixed(Arc<Values>, Coordinates),
    /// A system to draw from at every step.
    Fresh(Arc<System>, Coordinates),
}

/// Sources of one endpoint.
pub struct Feed {
    /// Rows to train on.
    pub train: Arc<dyn Source>,
    /// Rows never trained on, and how many there are.
    pub held_out: Option<(Arc<dyn Source>, usize)>,
}

impl Feed {
    /// The same rows, each turned at random.
    pub fn turned(self, spec: &ModelSpec, seed: u64) -> Result<Self> {
        let particles = spec.network.particles().unwrap_or(1);
        let points = if spec.without_centre {
            particles.saturating_sub(1)
        } else {
            particles
        };
        let space = spec.dim / points.max(1);
        let turned = |rows, part| -> Result<Arc<dyn Source>> {
            let about_centre = !spec.without_centre;
            Ok(Arc::new(Turned::new(
                rows,
                seed,
                part,
                space,
                about_centre,
            )?))
        };
        Ok(Self {
            train: turned(self.train, Part::Training)?,
            held_out: match self.held_out {
                Some((rows, count)) => Some((turned(rows, Part::HeldOut)?, count)),
                None => None,
            },
        })
    }
}

impl Prepared {
    /// Rows that are trained on and rows that are held out (of weighted ones those that stand for them with equal weights), up to `most` of each, spread over the table and in its order (which is that of time in a
    /// series); none where rows are drawn afresh. Numbers are rounded as in training.
    pub fn shares(
        &self,
        (endpoint, seed): (usize, u64),
        held_out: f64,
        most: usize,
    ) -> Option<[Vec<f64>; 2]> {
        let dim = match self {
            Self::Fixed(_, coordinates) | Self::Fresh(_, coordinates) => coordinates.dim(),
        };
        let [train, rest] = self.in_order(endpoint, seed, held_out)?;
        let kept = |share: &Shuffled| -> Vec<usize> {
            if !share.is_weighted() {
                return (0..share.rows()).collect();
            }
            let weights: Vec<f64> = (0..share.rows()).map(|k| share.weight(k)).collect();
            kept(&weights, seed, Purpose::Keep(endpoint as u32))
        };
        // Of too many, as many blocks as each has rows, equally far apart: their correlation can still be measured.
        let read = |share: &Shuffled| -> Vec<f64> {
            let places = kept(share);
            let rows = places.len();
            let (block, apart) = if rows > most {
                let block = most.isqrt();
                (block, rows as f64 * block as f64 / most as f64)
            } else {
                (rows.max(1), 0.0)
            };
            let mut row = vec![0f32; dim];
            let mut values = Vec::with_capacity(rows.min(most) * dim);
            for k in 0..rows.min(most) {
                let first = (apart * (k / block) as f64) as usize;
                let place = (first + k % block).min(rows - 1);
                share.copy_in_order(places[place], &mut row);
                values.extend(row.iter().map(|x| f64::from(*x)));
            }
            values
        };
        Some([read(&train), read(&rest)])
    }

    /// Training and held-out rows of an endpoint.
    pub fn feed(&self, endpoint: usize, batch: usize, seed: u64, held_out: f64) -> Feed {
        let endpoint = endpoint as u32;
        match self {
            Self::Fresh(system, coordinates) => Feed {
                train: Arc::new(Resampled::new(
                    endpoint,
                    system.clone(),
                    seed,
                    coordinates.clone(),
                )),
                held_out: None,
            },
            Self::Fixed(table, coordinates) => {
                let held_out = held_out_rows(table.rows(), held_out);
                let (train, rest) =
                    Shuffled::split(endpoint, table.clone(), coordinates, batch, seed, held_out);
                Feed {
                    train: Arc::new(train),
                    held_out: (held_out > 0).then(|| (Arc::new(rest) as Arc<dyn Source>, held_out)),
                }
            }
        }
    }

    /// The same rows as they stand in the file, trained on and held out; none where every row is drawn afresh.
    pub fn in_order(&self, endpoint: usize, seed: u64, held_out: f64) -> Option<[Shuffled; 2]> {
        let Self::Fixed(table, coordinates) = self else {
            return None;
        };
        let held_out = held_out_rows(table.rows(), held_out);
        let (train, rest) = Shuffled::split(
            endpoint as u32,
            table.clone(),
            coordinates,
            1,
            seed,
            held_out,
        );
        Some([train, rest])
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
mod tests {
    use super::*;
    use crate::files::write_atomic;
    use diffclf::format::npy::write_npy;

    fn saved(folder: &Path, rows: &[[f64; 2]]) -> std::path::PathBuf {
        let path = folder.join("data.npy");
        let values: Vec<f64> = rows.iter().flatten().copied().collect();
        write_atomic(&path, |writer| write_npy(&[rows.len(), 2], &values, writer)).unwrap();
        path
    }

    #[test]
    fn rows_far_from_zero_keep_their_digits() {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<[f64; 2]> = (0..50)
            .map(|i| [1e9 + 0.01 * f64::from(i), -3.0 + 0.02 * f64::from(i)])
            .collect();
        let data = DataSet::file(&saved(folder.path(), &rows)).unwrap();
        let moments = data.moments(&mut Vec::new()).unwrap();
        let Prepared::Fixed(table, map) = data.prepare(&moments.coordinates()).unwrap() else {
            panic!("a file is a table")
        };
        let (mut sum, mut square) = ([0.0; 2], 0.0);
        for row in 0..50 {
            let mut out = [0.0f32; 2];
            table.copy_row(row, &map, &mut out);
            for (sum, x) in sum.iter_mut().zip(out) {
                *sum += f64::from(x);
                square += f64::from(x) * f64::from(x);
            }
        }
        // Near 1e9 an f64 has 1e-7 of rounding, against a spread of 0.2.
        assert!(sum.iter().all(|s| s.abs() < 1e-4), "{sum:?}");
        assert!((square / 100.0 - 1.0).abs() < 1e-5, "{square}");
    }

    #[test]
    fn data_without_a_density_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |rows: &[[f64; 2]]| {
            let data = DataSet::file(&saved(folder.path(), rows)).unwrap();
            data.moments(&mut Vec::new()).unwrap_err().to_string()
        };
        let message = refused(&[[1.0, 2.0], [f64::NAN, 2.0]]);
        assert!(
            message.contains("row 1, column 0") && message.contains("NaN"),
            "{message}"
        );
        let message = refused(&[[1.0, 1e200], [2.0, 2.0]]);
        assert!(
            message.contains("row 0, column 1") && message.contains("rescale"),
            "{message}"
        );
        let message = refused(&[[1.0, 2.0], [3.0, 2.0]]);
        assert!(message.contains("column 1"), "{message}");
    }

    #[test]
    fn a_narrow_column_is_worth_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataSet::file(&saved(folder.path(), &[[1.0, 0.001], [2.0, 0.002]])).unwrap();
        let mut notices = Vec::new();
        data.moments(&mut notices).unwrap();
        assert_eq!(
            notices,
            [Notice::NarrowColumns {
                count: 1,
                first: 1,
                columns: 2
            }]
        );
        assert!(notices[0].to_string().contains("column 1"));
    }

    #[test]
    fn an_array_in_memory_is_the_file_that_would_hold_it() {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<[f64; 2]> = (0..9)
            .map(|i| [1e6 + 0.3 * f64::from(i), (0.7 * f64::from(i)).sin()])
            .collect();
        let file = DataSet::file(&saved(folder.path(), &rows)).unwrap();
        let values: Vec<f64> = rows.iter().flatten().copied().collect();
        let array = DataSet::from_array("data.npy", values.clone(), 9, 2).unwrap();
        assert_eq!(array.record(), file.record());
        let moments = file.moments(&mut Vec::new()).unwrap();
        assert_eq!(array.moments(&mut Vec::new()).unwrap(), moments);
        let map = moments.coordinates();
        let (Prepared::Fixed(a, _), Prepared::Fixed(b, _)) =
            (array.prepare(&map).unwrap(), file.prepare(&map).unwrap())
        else {
            panic!("both are tables")
        };
        for row in 0..9 {
            let mut out = [[0f32; 2]; 2];
            a.copy_row(row, &map, &mut out[0]);
            b.copy_row(row, &map, &mut out[1]);
            assert_eq!(out[0], out[1]);
        }
        // Single precision is another file.
        let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        let single = DataSet::from_array("data.npy", single, 9, 2).unwrap();
        assert_ne!(single.record().sha256, file.record().sha256);
        for (rows, dim) in [(8, 2), (0, 2), (9, 0), (usize::MAX, 3)] {
            let message = DataSet::from_array("x", values.clone(), rows, dim);
            let message = message.err().unwrap().to_string();
            assert!(message.contains("18 numbers"), "{message}");
        }
    }

    #[test]
    fn systems_know_their_moments() {
        let mog = System::by_name("mog40", 3, 0).unwrap();
        assert_eq!(system_moments(&mog).coordinates(), Coordinates::identity(3));
        let boxes = system_moments(&System::by_name("boxes", 2, 0).unwrap());
        assert!(boxes.coordinates().scale.diagonal(0) > 1.0);
    }
}
