//! `rewrite/vector-access`: an elementwise kernel that loads and stores 16 bytes a thread.
//!
//! Each thread does four elements (two of 8 bytes) that lie side by side: where all four exist, through `float4`, else one by
//! one. Every element is computed by the same expression as before, so that results are the same to the last bit. What must be
//! known is that the pointers are those of allocations, which are aligned, and that the grid had a thread for each element.

use stitch_findings::{Code, Span};
use tree_sitter::Node;

use super::context::span;
use super::cover::{covers, least, node_at};
use super::elementwise::{Elementwise, Form};
use super::expression::{has_no_effect, macro_around, unused_name};
use super::launched::{Launched, blocks, launches_of};
use super::statements::{bare, declared};
use super::threads::is_known;
use super::uses::{nodes, uses};
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::outline::Launch;
use crate::rules::kind::Kind;
use crate::rules::names::Storage;
use crate::rules::types::{Type, maths};

/// The rule.
pub static RULE: Rule =
    Rule { code: Code::VECTOR_ACCESS, title: "Load and store four elements at once", finding: None, find };

/// Bytes of the widest load and store of a thread: CUDA C++ Programming Guide, "Device Memory Accesses".
const WIDEST: i64 = 16;

/// Fewer elements than this are left alone: the rest that is done one by one weighs too much (measured on the simulator: with 10
/// elements three times the requests, with 8192 a quarter).
const FEWEST: i64 = 1024;

/// Functions that allocate device memory, with alignment for every type: CUDA C++ Programming Guide, "Device Memory Accesses".
const ALLOCATORS: &[&str] =
    &["cudaMalloc", "cudaMallocManaged", "cudaMallocAsync", "cudaHostAlloc", "cudaMallocHost"];

const MEMBERS: &[&str] = &["x", "y", "z", "w"];

/// A pointer of the kernel, accessed at the index alone.
struct Array<'c> {
    name: &'c str,
    /// Its element as written, `const` left out, and the vector of these.
    vector: &'static str,
    /// Where it is accessed.
    places: Vec<Node<'c>>,
    is_loaded: bool,
    is_stored: bool,
}

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for kernel in context.kernels() {
        let launched = launches_of(context, kernel);
        let block = launched.as_ref().ok().and_then(|launched| blocks(context, launched).ok());
        let block = block.and_then(|all| all.iter().all(|block| *block == all[0]).then_some(all[0]));
        let Some(element) = Elementwise::of(context, kernel, block) else { continue };
        // Kernels that do more than one thing to their element are others, not refused ones.
        let [statement] = element.inner.as_slice() else { continue };
        let Some(assignment) = statement.named_child(0).filter(|node| Kind::of(*node) == Kind::Assignment)
        else {
            continue;
        };
        if assignment.child_by_field_name("left").is_none_or(|left| Kind::of(left) != Kind::Subscript) {
            continue;
        }
        let proposal = launched.and_then(|launched| rewrite(context, kernel, &element, &launched));
        proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(span(*statement), reason)));
    }
    proposals
}

/// The vector that an element goes into, with how many it holds.
fn vector(class: &str, ty: Type) -> Option<(&'static str, i64)> {
    let is_unsigned = class.contains("unsigned") || class.contains("uint");
    match ty.bytes() {
        Some(4) if ty.is_float() => Some(("float4", 4)),
        Some(8) if ty.is_double() => Some(("double2", 2)),
        Some(4) if ty.is_integer() => Some((if is_unsigned { "uint4" } else { "int4" }, 4)),
        _ => None,
    }
}

