//! Dihedral angle of four particles, with the sign of chemistry (IUPAC 1970): positive where the far bond is turned clockwise.

use super::{cross, dot, minus};

/// Angle between the planes (a, b, c) and (b, c, d), from -pi to pi: `atan2(|v| u . (v x w), (u x v) . (v x w))` with the bonds u, v, w.
pub fn dihedral(a: [f64; 3], b: [f64; 3], c: [f64; 3], d: [f64; 3]) -> f64 {
    let (u, v, w) = (minus(b, a), minus(c, b), minus(d, c));
    let far = cross(v, w);
    (dot(v, v).sqrt() * dot(u, far)).atan2(dot(cross(u, v), far))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_angles_with_their_sign() {
        // Seen along the middle bond (z), the near bond points along x and the far one is turned by theta; clockwise is negative y.
        for theta in [-3.1, -1.2, 0.0, 0.4, 2.9] {
            let far = [f64::cos(theta), -f64::sin(theta), 1.5];
            let found = dihedral([1.0, 0.0, -0.4], [0.0; 3], [0.0, 0.0, 1.1], far);
            // Looking from the first particle along the bond, +z points away: x to the right is seen with y downwards.
            assert!((found + theta).abs() < 1e-12, "{found} {theta}");
        }
    }

    /// mdtraj 1.11 and cgnet's own numbers for frame 0 of the alanine set are compared in the experiment; here a frame by hand.
    #[test]
    fn agrees_with_the_definition_of_blondel_and_karplus() {
        let (a, b, c, d) = (
            [0.1, 0.9, 0.0],
            [0.0, 0.0, 0.2],
            [1.2, 0.1, 0.1],
            [1.5, -0.3, 1.0],
        );
        let (f, g, h) = (minus(a, b), minus(b, c), minus(d, c));
        let (p, q) = (cross(f, g), cross(h, g));
        let size = (dot(p, p) * dot(q, q)).sqrt();
        let cos = dot(p, q) / size;
        let sin = dot(cross(q, p), g) / (size * dot(g, g).sqrt());
        assert!((dihedral(a, b, c, d) - sin.atan2(cos)).abs() < 1e-12);
    }
}
