//! Numbers that know their gradient and their Laplacian: what score matching asks of a function of a few particles, by forward differentiation (Li et al. 2024).

use std::ops::{Add, Mul, Sub};

/// Coordinates of four particles in space.
pub(super) const MOST: usize = 12;

/// A function of up to [`MOST`] coordinates at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jet {
    pub(super) value: f64,
    pub(super) gradient: [f64; MOST],
    pub(super) laplacian: f64,
}

impl Jet {
    /// A number that depends on nothing.
    pub(super) fn constant(value: f64) -> Jet {
        Jet {
            value,
            gradient: [0.0; MOST],
            laplacian: 0.0,
        }
    }

    /// A coordinate.
    pub(super) fn coordinate(value: f64, place: usize) -> Jet {
        let mut jet = Jet::constant(value);
        jet.gradient[place] = 1.0;
        jet
    }

    /// `f(self)`, by the value and two derivatives of f.
    pub(super) fn map(self, [value, first, second]: [f64; 3]) -> Jet {
        Jet {
            value,
            gradient: self.gradient.map(|g| first * g),
            laplacian: second * dot(&self.gradient, &self.gradient) + first * self.laplacian,
        }
    }

    /// `self^p`, of a positive number.
    pub(super) fn power(self, p: f64) -> Jet {
        let value = self.value.powf(p);
        let first = p * value / self.value;
        self.map([value, first, (p - 1.0) * first / self.value])
    }

    pub(super) fn scaled(self, factor: f64) -> Jet {
        self.map([factor * self.value, factor, 0.0])
    }

    pub(super) fn shifted(self, by: f64) -> Jet {
        self.map([self.value + by, 1.0, 0.0])
    }
}

fn dot(a: &[f64; MOST], b: &[f64; MOST]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Add for Jet {
    type Output = Jet;
    fn add(self, other: Jet) -> Jet {
        Jet {
            value: self.value + other.value,
            gradient: std::array::from_fn(|k| self.gradient[k] + other.gradient[k]),
            laplacian: self.laplacian + other.laplacian,
        }
    }
}

impl Sub for Jet {
    type Output = Jet;
    fn sub(self, other: Jet) -> Jet {
        self + other.scaled(-1.0)
    }
}

impl Mul for Jet {
    type Output = Jet;
    fn mul(self, other: Jet) -> Jet {
        let crossed = dot(&self.gradient, &other.gradient);
        Jet {
            value: self.value * other.value,
            gradient: std::array::from_fn(|k| {
                self.value * other.gradient[k] + other.value * self.gradient[k]
            }),
            laplacian: self.value * other.laplacian + other.value * self.laplacian + 2.0 * crossed,
        }
    }
}
