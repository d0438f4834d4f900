//! How a candidate's class runs on the attributes of the file's own class.
//!
//! An instance of the candidate's class is never made by its `__init__`: it shares the attributes of the original module, so parameters,
//! buffers and parts are the same objects under the same names, and the state dict can't change. What the candidate's `__init__` sets
//! beside them is set once on slots, which belong to no state dict, are not copied and not pickled.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tree_sitter::Node;

use super::super::source::{Source, all, children, docstring, is_name, parameters, undecorated};
use super::super::targets::{enclosing, method};
use super::layout::with_comments;
use super::parts::{self, Pair};

/// Modules of torch without parameters, buffers and modes: one more of them is no new state.
const STATELESS: &[&str] = &[
    "ReLU",
    "ReLU6",
    "GELU",
    "SiLU",
    "ELU",
    "SELU",
    "CELU",
    "Mish",
    "Sigmoid",
    "LogSigmoid",
    "Tanh",
    "Softmax",
    "LogSoftmax",
    "Softplus",
    "Softsign",
    "Hardtanh",
    "Hardswish",
    "Hardsigmoid",
    "LeakyReLU",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "Flatten",
    "Unflatten",
    "Identity",
    "Upsample",
    "PixelShuffle",
    "Fold",
    "Unfold",
];
/// What makes an entry of the state dict.
const STATE: &[&str] = &["Parameter", "register_parameter", "register_buffer", "Buffer"];

/// How an attribute is made.
#[derive(Clone, Debug)]
pub(super) struct Made<'t> {
    /// The last part of what is called, if it is a call.
    pub(super) callee: Option<String>,
    /// The expression.
    pub(super) value: Node<'t>,
}

/// Attributes that the methods `which` of classes assign to `self`, and those that they register.
pub(super) fn assigned<'t>(
    source: &'t Source<'_>,
    classes: &[Node<'t>],
    which: impl Fn(&str) -> bool,
) -> BTreeMap<String, Made<'t>> {
    let mut found = BTreeMap::new();
    for function in methods(classes).into_iter().filter(|function| which(source.field(*function, "name"))) {
        for node in all(function, &["assignment", "call", "augmented_assignment"]) {
            if node.kind() == "call" {
                let callee = source.field(node, "function").strip_prefix("self.").unwrap_or_default();
                let first = node.child_by_field_name("arguments").and_then(|list| list.named_child(0));
                let literal = first.filter(|first| first.kind() == "string").map(|first| source.of(first));
                if let Some(name) =
                    literal.filter(|_| callee.starts_with("register_") || callee == "add_module")
                {
                    let name = name.trim_matches(['"', '\'']).to_owned();
                    found.insert(name, Made { callee: Some(callee.to_owned()), value: node });
                }
                continue;
            }
            let (Some(left), Some(mut value)) =
                (node.child_by_field_name("left"), node.child_by_field_name("right"))
            else {
                continue;
            };
            while value.kind() == "assignment" {
                let Some(next) = value.child_by_field_name("right") else { break };
                value = next;
            }
            let parts = if left.kind() == "attribute" { vec![left] } else { children(left) };
            for part in parts.into_iter().filter(|part| part.kind() == "attribute") {
                let Some(name) = source.of(part).strip_prefix("self.").filter(|name| !name.contains('.'))
                else {
                    continue;
                };
                let last = |call: Node| source.field(call, "function").rsplit('.').next().map(str::to_owned);
                let callee = (value.kind() == "call").then(|| last(value)).flatten();
                found.entry(name.to_owned()).or_insert(Made { callee, value });
            }
        }
    }
    found
}

/// The methods of classes.
fn methods<'t>(classes: &[Node<'t>]) -> Vec<Node<'t>> {
    let bodies = classes.iter().filter_map(|class| class.child_by_field_name("body"));
    let members = bodies.flat_map(children).map(undecorated);
    members.filter(|node| node.kind() == "function_definition").collect()
}

