//! What a function may ask about the rest of its file: constants, globals, signatures, launches, who checks errors.
//!
//! It is put together from [`Piece`]s, one a top-level item, each of which depends on nothing but the item's own text. So
//! an analyzer keeps the pieces of what did not change, and a keystroke inside a kernel's body leaves the environment, and with it
//! the findings of all other functions, as they were.

mod asking;
mod changed;
mod collect;
mod exact;
mod local;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

pub use asking::ASKING;
pub use changed::Changed;
pub use exact::rounded_sizes;
use tree_sitter::Node;
use xxhash_rust::xxh3::Xxh3;

use super::constants::{Constants, fold_dimensions, fold_text};
use super::types::{Scalar, Type, floating_literal};
use super::value::Memory;

/// How often constants are gone through to resolve those that use later ones.
const MOST_PASSES: usize = 8;
/// What one item tells the rest of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Names and the expressions they stand for, in the order of the text.
    constants: Vec<(String, String)>,
    /// Names for types: `typedef float real;`, `using real = float;`.
    aliases: Vec<(String, String)>,
    /// Variables outside functions: name, type, qualifier.
    globals: Vec<(String, String, GlobalKind)>,
    /// Functions and what they return.
    signatures: Vec<(String, String)>,
    /// Functions and macros, and the names used in each, where these may matter to error checks.
    uses: Vec<(String, Vec<String>)>,
    launches: Vec<LaunchPiece>,
    /// Members of structs: the struct, the member, its type.
    members: Vec<(String, String, String)>,
    /// Macros with parameters: name, parameters, what they stand for.
    macros: Vec<(String, Vec<String>, String)>,
    /// Kernels that print, or do nothing.
    showing: Vec<String>,
    /// Kernels that look at `threadIdx` and never at `blockIdx`.
    lone: Vec<String>,
    /// Whether a call of CUDA's runtime is handed to something: `CHECK(cudaMalloc(…))`.
    wraps_calls: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GlobalKind {
    Device,
    Constant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LaunchPiece {
    kernel: String,
    /// The block as written, or what the local name for it was made from.
    block: String,
    rounds_up: bool,
    /// Whether the number of blocks is a quotient that is not rounded up: no block reaches past the data.
    divides: bool,
    /// The grid of one that rounds up, with local names replaced by what they were set to; else empty.
    grid: String,
    /// Whether the grid is the number 1.
    one_block: bool,
    /// Its template arguments, as written; `None` where it has none.
    template_arguments: Option<Vec<String>>,
}

/// A variable outside the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its type.
    pub ty: Type,
    /// Where it is.
    pub memory: Memory,
}

/// How a kernel is launched in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    /// How many launches there are.
    pub count: usize,
    /// How many round the number of blocks up: `(n + block - 1) / block`.
    pub rounding_up: usize,
    /// How many divide without rounding up: `n / 256`.
    pub dividing: usize,
    /// How many have blocks of one column: `threadIdx.x` is always 0.
    pub one_column: usize,
    /// How many have one block.
    pub one_block: usize,
    /// Threads along x of the block, where all launches so far have as many and the number is known.
    pub columns: Option<i64>,
}

/// The values of a kernel's template arguments at a launch, in their order: `None` for a type and for what is not known. Where
/// there are fewer than parameters, the defaults hold for the others.
pub type Instance = Vec<Option<i64>>;

/// A kernel with more different instances is known by what all of these agree on.
const MOST_INSTANCES: usize = 4;

/// What the rules know of a file outside the function at hand. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    inner: Arc<Inner>,
}

/// The constants of other files, and a number that changes whenever one of these does.
#[derive(Clone, Default)]
pub struct Outer {
    constants: Option<Arc<dyn Constants + Send + Sync>>,
    fingerprint: u64,
}

impl Outer {
    /// These constants, of which `fingerprint` is a hash.
    pub fn new(constants: Arc<dyn Constants + Send + Sync>, fingerprint: u64) -> Self {
        Self { constants: Some(constants), fingerprint }
    }

    fn value(&self, name: &str) -> Option<i64> {
        self.constants.as_ref()?.value(name)
    }
}

