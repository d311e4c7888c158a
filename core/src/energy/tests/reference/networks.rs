//! The networks, particle by particle.

use num_dual::DualNum;

use super::Reference;
use crate::network::{EgnnSpec, NetworkSpec, TransformerSpec};

fn silu<D: DualNum<Primitive = f64> + Copy>(z: D) -> D {
    z / ((-z).exp() + 1.0)
}

impl Reference<'_> {
    fn perceptron<D: DualNum<Primitive = f64> + Copy>(
        &self,
        name: &str,
        depth: usize,
        time: D,
        x: &[D],
    ) -> Vec<D> {
        let space = self.affine(x, &format!("{name}.wx"), Some(&format!("{name}.b0")));
        let of_time = self.features(time);
        let time = self.affine(&of_time, &format!("{name}.wt"), None);
        let mut h: Vec<D> = space.iter().zip(&time).map(|(&s, &t)| s + t).collect();
        if matches!(self.spec.network, NetworkSpec::Waves { .. }) {
            let f = self.affine(x, &format!("{name}.wf"), None);
            let [sines, cosines]: [Vec<D>; 2] = [
                f.iter().map(|f| f.sin()).collect(),
                f.iter().map(|f| f.cos()).collect(),
            ];
            let sines = self.affine(&sines, &format!("{name}.ws"), None);
            let cosines = self.affine(&cosines, &format!("{name}.wc"), None);
            let gate = self.affine(&of_time, &format!("{name}.wg"), Some(&format!("{name}.bg")));
            for (c, h) in h.iter_mut().enumerate() {
                *h += ((-gate[c]).exp() + 1.0).recip() * (sines[c] + cosines[c]);
            }
        }
        h.iter_mut().for_each(|z| *z = silu(*z));
        for l in 1..depth {
            h = self.affine(&h, &format!("{name}.w{l}"), Some(&format!("{name}.b{l}")));
            h.iter_mut().for_each(|z| *z = silu(*z));
        }
        self.affine(&h, &format!("{name}.wo"), Some(&format!("{name}.bo")))
    }

    /// `phi(t, |x_i - x_j|^2)` of every pair `i < j`, with `x_i - x_j`.
    fn pairs<D: DualNum<Primitive = f64> + Copy>(
        &self,
        (name, particles, depth): (&str, usize, usize),
        time: D,
        x: &[D],
    ) -> Vec<([usize; 2], Vec<D>, D)> {
        let space = x.len() / particles;
        let mut pairs = Vec::new();
        for i in 0..particles {
            for j in i + 1..particles {
                let gap: Vec<D> = (0..space)
                    .map(|c| x[i * space + c] - x[j * space + c])
                    .collect();
                let square = gap.iter().fold(D::from(0.0), |sum, &gap| sum + gap * gap);
                let value = self.perceptron(name, depth, time, &[square])[0];
                pairs.push(([i, j], gap, value));
            }
        }
        pairs
    }

    /// Time and type of each particle.
    fn particle_features<D: DualNum<Primitive = f64> + Copy>(
        &self,
        name: &str,
        types: &[u32],
        particles: usize,
        time: D,
    ) -> Vec<Vec<D>> {
        let of_time = self.affine(
            &self.features(time),
            &format!("{name}.wt"),
            Some(&format!("{name}.b0")),
        );
        let mut h: Vec<Vec<D>> = vec![of_time; particles];
        if types.iter().any(|kind| *kind > 0) {
            let (table, width) = self.matrix(&format!("{name}.types"));
            for (h, kind) in h.iter_mut().zip(types) {
                for (c, h) in h.iter_mut().enumerate() {
                    *h += table[*kind as usize * width + c];
                }
            }
        }
        h
    }

    /// Features, messages and moves of an EGNN, particle by particle: how far each has moved, and its last features.
    fn egnn<D: DualNum<Primitive = f64> + Copy>(
        &self,
        (name, spec): (&str, &EgnnSpec),
        time: D,
        x: &[D],
        vector: bool,
    ) -> (Vec<D>, Vec<Vec<D>>) {
        let (n, zero) = (spec.particles, D::from(0.0));
        let space = x.len() / n;
        let sum = |values: &mut dyn Iterator<Item = D>| values.fold(zero, |sum, x| sum + x);
        let mut begin: Vec<Vec<D>> = x.chunks(space).map(<[D]>::to_vec).collect();
        let centre = |rows: &mut Vec<Vec<D>>| {
            for c in 0..space {
                let mean = sum(&mut rows.iter().map(|row| row[c])) / n as f64;
                rows.iter_mut().for_each(|row| row[c] -= mean);
            }
        };
        if spec.cross {
            centre(&mut begin);
        }
        let mut h = self.particle_features(name, &spec.types, n, time);
        let square = |a: &[D], b: &[D]| sum(&mut a.iter().zip(b).map(|(&a, &b)| (a - b) * (a - b)));
        let mut at = begin.clone();
        for layer in 0..spec.depth {
            let named = |part: &str| format!("{name}.l{layer}.{part}");
            let last = layer + 1 == spec.depth;
            let mut moves = vec![vec![zero; space]; n];
            let mut sums = vec![vec![zero; spec.width]; n];
            for i in 0..n {
                for j in (0..n).filter(|j| *j != i) {
                    let now = square(&at[i], &at[j]);
                    let mut squares = vec![now];
                    if layer > 0 {
                        squares.push(square(&begin[i], &begin[j]));
                    }
                    let own = self.affine(&h[i], &named("own"), Some(&named("a")));
                    let other = self.affine(&h[j], &named("other"), None);
                    let of_squares = self.affine(&squares, &named("squares"), None);
                    let pair = [i as u32, j as u32];
                    let bonded = spec
                        .bonds
                        .iter()
                        .any(|b| *b == pair || [b[1], b[0]] == pair);
                    let hidden: Vec<D> = (0..spec.width)
                        .map(|c| {
                            let z = own[c] + other[c] + of_squares[c];
                            let bond = if bonded {
                                self.matrix(&named("bond")).0[c]
                            } else {
                                0.0
                            };
                            silu(z + bond)
                        })
                        .collect();
                    let mut message = self.affine(&hidden, &named("m"), Some(&named("b")));
                    message.iter_mut().for_each(|z| *z = silu(*z));
                    let gate = self.affine(&message, &named("g"), Some(&named("g0")))[0];
                    let length = (now + 1e-8).sqrt();
                    let mut weight = ((-gate).exp() + 1.0).recip();
                    if let Some(cutoff) = spec.cutoff {
                        weight *= ((length / cutoff * 10.0 - 10.0).exp() + 1.0).recip();
                    }
                    message.iter_mut().for_each(|z| *z *= weight);
                    let pull = |head: &str| {
                        let part = |part: &str| named(&format!("{head}_{part}"));
                        let mut hidden = self.affine(&message, &part("w"), Some(&part("b")));
                        hidden.iter_mut().for_each(|z| *z = silu(*z));
                        let phi = self.affine(&hidden, &part("o"), None)[0];
                        phi.tanh() * (spec.range / spec.depth as f64)
                    };
                    if vector || !last {
                        let along = pull("phi") / (length + 1.0);
                        for c in 0..space {
                            moves[i][c] += (at[i][c] - at[j][c]) * along;
                        }
                        if spec.cross {
                            let part = |c: usize| {
                                let (p, q) = ((c + 1) % 3, (c + 2) % 3);
                                at[i][p] * at[j][q] - at[i][q] * at[j][p]
                            };
                            let cross = [part(0), part(1), part(2)];
                            let length = (square(&cross, &[zero; 3]) + 1e-8).sqrt();
                            let aside = pull("psi") / (length + 1.0);
                            for c in 0..3 {
                                moves[i][c] += cross[c] * aside;
                            }
                        }
                    }
                    for (sum, m) in sums[i].iter_mut().zip(&message) {
                        *sum += *m;
                    }
                }
            }
            for (at, step) in at.iter_mut().zip(&moves) {
                at.iter_mut().zip(step).for_each(|(at, step)| *at += *step);
            }
            if !vector || !last {
                for (h, sum) in h.iter_mut().zip(&sums) {
                    let own = self.affine(h, &named("p"), Some(&named("p0")));
                    let others = self.affine(sum, &named("q"), None);
                    let hidden: Vec<D> = own
                        .iter()
                        .zip(&others)
                        .map(|(&a, &b)| silu(a + b))
                        .collect();
                    let change = self.affine(&hidden, &named("n"), Some(&named("n0")));
                    h.iter_mut()
                        .zip(change)
                        .for_each(|(h, change)| *h += change);
                }
            }
        }
        for (at, begin) in at.iter_mut().zip(&begin) {
            at.iter_mut()
                .zip(begin)
                .for_each(|(at, begin)| *at -= *begin);
        }
        centre(&mut at);
        (at.concat(), h)
    }

    /// Last features of a transformer, from the differences of all ordered pairs.
    fn transformer<D: DualNum<Primitive = f64> + Copy>(
        &self,
        (name, spec): (&str, &TransformerSpec),
        time: D,
        x: &[D],
    ) -> Vec<Vec<D>> {
        let (n, zero) = (spec.particles, D::from(0.0));
        let space = x.len() / n;
        let dot = |a: &[D], b: &[D]| a.iter().zip(b).fold(zero, |sum, (&a, &b)| sum + a * b);
        let normed = |h: &[D]| -> Vec<D> {
            let count = h.len() as f64;
            let mean = h.iter().fold(zero, |sum, &h| sum + h) / count;
            let variance = h.iter().fold(zero, |sum, &h| sum + (h - mean) * (h - mean)) / count;
            let deviation = (variance + 1e-6).sqrt();
            h.iter().map(|&h| (h - mean) / deviation).collect()
        };
        let mut h = self.particle_features(name, &spec.types, n, time);
        for layer in 0..spec.depth {
            let named = |part: &str| format!("{name}.l{layer}.{part}");
            let gated = |new: Vec<D>, old: &[D], [u, w]: [&str; 2]| -> Vec<D> {
                let gate =
                    self.affine(&new, &named(u), None)[0] + self.affine(old, &named(w), None)[0];
                let gate = ((-gate).exp() + 1.0).recip();
                new.iter()
                    .zip(old)
                    .map(|(&new, &old)| gate * new + (-gate + 1.0) * old)
                    .collect()
            };
            let inputs: Vec<Vec<D>> = h.iter().map(|h| normed(h)).collect();
            let mut attended = Vec::new();
            for i in 0..n {
                let q = self.affine(&inputs[i], &named("q"), Some(&named("q0")));
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for j in 0..n {
                    let gap: Vec<D> = (0..space)
                        .map(|c| x[j * space + c] - x[i * space + c])
                        .collect();
                    let edge = self.affine(&gap, &named("e"), None);
                    let plus = |of: Vec<D>| -> Vec<D> {
                        of.iter().zip(&edge).map(|(&a, &b)| a + b).collect()
                    };
                    keys.push(plus(self.affine(&inputs[j], &named("k"), None)));
                    values.push(plus(self.affine(
                        &inputs[j],
                        &named("v"),
                        Some(&named("v0")),
                    )));
                }
                let mut out = Vec::new();
                for head in 0..spec.heads {
                    let part = head * spec.head_width..(head + 1) * spec.head_width;
                    let weights: Vec<D> = keys
                        .iter()
                        .map(|k| {
                            let score = dot(&q[part.clone()], &k[part.clone()]);
                            (score / (spec.head_width as f64).sqrt()).exp()
                        })
                        .collect();
                    let all = weights.iter().fold(zero, |sum, &w| sum + w);
                    for c in part {
                        let of = |j: usize| weights[j] / all * values[j][c];
                        out.push((0..n).fold(zero, |sum, j| sum + of(j)));
                    }
                }
                attended.push(self.affine(&out, &named("o"), Some(&named("o0"))));
            }
            for (h, new) in h.iter_mut().zip(attended) {
                *h = gated(new, h, ["gu", "gw"]);
                let mut hidden = self.affine(&normed(h), &named("a"), Some(&named("a0")));
                for z in &mut hidden {
                    let inner =
                        (*z + *z * *z * *z * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
                    *z = *z * 0.5 * (inner.tanh() + 1.0);
                }
                let new = self.affine(&hidden, &named("b"), Some(&named("b0")));
                *h = gated(new, h, ["hu", "hw"]);
            }
        }
        h
    }

    /// All particles of points without a centre: axis by axis, a reflection that takes the last unit vector to that of the centre.
    fn reflected<D: DualNum<Primitive = f64> + Copy>(&self, x: &[D], n: usize) -> Vec<D> {
        let space = x.len() / n;
        let root = (n as f64).sqrt();
        // w = e_n - (1, ..., 1) / sqrt(n), and x - 2 w (w . x) / (w . w).
        let w = |i: usize| f64::from(u8::from(i + 1 == n)) - 1.0 / root;
        let square = 2.0 - 2.0 / root;
        let mut out = x.to_vec();
        for c in 0..space {
            let along = (0..n).fold(D::from(0.0), |sum, i| sum + x[i * space + c] * w(i));
            for i in 0..n {
                out[i * space + c] -= along * (2.0 * w(i) / square);
            }
        }
        out
    }

    /// The points as the network over all particles sees them.
    fn seen<D: DualNum<Primitive = f64> + Copy>(&self, x: &[D]) -> Vec<D> {
        let Some(n) = self.spec.network.particles() else {
            return x.to_vec();
        };
        if !self.spec.without_centre {
            return x.to_vec();
        }
        let space = x.len() / (n - 1);
        let padded = [x, &vec![D::from(0.0); space]].concat();
        self.reflected(&padded, n)
    }

    /// The scalar output of the network of that name.
    pub(super) fn number<D: DualNum<Primitive = f64> + Copy>(
        &self,
        name: &str,
        time: D,
        x: &[D],
    ) -> D {
        let x = &self.seen(x);
        match &self.spec.network {
            NetworkSpec::Mlp { depth, .. } | NetworkSpec::Waves { depth, .. } => {
                self.perceptron(name, *depth, time, x)[0]
            }
            NetworkSpec::Egnn(spec) => {
                let named = |part: &str| format!("{name}.{part}");
                let (_, h) = self.egnn((name, spec), time, x, false);
                h.iter().fold(D::from(0.0), |sum, h| {
                    let mut hidden = self.affine(h, &named("wo"), Some(&named("bo")));
                    hidden.iter_mut().for_each(|z| *z = silu(*z));
                    sum + self.affine(&hidden, &named("out"), None)[0]
                })
            }
            NetworkSpec::Transformer(spec) => {
                let of_particles = self.transformer((name, spec), time, x);
                of_particles.iter().fold(D::from(0.0), |sum, h| {
                    sum + self.affine(h, &format!("{name}.out"), None)[0]
                })
            }
            &NetworkSpec::Pairs {
                particles, depth, ..
            } => {
                let pairs = self.pairs((name, particles, depth), time, x);
                pairs
                    .iter()
                    .fold(D::from(0.0), |sum, (_, _, value)| sum + *value)
            }
        }
    }

    /// The vector output of the network of that name.
    pub(super) fn vector<D: DualNum<Primitive = f64> + Copy>(
        &self,
        name: &str,
        time: D,
        x: &[D],
    ) -> Vec<D> {
        let mut out = self.of_all(name, time, &self.seen(x));
        if let Some(n) = self
            .spec
            .network
            .particles()
            .filter(|_| self.spec.without_centre)
        {
            out = self.reflected(&out, n);
            out.truncate(x.len());
        }
        out
    }

    fn of_all<D: DualNum<Primitive = f64> + Copy>(&self, name: &str, time: D, x: &[D]) -> Vec<D> {
        match &self.spec.network {
            NetworkSpec::Mlp { depth, .. } | NetworkSpec::Waves { depth, .. } => {
                self.perceptron(name, *depth, time, x)
            }
            NetworkSpec::Egnn(spec) => self.egnn((name, spec), time, x, true).0,
            NetworkSpec::Transformer(spec) => {
                let mut out: Vec<Vec<D>> = self
                    .transformer((name, spec), time, x)
                    .iter()
                    .map(|h| self.affine(h, &format!("{name}.out"), None))
                    .collect();
                for c in 0..out[0].len() {
                    let mean = out.iter().fold(D::from(0.0), |sum, row| sum + row[c]);
                    let mean = mean / out.len() as f64;
                    out.iter_mut().for_each(|row| row[c] -= mean);
                }
                out.concat()
            }
            &NetworkSpec::Pairs {
                particles, depth, ..
            } => {
                let space = x.len() / particles;
                let mut out = vec![D::from(0.0); x.len()];
                for ([i, j], gap, value) in self.pairs((name, particles, depth), time, x) {
                    for (c, &gap) in gap.iter().enumerate() {
                        out[i * space + c] += gap * value;
                        out[j * space + c] -= gap * value;
                    }
                }
                out
            }
        }
    }
}