/// The pointers of the kernel, each accessed at `[i]` and nowhere else.
fn arrays<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
) -> Result<(Vec<Array<'c>>, i64), String> {
    let names = &kernel.walker().names;
    let mut found = Vec::new();
    let mut lanes = 0;
    for (id, variable) in names.variables.iter().enumerate() {
        let places = uses(context, kernel, id);
        if variable.storage == Storage::Local && variable.ty.pointers > 0 {
            return Err(format!("`{}` is a pointer or an array of the thread", variable.name));
        }
        if variable.ty.pointers == 0 || places.is_empty() {
            continue;
        }
        let head = context.source.get(..variable.visible.start).unwrap_or("");
        let parameter = head.rfind(['(', ',']).map_or("", |at| &head[at..]);
        if parameter.contains("volatile") {
            return Err(format!("`{}` is volatile", variable.name));
        }
        let (vector, count) = vector(variable.class, variable.ty.pointee())
            .filter(|_| variable.storage == Storage::Parameter && variable.ty.pointers == 1)
            .ok_or_else(|| format!("the elements of `{}` do not go into a vector", variable.name))?;
        if lanes != 0 && lanes != count {
            return Err("the elements have different sizes".to_owned());
        }
        lanes = count;
        let mut array =
            Array { name: variable.name, vector, places: Vec::new(), is_loaded: false, is_stored: false };
        for place in places {
            let access = at_index(context, kernel, element, place).ok_or_else(|| {
                let line = context.line(place.start_byte());
                format!("line {line} uses `{}` at another place than the thread's own", variable.name)
            })?;
            let parent = access.parent();
            let is_left = parent.is_some_and(|parent| {
                Kind::of(parent) == Kind::Assignment && parent.child_by_field_name("left") == Some(access)
            });
            let operator = parent.and_then(|parent| parent.child_by_field_name("operator"));
            array.is_stored |= is_left;
            array.is_loaded |= !is_left || operator.is_some_and(|operator| operator.kind() != "=");
            array.places.push(access);
        }
        found.push(array);
    }
    if lanes == 0 { Err("no memory is accessed".to_owned()) } else { Ok((found, lanes)) }
}

/// `name[i]`, if that is what the name is used for.
fn at_index<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
    name: Node<'c>,
) -> Option<Node<'c>> {
    let access = name.parent().filter(|parent| Kind::of(*parent) == Kind::Subscript)?;
    let index = bare(access.child_by_field_name("indices")?.named_child(0)?);
    let outer = access.parent()?;
    let is_address = Kind::of(outer) == Kind::Pointer || Kind::of(outer) == Kind::Update;
    let names = &kernel.walker().names;
    let fits = access.child_by_field_name("argument") == Some(name)
        && !is_address
        && names.resolve(context.text(index), index.start_byte()) == Some(element.index);
    fits.then_some(access)
}

