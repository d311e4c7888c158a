//! `Heatmap`: a density on a two-dimensional grid, as a PNG picture with axes and a colour bar drawn around it.

use super::axis::Axis;
use super::colour::viridis;
use super::contour;
use super::square::{self, LEFT, SIDE, TOP, WIDTH, places};
use super::{escape, push};
use base64::Engine;

/// Values on a regular grid of cells.
#[derive(Debug, Clone)]
pub struct Heatmap<'a> {
    /// What the picture says, for those who cannot see it.
    pub alt: &'a str,
    /// Horizontal axis, from the left edge of the first column to the right edge of the last.
    pub x: Axis,
    /// Vertical axis, from the lower edge of the first row to the upper edge of the last.
    pub y: Axis,
    /// Cells per row.
    pub columns: usize,
    /// Row after row, the lowest first. Cells that are not finite stay transparent; a last row that is not full is
    /// left out.
    pub values: &'a [f64],
    /// The axis of the colours: its low end is dark. Pictures to be compared share one.
    pub colour: Axis,
    /// Values at which lines are drawn.
    pub contours: &'a [f64],
}

/// Left edge of the colour bar, to the right of the field.
const BAR: f64 = LEFT + SIDE + 14.0;

/// Palette number of transparent cells.
const NOTHING: u8 = 255;

impl Heatmap<'_> {
    /// The picture as an `<svg>` element.
    pub fn svg(&self) -> String {
        let mut svg = square::open(self.alt);
        let rows = self.values.len() / self.columns.max(1);
        if self.columns > 0 && rows > 0 {
            let field = png(&self.cells(), self.columns);
            image(&mut svg, field, (LEFT, TOP, SIDE, SIDE));
        }
        let lines = self.lines();
        if !lines.is_empty() {
            push(
                &mut svg,
                format_args!("<path class=\"contour\" d=\"{lines}\"/>"),
            );
        }
        let bar: Vec<u8> = (0..NOTHING).rev().collect();
        image(&mut svg, png(&bar, 1), (BAR, TOP, 12.0, SIDE));
        push(
            &mut svg,
            format_args!(
                "<rect class=\"frame\" x=\"{BAR}\" y=\"{TOP}\" width=\"12\" height=\"{SIDE}\"/>"
            ),
        );
        square::axes(&mut svg, &self.x, &self.y);
        let bottom = TOP + SIDE;
        for (place, text) in places(&self.colour, 5) {
            let y = bottom - place * SIDE;
            push(
                &mut svg,
                format_args!("<path class=\"tick\" d=\"M{} {y:.1}h4\"/>", BAR + 12.0),
            );
            push(
                &mut svg,
                format_args!(
                    "<text x=\"{}\" y=\"{:.1}\">{text}</text>",
                    BAR + 18.0,
                    y + 5.0
                ),
            );
        }
        push(
            &mut svg,
            format_args!(
                "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
                WIDTH - 6.0,
                TOP + SIDE / 2.0,
                escape(&self.colour.label)
            ),
        );
        svg.push_str("</svg>");
        svg
    }

    /// The lines of all levels; of fine grids every other cell is enough for them.
    fn lines(&self) -> String {
        let columns = self.columns;
        let rows = self.values.len().checked_div(columns).unwrap_or(0);
        let stride = if columns > 64 { 2 } else { 1 };
        let (few, lines) = (columns.div_ceil(stride), rows.div_ceil(stride));
        let values: Vec<f64> = (0..few * lines)
            .map(|k| self.values[k / few * stride * columns + k % few * stride])
            .collect();
        let at = |k: f64, all: usize| (k * stride as f64 + 0.5) / all as f64;
        let place = |x: f64, y: f64| {
            (
                LEFT + at(x, columns) * SIDE,
                TOP + (1.0 - at(y, rows)) * SIDE,
            )
        };
        let line = |level: &f64| contour::path(&values, few, *level, place);
        self.contours.iter().map(line).collect()
    }

    /// The field alone as a PNG file, one pixel per cell.
    pub fn png(&self) -> Option<Vec<u8>> {
        if self.columns == 0 || self.values.len() < self.columns {
            return None;
        }
        png(&self.cells(), self.columns).ok()
    }

    /// Palette numbers, the upper line first, as a picture wants them.
    fn cells(&self) -> Vec<u8> {
        let lines = self.values.chunks_exact(self.columns).rev();
        lines
            .flatten()
            .map(|value| self.palette_number(*value))
            .collect()
    }

    fn palette_number(&self, value: f64) -> u8 {
        // Infinitely deep valleys of a log-density are dark, not absent.
        let value = if value == f64::NEG_INFINITY {
            f64::MIN
        } else {
            value
        };
        let place = self.colour.place(value);
        place.map_or(NOTHING, |place| {
            (place.clamp(0.0, 1.0) * f64::from(NOTHING - 1)).round() as u8
        })
    }
}

