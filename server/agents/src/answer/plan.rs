//! Reads a plan: JSON in prose or alone; a numbered list where there is none.

use serde_json::{Map, Value};

use super::{blocks, first_words, json, list, refusal};
use crate::{Plan, Task};

/// More tasks than this are not a plan; the first are taken.
const MOST_TASKS: usize = 20;
/// How often the length of an answer may be read in search of JSON.
const MOST_PASSES: usize = 8;
/// How many places where JSON could begin are tried.
const MOST_STARTS: usize = 100;
/// Plans are shorter than this, in bytes; what comes later is not searched.
const LONGEST: usize = 1 << 20;
/// Names that models give to the list of tasks, in small letters without signs between words.
const LIST_KEYS: [&str; 8] =
    ["tasks", "plan", "steps", "todo", "todolist", "items", "actions", "optimizations"];
/// Names that models put around all of it.
const WRAPPER_KEYS: [&str; 5] = ["plan", "answer", "response", "result", "output"];
const SUMMARY_KEYS: [&str; 6] = ["summary", "analysis", "overview", "bottleneck", "reason", "explanation"];
const TITLE_KEYS: [&str; 7] = ["title", "name", "task", "goal", "action", "step", "optimization"];
const DESCRIPTION_KEYS: [&str; 7] =
    ["description", "details", "how", "rationale", "why", "explanation", "instructions"];
const SCOPE_KEYS: [&str; 6] = ["scope", "kernels", "functions", "targets", "kernel", "function"];
const GAIN_KEYS: [&str; 6] = ["expectedgain", "gain", "expected", "benefit", "expectedspeedup", "impact"];
const TEST_KEYS: [&str; 6] = ["test", "check", "verification", "validation", "verify", "howtotest"];

/// A plan that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanReading {
    /// The plan.
    pub plan: Plan,
    /// What was unusual about the answer, each in a sentence.
    pub notes: Vec<String>,
}

/// Why an answer is no plan. The message is meant for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No text at all.
    #[error("The answer is empty.")]
    Empty,
    /// The model will not do it.
    #[error("The answer refuses: \"{said}\"")]
    Refused {
        /// Its words.
        said: String,
    },
    /// Neither JSON nor a list.
    #[error(
        "The answer holds no plan: neither a JSON object with `tasks` nor a numbered list. It begins with \"{begins}\". Answer with the \
         JSON object alone."
    )]
    NoPlan {
        /// How it begins.
        begins: String,
    },
    /// It was cut before the first task was complete.
    #[error("The answer was cut off before its first task was complete. Write a shorter plan.")]
    Cut,
}

/// Reads a plan off an answer without thinking in it.
///
/// # Errors
/// There is none in it.
pub fn read_plan(answer: &str) -> Result<PlanReading, PlanError> {
    if answer.trim().is_empty() {
        return Err(PlanError::Empty);
    }
    let answer = match answer.char_indices().find(|(at, _)| *at >= LONGEST) {
        Some((at, _)) => &answer[..at],
        None => answer,
    };
    let fenced = blocks::fenced(answer);
    let is_data =
        |language: &str| language.is_empty() || language.starts_with("json") || language == "python";
    let inside = fenced.iter().filter(|block| is_data(&block.language)).map(|block| block.text.as_str());
    let mut is_cut = false;
    for text in inside.chain(std::iter::once(answer)) {
        match of_json(text) {
            Some(reading) if reading.plan.tasks.is_empty() && reading.plan.summary.is_empty() => {
                is_cut = true
            }
            Some(reading) => return Ok(reading),
            None => {}
        }
    }
    if is_cut {
        return Err(PlanError::Cut);
    }
    if let Some(said) = refusal(answer) {
        return Err(PlanError::Refused { said });
    }
    let plan = list::read(answer).ok_or_else(|| PlanError::NoPlan { begins: first_words(answer) })?;
    Ok(limited(plan, vec!["The plan was read off a numbered list, not off JSON.".to_owned()]))
}

/// The first plan among the JSON of a text. One without tasks and summary stands for one that was cut before its first task.
fn of_json(text: &str) -> Option<PlanReading> {
    let (mut at, mut seen) = (0, 0);
    for _ in 0..MOST_STARTS {
        if seen > MOST_PASSES * text.len() {
            break;
        }
        let start = at + text[at..].find(['{', '['])?;
        let Some(read) = json::parse(&text[start..]) else {
            at = start + 1;
            seen += text.len() - start;
            continue;
        };
        seen += read.end;
        if let Some(plan) = of_value(&read.value, 0) {
            let mut notes = Vec::new();
            if read.is_cut {
                if plan.tasks.is_empty() {
                    return Some(PlanReading::default());
                }
                notes.push(format!(
                    "The plan was cut off: its first {} tasks were complete and are kept.",
                    plan.tasks.len()
                ));
            }
            return Some(limited(plan, notes));
        }
        if read.is_cut && is_beginning(&read.value) {
            return Some(PlanReading::default());
        }
        // A bracket in prose was taken for a list; what is inside may still be the plan.
        at = start + 1;
    }
    None
}

