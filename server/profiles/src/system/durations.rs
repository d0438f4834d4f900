//! Durations of many launches of one kernel in little memory.

use std::collections::BTreeMap;

/// So many are kept one by one; the median is exact until then.
const EXACT: usize = 256;

/// Steps between a power of two and the next: the median of more is off by less than 1/64 of its value.
const STEPS: u64 = 64;

/// A collection of durations in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    count: u64,
    total: u64,
    min: u64,
    max: u64,
    exact: Vec<u64>,
    buckets: BTreeMap<u64, u64>,
}

impl Durations {
    /// Adds one.
    pub fn add(&mut self, ns: u64) {
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count += 1;
        self.total = self.total.saturating_add(ns);
        if self.buckets.is_empty() && self.exact.len() < EXACT {
            self.exact.push(ns);
            return;
        }
        for earlier in std::mem::take(&mut self.exact) {
            *self.buckets.entry(bucket(earlier)).or_default() += 1;
        }
        *self.buckets.entry(bucket(ns)).or_default() += 1;
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The shortest; 0 of none.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The longest; 0 of none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The median, the lower one of an even number: exact up to [`EXACT`] of them, else the lower end of its bucket.
    pub fn median(&self) -> u64 {
        if self.buckets.is_empty() {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable();
            return sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        }
        let mut left = self.count.saturating_sub(1) / 2;
        for (bucket, count) in &self.buckets {
            if left < *count {
                return start(*bucket).clamp(self.min, self.max);
            }
            left -= count;
        }
        self.max
    }
}

/// The bucket of a duration: exact below [`STEPS`], then [`STEPS`] to each power of two.
fn bucket(ns: u64) -> u64 {
    if ns < STEPS {
        return ns;
    }
    let shift = u64::from(ns.ilog2() - STEPS.ilog2());
    (shift + 1) * STEPS + ((ns >> shift) - STEPS)
}

/// The least duration of a bucket.
fn start(bucket: u64) -> u64 {
    if bucket < STEPS {
        return bucket;
    }
    (STEPS + bucket % STEPS) << (bucket / STEPS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_holds_its_durations_within_a_sixty_fourth(ns in any::<u64>()) {
            let low = start(bucket(ns));
            prop_assert!(low <= ns);
            prop_assert!((ns - low) as f64 <= ns as f64 / 64.0);
        }

        #[test]
        fn the_median_is_exact_for_few_and_near_for_many(values in prop::collection::vec(0u64..1_000_000_000, 1..2_000)) {
            let mut durations = Durations::default();
            values.iter().for_each(|ns| durations.add(*ns));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let exact = sorted[(sorted.len() - 1) / 2];
            let found = durations.median();
            if values.len() <= EXACT {
                prop_assert_eq!(found, exact);
            } else {
                prop_assert!(found <= exact && (exact - found) as f64 <= exact as f64 / 64.0);
            }
            prop_assert_eq!(durations.min(), sorted[0]);
            prop_assert_eq!(durations.max(), sorted[sorted.len() - 1]);
            prop_assert_eq!(durations.total(), values.iter().sum::<u64>());
        }
    }
}