/// Names of methods and of assignments in class bodies.
fn members(source: &Source<'_>, classes: &[Node]) -> HashSet<String> {
    let bodies = classes.iter().filter_map(|class| class.child_by_field_name("body"));
    bodies.flat_map(children).flat_map(|statement| super::candidate::bound(source, statement)).collect()
}

/// A class and those of the same file that it derives from.
pub(super) fn with_bases<'t>(source: &'t Source<'_>, class: Node<'t>) -> Vec<Node<'t>> {
    let known = all(source.root(), &["class_definition"]);
    let mut found: Vec<Node<'t>> = vec![class];
    let mut index = 0;
    while let Some(class) = found.get(index) {
        let bases = class.child_by_field_name("superclasses").map(children).unwrap_or_default();
        for base in bases {
            let named = known.iter().filter(|other| source.field(**other, "name") == source.of(base));
            let new: Vec<_> =
                named.filter(|other| !found.iter().any(|one| one.id() == other.id())).copied().collect();
            found.extend(new);
        }
        index += 1;
    }
    found
}

/// How the candidate's class is set up.
#[derive(Debug, Default)]
pub(super) struct SetUp<'t, 'n> {
    /// Classes of parts that are the candidate's own, each with the file's.
    pub(super) parts: Vec<Pair<'t, 'n>>,
    /// Attributes of its own.
    pub(super) slots: Vec<String>,
    /// The statements that set them.
    pub(super) lines: Vec<String>,
    /// Attributes that the original must have.
    pub(super) needs: BTreeSet<String>,
    /// Statements to add to the original's `__init__`.
    pub(super) added: Vec<String>,
}

