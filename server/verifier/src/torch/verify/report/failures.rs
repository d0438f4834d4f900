//! What an error of the candidate's process says of the candidate, and at which of its lines.

use stitch_findings::{Answer, Code, Span};

use super::{Report, cut, file_name, first_line, last_line};
use crate::torch::host::{ChildError, Frame};
use crate::torch::request::TorchError;

impl Report<'_> {
    /// Accuses the candidate of an error of its process. `when` follows "the candidate fails": ` under the inputs scaled`.
    ///
    /// # Errors
    /// It is none of its faults: the job was cancelled, our own side had no memory.
    pub fn failed(&mut self, error: ChildError, when: &str) -> Result<(), TorchError> {
        let file = file_name(&self.request.candidate.path);
        let is_cancelled = matches!(error, ChildError::Cancelled);
        if !is_cancelled && (self.simulated_faults() || self.not_simulated()) {
            return Ok(());
        }
        match error {
            ChildError::Cancelled => return Err(TorchError::Cancelled),
            ChildError::Here { what } | ChildError::TooLarge { what, .. } => {
                return Err(TorchError::Device(what));
            }
            ChildError::Python { stage, kind, message, frames, text } => {
                self.raised(&file, when, (&stage, &kind, &message), &frames, &text);
            }
            ChildError::OutOfMemory { stage, device, message } => {
                let message = format!(
                    "The candidate ran out of memory on {device} while {stage}{when}: {}",
                    first_line(&message)
                );
                self.accuse(Code::VERIFY_CRASHED, Answer::Crashed, message, "");
            }
            ChildError::Gpu { stage, message, frames } => {
                let (at, span) = self.place(&file, &frames);
                let message =
                    format!("The GPU reported an error while {stage}{when}{at}: {}", first_line(&message));
                let advice = "`--sanitizer always` says which kernel and which address.";
                self.accuse_at(span, Code::VERIFY_CRASHED, Answer::Crashed, message, advice);
            }
            ChildError::Ended { how, words } => {
                let said =
                    last_line(&words).map(|line| format!(" It printed last: {line}")).unwrap_or_default();
                let message = format!("The candidate's process {how}{when}.{said}");
                self.accuse(Code::VERIFY_CRASHED, Answer::Crashed, message, "");
            }
            ChildError::TimedOut { stage, limit, .. } => {
                let message = format!(
                    "The candidate was ended after {:.0} s while {stage}{when}.",
                    limit.as_secs_f64()
                );
                let advice = "Raise `--time-limit` if it is only slow.";
                self.accuse(Code::VERIFY_TIMEOUT, Answer::TimedOut, message, advice);
            }
            ChildError::Malformed { what } => {
                self.dishonest(format!(
                    "The candidate's process gave an answer that can't be{when}: {what}."
                ));
            }
        }
        Ok(())
    }

    /// Accuses the candidate of what it returned, which is more than the reference's `expected` bytes and than there is memory for.
    ///
    /// # Errors
    /// It is no more than that, so the machine is to blame.
    pub fn too_large(&mut self, bytes: u64, what: &str, expected: u64, when: &str) -> Result<(), TorchError> {
        if bytes <= expected {
            return Err(TorchError::Device(what.to_owned()));
        }
        let message = format!("The candidate's {what}{when}; the reference's take {expected} bytes.");
        let advice = "Return tensors of the reference's shapes.";
        self.accuse(Code::VERIFY_WRONG_RESULT, Answer::Wrong, message, advice);
        Ok(())
    }

    fn raised(
        &mut self,
        file: &str,
        when: &str,
        (stage, kind, said): (&str, &str, &str),
        frames: &[Frame],
        text: &str,
    ) {
        let (at, span) = self.place(file, frames);
        if kind == "StateError" {
            let message =
                format!("The candidate's parameters and buffers are not the reference's: {}", cut(said));
            let advice = "Give every parameter and buffer the reference's name, shape and type.";
            self.accuse(Code::VERIFY_WRONG_RESULT, Answer::Wrong, message, advice);
            return;
        }
        if kind == "Refused" {
            let message = format!("While {stage}{when}{at}: {}", cut(said));
            // The runner's words for a subclass of a tensor.
            if said.contains("a type of its own") {
                self.dishonest(message);
            } else {
                self.accuse_at(span, Code::VERIFY_CRASHED, Answer::Crashed, message, "");
            }
            return;
        }
        let compiler = format!("{said}\n{text}");
        if let Some(refused) = self
            .source
            .of_compiler(&compiler)
            .filter(|_| stage.starts_with("build") || stage.starts_with("import"))
        {
            let message = format!("The candidate's extension does not compile, at {}", refused.message);
            let span = refused.span.unwrap_or(span);
            self.accuse_at(span, Code::VERIFY_BUILD_FAILED, Answer::BuildFailed, message, "");
            return;
        }
        let message = format!("The candidate raised {kind} while {stage}{when}{at}: {}", first_line(said));
        if stage.starts_with("build") || kind == "SyntaxError" || kind == "IndentationError" {
            self.accuse_at(span, Code::VERIFY_BUILD_FAILED, Answer::BuildFailed, message, "");
        } else {
            self.accuse_at(span, Code::VERIFY_CRASHED, Answer::Crashed, message, "");
        }
    }

    /// `, at line 12 of cand.py` with its span, or else nothing and the definition.
    fn place(&self, file: &str, frames: &[Frame]) -> (String, Span) {
        match self.source.of_frames(frames) {
            Some((line, span)) => (format!(", at line {line} of {file}"), span),
            None => (String::new(), self.span),
        }
    }
}
