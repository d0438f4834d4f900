/* A copy, whichever function it was asked of: which way it goes, where its bytes lie in the program's memory, and what is done about
 * it. An input is copied from a changed copy of its bytes, never changed where it lies; an output is sent on once it has come. */

#include <sys/uio.h>

enum shape { PLAIN, INTO_ARRAY, FROM_ARRAY, RECTANGLE, BOX };
enum direction { NEITHER, TO_DEVICE, TO_HOST, BY_ADDRESS };
enum place { PAGEABLE, PINNED, MANAGED, DEVICE };

struct call {
    void *real;
    enum shape shape;
    enum direction direction;
    int asynchronous, per_thread;
    stream stream;
    address to, from; /* of an array: its handle */
    size_t offset, size;
    const struct rectangle *rectangle;
    const struct box *box;
};

/* The driver may call its own functions by their names. */
static _Thread_local int inside;

#define CALL(function, types, ...) ((result(*) types)(function))(__VA_ARGS__)

static result perform(const struct call *c)
{
    if (!c->real)
        return NOT_FOUND;
    switch (c->shape) {
    case PLAIN:
        return c->asynchronous ? CALL(c->real, (address, address, size_t, stream), c->to, c->from, c->size, c->stream)
                               : CALL(c->real, (address, address, size_t), c->to, c->from, c->size);
    case INTO_ARRAY:
        return c->asynchronous
                   ? CALL(c->real, (address, size_t, address, size_t, stream), c->to, c->offset, c->from, c->size, c->stream)
                   : CALL(c->real, (address, size_t, address, size_t), c->to, c->offset, c->from, c->size);
    case FROM_ARRAY:
        return c->asynchronous
                   ? CALL(c->real, (address, address, size_t, size_t, stream), c->to, c->from, c->offset, c->size, c->stream)
                   : CALL(c->real, (address, address, size_t, size_t), c->to, c->from, c->offset, c->size);
    case RECTANGLE:
        return c->asynchronous ? CALL(c->real, (const struct rectangle *, stream), c->rectangle, c->stream)
                               : CALL(c->real, (const struct rectangle *), c->rectangle);
    case BOX:
        return c->asynchronous ? CALL(c->real, (const struct box *, stream), c->box, c->stream)
                               : CALL(c->real, (const struct box *), c->box);
    }
    return NOT_FOUND;
}

static enum place place(address at)
{
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8 }; /* CUpointer_attribute */
    uint64_t managed = 0, type = 0;
    if (!helper_cuPointerGetAttribute)
        return PAGEABLE;
    if (!CALL(helper_cuPointerGetAttribute, (void *, int, address), &managed, IS_MANAGED, at) && managed)
        return MANAGED;
    if (CALL(helper_cuPointerGetAttribute, (void *, int, address), &type, MEMORY_TYPE, at))
        return PAGEABLE;
    return type == KIND_HOST ? PINNED : type == KIND_DEVICE ? DEVICE : PAGEABLE;
}

/* Which way a copy between two addresses goes: as in the simulator, managed memory is the device's beside the host's, and the
 * host's beside the device's. */
static enum direction between(enum place to, enum place from)
{
    if (from == DEVICE)
        return to == DEVICE ? NEITHER : TO_HOST;
    if (from == MANAGED)
        return to == DEVICE ? TO_DEVICE : to == MANAGED ? NEITHER : TO_HOST;
    return to == DEVICE || to == MANAGED ? TO_DEVICE : NEITHER;
}

static enum place place_of(int kind, address at)
{
    switch (kind) {
    case KIND_HOST:
        return PAGEABLE;
    case KIND_UNIFIED:
        return place(at);
    default:
        return DEVICE;
    }
}

static struct rows flat(address start, size_t size)
{
    return (struct rows){(char *)(uintptr_t)start, size, 1, 1, size, size};
}

/* Rows of a rectangle or a box on one side; a pitch or a height that is not said is that of the copy. */
static struct rows rows_from(char *start, const size_t at[3], size_t pitch, size_t height, const size_t extent[3])
{
    struct rows rows = {start, extent[0], extent[1], extent[2], pitch ? pitch : at[0] + extent[0], 0};
    rows.slice = rows.pitch * (height ? height : at[1] + extent[1]);
    rows.start += at[0] + at[1] * rows.pitch + at[2] * rows.slice;
    return rows;
}

