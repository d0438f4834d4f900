/* Structures of cuda.h that describe copies, as a 64-bit program passes them. `address` is CUdeviceptr. */

/* CUDA_MEMCPY2D */
struct rectangle {
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    address from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind;
    void *to_host;
    address to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};

/* CUDA_MEMCPY3D */
struct box {
    size_t from_x, from_y, from_z, from_level;
    int from_kind;
    const void *from_host;
    address from_device;
    void *from_array, *from_reserved;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_level;
    int to_kind;
    void *to_host;
    address to_device;
    void *to_array, *to_reserved;
    size_t to_pitch, to_height;
    size_t width, height, depth;
};
