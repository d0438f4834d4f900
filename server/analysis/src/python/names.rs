//! What the names of a Python file stand for: imports, and the assignments that give a name its value.
//!
//! Not an interpreter. A name has all the values that are assigned to it where it is defined, in the order of the text;
//! names of a class and of `self` are one.

use std::collections::HashMap;
use std::sync::Arc;

use stitch_findings::Span;

use super::facts::{Assignment, Compilation, Facts, FunctionFact, Growth, ScopeIndex};
use super::split::Piece;

/// Aliases of aliases are followed so far.
const ALIASES: usize = 8;

/// A level of names: a function or class, by the piece it stands in and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Level {
    piece: usize,
    scope: ScopeIndex,
}

/// The file's own level.
const MODULE: Level = Level { piece: usize::MAX, scope: 0 };

/// An assignment, and the piece it stands in.
pub(super) type Assigned<'a> = (usize, &'a Assignment);

/// All that the pieces of a file tell.
pub(super) struct Names<'a> {
    pub(super) pieces: &'a [Piece],
    pub(super) facts: &'a [Arc<Facts>],
    imports: HashMap<&'a str, &'a str>,
    /// Assignments by level; those to an attribute of `self` at the level of the class.
    assigned: HashMap<Level, HashMap<&'a str, Vec<Assigned<'a>>>>,
    functions: HashMap<&'a str, Vec<(usize, &'a FunctionFact)>>,
    classes: HashMap<&'a str, Level>,
    by_level: HashMap<Level, &'a FunctionFact>,
}

impl<'a> Names<'a> {
    /// Of a whole file: `facts` has one entry a piece.
    pub(super) fn new(pieces: &'a [Piece], facts: &'a [Arc<Facts>]) -> Self {
        let mut names = Self {
            pieces,
            facts,
            imports: HashMap::new(),
            assigned: HashMap::new(),
            functions: HashMap::new(),
            classes: HashMap::new(),
            by_level: HashMap::new(),
        };
        for (piece, facts) in facts.iter().enumerate() {
            for import in &facts.imports {
                names.imports.insert(&import.local, &import.path);
            }
            for class in &facts.classes {
                names.classes.insert(&class.name, Level { piece, scope: class.scope });
            }
            for function in &facts.functions {
                names.functions.entry(&function.name).or_default().push((piece, function));
            }
        }
        for (piece, facts) in facts.iter().enumerate() {
            for function in &facts.functions {
                names.by_level.insert(names.level(piece, function.scope), function);
            }
        }
        for (piece, facts) in facts.iter().enumerate() {
            for assignment in &facts.assignments {
                let level = names.level(piece, assignment.scope);
                let own = assignment.target.strip_prefix("self.").or(assignment.target.strip_prefix("cls."));
                let key = match own {
                    Some(attribute) => names.class_around(level).map(|class| (class, attribute)),
                    None => Some((level, assignment.target.as_str())),
                };
                if let Some((level, name)) = key {
                    names
                        .assigned
                        .entry(level)
                        .or_default()
                        .entry(name)
                        .or_default()
                        .push((piece, assignment));
                }
            }
        }
        names
    }

    /// The level that `scope` of `piece` is.
    pub(super) fn level(&self, piece: usize, scope: ScopeIndex) -> Level {
        if scope != 0 {
            return Level { piece, scope };
        }
        let head = self.pieces.get(piece).and_then(|piece| piece.outer);
        // The head of a class or function has no other level than its own.
        let own = |head: usize| {
            Some((head, self.facts.get(head)?.scopes.len().checked_sub(1).filter(|own| *own > 0)?))
        };
        head.and_then(own).map_or(MODULE, |(piece, scope)| Level { piece, scope })
    }

    /// Whether this is the file's own level.
    pub(super) fn is_file(&self, level: Level) -> bool {
        level == MODULE
    }

    fn parent(&self, level: Level) -> Option<Level> {
        let scope = self.facts.get(level.piece)?.scopes.get(level.scope)?;
        Some(self.level(level.piece, scope.parent))
    }

