// run: neighbours <<<1, 32>>> zeros:32 32
__global__ void neighbours(int* out, int n) {
  __shared__ int tile[32];
  int t = threadIdx.x;
  tile[t] = t;
  out[t] = tile[t ^ 1];  // defect: shared-race with 5
}
