// run: rotates <<<1, 64>>> zeros:64 8
__global__ void rotates(int* out, int n) {
  __shared__ int ring[64];
  int t = threadIdx.x;
  ring[t] = t;
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    int next = ring[(t + 32) & 63];  // defect: shared-race with 9
    ring[t] = next + i;  // defect: shared-race with 8
    __syncthreads();
  }
  out[t] = ring[t];
}
