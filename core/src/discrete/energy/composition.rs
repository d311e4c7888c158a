//! Compositions of energies of states: the algebra of [`crate::energy::compose`], level by level.

use super::Energy;
use crate::discrete::{Process, Space};
use crate::energy::compose::{Expression, Node, bound};
use crate::{Error, Result};

/// Members take part with their whole log-density; the composition itself has F = 0.
pub struct Composition<'a> {
    members: Vec<&'a dyn Energy>,
    root: Node,
}

impl<'a> Composition<'a> {
    /// Binds the names of an expression. All members have the same sites, states and noise.
    pub fn new(expression: &Expression, energies: &[(&str, &'a dyn Energy)]) -> Result<Self> {
        let names = expression.names();
        let members = bound(&names, energies)?;
        let alike = |pair: &[&dyn Energy]| {
            pair[0].space() == pair[1].space() && pair[0].process() == pair[1].process()
        };
        if !members.windows(2).all(alike) {
            let kinds = members.iter().map(|m| {
                let Space { sites, states } = m.space();
                let noise = m.process().generator().name();
                format!("{sites} sites of {states} states, {noise}")
            });
            return Err(Error::Shape {
                what: format!("the members {} of the composition", names.join(", ")),
                found: kinds.collect::<Vec<_>>().join("; "),
                expected: "the same sites, states and noise for all".into(),
            });
        }
        Ok(Composition {
            root: Node::new(expression, &names)?,
            members,
        })
    }
}

impl Energy for Composition<'_> {
    fn space(&self) -> Space {
        self.members[0].space()
    }

    fn process(&self) -> &Process {
        self.members[0].process()
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, time: f64, rows: &[u8], out: &mut [f64]) {
        let mut values = vec![0.0; self.members.len() * out.len()];
        for (member, values) in self.members.iter().zip(values.chunks_exact_mut(out.len())) {
            member.log_density(time, rows, values);
        }
        let mut of_row = vec![0.0; self.members.len()];
        let count = out.len();
        for (k, out) in out.iter_mut().enumerate() {
            for (value, column) in of_row.iter_mut().zip(values.chunks_exact(count)) {
                *value = column[k];
            }
            *out = -self.root.value(&of_row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discrete::sample::{Anneal, Kernel, annealing_times};
    use crate::discrete::system::{ExactStates, ProductMixture};
    use crate::process::{Spacing, TimeGrid};
    use std::sync::Arc;

    fn member(noise: &str, seed: u64) -> ExactStates {
        let space = Space {
            sites: 4,
            states: 3,
        };
        ExactStates {
            target: Arc::new(ProductMixture::random(space, 2, seed).unwrap()),
            process: Process::by_name(noise).unwrap(),
        }
    }

    /// Products, mixtures and powers: annealed rows have the law that enumeration gives, and log Z is the logarithm of its sum.
    #[test]
    fn compositions_are_sampled_with_their_mass() {
        let grid = TimeGrid::new(24, 1e-3, 1.0, Spacing::Power { rho: 3.0 }).unwrap();
        for noise in Process::NAMES {
            let (a, b) = (member(noise, 1), member(noise, 2));
            for text in ["A and B", "0.3*A or 0.7*B", "A and not B", "A^2"] {
                let expression = Expression::parse(text).unwrap();
                let members: [(&str, &dyn Energy); 2] = [("A", &a), ("B", &b)];
                let composed = Composition::new(&expression, &members).unwrap();
                let symbols = composed.process().symbols(3);
                let all = Space {
                    sites: 4,
                    states: symbols,
                };
                let count = all.count(1 << 10).unwrap();
                let mut rows = vec![0; 4 * count];
                for (n, row) in rows.chunks_exact_mut(4).enumerate() {
                    all.row_of(n, row);
                }
                let mut values = vec![0.0; count];
                composed.log_density(grid.t_min(), &rows, &mut values);
                let total: f64 = values.iter().map(|v| v.exp()).sum();
                let runs = 24;
                let found = Anneal {
                    energy: &composed,
                    times: &annealing_times(composed.process(), &grid, None).unwrap(),
                    target: None,
                    kernel: Kernel::Gibbs,
                    sweeps: 2,
                    resample_below: 0.5,
                    particles: 300,
                    runs,
                    seed: 3,
                }
                .run(&mut |_| ())
                .unwrap();
                let (log_z, error) = (found.log_z.value, found.log_z.error.unwrap());
                // Four errors; the last level of masks is known up to alpha squared, 1e-6 for each pair of sites.
                let off = (log_z - total.ln()).abs();
                assert!(off < 4.0 * error + 1e-4, "{noise} {text}: {off} ± {error}");
                // The share of rows whose first site shows 0, run by run.
                let share = |values: &dyn Fn(usize) -> f64, rows: &[u8]| -> f64 {
                    let of = rows.chunks_exact(4).enumerate();
                    of.filter(|(_, row)| row[0] == 0)
                        .map(|(n, _)| values(n))
                        .sum()
                };
                let truth = share(&|n| values[n].exp() / total, &rows);
                let parts: Vec<f64> = (0..runs)
                    .map(|run| {
                        let weights = &found.weights[run * 300..][..300];
                        let sum: f64 = weights.iter().sum();
                        share(&|n| weights[n] / sum, &found.rows[run * 1200..][..1200])
                    })
                    .collect();
                let mean = crate::metric::Estimate::of(&parts);
                let off = (mean.mean - truth).abs();
                assert!(off < 4.0 * mean.error, "{noise} {text}: {mean} for {truth}");
            }
        }
        let (a, b) = (member("uniform", 1), member("masked", 1));
        let members: [(&str, &dyn Energy); 2] = [("A", &a), ("B", &b)];
        let expression = Expression::parse("A and B").unwrap();
        let error = Composition::new(&expression, &members).err().unwrap();
        assert!(error.to_string().contains("same sites"), "{error}");
    }
}
