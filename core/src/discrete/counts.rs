//! How often sites, pairs of sites and majorities show each state, under rows with weights.

/// Pairs that are looked at; of more, an even selection.
const PAIRS: usize = 600;

/// What is counted: symbols of sites, pairs of symbols, and the state that most sites show (the smallest of equals).
pub(crate) struct Counter {
    pub sites: usize,
    pub symbols: usize,
    pub pairs: Vec<(usize, usize)>,
}

impl Counter {
    pub fn new(sites: usize, symbols: usize) -> Counter {
        let all: Vec<(usize, usize)> = (0..sites)
            .flat_map(|i| (i + 1..sites).map(move |j| (i, j)))
            .collect();
        let kept = all.len().min(PAIRS);
        let pairs = (0..kept).map(|k| all[k * all.len() / kept]).collect();
        Counter {
            sites,
            symbols,
            pairs,
        }
    }

    /// Shares of sites, pairs and majorities; weights sum to one, and are equal if there are none.
    pub fn shares(&self, rows: &[u8], weights: Option<&[f64]>) -> [Vec<f64>; 3] {
        let (k, n) = (self.symbols, rows.len() / self.sites);
        let mut parts = [
            vec![0.0; self.sites * k],
            vec![0.0; self.pairs.len() * k * k],
            vec![0.0; k],
        ];
        let mut shown = vec![0u32; k];
        for (i, row) in rows.chunks_exact(self.sites).enumerate() {
            let weight = weights.map_or(1.0 / n as f64, |w| w[i]);
            if weight == 0.0 {
                continue;
            }
            shown.fill(0);
            for (site, s) in row.iter().enumerate() {
                parts[0][site * k + usize::from(*s)] += weight;
                shown[usize::from(*s)] += 1;
            }
            for (pair, (a, b)) in self.pairs.iter().enumerate() {
                let cell = usize::from(row[*a]) * k + usize::from(row[*b]);
                parts[1][pair * k * k + cell] += weight;
            }
            let most = shown.iter().copied().max().unwrap_or(0);
            let majority = shown.iter().position(|c| *c == most).unwrap_or(0);
            parts[2][majority] += weight;
        }
        parts
    }

    /// A share in words.
    pub fn name(&self, kind: usize, place: usize) -> String {
        let k = self.symbols;
        match kind {
            0 => format!("site {} shows {}", place / k, place % k),
            1 => {
                let (a, b) = self.pairs[place / (k * k)];
                let cell = place % (k * k);
                format!("sites {a} and {b} show {} and {}", cell / k, cell % k)
            }
            _ => format!("most sites show {place}"),
        }
    }
}
