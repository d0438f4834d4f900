//! Which names mean something else in one environment than in another, so that only what mentions them is checked again.

use std::collections::{HashMap, HashSet};

use super::Environment;

impl Environment {
    /// The names of which the two environments say different things. `None` if that can't be told, since other files
    /// define different constants.
    pub fn changed_names(&self, earlier: &Self) -> Option<Vec<String>> {
        let (now, then) = (&*self.inner, &*earlier.inner);
        if now.outer.fingerprint != then.outer.fingerprint {
            return None;
        }
        let mut names: HashSet<&str> = HashSet::new();
        differences(&now.integers, &then.integers, |a, b| a == b, &mut names);
        differences(&now.floats, &then.floats, |a, b| a.0.to_bits() == b.0.to_bits() && a.1 == b.1, &mut names);
        differences(&now.globals, &then.globals, |a, b| a == b, &mut names);
        differences(&now.returns, &then.returns, |a, b| a == b, &mut names);
        differences(&now.launches, &then.launches, |a, b| a == b, &mut names);
        for (a, b) in [(&now.asking, &then.asking), (&now.asked_after, &then.asked_after), (&now.defined, &then.defined)] {
            names.extend(a.symmetric_difference(b).map(String::as_str));
        }
        // `Traits::kTile` is written in many ways, but never without its last part.
        Some(names.into_iter().map(|name| name.rsplit("::").next().unwrap_or(name).to_owned()).collect())
    }
}

fn differences<'n, V>(
    now: &'n HashMap<String, V>,
    then: &'n HashMap<String, V>,
    same: impl Fn(&V, &V) -> bool,
    names: &mut HashSet<&'n str>,
) {
    names.extend(now.iter().filter(|(name, a)| !then.get(*name).is_some_and(|b| same(a, b))).map(|(name, _)| name.as_str()));
    names.extend(then.keys().filter(|name| !now.contains_key(*name)).map(String::as_str));
}
