//! Which names mean something else in one environment than in another, so that only what mentions them is checked again.

use std::collections::{HashMap, HashSet};

use super::{Environment, Launches, Piece};

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
    /// define different constants, or if it matters to all: one of the two checks errors.
    pub fn changed_names(&self, earlier: &Self) -> Option<Changed> {
        let (now, then) = (&*self.inner, &*earlier.inner);
        if now.outer.fingerprint != then.outer.fingerprint || now.checks != then.checks {
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
        let sets = [
            (&now.asking, &then.asking),
            (&now.defined, &then.defined),
            (&now.showing, &then.showing),
            (&now.lone, &then.lone),
        ];
        for (a, b) in sets {
            mentioned.extend(a.symmetric_difference(b).map(String::as_str));
        }
        let mut defined: HashSet<&str> = HashSet::new();
        differences(&now.launches, &then.launches, |a, b| a.answers() == b.answers(), &mut defined);
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

impl Launches {
    /// What a rule may ask, so that two that answer alike compare as equal: of none, some or all launches, never of how many. A
    /// launch that is typed among others of the same kernel then leaves that kernel's findings as they are.
    pub(super) fn answers(self) -> Self {
        let share = |some: usize| match some {
            0 => 0,
            all if all == self.count => 2,
            _ => 1,
        };
        Self {
            count: self.count.min(1),
            rounding_up: share(self.rounding_up),
            dividing: share(self.dividing),
            one_column: share(self.one_column),
            one_block: share(self.one_block),
            ..self
        }
    }
}

impl Piece {
    /// Of an item that is one function whose body has errors: `self` is what the item tells with its body left out, `body` what it
    /// tells as it stands. While a body is being typed, the grammar now and then takes the function apart, so that its local
    /// variables look like the file's and its signature is lost.
    pub fn with_body(self, body: Self) -> Self {
        let Self { uses, launches, showing, lone, wraps_calls, .. } = body;
        Self { uses, launches, showing, lone, wraps_calls, ..self }
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

#[cfg(test)]
mod tests {
    use super::super::tests::environment;

    #[test]
    fn one_more_launch_of_the_same_kind_changes_no_name() {
        let launch = |name: &str, grid: &str| format!("void {name}(int n) {{ k<<<{grid}, 256>>>(n); }}\n");
        let rounded = "(n + 255) / 256";
        let one = launch("a", rounded);
        let two = launch("a", rounded) + &launch("b", rounded);
        let mixed = two.clone() + &launch("c", "n");
        let defined = |now: &str, then: &str| {
            let (now, then) = (environment(now), environment(then));
            let changed = now.changed_names(&then).unwrap();
            assert_eq!(now.hash() == then.hash(), changed.defined.is_empty() && changed.mentioned.is_empty());
            changed.defined
        };
        assert_eq!(defined(&two, &one), Vec::<String>::new(), "all launches round up, then as now");
        assert_eq!(defined(&mixed, &two), ["k"], "some do");
        assert_eq!(defined(&one, ""), ["k"]);
    }
}
