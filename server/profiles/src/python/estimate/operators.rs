//! Operators of PyTorch, and how what each must at least move and compute follows from its arguments: a table.
//!
//! Source of the order of arguments: `aten/src/ATen/native/native_functions.yaml` of PyTorch 2.6, and of 1.13 where an operator is older.

/// How an operator's arguments make what it must move and compute. Numbers are places of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Reads so many tensors, of which a number may stand for some; writes one of their broadcast shape, or over the first where its name ends with an
    /// underscore. One more is where it writes to (`out=`).
    Elementwise {
        /// How many.
        inputs: usize,
    },
    /// The same; writes truth values.
    Mask {
        /// How many.
        inputs: usize,
    },
    /// Reads all tensors; writes one like the first.
    Alike,
    /// Reads all tensors; writes one like the first, and a mask of it.
    AlikeAndMask,
    /// Reads all tensors; what it writes is less, and not counted.
    Reduce,
    /// Reads these arguments; what it reads and writes of others depends on their values, and is not counted.
    Reads(&'static [usize]),
    /// Reads the second, writes the first.
    Copy,
    /// Writes the first.
    Fill,
    /// Reads a list, writes as much.
    Join,
    /// Every tensor is read or written.
    Each,
    /// Reads as many elements of the first as there are in the result: along an axis as many as there are indices.
    Select {
        /// The axis.
        axis: usize,
        /// The indices.
        index: usize,
    },
    /// Reads as many elements of the first as there are indices.
    Gather { index: usize },
    /// Reads the first; writes one whose last sizes are this argument's numbers.
    Resize { sizes: usize },
    /// Reads the first; slides a window over it.
    Pool { window: usize, stride: usize, padding: usize, dilation: Option<usize>, indices: bool },
    /// A product of the matrices, or batches of them, at this place and the next.
    Product { first: usize },
    /// A product with a transposed matrix: `x @ w.T`.
    Linear,
    /// A convolution.
    Convolution { stride: usize, padding: usize, dilation: usize, transposed: Option<usize> },
    /// Its backward pass: the gradient is the first argument, and the mask says which gradients are wanted.
    ConvolutionBackward { transposed: usize, mask: usize },
    /// Attention: queries, keys and values are at `q` and behind it; `length` is the axis of the sequence.
    Attention { q: usize, length: usize, causal: usize, backward: bool },
    /// Layers of recurrent cells over a sequence.
    Recurrent,
}

