//! From sums in the making to the model.

use super::model::{Device, DeviceTime, KernelSum, Source, System, share};
use super::names::{Names, OTHERS};
use super::sweep::{MOST_DEVICES, Sweep, length};
use crate::note::{Note, NoteKind};

/// What a reader knows besides the events.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Who recorded it.
    pub source: Source,
    /// Devices that the profile names. Their times come from the events.
    pub devices: Vec<Device>,
    /// Whether the profiler recorded copies and memory that was set, so that none means none.
    pub copies_recorded: bool,
    /// Whether it recorded calls.
    pub calls_recorded: bool,
    /// Whether it recorded ranges.
    pub ranges_recorded: bool,
    /// What a reader has to know.
    pub notes: Vec<Note>,
}

impl Sweep {
    /// The model. Nothing can be added any more.
    pub fn finish(self, about: About) -> System {
        self.finish_with_names(about).1
    }

    /// The model, and the table of names for those who have more to name.
    pub fn finish_with_names(mut self, about: About) -> (Names, System) {
        self.run_out();
        let About { source, mut devices, copies_recorded, calls_recorded, ranges_recorded, mut notes } =
            about;
        let times: Vec<(u32, DeviceTime)> =
            self.devices.iter().map(|(id, sweep)| (*id, sweep.time())).collect();
        let kernels = self.kernel_sums(&times);
        for (id, time) in times {
            match devices.iter_mut().find(|device| device.id == id) {
                Some(device) => device.time = Some(time),
                None => devices.push(Device { id, time: Some(time), ..Device::default() }),
            }
        }
        devices.sort_by_key(|device| device.id);
        self.remark(&mut notes);
        let mut calls: Vec<_> = std::mem::take(&mut self.calls).into_iter().collect();
        calls.sort_by_key(|(name, call)| (std::cmp::Reverse(call.total_ns), *name));
        let names = &self.names;
        for (name, call) in &mut calls {
            names.get(*name).clone_into(&mut call.name);
        }
        for (name, at) in &self.range_of_name {
            names.get(*name).clone_into(&mut self.ranges[*at].name);
        }
        let copies: Vec<_> = self.copies.iter().map(|(route, stat)| stat.sum(*route)).collect();
        let system = System {
            source,
            span_ns: length(self.first, self.last.max(self.first)),
            devices,
            kernels: (!kernels.is_empty()).then_some(kernels),
            copies: (copies_recorded || !copies.is_empty()).then_some(copies),
            sets: self.sets.or_else(|| copies_recorded.then(Default::default)),
            calls: (calls_recorded || !calls.is_empty())
                .then(|| calls.into_iter().map(|(_, call)| call).collect()),
            ranges: (ranges_recorded || !self.ranges.is_empty()).then_some(self.ranges),
            streams: self.streams.into_values().collect(),
            drawing: self.pencil.finish(&self.names),
            notes,
        };
        (self.names, system)
    }

    /// Kernels with what depends on all of them, the one with the most time first.
    fn kernel_sums(&self, times: &[(u32, DeviceTime)]) -> Vec<KernelSum> {
        let mut sums: Vec<KernelSum> = self
            .kernels
            .iter()
            .map(|(name, stat)| {
                let mut sum = stat.sum(self.names.get(*name));
                // Programs on several devices run in step: the device with the most of it decides.
                if let Some((device, alone)) = stat.alone.iter().max_by_key(|(_, ns)| **ns)
                    && let Some((_, time)) = times.iter().find(|(id, _)| id == device)
                {
                    let base = time.base_ns();
                    sum.ceiling = (base > *alone).then(|| base as f64 / (base - alone) as f64);
                } else {
                    sum.ceiling = Some(1.0);
                }
                sum
            })
            .collect();
        let all = sums.iter().fold(0, |all: u64, sum| all.saturating_add(sum.total_ns));
        for sum in &mut sums {
            sum.share = share(sum.total_ns, all);
        }
        sums.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        sums
    }

    fn remark(&self, notes: &mut Vec<Note>) {
        if self.out_of_order > 0 {
            notes.push(Note::new(
                NoteKind::Remark,
                format!(
                    "{} events were not in the order of their starts; idle times are less exact.",
                    self.out_of_order
                ),
            ));
        }
        if self.beyond_devices {
            notes.push(Note::new(
                NoteKind::Unreadable,
                format!("More than {MOST_DEVICES} devices are named, which is unlikely; the time of the others is not known."),
            ));
        }
        if self.names.overflowed() {
            notes.push(Note::new(
                NoteKind::Remark,
                format!("There are more different names than can be told apart; the rest is counted as `{OTHERS}`."),
            ));
        }
        if self.kernels.values().any(|stat| stat.whole_graph) {
            notes.push(Note::new(
                NoteKind::NotCaptured,
                "CUDA graphs were recorded as a whole, not their kernels. Record with `nsys profile --cuda-graph-trace=node` to see them.",
            ));
        }
    }
}
