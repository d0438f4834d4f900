//! What a launch is like where a person says what some of its function's names stand for, and where the calls of that function do.
//!
//! `int n = atoi(argv[1]);` has no value in the text; with one said for `n`, the grid `(n + 255) / 256` and the allocation of
//! `n * sizeof(float)` bytes have. `void run(float* d, int n)` has one where all calls in the file pass the same.

mod body;
mod callers;
mod divisions;
mod globals;

use std::collections::BTreeMap;

use body::Body;
use callers::File;
use divisions::rewritten;

use super::{Reading, Workspace};
use crate::outline::{ArgumentFacts, Launch, Outline};

/// A launch as it is where some names have values.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumed {
    /// With grid, block, shared memory and the facts of its arguments. One outside of a function stays as it is.
    pub launch: Launch,
    /// For each argument, why the size of its allocation is not known, where it has one in the same function.
    pub unknown_sizes: Vec<Option<String>>,
    /// For each template argument, its value, where it is an integer.
    pub template_values: Vec<Option<i64>>,
}

/// The launch, where `values` holds.
pub fn assume(source: &str, outline: &Outline, launch: &Launch, values: &BTreeMap<String, i64>) -> Assumed {
    let mut assumed = launch.clone();
    let reading = Reading::of(source, &Workspace::default());
    let file = File { source, outline, environment: reading.environment(), values };
    let Some(body) = Body::around(&file, launch.span) else {
        return Assumed { launch: assumed, unknown_sizes: Vec::new(), template_values: Vec::new() };
    };
    let called = callers::of(&file, body.function, 0);
    let globals = file.globals();
    let locals = body.locals(&file, &globals, &called);
    let scope = locals.at(body.at);
    for expression in [&mut assumed.grid, &mut assumed.block].into_iter().flatten() {
        expression.value = expression.value.or_else(|| scope.fold_dimensions(&rewritten(&expression.text)));
    }
    if let Some(shared) = &mut assumed.shared {
        let value = scope.fold(&rewritten(&shared.text)).map(|value| [value, 1, 1]);
        shared.value = shared.value.or(value);
    }
    let (facts, unknown_sizes) = body.facts(&launch.arguments, &locals, &called);
    assumed.argument_facts.resize(facts.len(), ArgumentFacts::default());
    for (known, new) in assumed.argument_facts.iter_mut().zip(facts) {
        known.value = known.value.or(new.value);
        known.bytes = known.bytes.or(new.bytes);
    }
    let template_values = launch.template_arguments.iter().map(|text| scope.fold(text)).collect();
    Assumed { launch: assumed, unknown_sizes, template_values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Analysis, Language};

    #[test]
    fn values_that_are_said_reach_grid_and_allocations() {
        let source = "#define BLOCK 128\n__global__ void k(float* x, int n) {}\n\
            int main(int c, char** v) { int n = atoi(v[1]); size_t bytes = n * sizeof(float); float* d;\n\
            cudaMalloc(&d, bytes); const int blocks = ceil_div(n, BLOCK); k<<<blocks, BLOCK>>>(d, n); }\n\
            void wrap(float* d, int m, int threads) { k<<<CEIL_DIV(m, threads), threads, (m + 1) * 4>>>(d, m); }\n";
        let analysis = Analysis::of(Language::Cuda, source);
        let launches = &analysis.outline().launches;
        let with = |index: usize, values: &[(&str, i64)]| {
            let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            assume(source, analysis.outline(), &launches[index], &values).launch
        };
        let nothing = with(0, &[]);
        assert_eq!(nothing.grid.unwrap().value, None);
        assert_eq!(nothing.block.unwrap().value, Some([128, 1, 1]));
        let first = with(0, &[("n", 1000)]);
        assert_eq!(first.grid.unwrap().value, Some([8, 1, 1]));
        assert_eq!(first.argument_facts[0].bytes, Some(4000));
        assert_eq!(first.argument_facts[1].value, Some(1000));
        let second = with(1, &[("m", 100), ("threads", 32)]);
        assert_eq!(
            (second.grid.unwrap().value, second.shared.unwrap().value),
            (Some([4, 1, 1]), Some([404, 1, 1]))
        );
    }
}
