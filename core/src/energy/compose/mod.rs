//! Compositions: the algebra of densities. AND is the product, OR the weighted mixture, powers temper, NOT divides by a bounded
//! power; a composition is an energy again, at every time.
//!
//! ```
//! use diffclf::energy::compose::{Composition, Expression};
//! use diffclf::energy::{Energy, exact::ExactPath};
//! use diffclf::process::Process;
//! use diffclf::system::{lower_pair, upper_pair};
//!
//! let path = |mixture| ExactPath::new(Process::default(), mixture, None);
//! let (a, b) = (path(upper_pair()?)?, path(lower_pair()?)?);
//! let either = Expression::parse("0.3*A or 0.7*B")?;
//! let either = Composition::new(&either, &[("A", &a), ("B", &b)])?;
//! let mut log_density = [0.0];
//! either.log_density(&[0.1], &[0.5, 0.5], &mut log_density);
//! # Ok::<(), diffclf::Error>(())
//! ```

mod parse;
mod start;
#[cfg(test)]
mod tests;

pub use start::start_of;

use super::Energy;
use crate::{Error, Result};

/// Largest power of a density.
pub const MOST_POWER: f64 = 32.0;
/// Exponent of NOT unless told otherwise: `not X` is `X^-0.5`.
///
/// With 1, two models of the same noise would cancel far away, where both are the same Gaussian, and nothing would hold the
/// particles together; with an exponent below 1 the product keeps a density.
pub const NOT_EXPONENT: f64 = 0.5;

/// What is composed, by names.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A density.
    Name(String),
    /// The product of densities.
    And(Vec<Expression>),
    /// The mixture of densities with positive weights, which sum to 1.
    Or(Vec<(f64, Expression)>),
    /// A density to a power.
    Power(Box<Expression>, f64),
}

impl Expression {
    /// The density of that name.
    pub fn name(name: &str) -> Expression {
        Expression::Name(name.into())
    }

    /// The product with another.
    pub fn and(self, other: Expression) -> Expression {
        Expression::And(vec![self, other])
    }

    /// The mixture with another: `weight self + (1 - weight) other`.
    pub fn or(self, weight: f64, other: Expression) -> Expression {
        Expression::Or(vec![(weight, self), (1.0 - weight, other)])
    }

    /// To a power.
    pub fn power(self, exponent: f64) -> Expression {
        Expression::Power(Box::new(self), exponent)
    }

    /// Divided by: `self^-exponent`, for use in a product.
    pub fn not(self, exponent: f64) -> Expression {
        self.power(-exponent)
    }

    /// All names, each once, in the order in which they appear.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.collect(&mut names);
        names
    }

    fn collect<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Expression::Name(name) if names.contains(&name.as_str()) => (),
            Expression::Name(name) => names.push(name),
            Expression::And(parts) => parts.iter().for_each(|part| part.collect(names)),
            Expression::Or(parts) => parts.iter().for_each(|(_, part)| part.collect(names)),
            Expression::Power(part, _) => part.collect(names),
        }
    }
}

/// The expression over places of members instead of names.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Leaf(usize),
    And(Vec<Node>),
    /// Logarithms of normalised weights.
    Or(Vec<(f64, Node)>),
    Power(Box<Node>, f64),
}

impl Node {
    pub(crate) fn new(expression: &Expression, names: &[&str]) -> Result<Node> {
        let wrong = |name, found: String, expected: String| {
            Err(Error::Value {
                name,
                found,
                expected,
            })
        };
        Ok(match expression {
            Expression::Name(name) => match names.iter().position(|known| known == name) {
                Some(place) => Node::Leaf(place),
                None => {
                    let known = format!("one of {}", names.join(", "));
                    return wrong("name in the composition", format!("'{name}'"), known);
                }
            },
            Expression::And(parts) => {
                if parts.is_empty() {
                    return wrong("product", "empty".into(), "at least one density".into());
                }
                let parts = parts.iter().map(|part| Node::new(part, names));
                Node::And(parts.collect::<Result<_>>()?)
            }
            Expression::Or(parts) => {
                let total: f64 = parts.iter().map(|part| part.0).sum();
                if parts.is_empty() || !parts.iter().all(|p| p.0 > 0.0) || !total.is_finite() {
                    return wrong(
                        "weights of or",
                        format!("{:?}", parts.iter().map(|part| part.0).collect::<Vec<_>>()),
                        "positive finite numbers".into(),
                    );
                }
                let parts = parts
                    .iter()
                    .map(|(w, part)| Ok(((w / total).ln(), Node::new(part, names)?)));
                Node::Or(parts.collect::<Result<_>>()?)
            }
            Expression::Power(part, exponent) => {
                let bounded = exponent.abs() <= MOST_POWER && *exponent != 0.0;
                if !(bounded && *exponent > -1.0) {
                    return wrong(
                        "power in the composition",
                        exponent.to_string(),
                        format!("above -1, up to {MOST_POWER}, and not 0"),
                    );
                }
                Node::Power(Box::new(Node::new(part, names)?), *exponent)
            }
        })
    }

    /// The log-density, from those of the members.
    pub(crate) fn value(&self, members: &[f64]) -> f64 {
        match self {
            Node::Leaf(place) => members[*place],
            Node::And(parts) => parts.iter().map(|part| part.value(members)).sum(),
            Node::Power(part, exponent) => exponent * part.value(members),
            Node::Or(parts) => {
                let terms = || parts.iter().map(|(w, part)| w + part.value(members));
                let top = terms().fold(f64::NEG_INFINITY, f64::max);
                if top == f64::NEG_INFINITY {
                    return top;
                }
                top + terms().map(|term| (term - top).exp()).sum::<f64>().ln()
            }
        }
    }

