//! What a text is compiled under: a condition must mean the same to nvcc without torch, to the C++ compiler, and to nvcc with all.

use std::collections::BTreeSet;

use super::words;

/// Names that all compilers here agree about, outside of torch's headers.
const AGREED: [&str; 12] = [
    "defined",
    "__cplusplus",
    "CUDA_VERSION",
    "CUDART_VERSION",
    "NDEBUG",
    "USE_ROCM",
    "__HIPCC__",
    "__HIP_PLATFORM_AMD__",
    "__HIP_PLATFORM_HCC__",
    "__linux__",
    "_WIN32",
    "_MSC_VER",
];
/// What only nvcc's device pass has. Inside of device code it means the same to both ways; host code never has it.
const ARCHITECTURE: &str = "__CUDA_ARCH__";

/// Looks at all conditions.
///
/// # Errors
/// One that depends on something else.
pub(super) fn check(text: &str, masked: &str, defined: &[String]) -> Result<(), String> {
    let mut own: BTreeSet<&str> = defined.iter().map(String::as_str).collect();
    let lines = || masked.lines().zip(text.lines());
    for (bare, _) in lines() {
        if let Some(rest) = directive(bare, "define") {
            own.extend(words(rest).next());
        }
    }
    for (bare, _) in lines() {
        for keyword in ["if", "ifdef", "ifndef", "elif"] {
            let Some(rest) = directive(bare, keyword) else { continue };
            for word in words(rest).filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())) {
                if !own.contains(word) && !AGREED.contains(&word) && word != ARCHITECTURE {
                    return Err(format!("what is compiled depends on {word}"));
                }
            }
        }
    }
    // What these say, no part of the text says.
    for word in ["__COUNTER__", "__TIME__", "__DATE__", "__TIMESTAMP__", "__CUDACC__", "__NVCC__"] {
        if words(masked).any(|known| known == word) {
            return Err(format!("it uses {word}"));
        }
    }
    Ok(())
}

fn directive<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix(keyword)?;
    rest.starts_with(|c: char| c.is_whitespace() || c == '(' || c == '!').then_some(rest)
}
