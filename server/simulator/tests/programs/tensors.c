/* Descriptions of tensors, asked from the driver by name: what is right, and each thing that is wrong. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags, int *result);
int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *result);
int cudaMalloc(void **pointer, size_t size);

typedef int (*encode)(void *map, int type, uint32_t rank, void *address, const uint64_t *lengths, const uint64_t *strides,
                      const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill);

static encode tiled;
static void *memory;
static _Alignas(64) uint64_t map[16];

/* Two dimensions of f16 (type 6), 128 by 64, in boxes of 64 by 8. */
static void try(const char *what, int type, uint32_t rank, size_t offset, uint64_t length, uint64_t stride, uint32_t width,
                uint32_t step, int swizzle)
{
    uint64_t lengths[] = {length, 64}, strides[] = {stride};
    uint32_t box[] = {width, 8}, steps[] = {1, step};
    int error = tiled(map, type, rank, (char *)memory + offset, lengths, strides, box, steps, 0, swizzle, 0, 0);
    printf("%s: %d\n", what, error);
}

int main(void)
{
    void *function = 0, *other = 0;
    int result = 7;
    int error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, 0, &result);
    printf("by version: %d %d\n", error, result);
    printf("by name: %d", cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &other, 0, &result));
    printf(" %s\n", function == other ? "same" : "other");
    tiled = (encode)function;
    cudaMalloc(&memory, 128 * 64 * 2);
    try("right", 6, 2, 0, 128, 256, 64, 1, 3);
    printf("it is %s\n", map[0] ? "filled in" : "empty");
    try("no dimensions", 6, 0, 0, 128, 256, 64, 1, 3);
    try("six dimensions", 6, 6, 0, 128, 256, 64, 1, 3);
    try("an address that is no multiple of 16", 6, 2, 8, 128, 256, 64, 1, 3);
    try("a length of zero", 6, 2, 0, 0, 256, 64, 1, 3);
    try("a stride that is no multiple of 16", 6, 2, 0, 128, 250, 64, 1, 3);
    try("a box too wide", 6, 2, 0, 1024, 2048, 257, 1, 0);
    try("a box of no multiple of 16 bytes", 6, 2, 0, 128, 256, 9, 1, 0);
    try("a box wider than its swizzle", 6, 2, 0, 128, 256, 128, 1, 3);
    try("a step too long", 6, 2, 0, 128, 256, 64, 9, 3);
    try("a type that there is not", 99, 2, 0, 128, 256, 64, 1, 3);
    return 0;
}