impl fmt::Debug for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outer").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Inner {
    hash: u64,
    outer: Outer,
    /// Names that the file defines, whatever their value: these hide those of other files.
    defined: HashSet<String>,
    integers: HashMap<String, i64>,
    floats: HashMap<String, (f64, Type)>,
    types: HashMap<String, Type>,
    globals: HashMap<String, Global>,
    returns: HashMap<String, Type>,
    launches: HashMap<String, Launches>,
    /// The members of each struct; one that is defined differently twice has no type.
    members: HashMap<String, HashMap<String, Type>>,
    /// Macros with parameters; `None` where one is defined differently twice.
    macros: HashMap<String, Option<(Vec<String>, String)>>,
    /// With which template arguments each kernel is launched.
    instances: HashMap<String, Vec<Instance>>,
    /// Functions and macros that ask for the last error, themselves or through others.
    asking: HashSet<String>,
    /// Functions that are called by one that asks for the last error.
    asked_after: HashSet<String>,
    /// Whether anything in the file checks errors.
    checks: bool,
    /// Kernels that print, or do nothing.
    showing: HashSet<String>,
    /// Kernels that look at `threadIdx` and never at `blockIdx`.
    lone: HashSet<String>,
}

impl Piece {
    /// What `item` (a function, a declaration, a `#define`, a whole namespace) tells.
    pub fn of(item: Node, source: &str) -> Self {
        collect::collect(item, source)
    }
}

impl Environment {
    /// From the pieces of a file in the order of the text; `outer` knows what other files define.
    pub fn new<'p>(pieces: impl IntoIterator<Item = &'p Piece>, outer: &Outer) -> Self {
        let pieces: Vec<&Piece> = pieces.into_iter().collect();
        let mut inner = Inner { outer: outer.clone(), ..Inner::default() };
        inner.resolve_types(&pieces);
        inner.resolve_constants(&pieces);
        for piece in &pieces {
            inner.take(piece);
            inner.showing.extend(piece.showing.iter().cloned());
            inner.lone.extend(piece.lone.iter().cloned());
        }
        inner.resolve_checks(&pieces);
        inner.hash = inner.content_hash();
        Self { inner: Arc::new(inner) }
    }

    /// Equal for environments that give every function the same findings.
    pub fn hash(&self) -> u64 {
        self.inner.hash
    }

    /// The value and the type of a floating constant.
    pub fn floating(&self, name: &str) -> Option<(f64, Type)> {
        let known =
            FLOATING.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value, Type::DOUBLE));
        self.inner.floats.get(name).copied().or(known)
    }

    /// The type that a text names, by the names that the file gives to types.
    pub fn type_of(&self, text: &str) -> Type {
        self.inner.type_of(text)
    }

    /// A variable outside functions.
    pub fn global(&self, name: &str) -> Option<Global> {
        self.inner.globals.get(name).copied()
    }

    /// What the function `name` returns, where all functions of this name return the same.
    pub fn returns(&self, name: &str) -> Type {
        self.inner.returns.get(name).copied().unwrap_or(Type::UNKNOWN)
    }

    /// The type of a member of the struct that `class` names, where this file defines it once.
    pub fn member(&self, class: &str, member: &str) -> Type {
        let class = class.rsplit([':', ' ']).next().unwrap_or(class);
        let known = self.inner.members.get(class).and_then(|members| members.get(member));
        known.copied().unwrap_or(Type::UNKNOWN)
    }

    /// The parameters of the macro `name` and what it stands for, where it is defined once.
    pub fn function_macro(&self, name: &str) -> Option<(&[String], &str)> {
        let (parameters, text) = self.inner.macros.get(name)?.as_ref()?;
        Some((parameters, text))
    }

    /// How the kernel `name` is launched here.
    pub fn launches(&self, name: &str) -> Launches {
        self.inner.launches.get(name).copied().unwrap_or_default()
    }

    /// Whether all launches of the kernel here have blocks of one column.
    pub fn has_one_column(&self, name: &str) -> bool {
        let launches = self.launches(name);
        launches.count > 0 && launches.one_column == launches.count
    }

    /// Whether all launches of the kernel here have one block: bookkeeping, which no layout makes faster.
    pub fn has_one_block(&self, name: &str) -> bool {
        let launches = self.launches(name);
        launches.count > 0 && launches.one_block == launches.count
    }

    /// The template arguments with which the kernel `name` is launched here, each combination once.
    pub fn instances(&self, name: &str) -> &[Instance] {
        self.inner.instances.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether the function or macro `name` asks for the last CUDA error.
    pub fn asks_for_errors(&self, name: &str) -> bool {
        self.inner.asking.contains(name)
    }

    /// Whether anything in this file checks errors, so that what does not stands out.
    pub fn checks_errors(&self) -> bool {
        self.inner.checks
    }

    /// Whether the kernel `name` prints, or does nothing.
    pub fn only_shows(&self, name: &str) -> bool {
        self.inner.showing.contains(name)
    }

    /// Whether the kernel `name` looks at `threadIdx`, never at `blockIdx`.
    pub fn is_for_one_block(&self, name: &str) -> bool {
        self.inner.lone.contains(name)
    }

    /// Whether a function that asks for the last CUDA error calls `name`.
    pub fn is_asked_after(&self, name: &str) -> bool {
        self.inner.asked_after.contains(name)
    }
}

