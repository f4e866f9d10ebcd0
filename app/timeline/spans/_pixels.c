/* What each pixel of lanes shows: what `SpanIndex.pixels` does with arrays, in one pass over the edges.

   The edges of a lane's pixels rise, so that each block of spans is unpacked once and each span is passed
   once, whatever the zoom. Held against NumPy, and against going through the spans one by one, by
   tests/app/timeline/test_span_index.py. What is mapped from a file may be damaged: every place is compared
   with what there is before it is read. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MOST_PER_BLOCK = 64, MOST_BYTES = 8, MOST_KINDS = 256, NO_COLUMN = MOST_KINDS };

typedef struct {
    const uint32_t *first;
    const int64_t *base;
    const uint8_t *rows;
    int64_t num_rows;
} Packed;

typedef struct {
    Packed starts, lengths;
    const uint8_t *state, *kinds, *is_hidden;
    const void *totals;
    const int64_t *offsets;
    uint16_t column_of[256];
    int64_t num_blocks, num_spans, num_lanes;
    int per_block, num_kinds;
    bool is_wide;
} Spans;

/* Where in a lane a time falls. `idx` spans of the section began before it or are of lanes before, and they
   took `sofar` of each kind, as if each had ended; the last goes on for `cut` after it. */
typedef struct {
    int64_t first, last, head, last_head, block, idx, cut;
    int64_t starts[MOST_PER_BLOCK], lengths[MOST_PER_BLOCK];
    uint64_t sofar[MOST_KINDS + 1];
} Place;

typedef struct {
    uint8_t *state, *density;
    uint32_t *count;
} Pixels;

static bool unpack(const Packed *packed, int64_t block, int per_block, int64_t *numbers)
{
    int64_t first = packed->first[block], last = packed->first[block + 1];
    if (first > last || last - first > MOST_BYTES || last > packed->num_rows)
        return false;
    uint64_t found[MOST_PER_BLOCK];
    for (int i = 0; i < per_block; i++)
        found[i] = (uint64_t)packed->base[block];
    const uint8_t *row = packed->rows + first * per_block;
    for (int64_t byte = 0; byte < last - first; byte++, row += per_block)
        for (int i = 0; i < per_block; i++)
            found[i] += (uint64_t)row[i] << (8 * byte);
    memcpy(numbers, found, sizeof(uint64_t) * (size_t)per_block);
    return true;
}

static void enter_lane(const Spans *spans, Place *place, int64_t lane)
{
    place->first = spans->offsets[lane];
    place->last = spans->offsets[lane + 1];
    place->head = (place->first + spans->per_block - 1) / spans->per_block;
    place->last_head = (place->last + spans->per_block - 1) / spans->per_block;
    place->block = -1;
    place->idx = place->first;
    place->cut = 0;
}

