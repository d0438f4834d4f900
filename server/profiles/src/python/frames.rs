//! Names that tell where in the Python a thread was.

/// A range whose text begins so names the line that runs within it: `stitchcuda.line model.py:17 forward`. For programs that mark their
/// lines with `record_function`, for PyTorch's own stacks tell only where a function begins.
pub const LINE_MARK: &str = "stitchcuda.line ";

/// A range whose text begins so names the module that is called within it: `stitchcuda.module layers.0 Linear`.
pub const MODULE_MARK: &str = "stitchcuda.module ";

/// What begins the name of a module's call.
const MODULE: &str = "nn.Module: ";

/// A frame of Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The file, as the profiler calls it.
    pub file: &'a str,
    /// The line, from one.
    pub line: u32,
    /// The function.
    pub function: &'a str,
}

/// `train.py(12): step`. A path may have brackets too, so that the last pair counts.
pub fn frame(name: &str) -> Option<Frame<'_>> {
    let (place, function) = match name.rfind("): ") {
        Some(at) => (&name[..at], &name[at + 3..]),
        None => (name.strip_suffix(')')?, ""),
    };
    let (file, line) = place.rsplit_once('(')?;
    Some(Frame { file: file.trim(), line: line.trim().parse().ok()?, function: function.trim() })
}

/// The frames of a call stack, the innermost first.
pub fn stack(stack: &str) -> impl Iterator<Item = Frame<'_>> {
    stack.split(';').filter_map(frame)
}

/// The line that a range names.
pub fn mark(name: &str) -> Option<Frame<'_>> {
    let (place, function) = match name.strip_prefix(LINE_MARK)?.rsplit_once(' ') {
        Some((place, function)) if place.rsplit_once(':').is_some() => (place, function),
        _ => (name.strip_prefix(LINE_MARK)?, ""),
    };
    let (file, line) = place.rsplit_once(':')?;
    Some(Frame { file, line: line.parse().ok()?, function })
}

/// The module whose call this is the name of: `Linear_0`, or as it is marked, `layers.0 Linear`.
pub fn module(name: &str) -> Option<&str> {
    name.strip_prefix(MODULE).or_else(|| name.strip_prefix(MODULE_MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_names() {
        let parts = |frame: Option<Frame<'_>>| {
            frame.map(|frame| (frame.file.to_owned(), frame.line, frame.function.to_owned()))
        };
        let is = |file: &str, line, function: &str| Some((file.to_owned(), line, function.to_owned()));
        assert_eq!(parts(frame("a/train.py(12): step")), is("a/train.py", 12, "step"));
        assert_eq!(parts(frame("/w (copy)/a.py(3): <lambda>")), is("/w (copy)/a.py", 3, "<lambda>"));
        assert_eq!(parts(frame("a.py(7)")), is("a.py", 7, ""));
        assert_eq!(parts(frame("<built-in method mm of type object at 0x7f>")), None);
        assert_eq!(parts(frame("f(x): y")), None);
        assert_eq!(
            parts(mark("stitchcuda.line /w/my model.py:17 forward")),
            is("/w/my model.py", 17, "forward")
        );
        assert_eq!(parts(mark("stitchcuda.line a.py:17")), is("a.py", 17, ""));
        assert_eq!(parts(mark("stitchcuda.line a.py")), None);
        assert_eq!(parts(mark("step")), None);
        assert_eq!(module("nn.Module: Linear_0"), Some("Linear_0"));
        let lines: Vec<u32> =
            stack("a.py(1): f;torch/x.py(2): g;b.py(3): h").map(|frame| frame.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }
}
