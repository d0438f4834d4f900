//! The details page: one row a metric, and one for each thing that the tool's own rules say.
//!
//! Metrics stand there under labels of their section, or under their names where they were asked for by name (`--metrics`), as every
//! version before raw pages did. A summary over launches (`--print-summary`) has an average in place of a value.

use super::numbers;
use super::raw::Columns;
use super::report::Collected;
use crate::kernel::{Metric, ToolRule};

/// Below every name: a label is rounded more than a raw value.
const LABEL_RANK: usize = 100;

/// A details page whose header was read.
#[derive(Debug)]
pub(super) struct DetailsPage {
    columns: Columns,
    section: Option<usize>,
    metric: Option<usize>,
    unit: Option<usize>,
    value: Option<usize>,
    rule: Option<usize>,
    rule_type: Option<usize>,
    rule_text: Option<usize>,
    speedup: Option<usize>,
}

impl DetailsPage {
    pub fn new(header: &[String]) -> Self {
        let at = |name: &str| header.iter().position(|field| field.trim() == name);
        Self {
            columns: Columns::new(header),
            section: at("Section Name"),
            metric: at("Metric Name"),
            unit: at("Metric Unit"),
            value: at("Metric Value").or_else(|| at("Average")),
            rule: at("Rule Name"),
            rule_type: at("Rule Type"),
            rule_text: at("Rule Description"),
            speedup: at("Estimated Speedup"),
        }
    }

    pub fn row(&mut self, fields: &[String], collected: &mut Collected) {
        collected.page_seen = true;
        let text = |column: Option<usize>| {
            column.and_then(|at| fields.get(at)).map(|field| field.trim()).unwrap_or_default()
        };
        let (name, value, unit) = (text(self.metric), text(self.value), text(self.unit));
        collected.decimal_comma |= numbers::shows_decimal_comma(value);
        let decimal_comma = collected.decimal_comma;
        let Some(draft) = self.columns.draft(fields, collected) else { return };
        draft.page("details");
        if !name.is_empty() {
            let known = Metric::named(name)
                .or_else(|| Metric::labelled(text(self.section), name).map(|metric| (metric, LABEL_RANK)));
            if let Some((metric, rank)) = known {
                draft.print(metric, rank, value, self.unit.map(|_| unit));
            }
        }
        if !text(self.rule).is_empty() {
            draft.launch.tool_rules.push(ToolRule {
                section: text(self.section).to_owned(),
                name: text(self.rule).to_owned(),
                kind: text(self.rule_type).to_owned(),
                text: text(self.rule_text).to_owned(),
                speedup_percent: numbers::number(text(self.speedup), decimal_comma),
            });
        }
    }
}
