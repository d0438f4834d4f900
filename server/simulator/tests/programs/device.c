#include "cuda.h"

static void kernel(void) {}

int main(void)
{
    int value, version;
    size_t limit;
    char properties[2048] = "";
    dim3 one = {1, 1, 1}, zero = {0, 1, 1}, many = {1025, 1, 1};
    SHOW(cudaGetDeviceCount(&value));
    printf("devices: %d\n", value);
    SHOW(cudaSetDevice(0));
    SHOW(cudaSetDevice(1));
    SHOW(cudaSetDevice(-1));
    SHOW(cudaGetDevice(&value));
    SHOW(cudaDeviceGetAttribute(&value, 75, 0));
    printf("capability: %d\n", value);
    SHOW(cudaDeviceGetAttribute(&value, 0, 0));
    SHOW(cudaDeviceGetAttribute(&value, 75, 1));
    SHOW(cudaRuntimeGetVersion(&version));
    printf("runtime: %d\n", version / 1000);
    SHOW(cudaGetDeviceProperties(properties, 0));
    printf("name: %s\n", properties);
    SHOW(cudaGetDeviceProperties(properties, 7));
    SHOW(cudaDeviceGetLimit(&limit, 2));
    printf("heap: %zu\n", limit);
    SHOW(cudaDeviceSetLimit(2, 1 << 20));
    SHOW(cudaDeviceGetLimit(&limit, 2));
    printf("heap: %zu\n", limit);
    SHOW(cudaDeviceGetLimit(&limit, 99));
    SHOW(cudaLaunchKernel((void *)kernel, one, one, 0, 0, 0));
    SHOW(cudaLaunchKernel(0, one, one, 0, 0, 0));
    SHOW(cudaLaunchKernel((void *)kernel, zero, many, 0, 0, 0));
    SHOW(cudaMemcpyToSymbol(&value, &value, 4, 0, HostToDevice));
    SHOW(cudaDeviceReset());
    SHOW(cudaGetLastError());
    printf("%s: %s\n", cudaGetErrorName(700), cudaGetErrorString(700));
    printf("%s: %s\n", cudaGetErrorName(12345), cudaGetErrorString(12345));
    return 0;
}