/// An `<image>` element that holds its own PNG.
pub(super) fn image(
    svg: &mut String,
    png: Result<Vec<u8>, png::EncodingError>,
    (x, y, width, height): (f64, f64, f64, f64),
) {
    // Cell and picture sizes come from one slice, so the encoder has nothing to object to; without it the frame is
    // empty.
    let Ok(png) = png else { return };
    let data = base64::engine::general_purpose::STANDARD.encode(png);
    push(
        svg,
        format_args!(
            "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
             href=\"data:image/png;base64,{data}\"/>"
        ),
    );
}

/// An indexed PNG in viridis: 255 steps and one transparent entry, one byte per cell.
fn png(cells: &[u8], columns: usize) -> Result<Vec<u8>, png::EncodingError> {
    let size =
        |length: usize| u32::try_from(length).map_err(|_| png::EncodingError::LimitsExceeded);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(
        &mut bytes,
        size(columns)?,
        size(cells.len() / columns.max(1))?,
    );
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    // The 255 visible entries run over the whole map: entry i is step i * 255 / 254.
    let palette = (0..NOTHING).map(|i| viridis((f64::from(i) * 255.0 / 254.0).round() as u8));
    encoder.set_palette(palette.chain([[0; 3]]).flatten().collect::<Vec<_>>());
    encoder.set_trns([[255; NOTHING as usize].as_slice(), &[0]].concat());
    let mut writer = encoder.write_header()?;
    writer.write_image_data(cells)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::well_formed::assert_well_formed;
    use super::*;

    fn example(values: &[f64], columns: usize) -> String {
        let heatmap = Heatmap {
            alt: "a density <with> \"signs\"",
            x: Axis::linear("x1", -3.0, 3.0),
            y: Axis::linear("x2 & more", -2.0, 2.0),
            columns,
            values,
            colour: Axis::linear("density", 0.0, 4.0),
            contours: &[1.5],
        };
        heatmap.svg()
    }

    /// Colours of the first picture, line by line from above; `None` is transparent.
    fn decode(svg: &str) -> (u32, Vec<Option<[u8; 3]>>) {
        let data = svg
            .split("base64,")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        let mut cells = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut cells).unwrap();
        let palette = reader.info().palette.clone().unwrap();
        let transparent = reader.info().trns.clone().unwrap();
        let colour = |cell: &u8| {
            let i = usize::from(*cell);
            (transparent[i] != 0).then(|| [palette[3 * i], palette[3 * i + 1], palette[3 * i + 2]])
        };
        (info.width, cells.iter().map(colour).collect())
    }

    #[test]
    fn the_picture_decodes_back_with_its_upper_line_first() {
        let svg = example(&[0.0, 1.0, 4.0, 9.0, f64::NAN, f64::NEG_INFINITY], 3);
        assert_well_formed(&svg);
        let (width, colours) = decode(&svg);
        let (dark, bright) = (Some(viridis(0)), Some(viridis(255)));
        assert_eq!(width, 3);
        assert_eq!(colours[..3], [bright, None, dark]);
        assert_eq!((colours[3], colours[5]), (dark, bright));
        assert!(colours[4].is_some() && colours[4] != dark && colours[4] != bright);
    }

    #[test]
    fn labels_ticks_and_alternative_text_are_there() {
        let svg = example(&[1.0; 6], 2);
        for part in [
            "role=\"img\"",
            "&lt;with&gt;",
            "x2 &amp; more",
            ">−3<",
            ">density<",
            "<title>",
        ] {
            assert!(svg.contains(part), "{part} is missing");
        }
    }

    #[test]
    fn an_empty_grid_is_an_empty_frame() {
        assert_well_formed(&example(&[], 0));
        assert_well_formed(&example(&[], 3));
        assert_well_formed(&example(&[1.0], 3));
    }
}
