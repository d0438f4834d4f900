// 𝛑 and 😀 lie beyond the BMP: two units of UTF-16, four bytes of UTF-8.
__global__ void wave(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) /* 😀𝛑 */ y[i] = powf(x[i], 2.0f); /* 😀 */
}
