/* Descriptions of tensors, which programs ask the driver for: the simulator's own form, as machine/tensor_map.rs reads it. */

#define TENSOR_MAP_MAGIC 0x70616d726f736e74ull
#define CUDA_SUCCESS 0
#define CUDA_ERROR_INVALID_VALUE 1

/* Bytes of an element by CUtensorMapDataType; 0 for packed ones. */
static const unsigned tensor_sizes[16] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0};

/* What cuda.h asks of every tensor that is not interleaved; no dimension is longer than `longest`. */
static int is_tensor(const uint64_t *map, unsigned type, unsigned rank, const void *address, const uint64_t *lengths,
                     const uint64_t *strides, const uint32_t *steps, uint64_t longest, unsigned swizzle, int fill)
{
    if (!map || (uintptr_t)map % 64 || fill < 0 || fill > 1)
        return 0;
    if (type >= 16 || !tensor_sizes[type] || rank < 1 || rank > 5 || !lengths || !steps || (rank > 1 && !strides))
        return 0;
    if (!address || (uintptr_t)address % 16 || swizzle > 3)
        return 0;
    for (unsigned at = 0; at < rank; at++)
        if (!lengths[at] || lengths[at] > longest || !steps[at] || steps[at] > 8)
            return 0;
    for (unsigned at = 0; at + 1 < rank; at++)
        if (strides[at] % 16 || strides[at] >= 1ull << 40)
            return 0;
    return 1;
}

/* What it asks of a box of cuTensorMapEncodeTiled. */
static int is_tile(unsigned type, unsigned rank, const uint32_t *box, unsigned swizzle)
{
    if (!box)
        return 0;
    for (unsigned at = 0; at < rank; at++)
        if (!box[at] || box[at] > 256)
            return 0;
    uint64_t inner = (uint64_t)box[0] * tensor_sizes[type];
    return inner % 16 == 0 && (!swizzle || inner <= 16u << swizzle);
}

/* What it asks of the bounds, channels and pixels of cuTensorMapEncodeIm2col. */
static int is_images(unsigned type, unsigned rank, const uint64_t *lengths, const int *lower, const int *upper,
                     uint32_t channels, uint32_t pixels, unsigned swizzle)
{
    static const int most[6] = {0, 0, 0, 32767, 127, 15};
    if (rank < 3 || !lower || !upper || !channels || channels > 256 || !pixels || pixels > 1024)
        return 0;
    for (unsigned at = 0; at < rank - 2; at++) {
        int least = -most[rank] - 1;
        if (lower[at] < least || lower[at] > most[rank] || upper[at] < least || upper[at] > most[rank])
            return 0;
        /* From the first pixel, and from the last: something must lie between. */
        if ((int64_t)lengths[at + 1] - 1 + upper[at] < lower[at])
            return 0;
    }
    return !swizzle || (uint64_t)channels * tensor_sizes[type] <= 16u << swizzle;
}

static void tensor_map_begin(uint64_t *map, unsigned type, uint32_t rank, void *address, const uint64_t *lengths,
                             const uint64_t *strides, const uint32_t *steps, int swizzle, int fill)
{
    for (int at = 0; at < 16; at++)
        map[at] = 0;
    map[0] = TENSOR_MAP_MAGIC;
    map[1] = U(address);
    map[12] = (uint64_t)type << 24 | (uint64_t)rank << 32 | (uint64_t)swizzle << 40 | (uint64_t)fill << 44;
    for (unsigned at = 0; at < rank; at++) {
        map[2 + at] = lengths[at];
        if (at)
            map[6 + at] = strides[at - 1];
        map[12] |= (uint64_t)steps[at] << 4 * at;
    }
}

static int tensor_map_tiled(uint64_t *map, unsigned type, uint32_t rank, void *address, const uint64_t *lengths,
                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                            int promotion, int fill)
{
    (void)promotion;
    if (interleave || swizzle > 3)
        return (int)missing("cuTensorMapEncodeTiled with an interleaved layout or a swizzle of atoms");
    if (!is_tensor(map, type, rank, address, lengths, strides, steps, 1ull << 32, (unsigned)swizzle, fill)
        || !is_tile(type, rank, box, (unsigned)swizzle))
        return CUDA_ERROR_INVALID_VALUE;
    tensor_map_begin(map, type, rank, address, lengths, strides, steps, swizzle, fill);
    for (unsigned at = 0; at < rank; at++)
        map[11] |= (uint64_t)box[at] << 12 * at;
    return CUDA_SUCCESS;
}

static int tensor_map_im2col(uint64_t *map, unsigned type, uint32_t rank, void *address, const uint64_t *lengths,
                             const uint64_t *strides, const int *lower, const int *upper, uint32_t channels, uint32_t pixels,
                             const uint32_t *steps, int interleave, int swizzle, int promotion, int fill)
{
    (void)promotion;
    if (interleave || swizzle > 3)
        return (int)missing("cuTensorMapEncodeIm2col with an interleaved layout or a swizzle of atoms");
    if (!is_tensor(map, type, rank, address, lengths, strides, steps, 1ull << 31, (unsigned)swizzle, fill)
        || !is_images(type, rank, lengths, lower, upper, channels, pixels, (unsigned)swizzle))
        return CUDA_ERROR_INVALID_VALUE;
    tensor_map_begin(map, type, rank, address, lengths, strides, steps, swizzle, fill);
    map[11] = (uint64_t)channels | (uint64_t)pixels << 12;
    map[12] |= 1ull << 45;
    for (unsigned at = 0; at < rank - 2; at++) {
        map[13] |= (uint64_t)(uint16_t)lower[at] << 16 * at;
        map[14] |= (uint64_t)(uint16_t)upper[at] << 16 * at;
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
    else if (!strcmp(symbol, "cuTensorMapEncodeIm2col"))
        *function = (void *)(uintptr_t)tensor_map_im2col;
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
