/* Launches of kernels, in all their forms. */

/* How many arguments a kernel has and where they lie, asked for once. */
struct layout {
    struct layout *next;
    const void *function;
    size_t count, size;
    struct { uint64_t offset, size; } parameter[];
};
static struct layout *layouts[256];
static pthread_mutex_t laying_out = PTHREAD_MUTEX_INITIALIZER;

static status layout_of(const void *function, struct layout **found)
{
    struct layout **bucket = &layouts[(U(function) >> 4) % 256], *layout;
    struct reply reply;
    pthread_mutex_lock(&laying_out);
    for (layout = *bucket; layout && layout->function != function; layout = layout->next) {}
    pthread_mutex_unlock(&laying_out);
    *found = layout;
    if (layout)
        return cudaSuccess;
    status error = ask_bytes(&reply, OP_PARAMETERS, LIST(U(function)) + 1, 1, 0, 0);
    if (!error && !(layout = calloc(1, sizeof *layout + reply.size)))
        error = failed(cudaErrorMemoryAllocation);
    if (!error) {
        layout->function = function;
        layout->count = reply.value[0];
        layout->size = reply.value[1];
        memcpy(layout->parameter, reply.bytes ? reply.bytes : "", reply.size);
        pthread_mutex_lock(&laying_out);
        layout->next = *bucket;
        *bucket = layout;
        pthread_mutex_unlock(&laying_out);
        *found = layout;
    }
    free(reply.bytes);
    return error;
}

status pack_parameters(const void *function, void **arguments, void **packed, size_t *size)
{
    struct layout *layout;
    *packed = 0;
    status error = layout_of(function, &layout);
    if (error)
        return error;
    if (layout->count && !arguments)
        return failed(cudaErrorInvalidValue);
    char *bytes = calloc(1, layout->size + 1);
    if (!bytes)
        return failed(cudaErrorMemoryAllocation);
    for (size_t index = 0; index < layout->count; index++)
        memcpy(bytes + layout->parameter[index].offset, arguments[index], layout->parameter[index].size);
    *packed = bytes;
    *size = layout->size;
    return cudaSuccess;
}

static status launch(const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                     handle stream, unsigned cooperative, struct dim3 cluster)
{
    struct reply reply;
    void *packed;
    size_t size = 0;
    if (!function)
        return failed(cudaErrorInvalidDeviceFunction);
    status error = pack_parameters(function, arguments, &packed, &size);
    if (!error)
        error = ASK_WITH(&reply, OP_LAUNCH, packed, size, U(function), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                         shared, U(stream), cooperative, cluster.x, cluster.y, cluster.z);
    free(packed);
    return error;
}

static const struct dim3 no_cluster = {0, 0, 0};

API status cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                            handle stream)
{
    return launch(function, grid, block, arguments, shared, stream, 0, no_cluster);
}

API status __cudaLaunchKernel(handle kernel, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                              handle stream)
{
    return launch(kernel, grid, block, arguments, shared, stream, 0, no_cluster);
}

API status cudaLaunchCooperativeKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
                                       size_t shared, handle stream)
{
    return launch(function, grid, block, arguments, shared, stream, 1, no_cluster);
}

/* cudaLaunchAttribute: a number, then a union of 64 bytes. */
struct launch_attribute {
    int id, padding;
    union {
        char bytes[64];
        int number;
        struct dim3 dimensions;
    } value;
};
enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4 };

struct launch_configuration {
    struct dim3 grid, block;
    size_t shared;
    handle stream;
    const struct launch_attribute *attributes;
    unsigned count;
};

/* The attributes that change what a kernel computes; the others are hints. */
static void read_attributes(const struct launch_configuration *configuration, unsigned *cooperative, struct dim3 *cluster)
{
    *cooperative = 0;
    *cluster = no_cluster;
    for (unsigned index = 0; index < configuration->count; index++) {
        const struct launch_attribute *attribute = &configuration->attributes[index];
        if (attribute->id == ATTRIBUTE_COOPERATIVE)
            *cooperative = attribute->value.number != 0;
        else if (attribute->id == ATTRIBUTE_CLUSTER)
            *cluster = attribute->value.dimensions;
    }
}

API status cudaLaunchKernelExC(const struct launch_configuration *configuration, const void *function, void **arguments)
{
    unsigned cooperative;
    struct dim3 cluster;
    if (!configuration)
        return failed(cudaErrorInvalidValue);
    read_attributes(configuration, &cooperative, &cluster);
    return launch(function, configuration->grid, configuration->block, arguments, configuration->shared,
                  configuration->stream, cooperative, cluster);
}

/* `kernel<<<grid, block, shared, stream>>>(…)`: the brackets push, the kernel's host function pops and launches. */
struct configuration {
    struct dim3 grid, block;
    size_t shared;
    handle stream;
};
static _Thread_local struct configuration pushed[16];
static _Thread_local unsigned depth;

API unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared, handle stream)
{
    if (depth == sizeof pushed / sizeof *pushed)
        return 1;
    pushed[depth++] = (struct configuration){grid, block, shared, stream};
    return 0;
}

