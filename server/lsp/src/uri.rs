//! Which document a URI means, however it is spelled, and which file that is.
//!
//! Clients spell one file in several ways: VS Code writes `file:///c%3A/a%2B1.cu` where others write `file:///C:/a+1.cu`. Both are
//! one document here, under a key that no client sees. What is sent back is always the client's own spelling, byte for
//! byte, since clients compare text. URIs that break RFC 3986 (spaces, raw Unicode) are taken as they are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Stands in a key before a query or a fragment. No path has it.
const OTHERS: &str = "\0";

/// Equal for all spellings of one document.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of a URI.
    pub fn of(uri: &str) -> Self {
        let (scheme, rest) = split_scheme(uri);
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "file" {
            return Self(format!("{scheme}:{}", decode(rest)).into());
        }
        // What is a query or a fragment is no part of the file's name; in a name `#` and `?` are encoded.
        let path_end = rest.find(['?', '#']).unwrap_or(rest.len());
        let (path, others) = rest.split_at(path_end);
        let separator = if others.is_empty() { "" } else { OTHERS };
        Self(format!("file://{}{separator}{}", file_path(&decode(path)), decode(others)).into())
    }

    /// The key of a file.
    pub fn of_path(path: &Path) -> Self {
        Self::of(&from_path(path))
    }

    /// As the store knows the document.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key that the store knows by this name.
    pub fn of_id(id: &str) -> Self {
        Self(id.into())
    }

    /// The file, for `file` URIs that have a path. One on another host is no file here, unless the system has names for those.
    pub fn to_path(&self) -> Option<PathBuf> {
        let path = self.0.strip_prefix("file://")?;
        let path = path.split(OTHERS).next().filter(|path| path.len() > 1)?;
        if cfg!(unix) && !path.starts_with('/') {
            return None;
        }
        let path = percent_encoding::percent_decode_str(path).collect::<Vec<u8>>();
        Some(bytes_to_path(path))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A `file` URI for a path, for a document that no client has named.
pub fn from_path(path: &Path) -> String {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    let encoded = percent_encoding::percent_encode(&path_to_bytes(path), KEPT).to_string();
    let slash = if encoded.starts_with('/') { "" } else { "/" };
    format!("file://{slash}{encoded}")
}

/// The same URI so that a strict parser takes it: what may not stand in a URI is percent-encoded.
pub fn strict(uri: &str) -> String {
    const FORBIDDEN: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'<')
        .add(b'>')
        .add(b'\\')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'|')
        .add(b'}')
        .add(b'[')
        .add(b']')
        .add(b'%')
        .add(b'#');
    let encoded = percent_encoding::utf8_percent_encode(uri, FORBIDDEN).to_string();
    let has_scheme = !split_scheme(uri).0.is_empty();
    if has_scheme { encoded } else { format!("unknown:{}", encoded.replace(':', "%3A")) }
}

fn split_scheme(uri: &str) -> (&str, &str) {
    let is_scheme = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    uri.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).unwrap_or(("", uri))
}

/// Percent-decodes what is text. An encoded slash stays: it is no separator. So does an encoded percent sign, or decoding
/// twice would differ; bytes that are no UTF-8 stay in upper case.
fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let run: Vec<u8> = escapes(&rest[at..]);
        if run.is_empty() {
            decoded.push_str("%25");
            rest = &rest[at + 1..];
            continue;
        }
        for chunk in run.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '/' => decoded.push_str("%2F"),
                    '%' => decoded.push_str("%25"),
                    '\0' => decoded.push_str("%00"),
                    other => decoded.push(other),
                }
            }
            chunk.invalid().iter().for_each(|byte| decoded.push_str(&format!("%{byte:02X}")));
        }
        rest = &rest[at + 3 * run.len()..];
    }
    decoded.push_str(rest);
    decoded
}

/// The bytes of the `%XX` that `text` starts with.
fn escapes(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(3)
        .map_while(|chunk| {
            let [b'%', high, low] = chunk else { return None };
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            u8::try_from(digit(high)? * 16 + digit(low)?).ok()
        })
        .collect()
}

