//! Mixtures of product distributions, `p(x) = sum_c w_c prod_i theta_c,i(x_i)`: exact under both kinds of noise in any dimension, since
//! noise takes each factor to one.

use super::{Target, draw_from};
use crate::discrete::{Process, Space, log_sum_exp};
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// See the module's text.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductMixture {
    space: Space,
    weights: Vec<f64>,
    /// `components x sites x states`.
    laws: Vec<f64>,
}

impl ProductMixture {
    /// Weights, and laws of the sites (`components x sites x states`); all are normalised.
    pub fn new(space: Space, mut weights: Vec<f64>, mut laws: Vec<f64>) -> Result<ProductMixture> {
        space.validate()?;
        let size = space.sites * space.states;
        let positive = |values: &[f64]| values.iter().all(|x| x.is_finite() && *x >= 0.0);
        let fits = !weights.is_empty()
            && laws.len() == weights.len() * size
            && positive(&weights)
            && positive(&laws)
            && weights.iter().sum::<f64>() > 0.0
            && laws
                .chunks_exact(space.states)
                .all(|law| law.iter().sum::<f64>() > 0.0);
        if !fits {
            return Err(Error::Shape {
                what: "a mixture of product distributions".into(),
                found: format!("{} weights, {} probabilities", weights.len(), laws.len()),
                expected: format!(
                    "{size} probabilities for each weight, none negative, no law empty"
                ),
            });
        }
        normalise(&mut weights);
        laws.chunks_exact_mut(space.states).for_each(normalise);
        Ok(ProductMixture {
            space,
            weights,
            laws,
        })
    }

    /// Components of unequal weights whose sites prefer states of their own.
    pub fn random(space: Space, components: usize, seed: u64) -> Result<ProductMixture> {
        space.validate()?;
        let weights = (0..components).map(|c| 1.0 + c as f64).collect();
        let mut laws = Vec::with_capacity(components * space.sites * space.states);
        for component in 0..components as u64 {
            let mut stream = Stream::new(seed, Purpose::System, 1, component);
            laws.extend((0..space.sites * space.states).map(|_| (1.2 * stream.normal()).exp()));
        }
        ProductMixture::new(space, weights, laws)
    }

    /// Weights of the components.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// `log w_c + log p_t(y | c)` of each component.
    pub fn log_joint(&self, process: &Process, keep: f64, row: &[u8]) -> Vec<f64> {
        let Space { sites, states } = self.space;
        let of = |(weight, laws): (&f64, &[f64])| {
            let sites = laws.chunks_exact(states).zip(row);
            weight.ln()
                + sites
                    .map(|(law, y)| process.blur(keep, law, *y).ln())
                    .sum::<f64>()
        };
        self.weights
            .iter()
            .zip(self.laws.chunks_exact(sites * states))
            .map(of)
            .collect()
    }
}

fn normalise(law: &mut [f64]) {
    let sum: f64 = law.iter().sum();
    law.iter_mut().for_each(|p| *p /= sum);
}

impl Target for ProductMixture {
    fn name(&self) -> &'static str {
        "product-mixture"
    }

    fn space(&self) -> Space {
        self.space
    }

    fn sample(&self, stream: &mut Stream, row: &mut [u8]) {
        let Space { sites, states } = self.space;
        let component = draw_from(&self.weights, 1.0, stream);
        let laws = &self.laws[component * sites * states..][..sites * states];
        for (symbol, law) in row.iter_mut().zip(laws.chunks_exact(states)) {
            *symbol = draw_from(law, 1.0, stream) as u8;
        }
    }

    fn log_marginals(&self, process: &Process, keep: f64, rows: &[u8], out: &mut [f64]) {
        for (row, out) in rows.chunks_exact(self.space.sites).zip(out) {
            *out = log_sum_exp(self.log_joint(process, keep, row));
        }
    }
}
