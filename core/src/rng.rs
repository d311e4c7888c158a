//! Counter-based random numbers: every draw is a pure function of (seed, purpose, step, row, position), so results do not
//! depend on threads, tiles or batch splits.
//!
//! The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The
//! key is a mix of seed, purpose and step; the 128-bit counter is (block, row). Nothing here allocates.
//!
//! Bulk `f32` normals ([`Stream::fill_normal`], [`fill_normal_rows`]) are Box-Muller with polynomial logarithm, sine and cosine,
//! written as loops over lanes that the compiler vectorises. They use only additions, multiplications, square roots and integer
//! operations, never a fused multiply-add, so every instruction set gives the same bits.

/// What a stream of draws is for. Different purposes never share numbers, so adding draws to one leaves the others alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights of a network.
    Init = 1,
    /// Training and held-out parts of a data set.
    Split = 2,
    /// Which rows form a batch.
    Batch = 3,
    /// Diffusion times.
    Time = 4,
    /// The noise Z of Y_t = X_t + gamma Z.
    Noise = 5,
    /// Fixed parameters of a test system, such as the means of a mixture.
    System = 6,
    /// Samples of a system or of an exact path at its data end.
    Data = 7,
    /// Samples of an interpolant's second endpoint.
    End = 8,
    /// A sampler run on a learned model.
    Sample = 9,
    /// Exact samples used by metrics.
    Evaluate = 10,
    /// Bootstrap replicas of an estimate.
    Bootstrap = 11,
    /// Random probe vectors (Hutchinson).
    Probe = 12,
    /// Drawing in tests and self-tests.
    Test = 13,
}

/// One step of the splitmix64 sequence (Steele, Lea, Flood 2014): a bijection of 64-bit words with full avalanche.
const fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Philox key of (seed, purpose, step). For a fixed seed and purpose it is a bijection of the step: steps never collide.
const fn key_of(seed: u64, purpose: Purpose, step: u64) -> [u32; 2] {
    let key = mix(mix(mix(seed) ^ purpose as u64) ^ step);
    [key as u32, (key >> 32) as u32]
}

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

