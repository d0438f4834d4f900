// run: inside <<<1, 128>>> zeros:128 128
// run: tree <<<2, 64>>> zeros:2 64
__global__ void inside(int* out, int n) {
  __shared__ int tile[128];
  int t = threadIdx.x;
  tile[t] = t;
  __syncwarp();
  out[t] = tile[t ^ 1];
}
__global__ void tree(int* out, int n) {
  __shared__ int tile[64];
  int t = threadIdx.x;
  tile[t] = t;
  __syncthreads();
  if (t < 32) {
    tile[t] += tile[t + 32];
    __syncwarp();
    for (int d = 16; d > 0; d >>= 1) {
      int other = tile[t + d];
      __syncwarp();
      tile[t] += other;
      __syncwarp();
    }
    if (t == 0) out[blockIdx.x] = tile[0];
  }
}
