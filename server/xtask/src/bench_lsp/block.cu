// Part @: a layer of a network with its reduction, its tiles and its launches.
namespace part_@ {

constexpr int kTile = 32;
constexpr int kThreads = 256;

struct Shape {
  int rows;
  int columns;
  float scale;
};

__device__ inline float activate(float value, float slope) {
  return value > 0.0f ? value : value * slope;
}

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void scale_rows(const float* in, float* out, Shape shape) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= shape.rows) {
    return;
  }
  for (int column = 0; column < shape.columns; ++column) {
    out[row * shape.columns + column] = in[row * shape.columns + column] * shape.scale;
  }
}

template <int Tile>
__global__ void __launch_bounds__(kThreads) multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float left[Tile][Tile];
  __shared__ float right[Tile][Tile + 1];
  int row = blockIdx.y * Tile + threadIdx.y;
  int column = blockIdx.x * Tile + threadIdx.x;
  float sum = 0.0f;
  for (int step = 0; step < n; step += Tile) {
    left[threadIdx.y][threadIdx.x] = a[row * n + step + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(step + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < Tile; ++k) {
      sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    }
    __syncthreads();
  }
  if (row < n && column < n) {
    c[row * n + column] = activate(sum, 0.01f);
  }
}

__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float partial[kThreads];
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = index < n ? in[index] : 0.0f;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride > 32; stride /= 2) {
    if (threadIdx.x < stride) {
      partial[threadIdx.x] += partial[threadIdx.x + stride];
    }
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    float sum = warp_sum(partial[threadIdx.x] + partial[threadIdx.x + 32]);
    if (threadIdx.x == 0) {
      atomicAdd(out, sum);
    }
  }
}

__global__ void softmax(const float* in, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float largest = -1e30f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    largest = fmaxf(largest, row[i]);
  }
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    sum += expf(row[i] - largest);
  }
  sum = warp_sum(sum);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[blockIdx.x * columns + i] = expf(row[i] - largest) / sum;
  }
}

cudaError_t forward(const float* in, float* out, float* scratch, Shape shape, cudaStream_t stream) {
  dim3 block(kTile, kTile / 4);
  dim3 grid((shape.columns + kTile - 1) / kTile, (shape.rows + kTile - 1) / kTile);
  scale_rows<<<(shape.rows + kThreads - 1) / kThreads, kThreads, 0, stream>>>(in, scratch, shape);
  multiply<kTile><<<grid, block, 0, stream>>>(scratch, in, out, shape.columns);
  softmax<<<shape.rows, 32, 0, stream>>>(out, out, shape.columns);
  reduce<<<(shape.rows * shape.columns + kThreads - 1) / kThreads, kThreads, 0, stream>>>(out, scratch, shape.rows);
  return cudaGetLastError();
}

}  // namespace part_@