    fn is_class(&self, level: Level) -> bool {
        self.facts
            .get(level.piece)
            .and_then(|facts| facts.scopes.get(level.scope))
            .is_some_and(|scope| scope.is_class)
    }

    /// The levels from `level` outwards, the file's own last.
    pub(super) fn outwards(&self, level: Level) -> impl Iterator<Item = Level> {
        std::iter::successors(Some(level), |level| self.parent(*level))
    }

    /// The innermost class around a level, itself included.
    pub(super) fn class_around(&self, level: Level) -> Option<Level> {
        self.outwards(level).find(|level| self.is_class(*level))
    }

    /// The name of the innermost function around a level, itself included.
    pub(super) fn function_around(&self, level: Level) -> Option<&'a str> {
        let level = self.outwards(level).find(|level| *level != MODULE && !self.is_class(*level))?;
        Some(self.facts.get(level.piece)?.scopes.get(level.scope)?.name.as_str())
    }

    /// The names around and of a definition: `Outer.method`, without the file's own level.
    pub(super) fn qualified(&self, outer: Level, name: &str) -> String {
        let scope = |level: Level| self.facts.get(level.piece)?.scopes.get(level.scope);
        let mut parts: Vec<_> =
            self.outwards(outer).filter_map(scope).map(|scope| scope.name.as_str()).collect();
        parts.reverse();
        parts.push(name);
        parts.join(".")
    }

    /// The full path of a name with dots: imports and aliases resolved. `nn.Linear` becomes `torch.nn.Linear`.
    pub(super) fn resolve(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..ALIASES {
            let (first, rest) =
                path.split_once('.').map_or((path.as_str(), None), |(first, rest)| (first, Some(rest)));
            let full = match self.imports.get(first) {
                Some(full) => *full,
                None => match self.known(MODULE, first) {
                    [(_, Assignment { value, .. })] => match &value.kind {
                        super::value::ValueKind::Name(name) => name,
                        _ => return path,
                    },
                    _ => return path,
                },
            };
            if full == first {
                return path;
            }
            let next = rest.map_or_else(|| full.to_owned(), |rest| format!("{full}.{rest}"));
            // An imported path is final; an alias may stand for an imported name.
            if self.imports.contains_key(first) {
                return next;
            }
            path = next;
        }
        path
    }

    /// Whether a module whose path starts so is imported, wholly or in part.
    pub(super) fn imports_from(&self, module: &str) -> bool {
        self.imports.values().any(|path| {
            path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// The modules of `from module import *` and the plain imports, as `local -> path`.
    pub(super) fn star_of(&self, module: &str) -> bool {
        self.facts
            .iter()
            .flat_map(|facts| &facts.imports)
            .any(|import| import.local == "*" && import.path == module)
    }

    /// What is assigned to `name` as seen from `level`, in the order of the text. Empty where nothing is known.
    pub(super) fn assignments(&self, level: Level, name: &str) -> &[Assigned<'a>] {
        if let Some((first, attribute)) = name.split_once('.') {
            let class = match first {
                "self" | "cls" => self.class_around(level),
                _ => self.classes.get(first).copied(),
            };
            return class.map_or(&[], |class| self.known(class, attribute));
        }
        // The names of a class are not seen from its methods, only from its own level.
        let seen = self.outwards(level).filter(|around| *around == level || !self.is_class(*around));
        seen.map(|around| self.known(around, name)).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The calls that add to the list `name` of `level`, with the pieces they stand in.
    pub(super) fn growths(&self, level: Level, name: &str) -> impl Iterator<Item = (usize, &'a Growth)> {
        let all = self.facts.iter().enumerate();
        let all = all.flat_map(|(piece, facts)| facts.growths.iter().map(move |growth| (piece, growth)));
        all.filter(move |(piece, growth)| growth.target == name && self.level(*piece, growth.scope) == level)
    }

    /// Where the text of a function or class stands; `None` for the file's own level.
    pub(super) fn region(&self, level: Level) -> Option<Span> {
        let scope = self.by_level.get(&level)?;
        let piece = self.pieces.get(level.piece)?;
        let span = scope.span.shifted(piece.span.start);
        // A long function is a head and its statements.
        let end = if piece.is_head { self.ends()[level.piece] } else { span.end };
        Some(Span::new(span.start, end.max(span.end)))
    }

    /// The module that a name with dots is imported from.
    pub(super) fn imported_from(&self, path: &str) -> Option<String> {
        let (first, rest) = path.split_once('.').map_or((path, ""), |(first, rest)| (first, rest));
        let full = *self.imports.get(first)?;
        let full = if rest.is_empty() { full.to_owned() } else { format!("{full}.{rest}") };
        Some(full.rsplit_once('.').map_or(full.as_str(), |(module, _)| module).to_owned())
    }

    /// Whether a name seen from `level` is a parameter of a function.
    pub(super) fn is_parameter(&self, level: Level, name: &str) -> bool {
        self.outwards(level).any(|around| {
            let function = self.by_level.get(&around);
            function.is_some_and(|f| f.parameters.iter().any(|parameter| parameter.name == name))
        })
    }

    fn known(&self, level: Level, name: &str) -> &[Assigned<'a>] {
        self.assigned.get(&level).and_then(|names| names.get(name)).map_or(&[], Vec::as_slice)
    }

    /// What the functions of this name return: `make_source`, `self.make_source`.
    pub(super) fn returned(&self, path: &str) -> Vec<Assigned<'a>> {
        let name = path.rsplit('.').next().unwrap_or_default();
        let functions = self.functions.get(name).into_iter().flatten();
        let returned =
            functions.flat_map(|(piece, f)| self.known(self.level(*piece, f.scope), super::facts::RETURNED));
        returned.copied().collect()
    }

    /// If a name seen from `level` is a parameter: what its function is called by, and the parameter's place among the arguments.
    pub(super) fn parameter(&self, level: Level, name: &str) -> Option<(&'a str, usize)> {
        let found = self.outwards(level).find_map(|around| {
            let function = *self.by_level.get(&around)?;
            let place = function.parameters.iter().position(|parameter| parameter.name == name)?;
            Some((around, function, place))
        });
        let (around, function, place) = found?;
        let has_receiver =
            function.parameters.first().is_some_and(|first| matches!(first.name.as_str(), "self" | "cls"));
        let place = place.checked_sub(usize::from(has_receiver))?;
        if function.name != "__init__" {
            return Some((&function.name, place));
        }
        let class = self.class_around(around)?;
        let name = &self.facts.get(class.piece)?.scopes.get(class.scope)?.name;
        Some((name, place))
    }

    /// The calls of the functions so called that seem to be given a source, with the pieces they stand in.
    pub(super) fn source_calls(&self, name: &str) -> impl Iterator<Item = (usize, &'a Compilation)> {
        let calls = self.facts.iter().enumerate();
        let calls = calls.flat_map(|(piece, facts)| facts.source_calls.iter().map(move |call| (piece, call)));
        calls.filter(move |(_, call)| call.function.rsplit('.').next() == Some(name))
    }

    /// Where each piece ends with all its members.
    pub(super) fn ends(&self) -> Vec<usize> {
        let mut ends: Vec<_> = self.pieces.iter().map(|piece| piece.span.end).collect();
        for index in (0..self.pieces.len()).rev() {
            if let Some(outer) = self.pieces[index].outer {
                ends[outer] = ends[outer].max(ends[index]);
            }
        }
        ends
    }

    /// Where an assignment is evaluated.
    pub(super) fn level_of(&self, assigned: Assigned<'_>) -> Level {
        self.level(assigned.0, assigned.1.scope)
    }

    /// The bases of the class of this name in the file, as written.
    pub(super) fn bases(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let class = self.classes.get(name).and_then(|level| {
            self.facts.get(level.piece)?.classes.iter().find(|class| class.scope == level.scope)
        });
        class.into_iter().flat_map(|class| class.bases.iter().map(String::as_str))
    }

    /// The class of this name in the file.
    pub(super) fn class(&self, name: &str) -> Option<Level> {
        self.classes.get(name).copied()
    }
}
