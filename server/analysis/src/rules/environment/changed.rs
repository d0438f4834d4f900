//! Which names mean something else in one environment than in another, so that only what mentions them is checked again.

use std::collections::{HashMap, HashSet};

use super::{Environment, Piece};

/// Names that mean something else than they did.
#[derive(Debug, Default)]
pub struct Changed {
    /// What mentions one of these must be checked again: constants, globals, what functions return, who asks for errors.
    pub mentioned: Vec<String>,
    /// The definitions of these must be: how they are launched, by whom they are called.
    pub defined: Vec<String>,
}

impl Environment {
    /// The names of which the two environments say different things. `None` if that can't be told, since other files
    /// define different constants.
    pub fn changed_names(&self, earlier: &Self) -> Option<Changed> {
        let (now, then) = (&*self.inner, &*earlier.inner);
        if now.outer.fingerprint != then.outer.fingerprint {
            return None;
        }
        let mut mentioned: HashSet<&str> = HashSet::new();
        differences(&now.integers, &then.integers, |a, b| a == b, &mut mentioned);
        differences(
            &now.floats,
            &then.floats,
            |a, b| a.0.to_bits() == b.0.to_bits() && a.1 == b.1,
            &mut mentioned,
        );
        differences(&now.types, &then.types, |a, b| a == b, &mut mentioned);
        differences(&now.globals, &then.globals, |a, b| a == b, &mut mentioned);
        differences(&now.returns, &then.returns, |a, b| a == b, &mut mentioned);
        differences(&now.macros, &then.macros, |a, b| a == b, &mut mentioned);
        differences(&now.members, &then.members, |a, b| a == b, &mut mentioned);
        for (a, b) in [(&now.asking, &then.asking), (&now.defined, &then.defined)] {
            mentioned.extend(a.symmetric_difference(b).map(String::as_str));
        }
        let mut defined: HashSet<&str> = HashSet::new();
        differences(&now.launches, &then.launches, |a, b| a == b, &mut defined);
        differences(&now.instances, &then.instances, |a, b| a == b, &mut defined);
        defined.extend(now.asked_after.symmetric_difference(&then.asked_after).map(String::as_str));
        // `Traits::kTile` is written in many ways, but never without its last part.
        let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
        Some(Changed {
            mentioned: mentioned.into_iter().map(last).collect(),
            defined: defined.into_iter().map(last).collect(),
        })
    }
}

impl Piece {
    /// Of an item that is one function whose body has errors: `self` is what the item tells with its body left out, `body` what it
    /// tells as it stands. While a body is being typed, the grammar now and then takes the function apart, so that its local
    /// variables look like the file's and its signature is lost.
    pub fn with_body(self, body: Self) -> Self {
        Self { uses: body.uses, launches: body.launches, ..self }
    }
}

fn differences<'n, V>(
    now: &'n HashMap<String, V>,
    then: &'n HashMap<String, V>,
    same: impl Fn(&V, &V) -> bool,
    names: &mut HashSet<&'n str>,
) {
    names.extend(
        now.iter()
            .filter(|(name, a)| !then.get(*name).is_some_and(|b| same(a, b)))
            .map(|(name, _)| name.as_str()),
    );
    names.extend(then.keys().filter(|name| !now.contains_key(*name)).map(String::as_str));
}
