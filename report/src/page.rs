//! `Page`: one HTML file with headings, text, tables and figures, and all it needs inside.

use super::escape;

/// A page in the making; parts appear in the order in which they are added.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    body: String,
    /// There is a slider to move.
    film: bool,
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

/// A verdict with its words.
#[derive(Debug, Clone)]
pub struct Notice {
    /// pass, warn, fail or skipped.
    pub mark: String,
    /// What it is about.
    pub title: String,
    /// Paragraphs; the last is set small.
    pub texts: Vec<String>,
}

/// One moment of a film.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Its name, such as `t = 0.1`.
    pub name: String,
    /// Pictures side by side.
    pub figures: Vec<Figure>,
}

/// The whole appearance. Colours follow the reader's choice of light or dark; tables scroll by themselves on narrow
/// screens; on paper all frames of a film are printed.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c1d21;--paper:#fff;--soft:#575a63;--rule:#d8dae0;--card:#f5f6f8;--accent:#005a8f;\
--pass:#176b3a;--warn:#8a5a00;--fail:#b3261e;--skipped:#575a63}\
@media (prefers-color-scheme:dark){:root{--ink:#e7e8ec;--paper:#141519;--soft:#a9adb8;--rule:#3a3d46;--card:#1d1f25;--accent:#7cc0ec;\
--pass:#6cc890;--warn:#e0b050;--fail:#ff8a80;--skipped:#a9adb8}}\
*{box-sizing:border-box}\
body{margin:0 auto;padding:1rem clamp(1rem,4vw,2.5rem) 3rem;max-width:70rem;font:1rem/1.55 system-ui,sans-serif}\
body{color:var(--ink);background:var(--paper);overflow-wrap:break-word}\
h1{font-size:1.75rem;line-height:1.2;margin:1rem 0 .3rem}\
h2{font-size:1.25rem;margin:2.4rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule)}\
h3{font-size:1rem;margin:0}\
p{max-width:46rem}.lead{color:var(--soft);margin:.2rem 0 1rem}\
.scroll{overflow-x:auto}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
caption{text-align:left;color:var(--soft);padding-bottom:.4rem}\
th,td{padding:.3rem .8rem;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}\
th:first-child{text-align:left;padding-left:0}.facts td{text-align:left;white-space:normal}\
@media (max-width:40rem){.stacked table,.stacked tbody,.stacked tr,.stacked td,.stacked caption{display:block}.stacked thead{display:none}\
.stacked tr{padding:.5rem 0;border-bottom:1px solid var(--rule)}.stacked tbody th{display:block;border:0;padding:.1rem 0;white-space:normal}\
.stacked td{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem 0 .1rem .8rem;white-space:normal}\
.stacked td::before{content:attr(data-label);color:var(--soft);text-align:left}.stacked td:empty{display:none}}\
.facts th{white-space:normal;vertical-align:top}.facts td,.facts th{overflow-wrap:anywhere}\
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(17rem,100%),1fr));gap:1rem;margin:1.2rem 0}\
.wide{grid-template-columns:repeat(auto-fit,minmax(min(24rem,100%),1fr));gap:1.5rem}figure{margin:0;min-width:0}figcaption{color:var(--soft);font-size:.9rem}\
svg{display:block;width:100%;height:auto;max-width:36rem;font:13px system-ui,sans-serif;fill:var(--ink)}.heatmap{font-size:15px}\
.frame{fill:none;stroke:var(--soft)}.contour{fill:none;stroke:#fff;stroke-opacity:.7}.tick{stroke:var(--soft)}.grid{stroke:var(--rule)}\
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
.dots{fill:none;stroke-width:2.4;stroke-linecap:round;stroke-opacity:.6}@media (prefers-color-scheme:dark){.dots,.line{filter:brightness(1.35)}.dots{stroke-opacity:.9}}\
pre{overflow-x:auto;padding:.8rem 1rem;border:1px solid var(--rule);border-radius:.4rem;background:var(--card);font-size:.85rem}\
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.8rem;margin:1rem 0;padding:0;list-style:none}\
.cards li{padding:.7rem .9rem;border:1px solid var(--rule);border-radius:.5rem;background:var(--card)}\
.cards span{display:block;color:var(--soft);font-size:.85rem}.cards b{font-size:1.25rem;line-height:1.3}\
.notices{list-style:none;margin:1rem 0;padding:0;display:grid;gap:.7rem}\
.notices li{padding:.6rem .9rem;border-left:.3rem solid var(--mark);background:var(--card);border-radius:0 .4rem .4rem 0}\
.notices p{margin:.2rem 0}.notices p:last-child{color:var(--soft);font-size:.85rem}\
.mark{color:var(--mark);font-weight:700;text-transform:uppercase;letter-spacing:.04em}.mark small{font-size:.8rem}\
.pass{--mark:var(--pass)}.warn{--mark:var(--warn)}.fail{--mark:var(--fail)}.skipped{--mark:var(--skipped)}\
.film{margin:1rem 0}.control{display:flex;flex-wrap:wrap;gap:.4rem 1rem;align-items:center;padding:.6rem .9rem;border:1px solid var(--rule);\
border-radius:.5rem;background:var(--card)}.control[hidden]{display:none}\
.control input{flex:1 1 12rem;min-width:8rem;height:2rem;accent-color:var(--accent)}\
.control output{min-width:8rem;font-weight:600;font-variant-numeric:tabular-nums}\
.shot>h3{margin-top:1rem}.live .shot{display:none}.live .shot.now{display:block}.live .shot>h3{display:none}\
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}\
details>summary{cursor:pointer;font-weight:600;padding:.3rem 0}\
footer{margin-top:3rem;color:var(--soft);font-size:.9rem}\
@media print{:root{--ink:#000;--paper:#fff;--soft:#444;--rule:#bbb;--card:#fff;color-scheme:light}body{max-width:none;padding:0;font-size:10pt}\
.control{display:none!important}.film{display:grid;grid-template-columns:1fr 1fr;gap:.5rem}.live .shot,.shot{display:block!important}\
.live .shot>h3,.shot>h3{display:block!important;margin:0}.shot .figures{grid-template-columns:repeat(auto-fit,minmax(2.4cm,1fr));margin:.2rem 0;gap:.2rem}\
.shot figcaption{display:none}.shot,figure,.notices li,tr{break-inside:avoid}h2{break-after:avoid}pre{white-space:pre-wrap}}";

/// Moves the slider of every film. Without it the frames stand below each other, each with its name.
const SCRIPT: &str = "\
document.querySelectorAll('.film').forEach(function(film){\
var shots=film.querySelectorAll('.shot'),control=film.querySelector('.control'),\
range=control.querySelector('input'),text=control.querySelector('output');\
function show(){shots.forEach(function(shot,k){shot.classList.toggle('now',k===Number(range.value))});\
var name=shots[Number(range.value)].dataset.name;text.textContent=name;range.setAttribute('aria-valuetext',name)}\
range.addEventListener('input',show);film.classList.add('live');control.hidden=false;show()});";

impl Page {
    /// An empty page; the title is its first heading too.
    pub fn new(title: &str) -> Self {
        Self {
            title: title.into(),
            body: String::new(),
            film: false,
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

    /// What the page is about, below its title.
    pub fn lead(&mut self, text: &str) -> &mut Self {
        self.body += &format!("<p class=\"lead\">{}</p>\n", escape(text));
        self
    }

    /// The few figures that matter most: name, value, and the mark of a verdict if it is one.
    pub fn cards(&mut self, cards: &[(&str, String, Option<&str>)]) -> &mut Self {
        self.body += "<ul class=\"cards\">\n";
        for (name, value, mark) in cards {
            let class = mark.map_or(String::new(), |mark| {
                format!(" class=\"mark {}\"", escape(mark))
            });
            self.body += &format!(
                "<li><span>{}</span><b{class}>{}</b></li>\n",
                escape(name),
                escape(value)
            );
        }
        self.body += "</ul>\n";
        self
    }

    /// Verdicts with their words.
    pub fn notices(&mut self, notices: &[Notice]) -> &mut Self {
        self.body += "<ul class=\"notices\">\n";
        for notice in notices {
            let mark = escape(&notice.mark);
            self.body += &format!(
                "<li class=\"{mark}\"><h3><span class=\"mark\"><small>{mark}</small></span> {}</h3>",
                escape(&notice.title)
            );
            for text in &notice.texts {
                self.body += &format!("<p>{}</p>", escape(text));
            }
            self.body += "</li>\n";
        }
        self.body += "</ul>\n";
        self
    }

    /// Frames behind a slider; below each other without a script, and all of them on paper.
    pub fn film(&mut self, label: &str, frames: &[Frame]) -> &mut Self {
        self.film = true;
        let label = escape(label);
        let last = frames.len().saturating_sub(1);
        self.body += &format!(
            "<div class=\"film\" role=\"group\" aria-label=\"{label}\"><div class=\"control\" hidden=\"\"><label for=\"film\">{label}</label>\
             <input id=\"film\" type=\"range\" min=\"0\" max=\"{last}\" step=\"1\" value=\"0\"><output for=\"film\" aria-live=\"polite\"></output></div>\n"
        );
        for frame in frames {
            let name = escape(&frame.name);
            self.body += &format!("<div class=\"shot\" data-name=\"{name}\"><h3>{name}</h3>");
            self.figures(&frame.figures);
            self.body += "</div>\n";
        }
        self.body += "</div>\n";
        self
    }

    /// Text that is long and seldom read, to be opened; the first line says what it is.
    pub fn details(&mut self, summary: &str, text: &str) -> &mut Self {
        self.body += &format!(
            "<details><summary>{}</summary><pre tabindex=\"0\">{}</pre></details>\n",
            escape(summary),
            escape(text)
        );
        self
    }

    /// A small line at the end.
    pub fn footer(&mut self, text: &str) -> &mut Self {
        self.element("footer", text)
    }

    /// Text kept as it is: a command, a configuration.
    pub fn verbatim(&mut self, text: &str) -> &mut Self {
        self.body += &format!("<pre tabindex=\"0\">{}</pre>\n", escape(text));
        self
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
            "<div class=\"scroll stacked\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table>"
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
                    _ => {
                        let label = escape(table.header.get(column).map_or("", String::as_str));
                        format!("<td data-label=\"{label}\">{text}</td>")
                    }
                };
            }
            self.body += "</tr>\n";
        }
        self.body += "</tbody></table></div>\n";
        self
    }

    /// Names and what they stand for.
    pub fn facts(&mut self, caption: &str, facts: &[(String, String)]) -> &mut Self {
        self.body += &format!(
            "<div class=\"scroll facts\"><table><caption>{}</caption><tbody>\n",
            escape(caption)
        );
        for (name, value) in facts {
            self.body += &format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                escape(name),
                escape(value)
            );
        }
        self.body += "</tbody></table></div>\n";
        self
    }

    /// Pictures side by side, below each other where the screen is narrow.
    pub fn figures(&mut self, figures: &[Figure]) -> &mut Self {
        self.row("figures", figures)
    }

    /// Pictures that need room: not more than two side by side.
    pub fn wide_figures(&mut self, figures: &[Figure]) -> &mut Self {
        self.row("figures wide", figures)
    }

    fn row(&mut self, class: &str, figures: &[Figure]) -> &mut Self {
        self.body += &format!("<div class=\"{class}\">\n");
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
        let script = if self.film {
            format!("<script>{SCRIPT}</script>\n")
        } else {
            String::new()
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n{script}</body>\n</html>\n"
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
            contours: &[],
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
        assert!(html.contains(
            "<td data-label=\"DSM\">&lt;0</td><td data-label=\"DSM + DiffCLF\"></td></tr>"
        ));
    }

    #[test]
    fn a_film_stays_reachable_without_its_script() {
        let frames: Vec<Frame> = (0..3)
            .map(|k| Frame {
                name: format!("t = <{k}>"),
                figures: vec![Figure {
                    svg: format!("<svg><title>{k}</title></svg>"),
                    caption: format!("frame {k}"),
                }],
            })
            .collect();
        let mut page = Page::new("A film");
        page.lead("what it is")
            .cards(&[
                ("verdict", "pass".into(), Some("pass")),
                ("loss", "3.97".into(), None),
            ])
            .notices(&[Notice {
                mark: "warn".into(),
                title: "a & b".into(),
                texts: vec!["found".into(), "limits".into()],
            }])
            .film("time", &frames)
            .facts("facts", &[("dimension".into(), "2".into())])
            .details("more", "a < b")
            .footer("made by");
        let html = page.html();
        assert_well_formed(&html);
        // Only the script hides frames: the class that does is not in the document.
        assert!(
            !html.contains("class=\"film live\"") && html.matches("class=\"shot\"").count() == 3
        );
        assert!(html.contains("type=\"range\"") && html.contains("max=\"2\""));
        assert!(
            html.contains("data-name=\"t = &lt;1&gt;\"") && html.matches("<script>").count() == 1
        );
        let outside = html.replace("http://www.w3.org/2000/svg", "");
        for part in ["http", "<link", "url(", "@import", "src="] {
            assert!(!outside.contains(part), "{part} found");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_outside() {
        let html = example().replace("http://www.w3.org/2000/svg", "");
        for part in ["http", "<script", "<link", "url(", "@import", "src="] {
            assert!(!html.contains(part), "{part} found");
        }
    }
}
