//! The pictures of a page, kept so that they can be written as files too.

use crate::heatmap::Heatmap;
use crate::page::Figure;
use crate::standalone;
use diffclf_run::Result;
use diffclf_run::outputs;
use std::path::{Path, PathBuf};

/// Pictures by name.
#[derive(Default)]
pub struct Album {
    pictures: Vec<(String, Vec<u8>)>,
}

impl Album {
    /// Keeps a picture and gives it to the page.
    pub fn figure(&mut self, name: &str, svg: String, caption: &str) -> Figure {
        let file = standalone(&svg);
        self.pictures
            .push((format!("{name}.svg"), file.into_bytes()));
        Figure {
            svg,
            caption: caption.into(),
        }
    }

    /// The same for a heat map, whose field is kept as a PNG as well.
    pub fn heatmap(&mut self, name: &str, heatmap: &Heatmap<'_>, caption: &str) -> Figure {
        if let Some(png) = heatmap.png() {
            self.pictures.push((format!("{name}.png"), png));
        }
        self.figure(name, heatmap.svg(), caption)
    }

    /// Writes all pictures into a folder, which is made if it is not there.
    pub fn write(&self, folder: &Path, force: bool) -> Result<()> {
        outputs::plan_folder(folder)?;
        let names = self.pictures.iter().map(|(name, _)| folder.join(name));
        let paths: Vec<_> = names.collect();
        outputs::plan(paths.iter().map(PathBuf::as_path), force)?;
        for (path, (_, bytes)) in paths.iter().zip(&self.pictures) {
            outputs::write(path, force, |writer| Ok(writer.write_all(bytes)?))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_become_files_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut album = Album::default();
        let figure = album.figure("a", "<svg x=\"1\"><path/></svg>".into(), "caption");
        assert_eq!(figure.svg, "<svg x=\"1\"><path/></svg>");
        album.write(&folder.path().join("new"), false).unwrap();
        let text = std::fs::read_to_string(folder.path().join("new/a.svg")).unwrap();
        assert!(text.starts_with("<svg x=\"1\"><style>") && text.ends_with("<path/></svg>\n"));
        assert!(album.write(&folder.path().join("new"), false).is_err());
        album.write(&folder.path().join("new"), true).unwrap();
    }
}
