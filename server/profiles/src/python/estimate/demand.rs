//! What an operator must at least move and compute, by what it is called with.
//!
//! Bytes are those of its inputs and its output, each once, as if caches were perfect: no kernel that does the whole of it moves fewer from and to
//! memory, unless they are in a cache already. What is not known of an output counts nothing. Operations are those of the definition, a fused
//! multiply-add being two; sources: "Convolution Arithmetic" in PyTorch's documentation of `Conv2d`, and for attention Dao et al.,
//! "FlashAttention-2", arXiv 2307.08691, section 4.1: 4 * length^2 * width a head forwards, half of it under a causal mask, 2.5 times that backwards.

use super::operators::{Way, way};
use super::shapes::{Argument, Arguments, Element, Kind, Tensor, product};

/// What must be moved and computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Bytes of tensors whose type is known.
    pub bytes: u64,
    /// Elements of tensors whose type is not: those in lists.
    pub untyped: u64,
    /// Operations; `None` for those that only move, of which what they compute is not counted.
    pub flops: Option<u64>,
    /// The type of the operands of those.
    pub operands: Option<Element>,
}

/// What an operator must move and compute, or why that is not known, in words that follow "…: ".
pub fn demand(name: &str, arguments: Option<&Arguments>) -> Result<Demand, String> {
    let Some(way) = way(name) else {
        return Err(format!("what `{name}` must move is not in the table"));
    };
    let Some(arguments) = arguments.filter(|arguments| !arguments.all.is_empty()) else {
        return Err(format!("the shapes of `{name}` were not recorded (`record_shapes=True` does)"));
    };
    if arguments.has_unknown_list() {
        return Err(format!("the trace has no sizes of the list of tensors that `{name}` takes"));
    }
    let demand = by(way, name.ends_with('_'), arguments);
    demand.ok_or_else(|| format!("the arguments of `{name}` were not recorded whole"))
}

fn by(way: Way, in_place: bool, arguments: &Arguments) -> Option<Demand> {
    let first = || arguments.tensors().next();
    let mut demand = Demand::default();
    match way {
        Way::Elementwise { inputs } | Way::Mask { inputs } => {
            demand.reads(arguments.tensors().take(inputs));
            if in_place {
                demand.writes_over(arguments, 0)?;
            } else if matches!(way, Way::Mask { .. }) {
                demand.bytes = demand.bytes.saturating_add(product(&broadcast(arguments)?));
            } else {
                demand.writes_broadcast(arguments)?;
            }
        }
        Way::Alike | Way::AlikeAndMask => {
            demand.reads(arguments.tensors());
            demand.writes(first()?, first()?.count());
            let mask = if way == Way::AlikeAndMask { first()?.count() } else { 0 };
            demand.bytes = demand.bytes.saturating_add(mask);
        }
        Way::Reduce => demand.reads(first().map(|_| arguments.tensors())?),
        Way::Reads(places) => demand.reads(places.iter().filter_map(|at| arguments.tensor(*at))),
        Way::Copy => {
            demand.writes(arguments.tensor(0)?, arguments.tensor(0)?.count());
            demand.reads([arguments.tensor(1)?]);
        }
        Way::Fill => demand.writes(arguments.tensor(0)?, arguments.tensor(0)?.count()),
        Way::Join => {
            let Some(Argument::List(list)) = arguments.all.first() else { return None };
            demand.reads(list);
            list.iter().for_each(|tensor| demand.writes(tensor, tensor.count()));
        }
        Way::Each => demand.reads(first().map(|_| arguments.tensors())?),
        Way::Select { axis, index } => demand.selects(arguments, axis, index)?,
        Way::Gather { index } => {
            let (from, index) = (arguments.tensor(0)?, arguments.tensor(index)?);
            demand.writes(from, index.count().saturating_mul(2));
            demand.reads([index]);
        }
        Way::Resize { sizes } => {
            let (from, sizes) = (arguments.tensor(0)?, arguments.numbers(sizes)?);
            let outer = from.sizes.len().checked_sub(sizes.len())?;
            let sizes: Option<Vec<u64>> = sizes.into_iter().map(|size| u64::try_from(size).ok()).collect();
            demand.reads([from]);
            demand.writes(from, product(&from.sizes[..outer]).saturating_mul(product(&sizes?)));
        }
        Way::Pool { .. } => demand.pools(way, arguments)?,
        Way::Product { .. } | Way::Linear => demand.multiplies(way, arguments)?,
        Way::Convolution { .. } => demand.convolves(way, arguments)?,
        Way::ConvolutionBackward { transposed, mask } => {
            demand.convolves_back(transposed, mask, arguments)?
        }
        Way::Attention { .. } => demand.attends(way, arguments)?,
        Way::Recurrent => demand.recurs(arguments)?,
    }
    Some(demand)
}

