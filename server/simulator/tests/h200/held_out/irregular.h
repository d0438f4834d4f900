// Kernels that go where their data say, and such as compute with integers.
#pragma once

__global__ void histogram_shared(int* counts, const unsigned* data, int n) {
  __shared__ int bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned word = data[i];
    atomicAdd(&bins[word & 255], 1);
    atomicAdd(&bins[word >> 8 & 255], 1);
    atomicAdd(&bins[word >> 16 & 255], 1);
  }
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
}

__global__ void gather(float* out, const float* table, const int* index, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[index[i]];
}

__global__ void scatter(int* counts, const int* index, int mask) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&counts[index[i] & mask], 1);
}

// A warp copies a row of 128.
__global__ void rows_of_table(float4* out, const float4* table, const int* index, int rows) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  out[i * 32 + lane] = table[(index[i] & (rows - 1)) * 32 + lane];
}

// A thread a row of 16 entries.
__global__ void sparse(float* out, const float* values, const float* vector, const int* columns, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = row * 16; k < row * 16 + 16; k++) sum += values[k] * vector[columns[k] & (rows - 1)];
  out[row] = sum;
}

// 1,024 numbers a block, by a bitonic network.
__global__ void sort_blocks(float* out, const float* in) {
  __shared__ float data[1024];
  int t = threadIdx.x;
  for (int i = t; i < 1024; i += 512) data[i] = in[blockIdx.x * 1024 + i];
  for (int size = 2; size <= 1024; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      int i = t / step * step * 2 + t % step;
      float x = data[i], y = data[i + step];
      if ((x > y) == ((i & size) == 0)) data[i] = y, data[i + step] = x;
    }
  __syncthreads();
  for (int i = t; i < 1024; i += 512) out[blockIdx.x * 1024 + i] = data[i];
}

__global__ void hashes(unsigned* out, int rounds) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, value = i;
  for (int k = 0; k < rounds; k++) value = mix(value + k);
  out[i] = value;
}

// One thread follows a chain through memory.
__global__ void chase(int* out, const int* next, int mask, int steps) {
  if (threadIdx.x > 0) return;
  int at = 0;
  for (int k = 0; k < steps; k++) at = next[(at + k * 4099) & mask];
  out[0] = at;
}

__device__ __noinline__ float descend(float x, int depth) {
  if (depth == 0) return x;
  float kept = x * 1.01f + depth;
  return descend(kept, depth - 1) + kept;
}

__global__ void recursion(float* out, const float* in, int depth) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = descend(in[i], depth);
}
