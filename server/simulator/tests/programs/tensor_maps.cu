// A matrix goes through shared memory by tensor maps that the host asks the driver for, transposed box by box on the way; a cluster of two
// blocks reads the same box. What is printed was derived by hand.
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

constexpr int Rows = 48, Columns = 64, Side = 16;

__global__ void __cluster_dims__(2, 1, 1) turn(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(128) int box[Side][Side], turned[Side][Side];
  __shared__ unsigned long long bar;
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar), rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  int x = blockIdx.x / 2 * Side, y = blockIdx.y * Side;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(b) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"((int)sizeof box) : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 0 && rank == 0)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
        ::"r"((unsigned)__cvta_generic_to_shared(box)), "l"(&from), "r"(b), "r"(x), "r"(y), "h"((unsigned short)3) : "memory");
  asm volatile("{\n\t.reg .pred p;\n\tW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n\t@!p bra W;\n\t}" ::"r"(b) : "memory");
  // Each block turns half of the rows; the other half stays zero there, and both halves are added.
  for (int i = threadIdx.x; i < Side * Side; i += blockDim.x)
    turned[i % Side][i / Side] = i / (Side * Side / 2) == (int)rank ? box[i / Side][i % Side] : 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];"
        ::"l"(&to), "r"((unsigned)__cvta_generic_to_shared(turned)), "r"(y), "r"(x) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}

int main() {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  auto encode = (Encode)function;
  int *a, *b, host[Columns][Rows];
  cudaMallocManaged(&a, Rows * Columns * sizeof(int));
  cudaMalloc(&b, Rows * Columns * sizeof(int));
  cudaMemset(b, 0, Rows * Columns * sizeof(int));
  for (int i = 0; i < Rows * Columns; ++i) a[i] = i;
  CUtensorMap from, to;
  cuuint32_t box[] = {Side, Side}, steps[] = {1, 1};
  auto describe = [&](CUtensorMap *map, int *start, cuuint64_t width, cuuint64_t height) {
    cuuint64_t lengths[] = {width, height}, strides[] = {width * sizeof(int)};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, start, lengths, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  int first = describe(&from, a, Columns, Rows), second = describe(&to, b, Rows, Columns);
  turn<<<dim3(Columns / Side * 2, Rows / Side), 64>>>(from, to);
  cudaError_t error = cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < Columns; ++i)
    for (int j = 0; j < Rows; ++j) wrong += host[i][j] != j * Columns + i;
  printf("found %d, encoded %d %d, %s, %d wrong\n", found, first, second, cudaGetErrorName(error), wrong);
}
