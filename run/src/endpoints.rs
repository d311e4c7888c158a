//! The data sets that settings name: files and built-in systems, one for a diffusion, two for an interpolant.

use crate::data::DataSet;
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::resolve::{Facts, Place};
use crate::settings::Settings;
use crate::trajectory::kind_of;
use crate::watch::Watch;
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Moments, SystemEnergy};
use diffclf::system::System;
use std::path::Path;

/// More dimensions than this no model has.
const MOST_DIMENSIONS: usize = 1 << 20;

/// Opens the files and draws from the systems that the settings name.
pub fn open(settings: &Settings, watch: &dyn Watch) -> Result<Vec<DataSet>> {
    let s = settings;
    let (files, systems) = ([&s.data, &s.end], [&s.system, &s.end_system]);
    let count = if s.has_end() { 2 } else { 1 };
    let mut opened = [None, None];
    for k in 0..count {
        opened[k] = match (files[k], systems[k]) {
            (Some(path), None) => Some(file(path, watch)?),
            (None, Some(_)) => None,
            (Some(_), Some(_)) => {
                return Err(Error::Refused(words!(
                    "both a file and ",
                    Setting::new(["system", "end_system"][k]),
                    " are given, expected one of them"
                )));
            }
            (None, None) => return Err(Error::Nothing),
        };
    }
    let of_file = opened.iter().flatten().map(DataSet::dim).next();
    let of_file = of_file.transpose()?;
    if let (Some(dim), Some(found)) = (s.dim, of_file)
        && dim != found
    {
        return Err(Error::Refused(words!(
            Setting::new("dim"),
            format!(" is {dim}, but the data have {found} columns; leave it out for a file")
        )));
    }
    let planar = systems
        .iter()
        .any(|name| name.as_deref().is_some_and(System::is_planar));
    let dim = s.dim.or(of_file).or(planar.then_some(2));
    let mut sets = Vec::with_capacity(count);
    for (k, set) in opened.into_iter().take(count).enumerate() {
        sets.push(match (set, systems[k]) {
            (Some(set), _) => set,
            (None, Some(name)) => system(settings, name, dim, k)?,
            (None, None) => return Err(Error::Nothing),
        });
    }
    Ok(sets)
}

/// A file; one that takes a while to read deserves a word.
fn file(path: &Path, watch: &dyn Watch) -> Result<DataSet> {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if bytes > 1 << 28 {
        watch.note(&format!(
            "reading {} ({:.1} GB) for its checksum and statistics",
            path.display(),
            bytes as f64 / 1e9
        ));
    }
    let set = DataSet::file(path)?;
    if let (Some(kind), Some(rows)) = (kind_of(path), set.record().rows) {
        watch.note(&format!(
            "{}: {rows} frames of {} atoms, file in {}, learned in nm",
            path.display(),
            set.dim()? / 3,
            kind.unit()
        ));
    }
    Ok(set)
}

fn system(settings: &Settings, name: &str, dim: Option<usize>, endpoint: usize) -> Result<DataSet> {
    let Some(dim) = dim else {
        return Err(Error::Refused(words!(
            name,
            " exists in every dimension; choose one with ",
            Setting::to("dim", "D")
        )));
    };
    if !(1..=MOST_DIMENSIONS).contains(&dim) {
        let expected = format!("a number from 1 to {MOST_DIMENSIONS}");
        return Err(Error::setting("dim", dim, expected));
    }
    let system_seed = settings.system_seed.unwrap_or(0);
    let system = System::by_name(name, dim, system_seed)?;
    let seed = settings.seed.unwrap_or(0);
    DataSet::system(endpoint, system, system_seed, settings.samples, seed)
}

/// Refuses endpoints of different dimensions, and none or too many.
pub fn check(sets: &[DataSet]) -> Result<()> {
    match sets {
        [_] => Ok(()),
        [start, end] => match (start.dim()?, end.dim()?) {
            (a, b) if a == b => Ok(()),
            (a, b) => Err(Error::Refused(words!(format!(
                "the first endpoint has dimension {a} and the second {b}, expected the same; check the data files"
            )))),
        },
        [] => Err(Error::Nothing),
        _ => Err(Error::Refused(words!(format!(
            "{} data sets are given, expected one, or two for an interpolant",
            sets.len()
        )))),
    }
}

