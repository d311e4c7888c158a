//! `Matrix`: a square table of shares, each cell sharp, coloured, and with its number in it where there is room.

use super::colour::viridis;
use super::{escape, push};

/// Shares between 0 and 1.
#[derive(Debug, Clone)]
pub struct Matrix<'a> {
    /// What the picture says, for those who cannot see it.
    pub alt: &'a str,
    /// What rows and columns are.
    pub label: &'a str,
    /// Names of rows and columns.
    pub names: &'a [String],
    /// Row after row, the first on top.
    pub values: &'a [f64],
}

/// Most rows whose cells have their numbers in them.
const NUMBERED: usize = 12;
/// Side of the field.
const SIDE: f64 = 380.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 52.0;

impl Matrix<'_> {
    /// The picture as an `<svg>` element.
    pub fn svg(&self) -> String {
        let size = self.names.len().max(1);
        let cell = SIDE / size as f64;
        let (alt, width, height) = (escape(self.alt), LEFT + SIDE + 8.0, TOP + SIDE + 8.0);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{alt}\" xmlns=\"http://www.w3.org/2000/svg\">\
             <title>{alt}</title>"
        );
        for (k, value) in self.values.iter().enumerate().take(size * size) {
            let (x, y) = (
                LEFT + cell * (k % size) as f64,
                TOP + cell * (k / size) as f64,
            );
            let share = if value.is_finite() {
                value.clamp(0.0, 1.0)
            } else {
                0.0
            };
            let [red, green, blue] = viridis((255.0 * share).round() as u8);
            push(
                &mut svg,
                format_args!(
                    "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"#{red:02x}{green:02x}{blue:02x}\"/>",
                    cell + 0.3,
                    cell + 0.3
                ),
            );
            if size <= NUMBERED {
                let ink = if light([red, green, blue]) > 0.18 {
                    "#000"
                } else {
                    "#fff"
                };
                push(
                    &mut svg,
                    format_args!(
                        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"fill:{ink};font-size:{:.0}px\" \
                         data-behind=\"rgb({red}, {green}, {blue})\">{}</text>",
                        x + cell / 2.0,
                        y + cell / 2.0 + 4.0,
                        (0.36 * cell).clamp(9.0, 15.0),
                        shown(*value)
                    ),
                );
            }
        }
        push(
            &mut svg,
            format_args!(
                "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\"/>"
            ),
        );
        let every = size.div_ceil(20);
        for (k, name) in self.names.iter().enumerate().step_by(every) {
            let at = cell * (k as f64 + 0.5);
            let name = escape(name);
            push(
                &mut svg,
                format_args!(
                    "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>\
                     <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                    LEFT + at,
                    TOP - 7.0,
                    LEFT - 7.0,
                    TOP + at + 4.0
                ),
            );
        }
        let label = escape(self.label);
        push(
            &mut svg,
            format_args!(
                "<text x=\"{}\" y=\"18\" text-anchor=\"middle\">{label}</text>\
                 <text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{label}</text></svg>",
                LEFT + SIDE / 2.0,
                TOP + SIDE / 2.0
            ),
        );
        svg
    }
}

/// Two digits; what is not zero does not look like zero.
fn shown(value: f64) -> String {
    if value.is_nan() {
        "?".into()
    } else if value > 0.0 && value < 0.005 {
        "&lt;.01".into()
    } else {
        format!("{value:.2}")
    }
}

/// Relative luminance (WCAG 2).
fn light(colour: [u8; 3]) -> f64 {
    let linear = |v: u8| {
        let v = f64::from(v) / 255.0;
        if v <= 0.03928 {
            v / 12.92
        } else {
            ((v + 0.055) / 1.055).powf(2.4)
        }
    };
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::super::well_formed::assert_well_formed;
    use super::*;

    fn svg(size: usize) -> String {
        let names: Vec<String> = (0..size).map(|k| format!("{}", k + 2)).collect();
        let values: Vec<f64> = (0..size * size)
            .map(|k| if k % size == k / size { 0.75 } else { 0.001 })
            .collect();
        Matrix {
            alt: "shares of <states>",
            label: "state",
            names: &names,
            values: &values,
        }
        .svg()
    }

    #[test]
    fn small_ones_have_numbers_and_all_have_names() {
        let small = svg(3);
        assert_well_formed(&small);
        assert_eq!(small.matches(">0.75<").count(), 3);
        assert_eq!(small.matches(">&lt;.01<").count(), 6);
        assert!(small.contains(">4<") && !small.contains(">0<"));
        let large = svg(30);
        assert_well_formed(&large);
        assert_eq!(large.matches("<rect").count(), 901);
        assert!(!large.contains("0.75"));
    }

    #[test]
    fn numbers_can_be_read_on_every_colour() {
        for step in 0..=255 {
            let behind = light(viridis(step));
            let ink = if behind > 0.18 { 0.0 } else { 1.0 };
            let (a, b) = if ink > behind {
                (ink, behind)
            } else {
                (behind, ink)
            };
            assert!((a + 0.05) / (b + 0.05) >= 4.5, "{step}");
        }
    }
}
