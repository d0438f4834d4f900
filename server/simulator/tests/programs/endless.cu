// A kernel that never ends; with an argument, a signal kills the program while it runs.
#include <cstdio>
#include <unistd.h>
#include <cuda_runtime.h>

__global__ void forever(volatile int *flag) {
  while (!*flag) {
  }
}

int main(int count, char **) {
  int *flag;
  cudaMalloc(&flag, sizeof *flag);
  cudaMemset(flag, 0, sizeof *flag);
  printf("begins\n");
  fflush(stdout);
  if (count > 1) alarm(1);
  forever<<<1, 32>>>(flag);
  cudaDeviceSynchronize();
  printf("ends\n");
}
