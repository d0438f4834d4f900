//! Where managed memory should lie: what `cudaMemAdvise` and `cudaMemPrefetchAsync` said of it, and what
//! `cudaMemRangeGetAttribute` answers. Nothing moves: here both processors see the same bytes.
//!
//! The answers are those of an H200 (CUDA 12.4 and 13.0).

use std::collections::BTreeMap;
use std::ops::Range;

use super::context::Context;
use super::errors::Code;
use super::memory_calls::check_managed;
use super::protocol::{Answer, Call};
use crate::memory::PAGE;

/// A processor: the device, or that of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processor {
    Device,
    Host,
}

/// What was said of some pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    read_mostly: bool,
    preferred: Option<Processor>,
    /// By the device, by the host.
    accessed: [bool; 2],
    prefetched: Option<Processor>,
}

/// What was said of managed memory, by page. Pages that are not here were never spoken of.
#[derive(Debug, Default)]
pub(super) struct Advice {
    /// Ranges that do not overlap, by their starts: the end of each, and what holds there.
    ranges: BTreeMap<u64, (u64, Place)>,
}

impl Advice {
    /// Cuts the range that an address lies within in two there.
    fn cut(&mut self, at: u64) {
        if let Some((_, (end, place))) = self.ranges.range_mut(..at).next_back()
            && *end > at
        {
            let rest = (std::mem::replace(end, at), *place);
            self.ranges.insert(at, rest);
        }
    }

    fn change(&mut self, pages: Range<u64>, change: impl Fn(&mut Place)) {
        self.cut(pages.start);
        self.cut(pages.end);
        let mut at = pages.start;
        let mut gaps = Vec::new();
        for (&start, (end, place)) in self.ranges.range_mut(pages.clone()) {
            gaps.push((at, start));
            change(place);
            at = *end;
        }
        gaps.push((at, pages.end));
        for (start, end) in gaps.into_iter().filter(|(start, end)| start < end) {
            let mut place = Place::default();
            change(&mut place);
            self.ranges.insert(start, (end, place));
        }
    }

    /// What holds in each part of some pages.
    fn of(&self, pages: &Range<u64>) -> Vec<Place> {
        let mut at = pages.start;
        let mut places = Vec::new();
        let before = self.ranges.range(..pages.start).next_back().filter(|(_, (end, _))| *end > pages.start);
        for (&start, &(end, place)) in before.into_iter().chain(self.ranges.range(pages.clone())) {
            if start > at {
                places.push(Place::default());
            }
            places.push(place);
            at = end;
        }
        if at < pages.end {
            places.push(Place::default());
        }
        places
    }

    /// Memory was given back.
    pub(super) fn forget(&mut self, start: u64, size: u64) {
        let pages = pages(start, size);
        self.cut(pages.start);
        self.cut(pages.end);
        let inside: Vec<u64> = self.ranges.range(pages).map(|(&start, _)| start).collect();
        for start in inside {
            self.ranges.remove(&start);
        }
    }
}

/// The pages that hold some bytes.
fn pages(start: u64, size: u64) -> Range<u64> {
    start / PAGE * PAGE..(start + size.max(1)).next_multiple_of(PAGE)
}

/// What all parts agree on.
fn common<T: PartialEq>(mut of: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = of.next()??;
    of.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// `cudaMemoryAdvise`, and the number for prefetches that our own calls use.
const PREFETCH: u32 = 7;

/// Arguments: address, bytes, advice, whether it is about the host's processor.
pub(super) fn advise(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let [start, size, _, host] = [0, 1, 2, 3].map(|index| call.argument(index));
    check_managed(context, start, size, false)?;
    let processor = if host == 0 { Processor::Device } else { Processor::Host };
    let at = usize::from(processor == Processor::Host);
    let advice = call.small(2);
    context.advice.change(pages(start, size), |place| match advice {
        1 | 2 => place.read_mostly = advice == 1,
        3 => place.preferred = Some(processor),
        4 => place.preferred = None,
        5 | 6 => place.accessed[at] = advice == 5,
        PREFETCH => place.prefetched = Some(processor),
        _ => {}
    });
    Ok(Answer::done())
}

/// `cudaMemLocationType` and number of a processor. No processor: `cudaInvalidDeviceId`.
const fn location(processor: Option<Processor>) -> [i32; 2] {
    match processor {
        Some(Processor::Device) => [1, 0],
        Some(Processor::Host) => [2, -1],
        None => [0, -2],
    }
}

/// Arguments: address, bytes, `cudaMemRangeAttribute`. Results are numbers of type `int`; of `cudaMemRangeAttributeAccessedBy`
/// all processors, then no more.
pub(super) fn attribute(context: &Context, call: &Call) -> Result<Answer, Code> {
    let (start, size) = (call.argument(0), call.argument(1));
    check_managed(context, start, size, false)?;
    let places = context.advice.of(&pages(start, size));
    let preferred = location(common(places.iter().map(|place| place.preferred)));
    let prefetched = location(common(places.iter().map(|place| place.prefetched)));
    let values = match call.small(2) {
        1 => vec![i32::from(places.iter().all(|place| place.read_mostly))],
        2 | 6 => vec![preferred[1]],
        3 => {
            let everywhere = |at: usize| places.iter().all(|place| place.accessed[at]);
            [(0, 0), (1, -1)]
                .into_iter()
                .filter(|&(at, _)| everywhere(at))
                .map(|(_, number)| number)
                .collect()
        }
        4 | 8 => vec![prefetched[1]],
        5 => vec![preferred[0]],
        7 => vec![prefetched[0]],
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok(Answer::results(values.into_iter().map(|value| u64::from(value.cast_unsigned())).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_holds_for_the_pages_it_was_given_for() {
        let mut advice = Advice::default();
        let mostly = |place: &mut Place| place.read_mostly = true;
        let read = |advice: &Advice, range| {
            advice.of(&range).iter().map(|place| place.read_mostly).collect::<Vec<_>>()
        };
        advice.change(2 * PAGE..4 * PAGE, mostly);
        assert_eq!(read(&advice, 0..6 * PAGE), [false, true, false]);
        assert_eq!(read(&advice, 3 * PAGE..4 * PAGE), [true]);
        advice.change(3 * PAGE..5 * PAGE, |place| place.preferred = Some(Processor::Host));
        assert_eq!(read(&advice, 2 * PAGE..5 * PAGE), [true, true, false]);
        let preferred = |range: Range<u64>| common(advice.of(&range).iter().map(|place| place.preferred));
        assert_eq!(preferred(3 * PAGE..5 * PAGE), Some(Processor::Host));
        assert_eq!(preferred(2 * PAGE..5 * PAGE), None);
        advice.forget(0, 3 * PAGE);
        assert_eq!(read(&advice, 0..5 * PAGE), [false, true, false]);
    }
}
