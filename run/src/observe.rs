//! Frames looked at through observables: averages with their errors, states and transitions, free energy surfaces, and distances from a
//! reference.

use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::words;
use crate::words::Setting;
use diffclf::metric::{Estimate, Plane, States, Surface, jensen_shannon, pmf_error, state_of};
use diffclf::observable::{Observable, Tica, TicaSettings};
use diffclf::sample::{effective_draws, split_r_hat};
use serde::Serialize;
use std::f64::consts::PI;
use std::path::{Path, PathBuf};

/// Frames, chain after chain of equal lengths.
pub struct Frames {
    /// Where they come from.
    pub name: String,
    /// Rows.
    pub rows: Vec<f64>,
    /// Numbers of a row.
    pub dim: usize,
    /// Number of chains.
    pub chains: usize,
}

impl Frames {
    /// Reads an array, a table or a trajectory.
    pub fn read(path: &Path, chains: usize) -> Result<Self> {
        let mapped = MappedNpy::open(path)?;
        let view = mapped.view()?;
        Self::of(
            path.display().to_string(),
            view.to_vec_f64(),
            view.dim(),
            chains,
        )
    }

    /// Rows in memory.
    pub fn of(name: String, rows: Vec<f64>, dim: usize, chains: usize) -> Result<Self> {
        let count = rows.len() / dim.max(1);
        if chains == 0 || !count.is_multiple_of(chains) {
            return Err(Error::setting(
                "chains",
                chains,
                format!("a number that {count}, the frames of {name}, is a multiple of"),
            ));
        }
        Ok(Self {
            name,
            rows,
            dim,
            chains,
        })
    }

    /// Frames of each chain.
    pub fn length(&self) -> usize {
        self.rows.len() / self.dim / self.chains
    }
}

/// Where slow coordinates come from.
#[derive(Debug, Clone, PartialEq)]
pub enum SlowCoordinates {
    /// A .npz archive with `mean` and `coefficients`.
    Given(PathBuf),
    /// Fitted to the reference's frames, or to the frames themselves.
    Fitted(TicaSettings),
}

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Observing {
    /// Observables with their names.
    pub observables: Vec<(String, Observable)>,
    /// Slow coordinates beside them, of all distances and consecutive dihedrals of the particles.
    pub tica: Option<SlowCoordinates>,
    /// Borders of states, by the name of the observable.
    pub states: Vec<(String, Vec<f64>)>,
    /// Cells along an axis.
    pub bins: usize,
    /// Limits of the plane of the first two: x from and to, y from and to; those of the circle for dihedrals, else the range of all
    /// frames.
    pub limits: Option<[f64; 4]>,
}

/// One observable of a set of frames.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Mean and standard error by the effective number of frames.
    pub mean: Estimate,
    /// Smallest and largest value.
    pub range: (f64, f64),
    /// Integrated autocorrelation time, in frames.
    pub correlation_time: f64,
    /// Split R-hat.
    pub r_hat: f64,
    /// Values of all frames, chain after chain.
    #[serde(skip)]
    pub values: Vec<f64>,
}

/// States of one observable.
#[derive(Debug, Clone, Serialize)]
pub struct StateSeries {
    /// Name of the observable.
    pub name: String,
    /// The borders.
    pub borders: Vec<f64>,
    /// What chains say.
    pub found: States,
}

/// What one set of frames shows.
#[derive(Debug, Clone, Serialize)]
pub struct Observed {
    /// The frames.
    pub name: String,
    /// Frames of each chain.
    pub frames: usize,
    /// Chains.
    pub chains: usize,
    /// Frames that hold numbers which are none, and are left out of all.
    pub lost: usize,
    /// Observables.
    pub series: Vec<Series>,
    /// States.
    pub states: Vec<StateSeries>,
    /// The free energy of the first two observables.
    #[serde(skip)]
    pub surface: Option<Surface>,
}

