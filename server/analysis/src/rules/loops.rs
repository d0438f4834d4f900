//! Loops of the host: `static/malloc-in-loop` and `static/synchronize-in-loop`.

use std::collections::HashMap;

use stitch_findings::Code;
use tree_sitter::Node;

use super::facts::Call;
use super::host::ALLOCATING;
use super::kind::Kind;
use super::report::Report;
use super::walk::Walker;

/// Calls that free what `cudaMalloc` and its kin allocate.
const FREEING: &[&str] = &["cuMemFree", "cudaFree", "cudaFreeArray", "cudaFreeHost"];

/// Words in a loop whose pass is a whole problem, set up and measured or shown: what it allocates serves all of that.
const WHOLE_PROBLEM: &[&str] = &[
    " malloc(",
    ")malloc(",
    "=malloc(",
    " new ",
    "chrono",
    "clock",
    "time(",
    "getTime",
    "Timer",
    "EventRecord",
    "printf(",
    "cout",
    "omp_",
    "MPI_",
];

/// Words in a loop where waiting is the point: it measures, checks or shows results, reads them back, or serves several
/// devices or processes.
const WAITING_IS_MEANT: &[&str] = &[
    "ElapsedTime",
    "chrono",
    "clock",
    "gettimeofday",
    "Timer",
    "timer",
    "wtime",
    "bench",
    "Bench",
    "warmup",
    "measur",
    "Profiler",
    "EventRecord",
    "time(",
    "getTime",
    "verify",
    "Verify",
    "compare",
    "Compare",
    "DeviceToHost",
    "FromDevice",
    "FromGPU",
    "MPI_",
    "cudaMemcpy(",
    "cudaMemcpyFromSymbol",
    " printf(",
    "cout",
    // These wait by themselves.
    "cudaFree(",
    "cudaMalloc",
    "cudaDestroy",
    "thrust::",
    "cudaSetDevice",
    "barrier",
    "Barrier",
    "Process",
    "ASSERT_",
    "EXPECT_",
    "elapsed",
    "Elapsed",
    "now()",
    // A window is drawn anew in each pass, and shows what was computed.
    "draw(",
    "Draw",
    "render",
    "Render",
    "SwapBuffers",
    "glfw",
];

/// Whether `name[` stands in a text.
fn reads_element(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        text[at + name.len()..].starts_with('[')
            && !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '&' | '.' | '>'))
    })
}

/// The names and numbers in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// What is asked about loops, each answer looked for once.
pub struct Loops<'w, 't> {
    walker: &'w Walker<'t>,
    /// The starts of all launches, in order.
    launches: Vec<usize>,
    /// The calls that free memory.
    freeing: Vec<Node<'t>>,
    meant: HashMap<u32, bool>,
    by_device: HashMap<u32, bool>,
    whole: HashMap<u32, bool>,
}

impl<'w, 't> Loops<'w, 't> {
    /// Of one function.
    pub fn of(walker: &'w Walker<'t>) -> Self {
        let mut launches: Vec<usize> =
            walker.facts.launches.iter().map(|launch| launch.node.start_byte()).collect();
        launches.sort_unstable();
        let freeing = walker.facts.calls.iter().filter(|call| FREEING.contains(&call.name));
        let freeing = freeing.map(|call| call.node).collect();
        Self {
            walker,
            launches,
            freeing,
            meant: HashMap::new(),
            by_device: HashMap::new(),
            whole: HashMap::new(),
        }
    }

