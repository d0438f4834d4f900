/* Memory: allocation, copies, fills. Every copy is a block of rows and slices; a plain one has one row. */

API status cudaMalloc(void **pointer, size_t size)
{
    TELL_RESULT(pointer, void *, OP_MALLOC, size);
}

API status cudaFree(void *pointer)
{
    TELL(OP_FREE, U(pointer));
}

API status cudaMallocManaged(void **pointer, size_t size, unsigned flags)
{
    TELL_RESULT(pointer, void *, OP_MALLOC_MANAGED, size, flags);
}

API status cudaHostAlloc(void **pointer, size_t size, unsigned flags)
{
    TELL_RESULT(pointer, void *, OP_HOST_ALLOC, size, flags);
}

API status cudaMallocHost(void **pointer, size_t size)
{
    TELL_RESULT(pointer, void *, OP_HOST_ALLOC, size, 0);
}

API status cudaFreeHost(void *pointer)
{
    TELL(OP_FREE_HOST, U(pointer));
}

API status cudaHostRegister(void *pointer, size_t size, unsigned flags)
{
    /* Pages that are not there can't be shared. */
    const uintptr_t page = 4096, begin = (uintptr_t)pointer / page * page;
    unsigned char resident[64];
    for (uintptr_t at = begin; size && at < (uintptr_t)pointer + size; at += sizeof resident * page) {
        uintptr_t rest = (uintptr_t)pointer + size - at;
        if (mincore((void *)at, rest < sizeof resident * page ? rest : sizeof resident * page, resident))
            return failed(cudaErrorInvalidValue);
    }
    TELL(OP_HOST_REGISTER, U(pointer), size, flags);
}

API status cudaHostUnregister(void *pointer)
{
    TELL(OP_HOST_UNREGISTER, U(pointer));
}

API status cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    TELL_RESULT(device, void *, OP_HOST_DEVICE_POINTER, U(host), flags);
}

API status cudaHostGetFlags(unsigned *flags, void *host)
{
    TELL_RESULT(flags, unsigned, OP_HOST_FLAGS, U(host));
}

static status malloc_pitched(struct pitched *pitched, size_t width, size_t height, size_t depth)
{
    struct reply reply;
    status error = ASK(&reply, OP_MALLOC_PITCH, width, height, depth);
    if (!error)
        *pitched = (struct pitched){(void *)(uintptr_t)reply.value[0], reply.value[1], width, height};
    return error;
}

API status cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    struct pitched pitched;
    if (!pointer || !pitch)
        return failed(cudaErrorInvalidValue);
    status error = malloc_pitched(&pitched, width, height, 1);
    if (!error) {
        *pointer = pitched.pointer;
        *pitch = pitched.pitch;
    }
    return error;
}

API status cudaMalloc3D(struct pitched *pitched, struct extent extent)
{
    if (!pitched)
        return failed(cudaErrorInvalidValue);
    return malloc_pitched(pitched, extent.width, extent.height, extent.depth);
}

API status cudaMemGetInfo(size_t *unused, size_t *total)
{
    struct reply reply;
    status error = ASK(&reply, OP_MEMORY_INFO);
    if (!error && unused)
        *unused = reply.value[0];
    if (!error && total)
        *total = reply.value[1];
    return error;
}

/* cudaPointerAttributes; the runtime of CUDA 13 has further, reserved fields. */
struct pointer_attributes {
    int type, device;
    void *device_pointer, *host_pointer;
#if CUDART >= 13
    long reserved[8];
#endif
};

API status cudaPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer)
{
    struct reply reply;
    if (!attributes)
        return failed(cudaErrorInvalidValue);
    status error = ASK(&reply, OP_POINTER_ATTRIBUTES, U(pointer));
    if (!error) {
        memset(attributes, 0, sizeof *attributes);
        attributes->type = (int)reply.value[0];
        attributes->device = (int)reply.value[1];
        attributes->device_pointer = (void *)(uintptr_t)reply.value[2];
        attributes->host_pointer = (void *)(uintptr_t)reply.value[3];
    }
    return error;
}

static status copy(const struct copy *rows, int kind, handle stream, int asynchronous)
{
    TELL(OP_COPY, rows->to, rows->from, rows->width, rows->height, rows->depth, rows->to_pitch, rows->from_pitch,
         rows->to_slice, rows->from_slice, kind, U(stream), asynchronous);
}

static status copy_plain(uint64_t to, uint64_t from, size_t count, int kind, handle stream, int asynchronous)
{
    const struct copy rows = {to, from, count, 1, 1, count, count, 0, 0};
    return copy(&rows, kind, stream, asynchronous);
}

