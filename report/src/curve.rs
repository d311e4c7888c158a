//! `Curve`: lines over a common horizontal axis, with ticks and a legend, as an `<svg>` element.

use super::axis::Axis;
use super::colour::{DASHES, LINES};
use super::{escape, push};

/// One line.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points from left to right. Those without a place on the axes leave a gap.
    pub points: Vec<(f64, f64)>,
}

/// A plot of several lines.
#[derive(Debug, Clone)]
pub struct Curve<'a> {
    /// What the picture says, for those who cannot see it.
    pub alt: &'a str,
    /// Label of the horizontal axis.
    pub x_label: &'a str,
    /// Label of the vertical axis.
    pub y_label: &'a str,
    /// Whether the horizontal axis is logarithmic.
    pub x_logarithmic: bool,
    /// Whether the vertical axis is logarithmic.
    pub y_logarithmic: bool,
    /// The lines; colours repeat after six.
    pub series: &'a [Series],
}

const WIDTH: f64 = 520.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const FIELD: f64 = 250.0;
/// Height of one line of the legend, which stands below the plot.
const LEGEND: f64 = 18.0;
/// More points than this are thinned: the eye sees no more, and the page stays small.
const MOST_POINTS: usize = 1200;

impl Curve<'_> {
    /// The picture as an `<svg>` element.
    pub fn svg(&self) -> String {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let x = Axis::around(self.x_label, all().map(|point| point.0), self.x_logarithmic);
        let y = Axis::around(self.y_label, all().map(|point| point.1), self.y_logarithmic);
        let (bottom, field_width) = (TOP + FIELD, WIDTH - LEFT - RIGHT);
        let height = bottom + 46.0 + LEGEND * self.series.len() as f64;
        let alt = escape(self.alt);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{alt}\" xmlns=\"http://www.w3.org/2000/svg\">\
             <title>{alt}</title>"
        );
        for (value, text) in x.ticks(6) {
            let Some(place) = x.place(value) else {
                continue;
            };
            let at = LEFT + place * field_width;
            push(
                &mut svg,
                format_args!("<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>"),
            );
            push(
                &mut svg,
                format_args!(
                    "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    bottom + 16.0,
                    escape(&text)
                ),
            );
        }
        for (value, text) in y.ticks(5) {
            let Some(place) = y.place(value) else {
                continue;
            };
            let at = bottom - place * FIELD;
            push(
                &mut svg,
                format_args!(
                    "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{}\"/>",
                    WIDTH - RIGHT
                ),
            );
            push(
                &mut svg,
                format_args!(
                    "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    LEFT - 6.0,
                    at + 4.0,
                    escape(&text)
                ),
            );
        }
        push(
            &mut svg,
            format_args!(
                "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{field_width}\" height=\"{FIELD}\"/>"
            ),
        );
        for (number, series) in self.series.iter().enumerate() {
            let style = format!(
                "stroke=\"{}\" stroke-dasharray=\"{}\"",
                LINES[number % LINES.len()],
                DASHES[number % DASHES.len()]
            );
            let place = |&(px, py): &(f64, f64)| {
                Some((
                    LEFT + x.place(px)? * field_width,
                    bottom - y.place(py)? * FIELD,
                ))
            };
            let places: Vec<_> = series.points.iter().map(place).collect();
            let path = path(&thin(&places));
            push(
                &mut svg,
                format_args!("<path class=\"line\" {style} d=\"{path}\"/>"),
            );
            let at = bottom + 52.0 + LEGEND * number as f64;
            push(
                &mut svg,
                format_args!(
                    "<path class=\"line\" {style} d=\"M{LEFT} {}h28\"/>",
                    at - 4.0
                ),
            );
            push(
                &mut svg,
                format_args!(
                    "<text x=\"{}\" y=\"{at}\">{}</text>",
                    LEFT + 36.0,
                    escape(&series.name)
                ),
            );
        }
        let (middle_x, middle_y) = (LEFT + field_width / 2.0, TOP + FIELD / 2.0);
        push(
            &mut svg,
            format_args!(
                "<text x=\"{middle_x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 33.0,
                escape(&x.label)
            ),
        );
        push(
            &mut svg,
            format_args!(
                "<text transform=\"translate(13 {middle_y}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
                escape(&y.label)
            ),
        );
        svg.push_str("</svg>");
        svg
    }
}

