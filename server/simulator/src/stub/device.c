/* The device, its limits and attributes, errors and versions. */

API status cudaGetLastError(void)
{
    return take_last_error();
}

API status cudaPeekAtLastError(void)
{
    return peek_last_error();
}

/* error_table.h is generated: number, name, text. */
struct error_text {
    status number;
    const char *name, *text;
};
static const struct error_text error_texts[] = {
#include "error_table.h"
};

static const struct error_text *find_error(status error)
{
    for (size_t index = 0; index < sizeof error_texts / sizeof *error_texts; index++)
        if (error_texts[index].number == error)
            return &error_texts[index];
    return 0;
}

API const char *cudaGetErrorName(status error)
{
    const struct error_text *found = find_error(error);
    return found ? found->name : "unrecognized error code";
}

API const char *cudaGetErrorString(status error)
{
    const struct error_text *found = find_error(error);
    return found ? found->text : "unrecognized error code";
}

API status cudaGetDeviceCount(int *count)
{
    if (!count)
        return failed(cudaErrorInvalidValue);
    /* The one question that is answered in functions of streams too, and in children. */
    status error = inside_callback || is_forked() ? cudaSuccess : connected();
    *count = error ? 0 : 1;
    return failed(error);
}

static status check_device(int device)
{
    status error = connected();
    return failed(error ? error : device ? cudaErrorInvalidDevice : cudaSuccess);
}

API status cudaSetDevice(int device)
{
    status error = check_device(device);
    if (error)
        return error;
    TELL(OP_DEVICE_CHECK, 0);
}

API status cudaGetDevice(int *device)
{
    if (!device)
        return failed(cudaErrorInvalidValue);
    *device = 0;
    return failed(connected());
}

API status cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
    (void)device_flags, (void)flags;
    return check_device(device);
}

API status cudaSetValidDevices(int *devices, int count)
{
    if (count < 0 || (count && !devices))
        return failed(cudaErrorInvalidValue);
    for (int index = 0; index < count; index++)
        if (devices[index])
            return failed(cudaErrorInvalidValue);
    return failed(connected());
}

API status cudaChooseDevice(int *device, const void *properties)
{
    if (!device || !properties)
        return failed(cudaErrorInvalidValue);
    *device = 0;
    return is_forked() ? cudaSuccess : failed(connected());
}

static status device_properties(void *properties, int device)
{
    struct reply reply;
    if (!properties)
        return failed(cudaErrorInvalidValue);
    if (is_forked() && device)
        return failed(cudaErrorInvalidDevice);
    if (is_forked() && kept_properties.bytes) {
        memcpy(properties, kept_properties.bytes, kept_properties.size);
        return cudaSuccess;
    }
    status error = ask_bytes(&reply, OP_DEVICE_PROPERTIES, LIST(device) + 1, 1, 0, 0);
    if (!error)
        memcpy(properties, reply.bytes, reply.size);
    free(reply.bytes);
    return error;
}

#if CUDART < 13
/* Programs built against CUDA 11 call this one, whose structure is shorter: its end is not written. */
API status cudaGetDeviceProperties(void *properties, int device)
{
    enum { LENGTH_IN_CUDA_11 = 728 };
    char whole[2048];
    status error = properties ? device_properties(whole, device) : failed(cudaErrorInvalidValue);
    if (!error)
        memcpy(properties, whole, LENGTH_IN_CUDA_11);
    return error;
}

API status cudaGetDeviceProperties_v2(void *properties, int device)
{
    return device_properties(properties, device);
}
#else
API status cudaGetDeviceProperties(void *properties, int device)
{
    return device_properties(properties, device);
}
#endif

API status cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    TELL_RESULT(value, int, OP_DEVICE_ATTRIBUTE, attribute, device);
}

API status cudaDeviceSynchronize(void)
{
    TELL(OP_DEVICE_SYNCHRONIZE);
}

API status cudaDeviceReset(void)
{
    TELL(OP_DEVICE_RESET);
}

API status cudaSetDeviceFlags(unsigned flags)
{
    TELL(OP_DEVICE_SET_FLAGS, flags);
}

API status cudaGetDeviceFlags(unsigned *flags)
{
    TELL_RESULT(flags, unsigned, OP_DEVICE_GET_FLAGS);
}

