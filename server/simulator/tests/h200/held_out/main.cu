// Kernels whose times the estimates were not made with. `held_out` launches each once; `held_out time` prints
// the median time of each, by events, with the L2 cache overwritten before every launch.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "streams.h"

#include "dense.h"
#include "irregular.h"

#define CHECK(call)                                                                     \
  do {                                                                                  \
    cudaError_t error = (call);                                                         \
    if (error != cudaSuccess) {                                                         \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));       \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (0)

struct Case {
  const char* name;
  std::function<void()> launch;
};

constexpr size_t BYTES = size_t(64) << 20;
constexpr int N = 1 << 24;

static void cases(std::vector<Case>& all) {
  float *a, *b, *out;
  int *index, *counts;
  for (float** one : {&a, &b, &out}) CHECK(cudaMalloc(one, BYTES));
  CHECK(cudaMalloc(&index, BYTES));
  CHECK(cudaMalloc(&counts, BYTES));
  init_floats<<<N / 256, 256>>>(a, N, 1);
  init_floats<<<N / 256, 256>>>(b, N, 2);
  init_index<<<N / 256, 256>>>(index, N);
  CHECK(cudaMemset(counts, 0, BYTES));
  CHECK(cudaMemset(out, 0, BYTES));
  auto add = [&](const char* name, std::function<void()> launch) { all.push_back({name, launch}); };
  add("nothing", [=] { nothing<<<1, 32>>>(); });
  add("axpy_wide", [=] { axpy_wide<<<N / 4 / 256, 256>>>((float4*)out, (const float4*)a, 2.0f); });
  add("fill", [=] { fill<<<N / 4 / 256, 256>>>((uint4*)out, 7); });
  add("dot", [=] { dot<<<132 * 8, 256>>>(a, b, out, N); });
  add("stencil_line", [=] { stencil_line<<<N / 256, 256>>>(out, a, N); });
  add("stencil_plane", [=] { stencil_plane<<<dim3(4096 / 32, 4096 / 8), dim3(32, 8)>>>(out, a, 4096, 4096); });
  add("stencil_space", [=] { stencil_space<<<dim3(8, 32, 256), dim3(32, 8)>>>(out, a, 256); });
  add("layer_norm", [=] { layer_norm<<<16384, 256>>>(out, a, 1024); });
  add("softmax_rows", [=] { softmax_rows<<<131072 / 8, 256>>>(out, a, 131072); });
  add("column_sums", [=] { column_sums<<<4096 / 128, 128>>>(out, a, 4096, 4096); });
  add("row_sums", [=] { row_sums<<<16384 / 128, 128>>>(out, a, 16384, 1024); });
  add("matrix_vector", [=] { matrix_vector<<<4096 / 8, 256>>>(out, a, b, 4096, 4096); });
  add("transpose_half", [=] { transpose_half<<<dim3(128, 128), dim3(32, 8)>>>((__half*)out, (const __half*)a, 4096); });
  add("black_scholes", [=] { black_scholes<<<N / 2 / 256, 256>>>(out, a, b, N / 2); });
  add("histogram_shared", [=] { histogram_shared<<<132 * 4, 256>>>(counts, (const unsigned*)index, N / 4); });
  add("scan_blocks", [=] { scan_blocks<<<N / 1024, 1024>>>(out, a); });
  add("gemm_registers", [=] { gemm_registers<<<dim3(16, 16), 256>>>(out, a, b, 1024); });
  add("gemm_fragments", [=] { gemm_fragments<<<dim3(16, 64), 128>>>(out, (const __half*)a, (const __half*)b, 1024); });
  add("convolve", [=] { convolve<<<dim3(2048 / 32, 2048 / 8), dim3(32, 8)>>>(out, a, b, 2048, 2048); });
  add("bodies", [=] { bodies<<<8192 / 128, 128>>>((float4*)out, (const float4*)a, 8192); });
  add("bodies_double", [=] { bodies_double<<<2048 / 64, 64>>>((double*)out, (const float4*)a, 2048); });
  add("transform", [=] { transform<<<4096, 256>>>((float2*)out, (const float2*)a); });
  add("banks", [=] { banks<<<1024, 256>>>(out, 256); });
  add("gather", [=] { gather<<<N / 2 / 256, 256>>>(out, a, index, N / 2); });
  add("scatter", [=] { scatter<<<N / 4 / 256, 256>>>(counts, index, (1 << 20) - 1); });
  add("rows_of_table", [=] { rows_of_table<<<65536 / 8, 256>>>((float4*)out, (const float4*)a, index, 131072); });
  add("sparse", [=] { sparse<<<(1 << 19) / 256, 256>>>(out, a, b, index, 1 << 19); });
  add("sort_blocks", [=] { sort_blocks<<<2048, 512>>>(out, a); });
  add("mandelbrot", [=] { mandelbrot<<<dim3(1024 / 16, 1024 / 16), dim3(16, 16)>>>(counts, 1024, 256); });
  add("hashes", [=] { hashes<<<(1 << 20) / 256, 256>>>((unsigned*)counts, 128); });
  add("chase", [=] { chase<<<1, 32>>>(counts, index, N - 1, 4096); });
  add("recursion", [=] { recursion<<<(1 << 18) / 128, 128>>>(out, a, 32); });
}

int main(int count, char** words) {
  std::vector<Case> all;
  cases(all);
  CHECK(cudaDeviceSynchronize());
  bool time = count > 1 && !std::strcmp(words[1], "time");
  char* flush = nullptr;
  cudaEvent_t begin, end;
  if (time) {
    CHECK(cudaMalloc(&flush, size_t(256) << 20));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
  for (const Case& one : all) {
    if (!time) {
      one.launch();
      CHECK(cudaDeviceSynchronize());
      continue;
    }
    std::vector<float> times;
    for (int round = 0; round < 15; round++) {
      float milliseconds = 0;
      CHECK(cudaMemsetAsync(flush, round, size_t(256) << 20));
      CHECK(cudaEventRecord(begin));
      one.launch();
      CHECK(cudaEventRecord(end));
      CHECK(cudaDeviceSynchronize());
      CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
      times.push_back(milliseconds * 1000);
    }
    std::sort(times.begin(), times.end());
    std::printf("%s %.2f %.2f %.2f\n", one.name, times[7], times.front(), times.back());
  }
  CHECK(cudaDeviceSynchronize());
  std::puts("done");
}