/// Works out how the candidate's class gets at what it reads.
///
/// # Errors
/// What it needs that it can't get, in one sentence.
pub(super) fn set_up<'t, 'n>(
    original: (&'t Source<'_>, Node<'t>),
    candidate: (&'n Source<'_>, Node<'n>),
) -> Result<SetUp<'t, 'n>, String> {
    let ((source, class), (new, new_class)) = (original, candidate);
    let (classes, new_classes) = (with_bases(source, class), with_bases(new, new_class));
    let known = assigned(source, &classes, |_| true);
    let in_class = members(source, &classes);
    let made = assigned(new, &new_classes, |name| name == "__init__");
    let own_members = members(new, &new_classes);
    let later = assigned(new, &new_classes, |name| name != "__init__");
    let read = read(new, &new_classes);
    let foreign = has_foreign_base(source, &classes);
    let names = Mapping::new(source, class, new, new_class);
    let mut result = SetUp::default();
    for (name, made) in &made {
        let there = known.get(name);
        let callee = made.callee.as_deref().unwrap_or_default();
        if let Some(there) = there.filter(|_| read.contains(name)) {
            let pairs = parts::pairs(name, (source, there), (new, made))?;
            if !pairs.iter().all(|pair| parts::is_same(source, new, pair)) {
                result.slots.push(name.clone());
                result.lines.push(parts::shared(name, &pairs, source, new));
                result.parts.extend(pairs);
                continue;
            }
        }
        match there {
            Some(there) if read.contains(name) => same_maker(new, name, made, there, source)?,
            Some(_) => {}
            None if in_class.contains(name) => {}
            None if foreign && (STATE.contains(&callee) || is_class(callee)) => {}
            None if adds_state(new, made) => {
                return Err(format!("The candidate adds `{name}`, which would be new in the state dict."));
            }
            None if read.contains(name) => {
                let have = |attribute: &str| known.contains_key(attribute) || in_class.contains(attribute);
                names.resolve(name, made, &have, &mut result)?;
                continue;
            }
            None => {}
        }
    }
    for (name, made) in &later {
        if known.contains_key(name) || result.slots.contains(name) {
            continue;
        }
        if made.callee.as_deref().is_some_and(|callee| STATE.contains(&callee)) || is_layer(new, made) {
            return Err(format!(
                "The candidate adds `{name}` when it is called, which would be new in the state dict."
            ));
        }
        result.slots.push(name.clone());
    }
    for name in read {
        if !own_members.contains(&name) && !result.slots.contains(&name) {
            result.needs.insert(name);
        }
    }
    Ok(result)
}

/// How the candidate's classes of parts are set up, and those of their parts in turn. The module's own pair is `first`.
///
/// # Errors
/// What one of them needs that it can't get, in one sentence.
pub(super) fn set_up_parts<'t, 'n>(
    (source, new): (&'t Source<'_>, &'n Source<'_>),
    first: &SetUp<'t, 'n>,
) -> Result<Vec<(Node<'n>, SetUp<'t, 'n>)>, String> {
    let mut done: Vec<(Pair<'t, 'n>, SetUp<'t, 'n>)> = Vec::new();
    let mut todo = first.parts.clone();
    while let Some((old, own)) = todo.pop() {
        if let Some(((known, _), _)) = done.iter().find(|((_, class), _)| class.id() == own.id()) {
            if known.id() == old.id() {
                continue;
            }
            let name = new.field(own, "name");
            return Err(format!("The candidate's `{name}` stands for several classes of the file."));
        }
        let found = set_up((source, old), (new, own))?;
        let (name, theirs) = (new.field(own, "name"), source.field(old, "name"));
        if !found.added.is_empty() {
            return Err(format!(
                "The candidate's `{name}` keeps arguments that the file's `{theirs}` does not."
            ));
        }
        let classes = with_bases(source, old);
        let (known, inside) = (assigned(source, &classes, |_| true), members(source, &classes));
        let has = |need: &&String| {
            known.contains_key(*need) || inside.contains(*need) || OF_MODULE.contains(&need.as_str())
        };
        if let Some(need) =
            found.needs.iter().find(|need| !has(need)).filter(|_| !has_foreign_base(source, &classes))
        {
            return Err(format!(
                "The candidate's `{name}` reads `self.{need}`, which the file's `{theirs}` has not."
            ));
        }
        todo.extend(found.parts.iter().copied());
        done.push(((old, own), found));
    }
    Ok(done.into_iter().map(|((_, own), found)| (own, found)).collect())
}

/// What every module has.
const OF_MODULE: &[&str] = &["training", "parameters", "named_parameters", "buffers", "children", "modules"];

/// Attributes of `self` that methods other than `__init__` read.
fn read(source: &Source<'_>, classes: &[Node]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for function in
        methods(classes).into_iter().filter(|function| source.field(*function, "name") != "__init__")
    {
        for node in all(function, &["attribute"]) {
            if source.field(node, "object") == "self" {
                names.insert(source.field(node, "attribute").to_owned());
            }
        }
    }
    names
}

/// Whether a class derives from one of another file, but for `nn.Module`, whose attributes are not seen here.
fn has_foreign_base(source: &Source<'_>, classes: &[Node]) -> bool {
    let known: Vec<_> = classes.iter().map(|class| source.field(*class, "name")).collect();
    let bases =
        classes.iter().filter_map(|class| class.child_by_field_name("superclasses")).flat_map(children);
    let mut bases = bases.filter(|base| base.kind() != "keyword_argument").map(|base| source.of(base));
    bases.any(|base| base.rsplit('.').next() != Some("Module") && !known.contains(&base))
}

/// Refuses an attribute that is another kind of thing in the candidate.
fn same_maker(
    new: &Source<'_>,
    name: &str,
    made: &Made,
    there: &Made,
    source: &Source<'_>,
) -> Result<(), String> {
    let same = match (&made.callee, &there.callee) {
        (Some(one), Some(other)) => one == other,
        (None, None) => true,
        // `self.scale = math.sqrt(d)` and `self.scale = d ** 0.5` are both plain values.
        (Some(one), None) | (None, Some(one)) => !is_class(one) && !STATE.contains(&one.as_str()),
    };
    let plain = |made: &Made| {
        made.callee.as_ref().is_none_or(|callee| !is_class(callee) && !STATE.contains(&callee.as_str()))
    };
    if same || plain(made) && plain(there) {
        return Ok(());
    }
    let short = |text: &str| text.chars().take(40).collect::<String>();
    Err(format!(
        "`self.{name}` is `{}` in the candidate and `{}` in the file, so the candidate can't use the file's own.",
        short(new.of(made.value)),
        short(source.of(there.value))
    ))
}

fn is_class(callee: &str) -> bool {
    callee.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Whether a value is a module with state of its own, or one whose class is not known to have none.
fn is_layer(source: &Source<'_>, made: &Made) -> bool {
    let Some(callee) = made.callee.as_deref().filter(|callee| is_class(callee)) else { return false };
    let path = source.field(made.value, "function");
    let of_torch = path.starts_with("nn.") || path.starts_with("torch.nn.");
    let own = all(source.root(), &["class_definition"])
        .into_iter()
        .find(|class| source.field(*class, "name") == path);
    let own_module = own.is_some_and(|class| source.field(class, "superclasses").contains("Module"));
    of_torch && !STATELESS.contains(&callee) || own_module
}

fn adds_state(source: &Source<'_>, made: &Made) -> bool {
    let callee = made.callee.as_deref().unwrap_or_default();
    let kept = callee != "register_buffer" || !source.of(made.value).contains("persistent=False");
    STATE.contains(&callee) && kept || is_layer(source, made)
}

/// What the names of the candidate's `__init__` are called in the original.
struct Mapping<'s, 'a> {
    new: &'s Source<'a>,
    /// Parameters of the candidate's `__init__`, and the original's in the same place.
    parameters: BTreeMap<String, Option<String>>,
    /// Attributes of the original that hold a parameter as it was given.
    held: BTreeMap<String, String>,
    /// Names that the candidate's `__init__` assigns.
    locals: HashSet<String>,
    /// Parameters that the original assigns anew.
    changed: HashSet<String>,
    has_init: bool,
}

impl<'s, 'a> Mapping<'s, 'a> {
    fn new(source: &Source<'_>, class: Node, new: &'s Source<'a>, new_class: Node) -> Self {
        let (init, new_init) = (method(source, class, "__init__"), method(new, new_class, "__init__"));
        let names = |source: &Source<'_>, init: Option<Node>| -> Vec<String> {
            let list = init.map(|init| parameters(source, init)).unwrap_or_default();
            list.into_iter().skip(1).map(|parameter| parameter.name.to_owned()).collect()
        };
        let (old_names, new_names) = (names(source, init), names(new, new_init));
        let paired = |(place, name): (usize, &String)| {
            let other =
                if old_names.contains(name) { Some(name.clone()) } else { old_names.get(place).cloned() };
            (name.clone(), other)
        };
        let parameters = new_names.iter().enumerate().map(paired).collect();
        let locals = |source: &Source<'_>, init: Option<Node>| -> HashSet<String> {
            let body = init.and_then(|init| init.child_by_field_name("body"));
            let statements = body.map(children).unwrap_or_default();
            statements.into_iter().flat_map(|statement| super::candidate::bound(source, statement)).collect()
        };
        let changed = locals(source, init);
        let mut held = BTreeMap::new();
        for node in init.map(|init| all(init, &["assignment"])).unwrap_or_default() {
            let (left, right) = (source.field(node, "left"), source.field(node, "right"));
            let attribute = left.strip_prefix("self.").filter(|name| !name.contains(['.', '[']));
            if let Some(attribute) =
                attribute.filter(|_| old_names.iter().any(|name| name == right) && !changed.contains(right))
            {
                held.insert(right.to_owned(), attribute.to_owned());
            }
        }
        Self { new, parameters, held, locals: locals(new, new_init), changed, has_init: init.is_some() }
    }

    /// Says how `self.name` is set where the original has no such attribute.
    fn resolve(
        &self,
        name: &str,
        made: &Made,
        have: &dyn Fn(&str) -> bool,
        result: &mut SetUp<'_, '_>,
    ) -> Result<(), String> {
        let unclear = |why: &str| {
            format!(
                "`self.{name}` is set by the candidate's `__init__` from {why}, which the file's class does not keep."
            )
        };
        let mut edits = Vec::new();
        let mut given = Vec::new();
        for node in all(made.value, &["identifier"]).into_iter().filter(|node| is_name(*node)) {
            let word = self.new.of(node);
            if word == "self" {
                let attribute = node.parent().map_or("", |parent| self.new.field(parent, "attribute"));
                if !have(attribute) && !result.slots.iter().any(|slot| slot == attribute) {
                    return Err(unclear(&format!("`self.{attribute}`")));
                }
            } else if self.locals.contains(word) {
                return Err(unclear(&format!("the local name `{word}`")));
            } else if let Some(original) = self.parameters.get(word) {
                let Some(original) = original else { return Err(unclear(&format!("the argument `{word}`"))) };
                match self.held.get(original) {
                    Some(attribute) => edits.push((node.byte_range(), format!("self.{attribute}"))),
                    None => {
                        edits.push((node.byte_range(), original.clone()));
                        given.push(original.clone());
                    }
                }
            }
        }
        let mut text = self.new.of(made.value).to_owned();
        for (range, new) in edits.into_iter().rev() {
            let base = made.value.start_byte();
            text.replace_range(range.start - base..range.end - base, &new);
        }
        if given.is_empty() {
            let module = made.callee.as_deref().is_some_and(|callee| STATELESS.contains(&callee));
            let line = if module {
                format!("object.__setattr__(self, \"{name}\", {text})")
            } else {
                format!("self.{name} = {text}")
            };
            result.slots.push(name.to_owned());
            result.lines.push(line);
            return Ok(());
        }
        // A plain value of the arguments is kept by the original as well; anything more might be state.
        let plain = all(made.value, &["call", "lambda", "attribute"]).is_empty();
        if !plain || !self.has_init || given.iter().any(|name| self.changed.contains(name)) {
            return Err(unclear(&format!("the argument `{}`", given.join("`, `"))));
        }
        result.added.push(format!("self.{name} = {text}"));
        Ok(())
    }
}

/// The candidate's class as it is put into the file: its `__init__` gone, its own attributes set up.
pub(super) fn edits(
    source: &Source<'_>,
    class: Node,
    set_up: &SetUp<'_, '_>,
) -> Vec<(std::ops::Range<usize>, String)> {
    let Some(body) = class.child_by_field_name("body") else { return Vec::new() };
    let indent = source.indent(body.start_byte());
    let step = source.step();
    let mut text = String::new();
    if !set_up.slots.is_empty() {
        let slots = set_up.slots.iter().map(|slot| format!("\"{slot}\""));
        text.push_str(&format!("__slots__ = {}\n", super::guard::tuple(slots)));
    }
    if !set_up.lines.is_empty() {
        text.push_str(&format!("\n{indent}def _set_up(self):\n"));
        text.push_str(&format!(
            "{indent}{step}\"\"\"What the module has beside the attributes that it shares.\"\"\"\n"
        ));
        for line in &set_up.lines {
            text.push_str(&format!("{indent}{step}{line}\n"));
        }
    }
    let init = method(source, class, "__init__")
        .filter(|init| enclosing(*init).is_some_and(|outer| outer.id() == class.id()));
    let mut edits = Vec::new();
    if let Some(init) = init {
        let whole = super::super::source::decorated(init);
        let end = source.line_end(whole.end_byte());
        edits.push((with_comments(source, whole)..end, String::new()));
    }
    if !text.is_empty() {
        let first = children(body)
            .into_iter()
            .find(|node| docstring(body).is_none_or(|doc| node.end_byte() != doc.end_byte()));
        let at = first.map_or(body.end_byte(), |first| with_comments(source, first));
        edits.push((at..at, format!("{indent}{text}\n")));
    }
    // Where both begin at one place, the insertion comes first.
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    edits
}