/// Philox4x32-10 on `L` counters at once; `words[i][lane]` is word i of a lane's counter on entry, of its output on exit.
#[inline(always)]
fn philox<const L: usize>(mut key: [u32; 2], words: &mut [[u32; L]; 4]) {
    let [w0, w1, w2, w3] = words;
    for _ in 0..ROUNDS {
        for lane in 0..L {
            let left = u64::from(MULTIPLIERS[0]) * u64::from(w0[lane]);
            let right = u64::from(MULTIPLIERS[1]) * u64::from(w2[lane]);
            w0[lane] = (right >> 32) as u32 ^ w1[lane] ^ key[0];
            w1[lane] = right as u32;
            w2[lane] = (left >> 32) as u32 ^ w3[lane] ^ key[1];
            w3[lane] = left as u32;
        }
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
}

/// Natural logarithm of a normal positive `f32` (Cephes `logf`, error below 1 ulp in the mean), branch-free.
#[inline(always)]
fn ln(x: f32) -> f32 {
    let bits = x.to_bits();
    // Mantissa in [1/2, 1); below sqrt(1/2) it is doubled so that the polynomial's argument is centred at 0.
    let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    let low = mantissa < std::f32::consts::FRAC_1_SQRT_2;
    let exponent = (bits >> 23) as i32 - 126 - i32::from(low);
    let m = if low { mantissa + mantissa } else { mantissa } - 1.0;
    let e = exponent as f32;
    let m2 = m * m;
    let mut p = 7.037_683_6e-2_f32;
    for c in [
        -0.115_146_1,
        0.116_769_99,
        -0.124_201_41,
        0.142_493_23,
        -0.166_680_57,
        0.200_007_14,
        -0.249_999_94,
        0.333_333_3,
    ] {
        p = p * m + c;
    }
    let tail = p * m * m2 + e * -2.121_944_4e-4 - 0.5 * m2;
    m + tail + e * 0.693_359_4
}

/// Two standard normals from two random words: Box-Muller with 32-bit radius and angle.
///
/// The radius word keeps 31 bits above a half-step, so the largest radius is sqrt(2 * 32 ln 2) = 6.66. The angle's quadrant is
/// taken from the integer, so the polynomials (Cephes `sinf`, `cosf`) see [-pi/4, pi/4] only.
#[inline(always)]
fn box_muller(radius: u32, angle: u32) -> (f32, f32) {
    let u = ((radius >> 1) as i32 as f32 + 0.5) * (1.0 / 2_147_483_648.0);
    let r = (-2.0 * ln(u)).max(0.0).sqrt();
    let quadrant = angle.wrapping_add(1 << 29) >> 30;
    let rest = angle.wrapping_sub(quadrant << 30) as i32 as f32
        * (std::f32::consts::FRAC_PI_2 / 1_073_741_824.0);
    let x2 = rest * rest;
    let sin = ((-1.951_529_6e-4 * x2 + 8.332_161e-3) * x2 - 0.166_666_55) * x2 * rest + rest;
    let cos =
        ((2.443_315_7e-5 * x2 - 1.388_731_6e-3) * x2 + 4.166_664_6e-2) * x2 * x2 - 0.5 * x2 + 1.0;
    let odd = quadrant & 1 == 1;
    let (c, s) = if odd { (sin, cos) } else { (cos, sin) };
    // cos is negative in quadrants 1 and 2, sin in quadrants 2 and 3: move that bit to the sign.
    let c = f32::from_bits(c.to_bits() ^ (((quadrant + 1) & 2) << 30));
    let s = f32::from_bits(s.to_bits() ^ ((quadrant & 2) << 30));
    (r * c, r * s)
}

/// The normals of `L` counters: counter `lane` gives `out[4 lane .. 4 lane + 4]`.
#[inline(always)]
fn normal_lanes<const L: usize>(key: [u32; 2], words: &mut [[u32; L]; 4], out: &mut [f32]) {
    philox(key, words);
    let [w0, w1, w2, w3] = &*words;
    let mut z = [[0.0_f32; L]; 4];
    for lane in 0..L {
        (z[0][lane], z[1][lane]) = box_muller(w0[lane], w1[lane]);
        (z[2][lane], z[3][lane]) = box_muller(w2[lane], w3[lane]);
    }
    for (lane, quad) in out.chunks_exact_mut(4).enumerate().take(L) {
        quad.copy_from_slice(&[z[0][lane], z[1][lane], z[2][lane], z[3][lane]]);
    }
}

/// Lanes of a full group: long enough that the compiler keeps whole vectors busy.
const WIDE: usize = 32;
/// Lanes of the groups at the end of a fill.
const NARROW: usize = 8;

/// Where a bulk fill stands: the counters still to be used, row by row.
struct Cursor {
    block: u64,
    row: u64,
    first_block: u64,
    end_block: u64,
}

impl Cursor {
    #[inline(always)]
    fn lanes<const L: usize>(&mut self) -> [[u32; L]; 4] {
        let [mut w0, mut w1, mut w2, mut w3] = [[0; L]; 4];
        for lane in 0..L {
            w0[lane] = self.block as u32;
            w1[lane] = (self.block >> 32) as u32;
            w2[lane] = self.row as u32;
            w3[lane] = (self.row >> 32) as u32;
            self.block = self.block.wrapping_add(1);
            if self.block == self.end_block {
                self.block = self.first_block;
                self.row = self.row.wrapping_add(1);
            }
        }
        [w0, w1, w2, w3]
    }
}

/// Rows of `width` normals: row i of `out` is drawn from the counters (`first_block` .., `first_row` + i).
#[inline(always)]
fn fill_rows(key: [u32; 2], first_block: u64, first_row: u64, width: usize, out: &mut [f32]) {
    let blocks = width.div_ceil(4);
    let mut cursor = Cursor {
        block: first_block,
        row: first_row,
        first_block,
        end_block: first_block.wrapping_add(blocks as u64),
    };
    if width.is_multiple_of(4) {
        let mut groups = out.chunks_exact_mut(4 * WIDE);
        for group in &mut groups {
            normal_lanes::<WIDE>(key, &mut cursor.lanes(), group);
        }
        for part in groups.into_remainder().chunks_mut(4 * NARROW) {
            let mut group = [0.0; 4 * NARROW];
            normal_lanes::<NARROW>(key, &mut cursor.lanes(), &mut group);
            part.copy_from_slice(&group[..part.len()]);
        }
    } else {
        let mut group = [0.0; 4 * NARROW];
        let mut lane = NARROW;
        for row in out.chunks_mut(width) {
            for part in row.chunks_mut(4) {
                if lane == NARROW {
                    normal_lanes::<NARROW>(key, &mut cursor.lanes(), &mut group);
                    lane = 0;
                }
                part.copy_from_slice(&group[4 * lane..][..part.len()]);
                lane += 1;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fill_rows_avx2(key: [u32; 2], first_block: u64, first_row: u64, width: usize, out: &mut [f32]) {
    fill_rows(key, first_block, first_row, width, out);
}

fn dispatch_fill_rows(
    key: [u32; 2],
    first_block: u64,
    first_row: u64,
    width: usize,
    out: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the function needs AVX2 and nothing else, and the processor has just been asked for it.
        return unsafe { fill_rows_avx2(key, first_block, first_row, width, out) };
    }
    fill_rows(key, first_block, first_row, width, out);
}

/// Standard normals for many rows at once, about 2 ns each: row i of `out` (rows of `width` values) equals what
/// `Stream::new(seed, purpose, step, first_row + i).fill_normal(..)` writes into a row of that width.
pub fn fill_normal_rows(
    seed: u64,
    purpose: Purpose,
    step: u64,
    first_row: u64,
    width: usize,
    out: &mut [f32],
) {
    if width > 0 {
        dispatch_fill_rows(key_of(seed, purpose, step), 0, first_row, width, out);
    }
}

/// The draws of one row (or particle) for one purpose at one step.
///
/// ```
/// use diffclf::rng::{Purpose, Stream};
/// let mut a = Stream::new(7, Purpose::Noise, 100, 3);
/// let mut b = Stream::new(7, Purpose::Noise, 100, 3);
/// assert_eq!(a.normal(), b.normal());
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u32; 2],
    row: u64,
    /// The next counter to be used.
    block: u64,
    words: [u32; 4],
    /// How many of `words` have been handed out.
    used: usize,
    /// Second value of the last Box-Muller pair.
    spare: Option<f64>,
}

impl Stream {
    /// The stream of (seed, purpose, step, row), at its beginning.
    pub fn new(seed: u64, purpose: Purpose, step: u64, row: u64) -> Self {
        Self {
            key: key_of(seed, purpose, step),
            row,
            block: 0,
            words: [0; 4],
            used: 4,
            spare: None,
        }
    }

    /// Uniform 32-bit word.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            let mut words = [
                [self.block as u32],
                [(self.block >> 32) as u32],
                [self.row as u32],
                [(self.row >> 32) as u32],
            ];
            philox(self.key, &mut words);
            self.words = words.map(|[word]| word);
            self.block = self.block.wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// Uniform 64-bit word.
    pub fn next_u64(&mut self) -> u64 {
        let low = u64::from(self.next_u32());
        low | u64::from(self.next_u32()) << 32
    }

    /// Uniform in the open interval (0, 1): an odd multiple of 2^-53, symmetric about 1/2, never 0 nor 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// Uniform integer in 0..n, without bias (Lemire 2019: multiply, reject the short remainder); 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let short = n.wrapping_neg() % n;
            while (product as u64) < short {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// Standard normal in double precision (Box-Muller; the pair's second value is returned by the next call).
    pub fn normal(&mut self) -> f64 {
        if let Some(value) = self.spare.take() {
            return value;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Standard normals in single precision, the fast path of training (see the module's first lines).
    ///
    /// Starts at a fresh block of four words and uses whole blocks: what it writes depends on the calls before it, never on
    /// how the caller splits lengths that are multiples of four.
    pub fn fill_normal(&mut self, out: &mut [f32]) {
        self.used = 4;
        self.spare = None;
        if !out.is_empty() {
            dispatch_fill_rows(self.key, self.block, self.row, out.len(), out);
            self.block = self.block.wrapping_add(out.len().div_ceil(4) as u64);
        }
    }

    /// Standard normals in double precision: the values of repeated [`Stream::normal`].
    pub fn fill_normal_f64(&mut self, out: &mut [f64]) {
        for value in out {
            *value = self.normal();
        }
    }
}

/// A random permutation of 0..n that needs no memory: a keyed Feistel network on the next power of two, walked along its cycle
/// until it lands below n (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). At most two steps on average.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    key: u64,
    left_bits: u32,
    right_bits: u32,
}

impl Permutation {
    const ROUNDS: u64 = 6;

    /// The permutation of 0..n for one epoch.
    pub fn new(seed: u64, epoch: u64, n: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let key = mix(mix(mix(seed) ^ Purpose::Batch as u64) ^ epoch);
        Self {
            n,
            key,
            left_bits: bits - bits / 2,
            right_bits: bits / 2,
        }
    }

    /// How many items are permuted.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Whether there is nothing to permute.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Where item `i` goes.
    ///
    /// # Panics
    /// If `i` is not below n, as an index into a slice would.
    pub fn at(&self, i: u64) -> u64 {
        assert!(i < self.n, "index {i} of a permutation of {} items", self.n);
        let (left_mask, right_mask) = (
            (1_u64 << self.left_bits) - 1,
            (1_u64 << self.right_bits) - 1,
        );
        let mut value = i;
        loop {
            let (mut left, mut right) = (value >> self.right_bits, value & right_mask);
            for round in 0..Self::ROUNDS {
                let key = self.key.wrapping_add(round << 1);
                left ^= mix(mix(key) ^ right) & left_mask;
                right ^= mix(mix(key.wrapping_add(1)) ^ left) & right_mask;
            }
            value = left << self.right_bits | right;
            if value < self.n {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_known_answers_of_random123() {
        let vectors: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
            (
                [0; 4],
                [0; 2],
                [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
            ),
            (
                [u32::MAX; 4],
                [u32::MAX; 2],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in vectors {
            let mut words = counter.map(|word| [word; 5]);
            philox(key, &mut words);
            assert_eq!(words.map(|lanes| lanes[3]), expected);
        }
    }

    #[test]
    fn streams_differ_in_every_coordinate_and_repeat() {
        let first = |seed, purpose, step, row| Stream::new(seed, purpose, step, row).next_u64();
        let base = first(1, Purpose::Noise, 2, 3);
        assert_eq!(base, first(1, Purpose::Noise, 2, 3));
        for other in [
            first(0, Purpose::Noise, 2, 3),
            first(1, Purpose::Time, 2, 3),
            first(1, Purpose::Noise, 3, 3),
            first(1, Purpose::Noise, 2, 4),
            first(2, Purpose::Noise, 1, 3),
            first(1, Purpose::Noise, 3, 2),
        ] {
            assert_ne!(base, other);
        }
    }

    /// Mean, variance, skewness and kurtosis within 4 sigma: the estimators' deviations are sqrt(1, 2, 6 (15 for the raw third
    /// moment), 96) / sqrt(n). Then Kolmogorov-Smirnov: P(sqrt(n) D > 2.2) = 2 exp(-2 * 2.2^2) = 1.3e-4, a bit below 4 sigma.
    fn assert_normal(mut values: Vec<f64>) {
        let n = values.len() as f64;
        let moment = |k| values.iter().map(|z| z.powi(k)).sum::<f64>() / n;
        for (k, expected, variance) in [
            (1, 0.0, 1.0),
            (2, 1.0, 2.0),
            (3, 0.0, 15.0),
            (4, 3.0, 96.0_f64),
        ] {
            let found = moment(k);
            assert!(
                (found - expected).abs() < 4.0 * (variance / n).sqrt(),
                "moment {k} is {found}"
            );
        }
        values.sort_by(f64::total_cmp);
        let distance = values
            .iter()
            .enumerate()
            .map(|(i, &z)| {
                let cdf = 0.5 * erfc(-z / std::f64::consts::SQRT_2);
                (cdf - i as f64 / n)
                    .abs()
                    .max((cdf - (i + 1) as f64 / n).abs())
            })
            .fold(0.0, f64::max);
        assert!(distance * n.sqrt() < 2.2, "KS distance {distance}");
    }

    /// Complementary error function, relative error below 1.2e-7 (Numerical Recipes, section 6.2).
    fn erfc(x: f64) -> f64 {
        let t = 1.0 / (1.0 + 0.5 * x.abs());
        let coefficients = [
            0.17087277,
            -0.82215223,
            1.48851587,
            -1.13520398,
            0.27886807,
            -0.18628806,
            0.09678418,
            0.37409196,
            1.00002368,
            -1.26551223,
        ];
        let poly = coefficients.iter().fold(0.0, |p, c| p * t + c);
        let tail = t * (-x * x + poly).exp();
        if x >= 0.0 { tail } else { 2.0 - tail }
    }

    #[test]
    fn bulk_normals_are_normal() {
        let mut values = vec![0.0_f32; 400_003];
        Stream::new(11, Purpose::Test, 5, 9).fill_normal(&mut values);
        assert_normal(values.iter().map(|&z| f64::from(z)).collect());
    }

    #[test]
    fn neighbouring_bulk_normals_are_uncorrelated() {
        let mut values = vec![0.0_f32; 400_000];
        fill_normal_rows(3, Purpose::Test, 0, 0, 8, &mut values);
        for lag in 1..=9 {
            let products: f64 = values
                .iter()
                .zip(&values[lag..])
                .map(|(a, b)| f64::from(a * b))
                .sum();
            // Each product has mean 0 and variance 1.
            assert!(
                products.abs() < 4.0 * (values.len() as f64).sqrt(),
                "lag {lag}: {products}"
            );
        }
    }

    #[test]
    fn exact_normals_are_normal() {
        let mut values = vec![0.0; 200_000];
        Stream::new(12, Purpose::Test, 6, 1).fill_normal_f64(&mut values);
        assert_normal(values);
    }

    #[test]
    fn bulk_normals_follow_box_muller_in_double_precision() {
        let mut stream = Stream::new(4, Purpose::Test, 0, 0);
        for i in 0..200_000_u32 {
            // Random words, then the ends and the quadrant borders, where a polynomial would fail first.
            let (radius, angle) = match i {
                0..64 => (i, i << 26),
                64..128 => (u32::MAX - (i - 64), (i << 26).wrapping_sub(1)),
                _ => (stream.next_u32(), stream.next_u32()),
            };
            let (x, y) = box_muller(radius, angle);
            let r = (-2.0 * ((f64::from(radius >> 1) + 0.5) / 2_f64.powi(31)).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * f64::from(angle) / 2_f64.powi(32)).sin_cos();
            // 1 - u has an absolute rounding of 2^-25, so the radius has one of 2^-25 / r: this bounds it near 0.
            let tolerance = 4e-7 * r + 6e-8 / r.max(2e-4);
            assert!(
                (f64::from(x) - r * cos).abs() < tolerance,
                "{radius} {angle}: {x} {}",
                r * cos
            );
            assert!(
                (f64::from(y) - r * sin).abs() < tolerance,
                "{radius} {angle}: {y} {}",
                r * sin
            );
        }
    }

    #[test]
    fn instruction_sets_give_the_same_bits() {
        for width in [1, 3, 4, 8, 30, 128, 1000] {
            let (mut fast, mut portable) = (vec![0.0_f32; 37 * width], vec![0.0_f32; 37 * width]);
            dispatch_fill_rows([5, 6], 1, 2, width, &mut fast);
            fill_rows([5, 6], 1, 2, width, &mut portable);
            assert_eq!(fast, portable);
        }
    }

    #[test]
    fn rows_do_not_depend_on_the_split() {
        for width in [1, 2, 5, 8, 12, 129, 256] {
            let mut all = vec![0.0_f32; 53 * width];
            fill_normal_rows(1, Purpose::Noise, 2, 10, width, &mut all);
            for (i, row) in all.chunks(width).enumerate() {
                let mut alone = vec![0.0_f32; width];
                Stream::new(1, Purpose::Noise, 2, 10 + i as u64).fill_normal(&mut alone);
                assert_eq!(row, alone);
            }
        }
        let mut whole = [0.0_f32; 40];
        Stream::new(1, Purpose::Noise, 2, 3).fill_normal(&mut whole);
        let mut stream = Stream::new(1, Purpose::Noise, 2, 3);
        let mut parts = [0.0_f32; 40];
        let (head, tail) = parts.split_at_mut(12);
        stream.fill_normal(head);
        stream.fill_normal(tail);
        assert_eq!(whole, parts);
    }

    #[test]
    fn uniform_and_below_are_uniform() {
        let mut stream = Stream::new(8, Purpose::Test, 0, 0);
        let n = 100_000;
        let mean = (0..n).map(|_| stream.uniform()).sum::<f64>() / f64::from(n);
        // Variance of a uniform is 1/12.
        assert!((mean - 0.5).abs() < 4.0 * (1.0 / 12.0 / f64::from(n)).sqrt());
        let mut counts = [0_i32; 7];
        for _ in 0..n {
            counts[stream.below(7) as usize] += 1;
        }
        for count in counts {
            let (p, n) = (1.0 / 7.0, f64::from(n));
            assert!((f64::from(count) - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt());
        }
        assert_eq!(stream.below(1), 0);
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn permutations_are_bijective() {
        for n in (1..70).chain([127, 128, 129, 1000, 4095, 4097, 60_000]) {
            let permutation = Permutation::new(3, 4, n);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let j = permutation.at(i) as usize;
                assert!(!seen[j], "{n}: {j} twice");
                seen[j] = true;
            }
        }
    }

    #[test]
    fn permutations_send_an_item_everywhere() {
        for n in [2, 3, 5, 6, 11] {
            let (epochs, p) = (6000, 1.0 / n as f64);
            let mut counts = vec![0; n as usize];
            for epoch in 0..epochs {
                counts[Permutation::new(9, epoch, n).at(1) as usize] += 1;
            }
            let (mean, sigma) = (epochs as f64 * p, (epochs as f64 * p * (1.0 - p)).sqrt());
            for count in counts {
                assert!(
                    (f64::from(count) - mean).abs() < 4.0 * sigma,
                    "{n}: {count} of {mean}"
                );
            }
        }
    }
}
