//! The log as a file, for who asks for one: it holds what would else go to the editor, and never grows without bounds.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// Beyond so many bytes the file is put aside, in place of the one put aside before.
const LONGEST: u64 = 10 << 20;

/// Adds a line.
///
/// # Errors
/// The file can't be written.
pub fn append(path: &Path, kind: &str, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|data| data.len() > LONGEST) {
        fs::rename(path, path.with_extension("old"))?;
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{}.{:03} {kind}: {text}", since.as_secs(), since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        append(&path, "info", "one").unwrap();
        append(&path, "info", "two").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() == 2 && text.ends_with("info: two\n"), "{text}");
        fs::write(&path, vec![b'x'; 1 + usize::try_from(LONGEST).unwrap()]).unwrap();
        append(&path, "info", "three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert!(path.with_extension("old").exists());
    }
}
