//! `Scatter`: a cloud of points in a square field with axes, as an `<svg>` element.

use super::axis::Axis;
use super::colour::LINES;
use super::{push, square};

/// Points in the plane.
#[derive(Debug, Clone)]
pub struct Scatter<'a> {
    /// What the picture says, for those who cannot see it.
    pub alt: &'a str,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The points; those outside the axes are left out.
    pub points: &'a [(f64, f64)],
    /// Number of the colour.
    pub colour: usize,
}

/// More points than this only cover each other.
const MOST_POINTS: usize = 2500;

impl Scatter<'_> {
    /// The picture as an `<svg>` element, of the size of a heat map, so that both stand side by side.
    pub fn svg(&self) -> String {
        let mut svg = square::open(self.alt);
        let mut path = String::new();
        let inside = |place: &f64| (0.0..=1.0).contains(place);
        for (x, y) in self.points.iter().take(MOST_POINTS) {
            let places = (
                self.x.place(*x).filter(inside),
                self.y.place(*y).filter(inside),
            );
            if let (Some(x), Some(y)) = places {
                push(
                    &mut path,
                    format_args!(
                        "M{:.1} {:.1}h0",
                        square::LEFT + x * square::SIDE,
                        square::TOP + (1.0 - y) * square::SIDE
                    ),
                );
            }
        }
        push(
            &mut svg,
            format_args!(
                "<path class=\"dots\" stroke=\"{}\" d=\"{path}\"/>",
                LINES[self.colour % LINES.len()]
            ),
        );
        square::axes(&mut svg, &self.x, &self.y);
        svg.push_str("</svg>");
        svg
    }
}

/// The axis that holds all but the outermost of the values, with room around them.
pub fn axis_of(label: &str, values: impl Iterator<Item = f64>) -> Axis {
    let mut sorted: Vec<f64> = values.filter(|x| x.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return Axis::linear(label, 0.0, 1.0);
    }
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let (low, high) = (at(0.002), at(0.998));
    let margin = 0.12 * (high - low);
    Axis::linear(label, low - margin, high + margin)
}

#[cfg(test)]
mod tests {
    use super::super::well_formed::assert_well_formed;
    use super::*;

    #[test]
    fn points_inside_are_drawn_and_others_left_out() {
        let points = [(0.5, 0.25), (9.0, 0.5), (f64::NAN, 0.5)];
        let svg = Scatter {
            alt: "a <cloud>",
            x: Axis::linear("x1", 0.0, 1.0),
            y: Axis::linear("x2", 0.0, 1.0),
            points: &points,
            colour: 7,
        }
        .svg();
        assert_well_formed(&svg);
        assert_eq!(svg.matches("h0").count(), 1);
        assert!(svg.contains("&lt;cloud&gt;") && svg.contains(">x2<"));
    }

    #[test]
    fn the_axis_ignores_outliers() {
        let values = (0..1000).map(|i| f64::from(i) / 1000.0).chain([1e9]);
        let axis = axis_of("x", values);
        assert!(axis.place(1.0).unwrap() < 1.0 && axis.place(1.0).unwrap() > 0.8);
        assert!(axis_of("x", std::iter::empty()).place(0.5).is_some());
    }
}
