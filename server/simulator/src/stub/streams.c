/* Streams, events, and the capture of streams into graphs. */

API status cudaStreamCreateWithPriority(handle *stream, unsigned flags, int priority)
{
    TELL_RESULT(stream, handle, OP_STREAM_CREATE, flags, priority);
}

API status cudaStreamCreate(handle *stream)
{
    return cudaStreamCreateWithPriority(stream, 0, 0);
}

API status cudaStreamCreateWithFlags(handle *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

API status cudaStreamDestroy(handle stream)
{
    TELL(OP_STREAM_DESTROY, U(stream));
}

API status cudaStreamSynchronize(handle stream)
{
    TELL(OP_STREAM_SYNCHRONIZE, U(stream));
}

API status cudaStreamQuery(handle stream)
{
    TELL(OP_STREAM_QUERY, U(stream));
}

API status cudaStreamWaitEvent(handle stream, handle event, unsigned flags)
{
    TELL(OP_STREAM_WAIT, U(stream), U(event), flags);
}

API status cudaStreamGetFlags(handle stream, unsigned *flags)
{
    TELL_RESULT(flags, unsigned, OP_STREAM_GET, U(stream), 0);
}

API status cudaStreamGetPriority(handle stream, int *priority)
{
    TELL_RESULT(priority, int, OP_STREAM_GET, U(stream), 1);
}

API status cudaStreamGetId(handle stream, unsigned long long *id)
{
    TELL_RESULT(id, unsigned long long, OP_STREAM_GET, U(stream), 2);
}

API status cudaStreamGetDevice(handle stream, int *device)
{
    TELL_RESULT(device, int, OP_STREAM_GET, U(stream), 3);
}

/* Attributes of streams are hints (L2 windows, how to wait, domains of fences): set and forgotten. */
API status cudaStreamSetAttribute(handle stream, int attribute, const void *value)
{
    (void)attribute;
    if (!value)
        return failed(cudaErrorInvalidValue);
    TELL(OP_STREAM_GET, U(stream), 0);
}

API status cudaStreamCopyAttributes(handle to, handle from)
{
    (void)to;
    TELL(OP_STREAM_GET, U(from), 0);
}

API status cudaEventCreateWithFlags(handle *event, unsigned flags)
{
    TELL_RESULT(event, handle, OP_EVENT_CREATE, flags);
}

API status cudaEventCreate(handle *event)
{
    return cudaEventCreateWithFlags(event, 0);
}

API status cudaEventDestroy(handle event)
{
    TELL(OP_EVENT_DESTROY, U(event));
}

API status cudaEventRecord(handle event, handle stream)
{
    TELL(OP_EVENT_RECORD, U(event), U(stream), 0);
}

API status cudaEventRecordWithFlags(handle event, handle stream, unsigned flags)
{
    TELL(OP_EVENT_RECORD, U(event), U(stream), flags);
}

API status cudaEventSynchronize(handle event)
{
    TELL(OP_EVENT_SYNCHRONIZE, U(event));
}

API status cudaEventQuery(handle event)
{
    TELL(OP_EVENT_QUERY, U(event));
}

API status cudaEventElapsedTime(float *milliseconds, handle start, handle end)
{
    struct reply reply;
    if (!milliseconds)
        return failed(cudaErrorInvalidValue);
    status error = ASK(&reply, OP_EVENT_ELAPSED, U(start), U(end));
    if (!error)
        *milliseconds = (float)((double)(int64_t)reply.value[0] / 1e6);
    return error;
}

#if CUDART < 13
API status cudaEventElapsedTime_v2(float *milliseconds, handle start, handle end)
{
    return cudaEventElapsedTime(milliseconds, start, end);
}
#endif

API status cudaStreamBeginCapture(handle stream, int mode)
{
    TELL(OP_CAPTURE_BEGIN, U(stream), mode, 0);
}

API status cudaStreamEndCapture(handle stream, handle *graph)
{
    struct reply reply;
    status error = ASK(&reply, OP_CAPTURE_END, U(stream), graph != 0);
    if (graph)
        *graph = error ? 0 : (handle)(uintptr_t)reply.value[0];
    return error;
}

API status cudaStreamIsCapturing(handle stream, int *state)
{
    TELL_RESULT(state, int, OP_CAPTURE_STATE, U(stream));
}

API status cudaThreadExchangeStreamCaptureMode(int *mode)
{
    if (!mode)
        return failed(cudaErrorInvalidValue);
    TELL_RESULT(mode, int, OP_CAPTURE_EXCHANGE_MODE, *mode);
}

static status capture_info(handle stream, int *state, unsigned long long *id, handle *graph, const handle **dependencies,
                           size_t *count)
{
    static _Thread_local handle *kept; /* valid until the next call of this thread */
    struct reply reply;
    if (!state)
        return failed(cudaErrorInvalidValue);
    status error = ask_bytes(&reply, OP_CAPTURE_STATE, LIST(U(stream)) + 1, 1, 0, 0);
    if (error)
        return error;
    *state = (int)reply.value[0];
    free(kept);
    kept = reply.bytes;
    if (id)
        *id = reply.value[1];
    if (graph)
        *graph = (handle)(uintptr_t)reply.value[2];
    if (dependencies)
        *dependencies = kept;
    if (count)
        *count = reply.size / sizeof(handle);
    return cudaSuccess;
}

#if CUDART >= 13
API status cudaStreamGetCaptureInfo(handle stream, int *state, unsigned long long *id, handle *graph,
                                    const handle **dependencies, const void **edges, size_t *count)
{
    if (edges)
        *edges = 0;
    return capture_info(stream, state, id, graph, dependencies, count);
}
#else
API status cudaStreamGetCaptureInfo(handle stream, int *state, unsigned long long *id)
{
    return capture_info(stream, state, id, 0, 0, 0);
}

API status cudaStreamGetCaptureInfo_v2(handle stream, int *state, unsigned long long *id, handle *graph,
                                       const handle **dependencies, size_t *count)
{
    return capture_info(stream, state, id, graph, dependencies, count);
}

API status cudaStreamGetCaptureInfo_v3(handle stream, int *state, unsigned long long *id, handle *graph,
                                       const handle **dependencies, const void **edges, size_t *count)
{
    if (edges)
        *edges = 0;
    return capture_info(stream, state, id, graph, dependencies, count);
}
#endif
