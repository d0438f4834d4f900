//! The name of a kernel's function in a demangled signature.

use super::KernelName;

/// A kernel's name from what a profiler wrote: `void a::reduce<float, (int)256>(const T1 *, int)` is `reduce`.
///
/// Parts in brackets of any kind are left out, so that a namespace, a return type and a lambda among the template arguments do not matter.
pub fn kernel_name(signature: &str) -> KernelName {
    let signature = signature.trim();
    KernelName { signature: signature.to_owned(), base: base(signature).to_owned() }
}

fn base(signature: &str) -> &str {
    if let Some(name) = signature.strip_prefix("_Z").and_then(mangled) {
        return name;
    }
    // `(anonymous namespace)::f` and `<unnamed>::f` begin with brackets that are no parameters.
    let start = signature
        .rfind("(anonymous namespace)::")
        .map(|at| at + "(anonymous namespace)::".len())
        .or_else(|| signature.rfind("<unnamed>::").map(|at| at + "<unnamed>::".len()))
        .filter(|at| depth_at(signature, *at) == 0)
        .unwrap_or(0);
    let head = &signature[start..];
    let end = head.find(['(', '<', '[']).unwrap_or(head.len());
    let mut name = &head[..end];
    // A class template's member: `ops<float>::run(...)`.
    let rest = &head[end..];
    if rest.starts_with('<')
        && let Some(close) = closing(rest)
        && let Some(member) = rest[close..].strip_prefix("::")
    {
        return base(member);
    }
    name = name.trim_end();
    let name = name.rsplit("::").next().unwrap_or(name);
    let name = name.rsplit([' ', '*', '&']).next().unwrap_or(name);
    if name.is_empty() { signature } else { name }
}

/// The last name before template arguments and parameters in a mangled one: `N3ops6reduceIfEEvPKT_` is `reduce`.
///
/// Source: Itanium C++ ABI, "Name Mangling": names are written with their length in front, nested ones between `N` and `E`.
fn mangled(encoded: &str) -> Option<&str> {
    let mut rest = encoded.trim_start_matches(['N', 'K', 'L']);
    let mut last = None;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Some(length) = rest.get(..digits).and_then(|digits| digits.parse::<usize>().ok()) else {
            return last;
        };
        let end = digits.checked_add(length)?;
        last = Some(rest.get(digits..end)?);
        rest = rest.get(end..)?.trim_start_matches('L');
    }
}

/// How many brackets are open at a byte.
fn depth_at(text: &str, at: usize) -> i32 {
    text.bytes().take(at).fold(0, |depth, byte| match byte {
        b'(' | b'<' | b'[' => depth + 1,
        b')' | b'>' | b']' => depth - 1,
        _ => depth,
    })
}

/// The byte after the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_name_has_no_type_no_namespace_and_no_arguments() {
        for (signature, expected) in [
            ("scale(const float *, int)", "scale"),
            ("void reduce<float, (int)256>(const T1 *, T1 *, int)", "reduce"),
            (
                "void at::native::vec_kernel<(int)4, at::native::[lambda(float) (instance 1)]>(int, T2)",
                "vec_kernel",
            ),
            ("say(char \"x\", int)", "say"),
            ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
            ("void (anonymous namespace)::fused<float>(T1 *)", "fused"),
            ("void ops<float>::run(int)", "run"),
            ("void <unnamed>::softmax_warp_forward<float, (bool)0>(T1 *)", "softmax_warp_forward"),
            ("float ops::dot<float, (int)4>(const T1 *, const T1 *)", "dot"),
            ("_Z13scale_stridedPKfPfii", "scale_strided"),
            ("_ZN3ops12_GLOBAL__N_16reduceIfLi256EEEvPKT_PS2_i", "reduce"),
            ("_Z", "_Z"),
            ("_Z9xx", "_Z9xx"),
            ("_Z99999999999999999999a", "_Z99999999999999999999a"),
            ("", ""),
            ("(", "("),
        ] {
            assert_eq!(kernel_name(signature).base, expected, "{signature}");
        }
    }
}
