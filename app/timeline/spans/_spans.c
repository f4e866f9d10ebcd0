/* Spans of lanes in few bytes: what `packed.py`, `span_columns.py`, `woven.py` and `sublanes.py` do with arrays,
   in one pass over them.

   Each function fills arrays that the caller made, and is held against NumPy by
   tests/app/timeline/spans/test_compiled.py. Sizes are compared before anything is read or written. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PER_BLOCK = 64, MOST_BYTES = 8, MOST_KINDS = 256 };

/* Numbers of a buffer, each of so many bytes; an exception is set where they are not whole. */
static bool has_whole(const Py_buffer *buffer, Py_ssize_t size, Py_ssize_t num)
{
    if (buffer->len == num * size && (uintptr_t)buffer->buf % (uintptr_t)size == 0)
        return true;
    PyErr_SetString(PyExc_ValueError, "arrays that do not go together");
    return false;
}

static inline int width_of(uint64_t most)
{
    int width = 0;
    for (; most; most >>= 8)
        width++;
    return width;
}

/* -- pack ------------------------------------------------------------------------------------- */

static int64_t base_of(const int64_t *numbers, int per_block, bool from_least)
{
    if (!from_least)
        return numbers[0];
    int64_t least = numbers[0], most = numbers[0];
    for (int i = 1; i < per_block; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        most = numbers[i] > most ? numbers[i] : most;
    }
    uint64_t spread = (uint64_t)most - (uint64_t)least;
    return least >= 0 && width_of((uint64_t)most) == width_of(spread) ? 0 : least;
}

/* Fill `base` and `width` of each block, and its bytes; gives how many rows of bytes these are. */
static int64_t pack_blocks(const int64_t *numbers, int64_t num_blocks, int per_block, bool from_least,
                           int64_t *base, uint8_t *width, uint8_t *rows)
{
    uint8_t *row = rows;
    uint64_t above[MOST_PER_BLOCK];
    for (int64_t block = 0; block < num_blocks; block++, numbers += per_block) {
        uint64_t least = (uint64_t)base_of(numbers, per_block, from_least), bits = 0;
        for (int i = 0; i < per_block; i++) {
            above[i] = (uint64_t)numbers[i] - least;
            bits |= above[i];
        }
        base[block] = (int64_t)least;
        width[block] = (uint8_t)width_of(bits);
        for (int byte = 0; byte < width[block]; byte++, row += per_block)
            for (int i = 0; i < per_block; i++)
                row[i] = (uint8_t)(above[i] >> (8 * byte));
    }
    return (row - rows) / per_block;
}

PyDoc_STRVAR(pack_doc,
"pack(numbers, per_block, from_least, base, width, rows)\n--\n\n"
"Pack whole blocks of int64 as `packed_parts` does; `rows` has room for 8 bytes of each number.\n\n"
"Gives how many rows of bytes were filled.");

static PyObject *pack(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer numbers, base, width, rows;
    int per_block, from_least;
    if (!PyArg_ParseTuple(args, "y*ipw*w*w*:pack", &numbers, &per_block, &from_least, &base, &width, &rows))
        return NULL;
    PyObject *found = NULL;
    bool is_size = 0 < per_block && per_block <= MOST_PER_BLOCK;
    int64_t num_blocks = is_size ? numbers.len / ((Py_ssize_t)sizeof(int64_t) * per_block) : 0;
    if (!is_size)
        PyErr_SetString(PyExc_ValueError, "blocks of a size that is not for here");
    else if (has_whole(&numbers, sizeof(int64_t), num_blocks * per_block)
             && has_whole(&base, sizeof(int64_t), num_blocks) && has_whole(&width, 1, num_blocks)
             && has_whole(&rows, 1, num_blocks * per_block * MOST_BYTES)) {
        int64_t num_rows;
        Py_BEGIN_ALLOW_THREADS
        num_rows = pack_blocks(numbers.buf, num_blocks, per_block, from_least, base.buf, width.buf, rows.buf);
        Py_END_ALLOW_THREADS
        found = PyLong_FromLongLong(num_rows);
    }
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&base);
    PyBuffer_Release(&width);
    PyBuffer_Release(&rows);
    return found;
}

/* -- totals ----------------------------------------------------------------------------------- */

typedef struct {
    const uint32_t *first;
    const int64_t *base;
    const uint8_t *rows, *state, *column_of;
    uint64_t *sofar;
    void *totals;
    int64_t num_blocks, num_spans, num_rows;
    int per_block, num_kinds;
    bool is_wide;
} Sums;

