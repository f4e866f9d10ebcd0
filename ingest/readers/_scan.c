/* Trace events, one behind the other, as columns: one pass over their JSON, without the interpreter.

   What is read here is held against decoding each event by itself (tests/ingest/test_event_windows.py,
   tests/fuzz). Whatever is unusual is not for this file: `scan` then gives None, and the caller
   decodes. No place is read but within the window, and no row written but within its room. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include "_columns.h"
#include <string.h>

#define MOST_DEPTH 512
#define MOST_PROBES 64
#define LIMIT_US (((int64_t)1 << 62) / 1000)
#define NONE (-1)

enum { EVENT_BYTES = 32 };  /* a window has at most one event for so many bytes, or is decoded */

typedef const uint8_t *Place;

typedef struct { Place at; uint32_t size; } Slice;

enum Key { PH, NAME, CAT, PID, TID, TS, DUR, ID, ID2, ARGS, NUM_KEYS };
enum { NUM_OF_FORM = TID + 1 };
enum { FORM, TS_NS, DUR_NS, HAS_TS, HAS_DUR, ID_TEXT, ID2_TEXT, ARGS_TEXT, CORRELATION, EXTERNAL_ID,
       NUM_COLUMNS };

/* A time: plain if it is a decimal number, within if below 2**62 ns. */
typedef struct { int64_t ns; bool is_plain, is_within; } Time;

/* A form: its values, and their hash. */
typedef struct { uint32_t hash; Slice values[NUM_OF_FORM]; } Form;

/* A time that is left to the caller: of which event, whether it is a duration, and its value. */
typedef struct { int64_t event; bool is_dur; Slice value; } Odd;

typedef struct {
    /* the window */
    Place begin, end;
    bool is_ascii;
    Column columns[NUM_COLUMNS];
    int64_t num_events, most_events;
    /* forms, with an open hash table of their numbers */
    Form *forms;
    uint32_t *table;
    int64_t num_forms, most_forms, table_size;
    Odd *odd;
    int64_t num_odd, most_odd;
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

static inline uint8_t byte_at(const Scan *scan, Place at) { return at < scan->end ? *at : 0; }

/* Eight bytes, the first the lowest; compilers know this for one load. */
static inline uint64_t eight_at(Place at)
{
    uint64_t bytes = 0;
    for (int i = 0; i < 8; i++)
        bytes |= (uint64_t)at[i] << (8 * i);
    return bytes;
}

static inline bool is_digit(uint8_t byte) { return (uint8_t)(byte - '0') < 10; }

static inline bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline Place behind_space(const Scan *scan, Place at)
{
    while (is_space(byte_at(scan, at)))
        at++;
    return at;
}

/* -- JSON: each takes the place where a value begins, and gives the place behind it or NULL ------- */

/* How many bytes, of as many as are looked at at once, a string simply holds before another. */
enum { AT_ONCE = 8 };
static inline int num_plain(Place at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t bytes = eight_at(at), quote = bytes ^ (ones * '"'), escape = bytes ^ (ones * '\\');
    uint64_t special = (((quote - ones) & ~quote) | ((escape - ones) & ~escape)
                        | ((bytes - ones * 0x20) & ~bytes) | bytes) & high;
    return special ? __builtin_ctzll(special) >> 3 : AT_ONCE;
}

/* The UTF-16 unit of four hexadecimal digits; negative where they are none. */
static int32_t unit_at(const Scan *scan, Place at)
{
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t byte = byte_at(scan, at + i), letter = (byte | 0x20) - 'a';
        if (!is_digit(byte) && letter > 5)
            return -1;
        unit = unit * 16 + (is_digit(byte) ? byte - '0' : letter + 10);
    }
    return unit;
}

/* The place behind an escape, without its backslash; halves of a surrogate pair must be together. */
static Place behind_escape(const Scan *scan, Place at)
{
    switch (byte_at(scan, at)) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        return at + 1;
    case 'u':
        break;
    default:
        return NULL;
    }
    int32_t unit = unit_at(scan, at + 1);
    if (unit < 0 || (unit & 0xFC00) == 0xDC00)
        return NULL;
    if ((unit & 0xFC00) != 0xD800)
        return at + 5;
    bool is_pair = byte_at(scan, at + 5) == '\\' && byte_at(scan, at + 6) == 'u'
                   && (unit_at(scan, at + 7) & ~0x3FF) == 0xDC00;
    return is_pair ? at + 11 : NULL;
}

