#include "cuda.h"

int main(void)
{
    char host[4096], back[4096];
    char *a, *b, *pinned, *managed, *pitched, *mapped;
    size_t pitch, unused, total;
    for (int i = 0; i < 4096; i++)
        host[i] = (char)i;

    SHOW(cudaMalloc((void **)&a, 4096));
    SHOW(cudaMalloc((void **)&b, 0));
    printf("nothing is null: %d\n", b == 0);
    SHOW(cudaMalloc((void **)&b, (size_t)1 << 50));
    SHOW(cudaMalloc(0, 4));
    SHOW(cudaMalloc((void **)&b, 4096));
    printf("aligned: %d\n", (uintptr_t)a % 256 == 0 && (uintptr_t)b % 256 == 0);

    SHOW(cudaMemcpy(a, host, 4096, HostToDevice));
    SHOW(cudaMemcpy(b, a, 4096, DeviceToDevice));
    SHOW(cudaMemcpy(back, b, 4096, DeviceToHost));
    printf("same: %d\n", !memcmp(host, back, 4096));
    SHOW(cudaMemset(b, 7, 100));
    memset(back, 0, sizeof back);
    SHOW(cudaMemcpy(back, b, 4096, Default));
    printf("filled: %d %d %d\n", back[0], back[99], back[100]);

    SHOW(cudaMemcpy(a, host, 4097, HostToDevice));
    SHOW(cudaMemcpy(a + 1, host, 4096, HostToDevice));
    SHOW(cudaMemcpy(host, back, 16, HostToDevice));
    SHOW(cudaMemcpy(a, b, 16, HostToHost));
    SHOW(cudaMemcpy(a, host, 16, 5));
    SHOW(cudaMemcpy(a, host, 0, HostToDevice));
    SHOW(cudaMemset(a, 0, 4097));
    SHOW(cudaMemset(host, 0, 16));

    SHOW(cudaMallocPitch((void **)&pitched, &pitch, 100, 10));
    printf("pitch: %zu\n", pitch);
    SHOW(cudaMemcpy2D(pitched, pitch, host, 100, 100, 10, HostToDevice));
    SHOW(cudaMemset2D(pitched, pitch, 9, 50, 10));
    SHOW(cudaMemcpy2D(back, 100, pitched, pitch, 100, 10, DeviceToHost));
    printf("rows: %d %d %d %d\n", back[900], back[949], back[950], back[999]);
    SHOW(cudaMemcpy2D(pitched, 50, host, 100, 100, 10, HostToDevice));
    SHOW(cudaMemcpy2D(pitched, pitch, host, 100, 100, 11, HostToDevice));

    SHOW(cudaMallocHost((void **)&pinned, 100));
    strcpy(pinned, "pinned");
    SHOW(cudaMemcpy(a, pinned, 7, HostToDevice));
    SHOW(cudaHostGetDevicePointer((void **)&mapped, pinned, 0));
    printf("mapped: %d\n", mapped == pinned);
    SHOW(cudaHostGetDevicePointer((void **)&mapped, host, 0));
    SHOW(cudaMallocManaged((void **)&managed, 5000, 1));
    memset(managed, 3, 5000);
    SHOW(cudaMemcpy(managed, a, 7, DeviceToHost));
    printf("managed: %s %d\n", managed, managed[4999]);
    SHOW(cudaMallocManaged((void **)&managed, 0, 1));

    char *own = malloc(10000);
    memset(own, 5, 10000);
    SHOW(cudaHostRegister(own, 10000, 0));
    SHOW(cudaHostRegister(own, 10000, 0));
    SHOW(cudaHostGetDevicePointer((void **)&mapped, own + 10, 0));
    printf("registered at: %d\n", (int)(mapped - own));
    SHOW(cudaMemset(own, 6, 10));
    printf("registered: %d %d\n", own[9], own[10]);
    SHOW(cudaHostUnregister(own));
    SHOW(cudaHostUnregister(own));
    printf("kept: %d %d\n", own[9], own[9999]);
    free(own);

    SHOW(cudaMemGetInfo(&unused, &total));
    printf("info: %d\n", unused < total && total > 0);
    SHOW(cudaFree(host));
    SHOW(cudaFree(a + 256));
    SHOW(cudaFree(pinned));
    SHOW(cudaFreeHost(a));
    SHOW(cudaFree(a));
    SHOW(cudaFree(a));
    SHOW(cudaMemcpy(a, host, 16, HostToDevice));
    SHOW(cudaFree(0));
    SHOW(cudaFreeHost(pinned));
    SHOW(cudaFreeHost(0));

    cudaMalloc((void **)&a, (size_t)1 << 50);
    printf("peek: %d\n", cudaPeekAtLastError());
    printf("get: %s\n", cudaGetErrorName(cudaGetLastError()));
    printf("again: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
