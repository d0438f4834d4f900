// Pixels of images go to shared memory and back by tensor maps of cuTensorMapEncodeIm2col, beside a host that moves the filter's base a step at a time. An H200 prints the same.
#include <cstdio>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

constexpr int Most = 4096;

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

#define LOAD(rank, coordinates, offsets, ...)                                                                                                  \
  asm volatile("cp.async.bulk.tensor." rank ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, " coordinates "], [%2], " \
               offsets ";" ::"r"(at(box)), "l"(&map), "r"(at(&bar)), __VA_ARGS__ : "memory")

struct Where { int c, w, h, d, n; unsigned short ow, oh, od; };

__global__ void load(const __grid_constant__ CUtensorMap map, int rank, int bytes, Where p, int *out) {
  __shared__ alignas(1024) int box[Most];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(at(&bar)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&bar)), "r"(bytes) : "memory");
    if (rank == 3) LOAD("3d", "{%3, %4, %5}", "{%6}", "r"(p.c), "r"(p.w), "r"(p.n), "h"(p.ow));
    if (rank == 4) LOAD("4d", "{%3, %4, %5, %6}", "{%7, %8}", "r"(p.c), "r"(p.w), "r"(p.h), "r"(p.n), "h"(p.ow), "h"(p.oh));
    if (rank == 5)
      LOAD("5d", "{%3, %4, %5, %6, %7}", "{%8, %9, %10}", "r"(p.c), "r"(p.w), "r"(p.h), "r"(p.d), "r"(p.n), "h"(p.ow), "h"(p.oh), "h"(p.od));
  }
  __syncthreads();
  asm volatile("{\n\t.reg .pred p;\n\tW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n\t@!p bra W;\n\t}" ::"r"(at(&bar)) : "memory");
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[i] = box[i];
}

// Shared memory holds 1, 2, 3, …: it replaces pixels, or is added to them.
__global__ void back(const __grid_constant__ CUtensorMap map, bool adds, int count, int c, int w, int h, int n) {
  __shared__ alignas(1024) int box[Most];
  for (int i = threadIdx.x; i < count; i += blockDim.x) box[i] = i + 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x > 0) return;
  if (adds)
    asm volatile("cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
                 "r"(at(box)), "r"(c), "r"(w), "r"(h), "r"(n) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map), "r"(at(box)),
                 "r"(c), "r"(w), "r"(h), "r"(n) : "memory");
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
}

using Encode = decltype(&cuTensorMapEncodeIm2col);
static Encode encode;

struct Images {
  int rank, size[5];               // channels, width, (height, (depth,)) images
  int lower[3], upper[3], step[3];  // of the base
  int channels, pixels, swizzle;
  int errors = 0;

  CUtensorMap map(void *start) {
    cuuint64_t lengths[5], strides[4], stride = 4;
    cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    for (int i = 0; i < rank; ++i) {
      lengths[i] = size[i], stride *= size[i];
      if (i < rank - 1) strides[i] = stride;
      if (i > 0 && i < rank - 1) steps[i] = step[i - 1];
    }
    CUtensorMap map;
    errors += encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, rank, start, lengths, strides, lower, upper, channels, pixels, steps,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
  }

  // The element's number for each place in shared memory, or -1 beyond the tensor.
  std::vector<int> cells(const int *base, const int *offset) {
    std::vector<int> cells(channels * pixels);
    int position[5];
    memcpy(position, base, sizeof position);
    for (int pixel = 0; pixel < pixels; ++pixel) {
      for (int c = 0; c < channels; ++c) {
        long index = 0;
        bool within = true;
        for (int i = rank - 1; i >= 0; --i) {
          int place = position[i] + (i == 0 ? c : i < rank - 1 ? offset[i - 1] : 0);
          within &= place >= 0 && place < size[i];
          index = index * size[i] + place;
        }
        int byte = (pixel * channels + c) * 4;
        if (swizzle) byte ^= (byte >> 7 & ((1 << swizzle) - 1)) << 4;
        cells[byte / 4] = within ? (int)index : -1;
      }
      for (int i = 1; i < rank; ++i) {
        if (i == rank - 1) {
          ++position[i];
          break;
        }
        position[i] += step[i - 1];
        if (position[i] <= size[i] - 1 + upper[i - 1]) break;
        position[i] = lower[i - 1];
      }
    }
    return cells;
  }
};

