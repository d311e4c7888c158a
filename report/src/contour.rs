//! Lines of equal value on a grid (marching squares), as the path of an `<svg>` element.

use super::push;

/// A place in the picture.
type Point = (f64, f64);

/// The line at `level` through values at the centres of cells, `columns` to a row, the lowest row first; `place` takes a column and a row (counted
/// from 0, fractions between) to the picture. Cells that are not finite have no line beside them.
pub fn path(
    values: &[f64],
    columns: usize,
    level: f64,
    place: impl Fn(f64, f64) -> Point,
) -> String {
    let mut path = String::new();
    let rows = values.len().checked_div(columns).unwrap_or(0);
    for j in 1..rows {
        for i in 1..columns {
            let corner = |di: usize, dj: usize| values[(j - dj) * columns + i - di];
            // Around the square: lower left, lower right, upper right, upper left.
            let corners = [corner(1, 1), corner(0, 1), corner(0, 0), corner(1, 0)];
            if corners.iter().any(|v| !v.is_finite()) {
                continue;
            }
            let at = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)];
            let crossing = |k: usize| {
                let (a, b) = (corners[k], corners[(k + 1) % 4]);
                if (a < level) == (b < level) {
                    return None;
                }
                let share = (level - a) / (b - a);
                let (from, to) = (at[k], at[(k + 1) % 4]);
                let x = from.0 + share * (to.0 - from.0);
                let y = from.1 + share * (to.1 - from.1);
                Some(place((i - 1) as f64 + x, (j - 1) as f64 + y))
            };
            let found: Vec<Point> = (0..4).filter_map(crossing).collect();
            // Two crossings are a line; at a saddle there are four, which two lines join.
            for pair in found.chunks_exact(2) {
                let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
                push(
                    &mut path,
                    format_args!("M{x0:.1} {y0:.1}l{:.1} {:.1}", x1 - x0, y1 - y0),
                );
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_has_a_straight_line() {
        // v = x + 10 y on 3 x 2 points; 0.5 lies between the first two columns, near the lower row.
        let values = [0.0, 1.0, 2.0, 10.0, 11.0, 12.0];
        let path = path(&values, 3, 0.5, |x, y| (10.0 * x, 10.0 * y));
        // From (0.5, 0) to (0, 0.05).
        assert_eq!(path, "M5.0 0.0l-5.0 0.5");
    }

    #[test]
    fn lines_end_at_what_is_not_known() {
        let values = [0.0, 1.0, f64::NAN, 1.0];
        assert_eq!(path(&values, 2, 0.5, |x, y| (x, y)), "");
        assert_eq!(path(&[], 0, 0.5, |x, y| (x, y)), "");
        // A saddle has two lines.
        let saddle = path(&[0.0, 1.0, 1.0, 0.0], 2, 0.5, |x, y| (x, y));
        assert_eq!(saddle.matches('M').count(), 2);
    }
}