API status cudaDeviceGetLimit(size_t *value, int limit)
{
    TELL_RESULT(value, size_t, OP_LIMIT_GET, limit);
}

API status cudaDeviceSetLimit(int limit, size_t value)
{
    TELL(OP_LIMIT_SET, limit, value);
}

API status cudaDeviceGetCacheConfig(int *configuration)
{
    TELL_RESULT(configuration, int, OP_DEVICE_CHECK, 0);
}

API status cudaDeviceSetCacheConfig(int configuration)
{
    return configuration < 0 || configuration > 3 ? failed(cudaErrorInvalidValue) : failed(connected());
}

API status cudaDeviceGetSharedMemConfig(int *configuration)
{
    enum { FOUR_BYTE_BANKS = 1 };
    if (!configuration)
        return failed(cudaErrorInvalidValue);
    *configuration = FOUR_BYTE_BANKS;
    return failed(connected());
}

API status cudaDeviceSetSharedMemConfig(int configuration)
{
    return configuration < 0 || configuration > 2 ? failed(cudaErrorInvalidValue) : failed(connected());
}

API status cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    struct reply reply;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return ASK(&reply, OP_LIMIT_GET, 0);
}

/* Where the device says that it is: attributes 50, 33 and 34. */
#define PCI_PLACE "0000:00:06.0"

API status cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    status error = check_device(device);
    if (error)
        return error;
    if (!text || length < 1)
        return failed(cudaErrorInvalidValue);
    int whole = snprintf(text, (size_t)length, PCI_PLACE);
    return whole < length ? cudaSuccess : failed(cudaErrorInvalidValue);
}

API status cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    if (!device || !text)
        return failed(cudaErrorInvalidValue);
    unsigned domain = 0, bus, slot, function;
    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 &&
        sscanf(text, "%x:%x.%x", &bus, &slot, &function) != 3)
        return failed(cudaErrorInvalidValue);
    *device = 0;
    return domain || bus || slot != 6 || function ? failed(cudaErrorInvalidDevice) : failed(connected());
}

API status cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!can)
        return failed(cudaErrorInvalidValue);
    *can = 0;
    return failed(device || peer ? cudaErrorInvalidDevice : cudaSuccess);
}

API status cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    if (flags)
        return failed(cudaErrorInvalidValue);
    return failed(peer ? cudaErrorInvalidDevice : cudaErrorPeerAccessUnsupported);
}

API status cudaDeviceDisablePeerAccess(int peer)
{
    return failed(peer ? cudaErrorInvalidDevice : cudaErrorPeerAccessNotEnabled);
}

API status cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
    (void)value, (void)attribute, (void)from, (void)to;
    return failed(cudaErrorInvalidDevice);
}

API status cudaDeviceFlushGPUDirectRDMAWrites(int target, int scope)
{
    (void)target, (void)scope;
    return failed(connected());
}

API status cudaCtxResetPersistingL2Cache(void)
{
    return failed(connected());
}

API status cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return failed(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

API status cudaDriverGetVersion(int *version)
{
    return cudaRuntimeGetVersion(version);
}

API status cudaProfilerStart(void)
{
    TELL(OP_PROFILER, 1);
}

API status cudaProfilerStop(void)
{
    TELL(OP_PROFILER, 0);
}

struct channel_format {
    int x, y, z, w, kind;
};

API struct channel_format cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
{
    return (struct channel_format){x, y, z, w, kind};
}

#if CUDART < 13
API status cudaThreadSynchronize(void)
{
    return cudaDeviceSynchronize();
}

API status cudaThreadExit(void)
{
    return cudaDeviceReset();
}

API status cudaThreadGetLimit(size_t *value, int limit)
{
    return cudaDeviceGetLimit(value, limit);
}

API status cudaThreadSetLimit(int limit, size_t value)
{
    return cudaDeviceSetLimit(limit, value);
}

API status cudaThreadGetCacheConfig(int *configuration)
{
    return cudaDeviceGetCacheConfig(configuration);
}

API status cudaThreadSetCacheConfig(int configuration)
{
    return cudaDeviceSetCacheConfig(configuration);
}

API status cudaSetDoubleForDevice(double *value)
{
    return value ? cudaSuccess : failed(cudaErrorInvalidValue);
}

API status cudaSetDoubleForHost(double *value)
{
    return value ? cudaSuccess : failed(cudaErrorInvalidValue);
}
#endif
