/* What the parts of the stub share. The stub stands where libcudart would: it hands each call to the simulator's process
 * and does only what must happen in the program's own: copies from and to its memory, and calls of its functions.
 * CUDART is 12 or 13: which runtime this is. No header of the toolkit is used; the structures here are those that the
 * calls below need, laid out as programs pass them. */
#ifndef STITCHCUDA_STUB_H
#define STITCHCUDA_STUB_H

#include <stddef.h>
#include <stdint.h>

#include "protocol.h" /* generated: operations, errors, actions */

#define API __attribute__((visibility("default")))

typedef int status;   /* cudaError_t */
typedef void *handle; /* streams, events, graphs, nodes, pools, functions */
typedef void (*host_function)(void *data);
typedef void (*stream_callback)(handle stream, status error, void *data);

struct dim3 {
    unsigned x, y, z;
};
struct extent {
    size_t width, height, depth;
};
struct position {
    size_t x, y, z;
};
struct pitched {
    void *pointer;
    size_t pitch, width, height;
};
struct copy3d {
    void *from_array;
    struct position from_position;
    struct pitched from;
    void *to_array;
    struct position to_position;
    struct pitched to;
    struct extent extent;
    int kind;
};

/* A rectangle of bytes to copy, the unit of every copy. */
struct copy {
    uint64_t to, from, width, height, depth;
    uint64_t to_pitch, from_pitch, to_slice, from_slice;
};

#define MAX_VALUES 16

/* What the simulator answered. */
struct reply {
    uint64_t value[MAX_VALUES];
    unsigned count; /* of values */
    void *bytes; /* malloc'd; only where asked for with ask_bytes() */
    size_t size;
};

/* Hands a call over, does what the answer says, and remembers an error for cudaGetLastError(). */
status ask(struct reply *reply, unsigned operation, const uint64_t *arguments, unsigned count, const void *blob, size_t size);
/* The same, keeping the answer's bytes: the caller frees them. */
status ask_bytes(struct reply *reply, unsigned operation, const uint64_t *arguments, unsigned count, const void *blob,
                 size_t size);
/* Remembers an error that is known without asking. */
status failed(status error);
/* The error of this thread, and forgets it. */
status take_last_error(void);
status peek_last_error(void);
/* Whether the connection stands; makes it on first use. */
status connected(void);

#define U(value) ((uint64_t)(uintptr_t)(value))
#define LIST(...) ((const uint64_t[]){0, ##__VA_ARGS__})
#define COUNT(...) (sizeof LIST(__VA_ARGS__) / sizeof(uint64_t) - 1)
#define ASK(reply, operation, ...) ask(reply, operation, LIST(__VA_ARGS__) + 1, COUNT(__VA_ARGS__), 0, 0)
#define ASK_WITH(reply, operation, blob, size, ...) \
    ask(reply, operation, LIST(__VA_ARGS__) + 1, COUNT(__VA_ARGS__), blob, size)

/* For calls that return nothing but an error. */
#define TELL(operation, ...) \
    do { \
        struct reply told_; \
        return ASK(&told_, operation, ##__VA_ARGS__); \
    } while (0)
/* For calls with one result. */
#define TELL_RESULT(pointer, type, operation, ...) \
    do { \
        struct reply told_; \
        if (!(pointer)) \
            return failed(cudaErrorInvalidValue); \
        status error_ = ASK(&told_, operation, ##__VA_ARGS__); \
        if (!error_) \
            *(pointer) = (type)told_.value[0]; \
        return error_; \
    } while (0)

/* register.c: sends what was registered since. The connection is locked. */
void send_registrations(void);
/* launch.c: packs arguments as the kernel's parameters lie; the caller frees. */
status pack_parameters(const void *function, void **arguments, void **packed, size_t *size);
/* symbols.c */
status symbol_range(const void *symbol, size_t count, size_t offset, uint64_t *address);
/* memory.c */
status copy3d_from(const struct copy3d *parameters, struct copy *copy);
/* connect.c: the first device address, and how many follow; 0 before the connection stands. */
extern uint64_t region_base, region_length;

#endif