/// Operators, by names without `aten::` and without a last underscore.
const TABLE: &[(Way, &[&str])] = &[
    (
        Way::Elementwise { inputs: 1 },
        &[
            "abs",
            "acos",
            "asin",
            "atan",
            "bitwise_not",
            "ceil",
            "celu",
            "clamp",
            "clamp_max",
            "clamp_min",
            "cos",
            "cosh",
            "elu",
            "erf",
            "erfc",
            "erfinv",
            "exp",
            "exp2",
            "expm1",
            "floor",
            "frac",
            "gelu",
            "hardshrink",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "leaky_relu",
            "log",
            "log10",
            "log1p",
            "log2",
            "log_sigmoid_forward",
            "logit",
            "mish",
            "nan_to_num",
            "neg",
            "reciprocal",
            "relu",
            "relu6",
            "round",
            "rsqrt",
            "sgn",
            "sigmoid",
            "sign",
            "silu",
            "sin",
            "sinh",
            "softplus",
            "softshrink",
            "sqrt",
            "square",
            "tan",
            "tanh",
            "threshold",
            "trunc",
            "_fused_dropout",
        ],
    ),
    (
        Way::Elementwise { inputs: 2 },
        &[
            "add",
            "atan2",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "copysign",
            "div",
            "elu_backward",
            "floor_divide",
            "fmod",
            "gelu_backward",
            "hardsigmoid_backward",
            "hardswish_backward",
            "hardtanh_backward",
            "huber_loss",
            "leaky_relu_backward",
            "log_sigmoid_backward",
            "maximum",
            "minimum",
            "mish_backward",
            "mul",
            "native_dropout_backward",
            "pow",
            "prelu",
            "_prelu_kernel",
            "remainder",
            "rsub",
            "sigmoid_backward",
            "silu_backward",
            "smooth_l1_loss",
            "softplus_backward",
            "sub",
            "tanh_backward",
            "threshold_backward",
            "xlogy",
            "_softmax_backward_data",
            "_log_softmax_backward_data",
        ],
    ),
    (Way::Elementwise { inputs: 3 }, &["addcdiv", "addcmul", "lerp", "masked_fill", "where"]),
    (
        Way::Elementwise { inputs: usize::MAX },
        &[
            "_foreach_add",
            "_foreach_addcdiv",
            "_foreach_addcmul",
            "_foreach_div",
            "_foreach_lerp",
            "_foreach_mul",
            "_foreach_neg",
            "_foreach_sqrt",
            "_foreach_sub",
            "_fused_adam",
            "_fused_adamw",
            "_fused_sgd",
        ],
    ),
    (Way::Mask { inputs: 1 }, &["isfinite", "isinf", "isnan", "logical_not", "signbit"]),
    (
        Way::Mask { inputs: 2 },
        &["eq", "ge", "gt", "le", "logical_and", "logical_or", "logical_xor", "lt", "ne"],
    ),
    (
        Way::Alike,
        &[
            "_log_softmax",
            "_masked_softmax",
            "_softmax",
            "_weight_norm_interface",
            "cudnn_batch_norm",
            "cumprod",
            "cumsum",
            "flip",
            "logcumsumexp",
            "native_batch_norm",
            "native_batch_norm_backward",
            "native_group_norm",
            "native_group_norm_backward",
            "native_layer_norm",
            "native_layer_norm_backward",
            "cudnn_batch_norm_backward",
            "_fused_rms_norm",
            "roll",
            "tril",
            "triu",
            "clone",
            "_to_copy",
            "batch_norm_elemt",
        ],
    ),
    (Way::AlikeAndMask, &["native_dropout"]),
    (
        Way::Reduce,
        &[
            "all",
            "amax",
            "amin",
            "any",
            "argmax",
            "argmin",
            "batch_norm_stats",
            "count_nonzero",
            "linalg_vector_norm",
            "logsumexp",
            "max",
            "mean",
            "min",
            "mse_loss",
            "nansum",
            "norm",
            "prod",
            "std",
            "std_mean",
            "sum",
            "var",
            "var_mean",
            "_thnn_fused_gru_cell",
            "_thnn_fused_lstm_cell",
            "batch_norm_backward_reduce",
        ],
    ),
    (Way::Reads(&[2, 3]), &["scatter", "scatter_add", "scatter_reduce"]),
    (Way::Reads(&[2]), &["index_add", "index_copy"]),
    (Way::Reads(&[0, 1]), &["embedding_dense_backward"]),
    (Way::Copy, &["copy"]),
    (Way::Fill, &["bernoulli", "exponential", "fill", "normal", "random", "uniform", "zero"]),
    (Way::Join, &["cat", "stack"]),
    (Way::Select { axis: 1, index: 2 }, &["index_select"]),
    (Way::Select { axis: usize::MAX, index: 1 }, &["embedding"]),
    (Way::Gather { index: 2 }, &["gather"]),
    (
        Way::Resize { sizes: 1 },
        &[
            "_adaptive_avg_pool2d",
            "_adaptive_avg_pool3d",
            "adaptive_max_pool2d",
            "adaptive_max_pool3d",
            "upsample_bicubic2d",
            "upsample_bilinear2d",
            "upsample_linear1d",
            "upsample_nearest1d",
            "upsample_nearest2d",
            "upsample_nearest3d",
            "upsample_trilinear3d",
        ],
    ),
    (
        Way::Pool { window: 1, stride: 2, padding: 3, dilation: Some(4), indices: true },
        &["max_pool2d_with_indices", "max_pool3d_with_indices"],
    ),
    (
        Way::Pool { window: 1, stride: 2, padding: 3, dilation: None, indices: false },
        &["avg_pool2d", "avg_pool3d"],
    ),
    (Way::Product { first: 0 }, &["_int_mm", "_scaled_mm", "bmm", "mm", "mv", "dot"]),
    (Way::Product { first: 1 }, &["_addmm_activation", "addmm", "addmv", "baddbmm"]),
    (Way::Linear, &["linear"]),
    (Way::Convolution { padding: 2, stride: 3, dilation: 4, transposed: None }, &["cudnn_convolution"]),
    (
        Way::Convolution { stride: 3, padding: 4, dilation: 5, transposed: Some(6) },
        &["_convolution", "convolution"],
    ),
    (Way::Convolution { stride: 3, padding: 4, dilation: 5, transposed: None }, &["cudnn_convolution_relu"]),
    (
        Way::Convolution { stride: 4, padding: 5, dilation: 6, transposed: None },
        &["_conv_depthwise2d", "conv_depthwise3d"],
    ),
    (
        Way::Convolution { stride: 4, padding: 5, dilation: usize::MAX, transposed: None },
        &["_slow_conv2d_forward", "slow_conv3d_forward"],
    ),
    // Every element of the input meets every element of its group's filters, wherever the results go.
    (
        Way::Convolution {
            stride: usize::MAX,
            padding: usize::MAX,
            dilation: usize::MAX,
            transposed: Some(usize::MAX),
        },
        &["cudnn_convolution_transpose"],
    ),
    (Way::ConvolutionBackward { transposed: 7, mask: 10 }, &["convolution_backward"]),
    (Way::Attention { q: 0, length: 1, causal: 8, backward: false }, &["_flash_attention_forward"]),
    (Way::Attention { q: 0, length: 1, causal: 9, backward: false }, &["_efficient_attention_forward"]),
    (
        Way::Attention { q: 0, length: 2, causal: 4, backward: false },
        &["_scaled_dot_product_flash_attention"],
    ),
    (
        Way::Attention { q: 0, length: 2, causal: 6, backward: false },
        &["_scaled_dot_product_cudnn_attention", "_scaled_dot_product_efficient_attention"],
    ),
    (Way::Attention { q: 1, length: 1, causal: 11, backward: true }, &["_flash_attention_backward"]),
    (
        Way::Attention { q: 1, length: 1, causal: usize::MAX, backward: true },
        &["_efficient_attention_backward"],
    ),
    (Way::Recurrent, &["_cudnn_rnn"]),
];

/// Beginnings of names that Inductor gives kernels of its own, whose tensors are all read or written. Its templates of products are not among them.
const INDUCTOR: [&str; 3] = ["triton_poi_", "triton_red_", "triton_per_"];

/// How an operator's arguments make what it must move and compute. `None` for one that is not in the table.
pub(super) fn way(name: &str) -> Option<Way> {
    if INDUCTOR.iter().any(|start| name.starts_with(start)) {
        return Some(Way::Each);
    }
    let plain = name.strip_prefix("aten::").or_else(|| name.strip_prefix("prims::"))?;
    let known = |plain: &str| TABLE.iter().find(|(_, names)| names.contains(&plain)).map(|(way, _)| *way);
    known(plain).or_else(|| known(plain.strip_suffix('_')?))
}
