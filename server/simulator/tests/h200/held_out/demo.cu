// The kernels of `stitchcuda demo`, and what the rewrites of its optimisation made of two of them, at the sizes of a demonstration on a GPU.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                               \
  do {                                                                            \
    cudaError_t error = (call);                                                   \
    if (error != cudaSuccess) {                                                   \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
      std::exit(1);                                                               \
    }                                                                             \
  } while (0)

__global__ void transpose(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    out[x * height + y] = in[y * width + x];
  }
}

__global__ void transpose_by_tiles(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  __shared__ float tile[32][33];
  if (x < width && y < height) {
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  }
  __syncthreads();
  int xAcross = blockIdx.x * blockDim.x + threadIdx.y;
  int yAcross = blockIdx.y * blockDim.y + threadIdx.x;
  if (xAcross < width && yAcross < height) {
    out[xAcross * height + yAcross] = tile[threadIdx.x][threadIdx.y];
  }
}

__global__ void sum_blocks(float* sums, const float* in, int n) {
  __shared__ float partial[256];
  int tid = threadIdx.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[tid] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) {
      partial[tid] += partial[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) sums[blockIdx.x] = partial[0];
}

__global__ void sum_blocks_halved(float* sums, const float* in, int n) {
  __shared__ float partial[256];
  int tid = threadIdx.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[tid] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (tid < s) {
      partial[tid] += partial[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) sums[blockIdx.x] = partial[0];
}

__global__ void sum_blocks_shuffled(float* sums, const float* in, int n) {
  __shared__ float partial[256];
  int tid = threadIdx.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[tid] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int s = blockDim.x / 2; s >= 32; s /= 2) {
    if (tid < s) {
      partial[tid] += partial[tid + s];
    }
    __syncthreads();
  }
  if (tid < 32) {
    float value = partial[tid];
    for (int offset = 16; offset > 0; offset /= 2) {
      value += __shfl_down_sync(0xffffffffu, value, offset);
    }
    if (tid == 0) {
      partial[0] = value;
    }
  }
  if (tid == 0) sums[blockIdx.x] = partial[0];
}

__global__ void normalise(float* x, float mean, float deviation, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    x[i] = (x[i] - mean) / (deviation + 1e-5);
  }
}

__global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = 0.5 * pow(x[i], 2) + 0.125 * pow(x[i], 4);
  }
}

__global__ void gelu(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = y[i];
    y[i] = 0.5 * v * (1.0 + tanhf(0.79788456f * (v + 0.044715 * v * v * v)));
  }
}

int main() {
  const int width = 500, height = 30000, n = 10000000, m = 5000000, threads = 256;
  const int blocks = (n + threads - 1) / threads, fewer = (m + threads - 1) / threads;
  float *in, *out, *host = (float*)std::malloc(width * height * sizeof(float));
  for (int i = 0; i < width * height; ++i) host[i] = (i % 1000) * 0.004f - 2.0f;
  CHECK(cudaMalloc(&in, width * height * sizeof(float)));
  CHECK(cudaMalloc(&out, width * height * sizeof(float)));
  CHECK(cudaMemcpy(in, host, width * height * sizeof(float), cudaMemcpyHostToDevice));
  dim3 block(32, 32), grid((width + 31) / 32, (height + 31) / 32);
  transpose<<<grid, block>>>(out, in, width, height);
  transpose_by_tiles<<<grid, block>>>(out, in, width, height);
  sum_blocks<<<blocks, threads>>>(out, in, n);
  sum_blocks_halved<<<blocks, threads>>>(out, in, n);
  sum_blocks_shuffled<<<blocks, threads>>>(out, in, n);
  normalise<<<fewer, threads>>>(in, 0.1f, 1.5f, m);
  energy<<<fewer, threads>>>(out, in, m);
  gelu<<<fewer, threads>>>(out, m);
  CHECK(cudaDeviceSynchronize());
  std::puts("done");
}
