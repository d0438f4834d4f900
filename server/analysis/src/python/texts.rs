//! Follows an expression to the texts that it may make.
//!
//! By data flow, not by running: names to all their assignments, parameters to what callers give, sums, `strip`, `dedent`, `replace`, `format`, `%` and `join`.
//! What is not known is a hole in the text. The work is bounded, whatever the file says.

use std::cell::{Cell, RefCell};

use stitch_findings::Span;

use super::decoded::Decoded;
use super::facts::Assignment;
use super::format;
use super::literal;
use super::names::{Level, Names};
use super::value::{Argument, Value, ValueKind};

/// More texts of one expression are not followed.
const CHOICES: usize = 8;
/// Texts that the callers of one function give it, beyond which no more are followed.
const CALLERS: usize = 64;
/// Longer texts are not put together, in bytes.
const LONGEST: usize = 4 << 20;
/// Expressions looked at for one text.
const STEPS: usize = 4096;
/// Names of names of names.
const DEPTH: usize = 40;

/// One text that an expression may make.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) text: Decoded,
    /// The expression that makes it, in the file.
    pub(super) span: Span,
    /// The variable that holds it.
    pub(super) name: Option<String>,
}

/// Where an expression stands.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) piece: usize,
    pub(super) level: Level,
}

/// Follows the expressions of one file.
pub(super) struct Texts<'a> {
    pub(super) source: &'a str,
    pub(super) names: &'a Names<'a>,
    steps: Cell<usize>,
    /// The assignments that are being followed, so that `x = x + y` means the `x` before.
    active: RefCell<Vec<*const Assignment>>,
    /// The arguments of calls that are being followed.
    given: RefCell<Vec<*const Argument>>,
}

impl<'a> Texts<'a> {
    /// For the file with these names.
    pub(super) fn new(source: &'a str, names: &'a Names<'a>) -> Self {
        Self {
            source,
            names,
            steps: Cell::new(0),
            active: RefCell::new(Vec::new()),
            given: RefCell::new(Vec::new()),
        }
    }

    /// The texts that `value` may make; none where nothing is known of it.
    pub(super) fn of(&self, value: &Value, site: Site) -> Vec<Made> {
        self.steps.set(STEPS);
        self.follow(value, site)
    }

    /// The only text that `value` makes, if it is fully known.
    pub(super) fn constant(&self, value: &Value, site: Site) -> Option<String> {
        let made = self.of(value, site);
        self.whole(&made)
    }

    fn whole(&self, made: &[Made]) -> Option<String> {
        let [only] = made else { return None };
        let (text, map) = only.text.clone().finish();
        map.holes().is_empty().then_some(text)
    }

    fn known(&self, value: &Value, site: Site) -> Option<String> {
        self.whole(&self.follow(value, site))
    }

