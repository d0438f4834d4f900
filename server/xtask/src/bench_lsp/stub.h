// What a CUDA source needs so that clang can read it without NVIDIA's headers.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
struct dim3 { unsigned x, y, z; __host__ __device__ dim3(unsigned a, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
struct uint3 { unsigned x, y, z; };
extern const __device__ uint3 threadIdx, blockIdx, blockDim, gridDim;
typedef int cudaError_t;
typedef void* cudaStream_t;
const cudaError_t cudaSuccess = 0;
extern "C" cudaError_t cudaGetLastError();
extern "C" int __cudaPushCallConfiguration(dim3, dim3, unsigned long = 0, cudaStream_t = 0);
extern "C" cudaError_t cudaConfigureCall(dim3, dim3, unsigned long = 0, cudaStream_t = 0);
extern "C" cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, unsigned long, cudaStream_t);
extern "C" cudaError_t cudaMalloc(void**, unsigned long);
extern "C" cudaError_t cudaFree(void*);
extern "C" cudaError_t cudaMemcpyAsync(void*, const void*, unsigned long, int, cudaStream_t);
extern "C" __device__ void __syncthreads();
extern "C" __device__ float __shfl_down_sync(unsigned, float, int, int = 32);
extern "C" __device__ float expf(float);
extern "C" __device__ float sqrtf(float);
extern "C" __device__ float fmaxf(float, float);
extern "C" __device__ double pow(double, double);
extern "C" __device__ float atomicAdd(float*, float);
