// run: transpose <<<4, 256>>> zeros:1024 32
// run: two_buffers <<<1, 64>>> zeros:640 10
// run: blocks_apart <<<4, 64>>> zeros:257 256
__global__ void transpose(int* a, int n) {
  __shared__ int tile[16][17];
  int x = threadIdx.x & 15, y = threadIdx.x >> 4, at = blockIdx.x * 256;
  tile[y][x] = a[at + threadIdx.x];
  __syncthreads();
  a[at + threadIdx.x] = tile[x][y];
}
__global__ void two_buffers(int* a, int n) {
  __shared__ int tile[2][64];
  int t = threadIdx.x, sum = 0;
  tile[0][t] = a[t];
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    if (i + 1 < n) tile[(i + 1) & 1][t] = a[(i + 1) * 64 + t];
    sum += tile[i & 1][63 - t];
    __syncthreads();
  }
  a[t] = sum;
}
__global__ void blocks_apart(int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = i;
  __syncthreads();
  if (threadIdx.x > 0) a[i] += a[i - 1] * 0;
}
