//! Where the data are, and which chains have left them: by their energies, bond lengths and coordinates.

use diffclf::observable::Observable;
use diffclf::sample::mcmc::HeldEnergy;
use serde::Serialize;

/// Rows of the data that are looked at.
const MOST_ROWS: usize = 1 << 16;
/// Pairs of particles beyond which only bonds are watched.
const MOST_PAIRS: usize = 300;

/// Ranges of the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bounds {
    /// Rows of the data that were looked at.
    pub rows: usize,
    /// Median of U over them, in kT.
    pub median_energy: f64,
    /// Largest U; infinite where all rows are the same one, which bounds nothing.
    pub largest_energy: f64,
    /// What is watched, with its smallest and largest value in the data.
    pub ranges: Vec<(String, f64, f64)>,
    #[serde(skip)]
    watched: Vec<Observable>,
}

/// A chain that left the data: the first frame that shows it, and how far it went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Departure {
    /// The chain.
    pub chain: usize,
    /// The first frame.
    pub frame: usize,
    /// What shows it: `energy`, a bond, a coordinate.
    pub what: String,
    /// The value in that frame.
    pub value: f64,
    /// The farthest value of the chain.
    pub farthest: f64,
    /// The data's own limits.
    pub data: (f64, f64),
}

impl Departure {
    /// In words.
    pub fn text(&self) -> String {
        let Self {
            chain, frame, what, ..
        } = self;
        if !self.value.is_finite() {
            return format!(
                "chain {chain} was lost in frame {frame}: its {what} is {}",
                self.value
            );
        }
        let (low, high) = self.data;
        let data = match low == f64::NEG_INFINITY {
            true => format!("at most {high:.4}"),
            false => format!("{low:.4} to {high:.4}"),
        };
        format!(
            "chain {chain} left the data in frame {frame}: {what} {:.4}, at its farthest {:.4}; the data have {data}",
            self.value, self.farthest
        )
    }
}

