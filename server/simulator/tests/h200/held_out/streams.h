// Kernels that go through arrays in order.
#pragma once
#include <cuda_fp16.h>

__device__ inline unsigned mix(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ x >> 16;
}

__global__ void init_floats(float* out, int n, unsigned seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = mix(i * 3u + seed) * (1.0f / 4294967296.0f) + 0.1f;
}

__global__ void init_index(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = int(mix(i) & unsigned(n - 1));
}

__global__ void nothing() {}

__global__ void axpy_wide(float4* y, const float4* x, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 u = x[i], v = y[i];
  y[i] = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w);
}

__global__ void fill(uint4* out, unsigned value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = make_uint4(value, value + 1, value + 2, value + 3);
}

__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ inline float block_sum(float value) {
  __shared__ float sums[32];
  value = warp_sum(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0.0f;
  return warp_sum(value);
}

__global__ void dot(const float* a, const float* b, float* out, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

__global__ void stencil_line(float* out, const float* in, int n) {
  __shared__ float tile[256 + 8];
  int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x + 4] = in[i];
  if (threadIdx.x < 4) {
    tile[threadIdx.x] = i >= 4 ? in[i - 4] : 0.0f;
    tile[threadIdx.x + 260] = i + 256 < n ? in[i + 256] : 0.0f;
  }
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 9; k++) sum += tile[threadIdx.x + k] * (0.1f + k);
  out[i] = sum;
}

__global__ void stencil_plane(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) return;
  const float* p = in + y * width + x;
  out[y * width + x] = 0.2f * (p[0] + p[-1] + p[1] + p[-width] + p[width]);
}

__global__ void stencil_space(float* out, const float* in, int side) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z;
  if (x == 0 || y == 0 || z == 0 || x == side - 1 || y == side - 1 || z == side - 1) return;
  int plane = side * side;
  const float* p = in + z * plane + y * side + x;
  out[z * plane + y * side + x] = p[0] * -6.0f + p[-1] + p[1] + p[-side] + p[side] + p[-plane] + p[plane];
}

// A block a row.
__global__ void layer_norm(float* out, const float* in, int width) {
  const float* row = in + size_t(blockIdx.x) * width;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    sum += row[i];
    squares += row[i] * row[i];
  }
  float mean = block_sum(sum) / width;
  float scale = rsqrtf(block_sum(squares) / width - mean * mean + 1e-5f);
  for (int i = threadIdx.x; i < width; i += blockDim.x) out[size_t(blockIdx.x) * width + i] = (row[i] - mean) * scale;
}

// A warp a row of 128.
__global__ void softmax_rows(float* out, const float* in, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float4 value = ((const float4*)in)[row * 32 + lane];
  float most = fmaxf(fmaxf(value.x, value.y), fmaxf(value.z, value.w));
  for (int offset = 16; offset > 0; offset /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
  value = make_float4(__expf(value.x - most), __expf(value.y - most), __expf(value.z - most), __expf(value.w - most));
  float each = 1.0f / warp_sum(value.x + value.y + value.z + value.w);
  ((float4*)out)[row * 32 + lane] = make_float4(value.x * each, value.y * each, value.z * each, value.w * each);
}

// A thread a column.
__global__ void column_sums(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int y = 0; y < height; y++) sum += in[size_t(y) * width + x];
  out[x] = sum;
}

// A thread a row.
__global__ void row_sums(float* out, const float* in, int rows, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < width; i++) sum += in[size_t(row) * width + i];
  out[row] = sum;
}

// A warp a row.
__global__ void matrix_vector(float* out, const float* matrix, const float* vector, int rows, int width) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int i = lane; i < width; i += 32) sum += matrix[size_t(row) * width + i] * vector[i];
  sum = warp_sum(sum);
  if (lane == 0 && row < rows) out[row] = sum;
}

__global__ void transpose_half(__half* out, const __half* in, int side) {
  __shared__ __half tile[32][34];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * side + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) out[(y + k) * side + x] = tile[threadIdx.x][threadIdx.y + k];
}

__device__ inline float below(float x) { return 0.5f * erfcf(-x * 0.70710678f); }

__global__ void black_scholes(float* out, const float* price, const float* strike, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = price[i], k = strike[i], years = 0.5f, rate = 0.03f, deviation = 0.2f;
  float root = sqrtf(years);
  float d = (logf(s / k) + (rate + 0.5f * deviation * deviation) * years) / (deviation * root);
  out[i] = s * below(d) - k * expf(-rate * years) * below(d - deviation * root);
}

__global__ void scan_blocks(float* out, const float* in) {
  __shared__ float sums[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float value = in[blockIdx.x * 1024 + threadIdx.x];
  for (int offset = 1; offset < 32; offset *= 2) {
    float other = __shfl_up_sync(0xffffffffu, value, offset);
    if (lane >= offset) value += other;
  }
  if (lane == 31) sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    float sum = sums[lane];
    for (int offset = 1; offset < 32; offset *= 2) {
      float other = __shfl_up_sync(0xffffffffu, sum, offset);
      if (lane >= offset) sum += other;
    }
    sums[lane] = sum;
  }
  __syncthreads();
  out[blockIdx.x * 1024 + threadIdx.x] = value + (warp > 0 ? sums[warp - 1] : 0.0f);
}