static enum direction describe_rectangle(const struct rectangle *r, struct rows *rows)
{
    const size_t extent[3] = {r->width, r->height, 1}, from[3] = {r->from_x, r->from_y, 0}, to[3] = {r->to_x, r->to_y, 0};
    enum direction way = between(place_of(r->to_kind, r->to_device), place_of(r->from_kind, r->from_device));
    char *source = r->from_kind == KIND_HOST ? (char *)r->from_host : (char *)(uintptr_t)r->from_device;
    char *target = r->to_kind == KIND_HOST ? r->to_host : (char *)(uintptr_t)r->to_device;
    *rows = way == TO_DEVICE ? rows_from(source, from, r->from_pitch, 0, extent) : rows_from(target, to, r->to_pitch, 0, extent);
    return way;
}

static enum direction describe_box(const struct box *b, struct rows *rows)
{
    const size_t extent[3] = {b->width, b->height, b->depth};
    const size_t from[3] = {b->from_x, b->from_y, b->from_z}, to[3] = {b->to_x, b->to_y, b->to_z};
    enum direction way = between(place_of(b->to_kind, b->to_device), place_of(b->from_kind, b->from_device));
    char *source = b->from_kind == KIND_HOST ? (char *)b->from_host : (char *)(uintptr_t)b->from_device;
    char *target = b->to_kind == KIND_HOST ? b->to_host : (char *)(uintptr_t)b->to_device;
    *rows = way == TO_DEVICE ? rows_from(source, from, b->from_pitch, b->from_height, extent)
                             : rows_from(target, to, b->to_pitch, b->to_height, extent);
    return way;
}

/* Which way a call copies, and the rows on the program's side. */
static enum direction describe(const struct call *c, struct rows *rows)
{
    enum direction way = c->direction;
    if (c->shape == RECTANGLE)
        return c->rectangle ? describe_rectangle(c->rectangle, rows) : NEITHER;
    if (c->shape == BOX)
        return c->box ? describe_box(c->box, rows) : NEITHER;
    if (way == BY_ADDRESS)
        way = between(place(c->to), place(c->from));
    *rows = flat(way == TO_DEVICE ? c->from : c->to, c->size);
    return way;
}

/* While a thread captures a stream, calls that could disturb the capture are refused, also on other streams. */
static int relax(int mode)
{
    if (helper_cuThreadExchangeStreamCaptureMode)
        CALL(helper_cuThreadExchangeStreamCaptureMode, (int *), &mode);
    return mode;
}

static result synchronize(const struct call *c)
{
    enum { RELAXED = 2 }; /* CUstreamCaptureMode */
    void *function = c->per_thread ? helper_cuStreamSynchronize_ptsz : helper_cuStreamSynchronize;
    int mode = relax(RELAXED);
    result error = function ? CALL(function, (stream), c->stream) : NOT_FOUND;
    relax(mode);
    return error;
}

/* Calls a function when the stream has come so far; at once where that can't be asked for. */
static void afterwards(const struct call *c, void (*function)(void *), void *data)
{
    void *launch = c->per_thread ? helper_cuLaunchHostFunc_ptsz : helper_cuLaunchHostFunc;
    if (launch && !CALL(launch, (stream, void (*)(void *), void *), c->stream, function, data))
        return;
    synchronize(c);
    function(data);
}

/* A copy in a stream that is being captured does not happen now. */
enum capture { NOT_CAPTURED, CAPTURED_NOW, UNKNOWN };

static enum capture captured(const struct call *c)
{
    void *function = c->per_thread ? helper_cuStreamIsCapturing_ptsz : helper_cuStreamIsCapturing;
    int status = 0;
    if (!function)
        return NOT_CAPTURED;
    if (CALL(function, (stream, int *), c->stream, &status))
        return UNKNOWN;
    return status ? CAPTURED_NOW : NOT_CAPTURED;
}

