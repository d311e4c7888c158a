//! Cells: what is finished stays finished. One JSON file each, written whole.

use crate::Manner;
use diffclf::metric::Estimate;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{read_text, write_atomic};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the settings of all cells, in the folder of the results.
pub const SETTINGS: &str = "settings.json";

/// The figures of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// Name to value; an error that is not known is absent.
    pub figures: BTreeMap<String, Figure>,
    /// Lines for pictures: name to points.
    #[serde(default)]
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
    /// Time it took.
    #[serde(default)]
    pub seconds: f64,
    /// What made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
}

/// Budget, command and machine of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The cell's name.
    pub cell: String,
    /// The command.
    pub command: String,
    /// The budget.
    pub manner: Manner,
    /// Everything that decides the figures.
    pub settings: serde_json::Value,
    /// Of the program.
    pub version: String,
    /// Threads.
    pub threads: usize,
    /// Instruction set of the kernels.
    pub kernels: String,
}

/// Points of the longest line that is kept.
pub const LONGEST: usize = 4096;

impl CellRecord {
    /// The same with its time and its making.
    pub fn finished(self, seconds: f64, made: Made) -> Self {
        Self {
            seconds,
            made: Some(made),
            ..self
        }
    }

    /// Keeps it as a small file of this name in a folder: points of lines get five digits, and lines longer than [`LONGEST`] (values on
    /// a fine grid, for a picture alone) are left out.
    pub fn keep(&self, folder: &Path, name: &str) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|source| Error::Write {
            path: folder.to_path_buf(),
            source,
        })?;
        let round = |x: f64| format!("{x:.4e}").parse().unwrap_or(x);
        let mut small = self.clone();
        small.series.retain(|_, points| points.len() <= LONGEST);
        for (x, y) in small.series.values_mut().flatten() {
            (*x, *y) = (round(*x), round(*y));
        }
        let mut document = serde_json::to_value(&small)
            .map_err(|error| Error::Failed(format!("cell {name} cannot be kept: {error}")))?;
        // A line of text for each line of a picture.
        let series = document["series"].take();
        let lines: Vec<String> = series
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, points)| format!("\n    {name:?}: {points}"))
            .collect();
        if let Some(fields) = document.as_object_mut() {
            fields.remove("series");
        }
        let text = format!("{document:#}");
        let text = text.strip_suffix("\n}").unwrap_or(&text);
        let text = format!("{text},\n  \"series\": {{{}\n  }}\n}}", lines.join(","));
        write_atomic(&folder.join(format!("{name}.json")), |writer| {
            Ok(writeln!(writer, "{text}")?)
        })
    }

    /// All records that are kept in a folder, by the names of their files.
    pub fn kept(folder: &Path) -> Result<Vec<(PathBuf, CellRecord)>> {
        let reading = |source| Error::Read {
            path: folder.to_path_buf(),
            source,
        };
        let mut paths = std::fs::read_dir(folder)
            .map_err(reading)?
            .map(|entry| Ok(entry.map_err(reading)?.path()))
            .collect::<Result<Vec<_>>>()?;
        paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
        paths.sort();
        paths
            .into_iter()
            .map(|path| Ok((path.clone(), read_record(&path)?)))
            .collect()
    }
}

fn read_record(path: &Path) -> Result<CellRecord> {
    let text = read_text(path)?;
    let refused = |problem: String| Error::Config {
        path: path.to_path_buf(),
        reason: format!("{problem}; delete it to compute the cell again"),
    };
    let record: CellRecord =
        serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    if !(0.0..=1e12).contains(&record.seconds) {
        return Err(refused(format!(
            "seconds is {}, expected a time from 0 on",
            record.seconds
        )));
    }
    Ok(record)
}

/// A number with its sampling error, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// One standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
}

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Self {
        Self {
            value: estimate.mean,
            error: estimate.error.is_finite().then_some(estimate.error),
        }
    }
}

impl From<f64> for Figure {
    fn from(value: f64) -> Self {
        Self { value, error: None }
    }
}

/// Whether two records of settings say the same: a setting that is not given (null) says nothing, so that one which came later leaves
/// earlier cells in force.
pub fn same_settings(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let within = |a: &Map<String, Value>, b: &Map<String, Value>| {
                a.iter()
                    .all(|(key, value)| same_settings(value, b.get(key).unwrap_or(&Value::Null)))
            };
            within(one, other) && within(other, one)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same_settings(a, b))
        }
        _ => one == other,
    }
}