/* The end of a string, for what is long or holds more than plain ASCII; `at` is somewhere in it. */
static Place behind_rest(Scan *scan, Place at)
{
    for (;;) {
        while (scan->end - at >= AT_ONCE) {
            int plain = num_plain(at);
            at += plain;
            if (plain < AT_ONCE)
                break;
        }
        uint8_t byte = byte_at(scan, at++);
        if (byte == '"')
            return at;
        if (byte < 0x20)
            return NULL;
        if (byte == '\\' && !(at = behind_escape(scan, at)))
            return NULL;
        if (byte & 0x80)
            scan->is_ascii = false;
    }
}

static inline Place behind_string(Scan *scan, Place at)
{
    at++;
    if (scan->end - at > AT_ONCE) {
        at += num_plain(at);
        if (*at == '"')
            return at + 1;
    }
    return behind_rest(scan, at);
}

static inline Place behind_digits(const Scan *scan, Place at)
{
    while (is_digit(byte_at(scan, at)))
        at++;
    return at;
}

static Place behind_number(const Scan *scan, Place at)
{
    if (*at == '-')
        at++;
    Place behind = behind_digits(scan, at);
    if (behind == at || (*at == '0' && behind > at + 1))
        return NULL;
    if (byte_at(scan, behind) == '.') {
        at = behind + 1;
        if ((behind = behind_digits(scan, at)) == at)
            return NULL;
    }
    if ((byte_at(scan, behind) | 0x20) == 'e') {
        at = behind + 1;
        if (byte_at(scan, at) == '+' || byte_at(scan, at) == '-')
            at++;
        if ((behind = behind_digits(scan, at)) == at)
            return NULL;
    }
    return behind;
}

static inline Place behind_word(const Scan *scan, Place at, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(scan->end - at) >= size && !memcmp(at, word, size) ? at + size : NULL;
}

static inline Place behind_scalar(Scan *scan, Place at)
{
    switch (byte_at(scan, at)) {
    case '"': return behind_string(scan, at);
    case 't': return behind_word(scan, at, "true");
    case 'f': return behind_word(scan, at, "false");
    case 'n': return behind_word(scan, at, "null");
    default: return at < scan->end ? behind_number(scan, at) : NULL;
    }
}

/* The place behind a time. It is read as decimal microseconds, rounded half up at the fourth
   decimal, as all our readers do; any other value is skipped, and is not plain. */
static Place behind_time(Scan *scan, Place at, Time *time)
{
    Place begin = at;
    bool is_negative = byte_at(scan, at) == '-';
    at += is_negative;
    Place digits = at;
    int64_t us = 0, fraction = 0;
    for (; is_digit(byte_at(scan, at)); at++)
        if (us < LIMIT_US)
            us = us * 10 + (*at - '0');
    int num_decimals = -1;
    if (at > digits && byte_at(scan, at) == '.')
        for (at++, num_decimals = 0; is_digit(byte_at(scan, at)); at++, num_decimals++)
            if (num_decimals < 4)
                fraction = fraction * 10 + (*at - '0');
    bool has_exponent = (byte_at(scan, at) | 0x20) == 'e';
    if (at == digits || !num_decimals || has_exponent) {
        *time = (Time){0, false, false};
        return behind_scalar(scan, begin);
    }
    if (*digits == '0' && is_digit(byte_at(scan, digits + 1)))
        return NULL;
    for (num_decimals = num_decimals < 0 ? 0 : num_decimals; num_decimals < 4; num_decimals++)
        fraction *= 10;
    bool is_within = us < LIMIT_US;
    int64_t ns = is_within ? us * 1000 + (fraction + 5) / 10 : 0;
    *time = (Time){is_negative ? -ns : ns, true, is_within};
    return at;
}

/* -- args: copied without the line breaks of pretty printing, and searched for two numbers -------- */

static inline void copy_until(Scan *scan, Place at)
{
    Column *args = scan->columns + ARGS_TEXT;
    memcpy(args->text + args->text_size, scan->copied, at - scan->copied);
    args->text_size += at - scan->copied;
}

