//! The fast Walsh-Hadamard transform, in place: `d 2^d` additions for a function of `d` bits. Uniform noise on spins multiplies the
//! coefficient of a set of k sites by `alpha^k`.

/// Transforms a function of bits; twice gives it back times its length.
pub fn transform(values: &mut [f64]) {
    let mut half = 1;
    while half < values.len() {
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

/// `p_t` from the transform of `p_0` under uniform noise with `keep` left.
pub fn blurred(spectrum: &[f64], keep: f64) -> Vec<f64> {
    let mut powers = [1.0; 65];
    for k in 1..powers.len() {
        powers[k] = powers[k - 1] * keep;
    }
    let scale = 1.0 / spectrum.len() as f64;
    let damped = |(set, x): (usize, &f64)| x * powers[set.count_ones() as usize] * scale;
    let mut values: Vec<f64> = spectrum.iter().enumerate().map(damped).collect();
    transform(&mut values);
    // Rounding leaves numbers below zero where the truth is zero.
    values.iter_mut().for_each(|p| *p = p.max(0.0));
    values
}
