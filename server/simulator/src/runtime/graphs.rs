//! Graphs of work, and their executable forms.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::context::Context;
use super::errors::Code;
use super::work::Work;

/// A node. Its dependencies are nodes of the same graph.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub work: Work,
    pub dependencies: BTreeSet<u64>,
    /// The node that it was cloned from.
    pub original: u64,
}

/// A graph. Handles rise, so nodes lie in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    pub nodes: BTreeMap<u64, Node>,
}

/// A graph that can be launched: its work in an order that its edges allow.
#[derive(Debug, Clone, Default)]
pub(super) struct Executable {
    pub steps: Vec<(u64, Work)>,
    pub flags: u64,
    pub disabled: HashSet<u64>,
    /// For each node of the graph in order: the places of those that it depends on.
    pub shape: Vec<Vec<usize>>,
    /// The graph that it was made of.
    pub graph: u64,
}

impl Executable {
    /// Memory that a launch allocates and does not free.
    pub(super) fn kept(&self) -> Vec<u64> {
        let freed = |address| self.steps.iter().any(|(_, work)| *work == Work::Free(address));
        let allocated = self.steps.iter().filter_map(|(_, work)| match work {
            Work::Allocate(address) => Some(*address),
            _ => None,
        });
        allocated.filter(|&address| !freed(address)).collect()
    }
}

/// All graphs.
#[derive(Debug, Default)]
pub(super) struct Graphs {
    pub graphs: HashMap<u64, Graph>,
    pub executables: HashMap<u64, Executable>,
    /// Which graph a node is in.
    pub owner: HashMap<u64, u64>,
    /// Memory that launches allocated and nothing has freed since.
    pub allocated: HashSet<u64>,
}

impl Graph {
    /// For each node in order: the places of those that it depends on. `None` for a cycle.
    pub(super) fn shape(&self) -> Option<Vec<Vec<usize>>> {
        let order = self.order()?;
        let place: HashMap<u64, usize> = order.iter().enumerate().map(|(at, &node)| (node, at)).collect();
        let before = |node: &u64| -> Vec<usize> {
            let dependencies = self.nodes.get(node).into_iter().flat_map(|node| &node.dependencies);
            let mut places: Vec<usize> = dependencies.filter_map(|node| place.get(node).copied()).collect();
            places.sort_unstable();
            places
        };
        Some(order.iter().map(before).collect())
    }

    /// Nodes in an order that the edges allow, or `None` for a cycle.
    fn order(&self) -> Option<Vec<u64>> {
        let mut waiting: BTreeMap<u64, usize> = BTreeMap::new();
        let mut followers: HashMap<u64, Vec<u64>> = HashMap::new();
        for (&node, inside) in &self.nodes {
            waiting.insert(node, inside.dependencies.len());
            for &dependency in &inside.dependencies {
                followers.entry(dependency).or_default().push(node);
            }
        }
        let mut ready: VecDeque<u64> =
            waiting.iter().filter(|(_, count)| **count == 0).map(|(&node, _)| node).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(node) = ready.pop_front() {
            order.push(node);
            for follower in followers.get(&node).into_iter().flatten() {
                if let Some(count) = waiting.get_mut(follower) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push_back(*follower);
                    }
                }
            }
        }
        (order.len() == self.nodes.len()).then_some(order)
    }
}

