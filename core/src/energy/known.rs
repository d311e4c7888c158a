//! Known marginals: an energy that is replaced by an exact one at the ends of its time range, where the density is given
//! (the noise end `p_T` of a diffusion, a target whose energy is a formula, both ends of an interpolant).

use super::Energy;

/// `inner` between the ends, the exact energies at and beyond them.
pub struct KnownMarginals<'a> {
    inner: &'a dyn Energy,
    start: Option<(f64, &'a dyn Energy)>,
    end: Option<(f64, &'a dyn Energy)>,
}

impl<'a> KnownMarginals<'a> {
    /// No end is known yet.
    pub fn new(inner: &'a dyn Energy) -> KnownMarginals<'a> {
        KnownMarginals {
            inner,
            start: None,
            end: None,
        }
    }

    /// `exact` gives the density at every time up to `time`.
    pub fn with_start(self, time: f64, exact: &'a dyn Energy) -> KnownMarginals<'a> {
        KnownMarginals {
            start: Some((time, exact)),
            ..self
        }
    }

    /// `exact` gives the density at every time from `time` on.
    pub fn with_end(self, time: f64, exact: &'a dyn Energy) -> KnownMarginals<'a> {
        KnownMarginals {
            end: Some((time, exact)),
            ..self
        }
    }

    fn at(&self, time: f64) -> &'a dyn Energy {
        match (self.start, self.end) {
            (Some((start, exact)), _) if time <= start => exact,
            (_, Some((end, exact))) if time >= end => exact,
            _ => self.inner,
        }
    }

    /// Calls `f` once per run of rows that belong to the same energy: times, points, output.
    fn split(
        &self,
        times: &[f64],
        points: &[f64],
        width: usize,
        out: &mut [f64],
        f: impl Fn(&dyn Energy, &[f64], &[f64], &mut [f64]),
    ) {
        if let [time] = times {
            return f(self.at(*time), times, points, out);
        }
        let d = self.dim();
        let mut start = 0;
        while start < times.len() {
            let energy = self.at(times[start]);
            let same = |t: &f64| std::ptr::addr_eq(self.at(*t), energy);
            let len = times[start..].iter().take_while(|t| same(t)).count();
            f(
                energy,
                &times[start..start + len],
                &points[start * d..(start + len) * d],
                &mut out[start * width..(start + len) * width],
            );
            start += len;
        }
    }
}

impl Energy for KnownMarginals<'_> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn free_energy(&self, time: f64) -> f64 {
        self.at(time).free_energy(time)
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.split(times, points, 1, out, |e, t, y, out| e.energy(t, y, out));
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let d = self.dim();
        self.split(times, points, d, out, |e, t, y, out| e.score(t, y, out));
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.split(times, points, 1, out, |e, t, y, out| {
            e.time_score(t, y, out)
        });
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.split(times, points, 1, out, |e, t, y, out| {
            e.energy_rate(t, y, out)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::energy::{Coordinates, Ending, InDataCoordinates};
    use crate::process::Process;
    use crate::system::{Covariance, GaussianMixture};

    /// `U = y^2/2 + 3 t` with an F that bends by 20 at time 1/2, like a table of levels: no central difference of F can undo the
    /// one-sided slope in the time score there.
    struct Bent;

    impl Energy for Bent {
        fn dim(&self) -> usize {
            1
        }
        fn free_energy(&self, time: f64) -> f64 {
            10.0 * (time - 0.5).abs()
        }
        fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            for (i, (out, y)) in out.iter_mut().zip(points).enumerate() {
                *out = 0.5 * y * y + 3.0 * times[if times.len() == 1 { 0 } else { i }];
            }
        }
        fn score(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
            out.iter_mut().zip(points).for_each(|(s, y)| *s = -y);
        }
        fn time_score(&self, times: &[f64], _points: &[f64], out: &mut [f64]) {
            for (i, out) in out.iter_mut().enumerate() {
                let time = times[if times.len() == 1 { 0 } else { i }];
                *out = if time >= 0.5 { 7.0 } else { -13.0 };
            }
        }
        fn energy_rate(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
            out.fill(3.0);
        }
    }

    #[test]
    fn energy_rates_of_wrapped_energies_do_not_see_bends_of_f() {
        let (bent, other) = (
            Bent,
            crate::energy::Closure::new(1, |_, y: &[f64], s: &mut [f64]| {
                s[0] = -y[0];
                0.5 * y[0] * y[0]
            }),
        );
        let known = KnownMarginals::new(&bent).with_end(0.9, &other);
        let ending = Ending {
            path: &bent,
            target: &other,
            time: 0.0,
        };
        let rescaled = InDataCoordinates {
            inner: &bent,
            map: Coordinates {
                shift: vec![1.5],
                scale: 2.0.into(),
                kinds: Vec::new(),
            },
        };
        let (times, points) = ([0.3, 0.5, 0.7], [0.4, -1.2, 2.0]);
        let mut rate = [0.0; 3];
        for energy in [&known as &dyn Energy, &ending] {
            energy.energy_rate(&times, &points, &mut rate);
            assert_eq!(rate, [3.0; 3]);
            energy.energy_rate(&[0.5], &points, &mut rate);
            assert_eq!(rate, [3.0; 3]);
        }
        known.energy_rate(&[0.95], &points, &mut rate);
        assert!(rate.iter().all(|r| r.abs() < 1e-9), "{rate:?}");
        // U = ((y - c shift) / scale)^2 / 2 + 3 t + a constant: a central difference of the energy itself.
        rescaled.energy_rate(&times, &points, &mut rate);
        let at = |h: f64| {
            let mut u = [0.0; 3];
            rescaled.energy(&times.map(|t| t + h), &points, &mut u);
            u
        };
        let (up, down) = (at(1e-5), at(-1e-5));
        for i in 0..3 {
            let slope = (up[i] - down[i]) / 2e-5;
            assert!(
                (rate[i] - slope).abs() < 1e-6 * (1.0 + slope.abs()),
                "{rate:?}"
            );
        }
    }

    #[test]
    fn each_row_is_answered_by_the_energy_of_its_time() {
        let path = |mean: f64| {
            let covariance = Covariance::Isotropic(vec![0.7]);
            let mixture = GaussianMixture::new(1, vec![1.0], vec![mean], covariance).unwrap();
            ExactPath::new(Process::default(), mixture, None).unwrap()
        };
        let (inner, first, last) = (path(0.0), path(1.5), path(-2.0));
        let known = KnownMarginals::new(&inner)
            .with_start(0.1, &first)
            .with_end(0.9, &last);
        let times = [0.05, 0.1, 0.5, 0.95, 0.3];
        let points = [0.2, -0.4, 1.0, 0.3, -1.1];
        let parts: [&dyn Energy; 5] = [&first, &first, &inner, &last, &inner];
        let (mut density, mut score, mut rate) = ([0.0; 5], [0.0; 5], [0.0; 5]);
        known.log_density(&times, &points, &mut density);
        known.score(&times, &points, &mut score);
        known.time_score(&times, &points, &mut rate);
        for i in 0..5 {
            let mut one = [0.0];
            parts[i].log_density(&times[i..=i], &points[i..=i], &mut one);
            assert_eq!(density[i], one[0]);
            parts[i].score(&times[i..=i], &points[i..=i], &mut one);
            assert_eq!(score[i], one[0]);
            parts[i].time_score(&times[i..=i], &points[i..=i], &mut one);
            assert_eq!(rate[i], one[0]);
            known.energy(&times[i..=i], &points[i..=i], &mut one);
            assert_eq!(-one[0], density[i]);
        }
    }
}