    fn node(&self, id: u32) -> Option<Node<'t>> {
        self.walker.facts.loops.get(id as usize).map(|found| found.node)
    }

    fn outermost(&self, id: u32) -> u32 {
        self.walker.facts.loops.get(id as usize).map_or(id, |found| found.outermost)
    }

    /// Whether the loop launches kernels.
    fn launches(&self, id: u32) -> bool {
        let Some(node) = self.node(id) else { return false };
        let first = self.launches.partition_point(|start| *start < node.start_byte());
        self.launches.get(first).is_some_and(|start| *start < node.end_byte())
    }

    /// Whether all kernels that the loop launches print, or do nothing.
    fn only_shows(&self, id: u32) -> bool {
        let Some(node) = self.node(id) else { return false };
        let launches = &self.walker.facts.launches;
        let mut inside =
            launches.iter().filter(|launch| node.byte_range().contains(&launch.node.start_byte()));
        inside.all(|launch| self.walker.environment.only_shows(launch.kernel))
    }

    /// Whether the host reads an array that it hands to a kernel, which it can in managed memory.
    fn reads_what_is_launched_on(&self, id: u32) -> bool {
        let Some(node) = self.node(id) else { return false };
        let text = self.walker.text(node);
        let first = self.launches.partition_point(|start| *start < node.start_byte());
        let inside = self.launches[first..].iter().take_while(|start| **start < node.end_byte()).count();
        let launches = self
            .walker
            .facts
            .launches
            .iter()
            .filter(|launch| node.byte_range().contains(&launch.node.start_byte()));
        launches.take(inside.min(MOST_INNER)).any(|launch| {
            let Some(arguments) = launch.node.child_by_field_name("arguments") else { return false };
            let mut cursor = arguments.walk();
            arguments.named_children(&mut cursor).any(|argument| {
                Kind::of(argument) == Kind::Identifier && reads_element(text, self.walker.text(argument))
            })
        })
    }

    /// Whether each pass is a problem of its own.
    fn is_whole_problem(&mut self, id: u32) -> bool {
        let text = self.node(id).map_or("", |node| self.walker.text(node));
        *self.whole.entry(id).or_insert_with(|| WHOLE_PROBLEM.iter().any(|word| text.contains(word)))
    }

    /// Whether waiting is what the loop, or the comment before it, is for.
    fn waiting_is_meant(&mut self, id: u32) -> bool {
        let Some(node) = self.node(id) else { return false };
        let comment = node.prev_named_sibling().filter(|before| before.kind() == "comment");
        if comment.is_some_and(|comment| self.walker.text(comment).to_ascii_lowercase().contains("warm")) {
            return true;
        }
        let text = self.walker.text(node);
        // `for (int i = 0; i < WARM_UPS; ++i)`
        let head = node.child_by_field_name("body").map_or(0, |body| body.start_byte() - node.start_byte());
        *self.meant.entry(id).or_insert_with(|| {
            WAITING_IS_MEANT.iter().any(|word| text.contains(word))
                || text.get(..head).is_some_and(|head| head.to_ascii_lowercase().contains("warm"))
        })
    }

    /// Whether the loop is left as soon as a call succeeds: it tries again until one does.
    fn stops_on_success(&self, id: u32) -> bool {
        let text = self.node(id).map_or("", |node| self.walker.text(node));
        text.match_indices("== cudaSuccess").any(|(at, found)| {
            let then = text[at + found.len()..].trim_start_matches([')', '{', ' ', '\t', '\r', '\n']);
            then.starts_with("break") || then.starts_with("return")
        })
    }

    /// Whether what is waited for belongs to one pass of the loop: a stream that is made in it, or that the loop goes over.
    fn waits_for_its_own(&self, call: &Call, within: u32) -> bool {
        let (Some(node), Some(arguments)) = (self.node(within), call.node.child_by_field_name("arguments"))
        else {
            return false;
        };
        let body = node.child_by_field_name("body").map_or(node.end_byte(), |body| body.start_byte());
        words(self.walker.text(arguments)).any(|word| {
            let found = self.walker.names.resolve(word, call.node.start_byte());
            found.map(|id| &self.walker.names.variables[id]).is_some_and(|variable| {
                let from = variable.visible.start;
                node.byte_range().contains(&from) && (from <= body || variable.initial.is_none())
            })
        })
    }

    /// Whether the loop frees what the call allocates, after it.
    fn frees(&self, name: &str, call: &Call, within: u32) -> bool {
        let Some(node) = self.node(within) else { return false };
        self.freeing.iter().any(|other| {
            other.start_byte() > call.node.end_byte()
                && other.end_byte() <= node.end_byte()
                && words(self.walker.text(*other)).any(|word| word == name)
        })
    }

    /// Whether nothing is done with the memory, so that allocation is what the loop measures or tries out.
    fn only_allocates(&self, within: u32) -> bool {
        let Some(node) = self.node(within) else { return false };
        let inside = || {
            self.walker.facts.calls.iter().filter(|call| node.byte_range().contains(&call.node.start_byte()))
        };
        let manages = |name: &str| FREEING.contains(&name) || ALLOCATING.contains(&name);
        let managing: Vec<_> =
            inside().filter(|call| manages(call.name)).map(|call| call.node.byte_range()).collect();
        let mut others = inside().filter(|call| {
            let at = call.node.byte_range();
            // What encloses such a call checks its error, and what it encloses is an argument.
            !managing.iter().any(|other| at.contains(&other.start) || other.contains(&at.start))
        });
        !self.launches(within) && others.next().is_none()
    }

    /// Whether a loop that follows in the same pass works with what is allocated, so that it serves many launches.
    fn reuses(&self, name: &str, call: &Call, within: u32) -> bool {
        let Some(node) = self.node(within) else { return false };
        let loops = &self.walker.facts.loops;
        let first = loops.partition_point(|inner| inner.node.start_byte() <= call.node.start_byte());
        loops[first..]
            .iter()
            .take_while(|inner| inner.node.end_byte() <= node.end_byte())
            .take(MOST_INNER)
            .any(|inner| words(self.walker.text(inner.node)).any(|word| word == name))
    }

    /// Whether the size follows the counter of a `for` loop: each pass then is a problem of another size, as in a benchmark.
    fn grows_with(&self, arguments: Node, within: u32) -> bool {
        let node = self.node(within);
        // `for (…; …; n *= 2)` or `for (int n : sizes)`.
        let counter = node.and_then(|node| {
            node.child_by_field_name("update").or_else(|| node.child_by_field_name("declarator"))
        });
        let Some(update) = counter else { return false };
        let counters: Vec<&str> = words(self.walker.text(update)).collect();
        let mut cursor = arguments.walk();
        let mut pending: Vec<Node> = arguments.named_children(&mut cursor).skip(1).collect();
        for _ in 0..MOST_NAMES {
            let Some(node) = pending.pop() else { break };
            let Some(text) = self.walker.source.get(node.byte_range()) else { continue };
            for word in words(text) {
                if counters.contains(&word) {
                    return true;
                }
                if let Some(id) = self.walker.names.resolve(word, node.start_byte()) {
                    let variable = &self.walker.names.variables[id];
                    pending
                        .extend(variable.initial.filter(|initial| initial.start_byte() != node.start_byte()));
                }
            }
        }
        false
    }

    /// Whether the loop goes over devices.
    fn goes_over_devices(&mut self, id: u32) -> bool {
        let text = self.node(id).map_or("", |node| self.walker.text(node));
        *self.by_device.entry(id).or_insert_with(|| text.contains("cudaSetDevice"))
    }
}

