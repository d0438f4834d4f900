//! Decides what a harness does: sizes, values, grid and block, each with where it comes from.

use std::collections::BTreeMap;

use stitch_analysis::{Assumed, Function, Launch, Outline};

use super::answers::Answers;
use super::model::{Argument, Array, Harness, Scalar};
use super::needs::Needs;
use super::parameter::{Parameter, Role};

/// Why there is no harness.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Something must be said.
    #[error(transparent)]
    Needs(#[from] Needs),
    /// A parameter that can't be made up.
    #[error(
        "No harness can be made for `{kernel}`: of its parameter `{parameter}`, {reason}. Write a program around the kernel, and verify that."
    )]
    Unsupported {
        /// The kernel.
        kernel: String,
        /// The parameter.
        parameter: String,
        /// Why.
        reason: String,
    },
    /// The kernel writes nothing.
    #[error("`{kernel}` has no array that it may write, so there is nothing to compare.")]
    WritesNothing {
        /// The kernel.
        kernel: String,
    },
    /// An answer is about a parameter that the kernel does not have.
    #[error("`{kernel}` has no {what} `{name}`; it has {}.", known.join(", "))]
    UnknownAnswer {
        /// The kernel.
        kernel: String,
        /// What was named: `array`, `scalar`.
        what: &'static str,
        /// The name.
        name: String,
        /// What the kernel has.
        known: Vec<String>,
    },
}

/// Plans the harness of `kernel`, whose file has this outline and text. `written` are template arguments that were written with its name.
///
/// # Errors
/// What must be said, or why it can't be done.
pub fn plan(
    outline: &Outline,
    source: &str,
    kernel: &Function,
    written: Option<&[String]>,
    answers: &Answers,
) -> Result<Harness, PlanError> {
    let parameters: Vec<Parameter> = kernel
        .parameters
        .iter()
        .enumerate()
        .filter(|(_, parameter)| !(parameter.name.is_empty() && parameter.ty == "void"))
        .map(|(index, parameter)| Parameter::read(&parameter.name, &parameter.ty, index))
        .collect();
    let name = kernel.qualified_name.clone();
    for parameter in &parameters {
        if let Role::Unsupported { reason } = &parameter.role {
            return Err(PlanError::Unsupported {
                kernel: name,
                parameter: parameter.name.clone(),
                reason: reason.clone(),
            });
        }
    }
    check_answers(&name, &parameters, answers)?;
    let assumed = best_launch(outline, kernel).map(|launch| {
        let values = said_of_names(launch, &parameters, answers);
        stitch_analysis::assume(source, outline, launch, &values)
    });
    let launch = assumed.as_ref().map(|assumed| &assumed.launch);
    let planner = Planner { kernel, source, answers, launch, assumed: assumed.as_ref(), outline };
    planner.plan(name, &parameters, written)
}

/// What the answers say of the variables that a launch is written with: `--scalar n=7` of `count` in `k<<<…>>>(x, count)`.
fn said_of_names(launch: &Launch, parameters: &[Parameter], answers: &Answers) -> BTreeMap<String, i64> {
    let mut values = BTreeMap::new();
    let mut say = |text: &str, value: i64| {
        let is_name = text.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_name {
            values.insert(text.to_owned(), value);
        }
    };
    for (parameter, argument) in parameters.iter().zip(&launch.arguments) {
        if let Some(value) = answers.scalars.get(&parameter.name).and_then(|value| value.parse().ok()) {
            say(argument.trim(), value);
        }
    }
    for (said, written) in [(answers.grid, &launch.grid), (answers.block, &launch.block)] {
        if let (Some([size, 1, 1]), Some(written)) = (said, written) {
            say(written.text.trim(), i64::try_from(size).unwrap_or(i64::MAX));
        }
    }
    values
}

