//! `#line`: from the place that a compiler was told to name back to the place in the text.
//!
//! A source that a generator wrote may say `#line 500 "generated.cu"`, and from then on the compiler speaks of that file. Where
//! there is no such file to open, what was said belongs to the line of the text.

use std::path::{Path, PathBuf};

use crate::compiler_text::SourcePlace;
use crate::paths;

/// The lines of a text from behind one directive to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Region {
    /// The first line, from one, and how many there are.
    first: u32,
    count: u32,
    /// What the compiler calls the first line.
    called: u32,
    /// What it calls the file; `None` for its own name.
    file: Option<String>,
}

/// What a compiler calls the lines of one file.
#[derive(Clone, Debug)]
pub struct LineDirectives {
    path: PathBuf,
    regions: Vec<Region>,
}

impl LineDirectives {
    /// Those of a text. `None` where it has none, as nearly all.
    pub fn of(path: &Path, text: &str) -> Option<Self> {
        let mut regions = vec![Region { first: 1, count: 0, called: 1, file: None }];
        let mut file: Option<String> = None;
        let mut number = 0;
        for line in text.lines() {
            number += 1;
            if let Some((called, named)) = directive(line) {
                file = named.or(file);
                regions.push(Region { first: number + 1, count: 0, called, file: file.clone() });
            } else if let Some(last) = regions.last_mut() {
                last.count += 1;
            }
        }
        (regions.len() > 1).then(|| Self { path: path.to_owned(), regions })
    }

    /// The line of the text that a compiler, which ran in `directory`, means by `place`. `None` if it means another file's.
    ///
    /// Several lines may be called the same; then the one that looks as the compiler showed it is meant, else the first.
    pub fn line(&self, text: &str, place: &SourcePlace, directory: &Path) -> Option<u32> {
        let meant = paths::resolve(&place.file, directory);
        let is_file = |region: &Region| match &region.file {
            Some(file) => place.file == *file || meant == paths::resolve(file, directory),
            None => meant == self.path,
        };
        let line = |region: &Region| {
            let behind = place.line.checked_sub(region.called)?;
            (behind < region.count).then_some(region.first + behind)
        };
        let found: Vec<u32> = self.regions.iter().filter(|region| is_file(region)).filter_map(line).collect();
        let shown = place.echo.as_deref().map(str::trim).filter(|echo| !echo.is_empty());
        let looks_so = |line: &&u32| {
            let text = text.lines().nth(**line as usize - 1).map(str::trim);
            shown.is_some() && text == shown
        };
        found.iter().find(looks_so).or(found.first()).copied()
    }

    /// The file with the directives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The number and the file of `#line 5 "file"`, or of `# 5 "file" 1`, as preprocessors write it.
fn directive(line: &str) -> Option<(u32, Option<String>)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number = rest[..digits].parse().ok()?;
    let file = rest[digits..].trim_start().strip_prefix('"').and_then(|file| file.split_once('"'));
    Some((number, file.map(|(file, _)| file.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, line: u32, echo: Option<&str>) -> SourcePlace {
        SourcePlace { file: file.to_owned(), line, column: None, echo: echo.map(str::to_owned) }
    }

    #[test]
    fn places_are_led_back_to_the_text() {
        let text = "a\n#line 500 \"generated.cu\"\nb\nc\n # 7\nd\n#line 2 \"k.cu\"\ne\nf\n";
        let directives = LineDirectives::of(Path::new("/w/k.cu"), text).unwrap();
        for (file, line, echo, expected) in [
            ("generated.cu", 500, None, Some(3)),
            ("/w/generated.cu", 501, None, Some(4)),
            ("generated.cu", 7, None, Some(6)),
            ("generated.cu", 502, None, None),
            ("k.cu", 1, None, Some(1)),
            ("k.cu", 2, None, Some(8)),
            ("k.cu", 3, Some(" f"), Some(9)),
            ("k.cu", 4, None, None),
            ("other.cu", 500, None, None),
        ] {
            let found = directives.line(text, &place(file, line, echo), Path::new("/w"));
            assert_eq!(found, expected, "{file}:{line}");
        }
        for text in ["", "a\n#pragma line 5\n", "#include <line>\n", "#define line 3\n"] {
            assert!(LineDirectives::of(Path::new("/w/k.cu"), text).is_none(), "{text}");
        }
        let twice = "x\n#line 1\ny\n";
        let directives = LineDirectives::of(Path::new("/w/k.cu"), twice).unwrap();
        let line = |echo| directives.line(twice, &place("k.cu", 1, Some(echo)), Path::new("/w"));
        assert_eq!((line("y"), line("x"), line("z")), (Some(3), Some(1), Some(1)));
    }
}
