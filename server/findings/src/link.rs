//! Where a code's subject is documented by those who made the hardware, the compiler or the library: for editors and code hosts that show a link.

use crate::{Code, Producer};

const BEST_PRACTICES: &str = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html";
const SANITIZER: &str = "https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html";
const COMPUTE: &str = "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html";
const SYSTEMS: &str = "https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html";
const NVCC: &str = "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html";

/// Codes whose subject has a section of its own. Source: the tables of contents of NVIDIA's guides and PyTorch's tuning guide.
const SECTIONS: &[(Code, &str)] = &[
    (
        Code::NCU_BANK_CONFLICT,
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#shared-memory-and-memory-banks",
    ),
    (
        Code::NCU_DIVERGENCE,
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#branching-and-divergence",
    ),
    (
        Code::NCU_LOW_OCCUPANCY,
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#occupancy",
    ),
    (
        Code::NCU_STALL,
        "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#warp-scheduler-states",
    ),
    (
        Code::NCU_UNCOALESCED_ACCESS,
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#coalesced-access-to-global-memory",
    ),
    (
        Code::NSYS_PAGEABLE_COPY,
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#pinned-memory",
    ),
    (Code::ITEM_IN_LOOP, "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"),
    (
        Code::SHARED_BANK_CONFLICT,
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#shared-memory-and-memory-banks",
    ),
    (
        Code::UNCOALESCED_ACCESS,
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#coalesced-access-to-global-memory",
    ),
];

impl Code {
    /// The documentation of its subject; `None` for what only this program knows, whose page says it all.
    pub fn link(self) -> Option<&'static str> {
        let section = SECTIONS.iter().find(|(code, _)| *code == self).map(|(_, link)| *link);
        let of_producer = match self.info().producer {
            Producer::Static | Producer::Rewrite => Some(BEST_PRACTICES),
            Producer::Nvcc | Producer::Ptxas => Some(NVCC),
            Producer::Ncu => Some(COMPUTE),
            Producer::Nsys => Some(SYSTEMS),
            Producer::Sanitizer => Some(SANITIZER),
            Producer::Clang | Producer::Sim | Producer::Verify => None,
        };
        section.or(of_producer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CODES;

    #[test]
    fn links_are_addresses_and_sections_stand_once() {
        for info in CODES {
            assert!(info.code.link().is_none_or(|link| link.starts_with("https://")), "{}", info.code);
        }
        let codes: Vec<Code> = SECTIONS.iter().map(|(code, _)| *code).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
        assert_eq!(Code::VERIFY_TIMEOUT.link(), None);
    }
}
