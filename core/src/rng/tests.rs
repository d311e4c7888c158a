//! Known answers, moments and Kolmogorov-Smirnov distances, independence of splits, bijectivity.

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
    let base = first(1, Purpose::Sample, 2, 3);
    assert_eq!(base, first(1, Purpose::Sample, 2, 3));
    for other in [
        first(0, Purpose::Sample, 2, 3),
        first(1, Purpose::Move, 2, 3),
        first(1, Purpose::Sample, 3, 3),
        first(1, Purpose::Sample, 2, 4),
        first(2, Purpose::Sample, 1, 3),
        first(1, Purpose::Sample, 3, 2),
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
        fill_normal_rows(1, Purpose::Sample, 2, 10, width, &mut all);
        for (i, row) in all.chunks(width).enumerate() {
            let mut alone = vec![0.0_f32; width];
            Stream::new(1, Purpose::Sample, 2, 10 + i as u64).fill_normal(&mut alone);
            assert_eq!(row, alone);
        }
    }
    let mut whole = [0.0_f32; 40];
    Stream::new(1, Purpose::Sample, 2, 3).fill_normal(&mut whole);
    let mut stream = Stream::new(1, Purpose::Sample, 2, 3);
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
        let permutation = Permutation::new(3, Purpose::Batch(0), 4, n);
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
            counts[Permutation::new(9, Purpose::Batch(1), epoch, n).at(1) as usize] += 1;
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

/// No two purposes share a number, nor an index of one the streams of another.
#[test]
fn every_purpose_has_streams_of_its_own() {
    let mut codes: Vec<u32> = Purpose::ALL.iter().map(|(_, code)| *code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Purpose::ALL.len(), "{:?}", Purpose::ALL);
    let first = |purpose| Stream::new(5, purpose, 1, 2).next_u64();
    let some = [
        Purpose::Init,
        Purpose::Split(0),
        Purpose::Split(1),
        Purpose::Batch(0),
        Purpose::Batch(1),
        Purpose::System,
        Purpose::Data,
        Purpose::Noise(Part::Training),
        Purpose::Noise(Part::HeldOut),
        Purpose::Time(Part::Training),
        Purpose::Time(Part::HeldOut),
        Purpose::Rows(0),
        Purpose::Rows(1),
        Purpose::Drawn(0),
        Purpose::Judge(0),
        Purpose::Diagnose(0),
        Purpose::Diagnose(1),
    ];
    for (i, a) in some.iter().enumerate() {
        for b in &some[..i] {
            assert_ne!(first(*a), first(*b), "{a:?} {b:?}");
        }
    }
}

/// Published numbers rest on the parameters of the systems: their stream stays what it was.
#[test]
fn the_stream_of_fixed_parameters_stays() {
    let mut stream = Stream::new(0, Purpose::System, 40, 0);
    assert_eq!(stream.next_u64(), 0x75c3_5686_0755_2ac5);
}
