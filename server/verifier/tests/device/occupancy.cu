// Prints what the runtime says of occupancy, for kernels of various register and shared memory use and many block sizes.
// Build and check on a machine with a GPU:
//   nvcc -arch=native tests/device/occupancy.cu -o occupancy && ./occupancy > occupancy.txt
//   cargo run -p stitch-verifier --example occupancy_check -- occupancy.txt
#include <cstdio>
#include <cuda_runtime.h>

template <int Values, int Shared>
__global__ void busy(float* data, int n) {
  __shared__ float tile[Shared > 0 ? Shared : 1];
  extern __shared__ float dynamic[];
  float values[Values];
#pragma unroll
  for (int i = 0; i < Values; ++i) values[i] = data[i * n + threadIdx.x];
  if (Shared > 0) {
    tile[threadIdx.x % (Shared > 0 ? Shared : 1)] = values[0];
    __syncthreads();
    values[0] = tile[(threadIdx.x + 1) % (Shared > 0 ? Shared : 1)];
  }
  if (n < 0) values[0] += dynamic[threadIdx.x];
#pragma unroll
  for (int i = 0; i < Values; ++i) data[i * n + threadIdx.x] = values[i] * values[(i + 1) % Values] + values[(i + Values / 2) % Values];
}

template <int Values, int Shared>
void print(int architecture) {
  const void* kernel = reinterpret_cast<const void*>(&busy<Values, Shared>);
  int optin = 0;
  cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaFuncAttributes attributes;
  if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) return;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, optin - static_cast<int>(attributes.sharedSizeBytes));
  const int dynamic_sizes[] = {0, 1000, 16384, 40000, 100000, 200000};
  for (int dynamic : dynamic_sizes) {
    for (int block = 1; block <= 1024; block = block < 32 ? 32 : block + (block % 3 == 2 ? 31 : 32)) {
      int blocks = -1;
      if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block, dynamic) != cudaSuccess) {
        cudaGetLastError();
        continue;
      }
      // architecture registers static dynamic barriers block : blocks
      std::printf("%d %d %zu %d %d %d %d\n", architecture, attributes.numRegs, attributes.sharedSizeBytes, dynamic, Shared > 0 ? 1 : 0, block, blocks);
    }
  }
}

int main() {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    std::fprintf(stderr, "no CUDA device\n");
    return 3;
  }
  const int architecture = properties.major * 10 + properties.minor;
  std::printf("# %s\n", properties.name);
  print<2, 0>(architecture);
  print<8, 0>(architecture);
  print<16, 256>(architecture);
  print<32, 0>(architecture);
  print<48, 4096>(architecture);
  print<64, 0>(architecture);
  print<12, 8192>(architecture);
  print<24, 0>(architecture);
  print<40, 12000>(architecture);
  print<20, 0>(architecture);
  return 0;
}