/// Rows of the smaller endpoint; none if one is sampled afresh.
pub fn rows(sets: &[DataSet]) -> Option<usize> {
    let rows: Option<Vec<usize>> = sets.iter().map(|set| set.record().rows).collect();
    rows?.into_iter().min()
}

/// Rows that the smaller endpoint is worth, where rows have weights.
fn effective(sets: &[DataSet]) -> Option<usize> {
    sets.iter()
        .any(|set| set.effective_rows().is_some())
        .then(|| {
            let worth = |set: &DataSet| {
                let effective = set.effective_rows().map(|rows| rows.round() as usize);
                effective.or(set.record().rows)
            };
            sets.iter().filter_map(worth).min()
        })?
}

/// Mean and variance of all rows, each endpoint with equal weight.
pub fn moments(sets: &[DataSet], notices: &mut Vec<Notice>) -> Result<Moments> {
    let mut pooled: Option<Moments> = None;
    for set in sets {
        let moments = set.moments(notices)?;
        pooled = Some(match pooled {
            Some(other) => other.pooled(moments),
            None => moments,
        });
    }
    pooled.ok_or(Error::Nothing)
}

/// What the settings need to know of the data.
pub fn facts(sets: &[DataSet], place: Place) -> Facts {
    Facts {
        columns: None,
        kinds: Vec::new(),
        base: None,
        rows: rows(sets),
        effective: effective(sets),
        given: sets.first().is_some_and(DataSet::is_given),
        has_end: sets.len() > 1,
        place,
    }
}

/// The built-in systems whose densities are known.
pub fn with_density() -> Vec<&'static str> {
    System::NAMES
        .into_iter()
        .filter(|name| System::by_name(name, 2, 0).is_ok_and(|s| SystemEnergy::new(s).is_some()))
        .collect()
}

/// The built-in systems whose densities under noise are known: the mixtures.
pub fn mixtures() -> Vec<&'static str> {
    System::NAMES
        .into_iter()
        .filter(|name| System::by_name(name, 2, 0).is_ok_and(|system| system.mixture().is_some()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;

    fn refused(text: &str) -> String {
        let settings = toml::from_str(text).unwrap();
        let sets = open(&settings, &Silent).and_then(|sets| check(&sets).map(|()| sets));
        sets.err().unwrap().to_string()
    }

    #[test]
    fn endpoints_that_do_not_fit_are_refused_by_key() {
        assert!(refused("").contains("system = NAME"));
        assert!(refused("end_system = \"mog2\"").contains("nothing to learn from"));
        let both = refused("data = \"x.npy\"\nsystem = \"mog2\"");
        assert!(both.contains("both a file and system are given"), "{both}");
        assert!(refused("system = \"mog40\"").contains("dim = D"));
        assert!(refused("system = \"mog2\"\ndim = 2\nsamples = 1").contains("samples is 1"));
        assert!(check(&[]).is_err());
        let set = |dim| DataSet::from_array("a", vec![0.5; 6], 6 / dim, dim).unwrap();
        let message = check(&[set(2), set(3)]).unwrap_err().to_string();
        assert!(
            message.contains("dimension 2 and the second 3"),
            "{message}"
        );
        assert!(check(&[set(2), set(2), set(2)]).is_err());
    }

    #[test]
    fn a_planar_neighbour_gives_the_dimension() {
        let settings = toml::from_str("system = \"mog2\"\nend_system = \"moons\"").unwrap();
        let sets = open(&settings, &Silent).unwrap();
        assert_eq!((sets.len(), sets[0].dim().unwrap()), (2, 2));
        assert_eq!(rows(&sets), None);
        assert!(mixtures().contains(&"two-modes") && !mixtures().contains(&"rings"));
        assert!(with_density().contains(&"rings") && !with_density().contains(&"moons"));
    }
}
