//! The functions of graphs.

use std::collections::{HashMap, HashSet};

use super::context::Context;
use super::copies;
use super::errors::Code;
use super::graphs::Executable;
use super::launch;
use super::ownership::Origin;
use super::protocol::{Answer, Call, words};
use super::work::{KernelWork, Work};
use crate::memory::Kind;

/// An empty graph, or a copy of one.
pub(super) fn create(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let handle =
        if call.argument(0) == 0 { context.new_graph() } else { context.clone_graph(call.argument(0))? };
    Ok(Answer::results([handle]))
}

pub(super) fn destroy(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    context.graphs.remove(call.argument(0)).map(|_| Answer::done()).ok_or(Code::INVALID_VALUE)
}

pub(super) fn destroy_node(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let node = call.argument(0);
    let owner = context.graphs.owner.remove(&node).ok_or(Code::INVALID_VALUE)?;
    let graph = context.graphs.graph_mut(owner)?;
    graph.nodes.remove(&node);
    graph.nodes.values_mut().for_each(|other| {
        other.dependencies.remove(&node);
    });
    Ok(Answer::done())
}

/// The work that a call describes: a type at its argument 2, then what belongs to it; `parameters` are a kernel's.
fn work(context: &mut Context, call: &Call, parameters: &[u8]) -> Result<Work, Code> {
    const FIRST: usize = 3;
    let [one, two] = [FIRST, FIRST + 1].map(|index| call.argument(index));
    Ok(match call.argument(2) {
        0 => {
            let triple = |at: usize| [call.small(at), call.small(at + 1), call.small(at + 2)];
            let kernel = KernelWork {
                function: one,
                grid: triple(FIRST + 1),
                block: triple(FIRST + 4),
                dynamic_shared: call.argument(FIRST + 7),
                cooperative: false,
                cluster: [0; 3],
                parameters: parameters.to_vec(),
            };
            launch::validate(context, &kernel)?;
            Work::Kernel(Box::new(kernel))
        }
        1 => {
            let copy = copies::copy_work(context, call, FIRST)?;
            if copy.rows.bytes() == 0 {
                return Err(Code::INVALID_VALUE);
            }
            Work::Copy(Box::new(copy))
        }
        2 => Work::Fill(Box::new(copies::fill_work(context, call, FIRST)?)),
        3 => Work::Host { function: one, data: two, callback: None },
        4 => Work::Child(context.clone_graph(one)?),
        5 => Work::Empty,
        6 | 7 if !context.events.contains_key(&one) => return Err(Code::INVALID_VALUE),
        6 => Work::Wait(one),
        7 => Work::Record(one),
        10 => Work::Allocate(context.allocate(one, Kind::Device, Origin::Graph)?),
        11 => Work::Free(one),
        _ => return Err(Code::NOT_SUPPORTED),
    })
}

pub(super) fn add(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let count = usize::try_from(call.argument(1)).map_err(|_| Code::INVALID_VALUE)?;
    let links = count.checked_mul(8).filter(|&bytes| bytes <= call.blob.len()).ok_or(Code::INVALID_VALUE)?;
    let (dependencies, parameters) = call.blob.split_at(links);
    let dependencies = words(dependencies);
    if dependencies.iter().collect::<HashSet<_>>().len() != count {
        return Err(Code::INVALID_VALUE);
    }
    let graph = call.argument(0);
    context.graphs.graph(graph)?;
    let work = work(context, call, parameters)?;
    let address = if let Work::Allocate(address) = work { address } else { 0 };
    let node = context.add_node(graph, work, dependencies)?;
    Ok(Answer::results([node, address]))
}

/// New parameters for a node, or for its step in an executable graph.
pub(super) fn set(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (executable, node) = (call.argument(0), call.argument(1));
    let fresh = work(context, call, &call.blob)?;
    let place = if executable == 0 {
        &mut context.graphs.node_mut(node)?.work
    } else {
        let steps = &mut context.graphs.executable(executable)?.steps;
        &mut steps.iter_mut().find(|(own, _)| *own == node).ok_or(Code::INVALID_VALUE)?.1
    };
    if place.node_type() != fresh.node_type() {
        return Err(Code::INVALID_VALUE);
    }
    *place = fresh;
    Ok(Answer::done())
}