impl Graphs {
    pub(super) fn graph(&self, handle: u64) -> Result<&Graph, Code> {
        self.graphs.get(&handle).ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn graph_mut(&mut self, handle: u64) -> Result<&mut Graph, Code> {
        self.graphs.get_mut(&handle).ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn node(&self, handle: u64) -> Result<&Node, Code> {
        let owner = self.owner.get(&handle).ok_or(Code::INVALID_VALUE)?;
        self.graph(*owner)?.nodes.get(&handle).ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn node_mut(&mut self, handle: u64) -> Result<&mut Node, Code> {
        let owner = *self.owner.get(&handle).ok_or(Code::INVALID_VALUE)?;
        self.graph_mut(owner)?.nodes.get_mut(&handle).ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn executable(&mut self, handle: u64) -> Result<&mut Executable, Code> {
        self.executables.get_mut(&handle).ok_or(Code::INVALID_VALUE)
    }

    /// Removes a graph, its nodes, and the graphs in them.
    pub(super) fn remove(&mut self, handle: u64) -> Option<Graph> {
        let mut first = None;
        let mut list = vec![handle];
        while let Some(handle) = list.pop() {
            let Some(graph) = self.graphs.remove(&handle) else { continue };
            for (node, inside) in &graph.nodes {
                self.owner.remove(node);
                if let Work::Child(child) = inside.work {
                    list.push(child);
                }
            }
            first.get_or_insert(graph);
        }
        first
    }

    /// Some nodes of a graph and all that they depend on.
    pub(super) fn ancestors(&self, graph: u64, nodes: &[u64]) -> HashSet<u64> {
        let mut found = HashSet::new();
        let mut list = nodes.to_vec();
        while let Some(node) = list.pop() {
            if found.insert(node)
                && let Some(inside) = self.graphs.get(&graph).and_then(|graph| graph.nodes.get(&node))
            {
                list.extend(&inside.dependencies);
            }
        }
        found
    }

    /// The work of a graph in order, graphs within it opened.
    pub(super) fn flatten(&self, handle: u64) -> Result<Vec<(u64, Work)>, Code> {
        let order = |handle| self.graph(handle)?.order().ok_or(Code::INVALID_VALUE);
        let mut steps = Vec::new();
        // Open lists of nodes, the innermost last.
        let mut open: Vec<VecDeque<u64>> = vec![order(handle)?.into()];
        while let Some(list) = open.last_mut() {
            let Some(node) = list.pop_front() else {
                open.pop();
                continue;
            };
            let work = self.node(node)?.work.clone();
            if let Work::Child(child) = work {
                open.push(order(child)?.into());
            }
            steps.push((node, work));
        }
        Ok(steps)
    }
}

impl Context {
    /// A new, empty graph.
    pub(super) fn new_graph(&mut self) -> u64 {
        let handle = self.handle();
        self.graphs.graphs.insert(handle, Graph::default());
        handle
    }

    /// Adds a node.
    pub(super) fn add_node(&mut self, graph: u64, work: Work, dependencies: Vec<u64>) -> Result<u64, Code> {
        let nodes = &self.graphs.graph(graph)?.nodes;
        if dependencies.iter().any(|node| !nodes.contains_key(node)) {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.handle();
        let dependencies = dependencies.into_iter().collect();
        self.graphs.owner.insert(handle, graph);
        self.graphs.graph_mut(graph)?.nodes.insert(handle, Node { work, dependencies, original: handle });
        Ok(handle)
    }

    /// A copy of a graph, with copies of the graphs in it.
    pub(super) fn clone_graph(&mut self, original: u64) -> Result<u64, Code> {
        let first = self.new_graph();
        let mut list = vec![(original, first)];
        while let Some((from, to)) = list.pop() {
            let nodes = self.graphs.graph(from)?.nodes.clone();
            let mut copies: HashMap<u64, u64> = HashMap::new();
            for (node, mut inside) in nodes {
                let copy = self.handle();
                copies.insert(node, copy);
                if let Work::Child(child) = inside.work {
                    let fresh = self.new_graph();
                    list.push((child, fresh));
                    inside.work = Work::Child(fresh);
                }
                inside.original = node;
                self.graphs.owner.insert(copy, to);
                self.graphs.graph_mut(to)?.nodes.insert(copy, inside);
            }
            for inside in self.graphs.graph_mut(to)?.nodes.values_mut() {
                let moved = inside.dependencies.iter().filter_map(|node| copies.get(node).copied());
                inside.dependencies = moved.collect();
            }
        }
        Ok(first)
    }
}
