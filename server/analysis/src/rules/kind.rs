//! The grammar's node kinds that the rules care for, as an enum: a table lookup by number a node, not a string comparison.

use std::num::NonZeroU16;
use std::sync::OnceLock;

use tree_sitter::{Language, Node};

macro_rules! kinds {
    ($($name:ident = $text:literal,)*) => {
        /// What a node is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            /// None of those below.
            Other,
            $(#[doc = $text] $name,)*
        }

        const NAMES: &[(&str, Kind)] = &[$(($text, Kind::$name),)*];
    };
}

kinds! {
    Assignment = "assignment_expression",
    Binary = "binary_expression",
    Call = "call_expression",
    Case = "case_statement",
    Cast = "cast_expression",
    Comma = "comma_expression",
    Comment = "comment",
    CompoundLiteral = "compound_literal_expression",
    Compound = "compound_statement",
    ConditionClause = "condition_clause",
    Conditional = "conditional_expression",
    Declaration = "declaration",
    Do = "do_statement",
    Else = "else_clause",
    ExpressionStatement = "expression_statement",
    Field = "field_expression",
    For = "for_statement",
    ForRange = "for_range_loop",
    Function = "function_definition",
    Identifier = "identifier",
    If = "if_statement",
    InitDeclarator = "init_declarator",
    InitializerList = "initializer_list",
    KernelCall = "kernel_call_syntax",
    Lambda = "lambda_expression",
    Number = "number_literal",
    OptionalParameter = "optional_parameter_declaration",
    Parameter = "parameter_declaration",
    Parenthesized = "parenthesized_expression",
    Pointer = "pointer_expression",
    Qualified = "qualified_identifier",
    Return = "return_statement",
    Sizeof = "sizeof_expression",
    Subscript = "subscript_expression",
    Switch = "switch_statement",
    Template = "template_function",
    Unary = "unary_expression",
    Update = "update_expression",
    While = "while_statement",
    Arguments = "argument_list",
    Indices = "subscript_argument_list",
    Struct = "struct_specifier",
}

impl Kind {
    /// The kind of `node`.
    pub fn of(node: Node) -> Self {
        static TABLE: OnceLock<Vec<Kind>> = OnceLock::new();
        let table = TABLE.get_or_init(|| {
            let language = Language::new(tree_sitter_cuda::LANGUAGE);
            (0..language.node_kind_count())
                .map(|id| {
                    let id = u16::try_from(id).unwrap_or_default();
                    let name = language.node_kind_for_id(id).filter(|_| language.node_kind_is_named(id));
                    NAMES.iter().find(|(text, _)| name == Some(text)).map_or(Kind::Other, |(_, kind)| *kind)
                })
                .collect()
        });
        table.get(usize::from(node.kind_id())).copied().unwrap_or(Kind::Other)
    }

    /// Whether it is a loop.
    pub fn is_loop(self) -> bool {
        matches!(self, Kind::For | Kind::ForRange | Kind::While | Kind::Do)
    }

    /// Whether names that are declared inside end with it.
    pub fn is_scope(self) -> bool {
        self.is_loop()
            || matches!(self, Kind::Compound | Kind::If | Kind::Switch | Kind::Lambda | Kind::Function)
    }
}

/// The fields that tell a node's children apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Of a pointer, a field or a subscript expression.
    Argument,
    /// Of `?:` and of `if`.
    Alternative,
    /// Of `?:`, of `if` and of loops.
    Condition,
    /// Of `?:` and of `if`.
    Consequence,
    /// Of a declaration.
    Declarator,
    /// Of a call.
    Function,
    /// Of a binary operator or an assignment.
    Left,
    /// Of a binary operator or an assignment.
    Right,
    /// Of a cast or an initialisation.
    Value,
}

impl Field {
    /// The field with this number in the grammar, if it is one of these.
    pub fn of(id: NonZeroU16) -> Option<Self> {
        static TABLE: OnceLock<Vec<Option<Field>>> = OnceLock::new();
        let table = TABLE.get_or_init(|| {
            let language = Language::new(tree_sitter_cuda::LANGUAGE);
            let last = u16::try_from(language.field_count()).unwrap_or(u16::MAX);
            (0..=last)
                .map(|id| {
                    let name = language.field_name_for_id(id)?;
                    FIELDS.iter().find(|(text, _)| *text == name).map(|(_, field)| *field)
                })
                .collect()
        });
        table.get(usize::from(id.get())).copied().flatten()
    }
}

const FIELDS: &[(&str, Field)] = &[
    ("argument", Field::Argument),
    ("alternative", Field::Alternative),
    ("condition", Field::Condition),
    ("consequence", Field::Consequence),
    ("declarator", Field::Declarator),
    ("function", Field::Function),
    ("left", Field::Left),
    ("right", Field::Right),
    ("value", Field::Value),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_has_every_kind_and_field() {
        let language = Language::new(tree_sitter_cuda::LANGUAGE);
        for (name, _) in NAMES {
            assert_ne!(language.id_for_node_kind(name, true), 0, "{name}");
        }
        for (name, field) in FIELDS {
            assert_eq!(language.field_id_for_name(name).and_then(Field::of), Some(*field), "{name}");
        }
    }
}
