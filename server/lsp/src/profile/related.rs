//! Places that belong to what a profiler found of a kernel: where it is launched and by whom, and where the memory is allocated that a line touches.

use stitch_analysis::{Analysis, Launch};
use stitch_findings::{Finding, Place, Producer, Related, Span};

/// Launches that are named with a finding.
const MOST_LAUNCHES: usize = 3;

/// What allocates memory of the device and sets the pointer whose address is the first argument.
const ALLOCATE: &[&str] = &["cudaMalloc", "cudaMallocManaged", "cudaMallocAsync", "cudaMallocPitch"];

/// Adds these places to findings about kernels of the analysed text.
pub(super) fn add(findings: &mut [Finding], analysis: &Analysis) {
    let text = analysis.source();
    for finding in findings.iter_mut().filter(|finding| finding.code.info().producer == Producer::Ncu) {
        let Some(kernel) = finding.subject.clone() else { continue };
        let launches: Vec<&Launch> = analysis
            .outline()
            .launches
            .iter()
            .filter(|launch| launch.kernel == kernel && launch.unit.is_none())
            .collect();
        for launch in launches.iter().take(MOST_LAUNCHES) {
            let by = launch.caller.as_ref().map(|caller| format!(", by `{caller}`")).unwrap_or_default();
            push(finding, launch.span, format!("`{kernel}` is launched here{by}"));
        }
        for (argument, launch) in touched(analysis, finding, &launches) {
            if let Some(span) = allocation(text, &argument, launch.span) {
                push(finding, span, format!("`{argument}` is allocated here"));
            }
        }
    }
}

fn push(finding: &mut Finding, span: Span, message: String) {
    let place = Place::Here(span);
    if !finding.related.iter().any(|known| known.place == place) {
        finding.related.push(Related { place, message });
    }
}

/// What the first launch passes for the pointers that the finding's line indexes.
fn touched<'l>(analysis: &Analysis, finding: &Finding, launches: &[&'l Launch]) -> Vec<(String, &'l Launch)> {
    let kernel = analysis.outline().kernels().find(|kernel| kernel.span.touches(finding.span.start));
    let (Some(kernel), Some(launch)) = (kernel, launches.first()) else { return Vec::new() };
    let line = analysis.source().get(finding.span.range()).unwrap_or_default();
    let parameters = kernel.parameters.iter().zip(&launch.arguments);
    let pointers =
        parameters.filter(|(parameter, _)| parameter.ty.contains('*') && has_indexed(line, &parameter.name));
    pointers
        .map(|(_, argument)| argument.rsplit(')').next().unwrap_or(argument).trim().to_owned())
        .filter(|argument| !argument.is_empty() && argument.chars().all(is_of_name))
        .map(|argument| (argument, *launch))
        .collect()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a line has `name[`, as a whole word.
fn has_indexed(line: &str, name: &str) -> bool {
    !name.is_empty()
        && line.match_indices(name).any(|(at, _)| {
            !line[..at].ends_with(is_of_name) && line[at + name.len()..].trim_start().starts_with('[')
        })
}

/// The last allocation of a pointer before a launch: `cudaMalloc(&x, …)`, with or without casts.
fn allocation(text: &str, pointer: &str, launch: Span) -> Option<Span> {
    let before = text.get(..launch.start)?;
    let calls = ALLOCATE.iter().flat_map(|name| {
        before.match_indices(&format!("{name}(")).map(|(at, call)| (at, at + call.len())).collect::<Vec<_>>()
    });
    let of_it = calls.filter_map(|(start, open)| {
        let rest = &before[open..];
        let first = &rest[..rest.find([',', ';'])?];
        let address = first.rsplit('&').next().filter(|_| first.contains('&'))?;
        let end = open + rest.find(';')?;
        (address.trim() == pointer).then(|| Span::new(start, end))
    });
    of_it.max_by_key(|span| span.start)
}

#[cfg(test)]
mod tests {
    use stitch_analysis::Language;
    use stitch_findings::Code;

    use super::*;

    const TEXT: &str = "\
__global__ void scale(const float *in, float *out, int n) {
  int i = threadIdx.x;
  out[i] = in[i * 32];
}
void run(int n) {
  float *a, *b;
  cudaMalloc(&a, n * 4);
  cudaMalloc((void **)&b, n * 4);
  scale<<<n / 256, 256>>>(a, b, n);
}
";

    #[test]
    fn launches_and_allocations_are_named() {
        let line = "out[i] = in[i * 32];";
        let at = TEXT.find(line).unwrap();
        let span = Span::new(at, at + line.len());
        let mut findings = vec![
            Finding::new(Code::NCU_UNCOALESCED_ACCESS, span, "x").about("scale"),
            Finding::new(Code::NCU_UNCOALESCED_ACCESS, span, "x").about("other"),
        ];
        add(&mut findings, &Analysis::of(Language::Cuda, TEXT));
        let said: Vec<(&str, &str)> = findings[0]
            .related
            .iter()
            .map(|related| {
                let Place::Here(span) = related.place else { panic!("{related:?}") };
                (&TEXT[span.range()], related.message.as_str())
            })
            .collect();
        assert_eq!(
            said,
            [
                ("scale<<<n / 256, 256>>>(a, b, n)", "`scale` is launched here, by `run`"),
                ("cudaMalloc(&a, n * 4)", "`a` is allocated here"),
                ("cudaMalloc((void **)&b, n * 4)", "`b` is allocated here"),
            ]
        );
        assert!(findings[1].related.is_empty());
    }
}
