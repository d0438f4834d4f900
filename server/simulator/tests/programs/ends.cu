// Ends, in the way that its argument says, while kernels run.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <cuda_runtime.h>

__global__ void adds(int *sum) { atomicAdd(sum, 1); if (!threadIdx.x) printf("nobody waits for this\n"); }
__global__ void spins(int *sum, volatile int *flag) {
  sum[blockIdx.x] = 1;
  if (blockIdx.x < 2) return;
  while (!*flag) {
  }
}

int main(int, char **arguments) {
  int *memory;
  const char *how = arguments[1];
  cudaMalloc(&memory, 1024);
  cudaMemset(memory, 0, 1024);
  if (!strcmp(how, "short")) {
    adds<<<64, 32>>>(memory);
    adds<<<64, 32>>>(memory);
  } else {
    spins<<<4, 32>>>(memory + 1, memory);
    adds<<<64, 32>>>(memory);
  }
  if (!strcmp(how, "callback")) cudaLaunchHostFunc(0, [](void *) { printf("nobody calls this\n"); }, nullptr);
  printf("launched\n");
  fflush(stdout);
  if (!strcmp(how, "limit") || !strcmp(how, "cancel")) cudaDeviceSynchronize();
  if (strcmp(how, "short")) usleep(500000);
  if (!strcmp(how, "abort")) abort();
  return 7;
}
