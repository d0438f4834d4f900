//! What a call was given, as an edited file's guard compares it.

use stitch_findings::{Argument, VerifiedCall};

use crate::torch::values::{Tensor, Tree, Values};

/// How a pair of positional and keyword arguments is named, and its parts (`runner/values.py`).
const ARGUMENTS: &str = "arguments";
const POSITIONAL: &str = "args";
const NAMED: &str = "kwargs";

/// A call with these inputs and this state, on a device of this kind. `None` where an argument is of a kind that no guard compares.
pub(super) fn call_of(inputs: &Values, state: Option<&Values>, device: &str) -> Option<VerifiedCall> {
    let convert = |tree: &Tree| argument(tree, &inputs.tensors, device);
    let list = |tree: &Tree| match tree {
        Tree::Tuple { items } | Tree::List { items } => items.iter().map(convert).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let (arguments, keywords) = match &inputs.tree {
        Tree::Named { name, items } if name == ARGUMENTS => {
            let part = |name: &str| items.iter().find(|item| item.0 == name).map(|item| &item.1);
            let Tree::Dict { items: named } = part(NAMED)? else { return None };
            let named = named.iter().map(|(name, value)| Some((name.clone(), convert(value)?)));
            (list(part(POSITIONAL)?)?, named.collect::<Option<Vec<_>>>()?)
        }
        tree => (list(tree)?, Vec::new()),
    };
    let state = match state.map(|state| (&state.tree, &state.tensors)) {
        Some((Tree::Dict { items }, tensors)) => {
            let entry =
                |(name, value): &(String, Tree)| Some((name.clone(), argument(value, tensors, device)?));
            items.iter().map(entry).collect::<Option<Vec<_>>>()?
        }
        _ => Vec::new(),
    };
    Some(VerifiedCall { arguments, keywords, state })
}

fn argument(tree: &Tree, tensors: &[Tensor], device: &str) -> Option<Argument> {
    let all =
        |items: &[Tree]| items.iter().map(|item| argument(item, tensors, device)).collect::<Option<_>>();
    Some(match tree {
        Tree::Tensor { i } => {
            let tensor = tensors.get(*i)?;
            Argument::Tensor {
                device: device.to_owned(),
                dtype: tensor.dtype.name().to_owned(),
                shape: tensor.shape.clone(),
                strides: tensor.strides.clone(),
            }
        }
        Tree::Int { v } => Argument::Int { v: v.clone() },
        Tree::Float { v } => Argument::Float { v: v.clone() },
        Tree::Bool { v } => Argument::Bool { v: *v },
        Tree::Str { v } => Argument::Str { v: v.clone() },
        Tree::None => Argument::None,
        Tree::Tuple { items } => Argument::Tuple { items: all(items)? },
        Tree::List { items } => Argument::List { items: all(items)? },
        Tree::Dict { items } => {
            let entry =
                |(key, value): &(String, Tree)| Some((key.clone(), argument(value, tensors, device)?));
            Argument::Dict { items: items.iter().map(entry).collect::<Option<_>>()? }
        }
        Tree::Named { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torch::values::Dtype;

    #[test]
    fn a_call_is_told_by_types_and_shapes() {
        let tensor = Tensor {
            dtype: Dtype::Float32,
            shape: vec![2, 3],
            strides: None,
            offset: 0,
            bytes: 24,
            device: None,
        };
        let positional = Tree::Tuple { items: vec![Tree::Tensor { i: 0 }, Tree::Int { v: "4".into() }] };
        let named = Tree::Dict { items: vec![("eps".into(), Tree::Float { v: "1e-05".into() })] };
        let tree = Tree::Named {
            name: ARGUMENTS.into(),
            items: vec![(POSITIONAL.into(), positional), (NAMED.into(), named)],
        };
        let values = Values { tree, tensors: vec![tensor.clone()], bytes: 24 };
        let state = Values {
            tree: Tree::Dict { items: vec![("w".into(), Tree::Tensor { i: 0 })] },
            tensors: vec![tensor],
            bytes: 24,
        };
        let call = call_of(&values, Some(&state), "cuda:9.0").unwrap();
        let expected = Argument::Tensor {
            device: "cuda:9.0".into(),
            dtype: "float32".into(),
            shape: vec![2, 3],
            strides: None,
        };
        assert_eq!(call.arguments, [expected.clone(), Argument::Int { v: "4".into() }]);
        assert_eq!(call.keywords, [("eps".to_owned(), Argument::Float { v: "1e-05".into() })]);
        assert_eq!(call.state, [("w".to_owned(), expected)]);
    }
}
