//! Where training rows come from: a memory-mapped file, a fixed set drawn from a system, or a system sampled afresh.

use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::settings::held_out_rows;
use diffclf::energy::{Coordinates, Moments};
use diffclf::format::npy::{ColumnStatistics, Npy};
use diffclf::format::sha256_hex;
use diffclf::model::DataRecord;
use diffclf::rng::Purpose;
use diffclf::system::{GaussianMixture, System};
use diffclf::train::{Resampled, Shuffled, Source, Table};
use std::path::Path;
use std::sync::Arc;

/// Draws for the mean and variance of a system that is no mixture.
const SYSTEM_DRAWS: usize = 1 << 16;
/// A column this much narrower than the average one is worth a word: one scale serves all columns.
const NARROW: f64 = 0.01;

/// One endpoint's rows.
pub struct Origin {
    rows: Rows,
    record: DataRecord,
}

enum Rows {
    File(Arc<MappedNpy>),
    Drawn(Arc<System>, Arc<[f32]>),
    Fresh(Arc<System>),
}

impl Origin {
    /// Maps a file and names its content.
    pub fn file(path: &Path) -> Result<Self> {
        let map = MappedNpy::open(path)?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let record = DataRecord {
            name: name.to_string_lossy().into_owned(),
            system_seed: None,
            rows: Some(map.view()?.rows()),
            sha256: Some(sha256_hex(map.bytes())),
        };
        Ok(Self {
            rows: Rows::File(Arc::new(map)),
            record,
        })
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
            && !(2..=usize::MAX / 8 / system.dim()).contains(&rows)
        {
            return Err(Error::Usage(format!(
                "--samples is {rows}, expected at least 2 and no more than fit in memory"
            )));
        }
        let record = DataRecord {
            name: system.name().into(),
            system_seed: Some(system_seed),
            rows: samples,
            sha256: None,
        };
        let rows = match samples {
            Some(rows) => {
                let values = system
                    .sample_for(Purpose::Drawn(endpoint as u32), rows, seed)
                    .into();
                Rows::Drawn(Arc::new(system), values)
            }
            None => Rows::Fresh(Arc::new(system)),
        };
        Ok(Self { rows, record })
    }

    /// What the model file says of it.
    pub fn record(&self) -> &DataRecord {
        &self.record
    }

    /// The rows' exact law, where it is a known mixture.
    pub fn mixture(&self) -> Option<&GaussianMixture> {
        match &self.rows {
            Rows::File(_) => None,
            Rows::Drawn(system, _) | Rows::Fresh(system) => system.mixture(),
        }
    }

    /// Dimension of a row.
    pub fn dim(&self) -> Result<usize> {
        match &self.rows {
            Rows::File(map) => Ok(map.view()?.dim()),
            Rows::Drawn(system, _) | Rows::Fresh(system) => Ok(system.dim()),
        }
    }

    /// Mean and variance; refuses data that have no density. `notice` is told what is odd but allowed.
    pub fn moments(&self, notice: &mut dyn FnMut(String)) -> Result<Moments> {
        match &self.rows {
            Rows::File(map) => file_moments(map, notice),
            Rows::Drawn(system, _) | Rows::Fresh(system) => Ok(system_moments(system)),
        }
    }

