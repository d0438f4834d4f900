//! What the rules look at: numbers of the model, and the words for them.

use super::calls::CallClass;
use super::event::Direction;
use super::model::{CopySum, Device, DeviceTime, Gaps, KernelSum, System, share};
use crate::units::{percent, rate, size, time};

/// Kernels that are told, at most.
const TOP: usize = 5;

/// Until these take so much of the time of all kernels.
const TOP_SHARE: f64 = 0.8;

/// Copies that are large enough to show a rate: smaller ones are mostly latency. In bytes in all.
const ENOUGH_BYTES: u64 = 1 << 20;

/// A program, seen from its busiest device.
pub struct View<'s> {
    /// All of it.
    pub system: &'s System,
    device: &'s Device,
    time: &'s DeviceTime,
}

/// What a rule saw.
#[derive(Debug)]
pub struct Look {
    /// What is compared with the threshold, from 0 to 1.
    pub share: f64,
    /// How many there are.
    pub count: u64,
    /// What could be gained, of the device's time, from 0 to 1.
    pub gain: f64,
    /// The kernel that it is about, where it is about one.
    pub subject: Option<String>,
    /// Names in the sentence, and what stands for them.
    pub values: Vec<(&'static str, String)>,
}

impl<'s> View<'s> {
    /// From the busiest device; `None` where nothing ran on any.
    pub fn of(system: &'s System) -> Option<Self> {
        let (device, time) = system.busiest()?;
        (time.base_ns() > 0 && system.kernels.is_some()).then_some(Self { system, device, time })
    }

    fn part(&self, ns: u64) -> f64 {
        share(ns, self.time.base_ns())
    }

    /// Launches of all kernels.
    pub fn launches(&self) -> u64 {
        self.kernels().iter().map(|kernel| kernel.count).sum()
    }

    fn kernels(&self) -> &'s [KernelSum] {
        self.system.kernels.as_deref().unwrap_or_default()
    }

    fn copies(&self) -> &'s [CopySum] {
        self.system.copies.as_deref().unwrap_or_default()
    }

    fn device_name(&self) -> String {
        self.device.name.clone().unwrap_or_else(|| format!("Device {}", self.device.id))
    }

    /// A rule about gaps of one cause: all of them are the gain.
    fn gaps(&self, gaps: &Gaps) -> Vec<Look> {
        let part = self.part(gaps.ns);
        let values = vec![
            ("device", self.device_name()),
            ("share", percent(part)),
            ("count", gaps.count.to_string()),
            ("longest", time(gaps.longest_ns)),
            ("time", time(gaps.ns)),
        ];
        vec![Look { share: part, count: gaps.count, gain: part, subject: None, values }]
    }
}

/// All idle time.
pub fn idle(view: &View<'_>) -> Vec<Look> {
    let idle = &view.time.idle;
    let part = view.time.idle_share();
    let mut causes = [
        (idle.synchronization.ns, "after waiting"),
        (idle.allocation.ns, "allocating"),
        (idle.launch.ns, "between launches"),
        (idle.host_at_work().ns, "while the host did something else"),
        (idle.unknown.ns, "for causes that were not recorded"),
    ];
    causes.sort_unstable_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let causes: Vec<String> = causes
        .iter()
        .filter(|(ns, _)| view.part(*ns) >= 0.01)
        .map(|(ns, cause)| format!("{} {cause}", percent(view.part(*ns))))
        .collect();
    let values = vec![
        ("device", view.device_name()),
        ("share", percent(part)),
        ("base", time(view.time.base_ns())),
        ("causes", causes.join(", ")),
    ];
    vec![Look { share: part, count: 1, gain: part, subject: None, values }]
}

/// Long gaps.
pub fn host(view: &View<'_>) -> Vec<Look> {
    view.gaps(&view.time.idle.host_at_work())
}

/// Short gaps.
pub fn launch(view: &View<'_>) -> Vec<Look> {
    view.gaps(&view.time.idle.launch)
}

/// Gaps in which memory was allocated.
pub fn allocation(view: &View<'_>) -> Vec<Look> {
    let mut looks = view.gaps(&view.time.idle.allocation);
    let (calls, _) = view.system.calls_of(CallClass::Allocate).unwrap_or_default();
    for look in &mut looks {
        set(&mut look.values, "count", calls.to_string());
    }
    looks
}

/// Kernels under 5 µs.
pub fn tiny(view: &View<'_>) -> Vec<Look> {
    let tiny: u64 = view.kernels().iter().map(|kernel| kernel.tiny).sum();
    let Some(most) = view.kernels().iter().max_by_key(|kernel| kernel.tiny) else {
        return Vec::new();
    };
    let (launches, gaps) = (view.launches(), view.time.idle.launch_after_tiny.ns);
    let values = vec![
        ("device", view.device_name()),
        ("count", tiny.to_string()),
        ("launches", launches.to_string()),
        ("gaps", time(gaps)),
        ("kernel", most.name.clone()),
    ];
    vec![Look { share: share(tiny, launches), count: tiny, gain: view.part(gaps), subject: None, values }]
}