pub(super) fn node_type(context: &Context, call: &Call) -> Result<Answer, Code> {
    Ok(Answer::results([context.graphs.node(call.argument(0))?.work.node_type()]))
}

pub(super) fn child(context: &Context, call: &Call) -> Result<Answer, Code> {
    match context.graphs.node(call.argument(0))?.work {
        Work::Child(graph) => Ok(Answer::results([graph])),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(super) fn find_in_clone(context: &Context, call: &Call) -> Result<Answer, Code> {
    let nodes = &context.graphs.graph(call.argument(1))?.nodes;
    let clone = |(own, node): &(&u64, &super::graphs::Node)| {
        **own != node.original && node.original == call.argument(0)
    };
    let found = nodes.iter().find(clone);
    found.map(|(&node, _)| Answer::results([node])).ok_or(Code::INVALID_VALUE)
}

/// Nodes, roots, dependencies, dependents, edges: as the stub numbers them.
pub(super) fn list(context: &Context, call: &Call) -> Result<Answer, Code> {
    let owner = call.argument(0);
    let graphs = &context.graphs;
    let around =
        |node: u64| graphs.owner.get(&node).ok_or(Code::INVALID_VALUE).and_then(|&graph| graphs.graph(graph));
    let found: Vec<u64> = match call.argument(1) {
        0 => graphs.graph(owner)?.nodes.keys().copied().collect(),
        1 => {
            let nodes = graphs.graph(owner)?.nodes.iter();
            nodes.filter(|(_, node)| node.dependencies.is_empty()).map(|(&node, _)| node).collect()
        }
        2 => graphs.node(owner)?.dependencies.iter().copied().collect(),
        3 => {
            let nodes = around(owner)?.nodes.iter();
            nodes.filter(|(_, node)| node.dependencies.contains(&owner)).map(|(&node, _)| node).collect()
        }
        _ => {
            let nodes = graphs.graph(owner)?.nodes.iter();
            nodes.flat_map(|(&to, node)| node.dependencies.iter().flat_map(move |&from| [from, to])).collect()
        }
    };
    Ok(Answer { blob: found.into_iter().flat_map(u64::to_le_bytes).collect(), ..Answer::done() })
}

pub(super) fn link(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let handles = words(&call.blob);
    let (from, to) = handles.split_at(handles.len() / 2);
    let graph = context.graphs.graph_mut(call.argument(0))?;
    let remove = call.argument(2) != 0;
    for (from, to) in from.iter().zip(to) {
        if from == to || !graph.nodes.contains_key(from) {
            return Err(Code::INVALID_VALUE);
        }
        let dependencies = &mut graph.nodes.get_mut(to).ok_or(Code::INVALID_VALUE)?.dependencies;
        let changed = if remove { dependencies.remove(from) } else { dependencies.insert(*from) };
        if !changed {
            return Err(Code::INVALID_VALUE);
        }
    }
    Ok(Answer::done())
}

/// Free memory on launch, launch from the device, node priorities. (Upload, 2, needs a stream.)
const KNOWN_FLAGS: u64 = 13;
/// `cudaGraphInstantiateFlagAutoFreeOnLaunch`.
const FREE_ON_LAUNCH: u64 = 1;

pub(super) fn instantiate(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let flags = call.argument(1);
    if flags & !KNOWN_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let graph = call.argument(0);
    let steps = context.graphs.flatten(graph)?;
    let shape = context.graphs.graph(graph)?.shape().ok_or(Code::INVALID_VALUE)?;
    let executable = Executable { steps, flags, disabled: HashSet::new(), shape, graph };
    // Its memory has one address, so one instance at a time.
    let owns = |(_, work): &(u64, Work)| matches!(work, Work::Allocate(_));
    let twin = |one: &Executable| one.graph == graph;
    if executable.steps.iter().any(owns) && context.graphs.executables.values().any(twin) {
        return Err(Code::NOT_SUPPORTED);
    }
    let handle = context.handle();
    context.graphs.executables.insert(handle, executable);
    Ok(Answer::results([handle]))
}

pub(super) fn exec_destroy(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    context.graphs.executables.remove(&call.argument(0)).map(|_| Answer::done()).ok_or(Code::INVALID_VALUE)
}

pub(super) fn exec_flags(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    Ok(Answer::results([context.graphs.executable(call.argument(0))?.flags]))
}

pub(super) fn launch(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (executable, stream) = (call.argument(0), call.argument(1));
    let executable = context.graphs.executable(executable)?.clone();
    let kept = executable.kept();
    let Executable { steps, disabled, flags, .. } = executable;
    let work = steps.into_iter().filter(|(node, _)| !disabled.contains(node)).map(|(_, work)| work);
    if context.is_capturing(stream)? {
        // The manual speaks of a child node; an H200 refuses it in every mode.
        if let Some(capture) = context.check_capture(stream)? {
            context.streams.invalidate(&HashSet::from([capture]));
        }
        return Err(Code::CAPTURE_UNSUPPORTED);
    }
    let work: Vec<Work> = work.collect();
    if flags & FREE_ON_LAUNCH == 0 && kept.iter().any(|start| context.graphs.allocated.contains(start)) {
        return Err(Code::INVALID_VALUE);
    }
    context.graphs.allocated.extend(kept);
    context.issue_all(stream, work)
}

/// `cudaGraphExecUpdateResult`.
const UPDATED: u64 = 0;
const TOPOLOGY_CHANGED: u64 = 2;
const TYPE_CHANGED: u64 = 3;

/// Takes the parameters of a graph of the same shape. Where it differs, the answer says how, and nothing changes.
pub(super) fn exec_update(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let fresh = context.graphs.flatten(call.argument(1))?;
    let shape = context.graphs.graph(call.argument(1))?.shape();
    let executable = context.graphs.executable(call.argument(0))?;
    let differs = |result: u64, node: u64| {
        let results = vec![result, node, Code::GRAPH_UPDATE_FAILURE.0.unsigned_abs().into()];
        Ok(Answer::results(results))
    };
    if fresh.len() != executable.steps.len() || shape.is_some_and(|shape| shape != executable.shape) {
        return differs(TOPOLOGY_CHANGED, 0);
    }
    let other =
        fresh.iter().zip(&executable.steps).find(|((_, new), (_, old))| new.node_type() != old.node_type());
    if let Some(((node, _), _)) = other {
        return differs(TYPE_CHANGED, *node);
    }
    let kept: HashMap<usize, u64> = executable.steps.iter().map(|(node, _)| *node).enumerate().collect();
    executable.steps = fresh
        .into_iter()
        .enumerate()
        .map(|(at, (node, work))| (*kept.get(&at).unwrap_or(&node), work))
        .collect();
    Ok(Answer::results([UPDATED, 0, 0]))
}

pub(super) fn set_enabled(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (node, enabled) = (call.argument(1), call.argument(2) != 0);
    let executable = context.graphs.executable(call.argument(0))?;
    let step = executable.steps.iter().find(|(own, _)| *own == node).ok_or(Code::INVALID_VALUE)?;
    // Kernels, copies and fills can be switched off.
    if step.1.node_type() > 2 {
        return Err(Code::INVALID_VALUE);
    }
    if enabled {
        executable.disabled.remove(&node)
    } else {
        executable.disabled.insert(node)
    };
    Ok(Answer::done())
}

pub(super) fn get_enabled(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let executable = context.graphs.executable(call.argument(0))?;
    if !executable.steps.iter().any(|(own, _)| *own == call.argument(1)) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Answer::results([u64::from(!executable.disabled.contains(&call.argument(1)))]))
}
