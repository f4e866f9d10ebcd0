/* Trace events, one behind the other, as columns: one pass over their JSON in C.

   What is read here is held against decoding each event by tests/fuzz and
   tests/ingest/readers/chrome/test_event_windows.py. Whatever is unusual is not for this file:
   `scan` then gives None, and the caller decodes. No row is written but within its room. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include "_columns.h"
#include "_json.h"

#define MOST_DEPTH 512
#define MOST_PROBES 64
#define NONE (-1)

enum { EVENT_BYTES = 32 };  /* a window has at most one event for so many bytes, or is decoded */

typedef struct { Place at; uint32_t size; } Slice;

enum Key { PH, NAME, CAT, PID, TID, TS, DUR, ID, ID2, ARGS, NUM_KEYS };
enum { NUM_OF_TEMPLATE = TID + 1 };
enum { TEMPLATE, TS_NS, DUR_NS, HAS_TS, HAS_DUR, ID_TEXT, ID2_TEXT, ARGS_TEXT, CORRELATION, EXTERNAL_ID,
       NUM_COLUMNS };

/* A template: its values, and their hash. */
typedef struct { uint32_t hash; Slice values[NUM_OF_TEMPLATE]; } Template;

/* A time that is left to the caller: of which event, whether it is a duration, and its value. */
typedef struct { int64_t event; bool is_dur; Slice value; } Fallback;

typedef struct {
    Window window;
    Column columns[NUM_COLUMNS];
    int64_t num_events, most_events;
    /* templates, with an open hash table of their numbers */
    Template *templates;
    uint32_t *table;
    int64_t num_templates, most_templates, table_size;
    Fallback *fallbacks;
    int64_t num_fallbacks, most_fallbacks;
    /* what was met in the value that is read */
    Place copied;
    int64_t found[2];
    /* ts and dur of the event that is read */
    Time times[2];
} Scan;

/* Double the room of an array where it is full; false where there is none. */
static bool grow(void **array, int64_t num, int64_t *most, size_t size)
{
    if (num < *most)
        return true;
    int64_t more = *most ? *most * 2 : 256;
    void *larger = realloc(*array, more * size);
    if (!larger)
        return false;
    *array = larger;
    *most = more;
    return true;
}

/* -- args: copied without the line breaks of pretty printing, and searched for two numbers ---- */

static inline void copy_until(Scan *scan, Place at)
{
    Column *args = scan->columns + ARGS_TEXT;
    memcpy(args->text + args->text_size, scan->copied, at - scan->copied);
    args->text_size += at - scan->copied;
}

static inline Place copy_space(Scan *scan, Place at)
{
    while (is_space(byte_at(&scan->window, at))) {
        if (*at == '\n' || *at == '\r') {
            copy_until(scan, at);
            at = scan->copied = behind_space(&scan->window, at);
        } else {
            at++;
        }
    }
    return at;
}

static const char *const SOUGHT[2] = {"correlation\"", "External id\""};
enum { SOUGHT_SIZE = 12, MOST_DIGITS = 18 };

/* Keep the first whole number that has one of two keys; `at` is behind the colon. False where it is
   written with a fraction or an exponent, or in quotes: that is for others to read. */
static inline bool seek(Scan *scan, Place key, Place key_end, Place at)
{
    for (int which = 0; which < 2; which++) {
        if (scan->found[which] != NONE || key_end - key != SOUGHT_SIZE + 1
            || memcmp(key + 1, SOUGHT[which], SOUGHT_SIZE))
            continue;
        Place behind = behind_digits(&scan->window, at);
        uint8_t next = byte_at(&scan->window, behind_space(&scan->window, behind));
        uint8_t second = byte_at(&scan->window, at + 1);
        bool is_quoted = behind == at && next == '"' && (is_digit(second) || second == '.');
        if (is_quoted || (behind > at && (next == '.' || (next | 0x20) == 'e')))
            return false;
        if (behind == at || behind - at > MOST_DIGITS || (next != ',' && next != '}'))
            return true;
        scan->found[which] = number_of(at, behind);
    }
    return true;
}

