//! The Verifier's answer about a candidate: what was compared, what was found, and what was not checked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Evidence, Finding, Severity};

/// The answer in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Everything that was compared is the same, and something was.
    Correct,
    /// Something differs.
    Wrong,
    /// Nothing was there to compare, so nothing is known.
    NothingCompared,
    /// The candidate does not compile.
    BuildFailed,
    /// The candidate ended by a signal or by a fault on the device.
    Crashed,
    /// The candidate ran much longer than the reference.
    TimedOut,
    /// The answers are right, and the way in which they came is not honest: work was put off, inputs were changed, a clock was touched.
    Dishonest,
}

/// What became of the inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "inputs", rename_all = "kebab-case")]
pub enum Inputs {
    /// They are drawn anew for this verification, the same for both versions.
    Drawn,
    /// What the program first copied to each of so many buffers was perturbed, in the same way in both versions.
    Perturbed {
        /// Buffers that were perturbed.
        buffers: usize,
    },
    /// They are those that the program makes itself, so a candidate may have been made for just these.
    Fixed {
        /// Why.
        reason: String,
    },
}

/// One thing that was compared: a text, an array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compared {
    /// What: `standard output`, `copy 2 to the host`, `output y`.
    pub what: String,
    /// Under which inputs: `as they are`, `perturbed`, `drawn`.
    pub inputs: String,
    /// What it was taken for, and why: `f32, by the kernels' parameters`.
    pub read_as: String,
    /// Numbers or elements that were compared.
    pub count: usize,
    /// Those that differ by more than the tolerance.
    pub different: usize,
    /// Those left out.
    pub left_out: usize,
    /// How far one may be off, relative to it.
    pub tolerance: f64,
    /// The largest relative error: 1 is 100 %. `None` where a NaN stands for a number, or the other way round.
    pub relative: Option<f64>,
    /// Root mean square of the errors over that of the expected values, of an array.
    pub normalized: Option<f64>,
    /// The largest absolute error, of an array.
    pub absolute: Option<f64>,
    /// The first, or the worst, differences in words.
    pub differences: Vec<String>,
}

/// Something that both versions have and that was not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Where.
    pub place: String,
    /// What stands there.
    pub text: String,
    /// Why.
    pub reason: String,
}

/// The Verifier's answer about a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The reference, as it was named.
    pub reference: String,
    /// The candidate, as it was named.
    pub candidate: String,
    /// Where both ran: `cuda:0 (NVIDIA H200)`, `sim:h200`.
    pub device: String,
    /// The answer.
    pub answer: Answer,
    /// What became of the inputs.
    #[serde(flatten)]
    pub inputs: Inputs,
    /// What was compared.
    pub compared: Vec<Compared>,
    /// What was left out of the comparison.
    pub left_out: Vec<LeftOut>,
    /// What is wrong with the candidate, in its own text.
    pub findings: Vec<Finding>,
    /// What nobody looked at, each in a sentence.
    pub not_checked: Vec<String>,
    /// What a person should know besides: how it was built, what was assumed.
    pub notes: Vec<String>,
    /// What was measured, where it was.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// The JSON schema of a verdict as the command line prints it, `stitchcuda.verdict/1`.
pub fn verdict_schema() -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::draft07();
    let mut schema = settings.into_generator().into_root_schema_for::<Verdict>().to_value();
    schema["title"] = "stitchcuda.verdict/1".into();
    schema["properties"]["schema"] = serde_json::json!({ "const": "stitchcuda.verdict/1" });
    if let Some(required) = schema["required"].as_array_mut() {
        required.push("schema".into());
    }
    schema
}

impl Verdict {
    /// Whether the candidate may be offered, as far as this verdict goes.
    pub fn is_good(&self) -> bool {
        self.answer == Answer::Correct
            && self.findings.iter().all(|finding| finding.severity > Severity::Warning)
    }

    /// The answer with what was compared under which inputs, in a line.
    pub fn summary(&self) -> String {
        let compared: Vec<String> = self
            .compared
            .iter()
            .map(|one| {
                let wrong =
                    if one.different > 0 { format!(", {} differ", one.different) } else { String::new() };
                format!("{} ({} values, inputs {}{wrong})", one.what, one.count, one.inputs)
            })
            .collect();
        let inputs = match &self.inputs {
            Inputs::Drawn => "inputs drawn anew".to_owned(),
            Inputs::Perturbed { buffers } => format!("inputs of {buffers} buffers perturbed"),
            Inputs::Fixed { reason } => format!("inputs fixed: {reason}"),
        };
        let answer = if self.is_good() { "right" } else { "not right" };
        let compared = if compared.is_empty() { "nothing compared".to_owned() } else { compared.join("; ") };
        format!("{answer}; {inputs}; {compared}")
    }

    /// What is wrong with the candidate, in a sentence without its end.
    pub fn trouble(&self) -> String {
        let what = match self.answer {
            Answer::BuildFailed => "does not compile",
            Answer::Crashed => "crashes",
            Answer::TimedOut => "does not come to an end",
            Answer::Dishonest => "does not do its work where it is measured",
            Answer::NothingCompared => "gives nothing to compare",
            Answer::Wrong | Answer::Correct => "wrong",
        };
        match self.findings.iter().find(|finding| finding.severity == Severity::Error) {
            Some(finding) => format!("{what}: {}", finding.message),
            None => what.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_the_one_in_the_documentation() {
        let schema = serde_json::to_string_pretty(&verdict_schema()).unwrap() + "\n";
        expect_test::expect_file!["../../../docs/verdict.schema.json"].assert_eq(&schema);
    }

    #[test]
    fn a_verdict_survives_its_json() {
        let verdict = Verdict {
            reference: "a.cu".into(),
            candidate: "b.cu".into(),
            device: "sim:h200".into(),
            answer: Answer::NothingCompared,
            inputs: Inputs::Perturbed { buffers: 2 },
            compared: vec![Compared { what: "standard output".into(), ..Compared::default() }],
            left_out: Vec::new(),
            findings: Vec::new(),
            not_checked: vec!["Time was not compared.".into()],
            notes: Vec::new(),
            evidence: Evidence { seeds: Some(6), ..Evidence::default() },
        };
        let text = serde_json::to_string(&verdict).unwrap();
        assert!(text.contains(r#""answer":"nothing-compared","inputs":"perturbed","buffers":2"#), "{text}");
        assert!(text.ends_with(r#""notes":[],"seeds":6}"#), "{text}");
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
    }
}
