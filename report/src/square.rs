//! The square that heat maps and scatter plots share: its place in the drawing, frame, ticks and labels.

use super::axis::Axis;
use super::{escape, push};

/// The drawing, and the field within it; a colour bar may stand to its right.
pub const WIDTH: f64 = 448.0;
/// Height of the drawing.
pub const HEIGHT: f64 = 340.0;
/// Left edge of the field.
pub const LEFT: f64 = 62.0;
/// Upper edge of the field.
pub const TOP: f64 = 10.0;
/// Side of the field.
pub const SIDE: f64 = 280.0;

/// The beginning of an `<svg>` element of this size.
pub fn open(alt: &str) -> String {
    let alt = escape(alt);
    format!(
        "<svg class=\"heatmap\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{alt}\" xmlns=\"http://www.w3.org/2000/svg\">\
         <title>{alt}</title>"
    )
}

/// Frame, ticks and labels.
pub fn axes(svg: &mut String, x: &Axis, y: &Axis) {
    let bottom = TOP + SIDE;
    push(
        svg,
        format_args!(
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\"/>"
        ),
    );
    for (place, text) in places(x, 6) {
        let at = LEFT + place * SIDE;
        push(
            svg,
            format_args!(
                "<path class=\"tick\" d=\"M{at:.1} {bottom}v4\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 19.0
            ),
        );
    }
    for (place, text) in places(y, 6) {
        let at = bottom - place * SIDE;
        push(
            svg,
            format_args!(
                "<path class=\"tick\" d=\"M{LEFT} {at:.1}h-4\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 7.0,
                at + 5.0
            ),
        );
    }
    let (middle_x, middle_y) = (LEFT + SIDE / 2.0, TOP + SIDE / 2.0);
    push(
        svg,
        format_args!(
            "<text x=\"{middle_x}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(14 {middle_y}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 12.0,
            escape(&x.label),
            escape(&y.label)
        ),
    );
}

/// Tick places within the axis, with escaped texts.
pub fn places(axis: &Axis, wanted: usize) -> Vec<(f64, String)> {
    let ticks = axis.ticks(wanted).into_iter();
    ticks
        .filter_map(|(value, text)| Some((axis.place(value)?, escape(&text))))
        .collect()
}
