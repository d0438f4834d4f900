//! What the other files of a workspace define that a document may use.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::lexer::{Kind, Lexer};
use super::macros::{Definitions, Macros};
use crate::rules::Outer;
use crate::rules::constants::{Constants, fold_text};

/// What the other files of a workspace define: attribute macros and integer constants. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug, Default)]
struct Inner {
    definitions: Definitions,
    constants: Table,
    fingerprint: u64,
    /// Made when it is first asked for: a workspace is filled by thousands of headers, then read.
    resolved: OnceLock<Resolved>,
}

#[derive(Clone, Debug)]
struct Resolved {
    macros: Macros,
    outer: Outer,
}

/// Constants by name; `None` where two definitions differ.
#[derive(Clone, Debug, Default)]
struct Table(HashMap<String, Option<i64>>);

impl Constants for Table {
    fn value(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied().flatten()
    }
}

/// A header larger than this is data, and is not read.
const LARGEST: usize = 4 << 20;

impl Workspace {
    /// Collects what a header defines.
    pub fn add(&mut self, text: &str) {
        if text.len() > LARGEST {
            return;
        }
        let inner = Arc::make_mut(&mut self.inner);
        inner.definitions.add(text);
        inner.constants.add(text);
        let own = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
        inner.fingerprint = inner.fingerprint.rotate_left(5).wrapping_add(own) | 1;
        inner.resolved = OnceLock::new();
    }

    fn resolved(&self) -> &Resolved {
        let inner = &self.inner;
        inner.resolved.get_or_init(|| Resolved {
            macros: Macros::of_workspace(&inner.definitions),
            outer: Outer::new(Arc::new(inner.constants.clone()), inner.fingerprint),
        })
    }

    /// The attribute macros.
    pub(crate) fn macros(&self) -> &Macros {
        &self.resolved().macros
    }

    /// The constants.
    pub(crate) fn outer(&self) -> &Outer {
        &self.resolved().outer
    }

    /// Equal for workspaces that define the same.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.inner.fingerprint
    }
}

impl Table {
    /// `#define NAME 32`
    fn add(&mut self, text: &str) {
        let bytes = text.as_bytes();
        for line in
            Lexer::at(text, 0).filter(|token| token.kind == Kind::Directive && token.end - token.start < 256)
        {
            let mut tokens = Lexer::within(text, line.start + 1, line.end);
            if tokens.next().is_none_or(|word| word.text(bytes) != b"define") {
                continue;
            }
            let Some(name) =
                tokens.next().filter(|t| t.kind == Kind::Word && bytes.get(t.end) != Some(&b'('))
            else {
                continue;
            };
            let (Some(key), Some(body)) = (text.get(name.start..name.end), text.get(name.end..line.end))
            else {
                continue;
            };
            let value = fold_text(&super::tidy::tidy(body), self);
            let known = self.0.entry(key.to_owned()).or_insert(value);
            if *known != value {
                *known = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Analyzer, FunctionKind, Language};

    #[test]
    fn a_header_gives_attributes_and_constants() {
        let mut workspace = Workspace::default();
        workspace.add("#define MYLIB_FN __device__ __forceinline__\n#define TILE 16\n#define TWICE (2 * TILE) // both\n#define TILE2 1\n#define TILE2 2\n");
        let text = "MYLIB_FN float f(float x) { return x; }\nvoid h() { k<<<TILE2, TWICE>>>(); }\n";
        let mut analyzer = Analyzer::new(Language::Cuda);
        let plain = analyzer.update(text.into(), &Workspace::default(), &|| true).unwrap();
        assert_eq!(plain.outline().launches[0].block.as_ref().unwrap().value, None);
        let analysis = analyzer.update(text.into(), &workspace, &|| true).unwrap();
        assert_eq!(analysis.outline().functions[0].kind, FunctionKind::Device);
        assert_eq!(analysis.outline().functions[0].span.start, 0);
        let launch = &analysis.outline().launches[0];
        assert_eq!(launch.block.as_ref().unwrap().value, Some([32, 1, 1]));
        assert_eq!(launch.grid.as_ref().unwrap().value, None);
    }
}