/* The place behind a key and its colon, where the value begins. */
static inline Place behind_key(Scan *scan, Place at)
{
    if (byte_at(&scan->window, at) != '"')
        return NULL;
    scan->window.is_plain = true;
    Place key = at, key_end = behind_string(&scan->window, at);
    if (!key_end || !scan->window.is_plain)
        return NULL;  /* it may be one that is sought, in disguise */
    at = copy_space(scan, key_end);
    if (byte_at(&scan->window, at) != ':')
        return NULL;
    at = copy_space(scan, at + 1);
    return seek(scan, key, key_end, at) ? at : NULL;
}

/* Copy any value behind the args that are there. */
static Place copy_value(Scan *scan, Place at)
{
    uint8_t closing[MOST_DEPTH];
    uint32_t depth = 0;
    scan->copied = at;
    scan->found[0] = scan->found[1] = NONE;
    for (;;) {
        uint8_t opening = byte_at(&scan->window, at);
        if (opening == '{' || opening == '[') {
            if (depth == MOST_DEPTH)
                return NULL;
            closing[depth++] = opening + 2;  /* as it is in ASCII */
            at = copy_space(scan, at + 1);
            if (byte_at(&scan->window, at) != closing[depth - 1]) {
                if (opening == '{' && !(at = behind_key(scan, at)))
                    return NULL;
                continue;
            }
        } else {
            if (!(at = behind_scalar(&scan->window, at)))
                return NULL;
            if (!depth)
                break;
            at = copy_space(scan, at);
        }
        while (depth && byte_at(&scan->window, at) == closing[depth - 1]) {
            at++;
            if (--depth)
                at = copy_space(scan, at);
        }
        if (!depth)
            break;
        if (byte_at(&scan->window, at) != ',')
            return NULL;
        at = copy_space(scan, at + 1);
        if (closing[depth - 1] == '}' && !(at = behind_key(scan, at)))
            return NULL;
    }
    copy_until(scan, at);
    return at;
}

/* -- the fields of an event ------------------------------------------------------------------- */

static inline int key_at(Place key, Py_ssize_t size)
{
    switch (size) {
    case 2:
        return !memcmp(key, "ph", 2) ? PH : !memcmp(key, "ts", 2) ? TS
             : !memcmp(key, "id", 2) ? ID : NUM_KEYS;
    case 3:
        return !memcmp(key, "pid", 3) ? PID : !memcmp(key, "tid", 3) ? TID
             : !memcmp(key, "dur", 3) ? DUR : !memcmp(key, "cat", 3) ? CAT
             : !memcmp(key, "id2", 3) ? ID2 : NUM_KEYS;
    case 4:
        return !memcmp(key, "name", 4) ? NAME : !memcmp(key, "args", 4) ? ARGS : NUM_KEYS;
    case 7:
        if (!memcmp(key, "bind_id", 7))
            return NONE;  /* the event carries an end of a flow */
        /* fall through */
    default:
        return memchr(key, '\\', size) ? NONE : NUM_KEYS;  /* it may be one of them in disguise */
    }
}

static inline bool is_empty(Slice value)
{
    return !value.size || (value.size == 2 && *value.at == '"')
        || (value.size == 4 && *value.at == 'n');
}

static bool put_fallback(Scan *scan, bool is_dur, Slice value)
{
    if (!grow((void **)&scan->fallbacks, scan->num_fallbacks, &scan->most_fallbacks, sizeof *scan->fallbacks))
        return false;
    scan->fallbacks[scan->num_fallbacks++] = (Fallback){scan->num_events, is_dur, value};
    return true;
}

static bool put_time(Scan *scan, bool is_dur, Slice value)
{
    Time *time = scan->times + is_dur;
    bool is_there = !is_empty(value);
    put_number(scan->columns + TS_NS + is_dur, scan->num_events, time->ns,
               is_there && time->is_within);
    put_bool(scan->columns + HAS_TS + is_dur, scan->num_events, is_there);
    return !is_there || time->is_plain || put_fallback(scan, is_dur, value);
}

static void put_id(Scan *scan, Slice value)
{
    Column *ids = scan->columns + ID_TEXT;
    bool is_there = !is_empty(value);
    if (is_there) {
        bool is_quoted = *value.at == '"';
        memcpy(ids->text + ids->text_size, value.at + is_quoted, value.size - 2 * is_quoted);
        ids->text_size += value.size - 2 * is_quoted;
    }
    put_text(ids, scan->num_events, is_there);
}

