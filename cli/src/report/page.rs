//! `Page`: one HTML file with headings, text, tables and figures, and all it needs inside.

use super::escape;

/// A page in the making; parts appear in the order in which they are added.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    body: String,
}

/// A table; the first column names its rows.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// One heading per column.
    pub header: Vec<String>,
    /// One text per column; shorter rows are filled up with nothing.
    pub rows: Vec<Vec<String>>,
}

/// A picture with its caption.
#[derive(Debug, Clone)]
pub struct Figure {
    /// An `<svg>` element, as the pictures of this module give it.
    pub svg: String,
    /// What to see in it.
    pub caption: String,
}

/// The whole appearance. Colours follow the reader's choice of light or dark; tables scroll by themselves on narrow
/// screens.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--soft:#595959;--rule:#d0d0d0}\
@media (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#161616;--soft:#a8a8a8;--rule:#444}}\
*{box-sizing:border-box}\
body{margin:0 auto;padding:1rem;max-width:64rem;font:1rem/1.5 system-ui,sans-serif}\
body{color:var(--ink);background:var(--paper)}\
h1{font-size:1.6rem;line-height:1.2}h2{font-size:1.2rem;margin-top:2rem}\
.scroll{overflow-x:auto}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
caption{text-align:left;color:var(--soft);padding-bottom:.4rem}\
th,td{padding:.3rem .8rem;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}\
th:first-child{text-align:left;padding-left:0}\
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(17rem,100%),1fr));gap:1rem;margin:1.5rem 0}\
figure{margin:0}figcaption{color:var(--soft);font-size:.9rem}\
svg{width:100%;height:auto;max-width:36rem;font:13px system-ui,sans-serif;fill:var(--ink)}.heatmap{font-size:15px}\
.frame{fill:none;stroke:var(--soft)}.tick{stroke:var(--soft)}.grid{stroke:var(--rule)}\
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
pre{overflow-x:auto;padding:.8rem;border:1px solid var(--rule)}";

impl Page {
    /// An empty page; the title is its first heading too.
    pub fn new(title: &str) -> Self {
        Self {
            title: title.into(),
            body: String::new(),
        }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.element("h2", text)
    }

    /// A paragraph of plain text.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.element("p", text)
    }

    /// Text kept as it is: a command, a configuration.
    pub fn verbatim(&mut self, text: &str) -> &mut Self {
        self.element("pre", text)
    }

    fn element(&mut self, name: &str, text: &str) -> &mut Self {
        self.body += &format!("<{name}>{}</{name}>\n", escape(text));
        self
    }

    /// A table.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        let caption = escape(&table.caption);
        // A scrolling region must be reachable by keyboard and have a name.
        self.body += &format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table>"
        );
        self.body += &format!("<caption>{caption}</caption>\n<thead><tr>");
        for heading in &table.header {
            self.body += &format!("<th scope=\"col\">{}</th>", escape(heading));
        }
        self.body += "</tr></thead>\n<tbody>\n";
        for row in &table.rows {
            self.body += "<tr>";
            for column in 0..table.header.len().max(row.len()) {
                let text = escape(row.get(column).map_or("", String::as_str));
                self.body += &match column {
                    0 => format!("<th scope=\"row\">{text}</th>"),
                    _ => format!("<td>{text}</td>"),
                };
            }
            self.body += "</tr>\n";
        }
        self.body += "</tbody></table></div>\n";
        self
    }

    /// Pictures side by side, below each other where the screen is narrow.
    pub fn figures(&mut self, figures: &[Figure]) -> &mut Self {
        self.body += "<div class=\"figures\">\n";
        for Figure { svg, caption } in figures {
            self.body += &format!(
                "<figure>{svg}<figcaption>{}</figcaption></figure>\n",
                escape(caption)
            );
        }
        self.body += "</div>\n";
        self
    }

    /// The whole file.
    pub fn html(&self) -> String {
        let (title, body) = (escape(&self.title), &self.body);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::super::curve::{Curve, Series};
    use super::super::heatmap::Heatmap;
    use super::super::well_formed::assert_well_formed;
    use super::*;

    fn example() -> String {
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.to_string())
                .collect::<Vec<_>>()
        };
        let grid: Vec<f64> = (0..64 * 64)
            .map(|i| {
                (
                    f64::from(i % 64) / 10.0 - 2.0,
                    f64::from(i / 64) / 10.0 - 4.0,
                )
            })
            .map(|(x, y)| {
                (-x * x - y * y).exp() + 0.5 * (-(x - 2.5).powi(2) - (y + 1.0).powi(2)).exp()
            })
            .collect();
        let heatmap = Heatmap {
            alt: "a density with two modes",
            x: Axis::linear("x1", -2.0, 4.4),
            y: Axis::linear("x2", -4.0, 2.4),
            columns: 64,
            values: &grid,
            colour: Axis::linear("density", 0.0, 1.0),
        };
        let decay = |rate: f64| {
            (1..400)
                .map(|i| (f64::from(i), 140.0 * (-rate * f64::from(i)).exp() + 5.7))
                .collect()
        };
        let series = [
            Series {
                name: "DSM".into(),
                points: decay(0.003),
            },
            Series {
                name: "DSM + DiffCLF".into(),
                points: decay(0.03),
            },
        ];
        let curve = Curve {
            alt: "loss against steps",
            x_label: "step",
            y_label: "classification loss (nats)",
            x_logarithmic: false,
            y_logarithmic: true,
            series: &series,
        };
        let figure = |svg: String, caption: &str| Figure {
            svg,
            caption: caption.into(),
        };
        let mut page = Page::new("Two modes & <their> weights");
        page.paragraph("What was learned, beside the truth.")
            .heading("Figures of merit")
            .table(&Table {
                caption: "Mode weights".into(),
                header: texts(&["quantity", "truth", "DSM", "DSM + DiffCLF"]),
                rows: vec![
                    texts(&["weight of mode 1", "0.667", "0.512", "0.664"]),
                    texts(&["R²", "1", "<0"]),
                ],
            })
            .figures(&[
                figure(heatmap.svg(), "truth"),
                figure(heatmap.svg(), "DSM"),
                figure(heatmap.svg(), "DSM + DiffCLF"),
            ])
            .figures(&[figure(
                curve.svg(),
                "Both runs used the same number of score evaluations.",
            )])
            .verbatim("diffclf demo");
        page.html()
    }

    #[test]
    fn the_page_is_well_formed_and_accessible() {
        let html = example();
        assert_well_formed(&html);
        for part in [
            "lang=\"en\"",
            "<title>Two modes &amp; &lt;their&gt; weights</title>",
            "name=\"viewport\"",
            "scope=\"col\"",
            "scope=\"row\"",
            "<caption>",
            "role=\"img\"",
            "prefers-color-scheme",
        ] {
            assert!(html.contains(part), "{part} is missing");
        }
        // A short row is filled up.
        assert!(html.contains("<td>&lt;0</td><td></td></tr>"));
    }

    #[test]
    fn the_page_needs_nothing_from_outside() {
        let html = example().replace("http://www.w3.org/2000/svg", "");
        for part in ["http", "<script", "<link", "url(", "@import", "src="] {
            assert!(!html.contains(part), "{part} found");
        }
    }
}