    /// Adds `factor` times the derivative of the log-density by that of each member.
    fn derivatives(&self, members: &[f64], factor: f64, out: &mut [f64]) {
        match self {
            Node::Leaf(place) => out[*place] += factor,
            Node::And(parts) => parts
                .iter()
                .for_each(|part| part.derivatives(members, factor, out)),
            Node::Power(part, exponent) => part.derivatives(members, factor * exponent, out),
            Node::Or(parts) => {
                let whole = self.value(members);
                for (weight, part) in parts {
                    let share = (weight + part.value(members) - whole).exp();
                    // Where no part has a density, none has a share.
                    if share > 0.0 {
                        part.derivatives(members, factor * share, out);
                    }
                }
            }
        }
    }
}

/// What the names stand for, in their order.
pub(crate) fn bound<E: Copy>(names: &[&str], energies: &[(&str, E)]) -> Result<Vec<E>> {
    let find = |name: &&str| {
        let found = energies.iter().find(|(known, _)| known == name);
        found.map(|(_, energy)| *energy).ok_or_else(|| {
            let known: Vec<&str> = energies.iter().map(|(name, _)| *name).collect();
            Error::Value {
                name: "name in the composition",
                found: format!("'{name}'"),
                expected: format!("one of {}", known.join(", ")),
            }
        })
    };
    names.iter().map(find).collect()
}

/// A composition of energies. Members take part with their whole log-density `-U + F`, so F matters wherever there is an OR; the
/// composition itself has F = 0.
pub struct Composition<'a> {
    members: Vec<&'a dyn Energy>,
    root: Node,
}

impl<'a> Composition<'a> {
    /// Binds the names of an expression. Names that do not appear in it are not evaluated.
    pub fn new(expression: &Expression, energies: &[(&str, &'a dyn Energy)]) -> Result<Self> {
        let names = expression.names();
        let members = bound(&names, energies)?;
        let dims: Vec<usize> = members.iter().map(|energy| energy.dim()).collect();
        if dims.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(Error::Shape {
                what: format!("the members {} of the composition", names.join(", ")),
                found: format!("{dims:?}"),
                expected: "the same dimension for all".into(),
            });
        }
        Ok(Composition {
            root: Node::new(expression, &names)?,
            members,
        })
    }

    /// Evaluates members at the rows: log-densities, and what `f` writes into a row of `width` numbers for each member.
    fn gather(
        &self,
        times: &[f64],
        points: &[f64],
        width: usize,
        f: impl Fn(&dyn Energy, &mut [f64], &mut [f64]),
    ) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let rows = points.len() / self.dim();
        self.members
            .iter()
            .map(|energy| {
                let (mut log_density, mut other) = (vec![0.0; rows], vec![0.0; rows * width]);
                f(*energy, &mut log_density, &mut other);
                for (row, value) in log_density.iter_mut().enumerate() {
                    let time = if times.len() == 1 {
                        times[0]
                    } else {
                        times[row]
                    };
                    *value = energy.free_energy(time) - *value;
                }
                (log_density, other)
            })
            .unzip()
    }

    /// Combines the members' rows: `out` gets `sum_i (d log p / d log p_i) other_i`, `energy` minus the log-density.
    fn combine(
        &self,
        (log_densities, others): (Vec<Vec<f64>>, Vec<Vec<f64>>),
        width: usize,
        mut energy: Option<&mut [f64]>,
        out: &mut [f64],
    ) {
        let count = self.members.len();
        let (mut values, mut factors) = (vec![0.0; count], vec![0.0; count]);
        let rows = log_densities.first().map_or(0, Vec::len);
        for row in 0..rows {
            for (value, column) in values.iter_mut().zip(&log_densities) {
                *value = column[row];
            }
            if let Some(energy) = &mut energy {
                energy[row] = -self.root.value(&values);
            }
            factors.fill(0.0);
            self.root.derivatives(&values, 1.0, &mut factors);
            let out = &mut out[row * width..(row + 1) * width];
            out.fill(0.0);
            for (factor, other) in factors.iter().zip(&others) {
                // A member without a share may have a score that is not a number.
                if *factor != 0.0 {
                    for (out, value) in out.iter_mut().zip(&other[row * width..]) {
                        *out += factor * value;
                    }
                }
            }
        }
    }
}

impl Energy for Composition<'_> {
    fn dim(&self) -> usize {
        self.members[0].dim()
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let (columns, _) = self.gather(times, points, 0, |energy, u, _| {
            energy.energy(times, points, u);
        });
        let mut values = vec![0.0; columns.len()];
        for (row, out) in out.iter_mut().enumerate() {
            for (value, column) in values.iter_mut().zip(&columns) {
                *value = column[row];
            }
            *out = -self.root.value(&values);
        }
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let parts = self.gather(times, points, self.dim(), |energy, u, score| {
            energy.energy_and_score(times, points, u, score);
        });
        self.combine(parts, self.dim(), None, out);
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        let parts = self.gather(times, points, self.dim(), |energy, u, score| {
            energy.energy_and_score(times, points, u, score);
        });
        self.combine(parts, self.dim(), Some(energy), score);
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let parts = self.gather(times, points, 1, |energy, u, rate| {
            energy.energy(times, points, u);
            energy.time_score(times, points, rate);
        });
        self.combine(parts, 1, None, out);
    }
}