impl Bounds {
    /// Those of the data's rows. Bonds are watched where they are given, all distances of few particles where they are not, and every
    /// coordinate of rows that are no particles. There is a target for each thread.
    pub fn of(
        rows: &[f64],
        bonds: &[[usize; 2]],
        particles: bool,
        targets: &[HeldEnergy<'_>],
    ) -> Self {
        let dim = targets.first().map_or(1, |target| target.energy.dim());
        let count = (rows.len() / dim).min(MOST_ROWS);
        let rows = &rows[..count * dim];
        let mut energies = vec![0.0; count];
        let share = count.div_ceil(targets.len().max(1)).max(1);
        std::thread::scope(|scope| {
            let parts = rows.chunks(share * dim).zip(energies.chunks_mut(share));
            for ((rows, energies), target) in parts.zip(targets) {
                scope.spawn(|| target.energy.energy(&[target.time], rows, energies));
            }
        });
        energies.sort_by(f64::total_cmp);
        let pairs = dim / 3 * (dim / 3).saturating_sub(1) / 2;
        // One row again and again has no ranges: nothing is outside of it.
        let alike = rows.chunks_exact(dim).all(|row| row == &rows[..dim]);
        let watched: Vec<Observable> = match (particles, bonds.is_empty()) {
            _ if alike => Vec::new(),
            (true, true) if pairs > MOST_PAIRS => Vec::new(),
            (true, true) => (0..dim / 3)
                .flat_map(|i| (i + 1..dim / 3).map(move |j| Observable::Distance([i, j])))
                .collect(),
            (true, false) => bonds
                .iter()
                .map(|bond| Observable::Distance(*bond))
                .collect(),
            (false, _) => (0..dim).map(Observable::Column).collect(),
        };
        let ranges = watched.iter().map(|observable| {
            let values = rows.chunks_exact(dim).map(|row| observable.of(row));
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            });
            (observable.to_string(), low, high)
        });
        Self {
            rows: count,
            median_energy: energies.get(count / 2).copied().unwrap_or(f64::NAN),
            largest_energy: match alike {
                true => f64::INFINITY,
                false => energies.last().copied().unwrap_or(f64::NAN),
            },
            ranges: ranges.collect(),
            watched,
        }
    }

    /// The chains that left the data. A value is outside when it lies farther beyond the data's range than half of that range is wide;
    /// an energy, when it lies farther above the data's largest than that lies above their median (and 10 kT). `frames` holds all
    /// chains of the first frame, then of the second, and so on.
    pub fn departures(&self, frames: &[f64], energies: &[f64], chains: usize) -> Vec<Departure> {
        let dim = frames.len() / energies.len().max(1);
        let slack = (self.largest_energy - self.median_energy).max(10.0);
        let mut found: Vec<Departure> = Vec::new();
        let mut see =
            |chain: usize, frame: usize, what: &str, value: f64, data: (f64, f64), room: f64| {
                let inside = value >= data.0 - room && value <= data.1 + room;
                if inside {
                    return;
                }
                let known = found
                    .iter_mut()
                    .find(|d| d.chain == chain && d.what == what);
                let beyond = |value: f64| (data.0 - value).max(value - data.1);
                match known {
                    Some(known) => {
                        if !value.is_finite() || beyond(value) > beyond(known.farthest) {
                            known.farthest = value;
                        }
                    }
                    None => found.push(Departure {
                        chain,
                        frame,
                        what: what.into(),
                        value,
                        farthest: value,
                        data,
                    }),
                }
            };
        for (k, (row, energy)) in frames.chunks_exact(dim.max(1)).zip(energies).enumerate() {
            let (frame, chain) = (k / chains, k % chains);
            let data = (f64::NEG_INFINITY, self.largest_energy);
            see(chain, frame, "energy", *energy, data, slack);
            for (observable, (name, low, high)) in self.watched.iter().zip(&self.ranges) {
                let room = 0.5 * (high - low);
                see(chain, frame, name, observable.of(row), (*low, *high), room);
            }
        }
        found.sort_by(|a, b| (a.frame, a.chain, &a.what).cmp(&(b.frame, b.chain, &b.what)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::energy::Closure;

    #[test]
    fn chains_that_leave_are_named_and_others_not() {
        let well = Closure::new(6, |_t, y: &[f64], score: &mut [f64]| {
            score.iter_mut().zip(y).for_each(|(s, y)| *s = -y);
            0.5 * y.iter().map(|y| y * y).sum::<f64>()
        });
        let target = HeldEnergy {
            energy: &well,
            time: 0.0,
        };
        // Two particles, 1.0 to 1.2 apart.
        let data: Vec<f64> = (0..20)
            .flat_map(|k| [0.0, 0.0, 0.0, 1.0 + 0.01 * f64::from(k), 0.0, 0.0])
            .collect();
        let bounds = Bounds::of(&data, &[[0, 1]], true, &[target]);
        for threads in [2, 3, 64] {
            let dealt = Bounds::of(&data, &[[0, 1]], true, &vec![target; threads]);
            assert_eq!(dealt, bounds, "{threads} threads");
        }
        assert_eq!((bounds.rows, bounds.ranges.len()), (20, 1));
        let row = |d: f64| [0.0, 0.0, 0.0, d, 0.0, 0.0];
        // Chain 0 stays, chain 1 stretches its bond in frame 1, chain 2 is lost in frame 2.
        let frames = [
            row(1.1),
            row(1.1),
            row(1.1),
            row(1.25),
            row(1.5),
            row(1.0),
            row(1.0),
            row(1.4),
            row(f64::NAN),
        ]
        .concat();
        let mut energies = vec![0.6; 9];
        energies[7] = 500.0;
        energies[8] = f64::NAN;
        let left = bounds.departures(&frames, &energies, 3);
        let told: Vec<(usize, usize, &str)> = left
            .iter()
            .map(|d| (d.frame, d.chain, d.what.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (1, 1, "distance:0-1"),
                (2, 1, "energy"),
                (2, 2, "distance:0-1"),
                (2, 2, "energy"),
            ]
        );
        assert_eq!((left[0].value, left[0].farthest), (1.5, 1.5));
        assert!(left[0].text().contains("chain 1 left the data in frame 1"));
        assert!(left[0].text().ends_with("the data have 1.0000 to 1.1900"));
        assert!(left[1].text().contains("the data have at most"));
        assert!(
            left[3]
                .text()
                .ends_with("was lost in frame 2: its energy is NaN")
        );
        // A structure that all chains start from says nothing of where they may go.
        let same = Bounds::of(&data[..6].repeat(3), &[[0, 1]], true, &[target]);
        energies[8] = 900.0;
        assert!(same.ranges.is_empty() && same.departures(&frames, &energies, 3).is_empty());
    }
}
