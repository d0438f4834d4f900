//! Attribute macros: names that stand for `__device__ __forceinline__` and the like.
//!
//! A grammar can't know them, and reads them as types or function names. They come from a table, and from the
//! `#define`s of the file and its workspace: an object-like macro is an attribute if every definition seen has nothing
//! but attributes in its body. `RESULT_API` alone, by its looks, is not: most such names are something else.

mod definitions;
mod table;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

pub use self::definitions::Definitions;
use self::table::built_in;
use crate::outline::FunctionKind;

/// Where a function with an attribute runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Runs {
    /// `__global__`.
    pub kernel: bool,
    /// `__device__`.
    pub device: bool,
    /// `__host__`.
    pub host: bool,
}

impl Runs {
    /// Both.
    pub fn and(self, other: Self) -> Self {
        Self {
            kernel: self.kernel || other.kernel,
            device: self.device || other.device,
            host: self.host || other.host,
        }
    }

    /// What a function with these attributes is.
    pub fn kind(self) -> FunctionKind {
        match self {
            Self { kernel: true, .. } => FunctionKind::Kernel,
            Self { device: true, host: true, .. } => FunctionKind::HostDevice,
            Self { device: true, .. } => FunctionKind::Device,
            _ => FunctionKind::Host,
        }
    }

    /// What a keyword of the language says.
    pub fn of_keyword(word: &[u8]) -> Self {
        match word {
            b"__global__" | b"__tile_global__" => Self { kernel: true, ..Self::default() },
            b"__device__" | b"__tile__" => Self { device: true, ..Self::default() },
            b"__host__" => Self { host: true, ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// What an attribute macro means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attribute {
    /// Where it makes a function run.
    pub runs: Runs,
    /// Whether it takes arguments in parentheses.
    pub call: bool,
}

/// Hashes a name's bytes; names are short and nobody attacks this table but the person's own files.
#[derive(Default)]
pub struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= xxhash_rust::xxh3::xxh3_64(bytes);
    }

    // The length prefix of a slice; its bytes tell it already.
    fn write_usize(&mut self, _: usize) {}
    fn write_u8(&mut self, _: u8) {}
}

type Names<V> = HashMap<Box<[u8]>, V, BuildHasherDefault<NameHasher>>;

/// All attribute macros that hold in one file.
#[derive(Clone, Debug, Default)]
pub struct Macros {
    file: Arc<Names<Option<Attribute>>>,
    workspace: Arc<Names<Option<Attribute>>>,
    fingerprint: u64,
}

impl Macros {
    /// Those that `definitions` of a workspace give.
    pub fn of_workspace(definitions: &Definitions) -> Self {
        let workspace = definitions.resolve(&|name| built_in().get(name).copied().flatten());
        Self {
            file: Arc::default(),
            workspace: Arc::new(workspace.into_iter().filter(|(_, attribute)| attribute.is_some()).collect()),
            fingerprint: definitions.fingerprint(),
        }
    }

    /// The same, and those that the file's own text gives.
    pub fn with_file(&self, text: &str) -> Self {
        let mut definitions = Definitions::default();
        definitions.add(text);
        let file = definitions.resolve(&|name| self.get(name));
        let fingerprint = self.fingerprint.wrapping_mul(31).wrapping_add(definitions.fingerprint());
        Self { file: Arc::new(file), workspace: self.workspace.clone(), fingerprint }
    }

    /// The attribute that `name` is. The nearest definition decides.
    pub fn get(&self, name: &[u8]) -> Option<Attribute> {
        if let Some(own) = self.file.get(name) {
            // A file that defines its own launch bounds helper may do it in several ways; the compiler's are fixed.
            return *own;
        }
        self.workspace.get(name).or_else(|| built_in().get(name)).copied().flatten()
    }

    /// Names that mean something else than they did.
    pub fn changed_names(&self, earlier: &Self) -> Vec<Vec<u8>> {
        if self.fingerprint == earlier.fingerprint {
            return Vec::new();
        }
        let tables = [&self.file, &self.workspace, &earlier.file, &earlier.workspace];
        let mut names: Vec<&[u8]> = tables.iter().flat_map(|table| table.keys()).map(AsRef::as_ref).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| self.get(name) != earlier.get(name));
        names.into_iter().map(<[u8]>::to_vec).collect()
    }

    /// Equal for equal tables.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_nothing_but_attributes_are_attributes() {
        for (text, name, expected) in [
            ("#define A __device__ __forceinline__", "A", Some(FunctionKind::Device)),
            ("#define A __host__ B\n#define B __device__ // x", "A", Some(FunctionKind::HostDevice)),
            ("#if X\n#define A\n#else\n#define A __device__\n#endif", "A", Some(FunctionKind::Device)),
            ("#define A __global__ static", "A", Some(FunctionKind::Kernel)),
            ("#define A extern \"C\" __global__", "A", Some(FunctionKind::Kernel)),
            ("#define A(n) __launch_bounds__(n)", "A", Some(FunctionKind::Host)),
            ("#define A [[nodiscard]]", "A", Some(FunctionKind::Host)),
            ("  #  define A \\\n __device__\n", "A", Some(FunctionKind::Device)),
            ("#define A float", "A", None),
            ("#define A 32", "A", None),
            ("#define A\n#define A 1", "A", None),
            ("#define A B\n#define B A", "A", None),
            ("#define A(x)", "A", None),
            ("// #define A __device__", "A", None),
            ("#define CUDF_KERNEL int", "CUDF_KERNEL", None),
            ("", "CUDF_KERNEL", Some(FunctionKind::Kernel)),
        ] {
            let found = Macros::default().with_file(text).get(name.as_bytes());
            assert_eq!(found.map(|a| a.runs.kind()), expected, "{text:?}");
        }
    }
}