/* The first block from `head` on that begins with a span which is of the next lane, or not before `ts`. */
static int64_t head_after(const Spans *spans, const Place *place, int64_t ts)
{
    const int64_t *base = spans->starts.base;
    int64_t low = place->head, step = 1;
    while (low + step <= place->last_head && base[low + step - 1] < ts) {
        low += step;
        step *= 2;
    }
    int64_t high = low + step <= place->last_head ? low + step - 1 : place->last_head;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (base[middle] < ts)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take(const Spans *spans, Place *place, int64_t idx, int64_t within)
{
    place->sofar[spans->column_of[spans->state[idx]]] += (uint64_t)place->lengths[within];
}

static bool enter_block(const Spans *spans, Place *place, int64_t block)
{
    if (!unpack(&spans->starts, block, spans->per_block, place->starts)
        || !unpack(&spans->lengths, block, spans->per_block, place->lengths))
        return false;
    for (int kind = 0; kind < spans->num_kinds; kind++) {
        int64_t at = block * spans->num_kinds + kind;
        place->sofar[kind] = spans->is_wide ? ((const uint64_t *)spans->totals)[at]
                                            : ((const uint32_t *)spans->totals)[at];
    }
    int64_t begin = block * spans->per_block;
    place->block = block;
    place->idx = begin < place->first ? place->first : begin;
    for (int64_t idx = begin; idx < place->idx; idx++)
        take(spans, place, idx, idx - begin);
    return true;
}

/* Go on to a time that is not before the last; false where a block is not where it should be. */
static bool go_to(const Spans *spans, Place *place, int64_t ts)
{
    place->head = head_after(spans, place, ts);
    int64_t block = place->head - 1, before = place->first / spans->per_block;
    if (block < before)
        block = before;
    if (block != place->block && !enter_block(spans, place, block))
        return false;
    int64_t begin = block * spans->per_block, end = begin + spans->per_block;
    if (end > place->last)
        end = place->last;
    for (; place->idx < end && place->starts[place->idx - begin] < ts; place->idx++)
        take(spans, place, place->idx, place->idx - begin);
    place->cut = 0;
    if (place->idx > place->first && place->idx > begin) {
        int64_t within = place->idx - 1 - begin;
        uint64_t until = (uint64_t)place->starts[within] + (uint64_t)place->lengths[within];
        int64_t over = (int64_t)(until - (uint64_t)ts);
        place->cut = over > 0 ? over : 0;
    }
    return true;
}

/* How much there is of each kind from the section's first to the time where a place is. */
static void add_up_to(const Spans *spans, const Place *place, uint64_t *until)
{
    memcpy(until, place->sofar, sizeof(uint64_t) * (size_t)spans->num_kinds);
    if (place->cut)
        until[spans->column_of[spans->state[place->idx - 1]]] -= (uint64_t)place->cut;
}

/* 0..255, at least what is busy. */
static uint8_t share_of(uint64_t busy, double factor)
{
    double share = (double)busy * factor;
    if (share >= 255.0)
        return 255;
    uint8_t whole = (uint8_t)share;
    return (uint8_t)(whole + ((double)whole < share));
}

static void show(const Spans *spans, const Place *place, const uint64_t *from, const uint64_t *until,
                 double factor, uint32_t count, const Pixels *pixels, int64_t x)
{
    uint64_t most = 0, busy = 0;
    uint8_t state = 0;
    for (int column = 0; column < spans->num_kinds; column++) {
        uint64_t amount = until[column] - from[column];
        if (!spans->is_wide)
            amount = (uint32_t)amount; // totals that wrapped around
        if (!amount || spans->is_hidden[spans->kinds[column]])
            continue;
        busy += amount;
        if (amount > most) {
            most = amount;
            state = spans->kinds[column];
        }
    }
    if (!busy && count) { // nothing takes time: the last that began
        state = spans->state[place->idx - 1];
        state = spans->is_hidden[state] ? 0 : state;
    }
    uint8_t density = share_of(busy, factor);
    pixels->state[x] = state;
    pixels->density[x] = !density && count && state ? 1 : density;
    pixels->count[x] = count;
}

static bool paint_lane(const Spans *spans, int64_t lane, const int64_t *edges, int64_t width, Pixels pixels)
{
    Place place = {0};
    uint64_t until[2][MOST_KINDS + 1] = {{0}};
    enter_lane(spans, &place, lane);
    if (place.first == place.last)
        return true;
    for (int64_t edge = 0; edge <= width; edge++) {
        int64_t began = place.idx, cut = place.cut;
        if (!go_to(spans, &place, edges[edge]))
            return false;
        add_up_to(spans, &place, until[edge % 2]);
        if (!edge)
            continue;
        double factor = 255.0 / (double)(edges[edge] - edges[edge - 1]);
        uint32_t count = (uint32_t)(place.idx - began) + (cut > 0);
        show(spans, &place, until[(edge + 1) % 2], until[edge % 2], factor, count, &pixels, edge - 1);
    }
    return true;
}

/* False where a block or a lane is not where it should be. */
static bool paint_lanes(const Spans *spans, const int64_t *lanes, int64_t num, const int64_t *edges,
                        int64_t width, Pixels pixels)
{
    for (int64_t row = 0; row < num; row++) {
        int64_t lane = lanes[row];
        if (lane < 0 || lane >= spans->num_lanes || spans->offsets[lane] < 0
            || spans->offsets[lane] > spans->offsets[lane + 1] || spans->offsets[lane + 1] > spans->num_spans)
            return false;
        Pixels own = {pixels.state + row * width, pixels.density + row * width, pixels.count + row * width};
        if (!paint_lane(spans, lane, edges, width, own))
            return false;
    }
    return true;
}

static void name_columns(Spans *spans)
{
    for (int state = 0; state < 256; state++)
        spans->column_of[state] = NO_COLUMN;
    for (int column = 0; column < spans->num_kinds; column++)
        spans->column_of[spans->kinds[column]] = (uint16_t)column;
}

/* Whether a buffer holds so many numbers of so many bytes; an exception is set where it does not. */
static bool has_whole(const Py_buffer *buffer, Py_ssize_t size, Py_ssize_t num)
{
    if (buffer->len == num * size && (uintptr_t)buffer->buf % (uintptr_t)size == 0)
        return true;
    PyErr_SetString(PyExc_ValueError, "arrays that do not go together");
    return false;
}

enum { START_FIRST, START_BASE, START_ROWS, LENGTH_FIRST, LENGTH_BASE, LENGTH_ROWS, STATE, KINDS, TOTALS,
       OFFSETS, LANES, EDGES, HIDDEN, SHOWN_STATE, DENSITY, COUNT, NUM_BUFFERS };

static bool go_together(const Py_buffer *given, const Spans *spans, int64_t num_pixels)
{
    int64_t num_totals = spans->num_blocks * spans->num_kinds;
    return has_whole(&given[START_FIRST], sizeof(uint32_t), spans->num_blocks + 1)
           && has_whole(&given[START_BASE], sizeof(int64_t), spans->num_blocks)
           && has_whole(&given[LENGTH_FIRST], sizeof(uint32_t), spans->num_blocks + 1)
           && has_whole(&given[LENGTH_BASE], sizeof(int64_t), spans->num_blocks)
           && has_whole(&given[STATE], 1, spans->num_blocks * spans->per_block)
           && has_whole(&given[TOTALS], spans->is_wide ? sizeof(uint64_t) : sizeof(uint32_t), num_totals)
           && has_whole(&given[OFFSETS], sizeof(int64_t), spans->num_lanes + 1)
           && has_whole(&given[LANES], sizeof(int64_t), given[LANES].len / (Py_ssize_t)sizeof(int64_t))
           && has_whole(&given[EDGES], sizeof(int64_t), given[EDGES].len / (Py_ssize_t)sizeof(int64_t))
           && has_whole(&given[HIDDEN], 1, 256) && has_whole(&given[SHOWN_STATE], 1, num_pixels)
           && has_whole(&given[DENSITY], 1, num_pixels) && has_whole(&given[COUNT], sizeof(uint32_t), num_pixels);
}

PyDoc_STRVAR(paint_doc,
"paint(start_first, start_base, start_rows, length_first, length_base, length_rows, state, kinds, totals,\n"
"      offsets, lanes, edges, hidden, shown_state, density, count, num_spans, per_block)\n--\n\n"
"Fill `shown_state`, `density` (of 1 byte) and `count` (of 4), [lanes, edges - 1], for rising edges.\n\n"
"The first ten are the columns of spans; `totals` are of 4 or 8 bytes. `hidden` has a byte for each\n"
"of 256 states. A pixel that is not filled, in a lane without spans, keeps what it has.");

static PyObject *paint(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer b[NUM_BUFFERS];
    long long num_spans;
    int per_block;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*y*y*y*y*y*y*w*w*w*Li:paint", &b[0], &b[1], &b[2], &b[3], &b[4],
                          &b[5], &b[6], &b[7], &b[8], &b[9], &b[10], &b[11], &b[12], &b[13], &b[14], &b[15],
                          &num_spans, &per_block))
        return NULL;
    const Py_ssize_t wide = sizeof(int64_t);
    int64_t num_blocks = b[START_BASE].len / wide, num_kinds = b[KINDS].len;
    int64_t num_lanes = b[LANES].len / wide, num_edges = b[EDGES].len / wide;
    bool is_right = false;
    if (per_block <= 0 || per_block > MOST_PER_BLOCK || num_kinds > MOST_KINDS || num_edges < 2
        || b[OFFSETS].len < wide || num_spans < 0 || num_spans > num_blocks * per_block)
        PyErr_SetString(PyExc_ValueError, "spans, blocks, kinds or edges of a number that is not for here");
    else {
        Spans spans = {
            {b[START_FIRST].buf, b[START_BASE].buf, b[START_ROWS].buf, b[START_ROWS].len / per_block},
            {b[LENGTH_FIRST].buf, b[LENGTH_BASE].buf, b[LENGTH_ROWS].buf, b[LENGTH_ROWS].len / per_block},
            b[STATE].buf, b[KINDS].buf, b[HIDDEN].buf, b[TOTALS].buf, b[OFFSETS].buf, {0}, num_blocks, num_spans,
            b[OFFSETS].len / wide - 1, per_block, (int)num_kinds,
            b[TOTALS].len != num_blocks * num_kinds * (Py_ssize_t)sizeof(uint32_t)};
        Pixels pixels = {b[SHOWN_STATE].buf, b[DENSITY].buf, b[COUNT].buf};
        if (go_together(b, &spans, num_lanes * (num_edges - 1))) {
            name_columns(&spans);
            Py_BEGIN_ALLOW_THREADS
            is_right = paint_lanes(&spans, b[LANES].buf, num_lanes, b[EDGES].buf, num_edges - 1, pixels);
            Py_END_ALLOW_THREADS
            if (!is_right)
                PyErr_SetString(PyExc_ValueError, "a block or a lane that is not among the spans");
        }
    }
    for (int i = 0; i < NUM_BUFFERS; i++)
        PyBuffer_Release(&b[i]);
    return is_right ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef methods[] = {
    {"paint", paint, METH_VARARGS, paint_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_pixels",
    .m_doc = "What each pixel of lanes shows.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__pixels(void) { return PyModuleDef_Init(&module); }