/// A point's place in the drawing, or a gap.
type Place = Option<(f64, f64)>;

/// Keeps the lowest and the highest point of each stretch, so that no spike is lost.
fn thin(places: &[Place]) -> Vec<Place> {
    if places.len() <= MOST_POINTS {
        return places.to_vec();
    }
    let stretch = places.len().div_ceil(MOST_POINTS / 2);
    let height = |i: &usize| places[*i].map_or(f64::NAN, |(_, y)| y);
    let mut kept = Vec::with_capacity(MOST_POINTS);
    for start in (0..places.len()).step_by(stretch) {
        let indices =
            || (start..(start + stretch).min(places.len())).filter(|&i| places[i].is_some());
        let lowest = indices().min_by(|a, b| height(a).total_cmp(&height(b)));
        let highest = indices().max_by(|a, b| height(a).total_cmp(&height(b)));
        match (lowest, highest) {
            (Some(a), Some(b)) if a == b => kept.push(places[a]),
            (Some(a), Some(b)) => kept.extend([places[a.min(b)], places[a.max(b)]]),
            _ => kept.push(None),
        }
    }
    kept
}

/// The line as a path, lifted at gaps. A point alone between gaps becomes a dot.
fn path(places: &[Place]) -> String {
    let mut text = String::new();
    for run in places.split(Option::is_none).filter(|run| !run.is_empty()) {
        for (i, (x, y)) in run.iter().flatten().enumerate() {
            push(
                &mut text,
                format_args!("{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' }),
            );
        }
        if run.len() == 1 {
            text.push_str("h0.1");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::well_formed::assert_well_formed;
    use super::*;

    fn plot(series: &[Series], logarithmic: bool) -> String {
        let curve = Curve {
            alt: "loss & co",
            x_label: "step",
            y_label: "loss <nats>",
            x_logarithmic: false,
            y_logarithmic: logarithmic,
            series,
        };
        let svg = curve.svg();
        assert_well_formed(&svg);
        svg
    }

    fn line(name: &str, points: &[(f64, f64)]) -> Series {
        Series {
            name: name.into(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn lines_labels_and_legend_are_there() {
        let svg = plot(
            &[
                line("a<b", &[(0.0, 0.0), (10.0, 5.0)]),
                line("c", &[(0.0, 5.0), (10.0, 0.0)]),
            ],
            false,
        );
        for part in [
            "a&lt;b",
            ">c<",
            "loss &lt;nats&gt;",
            ">step<",
            LINES[0],
            LINES[1],
            "loss &amp; co",
        ] {
            assert!(svg.contains(part), "{part} is missing");
        }
        // From the lower left to the upper right corner of the field.
        assert!(svg.contains("d=\"M80.0 262.0L506.0 12.0\""), "{svg}");
    }

    #[test]
    fn numbers_without_a_place_leave_gaps() {
        let points = [
            (0.0, 1.0),
            (1.0, 2.0),
            (2.0, f64::NAN),
            (3.0, 4.0),
            (4.0, f64::INFINITY),
            (5.0, 1.0),
            (6.0, 2.0),
        ];
        let svg = plot(&[line("x", &points)], false);
        let path = svg.split("class=\"line\"").nth(1).unwrap();
        assert_eq!(path.split("/>").next().unwrap().matches('M').count(), 3);
        assert!(path.contains("h0.1"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        plot(
            &[line(
                "x",
                &[(0.0, -1.0), (1.0, 10.0), (2.0, 0.0), (3.0, 1000.0)],
            )],
            true,
        );
    }

    #[test]
    fn nothing_to_draw_is_still_a_picture() {
        plot(&[], false);
        plot(&[line("x", &[])], true);
        plot(&[line("x", &[(1.0, 1.0)])], false);
        plot(&[line("x", &[(f64::NAN, f64::NAN)])], false);
    }

    #[test]
    fn long_lines_are_thinned_and_keep_their_spikes() {
        let mut points: Vec<_> = (0..100_000).map(|i| (f64::from(i), 1.0)).collect();
        points[56_789].1 = 100.0;
        let svg = plot(&[line("x", &points)], false);
        assert!(svg.len() < 40_000, "{}", svg.len());
        assert!(svg.contains(" 12.0L"), "the spike reaches the top");
    }
}
