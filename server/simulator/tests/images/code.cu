// Three versions of one kernel: PLAIN, the same with names and bounds that change no instruction, and OTHER, with another instruction.
#if defined(BOUNDED)
__global__ void __launch_bounds__(256) bounded(float* values, float factor, int count) {
#else
__global__ void scale(float* values, float factor, int count) {
#endif
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#if defined(OTHER)
  if (i < count) values[i] += factor;
#else
  if (i < count) values[i] *= factor;
#endif
}