/* What is before a block, as wide as the table is: sums that wrapped around are right. */
static void put_totals(const Sums *sums, int64_t block)
{
    for (int kind = 0; kind < sums->num_kinds; kind++) {
        int64_t place = block * sums->num_kinds + kind;
        if (sums->is_wide)
            ((uint64_t *)sums->totals)[place] = sums->sofar[kind];
        else
            ((uint32_t *)sums->totals)[place] = (uint32_t)sums->sofar[kind];
    }
}

/* False where a block is not where it should be. */
static bool sum_blocks(const Sums *sums)
{
    uint64_t length[MOST_PER_BLOCK];
    for (int64_t block = 0; block < sums->num_blocks; block++) {
        int64_t first = sums->first[block], last = sums->first[block + 1];
        if (first > last || last - first > MOST_BYTES || last > sums->num_rows)
            return false;
        put_totals(sums, block);
        for (int i = 0; i < sums->per_block; i++)
            length[i] = (uint64_t)sums->base[block];
        for (int64_t byte = 0; byte < last - first; byte++) {
            const uint8_t *row = sums->rows + (first + byte) * sums->per_block;
            for (int i = 0; i < sums->per_block; i++)
                length[i] += (uint64_t)row[i] << (8 * byte);
        }
        int64_t begin = block * sums->per_block;
        for (int64_t i = begin; i < begin + sums->per_block && i < sums->num_spans; i++) {
            uint8_t column = sums->column_of[sums->state[i]];
            if (column < sums->num_kinds)
                sums->sofar[column] += length[i - begin];
        }
    }
    return true;
}

PyDoc_STRVAR(add_up_doc,
"add_up(first, base, rows, per_block, state, column_of, num_spans, sofar, totals)\n--\n\n"
"Write before each block of lengths how much of each kind there is, and go on from `sofar`.\n\n"
"`first` and `base` are those of the blocks, and `first` has one more; `rows` are all that there\n"
"are. `column_of` has the column of each state. `totals` are of 4 or 8 bytes, `sofar` of 8.");

static PyObject *add_up(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer first, base, rows, state, column_of, sofar, totals;
    int per_block;
    long long num_spans;
    if (!PyArg_ParseTuple(args, "y*y*y*iy*y*Lw*w*:add_up", &first, &base, &rows, &per_block, &state,
                          &column_of, &num_spans, &sofar, &totals))
        return NULL;
    int64_t num_blocks = base.len / (Py_ssize_t)sizeof(int64_t);
    int64_t num_kinds = sofar.len / (Py_ssize_t)sizeof(uint64_t), num_totals = num_blocks * num_kinds;
    bool is_wide = totals.len != num_totals * (Py_ssize_t)sizeof(uint32_t);
    bool is_right = false;
    if (per_block <= 0 || per_block > MOST_PER_BLOCK || num_kinds > MOST_KINDS)
        PyErr_SetString(PyExc_ValueError, "blocks or kinds of a number that is not for here");
    else if (has_whole(&first, sizeof(uint32_t), num_blocks + 1) && has_whole(&base, sizeof(int64_t), num_blocks)
             && has_whole(&state, 1, num_blocks * per_block) && has_whole(&column_of, 1, 256)
             && has_whole(&sofar, sizeof(uint64_t), num_kinds)
             && has_whole(&totals, is_wide ? sizeof(uint64_t) : sizeof(uint32_t), num_totals)) {
        Sums sums = {first.buf, base.buf, rows.buf, state.buf, column_of.buf, sofar.buf, totals.buf,
                     num_blocks, num_spans, rows.len / per_block, per_block, (int)num_kinds, is_wide};
        Py_BEGIN_ALLOW_THREADS
        is_right = sum_blocks(&sums);
        Py_END_ALLOW_THREADS
        if (!is_right)
            PyErr_SetString(PyExc_ValueError, "a block that is not among the rows");
    }
    Py_buffer *const every[] = {&first, &base, &rows, &state, &column_of, &sofar, &totals};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++)
        PyBuffer_Release(every[i]);
    return is_right ? Py_NewRef(Py_None) : NULL;
}

/* -- sub-lanes -------------------------------------------------------------------------------- */

/* The ends of what runs on the sub-lanes of a lane, as leaves of a tree whose nodes are the earliest
   below them: the first sub-lane that is free is found in as many steps as the tree is high. */
typedef struct { int64_t *earliest; int64_t num_leaves; } Running;