static inline Place copy_space(Scan *scan, Place at)
{
    while (is_space(byte_at(scan, at))) {
        if (*at == '\n' || *at == '\r') {
            copy_until(scan, at);
            at = scan->copied = behind_space(scan, at);
        } else {
            at++;
        }
    }
    return at;
}

static const char *const SOUGHT[2] = {"correlation\"", "External id\""};
enum { SOUGHT_SIZE = 12, MOST_DIGITS = 18 };

/* Keep the first whole number that has one of two keys; `at` is behind the colon. */
static inline void seek(Scan *scan, Place key, Place key_end, Place at)
{
    for (int which = 0; which < 2; which++) {
        if (scan->found[which] != NONE || key_end - key != SOUGHT_SIZE + 1
            || memcmp(key + 1, SOUGHT[which], SOUGHT_SIZE))
            continue;
        Place behind = behind_digits(scan, at);
        uint8_t next = byte_at(scan, behind_space(scan, behind));
        if (behind == at || behind - at > MOST_DIGITS || (next != ',' && next != '}'))
            return;
        int64_t number = 0;
        for (; at < behind; at++)
            number = number * 10 + (*at - '0');
        scan->found[which] = number;
    }
}

/* The place behind a key and its colon, where the value begins. */
static inline Place behind_key(Scan *scan, Place at)
{
    if (byte_at(scan, at) != '"')
        return NULL;
    Place key = at, key_end = behind_string(scan, at);
    if (!key_end)
        return NULL;
    at = copy_space(scan, key_end);
    if (byte_at(scan, at) != ':')
        return NULL;
    at = copy_space(scan, at + 1);
    seek(scan, key, key_end, at);
    return at;
}

/* Copy any value behind the args that are there. */
static Place copy_value(Scan *scan, Place at)
{
    uint8_t closing[MOST_DEPTH];
    uint32_t depth = 0;
    scan->copied = at;
    scan->found[0] = scan->found[1] = NONE;
    for (;;) {
        uint8_t opening = byte_at(scan, at);
        if (opening == '{' || opening == '[') {
            if (depth == MOST_DEPTH)
                return NULL;
            closing[depth++] = opening + 2;  /* as it is in ASCII */
            at = copy_space(scan, at + 1);
            if (byte_at(scan, at) != closing[depth - 1]) {
                if (opening == '{' && !(at = behind_key(scan, at)))
                    return NULL;
                continue;
            }
        } else {
            if (!(at = behind_scalar(scan, at)))
                return NULL;
            if (!depth)
                break;
            at = copy_space(scan, at);
        }
        while (depth && byte_at(scan, at) == closing[depth - 1]) {
            at++;
            if (--depth)
                at = copy_space(scan, at);
        }
        if (!depth)
            break;
        if (byte_at(scan, at) != ',')
            return NULL;
        at = copy_space(scan, at + 1);
        if (closing[depth - 1] == '}' && !(at = behind_key(scan, at)))
            return NULL;
    }
    copy_until(scan, at);
    return at;
}

/* -- the fields of an event ----------------------------------------------------------------------- */

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
    default:
        return memchr(key, '\\', size) ? NONE : NUM_KEYS;  /* it may be one of them in disguise */
    }
}

static inline bool is_empty(Slice value)
{
    return !value.size || (value.size == 2 && *value.at == '"')
        || (value.size == 4 && *value.at == 'n');
}

static bool put_odd(Scan *scan, bool is_dur, Slice value)
{
    if (!grow((void **)&scan->odd, scan->num_odd, &scan->most_odd, sizeof *scan->odd))
        return false;
    scan->odd[scan->num_odd++] = (Odd){scan->num_events, is_dur, value};
    return true;
}