/* Whether memory is there to be read: the driver answers a wrong pointer with an error, not with a signal. */
static int readable(const struct rows *rows)
{
    char *last = rows->start + (rows->depth - 1) * rows->slice + (rows->height - 1) * rows->pitch + rows->width - 1;
    char bytes[2];
    struct iovec here = {bytes, 2}, there[2] = {{rows->start, 1}, {last, 1}};
    ssize_t read = process_vm_readv(getpid(), &here, 1, there, 2, 0);
    return read == 2 || (read < 0 && errno != EFAULT); /* a sandbox may forbid to ask */
}

static void gather(char *to, const struct rows *rows)
{
    for (size_t z = 0; z < rows->depth; z++)
        for (size_t y = 0; y < rows->height; y++, to += rows->width)
            memcpy(to, rows->start + z * rows->slice + y * rows->pitch, rows->width);
}

/* The call with `bytes`, which lie side by side, as its source. */
static result perform_from(const struct call *c, char *bytes)
{
    struct call other = *c;
    struct rectangle rectangle;
    struct box box;
    other.from = (address)(uintptr_t)bytes;
    if (c->shape == RECTANGLE) {
        rectangle = *c->rectangle;
        rectangle.from_x = rectangle.from_y = 0;
        rectangle.from_kind = KIND_HOST;
        rectangle.from_host = bytes;
        rectangle.from_pitch = rectangle.width;
        other.rectangle = &rectangle;
    } else if (c->shape == BOX) {
        box = *c->box;
        box.from_x = box.from_y = box.from_z = 0;
        box.from_kind = KIND_HOST;
        box.from_host = bytes;
        box.from_pitch = box.width;
        box.from_height = box.height;
        other.box = &box;
    }
    return perform(&other);
}

static result copy_in(const struct call *c, const struct rows *rows)
{
    size_t size = rows->width * rows->height * rows->depth;
    enum place source = place((address)(uintptr_t)rows->start);
    if (inputs_over() || source == DEVICE || !readable(rows))
        return perform(c);
    /* What lies in memory that the device can write may still be on its way there. */
    if (source != PAGEABLE && synchronize(c))
        return perform(c);
    char *bytes = malloc(size);
    if (!bytes) {
        tell_unseen(UNSEEN_MEMORY);
        return perform(c);
    }
    gather(bytes, rows);
    if (!offer_input(bytes, size)) {
        free(bytes);
        return perform(c);
    }
    result error = perform_from(c, bytes);
    if (c->asynchronous && !error)
        afterwards(c, free, bytes);
    else
        free(bytes);
    return error;
}

struct delivery {
    uint64_t ticket;
    struct rows rows;
};

static void deliver(void *data)
{
    struct delivery *delivery = data;
    deliver_output(delivery->ticket, &delivery->rows);
    free(delivery);
}

static result copy_out(const struct call *c, const struct rows *rows)
{
    enum place target = place((address)(uintptr_t)rows->start);
    if (target == DEVICE)
        return perform(c);
    /* The place in the record is that of the call: in which order streams come to an end is chance. */
    uint64_t ticket = announce_output(rows->width * rows->height * rows->depth);
    result error = perform(c);
    if (error || ticket == NO_TICKET)
        return error;
    struct delivery *delivery = c->asynchronous ? malloc(sizeof *delivery) : 0;
    if (delivery) {
        *delivery = (struct delivery){ticket, *rows};
        afterwards(c, deliver, delivery);
        return error;
    }
    /* A copy into managed memory is one within the device, for which nobody waits. */
    if (!c->asynchronous && target != MANAGED)
        deliver_output(ticket, rows);
    else if (!synchronize(c))
        deliver_output(ticket, rows);
    return error;
}

static result copy(const struct call *c)
{
    struct rows rows;
    if (inside || !watched())
        return perform(c);
    inside = 1;
    result error;
    enum direction way = describe(c, &rows);
    enum capture capture = way == NEITHER || !rows.width || !rows.height || !rows.depth ? UNKNOWN : captured(c);
    if (capture == CAPTURED_NOW)
        tell_unseen(UNSEEN_GRAPH);
    if (capture != NOT_CAPTURED)
        error = perform(c);
    else
        error = way == TO_DEVICE ? copy_in(c, &rows) : copy_out(c, &rows);
    inside = 0;
    return error;
}
