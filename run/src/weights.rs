//! Weights of rows that are given: read from files or taken from memory, checked, and fastened to the data they belong to.

use crate::data::{Array, DataSet};
use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::settings::Settings;
use crate::words;
use crate::words::Setting;
use diffclf::format::sha256_hex;
use diffclf::weights::RowWeights;
use std::path::Path;
use std::sync::Arc;

/// Weights and the digest of where they came from.
#[derive(Debug, Clone)]
pub struct GivenWeights {
    /// The weights.
    pub values: Arc<RowWeights>,
    /// SHA-256 of the file, or of the .npy file that would hold them.
    pub sha256: String,
}

impl GivenWeights {
    /// One number for each of `rows` rows, from a file of any kind that rows come in.
    pub fn file(path: &Path, rows: usize) -> Result<Self> {
        let mapped = MappedNpy::open(path)?;
        let view = mapped.view()?;
        if view.dim() != 1 {
            return Err(Error::Usage(format!(
                "{}: weights have {} columns, expected one number for each row",
                path.display(),
                view.dim()
            )));
        }
        let values = RowWeights::new(view.to_vec_f64(), rows);
        Ok(Self {
            values: Arc::new(values.map_err(|error| Error::about(path, error))?),
            sha256: sha256_hex(mapped.bytes()),
        })
    }

    /// The same from memory.
    pub fn array(values: impl Into<Array>, rows: usize) -> Result<Self> {
        let values = values.into();
        let mut numbers = vec![0.0; values.len()];
        values.copy_f64(0, &mut numbers);
        Ok(Self {
            sha256: values.sha256(&[numbers.len()])?,
            values: Arc::new(RowWeights::new(numbers, rows)?),
        })
    }
}

/// The data with the weights that the settings name.
pub fn weighted(settings: &Settings, mut sets: Vec<DataSet>) -> Result<Vec<DataSet>> {
    let named = [
        ("weights", &settings.weights),
        ("end_weights", &settings.end_weights),
    ];
    for (k, (key, path)) in named.into_iter().enumerate() {
        let Some(path) = path else { continue };
        let set = (k < sets.len()).then(|| sets.remove(k));
        let Some((set, rows)) = set.and_then(|set| {
            let rows = set.record().rows.filter(|_| set.is_given())?;
            Some((set, rows))
        }) else {
            return Err(weights_of_drawn_rows(key));
        };
        sets.insert(k, set.with_weights(GivenWeights::file(path, rows)?)?);
    }
    Ok(sets)
}

/// Weights were named by this setting, but rows are not given.
pub fn weights_of_drawn_rows(key: &'static str) -> Error {
    Error::Refused(words!(
        Setting::new(key),
        " belongs to rows that are given; leave it out where rows are drawn from a system, or where there are none"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::write_atomic;
    use diffclf::format::npy::write_npy;

    fn set() -> DataSet {
        DataSet::from_array("x", vec![0.5, 1.0, -2.0, 0.25], 4, 1).unwrap()
    }

    #[test]
    fn files_and_arrays_are_the_same_weights() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("w.npy");
        let values = vec![1.0, 0.0, 2.0, 1.0];
        write_atomic(&path, |writer| write_npy(&[4], &values, writer)).unwrap();
        let (file, array) = (
            GivenWeights::file(&path, 4).unwrap(),
            GivenWeights::array(values.clone(), 4).unwrap(),
        );
        assert_eq!(file.values, array.values);
        assert_eq!(file.sha256, array.sha256);
        let message = GivenWeights::file(&path, 5).unwrap_err().to_string();
        assert!(
            message.contains("w.npy") && message.contains("4 numbers, expected 5"),
            "{message}"
        );
        write_atomic(&path, |writer| write_npy(&[2, 2], &values, writer)).unwrap();
        let message = GivenWeights::file(&path, 2).unwrap_err().to_string();
        assert!(message.contains("2 columns"), "{message}");
        let set = set().with_weights(array.clone()).unwrap();
        assert_eq!(set.record().weights.as_ref(), Some(&array.sha256));
        assert!((set.effective_rows().unwrap() - 16.0 / 6.0).abs() < 1e-12);
        assert!(set.with_weights(array).is_err());
    }

    #[test]
    fn weights_belong_to_rows_that_are_given() {
        let settings = |text: &str| toml::from_str::<Settings>(text).unwrap();
        let message = |text: &str, sets| {
            let sets = weighted(&settings(text), sets);
            sets.err().unwrap().to_string()
        };
        let found = message("end_weights = \"w.npy\"", vec![set()]);
        assert!(found.contains("end_weights belongs to rows"), "{found}");
        let system = diffclf::system::System::by_name("mog2", 2, 0).unwrap();
        let system = DataSet::system(0, system, 0, Some(10), 0).unwrap();
        let found = message("weights = \"w.npy\"", vec![system]);
        assert!(found.contains("drawn from a system"), "{found}");
        assert_eq!(weighted(&settings(""), vec![set()]).unwrap().len(), 1);
    }
}