    fn follow(&self, value: &Value, site: Site) -> Vec<Made> {
        let left = self.steps.get();
        if left == 0 || self.active.borrow().len() > DEPTH {
            return Vec::new();
        }
        self.steps.set(left - 1);
        let span = self.in_file(value.span, site);
        let here = |text| vec![Made { text, span, name: None }];
        let each = |inner: &Value, change: &dyn Fn(&Decoded) -> Decoded| {
            let made = self.follow(inner, site).into_iter();
            made.map(|made| Made { text: change(&made.text), ..around(made, span) }).collect()
        };
        match &value.kind {
            ValueKind::Literal { .. } => here(self.literal(value, site)),
            ValueKind::Number(number) => {
                let mut text = Decoded::default();
                text.make(number, span);
                here(text)
            }
            ValueKind::Name(name) => self.name(name, site),
            ValueKind::Call(path) => self.assigned(&self.names.returned(path), None),
            ValueKind::Concat(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| (part, site)).collect();
                self.concat(&parts, None, span)
            }
            ValueKind::Choice(choices) => {
                let mut made: Vec<_> = choices.iter().flat_map(|choice| self.follow(choice, site)).collect();
                made.truncate(CHOICES);
                made
            }
            ValueKind::Strip { inner, left, right, drop } => {
                let drop = drop.as_ref().map(|drop| self.known(drop, site));
                match drop {
                    // What is stripped is not known: the text is kept.
                    Some(None) => each(inner, &Decoded::clone),
                    drop => each(inner, &|text| {
                        text.strip(*left, *right, drop.as_ref().and_then(|d| d.as_deref()))
                    }),
                }
            }
            ValueKind::Dedent(inner) => each(inner, &Decoded::dedent),
            ValueKind::Replace { inner, from, to } => match (self.known(from, site), self.known(to, site)) {
                (Some(from), Some(to)) => each(inner, &|text| text.replace(&from, &to)),
                (Some(from), None) => each(inner, &|text| text.replace_with_holes(&from)),
                (None, _) => each(inner, &Decoded::clone),
            },
            ValueKind::Format { inner, arguments } => {
                each(inner, &|text| format::braces(text, &|name| self.argument(arguments, name, site)))
            }
            ValueKind::Percent { inner, arguments } => {
                each(inner, &|text| format::percent(text, &|name| self.argument(arguments, name, site)))
            }
            ValueKind::Substitute { inner, arguments } => {
                each(inner, &|text| format::dollars(text, &|name| self.argument(arguments, name, site)))
            }
            ValueKind::Join { separator, list } => {
                let parts: Vec<_> = match &list.kind {
                    ValueKind::List(parts) => parts.iter().map(|part| (part, site)).collect(),
                    ValueKind::Name(name) => {
                        self.grown(name, self.in_file(list.span, site), site).unwrap_or_default()
                    }
                    _ => Vec::new(),
                };
                let separator = self.follow(separator, site).into_iter().next();
                if parts.is_empty() { Vec::new() } else { self.concat(&parts, separator.as_ref(), span) }
            }
            ValueKind::List(_) | ValueKind::Unknown => Vec::new(),
        }
    }

    /// A span of a site's piece, in the file.
    pub(super) fn in_file(&self, span: Span, site: Site) -> Span {
        span.shifted(self.piece_start(site.piece))
    }

    /// Where a piece begins in the file.
    pub(super) fn piece_start(&self, piece: usize) -> usize {
        self.names.pieces.get(piece).map_or(0, |piece| piece.span.start)
    }

    /// An expression as the file has it.
    pub(super) fn written(&self, value: &Value, site: Site) -> &'a str {
        self.source.get(self.in_file(value.span, site).range()).unwrap_or_default()
    }

    fn literal(&self, value: &Value, site: Site) -> Decoded {
        let ValueKind::Literal { holes } = &value.kind else { return Decoded::default() };
        let spans: Vec<_> = holes.iter().map(|hole| self.in_file(hole.span, site)).collect();
        let fill = |span: Span| {
            let hole = &holes[spans.iter().position(|known| *known == span)?];
            self.whole(&self.name(hole.name.as_ref()?, site))
        };
        let mut text = Decoded::default();
        literal::decode(self.source, self.in_file(value.span, site), &spans, &fill, &mut text);
        text
    }

    fn name(&self, name: &str, site: Site) -> Vec<Made> {
        let short = name.rsplit('.').next().unwrap_or(name);
        let assigned = self.names.assignments(site.level, name);
        if assigned.is_empty() { self.given(name, site) } else { self.assigned(assigned, Some(short)) }
    }

    /// The texts that callers give for a parameter.
    fn given(&self, name: &str, site: Site) -> Vec<Made> {
        let Some((function, place)) = self.names.parameter(site.level, name) else { return Vec::new() };
        let mut made: Vec<Made> = Vec::new();
        for (piece, call) in self.names.source_calls(function) {
            let named = call.arguments.iter().find(|argument| argument.name.as_deref() == Some(name));
            let placed = || call.arguments.iter().filter(|argument| argument.name.is_none()).nth(place);
            let Some(argument) = named.or_else(placed) else { continue };
            let pointer: *const Argument = argument;
            // A function that calls itself gives on what it was given.
            if self.given.borrow().contains(&pointer) || self.given.borrow().len() > DEPTH {
                continue;
            }
            self.given.borrow_mut().push(pointer);
            let site = Site { piece, level: self.names.level(piece, call.scope) };
            made.extend(self.follow(&argument.value, site));
            self.given.borrow_mut().pop();
            if made.len() >= CALLERS {
                break;
            }
        }
        made.truncate(CALLERS);
        made
    }

    /// The texts of a name with these assignments.
    fn assigned(&self, assignments: &[super::names::Assigned<'a>], name: Option<&str>) -> Vec<Made> {
        let mut made: Vec<Made> = Vec::new();
        for (piece, assignment) in assignments {
            let pointer: *const Assignment = *assignment;
            if self.active.borrow().contains(&pointer) {
                break;
            }
            let site = Site { piece: *piece, level: self.names.level_of((*piece, assignment)) };
            self.active.borrow_mut().push(pointer);
            let next = self.follow(&assignment.value, site);
            self.active.borrow_mut().pop();
            if assignment.augmented {
                let span = self.in_file(assignment.span, site);
                let unknown = || {
                    let mut text = Decoded::default();
                    text.hole(self.in_file(assignment.value.span, site));
                    Made { text, span, name: None }
                };
                let tail = next.into_iter().next().unwrap_or_else(unknown);
                for head in &mut made {
                    if head.text.text().len() + tail.text.text().len() <= LONGEST {
                        head.text.append(&tail.text);
                    }
                }
            } else if name.is_some_and(|name| mentions(&assignment.value, name)) {
                made = next;
            } else {
                made.extend(next);
            }
        }
        made.truncate(CHOICES);
        if let Some(name) = name {
            made.iter_mut().for_each(|made| made.name = Some(name.to_owned()));
        }
        made
    }

    /// All sums of one text of each part; a part of which nothing is known is a hole.
    fn concat(&self, parts: &[(&Value, Site)], separator: Option<&Made>, span: Span) -> Vec<Made> {
        let mut sums = vec![Made { text: Decoded::default(), span, name: None }];
        let mut only_names = true;
        let mut longest: Option<Made> = None;
        for (index, &(part, site)) in parts.iter().enumerate() {
            only_names &= matches!(part.kind, ValueKind::Name(_) | ValueKind::Call(_));
            let mut made = self.follow(part, site);
            if made.is_empty() {
                let mut text = Decoded::default();
                text.hole(self.in_file(part.span, site));
                made.push(Made { text, span, name: None });
            }
            if let Some(best) = made.iter().max_by_key(|made| made.text.text().len())
                && longest.as_ref().is_none_or(|longest| longest.text.text().len() < best.text.text().len())
            {
                longest = Some(best.clone());
            }
            let mut next = Vec::new();
            for sum in &sums {
                for made in made.iter().take(CHOICES - next.len().min(CHOICES)) {
                    let mut sum = sum.clone();
                    if let Some(separator) = separator.filter(|_| index > 0) {
                        sum.text.append(&separator.text);
                    }
                    if sum.text.text().len() + made.text.text().len() <= LONGEST {
                        sum.text.append(&made.text);
                    }
                    next.push(sum);
                }
            }
            sums = next;
        }
        // `HEADER + BODY` stands for the longer of the two.
        if let (true, Some(longest)) = (only_names, longest) {
            sums.iter_mut().for_each(|sum| {
                sum.span = longest.span;
                sum.name.clone_from(&longest.name);
            });
        }
        sums
    }

    /// The text of an argument of `format` or `%`, by name or number.
    fn argument(&self, arguments: &[Argument], name: &str, site: Site) -> Option<String> {
        let by_name = arguments.iter().find(|argument| argument.name.as_deref() == Some(name));
        let argument = match name.parse::<usize>() {
            Ok(index) => arguments.iter().filter(|argument| argument.name.is_none()).nth(index),
            Err(_) => by_name,
        };
        self.known(&argument?.value, site)
    }
}

/// A text made inside an expression: the expression's span if it lies inside, its own if it comes from elsewhere.
fn around(made: Made, span: Span) -> Made {
    if span.contains(made.span) { Made { span, ..made } } else { made }
}

/// Whether a value is made of the name itself: `x = x.strip()`.
fn mentions(value: &Value, name: &str) -> bool {
    match &value.kind {
        ValueKind::Name(other) => other.rsplit('.').next() == Some(name),
        ValueKind::Concat(parts) | ValueKind::Choice(parts) => parts.iter().any(|part| mentions(part, name)),
        ValueKind::Strip { inner, .. }
        | ValueKind::Dedent(inner)
        | ValueKind::Replace { inner, .. }
        | ValueKind::Format { inner, .. }
        | ValueKind::Substitute { inner, .. }
        | ValueKind::Percent { inner, .. } => mentions(inner, name),
        _ => false,
    }
}