API status cudaMemcpy(void *to, const void *from, size_t count, int kind)
{
    return copy_plain(U(to), U(from), count, kind, 0, 0);
}

API status cudaMemcpyAsync(void *to, const void *from, size_t count, int kind, handle stream)
{
    return copy_plain(U(to), U(from), count, kind, stream, 1);
}

static status copy_peer(void *to, int to_device, const void *from, int from_device, size_t count, handle stream, int async)
{
    enum { DEVICE_TO_DEVICE = 3 };
    if (to_device || from_device)
        return failed(cudaErrorInvalidDevice);
    return copy_plain(U(to), U(from), count, DEVICE_TO_DEVICE, stream, async);
}

API status cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t count)
{
    return copy_peer(to, to_device, from, from_device, count, 0, 0);
}

API status cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t count, handle stream)
{
    return copy_peer(to, to_device, from, from_device, count, stream, 1);
}

static status copy2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
                     handle stream, int asynchronous)
{
    const struct copy rows = {U(to), U(from), width, height, 1, to_pitch, from_pitch, 0, 0};
    if (width && height && (width > to_pitch || width > from_pitch))
        return failed(height > 1 ? cudaErrorInvalidPitchValue : cudaErrorInvalidValue);
    return copy(&rows, kind, stream, asynchronous);
}

API status cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                        int kind)
{
    return copy2d(to, to_pitch, from, from_pitch, width, height, kind, 0, 0);
}

API status cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                             int kind, handle stream)
{
    return copy2d(to, to_pitch, from, from_pitch, width, height, kind, stream, 1);
}

status copy3d_from(const struct copy3d *p, struct copy *rows)
{
    if (!p || p->from_array || p->to_array)
        return p ? cudaErrorNotSupported : cudaErrorInvalidValue;
    const struct pitched *from = &p->from, *to = &p->to;
    const struct position *at = &p->from_position, *onto = &p->to_position;
    const struct extent *size = &p->extent;
    if (size->width && (!from->pointer || !to->pointer))
        return cudaErrorInvalidValue;
    if (size->width > to->pitch || size->width > from->pitch)
        return cudaErrorInvalidPitchValue;
    if (size->depth > 1 && (size->height > to->height || size->height > from->height))
        return cudaErrorInvalidPitchValue;
    rows->width = p->extent.width;
    rows->height = p->extent.height;
    rows->depth = p->extent.depth;
    rows->to_pitch = to->pitch;
    rows->from_pitch = from->pitch;
    rows->to_slice = to->pitch * to->height;
    rows->from_slice = from->pitch * from->height;
    rows->to = U(to->pointer) + onto->x + onto->y * rows->to_pitch + onto->z * rows->to_slice;
    rows->from = U(from->pointer) + at->x + at->y * rows->from_pitch + at->z * rows->from_slice;
    return cudaSuccess;
}

static status copy_box(const struct copy3d *parameters, handle stream, int asynchronous)
{
    struct copy rows;
    status error = copy3d_from(parameters, &rows);
    return error ? failed(error) : copy(&rows, parameters->kind, stream, asynchronous);
}

API status cudaMemcpy3D(const struct copy3d *parameters)
{
    return copy_box(parameters, 0, 0);
}

API status cudaMemcpy3DAsync(const struct copy3d *parameters, handle stream)
{
    return copy_box(parameters, stream, 1);
}

static status fill(uint64_t pointer, size_t pitch, int value, struct extent extent, size_t slice, handle stream, int async)
{
    const int some = extent.width && extent.height && extent.depth;
    if (some && extent.width > pitch && extent.height > 1)
        return failed(cudaErrorInvalidValue);
    TELL(OP_FILL, pointer, value & 0xFF, 1, extent.width, extent.height, extent.depth, pitch, slice, U(stream), async);
}

API status cudaMemset(void *pointer, int value, size_t count)
{
    return fill(U(pointer), count, value, (struct extent){count, 1, 1}, 0, 0, 0);
}

API status cudaMemsetAsync(void *pointer, int value, size_t count, handle stream)
{
    return fill(U(pointer), count, value, (struct extent){count, 1, 1}, 0, stream, 1);
}

API status cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
    return fill(U(pointer), pitch, value, (struct extent){width, height, 1}, 0, 0, 0);
}

API status cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height, handle stream)
{
    return fill(U(pointer), pitch, value, (struct extent){width, height, 1}, 0, stream, 1);
}

static status fill_box(struct pitched p, int value, struct extent extent, handle stream, int asynchronous)
{
    if (extent.width && extent.depth && extent.height > p.height)
        return failed(cudaErrorInvalidValue);
    return fill(U(p.pointer), p.pitch, value, extent, p.pitch * p.height, stream, asynchronous);
}

