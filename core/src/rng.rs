//! Counter-based random numbers: every draw is a pure function of (seed, purpose, step, row, position), so results do not
//! depend on threads, tiles or batch splits.
//!
//! The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The
//! key is a mix of seed, purpose and step; the 128-bit counter is (block, row). Nothing here allocates.
//!
//! Bulk `f32` normals ([`Stream::fill_normal`], [`fill_normal_rows`]) are Box-Muller with polynomial logarithm, sine and cosine,
//! written as loops over lanes that the compiler vectorises. They use only additions, multiplications, square roots and integer
//! operations, never a fused multiply-add, so every instruction set gives the same bits.

mod permutation;

pub use permutation::Permutation;

/// Version of the streams: which purposes there are and what is drawn for each. A run is continued only with the streams it began
/// with. Version 1 drew the rows of a system from the stream of its parameters and set held-out draws apart by other seeds.
/// Version 2 held out single rows, and drew levels of the grid for losses that see the slope of F; other runs of it have the draws of
/// version 3.
pub const STREAMS: u32 = 3;

/// What the rows of a training step are used for; the two never share draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Rows that are learned from.
    Training = 0,
    /// Rows that are held out.
    HeldOut = 1,
}

/// Says each purpose once: its name, what tells its streams apart, its number.
macro_rules! purposes {
    ($($(#[$doc:meta])* $name:ident $(($index:ident: $type:ty))? = $code:literal,)*) => {
        /// What a stream of draws is for. Each purpose serves one end, and different purposes never share numbers, so adding
        /// draws to one leaves the others alone. Where one run draws the same thing for several parties (endpoints, parts of the
        /// data), their index belongs to the purpose.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Purpose {
            $($(#[$doc])* $name $(($type))?,)*
        }

        impl Purpose {
            /// Names and numbers of all purposes.
            pub const ALL: &[(&str, u32)] = &[$((stringify!($name), $code)),*];

            /// The number of a purpose, and its index above it.
            const fn code(self) -> u64 {
                match self {
                    $(Purpose::$name $(($index))? => $code $(| ($index as u64) << 32)?,)*
                }
            }
        }
    };
}

purposes! {
    /// Initial weights of a network.
    Init = 1,
    /// Which rows of an endpoint's data are held out.
    Split(endpoint: u32) = 2,
    /// Which rows of an endpoint form a batch.
    Batch(endpoint: u32) = 3,
    /// Diffusion times of a step.
    Time(part: Part) = 4,
    /// The noise Z of Y_t = X_t + gamma Z in a step.
    Noise(part: Part) = 5,
    /// Fixed parameters of a test system, such as the means of a mixture.
    System = 6,
    /// Samples of a system, or of an exact path at its data end, for a caller with a seed of its own.
    Data = 7,
    /// Samples of an exact path's second endpoint.
    End = 8,
    /// A sampler run on a learned model.
    Sample = 9,
    /// Exact samples used by metrics.
    Evaluate = 10,
    /// Bootstrap replicas of an estimate.
    Bootstrap = 11,
    /// Random probe vectors of a step (Hutchinson).
    Probe(part: Part) = 12,
    /// Drawing in tests and self-tests.
    Test = 13,
    /// Proposals and momenta of Markov chain Monte Carlo.
    Move = 14,
    /// Acceptance of those proposals.
    Accept = 15,
    /// Which particles are kept by resampling.
    Resample = 16,
    /// Swaps of replica exchange.
    Swap = 17,
    /// Directions of sliced distances.
    Slice = 18,
    /// Rows of a system at an endpoint, drawn afresh at every step.
    Rows(endpoint: u32) = 19,
    /// A fixed set of rows of a system, drawn once to train on.
    Drawn(endpoint: u32) = 20,
    /// Rows of a system that a model is judged by, none of them trained on.
    Judge(endpoint: u32) = 21,
    /// Rows of a system from which a learned path departs.
    Departure(endpoint: u32) = 22,
    /// Samples of a system that is a state of a free-energy difference.
    State(endpoint: u32) = 23,
    /// Two independent reference samples of a comparison.
    Reference(half: u32) = 24,
    /// Points of a learned path between two sets of rows.
    Path = 25,
    /// Exact samples by which mode weights are measured.
    ModeWeights = 26,
    /// Random probe vectors of a flow's divergence.
    Divergence = 27,
    /// Lengths of Hamiltonian trajectories.
    Length = 28,
    /// Equally weighted particles out of weighted ones.
    Equalise = 29,
    /// Noised rows of a diagnosis; rows judged by and rows trained on are two sets.
    Diagnose(set: u32) = 30,
    /// Which of those rows come first.
    DiagnoseOrder(set: u32) = 31,
    /// Which level a point of the calibration is drawn at.
    Calibrate = 32,
    /// Draws from the proposal of a diagnosis.
    Propose = 33,
    /// Dealings of a permutation test.
    Deal = 34,
    /// Splits and starts of a mixture's fit.
    Base = 35,
    /// The second noise of a pair of close times.
    Partner(part: Part) = 40,
    /// The noise that fills the steps of rounded values.
    Dequantise = 44,
    /// Draws by which points outside of the data are known.
    Outside = 45,
    /// Draws of a base by which an energy on it is normalised.
    Normalise = 43,
    /// Points drawn from the inflated base.
    Anchor(part: Part) = 42,
    /// The noise of points at known ends.
    Ends(part: Part) = 41,
    /// Rotations of rows of particles.
    Turn(part: Part) = 51,
    /// Which of a composition's weighted points a picture shows.
    Shown = 50,
    /// The noise of molecular dynamics.
    Langevin = 60,
    /// First velocities of molecular dynamics.
    Velocity = 61,
    /// Halves of a sample that are compared with each other.
    Halve = 62,
    /// Which rows of an endpoint form a batch, where rows have weights.
    Weighted(endpoint: u32) = 63,
    /// Which of an endpoint's weighted rows stand for all of them with equal weights.
    Keep(endpoint: u32) = 64,
    /// Noise on the states of a step.
    Flip(part: Part) = 70,
    /// Sites whose changes a step looks at.
    Sites(part: Part) = 71,
    /// Jumps of a sampler of states.
    Jump = 72,
    /// Noised rows that springs are fitted to.
    Springs = 80,
    /// In which order rows of an endpoint are taken for pairs.
    Couple(endpoint: u32) = 81,
    /// In which order rows of an endpoint are taken for springs.
    SpringRows(endpoint: u32) = 82,
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
    let key = mix(mix(mix(seed) ^ purpose.code()) ^ step);
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
/// let mut a = Stream::new(7, Purpose::Sample, 100, 3);
/// let mut b = Stream::new(7, Purpose::Sample, 100, 3);
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

#[cfg(test)]
mod tests;