fn check_answers(kernel: &str, parameters: &[Parameter], answers: &Answers) -> Result<(), PlanError> {
    let names = |arrays: bool| -> Vec<String> {
        let is = |parameter: &&Parameter| matches!(parameter.role, Role::Array { .. }) == arrays;
        parameters.iter().filter(is).map(|parameter| parameter.name.clone()).collect()
    };
    let (arrays, scalars) = (names(true), names(false));
    let asked = answers.shapes.keys().chain(answers.limits.keys()).map(|name| ("array", name, &arrays));
    let asked = asked.chain(answers.scalars.keys().map(|name| ("scalar", name, &scalars)));
    for (what, name, known) in asked {
        if !known.contains(name) {
            let known = if known.is_empty() { vec!["none".to_owned()] } else { known.clone() };
            return Err(PlanError::UnknownAnswer {
                kernel: kernel.to_owned(),
                what,
                name: name.clone(),
                known,
            });
        }
    }
    Ok(())
}

/// The launch of the kernel that tells most.
fn best_launch<'o>(outline: &'o Outline, kernel: &Function) -> Option<&'o Launch> {
    let told = |launch: &&Launch| {
        let sizes =
            [&launch.grid, &launch.block].into_iter().flatten().filter(|size| size.value.is_some()).count();
        let facts =
            launch.argument_facts.iter().filter(|fact| fact.value.is_some() || fact.bytes.is_some()).count();
        sizes * 4 + facts
    };
    let is_of =
        |launch: &&Launch| launch.kernel == kernel.name && launch.arguments.len() <= kernel.parameters.len();
    // The first of the best: `max_by_key` takes the last.
    outline.launches.iter().filter(is_of).rev().max_by_key(told)
}

/// Grid, block and dynamic shared memory of the launch of a kernel in its own file, where all are constant.
pub fn configuration(outline: &Outline, kernel: &Function) -> Option<([u64; 3], [u64; 3], u64)> {
    let launch = best_launch(outline, kernel)?;
    let size = |of: &Option<stitch_analysis::Expression>| {
        let value = of.as_ref()?.value?;
        let positive = |size: i64| u64::try_from(size).ok().filter(|size| *size > 0);
        Some([positive(value[0])?, positive(value[1])?, positive(value[2])?])
    };
    let shared = match &launch.shared {
        Some(shared) => u64::try_from(shared.value?[0]).ok()?,
        None => 0,
    };
    Some((size(&launch.grid)?, size(&launch.block)?, shared))
}

/// Most threads of a block on every device.
const MOST_THREADS: u64 = 1024;

struct Planner<'a> {
    kernel: &'a Function,
    source: &'a str,
    answers: &'a Answers,
    launch: Option<&'a Launch>,
    assumed: Option<&'a Assumed>,
    outline: &'a Outline,
}

