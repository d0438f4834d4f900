#include "cuda.h"

/* What was said of managed memory. The runtime is that of CUDA 13, whose calls take locations. */
struct location {
    int type, id;
};
cudaError_t cudaMemAdvise(const void *, size_t, int, struct location);
cudaError_t cudaMemPrefetchAsync(const void *, size_t, struct location, unsigned, cudaStream_t);
cudaError_t cudaMemRangeGetAttribute(void *, size_t, int, const void *, size_t);
cudaError_t cudaMemRangeGetAttributes(void **, size_t *, int *, size_t, const void *, size_t);
enum { ReadMostly = 1, NotReadMostly, Preferred, NotPreferred, AccessedBy, NotAccessedBy };
enum { LENGTH = 1 << 20, HALF = LENGTH / 2 };

static char *memory;

static void show(const char *when)
{
    int value[4];
    printf("%s:", when);
    for (int attribute = 0; attribute < 10; attribute++) {
        cudaError_t error = cudaMemRangeGetAttribute(value, 4, attribute, memory, LENGTH);
        error ? printf(" error %d", error) : printf(" %d", value[0]);
    }
    cudaGetLastError();
    if (!cudaMemRangeGetAttribute(value, 16, 3, memory, LENGTH))
        printf("; accessed by %d %d %d %d\n", value[0], value[1], value[2], value[3]);
}

int main(void)
{
    const struct location device = {1, 0}, host = {2, 0}, none = {1, 7};
    int value[2], other = 5, *data[] = {&other, value}, attributes[] = {1, 3};
    size_t sizes[] = {4, 8};
    void *elsewhere;
    cudaMallocManaged((void **)&memory, LENGTH, 1);
    cudaMalloc(&elsewhere, LENGTH);
    show("fresh");
    SHOW(cudaMemAdvise(memory, LENGTH, ReadMostly, device));
    show("read mostly");
    SHOW(cudaMemAdvise(memory, LENGTH, NotReadMostly, device));
    SHOW(cudaMemAdvise(memory, LENGTH, Preferred, device));
    show("preferred by the device");
    SHOW(cudaMemAdvise(memory, LENGTH, Preferred, host));
    show("preferred by the host");
    SHOW(cudaMemAdvise(memory, LENGTH, NotPreferred, device));
    SHOW(cudaMemAdvise(memory, LENGTH, AccessedBy, device));
    show("accessed by the device");
    SHOW(cudaMemAdvise(memory, LENGTH, AccessedBy, host));
    show("accessed by both");
    SHOW(cudaMemAdvise(memory, LENGTH, NotAccessedBy, device));
    show("accessed by the host");
    SHOW(cudaMemPrefetchAsync(memory, LENGTH, device, 0, 0));
    show("on the device");
    SHOW(cudaMemPrefetchAsync(memory, LENGTH, host, 0, 0));
    show("on the host");
    cudaMemAdvise(memory, HALF, ReadMostly, device);
    cudaMemAdvise(memory, HALF, Preferred, device);
    cudaMemAdvise(memory, HALF, AccessedBy, device);
    cudaMemPrefetchAsync(memory, HALF, device, 0, 0);
    show("half of it");
    SHOW(cudaMemRangeGetAttribute(value, 4, 1, memory, 100));
    printf("%d\n", value[0]);
    SHOW(cudaMemRangeGetAttribute(value, 4, 1, memory + HALF, 100));
    printf("%d\n", value[0]);
    SHOW(cudaMemRangeGetAttributes((void **)data, sizes, attributes, 2, memory, HALF));
    printf("%d %d %d\n", other, value[0], value[1]);
    SHOW(cudaMemRangeGetAttributes((void **)data, sizes, attributes, 0, memory, HALF));
    SHOW(cudaMemRangeGetAttributes(0, sizes, attributes, 2, memory, HALF));
    SHOW(cudaMemRangeGetAttributes((void **)data, 0, attributes, 2, memory, HALF));
    SHOW(cudaMemRangeGetAttributes((void **)data, sizes, 0, 2, memory, HALF));
    SHOW(cudaMemRangeGetAttributes((void **)data, sizes, attributes, 2, elsewhere, HALF));
    SHOW(cudaMemRangeGetAttribute(value, 8, 1, memory, LENGTH));
    SHOW(cudaMemRangeGetAttribute(value, 2, 1, memory, LENGTH));
    SHOW(cudaMemRangeGetAttribute(value, 0, 3, memory, LENGTH));
    SHOW(cudaMemRangeGetAttribute(value, 6, 3, memory, LENGTH));
    SHOW(cudaMemRangeGetAttribute(0, 4, 1, memory, LENGTH));
    SHOW(cudaMemRangeGetAttribute(value, 4, 1, memory, 0));
    SHOW(cudaMemRangeGetAttribute(value, 4, 1, memory, 2 * LENGTH));
    SHOW(cudaMemRangeGetAttribute(value, 4, 1, 0, 4));
    SHOW(cudaMemRangeGetAttribute(value, 4, 1, elsewhere, LENGTH));
    SHOW(cudaMemRangeGetAttribute(value, 4, 1, value, 4));
    SHOW(cudaMemAdvise(memory, LENGTH, Preferred, none));
    SHOW(cudaMemAdvise(elsewhere, LENGTH, Preferred, device));
    cudaFree(memory);
    SHOW(cudaMemRangeGetAttribute(value, 4, 1, memory, LENGTH));
    return 0;
}
