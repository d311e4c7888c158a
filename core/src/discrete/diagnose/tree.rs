//! The tree of pairs that is likeliest for given rows (Chow and Liu 1968): `p(y) = p(y_r) prod_i p(y_i | y_parent(i))`, with the maximal spanning tree of the
//! mutual informations of all pairs of sites. It is fitted in a moment, adds up to one, and knows nothing beyond pairs.

/// Whom to cite.
pub(super) const CITES: crate::citation::Cites = &["chow1968approximating"];

/// Most sites: pairs are looked at one by one.
const MOST_SITES: usize = 512;
/// Looks at pairs of symbols that a fit may cost.
const MOST_LOOKS: usize = 400_000_000;

/// A fitted tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    symbols: usize,
    /// Sites in an order in which parents come first, each with its parent; the first has none.
    order: Vec<(usize, Option<usize>)>,
    /// `log p(symbol | symbol of the parent)`: for each site of the order, parents x symbols; the first has one line.
    tables: Vec<Vec<f64>>,
}

/// Log-probabilities of the symbols of each site, `sites x symbols`; half a row is spread over the symbols, so that none is impossible.
pub(super) fn site_laws(rows: &[u8], sites: usize, symbols: usize) -> Vec<f64> {
    let count = (rows.len() / sites) as f64;
    let mut laws = vec![0.5 / symbols as f64; sites * symbols];
    for row in rows.chunks_exact(sites) {
        for (site, s) in row.iter().enumerate() {
            laws[site * symbols + usize::from(*s)] += 1.0;
        }
    }
    laws.iter().map(|p| (p / (count + 0.5)).ln()).collect()
}

impl Tree {
    /// Fits the tree to rows of symbols; none where sites are too many.
    pub fn fit(rows: &[u8], sites: usize, symbols: usize) -> Option<Tree> {
        if sites > MOST_SITES || rows.is_empty() {
            return None;
        }
        let pairs = (sites * sites / 2).max(1);
        let kept = (MOST_LOOKS / pairs).max(1000).min(rows.len() / sites);
        let rows = &rows[..kept * sites];
        // Columns, so that a pair reads two stretches of memory.
        let column =
            |i: usize| -> Vec<u8> { rows.iter().skip(i).step_by(sites).copied().collect() };
        let columns: Vec<Vec<u8>> = (0..sites).map(column).collect();
        let joint = |i: usize, j: usize| {
            let mut counts = vec![0u32; symbols * symbols];
            for (a, b) in columns[i].iter().zip(&columns[j]) {
                counts[usize::from(*a) * symbols + usize::from(*b)] += 1;
            }
            counts
        };
        // Prim: the site outside that tells most about one inside comes next.
        let mut order = vec![(0, None)];
        let mut best: Vec<(f64, usize)> = (0..sites)
            .map(|i| (information(&joint(0, i), symbols), 0))
            .collect();
        let mut inside = vec![false; sites];
        inside[0] = true;
        while order.len() < sites {
            let outside = (0..sites).filter(|i| !inside[*i]);
            let next = outside.max_by(|a, b| best[*a].0.total_cmp(&best[*b].0))?;
            inside[next] = true;
            order.push((next, Some(best[next].1)));
            for i in (0..sites).filter(|i| !inside[*i]) {
                let tells = information(&joint(next, i), symbols);
                if tells > best[i].0 {
                    best[i] = (tells, next);
                }
            }
        }
        let laws = site_laws(rows, sites, symbols);
        let tables = order
            .iter()
            .map(|&(site, parent)| {
                let law = &laws[site * symbols..][..symbols];
                let Some(parent) = parent else {
                    return law.to_vec();
                };
                // A row of the site's own law is spread over each line: unseen pairs fall back to it.
                let counts = joint(parent, site);
                let line = |counts: &[u32]| -> Vec<f64> {
                    let total = 1.0 + counts.iter().map(|c| f64::from(*c)).sum::<f64>();
                    let each = counts.iter().zip(law);
                    each.map(|(c, p)| ((f64::from(*c) + p.exp()) / total).ln())
                        .collect()
                };
                counts.chunks_exact(symbols).flat_map(line).collect()
            })
            .collect();
        Some(Tree {
            symbols,
            order,
            tables,
        })
    }

    /// `log p` of each row.
    pub fn log_density(&self, rows: &[u8]) -> Vec<f64> {
        let of = |row: &[u8]| -> f64 {
            let sites = self.order.iter().zip(&self.tables);
            sites
                .map(|(&(site, parent), table)| {
                    let line = parent.map_or(0, |parent| usize::from(row[parent]));
                    table[line * self.symbols + usize::from(row[site])]
                })
                .sum()
        };
        rows.chunks_exact(self.order.len()).map(of).collect()
    }
}

/// Mutual information of a table of counts, in nats.
fn information(counts: &[u32], symbols: usize) -> f64 {
    let total: f64 = counts.iter().map(|c| f64::from(*c)).sum();
    let (mut first, mut second) = (vec![0.0; symbols], vec![0.0; symbols]);
    for (k, c) in counts.iter().enumerate() {
        first[k / symbols] += f64::from(*c);
        second[k % symbols] += f64::from(*c);
    }
    let cells = counts.iter().enumerate().filter(|(_, c)| **c > 0);
    cells
        .map(|(k, c)| {
            let c = f64::from(*c);
            c / total * (c * total / (first[k / symbols] * second[k % symbols])).ln()
        })
        .sum()
}