/// The path of a `file` URI without `//` and the local host; drive letters are in lower case.
fn file_path(rest: &str) -> String {
    let path = match rest.strip_prefix("//") {
        Some(with_host) => {
            let (host, path) = with_host.split_once('/').unwrap_or((with_host, ""));
            if host.eq_ignore_ascii_case("localhost") { format!("/{path}") } else { with_host.to_owned() }
        }
        None => rest.to_owned(),
    };
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => {
            format!("/{}{}", char::from(drive.to_ascii_lowercase()), &path[2..])
        }
        _ => path,
    }
}

#[cfg(unix)]
fn bytes_to_path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(unix)]
fn path_to_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
fn bytes_to_path(bytes: Vec<u8>) -> PathBuf {
    // `/c:/a` is `c:/a`; `host/a` is `//host/a`.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match text.strip_prefix('/') {
        Some(path) => path.into(),
        None => format!("//{text}").into(),
    }
}

#[cfg(not(unix))]
fn path_to_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().replace('\\', "/").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_document_have_one_key() {
        let same: &[&[&str]] = &[
            &[
                "file:///c%3A/Users/dev/my%20proj/k%2B1.cu",
                "file:///C:/Users/dev/my%20proj/k+1.cu",
                "file:///c:/Users/dev/my proj/k+1.cu",
                "FILE:///c%3a/Users/dev/my%20proj/k%2b1.cu",
            ],
            &["file:///a/b.cu", "file://localhost/a/b.cu", "file:/a/b.cu"],
            &["file:///%C3%BC/a.cu", "file:///ü/a.cu", "file:///%c3%bc/a.cu"],
            &["file:///a%FF.cu", "file:///a%ff.cu"],
            &["file:///100%.cu", "file:///100%25.cu"],
            &["untitled:Untitled-1", "untitled:Untitled%2D1"],
            &["vscode-remote://ssh-remote%2Bhost/a.cu", "vscode-remote://ssh-remote+host/a.cu"],
        ];
        for spellings in same {
            for spelling in *spellings {
                assert_eq!(Key::of(spelling), Key::of(spellings[0]), "{spelling}");
            }
        }
        let mut keys: Vec<_> = same.iter().map(|spellings| Key::of(spellings[0])).collect();
        let others = [
            "file:///a%2Fb.cu",
            "file:///a/B.cu",
            "git:/a/b.cu",
            "file:///a/b.cu?x",
            "file:///a/b.cu#x",
            "file:///a/b.cu%23x",
            "file://host/a/b.cu",
            "vscode-notebook-cell:/a#1",
            "",
            "x",
        ];
        keys.extend(others.map(Key::of));
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "different documents have different keys");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_uri_names_its_file() {
        let rows = [
            ("file:///a%20b/%C3%BC.cu", Some("/a b/ü.cu")),
            ("file:///a b/ü.cu", Some("/a b/ü.cu")),
            ("file:///100%25.cu", Some("/100%.cu")),
            ("file:///a/b.cu#L10", Some("/a/b.cu")),
            ("file:///a/b.cu?q=1#L10", Some("/a/b.cu")),
            ("file:///a/c%23/b%3F.cu", Some("/a/c#/b?.cu")),
            ("file://LOCALHOST/a/b.cu", Some("/a/b.cu")),
            ("file://host/share/a.cu", None),
            ("file:a.cu", None),
            ("file://", None),
            ("file:///", None),
            ("untitled:Untitled-1", None),
            ("git:/a/b.cu", None),
            ("vscode-notebook-cell:/a.ipynb#x", None),
            ("", None),
        ];
        for (uri, path) in rows {
            assert_eq!(Key::of(uri).to_path(), path.map(PathBuf::from), "{uri}");
        }
        for path in ["/a b/ü.cu", "/100%.cu", "/[x]/k+1.cu"] {
            assert_eq!(Key::of_path(Path::new(path)).to_path(), Some(PathBuf::from(path)));
        }
    }

    #[test]
    fn any_uri_can_be_made_strict() {
        for uri in [
            "file:///a b/ü[1].cu",
            "",
            "no scheme",
            "C:\\a\\b.cu",
            "x:%",
            "file:///a?b#c#d",
            ":",
            "file://[",
            "\u{1}:",
        ] {
            assert!(strict(uri).parse::<tower_lsp::ls_types::Uri>().is_ok(), "{uri:?} -> {:?}", strict(uri));
        }
    }
}
