//! Sums over samples, and the numbers that follow from them: the linear equations of score matching; see `fit.rs`.

use std::sync::Mutex;

use super::functions::{Functions, Soft, Values};
use super::samples::Samples;
use crate::engine::Pool;
use crate::system::matrix::{add, cholesky, dot};

/// Parts of the samples whose sums are made alone.
const PARTS: usize = 16;

/// Means over samples, from which numbers follow.
#[derive(Clone)]
pub(super) struct Sums {
    pub(super) size: usize,
    /// Functions from here on are penalised as if their mean square slope were at least this much.
    weak: (usize, f64),
    count: f64,
    /// `M`, below the diagonal and on it.
    matrix: Vec<f64>,
    /// Both right-hand sides.
    hyvarinen: Vec<f64>,
    known: Vec<f64>,
    /// Mean square of the known scores with the Gaussian's slope.
    square: f64,
    /// Means of the Laplacians and of what is soft.
    pub(super) laplacian: Vec<f64>,
    pub(super) ends: [f64; 2],
    energies: Option<Energies>,
    /// How many times the square of what is soft known scores are off, beside what is left of them in one sample; where it stands among the functions.
    bias: (f64, usize),
}

/// Means over samples of known energies `u`.
#[derive(Clone)]
struct Energies {
    /// `f` and `u`.
    values: Vec<f64>,
    energy: f64,
    /// `f f`, below the diagonal and on it; `f u`, `u u`.
    products: Vec<f64>,
    mixed: Vec<f64>,
    square: f64,
}

impl Energies {
    fn zero(size: usize) -> Energies {
        Energies {
            values: vec![0.0; size],
            energy: 0.0,
            products: vec![0.0; size * size],
            mixed: vec![0.0; size],
            square: 0.0,
        }
    }

    fn take(&mut self, values: &[f64], energy: f64) {
        let size = values.len();
        add(1.0, values, &mut self.values);
        add(energy, values, &mut self.mixed);
        self.energy += energy;
        self.square += energy * energy;
        for (k, value) in values.iter().enumerate() {
            let row = &mut self.products[k * size..][..=k];
            add(*value, &values[..=k], row);
        }
    }

    fn add(&mut self, other: &Energies, factor: f64) {
        add(factor, &other.values, &mut self.values);
        add(factor, &other.products, &mut self.products);
        add(factor, &other.mixed, &mut self.mixed);
        self.energy += factor * other.energy;
        self.square += factor * other.square;
    }

    fn scale(&mut self, factor: f64) {
        let numbers = [&mut self.values, &mut self.products, &mut self.mixed];
        numbers.into_iter().flatten().for_each(|x| *x *= factor);
        self.energy *= factor;
        self.square *= factor;
    }
}

impl Sums {
    pub(super) fn zero(functions: &Functions<'_>) -> Sums {
        let size = functions.size;
        Sums {
            size,
            weak: functions.weak(),
            count: 0.0,
            matrix: vec![0.0; size * size],
            hyvarinen: vec![0.0; size],
            known: vec![0.0; size],
            square: 0.0,
            laplacian: vec![0.0; size],
            ends: [0.0; 2],
            energies: None,
            bias: (0.0, 0),
        }
    }

