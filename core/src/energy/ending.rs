//! A path whose last marginal is replaced by a target that is known exactly: what makes a trained model a Boltzmann generator.

use super::Energy;
use crate::system::System;

/// The energy of `path` at all times but `time`, where it is that of `target`.
pub struct Ending<'a> {
    /// The path, a trained model say.
    pub path: &'a dyn Energy,
    /// The target; asked at `time` like the path.
    pub target: &'a dyn Energy,
    /// Where the target takes the path's place.
    pub time: f64,
}

impl Ending<'_> {
    /// Calls `f` with the energy that holds at these times; where rows differ, one by one.
    fn split(
        &self,
        times: &[f64],
        rows: usize,
        mut f: impl FnMut(&dyn Energy, &[f64], usize, usize),
    ) {
        let at = |time: f64| {
            if time == self.time {
                self.target
            } else {
                self.path
            }
        };
        match times {
            [time] => f(at(*time), times, 0, rows),
            _ => {
                for (row, time) in times.iter().enumerate() {
                    f(at(*time), &[*time], row, 1);
                }
            }
        }
    }
}

impl Energy for Ending<'_> {
    fn dim(&self) -> usize {
        self.path.dim()
    }

    fn free_energy(&self, time: f64) -> f64 {
        if time == self.time {
            self.target.free_energy(time)
        } else {
            self.path.free_energy(time)
        }
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let dim = self.dim();
        self.split(times, out.len(), |energy, times, row, rows| {
            energy.energy(
                times,
                &points[row * dim..][..rows * dim],
                &mut out[row..][..rows],
            );
        });
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let dim = self.dim();
        self.split(times, points.len() / dim, |energy, times, row, rows| {
            let at = row * dim..(row + rows) * dim;
            energy.score(times, &points[at.clone()], &mut out[at]);
        });
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        let dim = self.dim();
        self.split(times, energy.len(), |source, times, row, rows| {
            let at = row * dim..(row + rows) * dim;
            let u = &mut energy[row..][..rows];
            source.energy_and_score(times, &points[at.clone()], u, &mut score[at]);
        });
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let dim = self.dim();
        self.split(times, out.len(), |energy, times, row, rows| {
            energy.time_score(
                times,
                &points[row * dim..][..rows * dim],
                &mut out[row..][..rows],
            );
        });
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let dim = self.dim();
        self.split(times, out.len(), |energy, times, row, rows| {
            energy.energy_rate(
                times,
                &points[row * dim..][..rows * dim],
                &mut out[row..][..rows],
            );
        });
    }
}

/// The energy `-log p` of a system whose density is known, the same at all times; F is 0.
///
/// The score is exact where the system knows it and taken by central differences otherwise; outside the support the energy is infinite and
/// the score 0.
pub struct SystemEnergy {
    system: System,
}

impl SystemEnergy {
    /// `None` if the system's density is not known.
    pub fn new(system: System) -> Option<SystemEnergy> {
        system.log_density(&vec![0.1; system.dim()])?;
        Some(SystemEnergy { system })
    }

    fn log_density(&self, point: &[f64]) -> f64 {
        self.system.log_density(point).unwrap_or(f64::NAN)
    }
}

impl Energy for SystemEnergy {
    fn dim(&self) -> usize {
        self.system.dim()
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        for (out, point) in out.iter_mut().zip(points.chunks_exact(self.dim())) {
            *out = -self.log_density(point);
        }
    }

    fn score(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        let dim = self.dim();
        let mut moved = vec![0.0; dim];
        for (out, point) in out.chunks_exact_mut(dim).zip(points.chunks_exact(dim)) {
            if self.system.score(point, out) {
                continue;
            }
            moved.copy_from_slice(point);
            for (i, out) in out.iter_mut().enumerate() {
                let h = 1e-6 * (1.0 + point[i].abs());
                let mut at = |y: f64| {
                    moved[i] = y;
                    self.log_density(&moved)
                };
                let slope = (at(point[i] + h) - at(point[i] - h)) / (2.0 * h);
                moved[i] = point[i];
                *out = if slope.is_finite() { slope } else { 0.0 };
            }
        }
    }

    fn time_score(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
        out.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::process::Process;
    use crate::system::two_modes;

    #[test]
    fn the_target_holds_at_its_time_and_the_path_elsewhere() {
        let path = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
        let target = SystemEnergy::new(System::by_name("rings", 2, 0).unwrap()).unwrap();
        let both = Ending {
            path: &path,
            target: &target,
            time: 0.0,
        };
        let points = [0.9, 0.3, -2.0, 2.3];
        let (mut u, mut score, mut rate) = ([0.0; 2], [0.0; 4], [0.0; 2]);
        both.energy_and_score(&[0.0, 0.4], &points, &mut u, &mut score);
        both.time_score(&[0.0, 0.4], &points, &mut rate);
        let (mut one, mut slope) = ([0.0], [0.0; 2]);
        target.energy_and_score(&[0.0], &points[..2], &mut one, &mut slope);
        assert_eq!((u[0], &score[..2], rate[0]), (one[0], &slope[..], 0.0));
        path.energy_and_score(&[0.4], &points[2..], &mut one, &mut slope);
        assert_eq!((u[1], &score[2..]), (one[0], &slope[..]));
        let mut all = [0.0; 2];
        both.energy(&[0.0], &points, &mut all);
        assert_eq!(all[0], u[0]);
        both.score(&[0.4], &points, &mut score);
        assert_eq!(score[2..], slope);
        assert_eq!(both.free_energy(0.0), 0.0);
    }

    #[test]
    fn scores_of_systems_are_slopes_of_their_densities() {
        for name in ["two-modes", "rings", "boxes", "mueller-brown"] {
            let system = System::by_name(name, 2, 0).unwrap();
            let energy = SystemEnergy::new(system.clone()).unwrap();
            let points = [1.7, 0.2, 0.2, 3.1];
            let mut score = [0.0; 4];
            energy.score(&[0.0], &points, &mut score);
            let h = 1e-5;
            for (row, y) in points.chunks_exact(2).enumerate() {
                for i in 0..2 {
                    let at = |h: f64| {
                        let mut y = y.to_vec();
                        y[i] += h;
                        system.log_density(&y).unwrap()
                    };
                    let slope = (at(h) - at(-h)) / (2.0 * h);
                    let found = score[2 * row + i];
                    assert!(
                        (found - slope).abs() < 1e-4 * (1.0 + slope.abs()),
                        "{name}: {found} {slope}"
                    );
                }
            }
        }
        let boxes = SystemEnergy::new(System::by_name("boxes", 2, 0).unwrap()).unwrap();
        let (mut u, mut score) = ([0.0], [1.0; 2]);
        boxes.energy_and_score(&[0.0], &[20.0, 20.0], &mut u, &mut score);
        assert_eq!((u[0], score), (f64::INFINITY, [0.0; 2]));
        assert!(SystemEnergy::new(System::by_name("moons", 2, 0).unwrap()).is_none());
    }
}