static bool put_time(Scan *scan, bool is_dur, Slice value)
{
    Time *time = scan->times + is_dur;
    bool is_there = !is_empty(value);
    put_number(scan->columns + TS_NS + is_dur, scan->num_events, time->ns,
               is_there && time->is_within);
    put_bool(scan->columns + HAS_TS + is_dur, scan->num_events, is_there);
    return !is_there || time->is_plain || put_odd(scan, is_dur, value);
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

/* -- forms ---------------------------------------------------------------------------------------- */

static inline uint64_t mixed(uint64_t hash, uint64_t bytes)
{
    hash = (hash ^ bytes) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

static uint32_t hash_of(const Scan *scan, const Slice values[])
{
    uint64_t hash = 0;
    for (int key = 0; key < NUM_OF_FORM; key++) {
        Place at = values[key].at;
        uint32_t left = values[key].size;
        hash = mixed(hash, left);
        for (; left >= 8; at += 8, left -= 8)
            hash = mixed(hash, eight_at(at));
        if (left && at + left - scan->begin >= 8)  /* a key is before it */
            hash = mixed(hash, eight_at(at + left - 8) >> (64 - 8 * left));
    }
    return (uint32_t)(hash >> 32);
}

static bool is_form(const Form *form, uint32_t hash, const Slice values[])
{
    if (form->hash != hash)
        return false;
    for (int key = 0; key < NUM_OF_FORM; key++)
        if (form->values[key].size != values[key].size
            || memcmp(form->values[key].at, values[key].at, values[key].size))
            return false;
    return true;
}

/* Where a number stands in the table or could be put; NULL where too many are in the way. */
static uint32_t *seat_of(const Scan *scan, uint32_t hash, const Slice values[])
{
    for (int probe = 0; probe < MOST_PROBES; probe++) {
        uint32_t *seat = scan->table + ((hash + probe) & (scan->table_size - 1));
        if (!*seat || (values && is_form(scan->forms + *seat - 1, hash, values)))
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
    for (int64_t number = 0; number < scan->num_forms; number++) {
        uint32_t *seat = seat_of(scan, scan->forms[number].hash, NULL);
        if (!seat)
            return false;
        *seat = (uint32_t)number + 1;
    }
    return true;
}

static bool put_form(Scan *scan, const Slice values[])
{
    if (scan->num_forms * 2 >= scan->table_size && !grow_table(scan))
        return false;
    uint32_t hash = hash_of(scan, values), *seat = seat_of(scan, hash, values);
    if (!seat)
        return false;
    if (!*seat) {
        if (!grow((void **)&scan->forms, scan->num_forms, &scan->most_forms, sizeof *scan->forms))
            return false;
        Form *form = scan->forms + scan->num_forms;
        form->hash = hash;
        memcpy(form->values, values, sizeof form->values);
        *seat = (uint32_t)++scan->num_forms;
    }
    ((uint32_t *)scan->columns[FORM].values)[scan->num_events] = *seat - 1;
    return true;
}

/* -- events --------------------------------------------------------------------------------------- */

/* Read the values of an event; a key that is there twice, or in disguise, is for others. */
static Place read_fields(Scan *scan, Place at, Slice values[])
{
    int64_t correlation = NONE, external = NONE;
    at = behind_space(scan, at + 1);
    for (bool is_first = true; byte_at(scan, at) != '}'; is_first = false) {
        if (!is_first) {
            if (*at != ',')
                return NULL;
            at = behind_space(scan, at + 1);
        }
        if (byte_at(scan, at) != '"')
            return NULL;
        Place key = at + 1;
        if (!(at = behind_string(scan, at)))
            return NULL;
        int which = key_at(key, at - 1 - key);
        if (which == NONE || (which < NUM_KEYS && values[which].at))
            return NULL;
        at = behind_space(scan, at);
        if (byte_at(scan, at) != ':')
            return NULL;
        at = behind_space(scan, at + 1);
        Place value = at;
        if (which == TS || which == DUR) {
            if (!(at = behind_time(scan, at, &scan->times[which - TS])))
                return NULL;
        } else if (which < ID2) {
            if (!(at = behind_scalar(scan, at)))
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
        at = behind_space(scan, at);
        if (at == scan->end)
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
    Slice values[NUM_KEYS] = {{NULL, 0}};
    scan->times[0] = scan->times[1] = (Time){0, false, false};
    if (scan->num_events == scan->most_events || byte_at(scan, at) != '{')
        return NULL;
    if (!(at = read_fields(scan, at, values)))
        return NULL;
    if ((values[PH].size && !is_text(values[PH])) || !is_text_or_null(values[NAME])
        || !is_text_or_null(values[CAT]))
        return NULL;
    if (!put_time(scan, false, values[TS]) || !put_time(scan, true, values[DUR])
        || !put_form(scan, values))
        return NULL;
    put_id(scan, values[ID]);
    put_copied(scan, ID2_TEXT, values[ID2]);
    put_copied(scan, ARGS_TEXT, values[ARGS]);
    scan->num_events++;
    return at;
}

static bool read_events(Scan *scan)
{
    Place at = behind_space(scan, scan->begin);
    while ((at = read_event(scan, at))) {
        at = behind_space(scan, at);
        if (at == scan->end)
            return true;
        if (*at != ',')
            return false;
        at = behind_space(scan, at + 1);
    }
    return false;
}

/* -- the module ----------------------------------------------------------------------------------- */

static const char *const COLUMNS[NUM_COLUMNS][2] = {
    {"form", "I"}, {"ts_ns", "l"}, {"dur_ns", "l"}, {"has_ts", "b"}, {"has_dur", "b"},
    {"id", "U"}, {"id2", "U"}, {"args", "U"}, {"correlation", "l"}, {"external_id", "l"}};

static bool open_scan(Scan *scan, const Py_buffer *window)
{
    *scan = (Scan){.begin = window->buf, .end = (Place)window->buf + window->len, .is_ascii = true,
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
    free(scan->forms);
    free(scan->table);
    free(scan->odd);
}

/* Name, schema and array of each column. */
static PyObject *columns_of(Scan *scan)
{
    PyObject *columns = PyList_New(NUM_COLUMNS);
    for (int i = 0; columns && i < NUM_COLUMNS; i++) {
        PyObject *schema = schema_of(scan->columns + i);
        PyObject *array = schema ? array_of(scan->columns + i, scan->num_events) : NULL;
        PyObject *column = array ? Py_BuildValue("sOO", scan->columns[i].name, schema, array) : NULL;
        Py_XDECREF(schema);
        Py_XDECREF(array);
        if (!column || PyList_SetItem(columns, i, column))
            Py_CLEAR(columns);
    }
    return columns;
}

static PyObject *forms_of(const Scan *scan)
{
    PyObject *forms = PyList_New(scan->num_forms);
    for (int64_t number = 0; forms && number < scan->num_forms; number++) {
        const Slice *values = scan->forms[number].values;
        PyObject *form = Py_BuildValue(
            "y#y#y#y#y#", values[PH].at, (Py_ssize_t)values[PH].size, values[NAME].at,
            (Py_ssize_t)values[NAME].size, values[CAT].at, (Py_ssize_t)values[CAT].size,
            values[PID].at, (Py_ssize_t)values[PID].size, values[TID].at,
            (Py_ssize_t)values[TID].size);
        if (!form || PyList_SetItem(forms, number, form))
            Py_CLEAR(forms);
    }
    return forms;
}

static PyObject *odd_of(const Scan *scan)
{
    PyObject *list = PyList_New(scan->num_odd);
    for (int64_t number = 0; list && number < scan->num_odd; number++) {
        const Odd *odd = scan->odd + number;
        PyObject *time = Py_BuildValue("Lsy#", (long long)odd->event, odd->is_dur ? "dur_ns" : "ts_ns",
                                       odd->value.at, (Py_ssize_t)odd->value.size);
        if (!time || PyList_SetItem(list, number, time))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *found_by(Scan *scan)
{
    PyObject *forms = forms_of(scan), *odd = odd_of(scan), *columns = columns_of(scan);
    PyObject *found = NULL;
    if (forms && odd && columns)
        found = Py_BuildValue("OOOO", columns, forms, odd, scan->is_ascii ? Py_True : Py_False);
    Py_XDECREF(forms);
    Py_XDECREF(odd);
    Py_XDECREF(columns);
    return found;
}

PyDoc_STRVAR(scan_doc,
"scan(window)\n--\n\n"
"Read JSON objects with commas between them.\n\n"
"Gives their columns (name, schema and array in Arrow's C data interface), the values of each form,\n"
"the times that are no decimal numbers (event, column, value), and whether all of it is ASCII; None\n"
"where something is unusual.");

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
