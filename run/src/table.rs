//! Tables of text, `.csv` and `.tsv`: read once into the bytes of a .npy file, so that whoever reads arrays reads them too.

use crate::error::{Error, Result};
use crate::memory;
use crate::words;
use diffclf::format::npy::write_npy;
use std::path::Path;

/// A table in memory.
pub struct Table {
    /// The numbers as a .npy file of float64.
    pub array: Vec<u8>,
    /// Names of the columns, if the first line has any.
    pub names: Vec<String>,
}

/// Whether a name is that of a table.
pub fn is_table(path: &Path) -> bool {
    let end = path.extension().map(|end| end.to_ascii_lowercase());
    end.is_some_and(|end| end == "csv" || end == "tsv")
}

/// Reads a table: numbers, one row a line, under a line of names or none. Commas, semicolons and tabs separate; lines that begin with #
/// are left out.
pub fn read(path: &Path, text: &[u8]) -> Result<Table> {
    // As text, as numbers and as a file.
    memory::refuse(path.display().to_string(), 10 * text.len() as u128)?;
    let wrong = |words: String| Error::Refused(words!(path.display(), ": ", words));
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(separator(text))
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text);
    let (mut names, mut values, mut dim, mut rows) = (Vec::new(), Vec::new(), 0, 0);
    for (k, record) in reader.records().enumerate() {
        let record =
            record.map_err(|error| wrong(format!("{error}; expected a table of numbers")))?;
        let line = record.position().map_or(0, csv::Position::line);
        dim = record.len();
        let numbers: Vec<Option<f64>> = record.iter().map(|cell| cell.parse().ok()).collect();
        if k == 0 && numbers.iter().any(Option::is_none) {
            names = record.iter().map(String::from).collect();
            if let Some(empty) = names.iter().position(String::is_empty) {
                return Err(wrong(format!(
                    "column {empty} (counted from 0) has no name; if it counts the rows, leave it out (pandas: to_csv(..., index=False)), else name it"
                )));
            }
            continue;
        }
        for (column, (number, cell)) in numbers.into_iter().zip(&record).enumerate() {
            let named = names
                .get(column)
                .map_or(String::new(), |name| format!(" ('{name}')"));
            values.push(number.ok_or_else(|| {
                wrong(format!(
                    "line {line}, column {column}{named}, counted from 0: '{cell}' is no number; leave out columns of words and rows with gaps"
                ))
            })?);
        }
        rows += 1;
    }
    if rows == 0 {
        return Err(wrong("no rows of numbers; expected one row a line".into()));
    }
    let mut array = Vec::new();
    write_npy(&[rows, dim], &values, &mut array)?;
    Ok(Table { array, names })
}

/// What stands most often in the first line of all that may separate.
fn separator(text: &[u8]) -> u8 {
    let lines = text.split(|byte| *byte == b'\n');
    let first = lines
        .into_iter()
        .find(|line| !line.starts_with(b"#") && !line.is_empty());
    let count =
        |mark: u8| first.map_or(0, |line| line.iter().filter(|byte| **byte == mark).count());
    [b'\t', b';', b',']
        .into_iter()
        .max_by_key(|mark| count(*mark))
        .unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::format::npy::NpyView;

    fn numbers(text: &str) -> (Vec<String>, Vec<usize>, Vec<f64>) {
        let table = read(Path::new("a.csv"), text.as_bytes()).unwrap();
        let view = NpyView::parse(&table.array).unwrap();
        (table.names, view.shape().to_vec(), view.to_vec_f64())
    }

    #[test]
    fn tables_are_arrays() {
        let (names, shape, values) = numbers("phi, psi\n-1.5,2e1\n 0.25 ,-3\n");
        assert_eq!(names, ["phi", "psi"]);
        assert_eq!((shape, values), (vec![2, 2], vec![-1.5, 20.0, 0.25, -3.0]));
        // Without names, with other separators, comments and a byte order of lines of another system.
        for text in [
            "# made today\r\n1;2;3\r\n4;5;6\r\n",
            "1\t2\t3\n4\t5\t6",
            "1,2,3\n\n4,5,6\n",
        ] {
            let (names, shape, values) = numbers(text);
            assert!(names.is_empty());
            assert_eq!(
                (shape, values),
                (vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                "{text}"
            );
        }
        assert_eq!(numbers("\"a \"\"b\"\"\",c\n1,2\n").0, ["a \"b\"", "c"]);
    }

    #[test]
    fn what_is_no_table_is_told_where() {
        let refused = |text: &str| {
            read(Path::new("a.csv"), text.as_bytes())
                .err()
                .unwrap()
                .to_string()
        };
        let words = refused("x,y\n1,2\n3,abc\n");
        assert!(
            words.contains("line 3") && words.contains("('y')") && words.contains("'abc'"),
            "{words}"
        );
        assert!(refused("x,y\n1,2\n3\n").contains("record"));
        assert!(refused("x,y\n1,\n").contains("'' is no number"));
        assert!(refused(",x\n0,1\n").contains("index=False"));
        assert!(refused("x,y\n").contains("no rows") && refused("").contains("no rows"));
    }
}
