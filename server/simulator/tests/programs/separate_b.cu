__device__ int base = 1;
__device__ int twice(int x) { return 2 * x; }
