//! How one device spends its time while the line sweeps over it.

use std::collections::BTreeMap;

use super::event::Work;
use super::model::DeviceTime;
use super::names::NameId;
use super::sweep::{Host, length};

/// A kernel shorter than this is tiny: its launch costs about as much as it does. The launch of an empty kernel takes 2 to 5 µs on the
/// host and about as long until it runs. In nanoseconds.
pub const TINY_KERNEL_NS: u64 = 5_000;

/// A gap up to this long, without another cause, is one between launches; in a longer one the host did something else. Eager PyTorch needs
/// some tens of microseconds an operator. In nanoseconds.
pub const LAUNCH_GAP_NS: u64 = 100_000;

/// A gap longer than this, without another cause, is a pause: the program's start, the end of an epoch, or a step that waits for its data. In
/// nanoseconds.
pub const PAUSE_NS: u64 = 10_000_000;

/// One device.
#[derive(Debug, Default)]
pub struct DeviceSweep {
    time: DeviceTime,
    active: BTreeMap<u64, Work>,
    kernels: u64,
    bus_copies: u64,
    gap: Option<Gap>,
    last_was_tiny: bool,
}

/// A time in which nothing runs, so far.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    ns: u64,
    setup_ns: u64,
    allocating_ns: u64,
    /// How long the host had waited, and went on to wait, where it waited when the gap began.
    waited_ns: u64,
}

impl DeviceSweep {
    /// Something begins to run.
    pub(super) fn begin(&mut self, serial: u64, work: Work, ns: u64, host: Host) {
        if let Some(gap) = self.gap.take()
            && gap.ns > 0
        {
            self.count(&gap, host);
        }
        self.active.insert(serial, work);
        match work {
            Work::Kernel { .. } | Work::Graph { .. } => self.kernels += 1,
            Work::Copy { route, .. } if route.direction.crosses_the_bus() => self.bus_copies += 1,
            Work::Copy { .. } | Work::Set { .. } => {}
        }
        self.last_was_tiny = matches!(work, Work::Kernel { .. }) && ns < TINY_KERNEL_NS;
    }

    /// Something has run.
    pub(super) fn end(&mut self, now: i64, serial: u64, host: Host) {
        match self.active.remove(&serial) {
            Some(Work::Kernel { .. } | Work::Graph { .. }) => self.kernels -= 1,
            Some(Work::Copy { route, .. }) if route.direction.crosses_the_bus() => self.bus_copies -= 1,
            _ => {}
        }
        if self.active.is_empty() {
            let waited_ns = if host.waiting > 0 { length(host.waiting_since, now) } else { 0 };
            self.gap = Some(Gap { waited_ns, ..Gap::default() });
        }
    }

    /// Time passes. Gives the kernel that had the device for itself, if one had.
    pub(super) fn pass(&mut self, ns: u64, host: Host) -> Option<NameId> {
        if let Some(gap) = &mut self.gap {
            gap.ns = gap.ns.saturating_add(ns);
            if host.waiting > 0 && gap.waited_ns > 0 {
                gap.waited_ns = gap.waited_ns.saturating_add(ns);
            }
            // In this order, for a first launch may allocate.
            if host.setup > 0 {
                gap.setup_ns = gap.setup_ns.saturating_add(ns);
            } else if host.allocating > 0 {
                gap.allocating_ns = gap.allocating_ns.saturating_add(ns);
            }
            return None;
        }
        let time = &mut self.time;
        time.busy_ns = time.busy_ns.saturating_add(ns);
        if self.kernels > 0 {
            time.kernel_ns = time.kernel_ns.saturating_add(ns);
        }
        if self.bus_copies > 0 {
            time.bus_copy_ns = time.bus_copy_ns.saturating_add(ns);
            if self.kernels == 0 {
                time.bus_copy_alone_ns = time.bus_copy_alone_ns.saturating_add(ns);
            }
        }
        let mut active = self.active.values();
        match (active.next(), active.next()) {
            (Some(Work::Kernel { name, .. } | Work::Graph { name }), None) => Some(*name),
            _ => None,
        }
    }

    /// Gives the parts of a gap that has ended to their causes.
    fn count(&mut self, gap: &Gap, host: Host) {
        let idle = &mut self.time.idle;
        if !host.recorded {
            idle.unknown.add(gap.ns);
            return;
        }
        let mut rest = gap.ns;
        let parts = [
            (gap.setup_ns, &mut idle.setup),
            (gap.allocating_ns, &mut idle.allocation),
            (gap.waited_ns, &mut idle.synchronization),
        ];
        for (ns, gaps) in parts {
            let ns = ns.min(rest);
            if ns > 0 {
                gaps.add(ns);
                rest -= ns;
            }
        }
        if rest > PAUSE_NS {
            idle.pause.add(rest);
        } else if rest > LAUNCH_GAP_NS {
            idle.host.add(rest);
        } else if rest > 0 {
            idle.launch.add(rest);
            if self.last_was_tiny {
                idle.launch_after_tiny.add(rest);
            }
        }
    }

    /// What it did from the first to the last thing that ran.
    pub(super) fn time(&self) -> DeviceTime {
        let mut time = self.time.clone();
        time.window_ns = time.busy_ns.saturating_add(time.idle.total_ns());
        time
    }
}
