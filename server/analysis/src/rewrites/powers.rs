//! `rewrite/powers-to-products`: a power with a small constant exponent as a product, a quotient or a root.
//!
//! The type of the call is kept, since what follows is computed in it: `pow(x, 2)` of a float is a double, so it becomes
//! `(double)x * x`, unless its value is made a float at once, or all that it is computed with is a float, an integer or a literal and
//! the whole becomes a float: then it is one too, and the literals can follow.

use stitch_findings::Code;

use super::context::span;
use super::expression::{goes_straight_to, hoist, is_simple, macro_around, needs_parentheses, unused_name};
use super::{Context, Edit, Function, Gain, Proposal, Rule, literals};
use crate::rules::facts::Power;

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::POWERS_TO_PRODUCTS,
    title: "Write small powers as products",
    finding: Some(Code::POW_SMALL_EXPONENT),
    find,
};

/// What a power becomes.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// So many factors.
    Product(usize),
    /// `(x * x) * (x * x)`.
    Fourth,
    /// `1 / x`.
    Reciprocal,
    /// `sqrt(x)`.
    Root,
}

/// Exponents with what their powers become. Not -2: the square may overflow where the result does not.
const FORMS: &[(f64, Form)] = &[
    (2.0, Form::Product(2)),
    (3.0, Form::Product(3)),
    (4.0, Form::Fourth),
    (-1.0, Form::Reciprocal),
    (0.5, Form::Root),
];

fn find(context: &Context) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for function in context.device_functions() {
        for power in &function.walker().facts.powers {
            if let Some((_, form)) = FORMS.iter().find(|(exponent, _)| *exponent == power.exponent) {
                let proposal = rewrite(context, function, power, *form);
                proposals.push(proposal.unwrap_or_else(|reason| RULE.refuse(span(power.node), reason)));
            }
        }
    }
    proposals
}

fn rewrite(context: &Context, function: &Function, power: &Power, form: Form) -> Result<Proposal, String> {
    let base_text = context.text(power.base);
    let ty = power.base_type;
    is_plain(context, function, power, form)?;
    let straight = ty.is_float() && goes_straight_to(context, function, power.node).is_float();
    let through = !straight
        && ty.is_float()
        && !is_single(power)
        && literals::ends_as_a_float(context, function, power.node);
    let single = is_single(power) || straight || through;
    let mut edits = Vec::new();
    let base = if is_simple(context, power.base) || form == Form::Root {
        base_text.to_owned()
    } else if form == Form::Reciprocal {
        format!("({base_text})")
    } else {
        let name = unused_name(context, function, "base");
        let written = if ty.is_float() { "float" } else { "double" };
        let edit = hoist(context, power.base, written, &name).ok_or_else(|| {
            format!("`{base_text}` would be evaluated more than once, and can't be given a name before its statement")
        })?;
        edits.push(edit);
        name
    };
    // A temporary of an integer is a double already.
    let is_wide = ty.is_double() || (!ty.is_float() && !edits.is_empty());
    let product = written(form, &base, single, is_wide);
    let text =
        if needs_parentheses(power.node) && form != Form::Root { format!("({product})") } else { product };
    let title = format!(
        "Write `{}` as `{text}`",
        context.text(power.node).split_whitespace().collect::<Vec<_>>().join(" ")
    );
    edits.push(Edit::replace(span(power.node), text));
    let words = match form {
        Form::Root => "a square root in place of the general power",
        Form::Reciprocal => "a division in place of the general power",
        Form::Product(_) | Form::Fourth => "one to three products in place of the general power",
    };
    let gain = Gain::Instructions { words: words.to_owned() };
    let mut rewrite = RULE.rewrite(span(power.node), title, edits, gain);
    rewrite.changes_rounding = true;
    rewrite.proven.push(match (single, is_single(power)) {
        (true, false) => format!("`{base_text}` is a float, and so is what the result goes to"),
        (true, true) => format!("`{base_text}` is a float"),
        (false, _) => "the result stays a double".to_owned(),
    });
    if through {
        rewrite.assumed.push(literals::IN_RANGE.to_owned());
    }
    if form == Form::Root {
        rewrite.assumed.push(format!("`{base_text}` is neither -0 nor minus infinity"));
    }
    Ok(Proposal::Rewrite(rewrite))
}

/// Whether the call is what it seems to be, of numbers whose types are known.
fn is_plain(context: &Context, function: &Function, power: &Power, form: Form) -> Result<(), String> {
    let base_text = context.text(power.base);
    let sqrt = if is_single(power) { "sqrtf" } else { "sqrt" };
    for name in [power.name, if form == Form::Root { sqrt } else { power.name }] {
        if context.defines(name) {
            return Err(format!("the file has a `{name}` of its own"));
        }
    }
    if let Some(name) = macro_around(context, power.node) {
        return Err(format!("it is an argument of `{name}`, which may be a macro"));
    }
    let ty = power.base_type;
    if !(ty.is_float() || ty.is_double() || ty.is_integer()) {
        return Err(format!("the type of `{base_text}` is not known here"));
    }
    if power.name != "pow" && !ty.is_float() {
        return Err(format!("`{base_text}` is no float, and `{}` makes it one", power.name));
    }
    if context.text(function.node).contains("volatile") {
        return Err("something here is `volatile`, and may be read once only".to_owned());
    }
    Ok(())
}

/// Whether the call is computed in float: by its name, or since both arguments are floats.
fn is_single(power: &Power) -> bool {
    power.name != "pow" || (power.base_type.is_float() && power.exponent_type.is_float())
}

/// The text in place of the call, without parentheses around it.
fn written(form: Form, base: &str, single: bool, is_wide: bool) -> String {
    let first = if single || is_wide { base.to_owned() } else { format!("(double){base}") };
    match form {
        Form::Product(2) => format!("{first} * {base}"),
        Form::Product(_) => format!("{first} * {base} * {base}"),
        // The right half is a double only if it says so itself.
        Form::Fourth => format!("({first} * {base}) * ({first} * {base})"),
        Form::Reciprocal if single => format!("1.0f / {base}"),
        Form::Reciprocal => format!("1.0 / {base}"),
        Form::Root if single => format!("sqrtf({base})"),
        Form::Root if is_wide => format!("sqrt({base})"),
        Form::Root => format!("sqrt((double)({base}))"),
    }
}
