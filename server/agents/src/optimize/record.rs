//! The profile of a run's reference: how long it may take, and what is said of it.

use std::time::Duration;

use stitch_profiles::profile::Profile;

use crate::run::Budget;

/// The part of a run's time that profiling the reference may take: one of so many.
const SHARE: u64 = 10;
/// No less than this, for Nsight Compute replays each kernel for every pass, and importing torch takes seconds.
const LEAST: Duration = Duration::from_secs(30);
/// No more than this: what takes longer is better cut down than waited for.
const MOST: Duration = Duration::from_secs(300);

/// How long profiling the reference may take.
pub fn share_of(budget: &Budget) -> Duration {
    Duration::from_secs(budget.seconds / SHARE).clamp(LEAST, MOST)
}

/// By what it was profiled, and why not better.
pub fn made(profile: &Profile) -> String {
    let not = profile.way.not_taken.iter().map(|not| format!(" Not by {}: {}", not.by, not.why));
    format!("Profiled by {}.{}", profile.way.by, not.collect::<String>())
}

/// Why it was not profiled.
pub fn not_made(why: &str) -> String {
    format!("Not profiled, so plans rest on the code and what was measured: {}.", why.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use stitch_profiles::profile::{NotTaken, Way};

    use super::*;

    #[test]
    fn a_profile_has_a_share_of_the_time_and_says_how_it_was_made() {
        let of = |seconds| share_of(&Budget { seconds, ..Budget::MODEL }).as_secs();
        assert_eq!([of(10), of(1_200), of(86_400)], [30, 120, 300]);
        let not_taken = vec![NotTaken { by: "Nsight Compute".into(), why: "ncu was not found.".into() }];
        let profile = Profile::new("k.cu", Way { by: "Nsight Systems".into(), not_taken, ..Way::default() });
        assert_eq!(made(&profile), "Profiled by Nsight Systems. Not by Nsight Compute: ncu was not found.");
        assert!(not_made("It ended.").ends_with("measured: It ended."), "{}", not_made("It ended."));
    }
}
