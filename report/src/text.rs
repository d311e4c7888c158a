//! Tables as plain text with aligned columns.

use crate::page::Table;

/// A table as text: the first column to the left, numbers to the right.
pub fn table_text(table: &Table) -> String {
    let columns = table.header.len();
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let width = |column: usize| {
        let rows = table.rows.iter().map(|row| cell(row, column));
        let cells = rows.chain([table.header[column].clone()]);
        cells.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &[String]| {
        let cells = (0..columns).map(|column| {
            let (text, width) = (cell(row, column), widths[column]);
            if column == 0 {
                format!("{text:<width$}")
            } else {
                format!("{text:>width$}")
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("  {}\n", line.trim_end())
    };
    let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1));
    let body: String = table.rows.iter().map(|row| line(row)).collect();
    format!("{}\n{}  {rule}\n{body}", table.caption, line(&table.header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_also_with_signs_beyond_ascii() {
        let row = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.to_string())
                .collect::<Vec<_>>()
        };
        let table = Table {
            caption: "Figures".into(),
            header: row(&["quantity", "R²"]),
            rows: vec![row(&["a", "1.0 ± 0.1"]), row(&["long name"])],
        };
        let text = table_text(&table);
        assert_eq!(
            text,
            "Figures\n  quantity          R²\n  --------------------\n  a          1.0 ± 0.1\n  long name\n"
        );
    }
}
