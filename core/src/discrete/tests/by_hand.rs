//! Energies of states by plain loops, site by site.

use crate::discrete::model::StatesSpec;
use crate::discrete::network::SitesNetwork;

/// Parameters by their names.
struct Named<'a> {
    spec: &'a StatesSpec,
    params: &'a [f64],
}

impl Named<'_> {
    fn of(&self, name: &str) -> &[f64] {
        let layout = self.spec.layout();
        &self.params[layout.get(&format!("net.{name}")).unwrap().range()]
    }

    /// `x W`, with an offset if it has a name.
    fn affine(&self, x: &[f64], w: &str, offset: Option<&str>) -> Vec<f64> {
        let w = self.of(w);
        let columns = w.len() / x.len();
        (0..columns)
            .map(|j| {
                let product: f64 = (0..x.len()).map(|i| x[i] * w[i * columns + j]).sum();
                product + offset.map_or(0.0, |offset| self.of(offset)[j])
            })
            .collect()
    }

    fn time(&self, level: usize) -> Vec<f64> {
        let half = self.spec.features / 2;
        let place = 3.0 * level as f64 / (self.spec.grid.levels() - 1) as f64;
        let phase = |k: usize| place * 16f64.powf(k as f64 / (half - 1) as f64);
        let sines = (0..half).map(|k| phase(k).sin());
        let features: Vec<f64> = sines.chain((0..half).map(|k| phase(k).cos())).collect();
        self.affine(&features, "wt", Some("b0"))
    }

    fn perceptron(&self, depth: usize, level: usize, row: &[u8]) -> f64 {
        let symbols = self.spec.symbols();
        let mut one_hot = vec![0.0; row.len() * symbols];
        for (i, s) in row.iter().enumerate() {
            one_hot[i * symbols + usize::from(*s)] = 1.0;
        }
        let silu = |x: f64| x / (1.0 + (-x).exp());
        let mut h: Vec<f64> = sum(&self.affine(&one_hot, "wx", None), &self.time(level));
        h.iter_mut().for_each(|z| *z = silu(*z));
        for l in 1..depth {
            h = self.affine(&h, &format!("w{l}"), Some(&format!("b{l}")));
            h.iter_mut().for_each(|z| *z = silu(*z));
        }
        self.affine(&h, "wo", Some("bo"))[0]
    }

    fn transformer(
        &self,
        (depth, heads, head_width): (usize, usize, usize),
        level: usize,
        row: &[u8],
    ) -> f64 {
        let (time, sites) = (self.time(level), row.len());
        let width = time.len();
        let mut h: Vec<Vec<f64>> = (0..sites)
            .map(|i| {
                let symbol = &self.of("symbols")[usize::from(row[i]) * width..][..width];
                let place = &self.of("places")[i * width..][..width];
                sum(&sum(symbol, place), &time)
            })
            .collect();
        for layer in 0..depth {
            let named = |part: &str| format!("l{layer}.{part}");
            let affine = |x: &[f64], w: &str, b: Option<&str>| {
                self.affine(x, &named(w), b.map(named).as_deref())
            };
            let gated = |new: Vec<f64>, old: &[f64], [u, w]: [&str; 2]| -> Vec<f64> {
                let gate = affine(&new, u, None)[0] + affine(old, w, None)[0];
                let gate = 1.0 / (1.0 + (-gate).exp());
                let mix = |(new, old): (&f64, &f64)| gate * new + (1.0 - gate) * old;
                new.iter().zip(old).map(mix).collect()
            };
            let normed: Vec<Vec<f64>> = h.iter().map(|h| normed(h)).collect();
            let all = |w: &str, b: Option<&str>| -> Vec<Vec<f64>> {
                normed.iter().map(|x| affine(x, w, b)).collect()
            };
            let (q, k, v) = (all("q", Some("q0")), all("k", None), all("v", Some("v0")));
            for i in 0..sites {
                let mut out = Vec::new();
                for head in 0..heads {
                    let part = head * head_width..(head + 1) * head_width;
                    let score = |j: usize| -> f64 {
                        let terms = part.clone().map(|c| q[i][c] * k[j][c]);
                        (terms.sum::<f64>() / (head_width as f64).sqrt()).exp()
                    };
                    let total: f64 = (0..sites).map(score).sum();
                    for c in part.clone() {
                        out.push((0..sites).map(|j| score(j) * v[j][c]).sum::<f64>() / total);
                    }
                }
                let new = affine(&out, "o", Some("o0"));
                h[i] = gated(new, &h[i], ["gu", "gw"]);
            }
            for h in &mut h {
                let mut hidden = affine(&self::normed(h), "a", Some("a0"));
                for z in &mut hidden {
                    let inner = (*z + 0.044715 * z.powi(3)) * (2.0 / std::f64::consts::PI).sqrt();
                    *z *= 0.5 * (1.0 + inner.tanh());
                }
                *h = gated(affine(&hidden, "b", Some("b0")), h, ["hu", "hw"]);
            }
        }
        let out = self.of("out");
        h.iter()
            .map(|h| h.iter().zip(out).map(|(h, w)| h * w).sum::<f64>())
            .sum()
    }
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn normed(h: &[f64]) -> Vec<f64> {
    let count = h.len() as f64;
    let mean = h.iter().sum::<f64>() / count;
    let variance = h.iter().map(|h| (h - mean).powi(2)).sum::<f64>() / count;
    h.iter()
        .map(|h| (h - mean) / (variance + 1e-6).sqrt())
        .collect()
}

/// `log p` of a row at a level of the grid.
pub(super) fn by_hand(spec: &StatesSpec, params: &[f64], level: usize, row: &[u8]) -> f64 {
    let named = Named { spec, params };
    let out = match spec.network {
        SitesNetwork::Mlp { depth, .. } => named.perceptron(depth, level, row),
        SitesNetwork::Transformer {
            depth,
            heads,
            head_width,
            ..
        } => named.transformer((depth, heads, head_width), level, row),
    };
    let keep = spec.process.keep(spec.grid.times()[level]);
    let laws = spec.laws.chunks_exact(spec.space.states).zip(row);
    let base: f64 = laws
        .map(|(law, s)| spec.process.blur(keep, law, *s).ln())
        .sum();
    let factor = if spec.process.is_masked() { 1.0 } else { keep };
    let layout = spec.layout();
    let free_energy = &params[layout.get("free_energy").unwrap().range()];
    base + factor * out + free_energy[level]
}
