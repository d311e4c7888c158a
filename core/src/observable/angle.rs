//! Angle at the second of three particles.

use super::{cross, dot, minus};

/// Angle between `a - b` and `c - b`, from 0 to pi; by `atan2`, which keeps its digits near both ends.
pub fn angle(a: [f64; 3], b: [f64; 3], c: [f64; 3]) -> f64 {
    let (u, v) = (minus(a, b), minus(c, b));
    let n = cross(u, v);
    dot(n, n).sqrt().atan2(dot(u, v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_angles() {
        let b = [0.3, -0.2, 0.5];
        for theta in [1e-7, 0.3, 1.9106, std::f64::consts::PI - 1e-7] {
            let c = [
                b[0] + 2.0 * f64::cos(theta),
                b[1] + 2.0 * f64::sin(theta),
                b[2],
            ];
            let found = angle([b[0] + 0.7, b[1], b[2]], b, c);
            assert!((found - theta).abs() < 1e-12, "{found} {theta}");
        }
    }
}
