//! Self-contained HTML reports: one file, nothing fetched, light and dark, readable on a phone and on paper. The only script
//! moves a slider; without it all frames are there, one below the other.
//!
//! [`page`] holds text, tables and figures; [`heatmap`] draws a density on a grid; [`scatter`] draws
//! points; [`field`] a plane of colours with dots; [`curve`] draws lines; [`axis`], [`square`] and [`colour`] are what the pictures
//! share. Everything is a pure function from values to text.

pub mod annealing;
pub mod axis;
pub mod colour;
pub mod comparison;
pub mod contour;
pub mod curve;
pub mod evaluation;
pub mod facts;
pub mod field;
pub mod free_energy;
pub mod heatmap;
pub mod matrix;
pub mod observation;
pub mod page;
pub mod run;
pub mod scatter;
pub mod selftest;
pub mod square;
pub mod text;
pub mod verdict;

/// Text made safe for HTML and SVG, inside elements and quoted attributes alike.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Control characters are not allowed in either language.
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// A picture of a page as a file of its own: with the colours that the page's style gives it, on white.
pub fn standalone(svg: &str) -> String {
    const STYLE: &str = "<style>text{font:13px system-ui,sans-serif;fill:#1a1a1a}.frame{fill:none;stroke:#595959}\
        .tick{stroke:#595959}.grid{stroke:#d0d0d0}.line{fill:none;stroke-width:2;stroke-linejoin:round;\
        stroke-linecap:round}.dots{fill:none;stroke-width:2.4;stroke-linecap:round;stroke-opacity:.6}.contour{fill:none;stroke:#fff;stroke-opacity:.7}</style>\
        <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
    match svg.split_once('>') {
        Some((start, rest)) => format!("{start}>{STYLE}{rest}\n"),
        None => svg.to_string(),
    }
}

/// Appends formatted text; writing to a `String` cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = std::fmt::Write::write_fmt(text, arguments);
}

#[cfg(test)]
pub mod well_formed;

#[cfg(test)]
mod tests {
    #[test]
    fn markup_in_text_is_disarmed() {
        assert_eq!(
            super::escape("a<b & \"c\"='d'\0"),
            "a&lt;b &amp; &quot;c&quot;=&#39;d&#39;\u{fffd}"
        );
    }
}
