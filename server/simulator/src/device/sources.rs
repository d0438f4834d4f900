//! Where the numbers of the table are from.
//!
//! A document is named once. Each row of the table says which of its numbers are from which document, and how: the table of the document
//! that has it, or the sum that leads to it. A test holds every row to it.

/// A document.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Its title, or what a program printed.
    pub title: &'static str,
    /// Where it can be read.
    pub address: &'static str,
}

/// Numbers of a row that are from one document.
#[derive(Debug, PartialEq, Eq)]
pub struct Origin {
    /// Names of fields.
    pub fields: &'static [&'static str],
    /// The document.
    pub source: &'static Source,
    /// The place in it, or how the numbers follow from what it says.
    pub how: &'static str,
}

/// Numbers from a document.
pub(super) const fn from(
    source: &'static Source,
    how: &'static str,
    fields: &'static [&'static str],
) -> Origin {
    Origin { fields, source, how }
}

macro_rules! sources {
    ($($name:ident: $title:literal, $address:literal;)*) => {
        $(pub(super) static $name: Source = Source { title: $title, address: $address };)*
        /// All documents, in the order of the documentation.
        pub static SOURCES: &[&Source] = &[$(&$name),*];
    };
}

sources! {
    CUDA_GPUS: "CUDA GPU Compute Capability", "https://developer.nvidia.com/cuda-gpus";
    CAPABILITIES: "CUDA C++ Programming Guide 13, \"Compute Capabilities\"", "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities";
    OCCUPANCY: "cuda_occupancy.h of CUDA 13.5", "https://developer.nvidia.com/cuda-toolkit";
    VOLTA_GUIDE: "Volta Tuning Guide", "https://docs.nvidia.com/cuda/volta-tuning-guide/";
    TURING_GUIDE: "Turing Tuning Guide", "https://docs.nvidia.com/cuda/turing-tuning-guide/";
    AMPERE_GUIDE: "NVIDIA Ampere GPU Architecture Tuning Guide", "https://docs.nvidia.com/cuda/ampere-tuning-guide/";
    ADA_GUIDE: "NVIDIA Ada GPU Architecture Tuning Guide", "https://docs.nvidia.com/cuda/ada-tuning-guide/";
    HOPPER_GUIDE: "NVIDIA Hopper Tuning Guide", "https://docs.nvidia.com/cuda/hopper-tuning-guide/";
    BLACKWELL_GUIDE: "NVIDIA Blackwell Tuning Guide", "https://docs.nvidia.com/cuda/blackwell-tuning-guide/";
    V100_PAPER: "NVIDIA Tesla V100 GPU Architecture, WP-08608-001", "https://images.nvidia.com/content/volta-architecture/pdf/volta-architecture-whitepaper.pdf";
    V100_QUERY: "deviceQuery on a V100-SXM2-16GB of Marconi-100", "https://github.com/kosl/ihipp-examples";
    T4_PAPER: "NVIDIA Turing GPU Architecture, WP-09183-001", "https://images.nvidia.com/aem-dam/en-zz/Solutions/design-visualization/technologies/turing-architecture/NVIDIA-Turing-Architecture-Whitepaper.pdf";
    A100_PAPER: "NVIDIA A100 Tensor Core GPU Architecture", "https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf";
    A100_SHEET: "NVIDIA A100 Tensor Core GPU, data sheet", "https://www.nvidia.com/en-us/data-center/a100/";
    A10_PAPER: "NVIDIA Ampere GA102 GPU Architecture", "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf";
    A10_SHEET: "NVIDIA A10 Tensor Core GPU, data sheet; Amazon EC2 G5 instances", "https://aws.amazon.com/ec2/instance-types/g5/";
    ADA_PAPER: "NVIDIA Ada GPU Architecture", "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf";
    L4_SHEET: "NVIDIA L4 Tensor Core GPU, data sheet", "https://www.nvidia.com/en-us/data-center/l4/";
    H100_PAPER: "NVIDIA H100 Tensor Core GPU Architecture", "https://resources.nvidia.com/en-us-tensor-core";
    H100_SHEET: "NVIDIA H100 Tensor Core GPU, data sheet", "https://www.nvidia.com/en-us/data-center/h100/";
    H200_QUERY: "cudaDeviceGetAttribute on an H200, driver 580.159", "https://docs.nvidia.com/cuda/cuda-runtime-api/";
    DEVICE_QUERY: "deviceQuery on H100 SXM, A100 SXM4 80 GB, L4, RTX 4090", "https://github.com/thamada/nvidia-smi";
    RTXPRO_SHEET: "NVIDIA RTX PRO 6000 Blackwell Workstation Edition, data sheet", "https://www.nvidia.com/content/dam/en-zz/Solutions/data-center/rtx-pro-6000-blackwell-workstation-edition/workstation-blackwell-rtx-pro-6000-workstation-edition-nvidia-us-3519208-web.pdf";
    RTXPRO_NEWS: "Reports of NVIDIA's announcement at GTC 2025: 188 multiprocessors, 128 MB of L2", "https://www.topcpu.net/es/news/nvidia-launches-96gb-rtx-5090-model-with-a-whopping-price-tag-of-10000";
    B200_SHEET: "NVIDIA HGX B200, data sheet", "https://www.nvidia.com/en-us/data-center/hgx/";
    B200_QUERY: "The driver and nvidia-smi on a B200", "https://github.com/pytorch/ao/pull/4002";
    L2_RULE: "CUDA C++ Programming Guide 13, \"L2 Set-Aside\"; on an H200, 5/8 of the L2", "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#l2-cache-set-aside-for-persisting-accesses";
    NOT_PUBLISHED: "No document found: a guess, that no estimate is made of", "";
}
