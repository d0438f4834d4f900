//! One file's outline against what the scanner says it holds.

use std::ops::Range;

use crate::truth::{Class, Site, Truth};

/// What the outline says a file holds.
#[derive(Clone, Debug, Default)]
pub struct Got {
    /// Kernel definitions.
    pub kernels: Vec<GotKernel>,
    /// The extent of each launch.
    pub launches: Vec<Range<usize>>,
}

/// One kernel definition of the outline.
#[derive(Clone, Debug)]
pub struct GotKernel {
    /// Its name.
    pub name: String,
    /// Where the name starts.
    pub name_at: usize,
    /// Its extent.
    pub span: Range<usize>,
}

/// A definition that the outline has not, or calls something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Line of the `__global__`.
    pub line: usize,
    /// Its name in truth.
    pub name: String,
    /// What the outline calls it, if it has it.
    pub got: Option<String>,
}

/// A kernel of the outline that is none in truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// Where it starts.
    pub at: usize,
    /// What the outline calls it.
    pub name: String,
}

/// How one file, or many, came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Kernel definitions in truth.
    pub definitions: usize,
    /// Of these, how many the outline has at their place.
    pub found: usize,
    /// Of these, how many have the right name.
    pub named: usize,
    /// Definitions not found or named wrongly.
    pub misses: Vec<Miss>,
    /// Kernels of the outline that are none.
    pub extras: Vec<Extra>,
    /// Launches in truth.
    pub launches: usize,
    /// Of these, how many the outline has.
    pub launches_found: usize,
    /// Offsets of the launches that it has not.
    pub launches_missed: Vec<usize>,
}

/// Compares; each kernel of the outline answers for one definition at most.
pub fn compare(truth: &Truth, got: &Got) -> Comparison {
    let mut result = Comparison::default();
    let mut free: Vec<&GotKernel> = got.kernels.iter().collect();
    let sites: Vec<&Site> = truth.sites.iter().filter(|site| site.class == Class::Definition).collect();
    // Those at the very name first, so that a huge wrong extent can't take another's place.
    let exact: Vec<Option<&GotKernel>> =
        sites.iter().map(|site| take(&mut free, |kernel| site.name_at.contains(&kernel.name_at))).collect();
    for (site, exact) in sites.into_iter().zip(exact) {
        let kernel = exact.or_else(|| take(&mut free, |kernel| kernel.span.contains(&site.token_at)));
        result.definitions += 1;
        result.found += usize::from(kernel.is_some());
        match kernel {
            Some(kernel) if kernel.name == site.name => result.named += 1,
            _ => result.misses.push(Miss {
                line: site.line,
                name: site.name.clone(),
                got: kernel.map(|kernel| kernel.name.clone()),
            }),
        }
    }
    let excused = |kernel: &GotKernel| {
        let is_open = |site: &&Site| matches!(site.class, Class::Unsure | Class::MacroBody);
        truth.sites.iter().filter(is_open).any(|site| kernel.span.contains(&site.token_at))
    };
    let extras = free.into_iter().filter(|kernel| !excused(kernel));
    result.extras = extras.map(|kernel| Extra { at: kernel.span.start, name: kernel.name.clone() }).collect();
    launches(truth, got, &mut result);
    result
}

/// The smallest of the kernels that fit, which is then no longer free.
fn take<'a>(free: &mut Vec<&'a GotKernel>, fits: impl Fn(&GotKernel) -> bool) -> Option<&'a GotKernel> {
    let fitting = free.iter().enumerate().filter(|(_, kernel)| fits(kernel));
    let index = fitting.min_by_key(|(_, kernel)| kernel.span.len())?.0;
    Some(free.swap_remove(index))
}

/// A launch is found if the smallest extent around its `<<<` is its own: nested launches have one each.
fn launches(truth: &Truth, got: &Got, result: &mut Comparison) {
    let mut free: Vec<&Range<usize>> = got.launches.iter().collect();
    // From the back: an inner launch comes after the outer one's `<<<`.
    for &at in truth.launches.iter().rev() {
        result.launches += 1;
        let around = free.iter().enumerate().filter(|(_, span)| span.contains(&at));
        match around.min_by_key(|(_, span)| span.len()).map(|(index, _)| index) {
            Some(index) => {
                free.swap_remove(index);
                result.launches_found += 1;
            }
            None => result.launches_missed.push(at),
        }
    }
    result.launches_missed.reverse();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::{Macros, scan};

    fn kernel(text: &str, name: &str, whole: &str) -> GotKernel {
        let start = text.find(whole).unwrap();
        let name_at = start + whole.find(name).unwrap();
        GotKernel { name: name.to_owned(), name_at, span: start..start + whole.len() }
    }

    fn compared(text: &str, kernels: Vec<GotKernel>) -> Comparison {
        compare(&scan(text, &Macros::default()), &Got { kernels, launches: Vec::new() })
    }

    #[test]
    fn found_missed_misnamed_and_extra() {
        let text = "__global__ void a() {} __global__ B(1) void b() {} __global__ void c() {} int d() {}";
        let got = vec![
            kernel(text, "a", "__global__ void a() {}"),
            kernel(text, "B", "__global__ B(1) void b() {}"),
            kernel(text, "d", "int d() {}"),
        ];
        let mut macros = Macros::default();
        macros.collect("#define B(n) __launch_bounds__(n)\n");
        let result = compare(&scan(text, &macros), &Got { kernels: got, launches: Vec::new() });
        assert_eq!((result.definitions, result.found, result.named), (3, 2, 1));
        assert_eq!(
            result.misses,
            [
                Miss { line: 1, name: "b".into(), got: Some("B".into()) },
                Miss { line: 1, name: "c".into(), got: None },
            ]
        );
        assert_eq!(result.extras, [Extra { at: text.find("int").unwrap(), name: "d".into() }]);
    }

    #[test]
    fn one_kernel_answers_once() {
        let text = "__global__ void a() {} __global__ void b() {}";
        let result = compared(text, vec![kernel(text, "a", text)]);
        assert_eq!((result.found, result.named), (1, 1));
        assert_eq!(result.misses, [Miss { line: 1, name: "b".into(), got: None }]);
    }

    #[test]
    fn a_macro_body_is_no_extra() {
        let text = "#define K __global__ void a() {}\n";
        let result = compared(text, vec![kernel(text, "a", "__global__ void a() {}")]);
        assert_eq!((result.definitions, result.extras.len()), (0, 0));
    }

    #[test]
    fn nested_launches() {
        let text = "void f() { k<<<1, 2>>>([] { j<<<1, 2>>>(); }); }";
        let truth = scan(text, &Macros::default());
        let outer = 11..45;
        let inner = 28..40;
        let of = |launches| compare(&truth, &Got { kernels: Vec::new(), launches });
        assert_eq!(of(vec![outer.clone(), inner]).launches_found, 2);
        assert_eq!(of(vec![outer]).launches_found, 1);
        assert_eq!(of(Vec::new()).launches_missed, truth.launches);
    }
}