/// Distances of the plane of the first two observables from the reference's, beside what two halves of the reference have.
#[derive(Debug, Clone, Serialize)]
pub struct Distances {
    /// Cells along an axis.
    pub bins: usize,
    /// Limits of the PMF error; the divergence takes the range of both where none are given.
    pub limits: [f64; 4],
    /// Jensen-Shannon divergence.
    pub js: f64,
    /// That of two halves of the reference.
    pub js_floor: Estimate,
    /// PMF error, kT squared.
    pub pmf: f64,
    /// That of two halves of the reference.
    pub pmf_floor: Estimate,
}

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct Observation {
    /// The frames.
    pub found: Observed,
    /// The reference.
    pub reference: Option<Observed>,
    /// Their distances, where there are two observables.
    pub distances: Option<Distances>,
    /// The slow coordinates that were used.
    pub tica: Option<Tica>,
}

impl Observing {
    /// Looks at the frames, and at the reference where there is one.
    pub fn run(&self, frames: &Frames, reference: Option<&Frames>) -> Result<Observation> {
        if let Some(reference) = reference
            && reference.dim != frames.dim
        {
            return Err(Error::Usage(format!(
                "{} has rows of {} numbers, and {} of {}; compare frames of the same particles",
                frames.name, frames.dim, reference.name, reference.dim
            )));
        }
        let tica = self.slow(reference.unwrap_or(frames))?;
        let found = self.observed(frames, tica.as_ref())?;
        let reference = match reference {
            Some(reference) => Some(self.observed(reference, tica.as_ref())?),
            None => None,
        };
        let distances = match &reference {
            Some(reference) if found.series.len() >= 2 => Some(self.distances(&found, reference)?),
            _ => None,
        };
        Ok(Observation {
            found,
            reference,
            distances,
            tica,
        })
    }

    fn slow(&self, frames: &Frames) -> Result<Option<Tica>> {
        let features = Observable::of_chain(frames.dim / 3);
        let tica = match &self.tica {
            None => return Ok(None),
            Some(SlowCoordinates::Given(path)) => {
                let array = |key: &str| -> Result<Vec<f64>> {
                    let mapped = MappedNpy::open(Path::new(&format!("{}:{key}", path.display())))?;
                    Ok(mapped.view()?.to_vec_f64())
                };
                Tica::given(array("mean")?, array("coefficients")?)?
            }
            Some(SlowCoordinates::Fitted(settings)) => {
                let rows = features_of(frames, &features)?;
                let chains: Vec<&[f64]> = rows
                    .chunks_exact(frames.length() * features.len())
                    .collect();
                Tica::fit(&chains, features.len(), *settings)?
            }
        };
        if tica.features() != features.len() {
            return Err(Error::Refused(words!(
                Setting::new("tica"),
                format!(
                    " has {} features, but {} particles have {} (all distances, then consecutive dihedrals)",
                    tica.features(),
                    frames.dim / 3,
                    features.len()
                )
            )));
        }
        Ok(Some(tica))
    }

    /// Names and values of all observables, frame by frame.
    fn columns(
        &self,
        frames: &Frames,
        tica: Option<&Tica>,
    ) -> Result<Vec<(String, bool, Vec<f64>)>> {
        let mut columns = Vec::new();
        for (name, observable) in &self.observables {
            let values = observable.of_all(&frames.rows, frames.dim)?;
            columns.push((name.clone(), observable.is_periodic(), values));
        }
        if let Some(tica) = tica {
            let features = Observable::of_chain(frames.dim / 3);
            let rows = features_of(frames, &features)?;
            let mut point = vec![0.0; tica.components];
            let mut slow = vec![Vec::new(); tica.components];
            for row in rows.chunks_exact(features.len()) {
                tica.project(row, &mut point);
                slow.iter_mut()
                    .zip(&point)
                    .for_each(|(column, x)| column.push(*x));
            }
            for (k, values) in slow.into_iter().enumerate() {
                columns.push((format!("tic{}", k + 1), false, values));
            }
        }
        if columns.is_empty() {
            return Err(Error::Refused(words!(
                "nothing to look at: name observables with ",
                Setting::to("of", "phi=dihedral:0-1-2-3"),
                ", or slow coordinates with ",
                Setting::new("tica")
            )));
        }
        Ok(columns)
    }

