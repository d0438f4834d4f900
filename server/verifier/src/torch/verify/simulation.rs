//! What a verdict says of kernels that ran on the simulator, and when their being right says nothing.

use std::sync::Arc;

use stitch_findings::{Answer, Code};

use super::report::Report;
use crate::torch::simulated::{Seen, Simulator};

/// Kernels and functions that a sentence names.
const MOST_NAMED: usize = 6;

/// The simulator of a verification, and what of it was taken in.
pub(super) struct Simulated {
    simulator: Arc<Simulator>,
    /// Launches before the call that is made now.
    launches: u64,
    /// Calls of the candidate that launched no kernel.
    idle: u64,
}

impl Simulated {
    pub fn new(simulator: Arc<Simulator>) -> Self {
        Self { simulator, launches: 0, idle: 0 }
    }
}

impl Report<'_> {
    /// A call of the candidate came back. Whether its kernels did something wrong, which is said then.
    pub fn simulated_call(&mut self) -> bool {
        let Some(simulated) = &mut self.simulated else { return false };
        let launches = simulated.simulator.seen().launched.values().sum();
        if launches == simulated.launches {
            simulated.idle += 1;
        }
        simulated.launches = launches;
        self.simulated_faults()
    }

    /// Accuses the candidate of the first thing that one of its kernels did wrong.
    pub(super) fn simulated_faults(&mut self) -> bool {
        let seen = self.simulated.as_ref().map(|simulated| simulated.simulator.seen());
        let Some(fault) = seen.and_then(|seen| seen.faults.first().cloned()) else { return false };
        let place = fault.place.as_ref().and_then(|(file, line)| self.source.of_line(file, *line));
        let mut fault = fault;
        if let (Some((file, line)), Some(span)) = (&mut fault.place, place) {
            // The person's own line, not that of the text that torch would have made.
            *file = self.candidate_file();
            *line = u32::try_from(self.source.line_of(span)).unwrap_or(*line);
        }
        let span = place.unwrap_or(self.span);
        self.accuse_at(span, Code::VERIFY_CRASHED, Answer::Crashed, fault.words(), "");
        true
    }

    /// Says that nothing is known where something could not be simulated. Whether that is so.
    pub(super) fn not_simulated(&mut self) -> bool {
        let seen = self.simulated.as_ref().map(|simulated| simulated.simulator.seen());
        let Some(reason) = seen.and_then(|seen| seen.refused.first().cloned()) else { return false };
        self.nothing_known(format!("The candidate could not be simulated: {reason}."));
        true
    }

    fn nothing_known(&mut self, message: String) {
        let advice = "Verify it on a GPU: `--device cuda:0`.";
        self.accuse(Code::VERIFY_NOTHING_COMPARED, Answer::NothingCompared, message, advice);
    }

    /// What is said when all is done: what ran, what did not, and that neither the wrapper nor the speed was verified.
    pub(super) fn simulated_at_the_end(&mut self) {
        let Some(simulated) = &self.simulated else { return };
        let (seen, idle) = (simulated.simulator.seen(), simulated.idle);
        if self.is_good() && !self.not_simulated() {
            if seen.kernels.is_empty() && seen.launched.is_empty() {
                self.nothing_known(
                    "The candidate builds no extension from CUDA texts, so nothing of it ran on the simulator. `--device cpu` verifies what runs on the CPU.".to_owned(),
                );
            } else if seen.launched.is_empty() {
                self.nothing_known(
                    "No kernel of the candidate was launched, so its answers came from elsewhere.".to_owned(),
                );
            } else if idle > 0 {
                self.nothing_known(format!(
                    "{idle} of the candidate's calls launched no kernel, so their answers came from elsewhere."
                ));
            }
        }
        let wrapper = "The wrapper was not verified: the C++ around the kernels ran against a stand-in for torch's tensors, and the Python around it with tensors of the CPU, so that devices, streams and torch's own checks were not tried.";
        self.not_checked(wrapper);
        let unlaunched: Vec<&String> =
            seen.kernels.iter().filter(|kernel| !seen.launched.contains_key(*kernel)).collect();
        if !unlaunched.is_empty() {
            self.not_checked(format!("{} was not launched, so nothing is known of it.", named(&unlaunched)));
        }
        self.not_checked("Races between threads were not looked for.");
        self.not_checked(speed(&seen));
        if !seen.launched.is_empty() {
            let launched: Vec<String> = seen
                .launched
                .iter()
                .map(|(kernel, count)| format!("`{kernel}` ({count} launches)"))
                .collect();
            self.note(format!("On the simulator ran {}.", listed(&launched)));
        }
    }
}

/// That no time was measured, and what the simulator thinks.
fn speed(seen: &Seen) -> String {
    let mut text = "Whether the candidate is faster: the simulator measures no time.".to_owned();
    #[allow(clippy::cast_precision_loss)] // Shown with two digits.
    if let Some(each) = seen.estimated_ns.checked_div(seen.calls).filter(|each| *each > 0) {
        let microseconds = each as f64 / 1000.0;
        text.push_str(&format!(
            " It estimates {microseconds:.2} µs of kernels for one call of the extension, by a roofline."
        ));
    }
    text
}

fn named(kernels: &[&String]) -> String {
    listed(&kernels.iter().map(|kernel| format!("`{kernel}`")).collect::<Vec<_>>())
}

fn listed(items: &[String]) -> String {
    let shown = items.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(MOST_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
