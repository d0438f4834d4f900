//! A kernel's parameters, by what a harness does for each.

use crate::compare::ElementType;

/// What a parameter is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A pointer to elements in device memory.
    Array {
        /// Their type, as it is written.
        element: String,
        /// Whether the kernel can only read them.
        is_const: bool,
    },
    /// A value.
    Scalar {
        /// Its type, as it is written.
        ty: String,
    },
    /// Something that a harness can't make up.
    Unsupported {
        /// Why, in words.
        reason: String,
    },
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; one is made up where it has none.
    pub name: String,
    /// What it is.
    pub role: Role,
}

/// Words of a type that say nothing about what it holds.
const NOISE: [&str; 7] =
    ["__restrict__", "__restrict", "restrict", "RESTRICT", "__grid_constant__", "volatile", "struct"];
/// Types that stand for what only the host can make.
const OPAQUE: [&str; 5] =
    ["cudaTextureObject_t", "cudaSurfaceObject_t", "CUtensorMap", "cudaTextureObject", "texture"];

impl Parameter {
    /// Reads a parameter: its name and its type as they are written, and its number.
    pub fn read(name: &str, ty: &str, number: usize) -> Self {
        let brackets = name.matches('[').count() + ty.matches('[').count();
        let plain = name.split('[').next().unwrap_or_default().trim();
        let name = if plain.is_empty() { format!("argument{number}") } else { plain.to_owned() };
        Self { name, role: role(ty, brackets) }
    }
}

fn role(ty: &str, brackets: usize) -> Role {
    let unsupported = |reason: &str| Role::Unsupported { reason: reason.to_owned() };
    let spaced = ty.split('[').next().unwrap_or_default().replace('*', " * ");
    let words: Vec<&str> = spaced.split_whitespace().filter(|word| !NOISE.contains(word)).collect();
    if words.iter().any(|word| OPAQUE.contains(word)) {
        return unsupported("it is a texture, a surface or a tensor map");
    }
    if ty.contains("(*") || ty.contains("...") {
        return unsupported("it is a function pointer or a parameter pack");
    }
    let stars = words.iter().filter(|word| **word == "*").count() + brackets;
    let before: Vec<&str> = words.iter().copied().take_while(|word| *word != "*").collect();
    let bare = before.iter().copied().filter(|word| *word != "const").collect::<Vec<_>>().join(" ");
    match stars {
        0 => Role::Scalar { ty: bare },
        1 if bare == "void" => unsupported("it points to `void`, so its elements are not known"),
        1 => Role::Array { element: bare, is_const: before.contains(&"const") },
        _ if brackets > 0 => unsupported("it points to arrays"),
        _ => unsupported("it points to pointers"),
    }
}

/// Types that CUDA programs give arrays, and what their bytes are; vectors are several of these.
/// Source: CUDA C++ Programming Guide, "Built-in Vector Types"; the integer types of `<cstdint>`.
const ELEMENTS: &[(&str, ElementType)] = &[
    ("float", ElementType::F32),
    ("double", ElementType::F64),
    ("half", ElementType::F16),
    ("__half", ElementType::F16),
    ("half2", ElementType::F16),
    ("__half2", ElementType::F16),
    ("nv_bfloat16", ElementType::Bf16),
    ("__nv_bfloat16", ElementType::Bf16),
    ("nv_bfloat162", ElementType::Bf16),
    ("__nv_bfloat162", ElementType::Bf16),
    ("float1", ElementType::F32),
    ("float2", ElementType::F32),
    ("float3", ElementType::F32),
    ("float4", ElementType::F32),
    ("cuComplex", ElementType::F32),
    ("cuFloatComplex", ElementType::F32),
    ("double1", ElementType::F64),
    ("double2", ElementType::F64),
    ("double3", ElementType::F64),
    ("double4", ElementType::F64),
    ("cuDoubleComplex", ElementType::F64),
    ("char", ElementType::I8),
    ("signed char", ElementType::I8),
    ("int8_t", ElementType::I8),
    ("bool", ElementType::U8),
    ("unsigned char", ElementType::U8),
    ("uint8_t", ElementType::U8),
    ("uchar", ElementType::U8),
    ("uchar4", ElementType::U8),
    ("short", ElementType::I16),
    ("int16_t", ElementType::I16),
    ("unsigned short", ElementType::U16),
    ("uint16_t", ElementType::U16),
    ("int", ElementType::I32),
    ("int32_t", ElementType::I32),
    ("int2", ElementType::I32),
    ("int3", ElementType::I32),
    ("int4", ElementType::I32),
    ("unsigned", ElementType::U32),
    ("unsigned int", ElementType::U32),
    ("uint", ElementType::U32),
    ("uint32_t", ElementType::U32),
    ("uint2", ElementType::U32),
    ("uint3", ElementType::U32),
    ("uint4", ElementType::U32),
    ("long", ElementType::I64),
    ("long long", ElementType::I64),
    ("int64_t", ElementType::I64),
    ("unsigned long", ElementType::U64),
    ("unsigned long long", ElementType::U64),
    ("unsigned long long int", ElementType::U64),
    ("uint64_t", ElementType::U64),
    ("size_t", ElementType::U64),
];

/// What the elements of an array of type `element` are, where the name of the type alone tells.
pub fn element_type(element: &str) -> Option<ElementType> {
    let element = element.trim_start_matches("std::");
    ELEMENTS.iter().find(|(name, _)| *name == element).map(|(_, ty)| *ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_by_what_they_hold() {
        for (name, ty, expected) in [
            ("x", "const float* __restrict__", "float const []"),
            ("x", "float const *", "float const []"),
            ("y", "float *", "float []"),
            ("y", "unsigned int* const", "unsigned int []"),
            ("z[]", "int", "int []"),
            ("n", "const int", "int"),
            ("s", "ns::Shape<4>", "ns::Shape<4>"),
            ("", "T *__restrict__", "T []"),
            ("p", "float**", "!it points to pointers"),
            ("f[][3]", "double", "!it points to arrays"),
            ("f", "double (*)[3]", "!it is a function pointer or a parameter pack"),
            ("p", "void*", "!it points to `void`, so its elements are not known"),
            ("t", "cudaTextureObject_t", "!it is a texture, a surface or a tensor map"),
        ] {
            let parameter = Parameter::read(name, ty, 2);
            let shown = match &parameter.role {
                Role::Array { element, is_const } => {
                    format!("{element}{} []", if *is_const { " const" } else { "" })
                }
                Role::Scalar { ty } => ty.clone(),
                Role::Unsupported { reason } => format!("!{reason}"),
            };
            assert_eq!(shown, expected, "{ty}");
        }
        assert_eq!(Parameter::read("", "int", 2).name, "argument2");
        assert_eq!(element_type("std::uint8_t"), Some(ElementType::U8));
        assert_eq!(element_type("real"), None);
    }
}
