//! Arithmetic that costs more than it seems: `static/double-literal` and `static/pow-small-exponent`.

use stitch_findings::Code;

use super::report::Report;
use super::walk::Walker;

/// The exponents for which a product is plainly better than the general power.
const SMALL_EXPONENTS: &[(f64, &str)] =
    &[(2.0, "x * x"), (3.0, "x * x * x"), (4.0, "(x * x) * (x * x)"), (-1.0, "1 / x"), (-2.0, "1 / (x * x)")];

/// How far it is followed what a result is combined into.
const MOST_JOINS: usize = 64;

/// Adds what the function's arithmetic shows.
pub fn check(walker: &Walker, report: &mut Report) {
    doubles(walker, report);
    powers(walker, report);
}

fn doubles(walker: &Walker, report: &mut Report) {
    let mut line = None;
    for (index, used) in walker.facts.doubles.iter().enumerate() {
        let row = used.node.start_position().row;
        if used.is_foldable || is_wanted(walker, index) || line == Some(row) {
            continue;
        }
        line = Some(row);
        let literal = walker.text(used.literal);
        let operation = report.quote(used.node);
        let message = format!(
            "`{literal}` is a double, so {operation} is done in double precision although its other operand is float."
        );
        let literal_itself = literal.ends_with(|c: char| c.is_ascii_digit() || c == '.');
        let advice = if literal_itself {
            format!("Write `{literal}f`.")
        } else {
            format!("Use a float constant in place of `{literal}`.")
        };
        report.add(Code::DOUBLE_LITERAL, used.literal, message, &advice);
    }
}

/// Whether the result, or what it was combined into, is wanted as a double.
fn is_wanted(walker: &Walker, index: usize) -> bool {
    let doubles = &walker.facts.doubles;
    let mut at = index;
    for _ in 0..MOST_JOINS {
        match doubles[at].joined {
            Some(next) if !doubles[at].is_wanted && (next as usize) < doubles.len() => at = next as usize,
            _ => break,
        }
    }
    doubles[at].is_wanted
}

fn powers(walker: &Walker, report: &mut Report) {
    for power in &walker.facts.powers {
        let Some((exponent, product)) =
            SMALL_EXPONENTS.iter().find(|(exponent, _)| *exponent == power.exponent)
        else {
            continue;
        };
        let base = report.quote(power.base);
        let message = format!(
            "`{}` with the exponent {exponent} runs the general power function on {base}, where {}.",
            power.name,
            if *exponent < 0.0 { "a division will do" } else { "a product takes one to two instructions" },
        );
        report.add(
            Code::POW_SMALL_EXPONENT,
            power.node,
            message,
            &format!("Write it as a {}: `{product}`.", if *exponent < 0.0 { "division" } else { "product" }),
        );
    }
}