API status cudaMemset3D(struct pitched p, int value, struct extent extent)
{
    return fill_box(p, value, extent, 0, 0);
}

API status cudaMemset3DAsync(struct pitched p, int value, struct extent extent, handle stream)
{
    return fill_box(p, value, extent, stream, 1);
}

struct location {
    int type, id;
};
enum { LOCATION_DEVICE = 1, FIRST_ADVICE = 1, LAST_ADVICE = 6, PREFETCH = 7, HOST_PROCESSOR = -1 };

/* Where managed memory lies is a matter of speed: nothing moves, but what was said is remembered. */
static status place(const void *pointer, size_t count, int advice, int device)
{
    TELL(OP_ADVISE, U(pointer), count, advice, device < 0);
}

static status prefetch(const void *pointer, size_t count, int device)
{
    return device > 0 ? failed(cudaErrorInvalidDevice) : place(pointer, count, PREFETCH, device);
}

static status advise(const void *pointer, size_t count, int advice, int device)
{
    if (advice < FIRST_ADVICE || advice > LAST_ADVICE)
        return failed(cudaErrorInvalidValue);
    if (device <= 0)
        return place(pointer, count, advice, device);
    /* What is wrong with the memory is said before what is wrong with the device. */
    struct reply reply;
    status error = ASK(&reply, OP_RANGE_ATTRIBUTE, U(pointer), count, FIRST_ADVICE);
    return error ? error : failed(CUDART >= 13 ? cudaErrorInvalidValue : cudaErrorInvalidDevice);
}

static int processor(struct location location)
{
    return location.type == LOCATION_DEVICE ? location.id : HOST_PROCESSOR;
}

#if CUDART >= 13
API status cudaMemPrefetchAsync(const void *pointer, size_t count, struct location location, unsigned flags, handle stream)
{
    (void)flags, (void)stream;
    return prefetch(pointer, count, processor(location));
}

API status cudaMemAdvise(const void *pointer, size_t count, int advice, struct location location)
{
    return advise(pointer, count, advice, processor(location));
}
#else
API status cudaMemPrefetchAsync(const void *pointer, size_t count, int device, handle stream)
{
    (void)stream;
    return prefetch(pointer, count, device);
}

API status cudaMemPrefetchAsync_v2(const void *pointer, size_t count, struct location location, unsigned flags,
                                   handle stream)
{
    (void)flags, (void)stream;
    return prefetch(pointer, count, processor(location));
}

API status cudaMemAdvise(const void *pointer, size_t count, int advice, int device)
{
    return advise(pointer, count, advice, device);
}

API status cudaMemAdvise_v2(const void *pointer, size_t count, int advice, struct location location)
{
    return advise(pointer, count, advice, processor(location));
}
#endif

/* A number of type int; of those that a range is accessed by, as many as there is room for, and after them no device. */
static status range_attribute(int *data, size_t size, int attribute, const void *pointer, size_t count)
{
    enum { ACCESSED_BY = 3, NO_DEVICE = -2 };
    const size_t room = size / sizeof *data;
    struct reply reply;
    if (!data || !room || size % sizeof *data || (room > 1 && attribute != ACCESSED_BY))
        return failed(cudaErrorInvalidValue);
    status error = ASK(&reply, OP_RANGE_ATTRIBUTE, U(pointer), count, attribute);
    for (size_t index = 0; !error && index < room; index++)
        data[index] = index < reply.count ? (int)reply.value[index] : NO_DEVICE;
    return error;
}

API status cudaMemRangeGetAttribute(void *data, size_t size, int attribute, const void *pointer, size_t count)
{
    return range_attribute(data, size, attribute, pointer, count);
}

API status cudaMemRangeGetAttributes(void **data, size_t *sizes, int *attributes, size_t number, const void *pointer,
                                     size_t count)
{
    status error = data && sizes && attributes && number ? cudaSuccess : failed(cudaErrorInvalidValue);
    for (size_t index = 0; !error && index < number; index++)
        error = range_attribute(data[index], sizes[index], attributes[index], pointer, count);
    return error;
}

API status cudaStreamAttachMemAsync(handle stream, void *pointer, size_t length, unsigned flags)
{
    enum { GLOBAL = 1, HOST = 2, SINGLE = 4 };
    if ((flags != GLOBAL && flags != HOST && flags != SINGLE) || (flags == SINGLE && !stream))
        return failed(cudaErrorInvalidValue);
    TELL(OP_ATTACH, U(pointer), length);
}
