//! A profiled kernel, whoever profiled it, and the rules that explain it.
//!
//! [`KernelLaunch`] holds what one launch of a kernel did: metrics under names of ours in base units, counters of source lines, and the
//! machine code they were counted on. [`explain`] goes through the table of rules and says what limits the launch, by how much, where,
//! and what to do. Everything that was not measured is absent, never zero.

mod estimate;
mod explain;
mod expression;
mod intensity;
mod lines;
mod metric;
mod model;
mod name;
pub(crate) mod roofline;
mod rules;
mod sass;
mod stalls;
mod table;

pub use estimate::{Estimate, Work};
pub use explain::{Explanation, Gain, Insight, RelatedLine, explain};
pub(crate) use explain::{answerable, needed};
pub use expression::Formula;
pub(crate) use intensity::INTENSITY;
pub use intensity::{Intensity, Precision, intensity};
pub use lines::{LinePlace, Measure};
pub use metric::{METRICS, Metric, MetricInfo, Unit};
pub use model::{
    Access, Counters, Instruction, KernelLaunch, KernelName, LaunchShape, Metrics, Origin, SourceLine, Stall,
    ToolRule,
};
pub use name::kernel_name;
pub use roofline::{BALANCED, BUSY, Bound, Class, Level, SATURATED, roofline_rows};
pub use rules::{At, Condition, Format, Rule, rules};
pub use stalls::stall_shares;
pub use table::{LineRow, line_table};
