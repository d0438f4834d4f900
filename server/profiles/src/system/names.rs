//! Names of kernels, calls and ranges, each kept once.

use std::collections::HashMap;
use std::sync::Arc;

/// How many different names are kept. A program has some thousand kernels; a name with a counter in it ("step 17") could be any number,
/// and those past this many are counted together under [`OTHERS`].
pub const MOST_NAMES: usize = 65_536;

/// The longest name that is kept whole, in bytes. Template instances of CUTLASS reach some thousand.
const LONGEST: usize = 8_192;

/// What names past [`MOST_NAMES`] are counted under.
pub const OTHERS: &str = "(others)";

/// A name, as the table's index.
pub type NameId = u32;

/// A table of names.
#[derive(Debug, Default)]
pub struct Names {
    known: HashMap<Arc<str>, NameId>,
    list: Vec<Arc<str>>,
}

impl Names {
    /// The name's index, which is new where the name is.
    pub fn id(&mut self, name: &str) -> NameId {
        let name = cut(name);
        if let Some(id) = self.known.get(name) {
            return *id;
        }
        let name = if self.list.len() + 1 < MOST_NAMES { name } else { OTHERS };
        if let Some(id) = self.known.get(name) {
            return *id;
        }
        let shared: Arc<str> = name.into();
        let id = self.list.len() as NameId;
        self.list.push(Arc::clone(&shared));
        self.known.insert(shared, id);
        id
    }

    /// The name with this index.
    pub fn get(&self, id: NameId) -> &str {
        self.list.get(id as usize).map_or(OTHERS, |name| name)
    }

    /// Whether names had to be counted together.
    pub fn overflowed(&self) -> bool {
        self.known.contains_key(OTHERS)
    }
}

/// The name, cut at a character where it is too long.
fn cut(name: &str) -> &str {
    if name.len() <= LONGEST {
        return name;
    }
    let end = (0..=LONGEST).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_index_and_a_flood_of_names_shares_one() {
        let mut names = Names::default();
        assert_eq!(names.id("a"), names.id("a"));
        for n in 0..MOST_NAMES + 10 {
            names.id(&n.to_string());
        }
        assert!(names.overflowed());
        let id = names.id("one more");
        assert_eq!(names.get(id), OTHERS);
        assert!(names.list.len() <= MOST_NAMES);
        let long = "é".repeat(LONGEST);
        let id = names.id(&long);
        assert_eq!(names.get(id), OTHERS);
        assert_eq!(cut(&long).len(), LONGEST);
    }
}
