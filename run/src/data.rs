//! Where training rows come from: a memory-mapped file, a fixed set drawn from a system, or a system sampled afresh.

use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::settings::held_out_rows;
use diffclf::format::npy::{ColumnStatistics, Npy};
use diffclf::format::sha256_hex;
use diffclf::model::DataRecord;
use diffclf::system::{GaussianMixture, System};
use diffclf::train::{Resampled, Shuffled, Source, Standardisation, Table};
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

/// Mean and scalar variance of the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Average variance of the columns.
    pub variance: f64,
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

    /// A system; with `samples`, so many rows are drawn once with `seed`.
    pub fn system(
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
                let values = system.sample(rows, seed).into();
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
    pub fn prepare(&self, standardisation: &Standardisation) -> Result<Prepared> {
        let standardisation = standardisation.clone();
        let values = match &self.rows {
            Rows::File(map) => {
                map.read_out_of_order()?;
                Values::File(
                    Npy::parse(Mapped(map.clone())).map_err(|e| Error::about(map.path(), e))?,
                )
            }
            Rows::Drawn(_, values) => Values::Memory(values.clone()),
            Rows::Fresh(system) => return Ok(Prepared::Fresh(system.clone(), standardisation)),
        };
        Ok(Prepared::Fixed(Arc::new(ModelRows {
            values,
            standardisation,
        })))
    }
}

/// An endpoint's rows in the model's coordinates.
#[derive(Clone)]
pub enum Prepared {
    /// A table to shuffle.
    Fixed(Arc<ModelRows>),
    /// A system to draw from at every step.
    Fresh(Arc<System>, Standardisation),
}

/// Sources of one endpoint.
pub struct Feed {
    /// Rows to train on.
    pub train: Arc<dyn Source>,
    /// Rows never trained on, and how many there are.
    pub held_out: Option<(Arc<dyn Source>, usize)>,
}

impl Prepared {
    /// Training and held-out rows; the two endpoints of an interpolant need different seeds.
    pub fn feed(&self, batch: usize, seed: u64, held_out: f64) -> Feed {
        match self {
            Self::Fresh(system, standardisation) => Feed {
                train: Arc::new(Resampled::new(
                    system.clone(),
                    seed,
                    standardisation.clone(),
                )),
                held_out: None,
            },
            Self::Fixed(table) => {
                let held_out = held_out_rows(table.rows(), held_out);
                // The table gives standardised rows already.
                let identity = Standardisation::identity(table.standardisation.shift.len());
                let (train, rest) =
                    Shuffled::split(table.clone(), &identity, batch, seed, held_out);
                Feed {
                    train: Arc::new(train),
                    held_out: (held_out > 0).then(|| (Arc::new(rest) as Arc<dyn Source>, held_out)),
                }
            }
        }
    }
}

/// The bytes of a mapped file, shared.
struct Mapped(Arc<MappedNpy>);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

enum Values {
    File(Npy<Mapped>),
    Memory(Arc<[f32]>),
}

/// Rows in the model's coordinates, `(x - shift) / scale`, taken in f64 before they are rounded: data far from zero keep
/// their digits.
pub struct ModelRows {
    values: Values,
    standardisation: Standardisation,
}

impl Table for ModelRows {
    fn rows(&self) -> usize {
        match &self.values {
            Values::File(view) => view.rows(),
            Values::Memory(values) => values.len() / self.standardisation.shift.len(),
        }
    }

    fn copy_row(&self, row: usize, out: &mut [f32]) {
        let Standardisation { shift, scale } = &self.standardisation;
        let dim = shift.len();
        let standardise = |x: f64, shift: &f64| ((x - shift) / scale) as f32;
        match &self.values {
            Values::Memory(values) => {
                for ((out, x), shift) in out.iter_mut().zip(&values[row * dim..][..dim]).zip(shift)
                {
                    *out = standardise(f64::from(*x), shift);
                }
            }
            Values::File(view) => {
                // In pieces, so that rows of any length need no allocation.
                let mut piece = [0.0; 256];
                let parts = out.chunks_mut(piece.len()).zip(shift.chunks(piece.len()));
                for (k, (out, shift)) in parts.enumerate() {
                    let piece = &mut piece[..out.len()];
                    view.copy_part_f64(row, 256 * k, piece);
                    for ((out, x), shift) in out.iter_mut().zip(&*piece).zip(shift) {
                        *out = standardise(*x, shift);
                    }
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

impl Moments {
    /// Of both endpoints together, each with weight one half.
    pub fn pooled(self, other: Moments) -> Moments {
        let distance: f64 = self
            .mean
            .iter()
            .zip(&other.mean)
            .map(|(a, b)| (a - b).powi(2))
            .sum();
        let dim = self.mean.len() as f64;
        Moments {
            mean: self
                .mean
                .iter()
                .zip(&other.mean)
                .map(|(a, b)| 0.5 * (a + b))
                .collect(),
            variance: 0.5 * (self.variance + other.variance) + 0.25 * distance / dim,
        }
    }

    /// The map that gives mean 0 and variance 1; none where that is so already, up to rounding.
    pub fn standardisation(&self) -> Standardisation {
        let already =
            self.mean.iter().all(|m| m.abs() < 1e-9) && (self.variance - 1.0).abs() < 1e-9;
        if already {
            return Standardisation::identity(self.mean.len());
        }
        Standardisation {
            shift: self.mean.clone(),
            scale: self.variance.sqrt(),
        }
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
        let Prepared::Fixed(table) = origin.prepare(&moments.standardisation()).unwrap() else {
            panic!("a file is a table")
        };
        let (mut sum, mut square) = ([0.0; 2], 0.0);
        for row in 0..50 {
            let mut out = [0.0f32; 2];
            table.copy_row(row, &mut out);
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
    fn pooled_moments_are_those_of_the_union() {
        let a = Moments {
            mean: vec![1.0, -2.0],
            variance: 0.5,
        };
        let b = Moments {
            mean: vec![2.0, 4.0],
            variance: 3.0,
        };
        let both = a.pooled(b);
        assert_eq!(both.mean, [1.5, 1.0]);
        // Mean of the second moments about the new mean: 0.5 + (0.25 + 9)/2 and 3 + (0.25 + 9)/2, averaged.
        assert!((both.variance - (1.75 + 4.625)).abs() < 1e-12);
        let mog = System::by_name("mog40", 3, 0).unwrap();
        assert_eq!(
            system_moments(&mog).standardisation(),
            Standardisation::identity(3)
        );
        let boxes = system_moments(&System::by_name("boxes", 2, 0).unwrap());
        assert!(boxes.standardisation().scale > 1.0);
    }
}