/// Whether a value that was cut could have become a plan.
fn is_beginning(value: &Value) -> bool {
    value.as_object().is_some_and(|object| find(object, &SUMMARY_KEYS).is_some())
}

fn limited(mut plan: Plan, mut notes: Vec<String>) -> PlanReading {
    if plan.tasks.len() > MOST_TASKS {
        notes.push(format!("The plan has {} tasks; the first {MOST_TASKS} are kept.", plan.tasks.len()));
        plan.tasks.truncate(MOST_TASKS);
    }
    PlanReading { plan, notes }
}

fn of_value(value: &Value, depth: usize) -> Option<Plan> {
    match value {
        Value::Array(list) => {
            let tasks = tasks(list);
            let are_tasks = !tasks.is_empty() && list.iter().all(|item| item.is_object());
            are_tasks.then(|| Plan { summary: String::new(), tasks })
        }
        Value::Object(object) => {
            let summary = find(object, &SUMMARY_KEYS).map(text_of).unwrap_or_default();
            if let Some(Value::Array(list)) = find_list(object) {
                return Some(Plan { summary, tasks: tasks(list) });
            }
            let inner = find(object, &WRAPPER_KEYS).filter(|_| depth < 3)?;
            let mut plan = of_value(inner, depth + 1)?;
            if plan.summary.is_empty() {
                plan.summary = summary;
            }
            Some(plan)
        }
        _ => None,
    }
}

fn tasks(list: &[Value]) -> Vec<Task> {
    list.iter().filter_map(task).collect()
}

fn task(value: &Value) -> Option<Task> {
    let object = match value {
        Value::Object(object) => object,
        Value::String(text) => return list::task(text),
        _ => return None,
    };
    let field = |keys: &[&str]| find(object, keys).map(text_of).unwrap_or_default();
    let description = field(&DESCRIPTION_KEYS);
    let mut title =
        find(object, &TITLE_KEYS).filter(|title| title.is_string()).map(text_of).unwrap_or_default();
    if title.is_empty() {
        title = first_words(&description);
    }
    let scope = match find(object, &SCOPE_KEYS) {
        Some(Value::Array(names)) => names.iter().map(text_of).collect(),
        Some(Value::String(names)) => {
            without_parameters(names).split([',', ';']).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let rewrite = find(object, &["rewrite"]).and_then(Value::as_str).filter(|name| !name.is_empty());
    (!title.is_empty()).then(|| Task {
        title,
        description,
        scope: scope
            .into_iter()
            .map(|name: String| bare_name(&name))
            .filter(|name| !name.is_empty())
            .collect(),
        expected_gain: field(&GAIN_KEYS),
        test: field(&TEST_KEYS),
        rewrite: rewrite.map(str::to_owned),
    })
}

/// Names of functions without what stands in parentheses behind them.
fn without_parameters(names: &str) -> String {
    let mut depth = 0_usize;
    let keep = |one: char| {
        depth += usize::from(one == '(');
        let is_outside = depth == 0;
        depth = depth.saturating_sub(usize::from(one == ')'));
        is_outside
    };
    names
        .chars()
        .filter({
            let mut keep = keep;
            move |one| keep(*one)
        })
        .collect()
}

/// A function's name without quotes, parameters and the file before it.
pub(super) fn bare_name(name: &str) -> String {
    let name = name.trim().trim_matches(['`', '"', '\'', '*']);
    let name = name.split('(').next().unwrap_or_default();
    name.rsplit("::").next().unwrap_or_default().trim().to_owned()
}

/// The value of the first of `keys` that there is, however its words are joined.
fn find<'a>(object: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|wanted| {
        object.iter().find(|(key, value)| plain(key) == *wanted && !value.is_null()).map(|(_, value)| value)
    })
}

fn find_list(object: &Map<String, Value>) -> Option<&Value> {
    LIST_KEYS.iter().find_map(|wanted| {
        object.iter().find(|(key, value)| plain(key) == *wanted && value.is_array()).map(|(_, value)| value)
    })
}

fn plain(key: &str) -> String {
    key.chars().filter(|one| one.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A value as a text for people: lists as sentences, tables as `key: value`.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        Value::Array(list) => list.iter().map(text_of).collect::<Vec<_>>().join("; "),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| format!("{key}: {}", text_of(value)))
            .collect::<Vec<_>>()
            .join("; "),
        other => other.to_string(),
    }
}
