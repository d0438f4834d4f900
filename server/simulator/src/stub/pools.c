/* Stream-ordered allocation and its pools. */

API status cudaMallocAsync(void **pointer, size_t size, handle stream)
{
    TELL_RESULT(pointer, void *, OP_MALLOC_ASYNC, size, 0, U(stream));
}

API status cudaMallocFromPoolAsync(void **pointer, size_t size, handle pool, handle stream)
{
    if (!pool)
        return failed(cudaErrorInvalidValue);
    TELL_RESULT(pointer, void *, OP_MALLOC_ASYNC, size, U(pool), U(stream));
}

API status cudaFreeAsync(void *pointer, handle stream)
{
    TELL(OP_FREE_ASYNC, U(pointer), U(stream));
}

/* cudaMemPoolProps, its first fields. */
struct pool_properties {
    int allocation, handles;
    struct location location;
};

API status cudaMemPoolCreate(handle *pool, const struct pool_properties *properties)
{
    enum { PINNED = 1, ON_DEVICE = 1 };
    if (!properties || properties->allocation != PINNED || properties->location.type != ON_DEVICE)
        return failed(cudaErrorInvalidValue);
    if (properties->location.id)
        return failed(cudaErrorInvalidValue);
    TELL_RESULT(pool, handle, OP_POOL_CREATE);
}

API status cudaMemPoolDestroy(handle pool)
{
    TELL(OP_POOL_DESTROY, U(pool));
}

API status cudaDeviceGetDefaultMemPool(handle *pool, int device)
{
    TELL_RESULT(pool, handle, OP_POOL_OF_DEVICE, device, 0);
}

API status cudaDeviceGetMemPool(handle *pool, int device)
{
    TELL_RESULT(pool, handle, OP_POOL_OF_DEVICE, device, 1);
}

API status cudaDeviceSetMemPool(int device, handle pool)
{
    TELL(OP_POOL_SET, device, U(pool));
}

/* The first three attributes are an int, the others 64 bits. */
API status cudaMemPoolGetAttribute(handle pool, int attribute, void *value)
{
    struct reply reply;
    if (!value)
        return failed(cudaErrorInvalidValue);
    status error = ASK(&reply, OP_POOL_GET, U(pool), attribute);
    if (!error && attribute <= 3)
        *(int *)value = (int)reply.value[0];
    else if (!error)
        *(uint64_t *)value = reply.value[0];
    return error;
}

API status cudaMemPoolSetAttribute(handle pool, int attribute, void *value)
{
    if (!value)
        return failed(cudaErrorInvalidValue);
    TELL(OP_POOL_SET_ATTRIBUTE, U(pool), attribute, attribute <= 3 ? (uint64_t)*(int *)value : *(uint64_t *)value);
}

API status cudaMemPoolTrimTo(handle pool, size_t keep)
{
    (void)keep;
    TELL(OP_POOL_GET, U(pool), 7);
}

API status cudaMemPoolSetAccess(handle pool, const void *descriptions, size_t count)
{
    (void)descriptions, (void)count;
    TELL(OP_POOL_GET, U(pool), 7);
}

API status cudaMemPoolGetAccess(int *flags, handle pool, struct location *location)
{
    struct reply reply;
    enum { READ_WRITE = 3 };
    if (!flags || !location || location->id)
        return failed(cudaErrorInvalidValue);
    status error = ASK(&reply, OP_POOL_GET, U(pool), 7);
    if (!error)
        *flags = READ_WRITE;
    return error;
}