static bool clear(Running *running, int64_t num_leaves)
{
    if (num_leaves != running->num_leaves) {
        int64_t *room = realloc(running->earliest, (size_t)num_leaves * 2 * sizeof *room);
        if (!room)
            return false;
        *running = (Running){room, num_leaves};
    }
    for (int64_t node = 0; node < 2 * num_leaves; node++)
        running->earliest[node] = INT64_MIN;
    return true;
}

static void put_end(Running *running, int64_t place, int64_t end)
{
    int64_t node = place + running->num_leaves, *earliest = running->earliest;
    earliest[node] = end;
    while (node > 1) {
        int64_t least = earliest[node] < earliest[node ^ 1] ? earliest[node] : earliest[node ^ 1];
        if (earliest[node /= 2] == least)
            break;
        earliest[node] = least;
    }
}

static bool make_room(Running *running)
{
    Running larger = {NULL, 0};
    if (!clear(&larger, running->num_leaves * 2)) {
        free(larger.earliest);
        return false;
    }
    for (int64_t place = 0; place < running->num_leaves; place++)
        put_end(&larger, place, running->earliest[running->num_leaves + place]);
    free(running->earliest);
    *running = larger;
    return true;
}

/* The first sub-lane on which nothing runs any more; negative where there is no memory. */
static int64_t first_free(Running *running, int64_t start)
{
    if (running->earliest[1] > start && !make_room(running))
        return -1;
    int64_t node = 1;
    while (node < running->num_leaves)
        node = 2 * node + (running->earliest[2 * node] > start);
    return node - running->num_leaves;
}

enum { FEW_LEAVES = 8, FEW_ROWS = 16 };

/* Spans, and the order in which they are gone through: that of the rows where there is no other. */
typedef struct {
    const uint32_t *lane;
    const int64_t *start, *end;
    int64_t num_spans;
    uint32_t *order;
} Spans;

static inline int64_t row_at(const Spans *spans, int64_t place)
{
    return spans->order ? spans->order[place] : place;
}

/* Whether a span of the same lane may stand behind another: by start and falling end. */
static inline bool may_follow(const Spans *spans, int64_t before, int64_t row)
{
    return spans->start[before] < spans->start[row]
        || (spans->start[before] == spans->start[row] && spans->end[before] >= spans->end[row]);
}

static bool are_ordered(const Spans *spans)
{
    for (int64_t row = 1; row < spans->num_spans; row++) {
        if (spans->lane[row] < spans->lane[row - 1]
            || (spans->lane[row] == spans->lane[row - 1] && !may_follow(spans, row - 1, row)))
            return false;
    }
    return true;
}

/* Sort rows of a lane; what may stay where it is stays. Most are stretches that are sorted. */
static void sort_rows(const Spans *spans, uint32_t *rows, int64_t num, uint32_t *room)
{
    if (num <= FEW_ROWS) {
        for (int64_t i = 1; i < num; i++) {
            uint32_t row = rows[i];
            int64_t place = i;
            for (; place && !may_follow(spans, rows[place - 1], row); place--)
                rows[place] = rows[place - 1];
            rows[place] = row;
        }
        return;
    }
    int64_t half = num / 2;
    sort_rows(spans, rows, half, room);
    sort_rows(spans, rows + half, num - half, room);
    if (may_follow(spans, rows[half - 1], rows[half]))
        return;
    memcpy(room, rows, (size_t)half * sizeof *room);
    for (int64_t left = 0, right = half, place = 0; left < half; place++)
        rows[place] = right < num && !may_follow(spans, room[left], rows[right]) ? rows[right++] : room[left++];
}

/* Write the rows by lane; `ends` has room for one number more than there are lanes. */
static void count_out(Spans *spans, const uint32_t *lane, int64_t num_lanes, int64_t *ends, uint32_t *order)
{
    memset(ends, 0, (size_t)(num_lanes + 1) * sizeof *ends);
    for (int64_t row = 0; row < spans->num_spans; row++)
        ends[lane[row] + 1]++;
    for (int64_t each = 0; each < num_lanes; each++)
        ends[each + 1] += ends[each];
    for (int64_t place = 0; place < spans->num_spans; place++) {
        int64_t row = row_at(spans, place);
        order[ends[lane[row]]++] = (uint32_t)row;
    }
}