/// Copies from or to pageable memory.
pub fn pageable(view: &View<'_>) -> Vec<Look> {
    let pageable = || view.copies().iter().filter(|copy| copy.route.is_pageable());
    let sum = |part: fn(&CopySum) -> u64| pageable().map(part).fold(0, u64::saturating_add);
    let (count, bytes, ns) = (sum(|copy| copy.count), sum(|copy| copy.bytes), sum(|copy| copy.total_ns));
    if count == 0 {
        return Vec::new();
    }
    let saved: f64 = pageable().map(|copy| copy.total_ns as f64 * saved_share(view.copies(), copy)).sum();
    let rate = if ns > 0 { rate(bytes as f64 / (ns as f64 * 1e-9)) } else { "too short for a rate".into() };
    let part = view.part(ns);
    let values = vec![
        ("count", count.to_string()),
        ("bytes", size(bytes)),
        ("time", time(ns)),
        ("share", percent(part)),
        ("rate", rate),
    ];
    vec![Look { share: part, count, gain: view.part(saved as u64), subject: None, values }]
}

/// How much of a pageable copy's time a pinned one would save. Half of it, where this profile has none to compare with: NVIDIA's "How to
/// Optimize Data Transfers in CUDA C/C++" measures more than twice the rate.
fn saved_share(copies: &[CopySum], pageable: &CopySum) -> f64 {
    let pinned = copies.iter().filter(|copy| {
        copy.route.direction == pageable.route.direction
            && !copy.route.is_pageable()
            && copy.bytes >= ENOUGH_BYTES
    });
    match (pinned.filter_map(|copy| copy.rate).reduce(f64::max), pageable.rate) {
        (Some(pinned), Some(rate)) if pinned > 0.0 => (1.0 - rate / pinned).clamp(0.0, 1.0),
        _ => 0.5,
    }
}

/// Calls that wait.
pub fn synchronization(view: &View<'_>) -> Vec<Look> {
    let calls = view.system.calls.iter().flatten().filter(|call| call.class.waits());
    let mut calls: Vec<_> = calls.collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.count));
    let count = calls.iter().map(|call| call.count).sum();
    let names: Vec<String> =
        calls.iter().take(3).map(|call| format!("{} `{}`", call.count, call.name)).collect();
    let mut looks = view.gaps(&view.time.idle.synchronization);
    for look in &mut looks {
        look.count = count;
        set(&mut look.values, "count", count.to_string());
        look.values.push(("calls", names.join(", ")));
    }
    looks.retain(|look| look.count > 0);
    looks
}

/// Copies while no kernel runs.
pub fn overlap(view: &View<'_>) -> Vec<Look> {
    let (alone, all) = (view.time.bus_copy_alone_ns, view.time.bus_copy_ns);
    let kernels_alone = view.time.kernel_ns.saturating_sub(all.saturating_sub(alone));
    let part = view.part(alone);
    let bus =
        |copy: &&CopySum| matches!(copy.route.direction, Direction::HostToDevice | Direction::DeviceToHost);
    let values = vec![("device", view.device_name()), ("time", time(alone)), ("share", percent(part))];
    let count = view.copies().iter().filter(bus).map(|copy| copy.count).sum();
    vec![Look { share: part, count, gain: view.part(alone.min(kernels_alone)), subject: None, values }]
}

/// The kernels with the most time.
pub fn top(view: &View<'_>) -> Vec<Look> {
    let mut told = 0.0;
    let mut looks = Vec::new();
    for kernel in view.kernels().iter().take(TOP) {
        if told >= TOP_SHARE {
            break;
        }
        told += kernel.share;
        let part = view.part(kernel.alone_ns);
        let ceiling = match kernel.ceiling {
            Some(ceiling) => format!("without it the program would be at most {ceiling:.2} times faster"),
            None => "nothing else takes time".to_owned(),
        };
        let values = vec![
            ("kernel", kernel.name.clone()),
            ("share_of_kernels", percent(kernel.share)),
            ("count", kernel.count.to_string()),
            ("median", time(kernel.median_ns)),
            ("ceiling", ceiling),
        ];
        let subject = Some(kernel.name.clone());
        looks.push(Look { share: part, count: kernel.count, gain: part, subject, values });
    }
    looks
}

fn set(values: &mut [(&'static str, String)], name: &str, value: String) {
    if let Some((_, old)) = values.iter_mut().find(|(known, _)| *known == name) {
        *old = value;
    }
}