/// Whether a function of this name is a test, which need not be fast.
fn is_test(name: &str) -> bool {
    name.split('_').next().is_some_and(|first| first.eq_ignore_ascii_case("test"))
}

/// How many loops inside another are looked at.
const MOST_INNER: usize = 64;

/// How many names are followed to see what a size depends on.
const MOST_NAMES: usize = 64;

/// Adds a finding for memory that is allocated and freed in each pass of a loop.
pub fn allocation(loops: &mut Loops, call: &Call, within: u32, report: &mut Report) {
    let Some(arguments) = call.node.child_by_field_name("arguments") else { return };
    let target = arguments.named_child(0).map_or("", |first| loops.walker.text(first));
    // `&buffers[i]` makes many buffers once; one a device is the same.
    let makes_many = target.contains(['[', '.', '+']) || target.contains("->");
    let Some(name) = words(target).last().filter(|_| !makes_many) else { return };
    if loops.goes_over_devices(within)
        || is_test(&loops.walker.function.name)
        || loops.only_allocates(within)
        || loops.is_whole_problem(within)
        || !loops.frees(name, call, within)
        || loops.reuses(name, call, within)
        || loops.grows_with(arguments, within)
    {
        return;
    }
    let message = format!(
        "`{}` allocates `{name}` in each pass of the loop around it, which frees it again: allocation is slow and freeing waits \
         for the device.",
        call.name
    );
    let advice =
        "Allocate once before the loop, as large as any pass needs, or use `cudaMallocAsync` with a pool.";
    report.add(Code::MALLOC_IN_LOOP, call.node, message, advice);
}

/// Adds a finding for a wait in each pass of a loop that launches kernels.
pub fn synchronisation(loops: &mut Loops, call: &Call, within: u32, report: &mut Report) {
    // Waiting for each of several streams ends a phase; it is no wait in each pass of the work.
    let text = loops.walker.text(call.node);
    let many_streams = text.contains(['[', '.']) || text.contains("->");
    if many_streams
        || loops.walker.function.name.to_ascii_lowercase().contains("bench")
        || !loops.launches(within)
        || loops.only_shows(within)
        || loops.waiting_is_meant(loops.outermost(within))
        || loops.reads_what_is_launched_on(within)
        || loops.stops_on_success(within)
        || loops.waits_for_its_own(call, within)
    {
        return;
    }
    let message = format!(
        "`{}` makes the host wait for the device in each pass of the loop around it, so the device idles while the next \
         launch is prepared.",
        call.name
    );
    report.add(
        Code::SYNCHRONIZE_IN_LOOP,
        call.node,
        message,
        "Wait once after the loop: work in one stream runs in order anyway.",
    );
}
