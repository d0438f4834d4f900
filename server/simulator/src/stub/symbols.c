/* Variables of device code, named by the host's shadow of them. */

status symbol_range(const void *symbol, size_t count, size_t offset, uint64_t *address)
{
    struct reply reply;
    status error = ASK(&reply, OP_SYMBOL, U(symbol));
    if (error)
        return error;
    if (!count)
        offset = 0; /* nothing is nowhere */
    if (offset > reply.value[1] || count > reply.value[1] - offset)
        return failed(cudaErrorInvalidValue);
    *address = reply.value[0] + offset;
    return cudaSuccess;
}

API status cudaGetSymbolAddress(void **pointer, const void *symbol)
{
    TELL_RESULT(pointer, void *, OP_SYMBOL, U(symbol));
}

API status cudaGetSymbolSize(size_t *size, const void *symbol)
{
    struct reply reply;
    if (!size)
        return failed(cudaErrorInvalidValue);
    status error = ASK(&reply, OP_SYMBOL, U(symbol));
    if (!error)
        *size = reply.value[1];
    return error;
}

/* The kinds of cudaMemcpyKind. */
enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 3, BY_ADDRESS = 4 };

static status to_symbol(const void *symbol, const void *from, size_t count, size_t offset, int kind, handle stream,
                        int asynchronous)
{
    uint64_t to;
    if (kind != HOST_TO_DEVICE && kind != DEVICE_TO_DEVICE && kind != BY_ADDRESS)
        return failed(cudaErrorInvalidMemcpyDirection);
    status error = symbol_range(symbol, count, offset, &to);
    return error ? error : copy_plain(to, U(from), count, kind, stream, asynchronous);
}

static status from_symbol(void *to, const void *symbol, size_t count, size_t offset, int kind, handle stream,
                          int asynchronous)
{
    uint64_t from;
    if (kind != DEVICE_TO_HOST && kind != DEVICE_TO_DEVICE && kind != BY_ADDRESS)
        return failed(cudaErrorInvalidMemcpyDirection);
    status error = symbol_range(symbol, count, offset, &from);
    return error ? error : copy_plain(U(to), from, count, kind, stream, asynchronous);
}

API status cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset, int kind)
{
    return to_symbol(symbol, from, count, offset, kind, 0, 0);
}

API status cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t count, size_t offset, int kind,
                                   handle stream)
{
    return to_symbol(symbol, from, count, offset, kind, stream, 1);
}

API status cudaMemcpyFromSymbol(void *to, const void *symbol, size_t count, size_t offset, int kind)
{
    return from_symbol(to, symbol, count, offset, kind, 0, 0);
}

API status cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t count, size_t offset, int kind, handle stream)
{
    return from_symbol(to, symbol, count, offset, kind, stream, 1);
}