impl Demand {
    fn add(&mut self, element: Option<Element>, count: u64) {
        match element {
            Some(element) => self.bytes = self.bytes.saturating_add(count.saturating_mul(element.bytes)),
            None => self.untyped = self.untyped.saturating_add(count),
        }
    }

    fn reads<'t>(&mut self, tensors: impl IntoIterator<Item = &'t Tensor>) {
        tensors.into_iter().for_each(|tensor| self.add(tensor.element, tensor.stored()));
    }

    /// Writes so many elements of a tensor's type.
    fn writes(&mut self, like: &Tensor, count: u64) {
        self.add(like.element, count);
    }

    /// Writes over the tensors of an argument.
    fn writes_over(&mut self, arguments: &Arguments, at: usize) -> Option<()> {
        match arguments.all.get(at)? {
            Argument::Tensor(tensor) => self.writes(tensor, tensor.count()),
            Argument::List(tensors) => tensors.iter().for_each(|tensor| self.writes(tensor, tensor.count())),
            Argument::UnknownList | Argument::Other => return None,
        }
        Some(())
    }

    /// Writes what elementwise operators do: the shape of all together, in the type that is the widest of the most general kind.
    fn writes_broadcast(&mut self, arguments: &Arguments) -> Option<()> {
        if matches!(arguments.all.first(), Some(Argument::List(_))) {
            return self.writes_over(arguments, 0);
        }
        let count = product(&broadcast(arguments)?);
        // A tensor without dimensions does not change the type of one that has some.
        let typed = |with_sizes: bool| {
            let tensors = arguments.tensors().filter(|tensor| !with_sizes || !tensor.sizes.is_empty());
            tensors.filter_map(|tensor| tensor.element).max()
        };
        self.add(typed(true).or_else(|| typed(false)), count);
        Some(())
    }

    fn selects(&mut self, arguments: &Arguments, axis: usize, index: usize) -> Option<()> {
        let (from, index) = (arguments.tensor(0)?, arguments.tensor(index)?);
        let dimensions = i64::try_from(from.sizes.len()).ok()?;
        let axis = if axis == usize::MAX { 0 } else { *arguments.numbers(axis)?.first()? };
        let axis = usize::try_from(if axis < 0 { axis + dimensions } else { axis }).ok()?;
        let others = from.sizes.iter().enumerate().filter(|(at, _)| *at != axis);
        let others = others.fold(1u64, |all, (_, size)| all.saturating_mul(*size));
        self.writes(from, others.saturating_mul(index.count()).saturating_mul(2));
        self.reads([index]);
        Some(())
    }

    fn pools(&mut self, way: Way, arguments: &Arguments) -> Option<()> {
        let Way::Pool { window, stride, padding, dilation, indices } = way else { return None };
        let from = arguments.tensor(0)?;
        let window = arguments.numbers(window)?;
        let outer = from.sizes.len().checked_sub(window.len())?;
        let stride =
            arguments.numbers(stride).filter(|stride| !stride.is_empty()).unwrap_or_else(|| window.clone());
        let padding = arguments.numbers(padding).unwrap_or_default();
        let dilation = dilation.and_then(|at| arguments.numbers(at)).unwrap_or_default();
        let slid = slid(&from.sizes[outer..], &window, &stride, &padding, &dilation)?;
        let count = product(&from.sizes[..outer]).saturating_mul(product(&slid));
        self.reads([from]);
        self.writes(from, count);
        // PyTorch's indices have eight bytes.
        self.bytes = self.bytes.saturating_add(if indices { count.saturating_mul(8) } else { 0 });
        Some(())
    }

    fn multiplies(&mut self, way: Way, arguments: &Arguments) -> Option<()> {
        let first = if let Way::Product { first } = way { first } else { 0 };
        let (a, b) = (arguments.tensor(first)?, arguments.tensor(first + 1)?);
        let (inner, columns) = match (way, b.sizes.as_slice()) {
            (Way::Linear, [columns, inner]) => (*inner, *columns),
            (_, [.., inner, columns]) => (*inner, *columns),
            (_, [inner]) => (*inner, 1),
            _ => return None,
        };
        if a.sizes.last() != Some(&inner) {
            return None;
        }
        let rows = a.count().checked_div(inner.max(1))?;
        let results = rows.saturating_mul(columns);
        // The addend, or the bias; and not where the result goes, which may be told too.
        let addend = if way == Way::Linear { 2 } else { 0 };
        let addend = (first > 0 || way == Way::Linear).then(|| arguments.tensor(addend)).flatten();
        self.reads([a, b].into_iter().chain(addend));
        self.writes(a, results);
        self.computes(results.saturating_mul(inner).saturating_mul(2), a);
        Some(())
    }

    fn convolves(&mut self, way: Way, arguments: &Arguments) -> Option<()> {
        let Way::Convolution { stride, padding, dilation, transposed } = way else { return None };
        let (input, weight) = (arguments.tensor(0)?, arguments.tensor(1)?);
        let (filters, kernel) = (*weight.sizes.first()?, weight.sizes.get(2..)?);
        // Of the others only the bias, which has one dimension.
        self.reads(
            [input, weight]
                .into_iter()
                .chain(arguments.tensors().skip(2).filter(|bias| bias.sizes.len() == 1)),
        );
        let is_transposed = match transposed {
            None => false,
            Some(usize::MAX) => true,
            Some(at) => arguments.truth(at)?,
        };
        if is_transposed {
            // Each element of the input is multiplied with a filter of each channel of the output; that is at least as large as without padding.
            let reach = weight.count().checked_div(filters.max(1))?;
            self.computes(input.count().saturating_mul(reach).saturating_mul(2), input);
            return Some(());
        }
        let outer = input.sizes.len().checked_sub(kernel.len())?;
        let window: Vec<i64> = kernel.iter().map(|size| i64::try_from(*size).ok()).collect::<Option<_>>()?;
        let dilation = if dilation == usize::MAX { Vec::new() } else { arguments.numbers(dilation)? };
        let (stride, padding) = (arguments.numbers(stride)?, arguments.numbers(padding)?);
        let slid = slid(input.sizes.get(outer..)?, &window, &stride, &padding, &dilation)?;
        let batch = if outer == 2 { *input.sizes.first()? } else { 1 };
        let results = batch.saturating_mul(filters).saturating_mul(product(&slid));
        self.writes(input, results);
        let each = weight.count().checked_div(filters.max(1))?;
        self.computes(results.saturating_mul(each).saturating_mul(2), input);
        Some(())
    }

    fn convolves_back(&mut self, transposed: usize, mask: usize, arguments: &Arguments) -> Option<()> {
        let (gradient, input, weight) = (arguments.tensor(0)?, arguments.tensor(1)?, arguments.tensor(2)?);
        // Which of input, weight and bias get a gradient.
        let wanted = arguments.values.get(mask)?;
        let wanted: Vec<bool> = wanted
            .trim_matches(['[', ']'])
            .split(',')
            .map(|word| matches!(word.trim(), "True" | "1"))
            .collect();
        self.reads(arguments.tensors());
        let (of_input, of_weight) = (*wanted.first()?, *wanted.get(1)?);
        if of_input {
            self.writes(input, input.count());
        }
        if of_weight {
            self.writes(weight, weight.count());
        }
        // As many products as forwards, for each of the two. Forwards, each element of the result takes a filter's products, or transposed each of the input.
        let slid = if arguments.truth(transposed)? { input } else { gradient };
        let each = weight.count().checked_div((*weight.sizes.first()?).max(1))?;
        let forward = slid.count().saturating_mul(each).saturating_mul(2);
        self.computes(forward.saturating_mul(u64::from(of_input) + u64::from(of_weight)), input);
        Some(())
    }

    fn attends(&mut self, way: Way, arguments: &Arguments) -> Option<()> {
        let Way::Attention { q, length, causal, backward } = way else { return None };
        let (queries, keys, values) =
            (arguments.tensor(q)?, arguments.tensor(q + 1)?, arguments.tensor(q + 2)?);
        let (keyed, width) = (*keys.sizes.get(length)?, (*values.sizes.last()?));
        let results = queries.count().checked_div((*queries.sizes.last()?).max(1))?.saturating_mul(width);
        self.reads(arguments.tensors());
        // Forwards the results, backwards a gradient of each.
        match backward {
            false => self.writes(queries, results),
            true => {
                [queries, keys, values].into_iter().for_each(|tensor| self.writes(tensor, tensor.count()))
            }
        }
        // The products with the keys, and those with the values. Of sequences packed into one, the lengths are not known: a length for each is the least.
        if queries.sizes.len() != 4 {
            return None;
        }
        let products = queries.count().saturating_add(results).saturating_mul(keyed).saturating_mul(2);
        // Where it is not known whether half of it is masked, it is.
        let masked = if arguments.truth(causal).unwrap_or(true) { 2 } else { 1 };
        let flops = if backward { products.saturating_mul(5) / 2 } else { products };
        self.computes(flops / masked, queries);
        Some(())
    }

    fn recurs(&mut self, arguments: &Arguments) -> Option<()> {
        let input = arguments.tensor(0)?;
        let Some(Argument::List(weights)) = arguments.all.get(1) else { return None };
        let steps = input.count().checked_div((*input.sizes.last()?).max(1))?;
        let matrices =
            weights.iter().filter(|weight| weight.sizes.len() == 2).map(Tensor::count).sum::<u64>();
        // Weights have the type of the input.
        let weights = weights.iter().map(Tensor::count).sum::<u64>();
        self.add(input.element, input.stored().saturating_add(weights));
        self.computes(steps.saturating_mul(matrices).saturating_mul(2), input);
        Some(())
    }

    fn computes(&mut self, flops: u64, operand: &Tensor) {
        // A product of two complex numbers has four of real ones.
        let times = if operand.element.is_some_and(|element| element.kind == Kind::Complex) { 4 } else { 1 };
        (self.flops, self.operands) = (Some(flops.saturating_mul(times)), operand.element);
    }
}

