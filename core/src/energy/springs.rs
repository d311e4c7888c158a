//! The springs that an energy stands on, as nodes of the graph; see [`Springs`].

use super::builder::Points;
use super::spec::ModelSpec;
use super::wiring::Wiring;
use crate::base::Springs;
use crate::base::springs::terms::{OF_PAIR, OF_TORSION, ROOT, SOFT};
use crate::engine::{Graph, Node, Rows};
use crate::network::{cross, without_centre};

/// The particles of some rows.
struct Particles {
    all: Node,
    rows: usize,
    particles: usize,
}

impl Particles {
    fn of(g: &mut Graph, spec: &ModelSpec, points: Node) -> Particles {
        let particles = spec.network.particles().unwrap_or(1);
        let full = match spec.subspace() {
            Some(subspace) => {
                let space = subspace.columns() / particles;
                without_centre::outward(g, points, (particles, space))
            }
            None => points,
        };
        let shape = g.shape(full);
        let Rows::Unit(rows) = shape.rows else {
            unreachable!("points belong to units")
        };
        let space = shape.cols / particles;
        Particles {
            all: g.reshape(full, Rows::Unit(rows * particles), space),
            rows,
            particles,
        }
    }

    /// `x_to - x_from` of all terms, by the place of both in the term.
    fn between<'a>(
        &self,
        g: &mut Graph,
        terms: impl Iterator<Item = &'a [u32]> + Clone,
        [from, to]: [usize; 2],
    ) -> Node {
        let end = |place: usize| -> Vec<u32> {
            let of_row = |row: usize| {
                let first = (row * self.particles) as u32;
                terms.clone().map(move |of| first + of[place])
            };
            (0..self.rows).flat_map(of_row).collect()
        };
        let [from, to] = [from, to].map(|place| g.gather(self.all, &end(place)));
        g.sub(to, from)
    }

    /// A column of all terms of all rows as a row of all terms for each row.
    fn by_row(&self, g: &mut Graph, column: Node, terms: usize) -> Node {
        g.reshape(column, Rows::Unit(self.rows), terms)
    }
}

/// `1 / sqrt((|a|^2 + floor) (|b|^2 + floor))`.
fn inverse_norm(g: &mut Graph, a: Node, b: Node, floor: f64) -> Node {
    let [a, b] = [a, b].map(|v| {
        let square = g.row_dot(v, v);
        g.affine(square, 1.0, floor)
    });
    let product = g.mul(a, b);
    g.power(product, -0.5)
}

/// The energy, a column. `numbers` are those of the rows' times.
pub(super) fn energy(
    g: &mut Graph,
    wiring: &mut Wiring,
    spec: &ModelSpec,
    springs: &Springs,
    points: &Points,
    numbers: Node,
) -> Node {
    let particles = Particles::of(g, spec, points.points);
    let with_times = |g: &mut Graph, node: Node| match &points.pattern {
        Some(pattern) => g.gather(node, pattern),
        None => node,
    };
    let held = held(g, &particles, springs);
    let held = with_times(g, held);
    let count = springs.held.len();
    let [middle, slope, stiffness, skew] = [0, 1, 2, 3].map(|k| g.slice(numbers, k * count, count));
    let u = g.sub(held, middle);
    let bend = g.mul(skew, u);
    let bend = g.scale(bend, 1.0 / 3.0);
    let bend = g.add(stiffness, bend);
    let pull = g.mul(bend, u);
    let pull = g.scale(pull, 0.5);
    let pull = g.add(slope, pull);
    let mut sum = g.row_dot(pull, u);
    if let Some(soft) = soft(g, wiring, &particles, springs) {
        let soft = with_times(g, soft);
        let strengths = g.slice(numbers, 4 * count, springs.leaning.len());
        let soft = g.row_dot(soft, strengths);
        sum = g.add(sum, soft);
    }
    let offset = g.slice(numbers, springs.columns() - 1, 1);
    g.add(sum, offset)
}

/// Lengths of bonds, then cosines of angles.
fn held(g: &mut Graph, particles: &Particles, springs: &Springs) -> Node {
    let bonds = springs.held_of(2).map(|term| term.of.as_slice());
    let angles = springs.held_of(3).map(|term| term.of.as_slice());
    let d = particles.between(g, bonds.clone(), [1, 0]);
    let square = g.row_dot(d, d);
    let square = g.affine(square, 1.0, ROOT);
    let length = g.power(square, 0.5);
    let length = particles.by_row(g, length, bonds.count());
    let number = angles.clone().count();
    if number == 0 {
        return length;
    }
    let a = particles.between(g, angles.clone(), [1, 0]);
    let b = particles.between(g, angles, [1, 2]);
    let norm = inverse_norm(g, a, b, (SOFT * springs.length).powi(2));
    let product = g.row_dot(a, b);
    let cosine = g.mul(product, norm);
    let cosine = particles.by_row(g, cosine, number);
    g.concat(length, cosine)
}

/// The energies of all torsions and pairs with the numbers of each end, a column for each; none if there are no such terms.
fn soft(
    g: &mut Graph,
    wiring: &mut Wiring,
    particles: &Particles,
    springs: &Springs,
) -> Option<Node> {
    let mut functions = Vec::with_capacity(OF_TORSION + OF_PAIR.len());
    let torsions = springs.soft_of(4).map(|term| term.of.as_slice());
    let number = torsions.clone().count();
    if number > 0 {
        let [a, b, c] =
            [[0, 1], [1, 2], [2, 3]].map(|ends| particles.between(g, torsions.clone(), ends));
        let (n, m) = (cross(g, a, b), cross(g, b, c));
        let norm = inverse_norm(g, n, m, (SOFT * springs.length.powi(2)).powi(2));
        let product = g.row_dot(n, m);
        let cosine = g.mul(product, norm);
        let square = g.row_dot(b, b);
        let square = g.affine(square, 1.0, ROOT);
        let length = g.power(square, 0.5);
        let triple = g.row_dot(a, m);
        let sine = g.mul(triple, length);
        let sine = g.mul(sine, norm);
        let [cosine, sine] = [cosine, sine].map(|x| particles.by_row(g, x, number));
        let square = g.mul(cosine, cosine);
        let double = g.affine(square, 2.0, -1.0);
        let triple = g.affine(square, 4.0, -3.0);
        let triple = g.mul(triple, cosine);
        let double_sine = g.mul(sine, cosine);
        let double_sine = g.scale(double_sine, 2.0);
        let triple_sine = g.affine(square, 4.0, -1.0);
        let triple_sine = g.mul(triple_sine, sine);
        let all = [cosine, double, triple, sine, double_sine, triple_sine];
        functions.extend(all.into_iter().enumerate().map(|(k, node)| (4, k, node)));
    }
    let pairs = springs.soft_of(2).map(|term| term.of.as_slice());
    let number = pairs.clone().count();
    if number > 0 {
        let d = particles.between(g, pairs, [1, 0]);
        let square = g.row_dot(d, d);
        let q = g.affine(square, springs.length.powi(-2), 1.0);
        let q = particles.by_row(g, q, number);
        for (k, (power, factor)) in OF_PAIR.iter().enumerate() {
            let value = g.power(q, *power);
            let value = g.scale(value, *factor);
            functions.push((2, k, value));
        }
    }
    let mut sum: Option<Node> = None;
    for (of, k, values) in functions {
        let numbers = wiring.leaning(g, springs, of, k);
        let energies = g.matmul(values, numbers, false);
        sum = Some(match sum {
            Some(sum) => g.add(sum, energies),
            None => energies,
        });
    }
    sum
}
