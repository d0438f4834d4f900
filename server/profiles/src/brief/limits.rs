//! What limits a program, kernel by kernel, with what could be gained of all that was looked at: for whoever has to choose where to begin.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stitch_findings::Code;

use crate::kernel::{Insight, KernelLaunch, LinePlace, Metric, explain, kernel_name};
use crate::profile::Profile;

/// One thing that limits a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The kernel, by its base name.
    pub kernel: String,
    /// The finding's code.
    pub code: Code,
    /// The line, where one is known.
    pub place: Option<LinePlace>,
    /// What could be gained, from 0 to 1 of the time (or the estimated cycles) of all kernels that were looked at. A guide to what to try first.
    pub gain: f64,
}

/// What limits the kernels of a profile, the largest gain first. What has no estimate of a gain is not told.
pub fn limits(profile: &Profile) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for (launch, weight) in profile.launches.iter().zip(weights(profile)) {
        for insight in explain(launch).insights {
            let Some(gain) = gain(launch, &insight) else { continue };
            limits.push(Limit {
                kernel: launch.kernel.base.clone(),
                code: insight.code,
                place: insight.place,
                gain: gain * weight,
            });
        }
    }
    limits.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    limits
}

/// The part of each kernel, by its base name, in what all kernels of a profile cost, from 0 to 1.
pub fn shares(profile: &Profile) -> BTreeMap<String, f64> {
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for (launch, weight) in profile.launches.iter().zip(weights(profile)) {
        *shares.entry(launch.kernel.base.clone()).or_default() += weight;
    }
    shares
}

/// What an insight's limit costs of its launch, from 0 to 1: by its rule, or where nothing was timed by the model of costs.
pub(super) fn gain(launch: &KernelLaunch, insight: &Insight) -> Option<f64> {
    match (&insight.gain, &launch.estimate) {
        (Some(gain), _) => Some(gain.share),
        (None, Some(estimate)) => estimate.gain(insight.code, *insight.evidence.get("share")?),
        (None, None) => None,
    }
}

/// What a launch costs, in one way.
type Cost<'a> = dyn Fn(&KernelLaunch) -> Option<f64> + 'a;

/// The part of each launch in the time of all, from 0 to 1: by the record of the program, by their own durations, by estimates, or else all alike.
pub(super) fn weights(profile: &Profile) -> Vec<f64> {
    let kernels = profile.system.as_ref().and_then(|system| system.kernels.as_ref());
    let recorded = |launch: &KernelLaunch| {
        let of = kernels?.iter().filter(|kernel| kernel_name(&kernel.name).base == launch.kernel.base);
        let share: f64 = of.map(|kernel| kernel.share).sum();
        let alike = profile.launches.iter().filter(|other| other.kernel.base == launch.kernel.base).count();
        Some(share / alike.max(1) as f64)
    };
    let ways: [&Cost<'_>; 3] = [&recorded, &|launch| launch.get(Metric::Duration), &|launch| {
        launch.estimate.as_ref().map(|estimate| estimate.cycles)
    }];
    for way in ways {
        let values: Option<Vec<f64>> = profile.launches.iter().map(way).collect();
        let Some(values) = values else { continue };
        let all: f64 = values.iter().sum();
        if all > 0.0 {
            return values.into_iter().map(|value| value / all).collect();
        }
    }
    vec![1.0 / profile.launches.len().max(1) as f64; profile.launches.len()]
}