/* -- templates ------------------------------------------------------------------------------------ */

static inline uint64_t mixed(uint64_t hash, uint64_t bytes)
{
    hash = (hash ^ bytes) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

/* The last of a value, where it has less than eight bytes; a key is before it. */
static inline uint64_t rest_at(const Scan *scan, Place at, uint32_t left)
{
    return at + left - scan->window.begin >= 8 ? eight_at(at + left - 8) >> (64 - 8 * left) : 0;
}

static uint32_t hash_of(const Scan *scan, const Slice values[])
{
    uint64_t hash = 0;
    for (int key = 0; key < NUM_OF_TEMPLATE; key++) {
        Place at = values[key].at;
        uint32_t left = values[key].size;
        hash = mixed(hash, left);
        if (left >= 64) {  /* four at a time wait less for each other: names of kernels are long */
            uint64_t others[3] = {1, 2, 3};
            for (; left >= 32; at += 32, left -= 32) {
                hash = mixed(hash, eight_at(at));
                for (int i = 0; i < 3; i++)
                    others[i] = mixed(others[i], eight_at(at + 8 + 8 * i));
            }
            hash = mixed(mixed(mixed(hash, others[0]), others[1]), others[2]);
        }
        for (; left >= 8; at += 8, left -= 8)
            hash = mixed(hash, eight_at(at));
        if (left)
            hash = mixed(hash, rest_at(scan, at, left));
    }
    return (uint32_t)(hash >> 32);
}

static bool is_template(const Template *template, uint32_t hash, const Slice values[])
{
    if (template->hash != hash)
        return false;
    for (int key = 0; key < NUM_OF_TEMPLATE; key++) {
        uint32_t size = values[key].size;  /* 0 where there is no value to point at */
        if (template->values[key].size != size
            || (size && memcmp(template->values[key].at, values[key].at, size)))
            return false;
    }
    return true;
}

/* Where a number stands in the table or could be put; NULL where too many are in the way. */
static uint32_t *seat_of(const Scan *scan, uint32_t hash, const Slice values[])
{
    for (int probe = 0; probe < MOST_PROBES; probe++) {
        uint32_t *seat = scan->table + ((hash + probe) & (scan->table_size - 1));
        if (!*seat || (values && is_template(scan->templates + *seat - 1, hash, values)))
            return seat;
    }
    return NULL;
}

static bool grow_table(Scan *scan)
{
    int64_t size = scan->table_size ? scan->table_size * 2 : 1024;
    free(scan->table);
    scan->table = calloc(size, sizeof *scan->table);
    if (!scan->table)
        return false;
    scan->table_size = size;
    for (int64_t number = 0; number < scan->num_templates; number++) {
        uint32_t *seat = seat_of(scan, scan->templates[number].hash, NULL);
        if (!seat)
            return false;
        *seat = (uint32_t)number + 1;
    }
    return true;
}

static bool put_template(Scan *scan, const Slice values[])
{
    if (scan->num_templates * 2 >= scan->table_size && !grow_table(scan))
        return false;
    uint32_t hash = hash_of(scan, values), *seat = seat_of(scan, hash, values);
    if (!seat)
        return false;
    if (!*seat) {
        if (!grow((void **)&scan->templates, scan->num_templates, &scan->most_templates, sizeof *scan->templates))
            return false;
        Template *template = scan->templates + scan->num_templates;
        template->hash = hash;
        memcpy(template->values, values, sizeof template->values);
        *seat = (uint32_t)++scan->num_templates;
    }
    ((uint32_t *)scan->columns[TEMPLATE].values)[scan->num_events] = *seat - 1;
    return true;
}

/* -- events ----------------------------------------------------------------------------------- */

/* Read the values of an event; a key that is there twice, or in disguise, is for others. */
static Place read_fields(Scan *scan, Place at, Slice values[])
{
    int64_t correlation = NONE, external = NONE;
    at = behind_space(&scan->window, at + 1);
    for (bool is_first = true; byte_at(&scan->window, at) != '}'; is_first = false) {
        if (!is_first) {
            if (*at != ',')
                return NULL;
            at = behind_space(&scan->window, at + 1);
        }
        if (byte_at(&scan->window, at) != '"')
            return NULL;
        Place key = at + 1;
        if (!(at = behind_string(&scan->window, at)))
            return NULL;
        int which = key_at(key, at - 1 - key);
        if (which == NONE || (which < NUM_KEYS && values[which].at))
            return NULL;
        at = behind_space(&scan->window, at);
        if (byte_at(&scan->window, at) != ':')
            return NULL;
        at = behind_space(&scan->window, at + 1);
        Place value = at;
        if (which == TS || which == DUR) {
            if (!(at = behind_time(&scan->window, at, &scan->times[which - TS])))
                return NULL;
        } else if (which < ID2) {
            if (!(at = behind_scalar(&scan->window, at)))
                return NULL;
        } else {
            Column *args = scan->columns + ARGS_TEXT, *id2 = scan->columns + ID2_TEXT;
            int64_t size = args->text_size;
            if (!(at = copy_value(scan, at)))
                return NULL;
            if (which == ARGS) {
                correlation = scan->found[0];
                external = scan->found[1];
            } else {
                if (which == ID2) {
                    memcpy(id2->text + id2->text_size, args->text + size, args->text_size - size);
                    id2->text_size += args->text_size - size;
                }
                args->text_size = size;
            }
        }
        if (which < NUM_KEYS)
            values[which] = (Slice){value, (uint32_t)(at - value)};
        at = behind_space(&scan->window, at);
        if (at == scan->window.end)
            return NULL;
    }
    put_number(scan->columns + CORRELATION, scan->num_events, correlation, correlation != NONE);
    put_number(scan->columns + EXTERNAL_ID, scan->num_events, external, external != NONE);
    return at + 1;
}

static inline bool is_text(Slice value) { return value.size && *value.at == '"'; }

static inline bool is_text_or_null(Slice value)
{
    return !value.size || *value.at == '"' || *value.at == 'n';
}

/* End a text that was copied as it was read; what stands for nothing is taken back. */
static void put_copied(Scan *scan, int which, Slice value)
{
    Column *column = scan->columns + which;
    bool is_there = !is_empty(value);
    if (!is_there)
        column->text_size = ((int64_t *)column->values)[scan->num_events];
    put_text(column, scan->num_events, is_there);
}

static Place read_event(Scan *scan, Place at)
{
    Slice values[NUM_KEYS];
    for (int key = 0; key < NUM_KEYS; key++) {
        values[key].at = NULL;
        values[key].size = 0;
    }
    scan->times[0] = scan->times[1] = (Time){0, false, false};
    if (scan->num_events == scan->most_events || byte_at(&scan->window, at) != '{')
        return NULL;
    if (!(at = read_fields(scan, at, values)))
        return NULL;
    if ((values[PH].size && !is_text(values[PH])) || !is_text_or_null(values[NAME])
        || !is_text_or_null(values[CAT]))
        return NULL;
    if (!put_time(scan, false, values[TS]) || !put_time(scan, true, values[DUR])
        || !put_template(scan, values))
        return NULL;
    put_id(scan, values[ID]);
    put_copied(scan, ID2_TEXT, values[ID2]);
    put_copied(scan, ARGS_TEXT, values[ARGS]);
    scan->num_events++;
    return at;
}

static bool read_events(Scan *scan)
{
    Place at = behind_space(&scan->window, scan->window.begin);
    while ((at = read_event(scan, at))) {
        at = behind_space(&scan->window, at);
        if (at == scan->window.end)
            return true;
        if (*at != ',')
            return false;
        at = behind_space(&scan->window, at + 1);
    }
    return false;
}

/* -- the module ------------------------------------------------------------------------------- */

static const char *const COLUMNS[NUM_COLUMNS][2] = {
    {"template", "I"}, {"ts_ns", "l"}, {"dur_ns", "l"}, {"has_ts", "b"}, {"has_dur", "b"},
    {"id", "U"}, {"id2", "U"}, {"args", "U"}, {"correlation", "l"}, {"external_id", "l"}};

static bool open_scan(Scan *scan, const Py_buffer *window)
{
    *scan = (Scan){.window = {window->buf, (Place)window->buf + window->len, true, true},
                   .most_events = window->len / EVENT_BYTES + 1};
    bool is_open = window->len <= UINT32_MAX;
    for (int i = 0; i < NUM_COLUMNS && is_open; i++) {
        scan->columns[i].name = COLUMNS[i][0];
        scan->columns[i].format = COLUMNS[i][1];
        is_open = make_room(scan->columns + i, scan->most_events, window->len);
    }
    return is_open;
}

static void close_scan(Scan *scan)
{
    for (int i = 0; i < NUM_COLUMNS; i++)
        drop_room(scan->columns + i);
    free(scan->templates);
    free(scan->table);
    free(scan->fallbacks);
}

/* Name, schema and array of each column. */
static PyObject *columns_of(Scan *scan)
{
    PyObject *columns = PyList_New(NUM_COLUMNS);
    for (int i = 0; columns && i < NUM_COLUMNS; i++) {
        PyObject *schema = schema_of(scan->columns + i);
        PyObject *array = schema ? array_of(scan->columns + i, scan->num_events) : NULL;
        PyObject *column = array ? Py_BuildValue("sOO", COLUMNS[i][0], schema, array) : NULL;
        Py_XDECREF(schema);
        Py_XDECREF(array);
        if (!column || PyList_SetItem(columns, i, column))
            Py_CLEAR(columns);
    }
    return columns;
}

static PyObject *templates_of(const Scan *scan)
{
    PyObject *templates = PyList_New(scan->num_templates);
    for (int64_t number = 0; templates && number < scan->num_templates; number++) {
        const Slice *values = scan->templates[number].values;
        PyObject *template = Py_BuildValue(
            "y#y#y#y#y#", values[PH].at, (Py_ssize_t)values[PH].size, values[NAME].at,
            (Py_ssize_t)values[NAME].size, values[CAT].at, (Py_ssize_t)values[CAT].size,
            values[PID].at, (Py_ssize_t)values[PID].size, values[TID].at,
            (Py_ssize_t)values[TID].size);
        if (!template || PyList_SetItem(templates, number, template))
            Py_CLEAR(templates);
    }
    return templates;
}

static PyObject *fallbacks_of(const Scan *scan)
{
    PyObject *list = PyList_New(scan->num_fallbacks);
    for (int64_t number = 0; list && number < scan->num_fallbacks; number++) {
        const Fallback *fallback = scan->fallbacks + number;
        PyObject *time = Py_BuildValue(
            "Lsy#", (long long)fallback->event, COLUMNS[TS_NS + fallback->is_dur][0], fallback->value.at,
            (Py_ssize_t)fallback->value.size);
        if (!time || PyList_SetItem(list, number, time))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *found_by(Scan *scan)
{
    PyObject *templates = templates_of(scan), *fallbacks = fallbacks_of(scan), *columns = columns_of(scan);
    PyObject *found = NULL;
    if (templates && fallbacks && columns)
        found = Py_BuildValue("OOOO", columns, templates, fallbacks,
                              scan->window.is_ascii ? Py_True : Py_False);
    Py_XDECREF(templates);
    Py_XDECREF(fallbacks);
    Py_XDECREF(columns);
    return found;
}

PyDoc_STRVAR(scan_doc,
"scan(window)\n--\n\n"
"Read JSON objects with commas between them.\n\n"
"Gives their columns (name, schema and array in Arrow's C data interface), the values of each\n"
"template, the times that are no decimal numbers (event, column, value), and whether all of it is\n"
"ASCII; None where something is unusual.");

static PyObject *scan_window(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer window;
    if (!PyArg_ParseTuple(args, "y*:scan", &window))
        return NULL;
    Scan scan;
    bool is_read = false;
    if (open_scan(&scan, &window)) {
        Py_BEGIN_ALLOW_THREADS
        is_read = read_events(&scan);
        Py_END_ALLOW_THREADS
    }
    PyObject *found = is_read ? found_by(&scan) : Py_None;
    if (!is_read)
        Py_INCREF(found);
    close_scan(&scan);
    PyBuffer_Release(&window);
    return found;
}

static PyMethodDef methods[] = {
    {"scan", scan_window, METH_VARARGS, scan_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_scan",
    .m_doc = "Trace events as columns.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__scan(void) { return PyModuleDef_Init(&module); }
