// run: first_half <<<1, 32>>> blank:64 32
// run: padded <<<1, 32>>> blank:256 32
// run: own_array <<<1, 32>>> zeros:32 3
__global__ void first_half(int* a, int n) {
  a[threadIdx.x] = threadIdx.x;
  __syncthreads();
  a[threadIdx.x] += a[n - 1 - threadIdx.x] * 0 + 1;
}
struct alignas(16) Padded {
  char small;
  double large;
};
// What lies between the members is copied along.
__global__ void padded(Padded* a, int n) {
  Padded* mine = a + threadIdx.x;
  mine->small = 1;
  mine->large = 2;
  __shared__ Padded copy[32];
  *reinterpret_cast<int4*>(&copy[threadIdx.x]) = *reinterpret_cast<int4*>(mine);
  __syncthreads();
  mine->large = copy[31 - threadIdx.x].large;
}
__global__ void own_array(int* out, int n) {
  int own[8];
  for (int i = 0; i < n; ++i) own[(i * 3 + out[0]) & 7] = i;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += own[(i * 3 + out[0]) & 7];
  out[threadIdx.x] = sum * 0;
}