impl Constants for Environment {
    fn value(&self, name: &str) -> Option<i64> {
        self.inner.value(name)
    }
}

/// Double constants of `<math.h>` and of `math_constants.h`.
const FLOATING: &[(&str, f64)] = &[
    ("M_PI", std::f64::consts::PI),
    ("M_PI_2", std::f64::consts::FRAC_PI_2),
    ("M_PI_4", std::f64::consts::FRAC_PI_4),
    ("M_1_PI", std::f64::consts::FRAC_1_PI),
    ("M_2_PI", std::f64::consts::FRAC_2_PI),
    ("M_2_SQRTPI", std::f64::consts::FRAC_2_SQRT_PI),
    ("M_SQRT2", std::f64::consts::SQRT_2),
    ("M_SQRT1_2", std::f64::consts::FRAC_1_SQRT_2),
    ("M_E", std::f64::consts::E),
    ("M_LN2", std::f64::consts::LN_2),
    ("M_LN10", std::f64::consts::LN_10),
    ("M_LOG2E", std::f64::consts::LOG2_E),
    ("M_LOG10E", std::f64::consts::LOG10_E),
];

/// What is resolved so far.
struct Known<'i>(&'i Inner);

impl Constants for Known<'_> {
    fn value(&self, name: &str) -> Option<i64> {
        self.0.value(name)
    }
}

impl Inner {
    fn value(&self, name: &str) -> Option<i64> {
        let own = self.integers.get(name).copied();
        if own.is_some() || self.defined.contains(name) { own } else { self.outer.value(name) }
    }

    fn type_of(&self, text: &str) -> Type {
        let plain = Type::parse(text);
        if plain.scalar != Scalar::Unknown || self.types.is_empty() || text.contains('<') {
            return plain;
        }
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let known = words.into_iter().find_map(|word| self.types.get(word));
        known.map_or(plain, |ty| Type { pointers: ty.pointers.saturating_add(plain.pointers), ..*ty })
    }