    /// Of the even samples and of the odd ones.
    pub(super) fn halves(functions: &Functions<'_>, samples: &Samples, pool: &Pool) -> [Sums; 2] {
        let count = samples.count();
        let size = functions.size;
        let parts: Vec<Mutex<Option<[Sums; 2]>>> = (0..PARTS).map(|_| Mutex::new(None)).collect();
        pool.run(PARTS, &|_, part| {
            let mut halves = [Sums::zero(functions), Sums::zero(functions)];
            let mut values = Values {
                value: vec![0.0; size],
                laplacian: vec![0.0; size],
                slopes: vec![0.0; samples.columns * size],
                ends: [0.0; 2],
            };
            let mut present = Vec::with_capacity(size);
            for number in part * count / PARTS..(part + 1) * count / PARTS {
                let columns = samples.columns;
                let of = |all: &'_ Vec<f64>| -> Option<std::ops::Range<usize>> {
                    (!all.is_empty()).then(|| number * columns..(number + 1) * columns)
                };
                let row = &samples.rows[number * columns..][..columns];
                functions.at(row, samples.space, &mut values);
                let gaussian = of(&samples.gaussian).map(|range| &samples.gaussian[range]);
                let scores = of(&samples.scores).map(|range| &samples.scores[range]);
                let half = &mut halves[number % 2];
                half.take(&values, gaussian, scores, &mut present);
                // Elsewhere one number is fitted, by scores.
                if let (Soft::Each { .. }, Some(energy)) =
                    (functions.what, samples.energies.get(number))
                {
                    let energies = half.energies.get_or_insert_with(|| Energies::zero(size));
                    energies.take(&values.value, *energy);
                }
            }
            if let Ok(mut place) = parts[part].lock() {
                *place = Some(halves);
            }
        });
        let mut whole = [Sums::zero(functions), Sums::zero(functions)];
        for part in parts {
            let part = part.into_inner().ok().flatten();
            for (whole, part) in whole.iter_mut().zip(part.into_iter().flatten()) {
                whole.add(&part, 1.0);
            }
        }
        whole.map(|mut sums| {
            let count = sums.count.max(1.0);
            sums.scale(1.0 / count);
            if let Soft::Together { .. } = functions.what {
                sums.bias = (samples.bias * samples.count() as f64, functions.of_held);
            }
            sums
        })
    }

    pub(super) fn take(
        &mut self,
        values: &Values,
        gaussian: Option<&[f64]>,
        scores: Option<&[f64]>,
        present: &mut Vec<usize>,
    ) {
        let size = self.size;
        self.count += 1.0;
        add(1.0, &values.laplacian, &mut self.laplacian);
        add(1.0, &values.laplacian, &mut self.hyvarinen);
        for (axis, slopes) in values.slopes.chunks_exact(size).enumerate() {
            present.clear();
            present.extend((0..size).filter(|k| slopes[*k] != 0.0));
            let below = gaussian.map_or(0.0, |slope| slope[axis]);
            let wanted = scores.map_or(0.0, |score| -score[axis] - below);
            self.square += wanted * wanted;
            for (i, &k) in present.iter().enumerate() {
                let slope = slopes[k];
                self.hyvarinen[k] -= slope * below;
                self.known[k] += slope * wanted;
                let row = &mut self.matrix[k * size..][..size];
                for &l in &present[..=i] {
                    row[l] += slope * slopes[l];
                }
            }
        }
        for (sum, value) in self.ends.iter_mut().zip(values.ends) {
            *sum += value;
        }
    }

    pub(super) fn add(&mut self, other: &Sums, factor: f64) {
        self.count += factor * other.count;
        self.square += factor * other.square;
        add(factor, &other.matrix, &mut self.matrix);
        add(factor, &other.hyvarinen, &mut self.hyvarinen);
        add(factor, &other.known, &mut self.known);
        add(factor, &other.laplacian, &mut self.laplacian);
        if let Some(other) = &other.energies {
            let size = self.size;
            let energies = self.energies.get_or_insert_with(|| Energies::zero(size));
            energies.add(other, factor);
        }
        for (sum, value) in self.ends.iter_mut().zip(other.ends) {
            *sum += factor * value;
        }
    }

    pub(super) fn scale(&mut self, factor: f64) {
        let numbers = [
            &mut self.matrix,
            &mut self.hyvarinen,
            &mut self.known,
            &mut self.laplacian,
        ];
        for x in numbers.into_iter().flatten().chain(&mut self.ends) {
            *x *= factor;
        }
        self.count *= factor;
        self.square *= factor;
        if let Some(energies) = &mut self.energies {
            energies.scale(factor);
        }
    }

    /// These with `weight` times the variance of what is left of the known energies beside the mean square of what is left of the scores.
    pub(super) fn with_energies(&self, weight: f64) -> Sums {
        let (mut sums, size) = (self.clone(), self.size);
        let Some(energies) = &self.energies else {
            return sums;
        };
        for k in 0..size {
            let mean = energies.values[k];
            let row = &mut sums.matrix[k * size..][..=k];
            add(weight, &energies.products[k * size..][..=k], row);
            add(-weight * mean, &energies.values[..=k], row);
            let side = weight * (energies.mixed[k] - mean * energies.energy);
            sums.hyvarinen[k] += side;
            sums.known[k] += side;
        }
        sums.square += weight * (energies.square - energies.energy.powi(2));
        sums
    }

    /// The weight of the energies that both kinds of what is left have by their size, for `dim` scores a sample; 0 where no energies are known.
    pub(super) fn energy_weight(&self, used: &[usize], ridge: f64, dim: usize) -> f64 {
        if self.energies.is_none() {
            return 0.0;
        }
        let left = |sums: &Sums, c: &[f64]| {
            (sums.square - 2.0 * dot(c, &sums.known) + dot(c, &sums.times(c))).max(0.0)
        };
        let with_one = self.with_energies(1.0);
        let mut weight = 0.0;
        for _ in 0..4 {
            let sums = self.with_energies(weight);
            let c = sums.solve(used, &sums.known, ridge);
            let of_scores = left(self, &c);
            let of_energies = left(&with_one, &c) - of_scores;
            weight = of_scores / dim as f64 / of_energies.max(f64::MIN_POSITIVE);
        }
        weight
    }

    pub(super) fn mean_of([a, b]: &[Sums; 2]) -> Sums {
        let mut mean = a.clone();
        mean.add(b, 1.0);
        mean.scale(0.5);
        mean
    }

    /// `M c`.
    pub(super) fn times(&self, c: &[f64]) -> Vec<f64> {
        let size = self.size;
        (0..size)
            .map(|k| {
                let below = dot(&self.matrix[k * size..][..=k], &c[..=k]);
                let above = (k + 1..size).map(|l| self.matrix[l * size + k] * c[l]);
                below + above.sum::<f64>()
            })
            .collect()
    }

    /// The right-hand side; see the module's text.
    pub(super) fn side(&self, weight: f64) -> Vec<f64> {
        let both = self.hyvarinen.iter().zip(&self.known);
        both.map(|(h, k)| weight * h + (1.0 - weight) * k).collect()
    }

    /// `w`: 1 where no scores are known.
    pub(super) fn weight(&self, used: &[usize], ridge: f64) -> f64 {
        if self.square == 0.0 {
            return 1.0;
        }
        let mut weight = 0.5;
        for _ in 0..4 {
            let c = self.solve(used, &self.side(weight), ridge);
            let own = dot(&c, &self.times(&c));
            let (bias, soft) = self.bias;
            let left = (self.square - 2.0 * dot(&c, &self.known) + own).max(0.0)
                + if bias > 0.0 {
                    bias * c[soft].powi(2) * self.matrix[soft * self.size + soft]
                } else {
                    0.0
                };
            weight = left / (left + own).max(f64::MIN_POSITIVE);
        }
        weight
    }

    /// Numbers of the functions that are used, zero for others. Every entry is in units of its own diagonal (or more, if it is weak), so that the ridge means the same for all.
    pub(super) fn solve(&self, used: &[usize], side: &[f64], ridge: f64) -> Vec<f64> {
        let (n, size) = (used.len(), self.size);
        let mut numbers = vec![0.0; size];
        let inverse = |&k: &usize| {
            let (first, least) = self.weak;
            let square = self.matrix[k * size + k].max(if k < first { 0.0 } else { least });
            if square > 0.0 {
                square.sqrt().recip()
            } else {
                0.0
            }
        };
        let unit: Vec<f64> = used.iter().map(inverse).collect();
        let mut matrix = vec![0.0; n * n];
        for (i, &k) in used.iter().enumerate() {
            for (j, &l) in used[..=i].iter().enumerate() {
                let entry = self.matrix[k.max(l) * size + k.min(l)] * unit[i] * unit[j];
                matrix[i * n + j] = entry;
                matrix[j * n + i] = entry;
            }
            matrix[i * n + i] += if unit[i] > 0.0 { ridge } else { 1.0 };
        }
        let Some(factor) = cholesky(&matrix, n) else {
            return numbers;
        };
        let mut x: Vec<f64> = used.iter().zip(&unit).map(|(&k, u)| side[k] * u).collect();
        for i in 0..n {
            let known = dot(&factor[i * n..][..i], &x[..i]);
            x[i] = (x[i] - known) / factor[i * n + i];
        }
        for i in (0..n).rev() {
            x[i] /= factor[i * n + i];
            let value = x[i];
            add(-value, &factor[i * n..][..i], &mut x[..i]);
        }
        for ((&k, x), u) in used.iter().zip(x).zip(unit) {
            numbers[k] = x * u;
        }
        numbers
    }

    /// What score matching makes of some numbers here: the less, the better.
    pub(super) fn misfit(&self, c: &[f64], side: &[f64]) -> f64 {
        0.5 * dot(c, &self.times(c)) - dot(c, side)
    }
}