/// The shape that all tensors together have. `None` where they have none.
fn broadcast(arguments: &Arguments) -> Option<Vec<u64>> {
    let mut shape: Option<Vec<u64>> = None;
    for tensor in arguments.tensors() {
        let known = shape.get_or_insert_default();
        let missing = tensor.sizes.len().saturating_sub(known.len());
        known.splice(0..0, std::iter::repeat_n(1, missing));
        for (size, other) in known.iter_mut().rev().zip(tensor.sizes.iter().rev()) {
            // Beside 1 the other counts, also where it is 0.
            *size = if *size == 1 { *other } else { *size };
        }
    }
    shape
}

/// How often a window fits along each axis: floor((size + 2 padding - dilation (window - 1) - 1) / stride) + 1.
fn slid(
    sizes: &[u64],
    window: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
) -> Option<Vec<u64>> {
    // One number stands for all axes.
    let at = |list: &[i64], axis: usize, none: i64| list.get(axis).or(list.first()).copied().unwrap_or(none);
    let one = |(axis, size): (usize, &u64)| {
        let reach = at(dilation, axis, 1).checked_mul(at(window, axis, 1).checked_sub(1)?)?;
        let size = i64::try_from(*size).ok()?.checked_add(at(padding, axis, 0).checked_mul(2)?)?;
        let room = size.checked_sub(reach)?.checked_sub(1)?;
        let stride = at(stride, axis, 1);
        if stride <= 0 || room < 0 {
            return None;
        }
        u64::try_from(room / stride + 1).ok()
    };
    sizes.iter().enumerate().map(one).collect()
}