/* Write the sub-lane of each row, the first that is free, and of each lane how many there are. */
static bool deal_out(const Spans *spans, uint32_t *depth, int64_t *num_sublanes)
{
    Running running = {NULL, 0};
    bool has_room = clear(&running, FEW_LEAVES), is_alone = true;
    int64_t before = 0;
    for (int64_t place = 0; place < spans->num_spans && has_room; place++) {
        int64_t row = row_at(spans, place);
        uint32_t lane = spans->lane[row];
        depth[row] = 0;
        if (!place || lane != spans->lane[before]) {
            is_alone = true;
        } else if (!is_alone || spans->start[row] < spans->end[before]) {
            if (is_alone) {  /* nothing of this lane ran beside another so far */
                has_room = clear(&running, FEW_LEAVES);
                if (has_room)
                    put_end(&running, 0, spans->end[before]);
                is_alone = false;
            }
            int64_t free_one = has_room ? first_free(&running, spans->start[row]) : -1;
            has_room = free_one >= 0 && free_one < INT32_MAX;
            if (has_room) {
                put_end(&running, free_one, spans->end[row]);
                depth[row] = (uint32_t)free_one;
                if (free_one >= num_sublanes[lane])
                    num_sublanes[lane] = free_one + 1;
            }
        }
        before = row;
    }
    free(running.earliest);
    return has_room;
}

enum { AS_GIVEN = 0, ARRANGED = 1, NO_MEMORY = -1, NOT_A_LANE = -2 };

/* What `arrange` does; `sublane` is first the depth of each row, and then the lane that it gets. */
static int arrange(Spans *spans, int64_t num_lanes, uint32_t *order, uint32_t *sublane, int64_t *num_sublanes)
{
    bool is_ordered = are_ordered(spans);
    int64_t first_seen = is_ordered && spans->num_spans ? spans->num_spans - 1 : 0;  /* that is the largest lane */
    for (int64_t row = first_seen; row < spans->num_spans; row++) {
        if (spans->lane[row] >= num_lanes)
            return NOT_A_LANE;
    }
    for (int64_t lane = 0; lane < num_lanes; lane++)
        num_sublanes[lane] = 1;
    int64_t *ends = malloc((size_t)(num_lanes + 1) * sizeof *ends);
    uint32_t *room = is_ordered ? NULL : malloc(((size_t)spans->num_spans / 2 + 1) * sizeof *room);
    int found = !ends || !(room || is_ordered) ? NO_MEMORY : AS_GIVEN;
    if (found == AS_GIVEN && !is_ordered) {
        count_out(spans, spans->lane, num_lanes, ends, order);
        for (int64_t lane = 0, begin = 0; lane < num_lanes; begin = ends[lane++])
            sort_rows(spans, order + begin, ends[lane] - begin, room);
        spans->order = order;
        found = ARRANGED;
    }
    free(room);
    if (found != NO_MEMORY && !deal_out(spans, sublane, num_sublanes))
        found = NO_MEMORY;
    int64_t num_all = 0;
    for (int64_t lane = 0; lane < num_lanes; lane++)
        num_all += num_sublanes[lane];
    bool is_deep = num_all > num_lanes;
    if (found >= AS_GIVEN && (is_deep || found == ARRANGED)) {
        ends[0] = 0;  /* the first sub-lane of each lane */
        for (int64_t lane = 0; lane < num_lanes; lane++)
            ends[lane + 1] = ends[lane] + num_sublanes[lane];
        for (int64_t row = 0; row < spans->num_spans; row++)
            sublane[row] += (uint32_t)ends[spans->lane[row]];
        found = ARRANGED;
    }
    free(ends);
    if (found == ARRANGED && is_deep) {
        uint32_t *last = malloc((size_t)spans->num_spans * sizeof *last);
        ends = malloc((size_t)(num_all + 1) * sizeof *ends);
        if (last && ends) {
            count_out(spans, sublane, num_all, ends, last);
            memcpy(order, last, (size_t)spans->num_spans * sizeof *order);
        } else {
            found = NO_MEMORY;
        }
        free(last);
        free(ends);
    }
    return found;
}

PyDoc_STRVAR(arrange_doc,
"arrange(lane, start, end, order, sublane, num_sublanes)\n--\n\n"
"Order rows by lane, sub-lane, start and falling end; what is the same stays as it was.\n\n"
"Writes the order, the sub-lane of each row as it counts through all lanes, and how many each lane\n"
"has: the first that is free, as `depths` finds it. False where all are as they should be: in order,\n"
"and each lane has one; `order` and `sublane` then hold nothing.");