/// The place in a table that has a cell's name.
pub fn named<P>(places: impl IntoIterator<Item = (String, P)>, cell: &str) -> Result<P> {
    let mut places = places.into_iter();
    match places.find(|(name, _)| name == cell) {
        Some((_, place)) => Ok(place),
        None => Err(Error::Failed(format!("{cell} is no cell of this table"))),
    }
}

/// The cells of one experiment in its folder.
pub struct Cells {
    folder: PathBuf,
}

impl Cells {
    /// Takes the folder. One that holds cells of other settings is refused: its figures would be mixed with ours.
    pub fn open(folder: &Path, settings: &serde_json::Value) -> Result<Self> {
        let cells = folder.join("cells");
        std::fs::create_dir_all(&cells).map_err(|source| Error::Write {
            path: cells.clone(),
            source,
        })?;
        let path = folder.join(SETTINGS);
        match read_text(&path) {
            Ok(text) => {
                let found: serde_json::Value =
                    serde_json::from_str(&text).map_err(|error| Error::Config {
                        path: path.clone(),
                        reason: format!("{error}; delete the folder"),
                    })?;
                if !same_settings(&found, settings) {
                    return Err(Error::Usage(format!(
                        "{} holds results of other settings; choose another folder with -o, or delete it",
                        folder.display()
                    )));
                }
            }
            Err(Error::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                write_atomic(&path, |writer| Ok(writeln!(writer, "{settings:#}")?))?;
            }
            Err(error) => return Err(error),
        }
        Ok(Self { folder: cells })
    }

    fn path(&self, cell: &str) -> PathBuf {
        self.folder.join(format!("{cell}.json"))
    }

    /// Whether a cell is there.
    pub fn finished(&self, cell: &str) -> Result<bool> {
        Ok(self.path(cell).is_file())
    }

    /// Keeps a cell.
    pub fn write(&self, cell: &str, record: CellRecord) -> Result<()> {
        let text = serde_json::to_string_pretty(&record)
            .map_err(|error| Error::Failed(format!("cell {cell} cannot be written: {error}")))?;
        write_atomic(&self.path(cell), |writer| Ok(writeln!(writer, "{text}")?))
    }

    /// Those of `names` that are finished.
    pub fn read(&self, names: &[String]) -> Result<BTreeMap<String, CellRecord>> {
        let mut found = BTreeMap::new();
        for name in names {
            let path = self.path(name);
            if !path.is_file() {
                continue;
            }
            found.insert(name.clone(), read_record(&path)?);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_setting_that_is_not_given_says_nothing() {
        let cell = json!([{"rate": 0.1, "width": null}, {"steps": [1, 2]}]);
        let same = |other| same_settings(&cell, &other) && same_settings(&other, &cell);
        assert!(same(
            json!([{"rate": 0.1, "base": null}, {"steps": [1, 2]}])
        ));
        assert!(!same(
            json!([{"rate": 0.1, "base": "mixture"}, {"steps": [1, 2]}])
        ));
        assert!(!same(json!([{"rate": 0.2}, {"steps": [1, 2]}])));
        assert!(!same(json!([{"rate": 0.1}, {"steps": [1]}])));
    }

    #[test]
    fn times_that_are_none_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let cells = Cells::open(folder.path(), &json!({})).unwrap();
        for seconds in [-1.0, 1e300] {
            let record = CellRecord {
                seconds,
                ..CellRecord::default()
            };
            cells.write("a", record).unwrap();
            let error = cells.read(&["a".into()]).unwrap_err();
            assert!(matches!(error, Error::Config { .. }), "{error}");
        }
    }

    #[test]
    fn cells_are_kept_and_other_settings_refused() {
        let folder = tempfile::tempdir().unwrap();
        let cells = Cells::open(folder.path(), &json!({"steps": 3})).unwrap();
        let figures = [("loss".to_string(), Figure::from(1.5))].into();
        let record = CellRecord {
            figures,
            ..CellRecord::default()
        };
        assert!(!cells.finished("a").unwrap());
        cells.write("a", record.clone()).unwrap();
        let again = Cells::open(folder.path(), &json!({"steps": 3})).unwrap();
        let found = again.read(&["a".into(), "b".into()]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found["a"], record);
        let refused = Cells::open(folder.path(), &json!({"steps": 4}))
            .err()
            .unwrap();
        assert!(refused.to_string().contains("other settings"), "{refused}");
    }
}