    fn observed(&self, frames: &Frames, tica: Option<&Tica>) -> Result<Observed> {
        let columns = self.columns(frames, tica)?;
        // A frame counts when all its values are numbers; lost chains are told, not hidden.
        let whole = |k: usize| columns.iter().all(|(_, _, values)| values[k].is_finite());
        let count = frames.length() * frames.chains;
        let kept: Vec<usize> = (0..count).filter(|k| whole(*k)).collect();
        let lost = count - kept.len();
        // Chains of unequal lengths are one series for errors.
        let chains = if lost == 0 { frames.chains } else { 1 };
        let mut series = Vec::new();
        let mut states = Vec::new();
        for (name, periodic, values) in &columns {
            let values: Vec<f64> = kept.iter().map(|k| values[*k]).collect();
            if values.len() < 4 {
                return Err(Error::Usage(format!(
                    "{}: {} frames hold numbers, expected at least 4",
                    frames.name,
                    values.len()
                )));
            }
            if let Some((_, borders)) = self.states.iter().find(|(state, _)| state == name) {
                let of: Vec<usize> = values
                    .iter()
                    .map(|x| state_of(*x, borders, *periodic))
                    .collect();
                let ring = usize::from(!(*periodic && borders.len() > 1));
                states.push(StateSeries {
                    name: name.clone(),
                    borders: borders.clone(),
                    found: States::of(&of, chains, borders.len() + ring)?,
                });
            }
            series.push(series_of(name, values, chains));
        }
        for (name, _) in &self.states {
            if !columns.iter().any(|(known, _, _)| known == name) {
                let known: Vec<&str> = columns.iter().map(|(name, _, _)| name.as_str()).collect();
                return Err(Error::setting(
                    "states",
                    name,
                    format!("the name of an observable: {}", known.join(", ")),
                ));
            }
        }
        let surface = match series.as_slice() {
            [x, y, ..] => {
                let points = plane(x, y);
                let plane = Plane::new(&points)?;
                let limits = self.limits_of(&columns, &plane, &plane);
                Some(plane.surface(self.bins, limits)?)
            }
            _ => None,
        };
        Ok(Observed {
            name: frames.name.clone(),
            frames: frames.length(),
            chains: frames.chains,
            lost,
            series,
            states,
            surface,
        })
    }

    fn limits_of(
        &self,
        columns: &[(String, bool, Vec<f64>)],
        a: &Plane<'_>,
        b: &Plane<'_>,
    ) -> [f64; 4] {
        self.limits.unwrap_or_else(|| {
            let mut limits = a.range_with(b);
            for (axis, (_, periodic, _)) in columns.iter().take(2).enumerate() {
                if *periodic {
                    (limits[2 * axis], limits[2 * axis + 1]) = (-PI, PI);
                }
            }
            limits
        })
    }

    fn distances(&self, found: &Observed, reference: &Observed) -> Result<Distances> {
        let points = [found, reference].map(|set| plane(&set.series[0], &set.series[1]));
        let (found, reference) = (Plane::new(&points[0])?, Plane::new(&points[1])?);
        let periodic: Vec<(String, bool, Vec<f64>)> = self
            .observables
            .iter()
            .map(|(name, observable)| (name.clone(), observable.is_periodic(), Vec::new()))
            .collect();
        let limits = self.limits_of(&periodic, &found, &reference);
        let js = |a: &Plane<'_>, b: &Plane<'_>| jensen_shannon(a, b, self.bins, self.limits);
        let pmf = |a: &Plane<'_>, b: &Plane<'_>| pmf_error(a, b, self.bins, limits);
        Ok(Distances {
            bins: self.bins,
            limits,
            js: js(&found, &reference)?,
            js_floor: reference.floor(js)?,
            pmf: pmf(&found, &reference)?,
            pmf_floor: reference.floor(pmf)?,
        })
    }
}

/// Features of all frames, row by row.
fn features_of(frames: &Frames, features: &[Observable]) -> Result<Vec<f64>> {
    if frames.dim < 9 || !frames.dim.is_multiple_of(3) {
        return Err(Error::Refused(words!(
            Setting::new("tica"),
            format!(
                " needs at least three particles in space, and rows have {} numbers",
                frames.dim
            )
        )));
    }
    let rows = frames.rows.chunks_exact(frames.dim);
    Ok(rows
        .flat_map(|row| features.iter().map(|feature| feature.of(row)))
        .collect())
}