static PyObject *arrange_spans(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { LANE, START, END, ORDER, SUBLANE, COUNT, NUM_ARRAYS };
    static const Py_ssize_t sizes[COUNT] = {4, 8, 8, 4, 4};
    Py_buffer of[NUM_ARRAYS];
    if (!PyArg_ParseTuple(args, "y*y*y*w*w*w*:arrange", of + LANE, of + START, of + END, of + ORDER,
                          of + SUBLANE, of + COUNT))
        return NULL;
    int64_t num_spans = of[LANE].len / 4, num_lanes = of[COUNT].len / 8;
    bool is_whole = has_whole(of + COUNT, 8, num_lanes);
    for (int i = 0; i < COUNT && is_whole; i++)
        is_whole = has_whole(of + i, sizes[i], num_spans);
    if (is_whole && num_spans > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "arrays that are not of this size at once");
        is_whole = false;
    }
    PyObject *found = NULL;
    if (is_whole) {
        int told;
        Spans spans = {of[LANE].buf, of[START].buf, of[END].buf, num_spans, NULL};
        Py_BEGIN_ALLOW_THREADS
        told = arrange(&spans, num_lanes, of[ORDER].buf, of[SUBLANE].buf, of[COUNT].buf);
        Py_END_ALLOW_THREADS
        if (told == NO_MEMORY)
            PyErr_NoMemory();
        else if (told == NOT_A_LANE)
            PyErr_SetString(PyExc_ValueError, "a lane that is not among the lanes");
        else
            found = PyBool_FromLong(told == ARRANGED);
    }
    for (int i = 0; i < NUM_ARRAYS; i++)
        PyBuffer_Release(of + i);
    return found;
}

/* -- in turn ---------------------------------------------------------------------------------- */

typedef struct {
    const int64_t *held, *begin, *until;
    const uint8_t *own_state;
    const uint32_t *own_ref;
    int64_t *start, *end;
    uint8_t *state;
    uint32_t *ref;
} Woven;

/* Put before each block the time for which it held its core; gives how many spans these are. */
static int64_t weave_blocks(const Woven *all, int64_t num_blocks, uint8_t held_state)
{
    int64_t at = 0;
    for (int64_t i = 0; i < num_blocks; i++) {
        all->start[at] = all->held[i];
        all->end[at] = all->begin[i];
        all->state[at] = held_state;
        all->ref[at] = all->own_ref[i];
        at += all->held[i] < all->begin[i];
        all->start[at] = all->begin[i];
        all->end[at] = all->until[i];
        all->state[at] = all->own_state[i];
        all->ref[at++] = all->own_ref[i];
    }
    return at;
}

PyDoc_STRVAR(weave_doc,
"weave(held, begin, until, own_state, own_ref, held_state, start, end, state, ref)\n--\n\n"
"Fill the last four, twice as long as the others, with blocks from `begin` to `until`, and before\n"
"each, in `held_state`, from `held` on, where that is before. Gives how many spans these are.");

static PyObject *weave(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer held, begin, until, own_state, own_ref, start, end, state, ref;
    unsigned char held_state;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*bw*w*w*w*:weave", &held, &begin, &until, &own_state, &own_ref,
                          &held_state, &start, &end, &state, &ref))
        return NULL;
    int64_t num = held.len / (Py_ssize_t)sizeof(int64_t), num_spans = -1;
    if (has_whole(&held, sizeof(int64_t), num) && has_whole(&begin, sizeof(int64_t), num)
        && has_whole(&until, sizeof(int64_t), num) && has_whole(&own_state, 1, num)
        && has_whole(&own_ref, sizeof(uint32_t), num) && has_whole(&start, sizeof(int64_t), 2 * num)
        && has_whole(&end, sizeof(int64_t), 2 * num) && has_whole(&state, 1, 2 * num)
        && has_whole(&ref, sizeof(uint32_t), 2 * num)) {
        Woven all = {held.buf, begin.buf, until.buf, own_state.buf, own_ref.buf,
                     start.buf, end.buf, state.buf, ref.buf};
        Py_BEGIN_ALLOW_THREADS
        num_spans = weave_blocks(&all, num, held_state);
        Py_END_ALLOW_THREADS
    }
    Py_buffer *const every[] = {&held, &begin, &until, &own_state, &own_ref, &start, &end, &state, &ref};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++)
        PyBuffer_Release(every[i]);
    return num_spans < 0 ? NULL : PyLong_FromLongLong(num_spans);
}

/* -- the module ------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"pack", pack, METH_VARARGS, pack_doc},
    {"add_up", add_up, METH_VARARGS, add_up_doc},
    {"weave", weave, METH_VARARGS, weave_doc},
    {"arrange", arrange_spans, METH_VARARGS, arrange_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_spans",
    .m_doc = "Spans of lanes in few bytes.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__spans(void) { return PyModuleDef_Init(&module); }
