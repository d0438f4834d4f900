// What `CUDA_LAUNCH_BLOCKING=1` changes: a launch returns when its kernel has ended, and with its fault.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void slow(int *done) {
  for (int i = 0; i < 200; i++) __nanosleep(1000000);
  *done = 1;
}
__global__ void store(int *to) { *to = 1; }

int main() {
  int *done;
  cudaMalloc(&done, sizeof *done);
  slow<<<1, 1>>>(done);
  printf("busy: %d\n", cudaStreamQuery(0));
  printf("done: %d\n", cudaDeviceSynchronize());
  store<<<1, 1>>>(nullptr);
  printf("launch: %d\n", cudaGetLastError());
  printf("then: %d\n", cudaDeviceSynchronize());
}