    /// The types that the file names, by `typedef`, `using` or `#define real float`. A name for two types has none: which
    /// holds depends on the preprocessor.
    fn resolve_types(&mut self, pieces: &[&Piece]) {
        let named = pieces.iter().flat_map(|piece| &piece.aliases);
        let is_type = |text: &str| text.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '_'));
        let defined =
            pieces.iter().flat_map(|piece| &piece.constants).filter(|(_, text)| is_type(text.trim()));
        let mut seen: HashMap<&str, Type> = HashMap::new();
        for (name, text) in named.chain(defined) {
            let ty = self.type_of(text);
            let kept = seen.entry(name).or_insert(ty);
            if *kept != ty {
                *kept = Type::UNKNOWN;
            }
            if kept.scalar == Scalar::Unknown {
                self.types.remove(name);
            } else {
                self.types.insert(name.clone(), *kept);
            }
        }
    }

    /// Folds what can be folded. A name with two different values has none: which holds depends on the preprocessor.
    fn resolve_constants(&mut self, pieces: &[&Piece]) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (name, _) in pieces.iter().flat_map(|piece| &piece.constants) {
            *counts.entry(name).or_default() += 1;
            self.defined.insert(name.clone());
        }
        let mut open: Vec<(&str, &str)> = Vec::new();
        for (name, text) in pieces.iter().flat_map(|piece| &piece.constants) {
            match floating_text(text) {
                Some(literal) if counts.get(name.as_str()) == Some(&1) => {
                    self.floats.insert(name.clone(), literal);
                }
                Some(_) => {}
                None => open.push((name, text)),
            }
        }
        let mut values: HashMap<&str, Vec<i64>> = HashMap::new();
        for _ in 0..MOST_PASSES {
            let before = open.len();
            open.retain(|(name, text)| {
                let Some(value) = fold_text(text, &Known(self)) else { return true };
                let seen = values.entry(name).or_default();
                seen.push(value);
                if Some(&seen.len()) == counts.get(name) && seen.iter().all(|other| *other == value) {
                    self.integers.insert((*name).to_owned(), value);
                }
                false
            });
            if open.len() == before {
                break;
            }
        }
    }

    fn take(&mut self, piece: &Piece) {
        for (name, ty, kind) in &piece.globals {
            let memory = match kind {
                GlobalKind::Device => Memory::Global,
                GlobalKind::Constant => Memory::Constant,
            };
            self.globals.insert(name.clone(), Global { ty: self.type_of(ty), memory });
        }
        for (name, ty) in &piece.signatures {
            let ty = self.type_of(ty);
            self.returns
                .entry(name.clone())
                .and_modify(|seen| {
                    if *seen != ty {
                        *seen = Type::UNKNOWN
                    }
                })
                .or_insert(ty);
        }
        for (class, member, ty) in &piece.members {
            let ty = self.type_of(ty);
            let members = self.members.entry(class.clone()).or_default();
            let kept = members.entry(member.clone()).or_insert(ty);
            if *kept != ty {
                *kept = Type::UNKNOWN;
            }
        }
        for (name, parameters, text) in &piece.macros {
            let found = Some((parameters.clone(), text.clone()));
            let kept = self.macros.entry(name.clone()).or_insert_with(|| found.clone());
            if *kept != found {
                *kept = None;
            }
        }
        for launch in &piece.launches {
            let sizes = fold_dimensions(&launch.block, &Known(self));
            let one_column = sizes.is_some_and(|[x, y, z]| x == 1 && (y > 1 || z > 1));
            let starts_with_one = launch.block.starts_with("dim3(1,") || launch.block.starts_with("dim3{1,");
            let rounds_up = launch.rounds_up && !exact::is_exact(&launch.grid, &Known(self));
            let entry = self.launches.entry(launch.kernel.clone()).or_default();
            let columns = sizes.map(|[x, ..]| x);
            entry.columns = if entry.count == 0 || entry.columns == columns { columns } else { None };
            entry.count += 1;
            entry.one_column += usize::from(one_column || starts_with_one);
            entry.one_block += usize::from(launch.one_block);
            entry.rounding_up += usize::from(rounds_up);
            entry.dividing += usize::from(launch.divides);
            self.instantiate(launch);
        }
    }

    fn instantiate(&mut self, launch: &LaunchPiece) {
        let arguments = launch.template_arguments.iter().flatten();
        let instance: Instance = arguments.map(|text| fold_text(text, &Known(self))).collect();
        let seen = self.instances.entry(launch.kernel.clone()).or_default();
        if seen.contains(&instance) {
            return;
        }
        if seen.len() < MOST_INSTANCES {
            seen.push(instance);
        } else if let Some(last) = seen.last_mut() {
            let longest = last.len().max(instance.len());
            let agreed = |at| match (last.get(at), instance.get(at)) {
                (Some(one), Some(other)) if one == other => *one,
                _ => None,
            };
            *last = (0..longest).map(agreed).collect();
        }
    }

    fn content_hash(&self) -> u64 {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.integers.iter().map(|(name, value)| format!("i{name}={value}")));
        lines.extend(self.floats.iter().map(|(name, (value, ty))| format!("f{name}={value:?}{ty:?}")));
        lines.extend(self.types.iter().map(|(name, ty)| format!("t{name}={ty:?}")));
        lines.extend(self.globals.iter().map(|(name, global)| format!("g{name}={global:?}")));
        lines.extend(self.returns.iter().map(|(name, ty)| format!("r{name}={ty:?}")));
        lines
            .extend(self.launches.iter().map(|(name, launches)| format!("l{name}={:?}", launches.answers())));
        for (class, members) in &self.members {
            lines.extend(members.iter().map(|(name, ty)| format!("m{class}.{name}={ty:?}")));
        }
        lines.extend(self.macros.iter().map(|(name, text)| format!("x{name}={text:?}")));
        lines.extend(self.instances.iter().map(|(name, instances)| format!("n{name}={instances:?}")));
        lines.extend(self.asking.iter().map(|name| format!("a{name}")));
        lines.extend(self.asked_after.iter().map(|name| format!("b{name}")));
        lines.extend(self.defined.iter().map(|name| format!("d{name}")));
        lines.extend(self.showing.iter().map(|name| format!("s{name}")));
        lines.extend(self.lone.iter().map(|name| format!("o{name}")));
        lines.push(format!("c{}", self.checks));
        lines.sort_unstable();
        let mut hasher = Xxh3::new();
        hasher.update(&self.outer.fingerprint.to_le_bytes());
        for line in lines {
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
        }
        hasher.digest()
    }
}

/// The value of a text that is a floating literal, perhaps in brackets or negative.
fn floating_text(text: &str) -> Option<(f64, Type)> {
    let text = text.trim();
    let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(text).trim();
    let (sign, digits) = inner.strip_prefix('-').map_or((1.0, inner), |rest| (-1.0, rest));
    let starts = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let plain = digits.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '\'' | '+' | '-'));
    let (value, ty) = floating_literal(digits).filter(|_| starts && plain)?;
    Some((sign * value, ty))
}

#[cfg(test)]
mod tests;
