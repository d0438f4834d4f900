//! Arguments as texts of Python.

use super::values::Tree;

/// Arguments as Python would write them: `(3, 0.5), mode="mean"`. `None` where a tensor is among them.
pub(super) fn literal(arguments: &Tree) -> Option<String> {
    match arguments {
        Tree::Tuple { items } | Tree::List { items } => list(items),
        Tree::Named { items, .. } => {
            let part = |name: &str| items.iter().find(|item| item.0 == name).map(|item| &item.1);
            let (Some(Tree::Tuple { items: positional }), Some(Tree::Dict { items: named })) =
                (part("args"), part("kwargs"))
            else {
                return None;
            };
            let named: Option<Vec<String>> =
                named.iter().map(|(name, value)| Some(format!("{name}={}", value_of(value)?))).collect();
            let parts = [list(positional)?, named?.join(", ")];
            Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    }
}

fn list(items: &[Tree]) -> Option<String> {
    Some(items.iter().map(value_of).collect::<Option<Vec<_>>>()?.join(", "))
}

fn value_of(tree: &Tree) -> Option<String> {
    Some(match tree {
        Tree::Tensor { .. } | Tree::Named { .. } => return None,
        Tree::Int { v } => v.clone(),
        Tree::Float { v } => format!("float({})", quoted(v)),
        Tree::Bool { v } => if *v { "True" } else { "False" }.to_owned(),
        Tree::Str { v } => quoted(v),
        Tree::None => "None".to_owned(),
        Tree::Tuple { items } if items.is_empty() => "()".to_owned(),
        Tree::Tuple { items } => format!("({},)", list(items)?),
        Tree::List { items } => format!("[{}]", list(items)?),
        Tree::Dict { items } => {
            let items: Option<Vec<String>> = items
                .iter()
                .map(|(key, value)| Some(format!("{}: {}", quoted(key), value_of(value)?)))
                .collect();
            format!("{{{}}}", items?.join(", "))
        }
    })
}

/// A text as a literal of Python: what is no plain character is escaped by its number.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            ' '..='~' if c != '"' && c != '\\' => quoted.push(c),
            _ => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_text() {
        let int = |v: &str| Tree::Int { v: v.into() };
        let positional = Tree::Tuple {
            items: vec![
                int("3"),
                Tree::Float { v: "inf".into() },
                Tree::List { items: vec![Tree::None] },
                Tree::Str { v: "a\"\n".into() },
            ],
        };
        let text = "3, float(\"inf\"), [None], \"a\\U00000022\\U0000000a\"";
        assert_eq!(literal(&positional).unwrap(), text);
        let named = Tree::Dict { items: vec![("bias".into(), Tree::Bool { v: true })] };
        let both = Tree::Named {
            name: "arguments".into(),
            items: vec![("args".into(), positional), ("kwargs".into(), named)],
        };
        assert_eq!(literal(&both).unwrap(), format!("{text}, bias=True"));
        assert_eq!(literal(&Tree::Tuple { items: vec![Tree::Tensor { i: 0 }] }), None);
        assert_eq!(
            literal(&Tree::Tuple { items: vec![Tree::Tuple { items: vec![int("1")] }] }).unwrap(),
            "(1,)"
        );
    }
}
