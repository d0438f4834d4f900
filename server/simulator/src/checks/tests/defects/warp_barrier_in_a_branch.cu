// run: some <<<1, 32>>> zeros:32 16
__global__ void some(int* a, int n) {
  if (threadIdx.x < n) __syncwarp();  // defect: missing-lanes
  a[threadIdx.x] = 1;
}
