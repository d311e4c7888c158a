//! Distance of two particles.

use super::{dot, minus};

/// `|b - a|`.
pub fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let d = minus(b, a);
    dot(d, d).sqrt()
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_that_of_pythagoras() {
        assert_eq!(super::distance([1.0, 2.0, 3.0], [3.0, 5.0, 9.0]), 7.0);
    }
}