    /// The rows in the model's coordinates.
    pub fn prepare(&self, coordinates: &Coordinates) -> Result<Prepared> {
        let coordinates = coordinates.clone();
        let values = match &self.rows {
            Rows::File(map) => {
                map.read_out_of_order()?;
                Values::File(
                    Npy::parse(Mapped(map.clone())).map_err(|e| Error::about(map.path(), e))?,
                )
            }
            Rows::Drawn(system, values) => Values::Memory(values.clone(), system.dim()),
            Rows::Fresh(system) => return Ok(Prepared::Fresh(system.clone(), coordinates)),
        };
        Ok(Prepared::Fixed(Arc::new(values), coordinates))
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

impl Prepared {
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
}

/// The bytes of a mapped file, shared.
pub struct Mapped(Arc<MappedNpy>);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Rows that stay as they are.
pub enum Values {
    /// In a file, in its own number type.
    File(Npy<Mapped>),
    /// In memory: rows, and the numbers of a row.
    Memory(Arc<[f32]>, usize),
}

impl Table for Values {
    fn rows(&self) -> usize {
        match self {
            Values::File(view) => view.rows(),
            Values::Memory(values, dim) => values.len() / dim,
        }
    }

    fn copy_row(&self, row: usize, coordinates: &Coordinates, out: &mut [f32]) {
        match self {
            Values::Memory(values, dim) => {
                let row = &values[row * dim..][..*dim];
                coordinates.round_to_model(row.iter().map(|x| f64::from(*x)), out);
            }
            Values::File(view) => {
                // In pieces, so that rows of any length need no allocation.
                let mut piece = [0.0; 256];
                for (k, out) in out.chunks_mut(piece.len()).enumerate() {
                    let (first, piece) = (256 * k, &mut piece[..out.len()]);
                    view.copy_part_f64(row, first, piece);
                    coordinates.round_part_to_model(first, piece.iter().copied(), out);
                }
            }
        }
    }
}

/// One pass over a file: every number is checked, columns are measured.
fn file_moments(map: &MappedNpy, notice: &mut dyn FnMut(String)) -> Result<Moments> {
    let (view, path) = (map.view()?, map.path().display());
    let mut statistics = ColumnStatistics::new(view.dim());
    let mut buffer = vec![0.0; view.dim()];
    for row in 0..view.rows() {
        view.copy_row_f64(row, &mut buffer);
        refuse_non_finite(map.path(), row, &buffer)?;
        statistics.add_row(&buffer);
    }
    let constant = statistics.constant_columns();
    if !constant.is_empty() {
        let few: Vec<_> = constant.iter().take(8).map(usize::to_string).collect();
        let more = if constant.len() > few.len() {
            ", ..."
        } else {
            ""
        };
        return Err(Error::Usage(format!(
            "{path}: column {}{more} (counted from 0) holds the same value in all {} rows, so the data have no density \
             there; drop it: numpy.save('varying.npy', a[:, a.std(axis=0) > 0])",
            few.join(", "),
            view.rows()
        )));
    }
    let variance = statistics.scalar_variance();
    if !(variance.is_finite() && variance > 0.0) {
        return Err(Error::Usage(format!(
            "{path}: the variance of the data is {variance}, expected a positive number; rescale the data"
        )));
    }
    let columns = statistics.variance();
    let narrow: Vec<_> = (0..columns.len())
        .filter(|&column| columns[column] < NARROW * NARROW * variance)
        .collect();
    if let Some(column) = narrow.first() {
        notice(format!(
            "{} of {} columns (first: column {column}, counted from 0) vary a hundred times less than the average: one \
             common scale serves all columns, so bring them to similar spreads for a better model",
            narrow.len(),
            columns.len()
        ));
    }
    Ok(Moments {
        mean: statistics.mean().to_vec(),
        variance,
    })
}

/// Names the first number of a row that is not a finite 32-bit number.
pub fn refuse_non_finite(path: &Path, row: usize, values: &[f64]) -> Result<()> {
    let Some(column) = values.iter().position(|x| !(*x as f32).is_finite()) else {
        return Ok(());
    };
    let advice = if values[column].is_finite() {
        "rescale the data"
    } else {
        "remove such rows: a[numpy.isfinite(a).all(axis=1)]"
    };
    Err(Error::Usage(format!(
        "{}: row {row}, column {column} (counted from 0) is {}, expected a finite 32-bit number; {advice}",
        path.display(),
        values[column]
    )))
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
        let origin = Origin::file(&saved(folder.path(), &rows)).unwrap();
        let moments = origin.moments(&mut |_| ()).unwrap();
        let Prepared::Fixed(table, map) = origin.prepare(&moments.coordinates()).unwrap() else {
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
            let origin = Origin::file(&saved(folder.path(), rows)).unwrap();
            origin.moments(&mut |_| ()).unwrap_err().to_string()
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
        let origin = Origin::file(&saved(folder.path(), &[[1.0, 0.001], [2.0, 0.002]])).unwrap();
        let mut notices = Vec::new();
        origin.moments(&mut |text| notices.push(text)).unwrap();
        assert!(
            notices.len() == 1 && notices[0].contains("column 1"),
            "{notices:?}"
        );
    }

    #[test]
    fn systems_know_their_moments() {
        let mog = System::by_name("mog40", 3, 0).unwrap();
        assert_eq!(system_moments(&mog).coordinates(), Coordinates::identity(3));
        let boxes = system_moments(&System::by_name("boxes", 2, 0).unwrap());
        assert!(boxes.coordinates().scale.at(0) > 1.0);
    }
}