fn plane(x: &Series, y: &Series) -> Vec<f64> {
    let both = x.values.iter().zip(&y.values);
    both.flat_map(|(x, y)| [*x, *y]).collect()
}

fn series_of(name: &str, values: Vec<f64>, chains: usize) -> Series {
    let length = values.len() / chains;
    // All chains' first frames, then all second ones.
    let turned: Vec<f64> = (0..values.len())
        .map(|k| values[k % chains * length + k / chains])
        .collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let effective = effective_draws(&turned, chains);
    let range = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
            (a.min(*x), b.max(*x))
        });
    Series {
        name: name.into(),
        mean: Estimate {
            mean,
            error: (variance / effective).sqrt(),
        },
        range,
        correlation_time: count / effective,
        r_hat: split_r_hat(&turned, chains),
        values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four particles whose last bond turns: phi goes around.
    fn frames(offset: f64, lost: bool) -> Frames {
        let mut rows = Vec::new();
        for k in 0..400 {
            let phi = (k as f64 * 0.37 + offset).rem_euclid(2.0 * PI) - PI;
            let bend = 0.1 * (k as f64 * 0.11).sin();
            let mut row = vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
            row.extend([f64::cos(phi), f64::sin(phi), 1.5 + bend]);
            if lost && k == 7 {
                row[0] = f64::NAN;
            }
            rows.extend(row);
        }
        Frames::of("frames".into(), rows, 12, 4).unwrap()
    }

    fn asked() -> Observing {
        Observing {
            observables: vec![
                ("phi".into(), Observable::parse("dihedral:0-1-2-3").unwrap()),
                ("d".into(), Observable::parse("distance:1-3").unwrap()),
            ],
            states: vec![("phi".into(), vec![0.0])],
            bins: 8,
            ..Observing::default()
        }
    }

    #[test]
    fn figures_of_frames_and_their_distances() {
        let found = asked()
            .run(&frames(0.0, false), Some(&frames(0.2, false)))
            .unwrap();
        let series = &found.found.series;
        assert_eq!(
            (series[0].name.as_str(), series[0].values.len()),
            ("phi", 400)
        );
        let weights = &found.found.states[0].found.weights;
        assert!((weights[0] - 0.5).abs() < 0.05 && found.found.lost == 0);
        let distances = found.distances.unwrap();
        assert!(distances.js < 0.2 && distances.js_floor.mean > 0.0);
        assert_eq!(distances.limits[..2], [-PI, PI]);
        assert!(found.found.surface.unwrap().values.len() == 64);
        // Frames that are lost are counted, not hidden.
        let found = asked().run(&frames(0.0, true), None).unwrap();
        assert_eq!(
            (found.found.lost, found.found.series[0].values.len()),
            (1, 399)
        );
    }

    #[test]
    fn slow_coordinates_given_or_fitted() {
        let mut asked = asked();
        asked.tica = Some(SlowCoordinates::Fitted(TicaSettings {
            lag: 2,
            components: 2,
            kinetic_map: true,
        }));
        let found = asked.run(&frames(0.0, false), None).unwrap();
        assert_eq!(found.found.series.len(), 4);
        assert_eq!(found.found.series[3].name, "tic2");
        assert_eq!(found.tica.unwrap().features(), 6 + 1);
        asked.tica = Some(SlowCoordinates::Given("no.npz".into()));
        assert!(asked.run(&frames(0.0, false), None).is_err());
    }

    #[test]
    fn what_cannot_be_looked_at_is_refused() {
        let refused = |asked: &Observing| {
            asked
                .run(&frames(0.0, false), None)
                .unwrap_err()
                .to_string()
        };
        assert!(
            refused(&Observing {
                bins: 8,
                ..Observing::default()
            })
            .contains("phi=dihedral")
        );
        let mut wrong = asked();
        wrong.states[0].0 = "psi".into();
        assert!(refused(&wrong).contains("phi, d"));
        wrong = asked();
        wrong.observables[1].1 = Observable::Distance([0, 4]);
        assert!(refused(&wrong).contains("distance:0-4"));
        assert!(Frames::of("a".into(), vec![0.0; 12], 3, 3).is_err());
    }
}
