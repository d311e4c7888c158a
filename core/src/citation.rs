//! Whom to cite: every member of a family names the papers behind it, by key. The entries stand in `references.bib` of the report.

/// Keys of BibTeX entries.
pub type Cites = &'static [&'static str];

/// Nobody to cite: made here, or older than any paper of it.
pub const OURS: Cites = &[];

/// The methods of a folder, by file, with what each cites.
pub type Table = &'static [(&'static str, Cites)];

/// The files of a folder with what each cites, `mod::CITES`.
macro_rules! cited {
    ($($file:ident),* $(,)?) => {
        &[$((stringify!($file), $file::CITES)),*]
    };
}
pub(crate) use cited;

/// What the method of that file cites; nothing if there is no such file.
pub fn of(table: Table, file: &str) -> Cites {
    let found = table.iter().find(|(name, _)| *name == file);
    found.map_or(OURS, |(_, cites)| cites)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{free_energy, metric, molecule, sample};

    /// A new method stands in its folder's table, or here with the files that are no method.
    #[test]
    fn every_method_says_whom_to_cite() {
        let folders: [(&str, Table, &[&str]); 5] = [
            (
                "sample",
                sample::CITES,
                &["diffusion", "step_size", "trips"],
            ),
            ("sample/mcmc", sample::mcmc::CITES, &["langevin"]),
            ("metric", metric::CITES, &["compare", "evaluate"]),
            (
                "molecule",
                molecule::CITES,
                &[
                    "beads",
                    "bonded",
                    "coordinates",
                    "lanes",
                    "pairs",
                    "prmtop",
                    "solvated_energy",
                    "topology",
                ],
            ),
            (
                "free_energy",
                free_energy::CITES,
                &[
                    "convergence",
                    "energies",
                    "influence",
                    "learned",
                    "learned_difference",
                ],
            ),
        ];
        for (folder, table, apart) in folders {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
            let files = std::fs::read_dir(path.join(folder)).unwrap();
            let names = files.filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                Some(name.strip_suffix(".rs")?.to_string())
            });
            for name in names.filter(|name| name != "mod" && name != "tests") {
                let listed = table.iter().filter(|(file, _)| *file == name).count();
                let known = listed + apart.iter().filter(|file| **file == name).count();
                assert_eq!(
                    known, 1,
                    "{folder}/{name}.rs says not whom to cite, or says it twice"
                );
            }
        }
        assert_eq!(of(sample::CITES, "ddim"), ["song2021denoising"]);
        assert_eq!(of(sample::CITES, "nothing"), OURS);
    }
}