impl Planner<'_> {
    fn plan(
        &self,
        kernel: String,
        parameters: &[Parameter],
        written: Option<&[String]>,
    ) -> Result<Harness, PlanError> {
        let mut needs = Needs { kernel: kernel.clone(), ..Needs::default() };
        let template = self.template(written, &mut needs);
        let mut arguments: Vec<Argument> = Vec::new();
        for (index, parameter) in parameters.iter().enumerate() {
            arguments.extend(self.argument(index, parameter, &mut needs));
        }
        let (grid, block, shared, from) = self.configuration(&mut needs);
        if !needs.missing.is_empty() {
            return Err(needs.into());
        }
        let mut harness = Harness { kernel: kernel.clone(), template, arguments, grid, block, shared, from };
        if harness.arrays().all(|array| array.is_const) {
            return Err(PlanError::WritesNothing { kernel });
        }
        harness.limit_indices(self.answers);
        Ok(harness)
    }

    fn line(&self, launch: &Launch) -> String {
        let before = self.source.get(..launch.span.start).unwrap_or_default();
        format!("the launch at line {}", before.matches('\n').count() + 1)
    }

    /// The argument of each template parameter: what was said, what was written, what a launch has, the default.
    fn template(&self, written: Option<&[String]>, needs: &mut Needs) -> Vec<(bool, String, String)> {
        let said = self.answers.template.as_deref().or(written);
        let launched = self.launch.map(|launch| launch.template_arguments.as_slice()).unwrap_or_default();
        let mut found = Vec::new();
        for (index, parameter) in self.kernel.template_parameters.iter().enumerate() {
            let of_launch = launched.get(index).filter(|text| self.means_the_same_here(text)).cloned();
            let of_launch = of_launch.or_else(|| self.integer_template_argument(index, &parameter.kind));
            let value =
                said.and_then(|said| said.get(index)).or(of_launch.as_ref()).or(parameter.default.as_ref());
            let is_type = matches!(parameter.kind.as_str(), "typename" | "class");
            match value {
                Some(value) => found.push((is_type, parameter.name.clone(), value.clone())),
                None => {
                    needs
                        .missing
                        .push(format!("the template argument `{}` ({})", parameter.name, parameter.kind));
                }
            }
        }
        if found.len() < self.kernel.template_parameters.len() {
            let example = self.kernel.template_parameters.iter().map(|parameter| {
                if matches!(parameter.kind.as_str(), "typename" | "class") { "float" } else { "256" }
            });
            needs.flags.push(format!("--template {}", example.collect::<Vec<_>>().join(",")));
        }
        found
    }

    /// The value of a template argument of the launch, where the parameter is an integer.
    fn integer_template_argument(&self, index: usize, kind: &str) -> Option<String> {
        const INTEGERS: [&str; 6] = ["int", "unsigned", "size_t", "std::size_t", "uint32_t", "long"];
        let words: Vec<&str> = kind.split_whitespace().filter(|word| *word != "const").collect();
        let is_integer = !words.is_empty() && words.iter().all(|word| INTEGERS.contains(word));
        let value = (*self.assumed?.template_values.get(index)?).filter(|_| is_integer)?;
        Some(value.to_string())
    }

    /// Whether a template argument of a launch means outside of its function what it means there: numbers, types, and names that
    /// are no template parameter and no local of the function around it.
    fn means_the_same_here(&self, text: &str) -> bool {
        let caller = self.launch.and_then(|launch| launch.caller.as_ref());
        let function =
            caller.and_then(|name| self.outline.functions.iter().find(|function| function.name == *name));
        let body = function.and_then(|function| self.source.get(function.span.range())).unwrap_or_default();
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).all(|word| {
            let is_parameter = function
                .is_some_and(|function| function.template_parameters.iter().any(|known| known.name == word));
            // `int word =`, `auto word =` inside the function.
            let is_local = body.match_indices(word).any(|(at, _)| {
                body[at + word.len()..].trim_start().starts_with('=')
                    && !body[at + word.len()..].trim_start().starts_with("==")
            });
            !is_parameter && !is_local
        })
    }

    fn argument(&self, index: usize, parameter: &Parameter, needs: &mut Needs) -> Option<Argument> {
        let name = &parameter.name;
        let fact =
            self.launch.and_then(|launch| launch.argument_facts.get(index)).copied().unwrap_or_default();
        let of_launch = || self.launch.map(|launch| self.line(launch)).unwrap_or_default();
        match &parameter.role {
            Role::Array { element, is_const } => {
                let (count, from) = if let Some(shape) = self.answers.shapes.get(name) {
                    needs.given.push(format!("--shape {name}={}", times(shape, "x")));
                    (times(shape, " * "), "as asked for".to_owned())
                } else if let Some(bytes) = fact.bytes.filter(|bytes| *bytes > 0) {
                    (format!("{bytes} / sizeof({element})"), format!("allocated before {}", of_launch()))
                } else {
                    let why = self.assumed.and_then(|assumed| assumed.unknown_sizes.get(index)?.as_deref());
                    let why = why.map(|why| format!(": {why}, for {}", of_launch())).unwrap_or_default();
                    needs.missing.push(format!("how many elements `{name}` ({element}) has{why}"));
                    needs.flags.push(format!("--shape {name}=1024"));
                    return None;
                };
                let (name, element) = (name.clone(), element.clone());
                Some(Argument::Array(Array { name, element, is_const: *is_const, count, limit: None, from }))
            }
            Role::Scalar { ty } => {
                let (value, from) = if let Some(value) = self.answers.scalars.get(name) {
                    needs.given.push(format!("--scalar {name}={value}"));
                    (value.clone(), "as asked for".to_owned())
                } else if let Some(value) = fact.value {
                    (value.to_string(), of_launch())
                } else if let Some(text) = self.literal(index) {
                    (text, of_launch())
                } else if matches!(ty.as_str(), "float" | "double") {
                    // Any number will do, and most kernels are told apart by one that is neither 0 nor 1.
                    (if ty == "float" { "0.75f" } else { "0.75" }.to_owned(), "made up".to_owned())
                } else {
                    needs.missing.push(format!("the value of `{name}` ({ty})"));
                    needs.flags.push(format!("--scalar {name}=1024"));
                    return None;
                };
                Some(Argument::Scalar(Scalar { name: name.clone(), ty: ty.clone(), value, from }))
            }
            Role::Unsupported { .. } => None,
        }
    }

    /// The argument of the launch, if it is a number, `true` or `false` as it is written.
    fn literal(&self, index: usize) -> Option<String> {
        let text = self.launch?.arguments.get(index)?.trim();
        let number = text.strip_prefix('-').unwrap_or(text);
        let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && number.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '\''));
        (is_number || matches!(text, "true" | "false" | "nullptr")).then(|| text.to_owned())
    }

    fn configuration(&self, needs: &mut Needs) -> ([u64; 3], [u64; 3], u64, String) {
        let size = |of: Option<&stitch_analysis::Expression>| {
            let value = of?.value?;
            value.iter().all(|size| *size > 0).then(|| value.map(|size| u64::try_from(size).unwrap_or(1)))
        };
        let launched_grid = size(self.launch.and_then(|launch| launch.grid.as_ref()));
        let launched_block = size(self.launch.and_then(|launch| launch.block.as_ref()))
            .filter(|block| block.iter().product::<u64>() <= MOST_THREADS);
        let grid = self.answers.grid.or(launched_grid);
        let block = self.answers.block.or(launched_block);
        if grid.is_none() {
            needs.missing.push("how many blocks are launched".to_owned());
            needs.flags.push("--grid 128".to_owned());
        } else if let Some(grid) = self.answers.grid {
            needs.given.push(format!("--grid {}", times(&grid, "x")));
        }
        if block.is_none() {
            needs.missing.push("how many threads a block has".to_owned());
            needs.flags.push("--block 256".to_owned());
        } else if let Some(block) = self.answers.block {
            needs.given.push(format!("--block {}", times(&block, "x")));
        }
        let written = self.launch.and_then(|launch| launch.shared.as_ref());
        let launched = written.and_then(|shared| shared.value).and_then(|value| u64::try_from(value[0]).ok());
        let shared = self.answers.shared.or(launched);
        if shared.is_none() && written.is_some() {
            needs.missing.push("how many bytes of dynamic shared memory a block has".to_owned());
            needs.flags.push("--shared 4096".to_owned());
        }
        let from = match self.launch {
            Some(launch) if self.answers.grid.is_none() && self.answers.block.is_none() => self.line(launch),
            _ => "as asked for".to_owned(),
        };
        (grid.unwrap_or([1; 3]), block.unwrap_or([1; 3]), shared.unwrap_or(0), from)
    }
}

fn times(sizes: &[u64], sign: &str) -> String {
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(sign)
}

impl Harness {
    /// Arrays of integers may be indices, so their values stay below the length of every array, unless asked for otherwise.
    fn limit_indices(&mut self, answers: &Answers) {
        for argument in &mut self.arguments {
            if let Argument::Array(array) = argument {
                array.limit = answers.limits.get(&array.name).map(u64::to_string);
            }
        }
    }
}

#[cfg(test)]
mod tests;
