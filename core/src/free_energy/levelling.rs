//! F(t) of all levels at once, as the energies call for it.
//!
//! The classification loss over all levels is convex in F, and its minimum over noised samples is MBAR's `F = -log Z` (Shirts and Chodera 2008): the
//! same weights `exp(F_k - U_k) / sum_j exp(F_j - U_j)`, the same equations. A training goes there by small steps, pair of levels by pair of
//! levels, while the energies still move; when they stand still, F can be solved for. What is found on some samples is judged on others.

use super::{Matrix, Mbar, MbarSettings, PathSamples};
use crate::energy::Energy;
use crate::metric::Estimate;
use crate::system::log_sum::log_sum_exp;
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["shirts2008statistically"];

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Levelling {
    /// What to add to F at each time, with its sampling error; 0 at the reference.
    pub shifts: Vec<Estimate>,
    /// By how much that lowers the classification loss over these times, on samples that it was not found on.
    pub gain: Estimate,
}

impl Levelling {
    /// Whether the loss falls by more than chance: two standard errors.
    pub fn is_certain(&self) -> bool {
        self.gain.mean > 2.0 * self.gain.error
    }

    /// The largest shift beyond chance (four standard errors), or else the largest.
    pub fn largest(&self) -> Option<Estimate> {
        let key = |s: &Estimate| (s.mean.abs() > 4.0 * s.error, s.mean.abs());
        self.shifts.iter().copied().max_by(|a, b| {
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    /// The shift at a level between those that were solved for, linear in the level; `levels` are their places, rising.
    pub fn shift_at(&self, levels: &[usize], level: usize) -> f64 {
        let after = levels.partition_point(|known| *known < level);
        match (after.checked_sub(1), levels.get(after)) {
            (_, Some(known)) if *known == level => self.shifts[after].mean,
            (Some(before), Some(next)) => {
                let (from, to) = (levels[before] as f64, *next as f64);
                let share = (level as f64 - from) / (to - from);
                let (from, to) = (self.shifts[before].mean, self.shifts[after].mean);
                from + share * (to - from)
            }
            (Some(last), None) => self.shifts[last].mean,
            (None, _) => self.shifts[0].mean,
        }
    }
}

/// Solves for F on `fit`, judges it on `check`, which has the same times; `reference` is the time whose F stays.
///
/// # Errors
/// [`Error::Value`] for samples at different times, and as [`Mbar::solve`].
pub fn level(
    energy: &dyn Energy,
    (fit, check): (&PathSamples, &PathSamples),
    reference: usize,
    settings: &MbarSettings,
) -> Result<Levelling> {
    let times = fit.times();
    if check.times() != times || reference >= times.len() {
        return Err(Error::Value {
            name: "levelling",
            found: format!(
                "samples at {} and {} times",
                times.len(),
                check.times().len()
            ),
            expected: "the same times for both, the reference among them".into(),
        });
    }
    let reduced = fit.reduced_energies(energy);
    let matrix = Matrix::new(&reduced, times.len())?;
    let mbar = Mbar::solve(&matrix, &vec![fit.count(); times.len()], settings)?;
    // log(Z_reference / Z_k): where Z is too large, F must fall.
    let shifts: Vec<Estimate> = (0..times.len())
        .map(|k| mbar.difference(k, reference))
        .collect();

    let (reduced, count) = (check.reduced_energies(energy), check.count());
    let total = count * times.len();
    let mut row = vec![0.0; times.len()];
    let mut loss = |sample: usize, shifts: Option<&[Estimate]>| {
        for (state, x) in row.iter_mut().enumerate() {
            *x = shifts.map_or(0.0, |s| s[state].mean) - reduced[state * total + sample];
        }
        let own = row[sample / count];
        log_sum_exp(&mut row) - own
    };
    // Sample n of every level: draws of one row number share nothing but their stream, so that these means are independent.
    let gains: Vec<f64> = (0..count)
        .map(|n| {
            let samples = (0..times.len()).map(|level| level * count + n);
            let gain = samples.map(|s| loss(s, None) - loss(s, Some(&shifts)));
            gain.sum::<f64>() / times.len() as f64
        })
        .collect();
    Ok(Levelling {
        shifts,
        gain: Estimate::of(&gains),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::process::Process;
    use crate::system::two_modes;

    /// The exact energies with an F that is off by this much.
    struct Tilted {
        inner: ExactPath,
        off: fn(f64) -> f64,
    }

    impl Energy for Tilted {
        fn dim(&self) -> usize {
            self.inner.dim()
        }
        fn free_energy(&self, time: f64) -> f64 {
            self.inner.free_energy(time) + (self.off)(time)
        }
        fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            self.inner.energy(times, points, out);
        }
        fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            self.inner.score(times, points, out);
        }
        fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            self.inner.time_score(times, points, out);
        }
    }

    fn found(off: fn(f64) -> f64) -> (Vec<f64>, Levelling) {
        let process = Process::default();
        let path = ExactPath::new(process, two_modes().unwrap(), None).unwrap();
        let times: Vec<f64> = (0..12).map(|k| 0.02 + 0.08 * f64::from(k)).collect();
        let samples = |seed| {
            let rows = path.sample_endpoints(3000, seed).0;
            PathSamples::new(&process, 2, &times, (&rows, None), 400, seed).unwrap()
        };
        let (fit, check) = (samples(1), samples(2));
        let energy = Tilted { inner: path, off };
        let settings = MbarSettings::default();
        let found = level(&energy, (&fit, &check), 11, &settings).unwrap();
        assert!(level(&energy, (&fit, &check), 12, &settings).is_err());
        (times, found)
    }

    #[test]
    fn what_is_off_is_found_and_what_is_right_is_left() {
        let off = |t: f64| 1.5 * (1.0 - t) + 0.4 * (9.0 * t).sin();
        let (times, wrong) = found(off);
        assert!(
            wrong.is_certain() && wrong.gain.mean > 0.05,
            "{:?}",
            wrong.gain
        );
        let (_, right) = found(|_| 0.0);
        assert!(!right.is_certain(), "{:?}", right.gain);
        for (k, time) in times.iter().enumerate() {
            let exact = off(times[11]) - off(*time);
            // The same samples, so the same error: what is left over of the exact energies is chance, the rest is arithmetic.
            let chance = right.shifts[k];
            let gap = wrong.shifts[k].mean - exact - chance.mean;
            assert!(gap.abs() < 1e-6, "{time}: {gap}");
            // MBAR's error, and as much again for rows that serve several samples.
            assert!(chance.mean.abs() <= 8.0 * chance.error, "{time}: {chance}");
        }
    }

    #[test]
    fn levels_between_are_interpolated() {
        let levelling = Levelling {
            shifts: [(2.0, 0.9), (1.0, 0.1), (0.0, 0.0)]
                .map(|(mean, error)| Estimate { mean, error })
                .to_vec(),
            gain: Estimate {
                mean: 1.0,
                error: 0.1,
            },
        };
        assert_eq!(levelling.largest().map(|s| s.mean), Some(1.0));
        let at = |level| levelling.shift_at(&[0, 4, 6], level);
        assert_eq!(
            [at(0), at(1), at(4), at(5), at(6)],
            [2.0, 1.75, 1.0, 0.5, 0.0]
        );
    }
}
