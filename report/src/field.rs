//! `Field`: a coloured plane with dots on it, as a PNG picture with axes drawn around it.

use super::axis::Axis;
use super::heatmap::image;
use super::square::places;
use super::{escape, push};

/// Colours on a regular grid of cells.
#[derive(Debug, Clone)]
pub struct Field<'a> {
    /// What the picture says, for those who cannot see it.
    pub alt: &'a str,
    /// Horizontal axis, from edge to edge.
    pub x: Axis,
    /// Vertical axis, from edge to edge.
    pub y: Axis,
    /// Cells per row.
    pub columns: usize,
    /// Row after row, the lowest first.
    pub colours: &'a [[u8; 3]],
    /// Points and their colours.
    pub dots: &'a [([f64; 2], [u8; 3])],
}

const LEFT: f64 = 50.0;
const TOP: f64 = 10.0;
const WIDTH: f64 = 340.0;

impl Field<'_> {
    /// The picture as an `<svg>` element; cells are square.
    pub fn svg(&self) -> String {
        let rows = self.colours.len() / self.columns.max(1);
        let height = WIDTH * rows as f64 / self.columns.max(1) as f64;
        let (full_width, full_height) = (LEFT + WIDTH + 14.0, TOP + height + 46.0);
        let alt = escape(self.alt);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {full_width} {full_height:.1}\" role=\"img\" aria-label=\"{alt}\" \
             xmlns=\"http://www.w3.org/2000/svg\"><title>{alt}</title>"
        );
        let lines = self.colours.chunks_exact(self.columns.max(1)).rev();
        let bytes: Vec<u8> = lines.flatten().flatten().copied().collect();
        let encoded = encode(&bytes, self.columns, rows);
        image(&mut svg, encoded, (LEFT, TOP, WIDTH, height));
        for (point, [red, green, blue]) in self.dots {
            let (Some(x), Some(y)) = (self.x.place(point[0]), self.y.place(point[1])) else {
                continue;
            };
            if !(0.0..=1.0).contains(&x) || !(0.0..=1.0).contains(&y) {
                continue;
            }
            push(
                &mut svg,
                format_args!(
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.6\" fill=\"#{red:02x}{green:02x}{blue:02x}\" stroke=\"#000\" \
                     stroke-width=\".3\"/>",
                    LEFT + x * WIDTH,
                    TOP + (1.0 - y) * height
                ),
            );
        }
        push(
            &mut svg,
            format_args!(
                "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{height:.1}\"/>"
            ),
        );
        let bottom = TOP + height;
        for (place, text) in places(&self.x, 6) {
            let x = LEFT + place * WIDTH;
            push(
                &mut svg,
                format_args!(
                    "<path class=\"tick\" d=\"M{x:.1} {bottom:.1}v4\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
                     text-anchor=\"middle\">{text}</text>",
                    bottom + 17.0
                ),
            );
        }
        for (place, text) in places(&self.y, 4) {
            let y = bottom - place * height;
            push(
                &mut svg,
                format_args!(
                    "<path class=\"tick\" d=\"M{LEFT} {y:.1}h-4\"/><text x=\"{}\" y=\"{:.1}\" \
                     text-anchor=\"end\">{text}</text>",
                    LEFT - 7.0,
                    y + 4.0
                ),
            );
        }
        push(
            &mut svg,
            format_args!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                LEFT + WIDTH / 2.0,
                full_height - 10.0,
                escape(&self.x.label)
            ),
        );
        push(
            &mut svg,
            format_args!(
                "<text transform=\"translate(13 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text></svg>",
                TOP + height / 2.0,
                escape(&self.y.label)
            ),
        );
        svg
    }
}

fn encode(bytes: &[u8], columns: usize, rows: usize) -> Result<Vec<u8>, png::EncodingError> {
    let size =
        |length: usize| u32::try_from(length).map_err(|_| png::EncodingError::LimitsExceeded);
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, size(columns)?, size(rows)?);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(bytes)?;
    writer.finish()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::well_formed::assert_well_formed;
    use super::*;

    #[test]
    fn dots_inside_the_frame_are_drawn_and_others_are_not() {
        let colours = [[1, 2, 3], [4, 5, 6]];
        let field = |dots: &[([f64; 2], [u8; 3])]| {
            Field {
                alt: "two <cells>",
                x: Axis::linear("x1", 0.0, 2.0),
                y: Axis::linear("x2", 0.0, 1.0),
                columns: 2,
                colours: &colours,
                dots,
            }
            .svg()
        };
        let svg = field(&[([0.5, 0.5], [255, 0, 16]), ([3.0, 0.5], [0; 3])]);
        assert_well_formed(&svg);
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(svg.contains("#ff0010") && svg.contains("data:image/png"));
        assert_well_formed(&field(&[]));
    }
}
