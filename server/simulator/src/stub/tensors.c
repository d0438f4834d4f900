/* Descriptions of tensors, which programs ask the driver for: the simulator's own form, as machine/tensor_map.rs reads it. */

#define TENSOR_MAP_MAGIC 0x70616d726f736e74ull
#define CUDA_SUCCESS 0
#define CUDA_ERROR_INVALID_VALUE 1

/* Bytes of an element by CUtensorMapDataType; 0 for packed ones. */
static const unsigned tensor_sizes[16] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0};

/* The requirements are those that cuda.h documents for cuTensorMapEncodeTiled without interleaving. */
static int is_tiled(unsigned type, unsigned rank, const void *address, const uint64_t *lengths, const uint64_t *strides,
                    const uint32_t *box, const uint32_t *steps, unsigned swizzle)
{
    if (type >= 16 || !tensor_sizes[type] || rank < 1 || rank > 5 || !lengths || !box || !steps || (rank > 1 && !strides))
        return 0;
    if (!address || (uintptr_t)address % 16 || swizzle > 3)
        return 0;
    for (unsigned at = 0; at < rank; at++)
        if (!lengths[at] || lengths[at] > 1ull << 32 || !box[at] || box[at] > 256 || !steps[at] || steps[at] > 8)
            return 0;
    for (unsigned at = 0; at + 1 < rank; at++)
        if (strides[at] % 16 || strides[at] >= 1ull << 40)
            return 0;
    uint64_t inner = (uint64_t)box[0] * tensor_sizes[type];
    return inner % 16 == 0 && (!swizzle || inner <= 16u << swizzle);
}

static int tensor_map_tiled(uint64_t *map, unsigned type, uint32_t rank, void *address, const uint64_t *lengths,
                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                            int promotion, int fill)
{
    (void)promotion;
    if (interleave || swizzle > 3)
        return (int)missing("cuTensorMapEncodeTiled with an interleaved layout or a swizzle of atoms");
    if (!map || (uintptr_t)map % 64 || fill < 0 || fill > 1
        || !is_tiled(type, rank, address, lengths, strides, box, steps, (unsigned)swizzle))
        return CUDA_ERROR_INVALID_VALUE;
    for (int at = 0; at < 16; at++)
        map[at] = 0;
    map[0] = TENSOR_MAP_MAGIC;
    map[1] = U(address);
    map[12] = (uint64_t)type << 24 | (uint64_t)rank << 32 | (uint64_t)swizzle << 40 | (uint64_t)fill << 44;
    for (unsigned at = 0; at < rank; at++) {
        map[2 + at] = lengths[at];
        if (at)
            map[6 + at] = strides[at - 1];
        map[11] |= (uint64_t)box[at] << 12 * at;
        map[12] |= (uint64_t)steps[at] << 4 * at;
    }
    return CUDA_SUCCESS;
}

static int tensor_map_replace_address(uint64_t *map, void *address)
{
    if (!map || map[0] != TENSOR_MAP_MAGIC || (uintptr_t)address % 16)
        return CUDA_ERROR_INVALID_VALUE;
    map[1] = U(address);
    return CUDA_SUCCESS;
}

/* Functions of the driver that there are; another one is named, and ends the run. */
static status entry_point(const char *symbol, void **function, int *result)
{
    if (!symbol || !function)
        return failed(cudaErrorInvalidValue);
    if (!strcmp(symbol, "cuTensorMapEncodeTiled"))
        *function = (void *)(uintptr_t)tensor_map_tiled;
    else if (!strcmp(symbol, "cuTensorMapReplaceAddress"))
        *function = (void *)(uintptr_t)tensor_map_replace_address;
    else
        return missing(symbol);
    if (result)
        *result = 0; /* cudaDriverEntryPointSuccess */
    return failed(cudaSuccess);
}

API status cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *result)
{
    (void)flags;
    return entry_point(symbol, function, result);
}

API status cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags,
                                            int *result)
{
    (void)version, (void)flags;
    return entry_point(symbol, function, result);
}