API status __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void *stream)
{
    if (!depth)
        return failed(cudaErrorMissingConfiguration);
    const struct configuration *top = &pushed[--depth];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(handle *)stream = top->stream;
    return cudaSuccess;
}

API status cudaLaunchHostFunc(handle stream, host_function function, void *data)
{
    TELL(OP_HOST_FUNCTION, U(stream), U(function), U(data), 0);
}

API status cudaStreamAddCallback(handle stream, stream_callback callback, void *data, unsigned flags)
{
    if (flags || !callback)
        return failed(cudaErrorInvalidValue);
    TELL(OP_HOST_FUNCTION, U(stream), U(callback), U(data), 1);
}

/* cudaFuncAttributes, the fields before the reserved ones. */
struct function_attributes {
    size_t shared, constant, local;
    int max_threads, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared, carveout;
    int must_set_cluster, cluster_width, cluster_height, cluster_depth, cluster_policy, non_portable_cluster;
    int reserved[16];
};

API status cudaFuncGetAttributes(struct function_attributes *attributes, const void *function)
{
    struct reply r;
    if (!attributes)
        return failed(cudaErrorInvalidValue);
    status error = ASK(&r, OP_FUNCTION_ATTRIBUTES, U(function));
    if (error)
        return error;
    memset(attributes, 0, sizeof *attributes);
    attributes->shared = r.value[0];
    attributes->constant = r.value[1];
    attributes->local = r.value[2];
    attributes->max_threads = (int)r.value[3];
    attributes->registers = (int)r.value[4];
    attributes->ptx_version = (int)r.value[5];
    attributes->binary_version = (int)r.value[6];
    attributes->max_dynamic_shared = (int)r.value[7];
    attributes->carveout = (int)r.value[8];
    return cudaSuccess;
}

API status cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    TELL(OP_FUNCTION_SET_ATTRIBUTE, U(function), attribute, value);
}

API status cudaKernelSetAttributeForDevice(handle kernel, int attribute, int value, int device)
{
    if (device)
        return failed(cudaErrorInvalidDevice);
    TELL(OP_FUNCTION_SET_ATTRIBUTE, U(kernel), attribute, value);
}

API status cudaFuncSetCacheConfig(const void *function, int preference)
{
    if (preference < 0 || preference > 3)
        return failed(cudaErrorInvalidValue);
    TELL(OP_FUNCTION_CHECK, U(function));
}

API status cudaFuncSetSharedMemConfig(const void *function, int configuration)
{
    (void)configuration;
    TELL(OP_FUNCTION_CHECK, U(function));
}

API status cudaFuncGetName(const char **name, const void *function)
{
    struct reply reply;
    if (!name)
        return failed(cudaErrorInvalidValue);
    status error = ask_bytes(&reply, OP_FUNCTION_NAME, LIST(U(function)) + 1, 1, 0, 0);
    if (!error)
        *name = reply.bytes; /* stays: the program may keep it */
    return error;
}

API status cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *size)
{
    struct layout *layout;
    if (!offset)
        return failed(cudaErrorInvalidValue);
    status error = layout_of(function, &layout);
    if (error)
        return error;
    if (index >= layout->count)
        return failed(cudaErrorInvalidValue);
    *offset = layout->parameter[index].offset;
    if (size)
        *size = layout->parameter[index].size;
    return cudaSuccess;
}

#if CUDART >= 13
API status cudaFuncGetParamCount(const void *function, size_t *count)
{
    struct layout *layout;
    if (!count)
        return failed(cudaErrorInvalidValue);
    status error = layout_of(function, &layout);
    if (!error)
        *count = layout->count;
    return error;
}
#endif

API status cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size, size_t shared)
{
    TELL_RESULT(blocks, int, OP_OCCUPANCY_BLOCKS, U(function), block_size, shared);
}

API status cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                                  size_t shared, unsigned flags)
{
    if (flags > 1)
        return failed(cudaErrorInvalidValue);
    TELL_RESULT(blocks, int, OP_OCCUPANCY_BLOCKS, U(function), block_size, shared);
}

API status cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int block_size)
{
    TELL_RESULT(bytes, size_t, OP_OCCUPANCY_SHARED, U(function), blocks, block_size);
}

API status cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const struct launch_configuration *given)
{
    unsigned cooperative;
    struct dim3 cluster;
    if (!given)
        return failed(cudaErrorInvalidValue);
    read_attributes(given, &cooperative, &cluster);
    TELL_RESULT(clusters, int, OP_OCCUPANCY_CLUSTERS, U(function), given->block.x * given->block.y * given->block.z,
                given->shared, (uint64_t)cluster.x * cluster.y * cluster.z);
}

API status cudaOccupancyMaxPotentialClusterSize(int *size, const void *function, const struct launch_configuration *given)
{
    if (!given)
        return failed(cudaErrorInvalidValue);
    TELL_RESULT(size, int, OP_OCCUPANCY_CLUSTER_SIZE, U(function));
}