/// That the expression may be computed for four elements before any of them is stored, and names nothing unknown.
fn is_pure<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
) -> Result<(), String> {
    let top = element.inner[0].named_child(0);
    for node in nodes(element.inner[0]) {
        let line = context.line(node.start_byte());
        match Kind::of(node) {
            Kind::Call => {
                let callee = node.child_by_field_name("function").map_or("", |callee| context.text(callee));
                let name = callee.rsplit("::").next().unwrap_or_default();
                if maths(name).is_none() || context.defines(name) {
                    return Err(format!("line {line} calls `{name}`"));
                }
            }
            Kind::Assignment if Some(node) == top => {}
            Kind::Assignment | Kind::Update | Kind::Lambda | Kind::Comma => {
                return Err(format!("line {line} changes more than the element"));
            }
            Kind::Identifier => {
                let name = context.text(node);
                let is_built_in = matches!(name, "threadIdx" | "blockIdx" | "blockDim" | "gridDim");
                let is_variable = kernel.walker().names.resolve(name, node.start_byte()).is_some();
                if !(is_built_in || is_variable || maths(name).is_some() || is_known(context, kernel, name)) {
                    return Err(format!("what `{name}` stands for is not known"));
                }
                if macro_around(context, node).is_some() {
                    return Err(format!("`{name}` is an argument of a macro"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// That the arguments for these pointers are allocations of the function that launches, none of them moved.
fn are_aligned<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    launched: &Launched<'c>,
    arrays: &[Array<'c>],
) -> Result<(), String> {
    for launch in &launched.launches {
        let line = context.line(launch.span.start);
        let caller = context.functions.iter().filter(|f| f.outline.span.contains(launch.span));
        let caller = caller.min_by_key(|f| f.outline.span.len());
        let caller = caller.ok_or_else(|| format!("the launch at line {line} is in no function"))?;
        for array in arrays {
            let at = kernel.outline.parameters.iter().position(|parameter| parameter.name == array.name);
            let argument = at.and_then(|at| launch.arguments.get(at)).map_or("", |text| text.trim());
            if !is_allocated(context, caller, launch, argument) {
                return Err(format!(
                    "`{argument}` at the launch at line {line} is not seen to be the start of an allocation"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a name at a launch is a local pointer that is only ever given to an allocator to be set.
fn is_allocated<'c>(context: &Context<'c>, caller: &Function<'c>, launch: &Launch, argument: &str) -> bool {
    let names = &caller.walker().names;
    let Some(id) = names.resolve(argument, launch.span.start) else { return false };
    let variable = &names.variables[id];
    if variable.storage != Storage::Local || variable.ty.pointers != 1 || !variable.dimensions.is_empty() {
        return false;
    }
    let mut is_set = false;
    for place in uses(context, caller, id) {
        let Some(mut at) = place.parent() else { return false };
        match Kind::of(at) {
            Kind::Pointer if at.child(0).is_some_and(|o| o.kind() == "&") => {
                while Kind::of(at) != Kind::Arguments {
                    match at.parent() {
                        Some(parent)
                            if matches!(
                                Kind::of(parent),
                                Kind::Cast | Kind::Parenthesized | Kind::Arguments
                            ) =>
                        {
                            at = parent;
                        }
                        _ => return false,
                    }
                }
                let callee = at.parent().and_then(|call| call.child_by_field_name("function"));
                let name = callee.map_or("", |callee| context.text(callee));
                if !ALLOCATORS.contains(&name.split('<').next().unwrap_or_default()) {
                    return false;
                }
                is_set |= place.start_byte() < launch.span.start;
            }
            Kind::Assignment if at.child_by_field_name("left") == Some(place) => {
                let is_null = at
                    .child_by_field_name("right")
                    .is_some_and(|right| matches!(context.text(right), "NULL" | "nullptr" | "0"));
                if !is_null {
                    return false;
                }
            }
            Kind::Update => return false,
            Kind::Arguments if takes_reference(context, at) => return false,
            _ => {}
        }
    }
    let starts_empty =
        variable.initial.is_none_or(|initial| matches!(context.text(initial), "NULL" | "nullptr" | "0"));
    is_set && starts_empty
}

/// Whether these are the arguments of a function of the file that has a reference among its parameters.
fn takes_reference(context: &Context, arguments: Node) -> bool {
    let callee = arguments.parent().and_then(|call| call.child_by_field_name("function"));
    let name = callee.map_or("", |callee| context.text(callee).split('<').next().unwrap_or_default());
    let mut all = context.outline.functions.iter().filter(|function| function.name == name);
    all.any(|function| function.parameters.iter().any(|parameter| parameter.ty.contains('&')))
}

fn rewrite<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
    launched: &Launched<'c>,
) -> Result<Proposal, String> {
    context.is_whole(kernel)?;
    element.index_is_free(context, kernel)?;
    let is_index = |node: &Node<'c>| {
        declared(context, kernel, *node).is_some()
            && has_no_effect(context, *node)
            && !nodes(*node).any(|part| matches!(Kind::of(part), Kind::Subscript | Kind::Pointer))
    };
    if !element.after.is_empty() || !element.before.iter().all(is_index) {
        return Err("the kernel does more than the one statement".to_owned());
    }
    is_pure(context, kernel, element)?;
    let (arrays, lanes) = arrays(context, kernel, element)?;
    covers(context, kernel, launched, element.bound)?;
    if let Some(count) = least(context, kernel, launched, element.bound).filter(|count| *count < FEWEST) {
        return Err(format!("{count} elements are too few to win anything"));
    }
    are_aligned(context, kernel, launched, &arrays)?;
    let grids = grids(context, launched, lanes)?;
    let mut edits = kernel_edits(context, kernel, element, &arrays, lanes)?;
    edits.extend(grids);
    let title = format!("Load and store {lanes} elements of {} bytes at once", WIDEST / lanes);
    let words =
        format!("one load or store of {WIDEST} bytes in place of {lanes}, by one thread in place of {lanes}");
    let mut rewrite = RULE.rewrite(span(element.inner[0]), title, edits, Gain::Instructions { words });
    let bound = context.text(element.bound);
    rewrite.proven = vec![
        "every pointer is the start of an allocation, and so aligned to 256 bytes".to_owned(),
        "each element is read and written at the thread's own index alone".to_owned(),
        format!("every launch had a thread for each element below `{bound}`"),
        "each element is computed by the same expression".to_owned(),
    ];
    rewrite.assumed.clone_from(&launched.assumed);
    let bits = if element.ty.bytes() == Some(4) { 31 } else { 32 };
    rewrite
        .assumed
        .push(format!("`{bound}` and {lanes} times the threads of a block together are less than 2^{bits}"));
    Ok(Proposal::Rewrite(rewrite))
}

/// The edits that give each launch a block for `lanes` as many elements.
fn grids<'c>(context: &Context<'c>, launched: &Launched<'c>, lanes: i64) -> Result<Vec<Edit>, String> {
    let mut edits = Vec::new();
    for launch in &launched.launches {
        let line = context.line(launch.span.start);
        let unclear = || format!("the grid of the launch at line {line} is not written as one number");
        let grid = launch.grid.as_ref().ok_or_else(unclear)?;
        let caller = context.functions.iter().filter(|f| f.outline.span.contains(launch.span));
        let caller = caller.min_by_key(|f| f.outline.span.len()).ok_or_else(unclear)?;
        let node = node_at(caller, grid.span).ok_or_else(unclear)?;
        let names = &caller.walker().names;
        let variable = names.resolve(context.text(node), node.start_byte()).map(|id| &names.variables[id]);
        let text = match variable {
            Some(variable) if variable.class == "dim3" => format!("{}.x", context.text(node)),
            Some(variable) if variable.ty.is_integer() => context.text(node).to_owned(),
            None if grid.value.is_some_and(|[x, y, z]| x > 0 && y == 1 && z == 1)
                && !context.text(node).contains("dim3") =>
            {
                context.text(node).to_owned()
            }
            None if Kind::of(node) == Kind::Binary
                && nodes(node).all(|n| Kind::of(n) != Kind::Call && !context.text(n).contains('.')) =>
            {
                context.text(node).to_owned()
            }
            _ => return Err(unclear()),
        };
        let text = if Kind::of(node) == Kind::Binary { format!("({text})") } else { text };
        let new = match (Kind::of(node), grid.value) {
            (Kind::Number, Some([blocks, ..])) => ((blocks + lanes - 1) / lanes).to_string(),
            _ => format!("({text} + {}) / {lanes}", lanes - 1),
        };
        // A grid of one block stays as it is.
        if new != context.text(node) {
            edits.push(Edit::replace(grid.span, new));
        }
    }
    Ok(edits)
}

fn kernel_edits<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
    arrays: &[Array<'c>],
    lanes: i64,
) -> Result<Vec<Edit>, String> {
    let index = kernel.walker().names.variables[element.index].name;
    let bound = context.text(element.bound);
    let statement = element.inner[0];
    let own = context.indentation(element.guard.start_byte());
    let unit = context.indentation_unit(kernel);
    let mut lines = vec![format!("if ({index} + {} < {}) {{", lanes - 1, guarded(element.bound, bound))];
    let mut names = Vec::new();
    for array in arrays {
        let name = unused_name(
            context,
            kernel,
            &format!("{}{}", array.name, if array.name.contains('_') { "_vector" } else { "Vector" }),
        );
        let vector = array.vector;
        if array.is_loaded {
            let (constant, cast) = if array.is_stored { ("", "") } else { ("const ", "const ") };
            lines.push(format!(
                "{own}{unit}{constant}{vector} {name} = *reinterpret_cast<{cast}{vector} *>({} + {index});",
                array.name
            ));
        } else {
            lines.push(format!("{own}{unit}{vector} {name};"));
        }
        names.push(name);
    }
    for member in 0..lanes {
        let text = for_member(context, kernel, element, (arrays, &names), statement, member);
        lines.push(format!("{own}{unit}{text}"));
    }
    for (array, name) in arrays.iter().zip(&names).filter(|(array, _)| array.is_stored) {
        lines.push(format!(
            "{own}{unit}*reinterpret_cast<{} *>({} + {index}) = {name};",
            array.vector, array.name
        ));
    }
    lines.extend([
        format!("{own}}} else {{"),
        format!("{own}{unit}for (; {index} < {bound}; {index}++) {{"),
        format!("{own}{unit}{unit}{}", context.text(statement)),
        format!("{own}{unit}}}"),
        format!("{own}}}"),
    ]);
    let place = match element.form {
        Form::Branch => span(element.guard),
        Form::Return => Span::new(element.guard.start_byte(), statement.end_byte()),
    };
    let comments: String = nodes(kernel.node)
        .filter(|node| Kind::of(*node) == Kind::Comment && place.contains(span(*node)))
        .map(|comment| format!("{}\n{own}", context.text(comment).trim_end()))
        .collect();
    let mut edits = declaration_edits(context, element, lanes);
    edits.push(Edit::replace(place, comments + &lines.join("\n")));
    Ok(edits)
}

/// The edits that make the index that of the thread's first element, and one that can change.
fn declaration_edits(context: &Context, element: &Elementwise, lanes: i64) -> Vec<Edit> {
    let start = context.text(element.start);
    let mut edits = vec![Edit::replace(span(element.start), format!("{lanes} * ({start})"))];
    let text = context.text(element.declaration);
    if let Some(at) = text.find("const ").filter(|at| *at < text.find('=').unwrap_or(0)) {
        let at = element.declaration.start_byte() + at;
        edits.push(Edit::replace(Span::new(at, at + "const ".len()), ""));
    }
    edits
}

/// The bound as the right side of a comparison.
fn guarded(bound: Node, text: &str) -> String {
    if matches!(Kind::of(bound), Kind::Conditional) { format!("({text})") } else { text.to_owned() }
}

/// The statement for one element of the vector.
fn for_member<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    element: &Elementwise<'c>,
    (arrays, names): (&[Array<'c>], &[String]),
    statement: Node<'c>,
    member: i64,
) -> String {
    let index = kernel.walker().names.variables[element.index].name;
    let component = usize::try_from(member).ok().and_then(|at| MEMBERS.get(at)).unwrap_or(&"x");
    let mut parts: Vec<(Span, String)> = Vec::new();
    for (array, name) in arrays.iter().zip(names) {
        parts.extend(array.places.iter().map(|place| (span(*place), format!("{name}.{component}"))));
    }
    let accessed: Vec<Span> = parts.iter().map(|(place, _)| *place).collect();
    for node in uses(context, kernel, element.index) {
        let place = span(node);
        let inside = span(statement).contains(place) && !accessed.iter().any(|access| access.contains(place));
        if inside && member > 0 {
            parts.push((place, format!("({index} + {member})")));
        }
    }
    parts.sort_by_key(|(place, _)| place.start);
    let mut text = String::new();
    let mut at = statement.start_byte();
    for (place, new) in &parts {
        text.push_str(&context.source[at..place.start]);
        text.push_str(new);
        at = place.end;
    }
    text.push_str(&context.source[at..statement.end_byte()]);
    text
}