int main() {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &function, 12000, cudaEnableDefault, &found);
  encode = (Encode)function;
  constexpr int Count = 40000;
  int *tensor, *out, wrong = 0, compared = 0;
  cudaMallocManaged(&tensor, Count * sizeof(int));
  cudaMallocManaged(&out, Most * sizeof(int));
  for (int i = 0; i < Count; ++i) tensor[i] = i * 7 + 1;
  Images all[] = {
      {3, {16, 20, 5}, {-2}, {-1}, {1}, 8, 40, 0},
      {4, {16, 9, 14, 6}, {-1, -1}, {-1, -1}, {1, 1}, 8, 64, 1},
      {4, {16, 9, 14, 6}, {0, 0}, {-2, -2}, {1, 1}, 4, 128, 0},
      {4, {32, 8, 14, 5}, {-1, -1}, {-1, -1}, {2, 3}, 16, 32, 2},
      {4, {32, 6, 5, 3}, {-2, -1}, {1, 2}, {1, 1}, 32, 100, 3},
      {5, {16, 6, 5, 4, 3}, {-1, 0, -1}, {0, -1, 0}, {1, 2, 1}, 16, 64, 0},
  };
  const int bases[][5] = {{0, 0, 0, 0, 0}, {4, 3, 2, 1, 0}, {8, 5, 1, 2, 2}};
  const int offsets[][3] = {{0, 0, 0}, {2, 1, 1}};
  int errors = 0;
  for (Images &images : all) {
    CUtensorMap map = images.map(tensor);
    errors += images.errors;
    for (auto &from : bases)
      for (auto &offset : offsets) {
        int base[5];
        memcpy(base, from, sizeof base);
        base[images.rank - 1] = from[4];
        auto cells = images.cells(base, offset);
        Where p = {base[0], base[1], base[2], base[3], base[images.rank - 1], (unsigned short)offset[0], (unsigned short)offset[1], (unsigned short)offset[2]};
        load<<<1, 64>>>(map, images.rank, (int)cells.size() * 4, p, out);
        errors += cudaDeviceSynchronize() != cudaSuccess;
        for (size_t i = 0; i < cells.size(); ++i, ++compared) wrong += out[i] != (cells[i] < 0 ? 0 : tensor[cells[i]]);
      }
  }
  printf("found %d, %d errors, %d wrong of %d\n", found, errors, wrong, compared);
  // Only within the images may pixels be written.
  Images inner = {4, {16, 9, 14, 6}, {1, 0}, {-1, -3}, {1, 2}, 8, 50, 0};
  CUtensorMap map = inner.map(tensor);
  const int base[5] = {12, 6, 8, 4, 0}, none[3] = {};
  auto cells = inner.cells(base, none);
  for (bool adds : {false, true}) {
    std::vector<int> expected(tensor, tensor + Count);
    for (size_t i = 0; i < cells.size(); ++i)
      if (cells[i] >= 0) expected[cells[i]] = (adds ? expected[cells[i]] : 0) + (int)i + 1;
    back<<<1, 64>>>(map, adds, (int)cells.size(), 12, 6, 8, 4);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s: %s, %d\n", adds ? "added" : "written", cudaGetErrorName(error), memcmp(expected.data(), tensor, Count * sizeof(int)));
  }
  // What there can't be: two dimensions, a corner too far, bounds with nothing between, too many channels and pixels.
  Images bad[] = {
      {2, {16, 20}, {0}, {0}, {1}, 8, 40, 0},          {4, {16, 9, 14, 6}, {-129, 0}, {0, 0}, {1, 1}, 8, 64, 0},
      {4, {16, 9, 14, 6}, {0, 0}, {-9, 0}, {1, 1}, 8, 64, 0}, {3, {16, 20, 5}, {0}, {0}, {1}, 257, 40, 0},
      {3, {16, 20, 5}, {0}, {0}, {1}, 8, 1025, 0},
  };
  for (Images &images : bad) images.map(tensor), printf("%d ", images.errors);
  puts("");
}
