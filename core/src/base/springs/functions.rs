//! The functions of a fit at a point: those of bonds and angles, and torsions and pairs one by one or all together.

use super::jet::Jet;
use super::terms::{self, Term, Terms, starts};

/// What becomes of torsions and pairs in a fit.
#[derive(Clone, Copy)]
pub(super) enum Soft<'a> {
    /// A number for each function of each class.
    Each { chiral: bool },
    /// One number for all of them together, with these of each end, which has such a share in them.
    Together {
        ends: &'a [Vec<f64>],
        shares: [f64; 2],
    },
}

/// The functions of a fit.
pub(super) struct Functions<'a> {
    pub(super) terms: &'a Terms,
    pub(super) length: f64,
    /// Middles of the classes that are held.
    pub(super) middles: &'a [f64],
    /// First function of each class that is held, and of each that is soft; their number in all.
    pub(super) held: Vec<usize>,
    pub(super) soft: Vec<usize>,
    pub(super) size: usize,
    /// Number of functions of bonds and angles, which come first.
    pub(super) of_held: usize,
    pub(super) what: Soft<'a>,
}

/// A bond has `u` and `u^2 / 2`, an angle `u^3 / 6` too.
pub(super) fn of_held(term: &Term) -> usize {
    term.of.len()
}

/// Functions at a point: values, Laplacians, and for each coordinate the slopes of all.
pub(super) struct Values {
    pub(super) value: Vec<f64>,
    pub(super) laplacian: Vec<f64>,
    pub(super) slopes: Vec<f64>,
    /// Values of all that is soft with the numbers of each end.
    pub(super) ends: [f64; 2],
}

impl<'a> Functions<'a> {
    pub(super) fn new(terms: &'a Terms, length: f64, middles: &'a [f64], what: Soft<'a>) -> Self {
        let (held, next) = starts(&terms.held, 0, of_held);
        let (soft, each) = starts(&terms.soft, next, terms::functions);
        Functions {
            terms,
            length,
            middles,
            held,
            soft,
            of_held: next,
            size: match what {
                Soft::Each { .. } => each,
                Soft::Together { .. } => next + 1,
            },
            what,
        }
    }

    /// See [`Sums`]: a pair that is far apart in all rows has no slope to speak of, and a number that would throw it about where it is not. A kT over the length of a bond is what counts.
    pub(super) fn weak(&self) -> (usize, f64) {
        match self.what {
            Soft::Each { .. } => (self.of_held, self.length.powi(-2)),
            Soft::Together { .. } => (self.size, 0.0),
        }
    }

    pub(super) fn at(&self, row: &[f64], space: usize, out: &mut Values) {
        out.value.fill(0.0);
        out.laplacian.fill(0.0);
        out.slopes.fill(0.0);
        out.ends = [0.0; 2];
        let size = self.size;
        let mut add = |term: &Term, k: usize, jet: &Jet, factor: f64| {
            out.value[k] += factor * jet.value;
            out.laplacian[k] += factor * jet.laplacian;
            for (p, end) in term.of.iter().enumerate() {
                for axis in 0..space {
                    out.slopes[(*end as usize * space + axis) * size + k] +=
                        factor * jet.gradient[p * space + axis];
                }
            }
        };
        for term in &self.terms.held {
            let class = term.class as usize;
            let jet = terms::held(term, row, space, self.length);
            let u = jet.shifted(-self.middles[class]);
            let first = self.held[class];
            add(term, first, &u, 1.0);
            add(term, first + 1, &(u * u), 0.5);
            if of_held(term) == 3 {
                add(term, first + 2, &(u * u * u), 1.0 / 6.0);
            }
        }
        let before = self.of_held;
        let mut ends = [0.0; 2];
        for term in &self.terms.soft {
            let first = self.soft[term.class as usize];
            terms::soft(term, row, space, self.length, |k, jet| match self.what {
                Soft::Each { chiral } => {
                    if chiral || term.of.len() == 2 || k < 3 {
                        add(term, first + k, &jet, 1.0);
                    }
                }
                Soft::Together {
                    ends: numbers,
                    shares,
                } => {
                    let place = first + k - before;
                    let mut together = 0.0;
                    for ((end, numbers), share) in ends.iter_mut().zip(numbers).zip(shares) {
                        *end += numbers[place] * jet.value;
                        together += share * numbers[place];
                    }
                    add(term, before, &jet, together);
                }
            });
        }
        out.ends = ends;
    }
}
