/* The recorder's hot path: rows packed into the journal as the functions of Python's do that
   `rows.py` builds. These say what is to happen; tests/ingest/recording/forms/test_compiled_rows.py
   holds the two against each other. Whatever cannot be packed is given to `mend` or `amend`.

   Threads: a row's place is taken with nothing of Python's run in between, and what follows keeps
   it; a row lies in variables of its own until all of it is known. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "_texts.h"
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the journal is little-endian: here Python packs its rows"
#endif

enum { MOST_COLUMNS = 48, MOST_BYTES = 2 * (8 * MOST_COLUMNS + MARKER_BYTES) };

/* A column as it is stored: i64, i32, f64, text, bool, or the count of rows. */
typedef enum { I64 = 'q', I32 = 'i', F64 = 'd', TEXT = 'I', BOOL = 'b', SEQ = 's' } Kind;

/* `at` is in bytes from the row's begin, `same` a place among what is the same in several rows, and
   `each` one among what each of them has, or NONE. It is small: an engine's own work leaves nothing
   of it in the processor's caches. */
typedef struct { uint8_t kind, is_required; int16_t at; int8_t same, each; } Field;

enum { NONE = -1 };

/* The text that a column had last, and its id, which holds as long as the journal: many rows have
   the same one, and to look it up costs as much as all else of a short row. */
typedef struct { PyObject *text; uint32_t id; } Last;

/* Columns that are packed together, with a marker behind them; those given come first. */
typedef struct {
    int num, num_given, size;
    Field fields[MOST_COLUMNS];
    Last last[MOST_COLUMNS];
    PyObject *names[MOST_COLUMNS];
} Fields;

typedef struct {
    PyObject_HEAD
    PyObject *place, *ids, *texts, *mend, *amend, *next, *missing;
    Fields now, later;
    int later_at, size, num_same, num_each;
} Packer;

/* -- values ---------------------------------------------------------------------------------------- */

/* The id of a text, which is written where it is new; NULL with an error where it has none. */
static PyObject *id_of(const Packer *packer, PyObject *value)
{
    Py_ssize_t size;
    if (packer->texts && PyUnicode_CheckExact(value)) {
        PyObject *id = PyDict_GetItemWithError(packer->ids, value);
        if (id)
            return Py_NewRef(id);
        const char *raw = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8AndSize(value, &size);
        if (raw && size <= UINT32_MAX && (id = write_text(packer->texts, raw, size)) && !PyDict_SetItem(packer->ids, value, id))
            return id;
        Py_XDECREF(id);
        PyErr_Clear();  /* it has no room, or half a character */
    }
    return PyObject_GetItem(packer->ids, value);
}

static inline void put(uint8_t *row, int at, const void *value, size_t size)
{
    memcpy(row + at, value, size);
}

static bool put_i64(uint8_t *row, int at, PyObject *value)
{
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return false;
    put(row, at, &number, 8);
    return true;
}

/* A number of that many bytes; false with an error where it does not fit. */
static bool put_small(uint8_t *row, int at, PyObject *value, int size)
{
    long number = PyLong_AsLong(value);
    if (number == -1 && PyErr_Occurred())
        return false;
    const long most = size == 1 ? INT8_MAX : INT32_MAX;
    if (number > most || number < -most - 1) {
        PyErr_SetString(PyExc_OverflowError, "a number is too large for its column");
        return false;
    }
    const int32_t narrow = (int32_t)number;
    const int8_t narrowest = (int8_t)number;
    put(row, at, size == 1 ? (const void *)&narrowest : (const void *)&narrow, size);
    return true;
}

static bool put_f64(uint8_t *row, int at, PyObject *value)
{
    double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred())
        return false;
    put(row, at, &number, 8);
    return true;
}

static bool put_text(const Packer *packer, Last *last, uint8_t *row, int at, PyObject *value)
{
    if (last->text == value) {
        put(row, at, &last->id, 4);
        return true;
    }
    PyObject *id = id_of(packer, value);
    unsigned long number = id ? PyLong_AsUnsignedLong(id) : 0;
    Py_XDECREF(id);
    if (PyErr_Occurred())
        return false;
    if (number > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "too many texts");
        return false;
    }
    const uint32_t narrow = (uint32_t)number;
    put(row, at, &narrow, 4);
    if (PyUnicode_CheckExact(value)) {
        PyObject *before = last->text;
        *last = (Last){Py_NewRef(value), narrow};
        Py_XDECREF(before);
    }
    return true;
}

static void put_null(uint8_t *row, const Field *field)
{
    const int64_t null64 = INT64_MIN;
    const int32_t null32 = INT32_MIN, no_text = 0;
    const double nothing = NAN;
    const int8_t null8 = -1;
    switch (field->kind) {
    case I32: put(row, field->at, &null32, 4); break;
    case F64: put(row, field->at, &nothing, 8); break;
    case TEXT: put(row, field->at, &no_text, 4); break;
    case BOOL: put(row, field->at, &null8, 1); break;
    default: put(row, field->at, &null64, 8);
    }
}

static bool put_value(const Packer *packer, Fields *fields, int place, uint8_t *row, PyObject *value)
{
    const Field *field = &fields->fields[place];
    if (value == Py_None && !field->is_required) {
        put_null(row, field);
        return true;
    }
    switch (field->kind) {
    case I64: return put_i64(row, field->at, value);
    case I32: return put_small(row, field->at, value, 4);
    case F64: return put_f64(row, field->at, value);
    case TEXT: return put_text(packer, &fields->last[place], row, field->at, value);
    case BOOL: return put_small(row, field->at, value, 1);
    default: return false;
    }
}

/* Forget an error that costs a row; false where it is one that must not be caught. */
static bool forget_error(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    PyErr_Clear();
    return true;
}

/* Pack the columns of a row, but for those that `like` has packed; false, mostly with an error, where
   one could not be. Even then all texts before one that is none have ids, and the row is counted:
   `mend` finds it as Python's functions would have left it. */
static bool pack(const Packer *packer, Fields *fields, uint8_t *row, PyObject *const *values,
                 bool is_like, bool is_packed, PyObject **seq)
{
    for (int place = 0; place < fields->num; place++) {
        const Field *field = &fields->fields[place];
        if (field->kind == SEQ) {
            if (!(*seq = PyObject_CallNoArgs(packer->next)))
                return false;
            if (put_i64(row, field->at, *seq))
                continue;
        } else if ((is_like && field->each == NONE) || (!is_packed && field->kind != TEXT)
                   || put_value(packer, fields, place, row, values[place])) {
            continue;
        } else if (field->kind == TEXT && !PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return false;
        }
        if (!forget_error())
            return false;
        is_packed = false;
    }
    return is_packed;
}

/* -- places --------------------------------------------------------------------------------------- */

/* Where a row lies: in a segment, of which a reference is held, from a byte on. */
typedef struct { PyObject *segment; Py_ssize_t at; } Claimed;

static bool claim(const Packer *packer, Claimed *claimed)
{
    PyObject *segment = PyList_GetItem(packer->place, 0), *at = PyList_GetItem(packer->place, 1);
    if (!segment || !at)
        return false;
    claimed->at = PyLong_AsSsize_t(at);
    if (claimed->at == -1 && PyErr_Occurred())
        return false;
    PyObject *following = PyLong_FromSsize_t(claimed->at + packer->size);
    if (!following)
        return false;
    Py_INCREF(segment);
    claimed->segment = segment;
    return !PyList_SetItem(packer->place, 1, following);
}

/* Copy bytes into a segment, the marker that follows them last; false where there is no room. */
static bool store(PyObject *segment, Py_ssize_t at, const uint8_t *bytes, int size, uint32_t marker)
{
    Py_buffer view;
    if (PyObject_GetBuffer(segment, &view, PyBUF_WRITABLE))
        return false;
    bool has_room = at >= 0 && at <= view.len - size - MARKER_BYTES;
    if (has_room) {
        uint8_t *begin = (uint8_t *)view.buf + at;
        memcpy(begin, bytes, size);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        memcpy(begin + size, &marker, MARKER_BYTES);
    }
    PyBuffer_Release(&view);
    return has_room;
}

static PyObject *tuple_of(PyObject *const *values, Py_ssize_t num)
{
    PyObject *tuple = PyTuple_New(num);
    for (Py_ssize_t i = 0; tuple && i < num; i++) {
        Py_INCREF(values[i]);
        if (PyTuple_SetItem(tuple, i, values[i]))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* What `mend` makes of a row that could not be packed; NULL where it raises. */
static PyObject *mended(const Packer *packer, const Claimed *claimed, PyObject *const *values, PyObject *seq)
{
    PyObject *row = tuple_of(values, packer->now.num_given), *result = NULL;
    PyObject *at = PyLong_FromSsize_t(claimed->at);
    if (row && at)
        result = PyObject_CallFunctionObjArgs(packer->mend, claimed->segment, at, row, seq ? seq : Py_None, NULL);
    Py_XDECREF(row);
    Py_XDECREF(at);
    return result;
}

/* -- arguments ------------------------------------------------------------------------------------ */

static int place_of(const Fields *fields, PyObject *name)
{
    for (int place = 0; place < fields->num_given; place++)
        if (fields->names[place] == name)
            return place;
    for (int place = 0; place < fields->num_given; place++)
        if (!PyUnicode_Compare(fields->names[place], name))
            return place;
    return NONE;
}

/* Sort arguments by column; what is left out is null, or missing. False where a call is wrong. */
static bool bind_args(const Packer *packer, const Fields *fields, PyObject *const *args, Py_ssize_t num,
                 PyObject *names, PyObject **values)
{
    if (num > fields->num_given) {
        PyErr_Format(PyExc_TypeError, "%d columns are recorded, and %zd were given", fields->num_given, num);
        return false;
    }
    for (int place = 0; place < fields->num_given; place++)
        values[place] = place < num ? args[place] : NULL;
    const Py_ssize_t num_names = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < num_names; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int place = place_of(fields, name);
        if (PyErr_Occurred())
            return false;
        if (place == NONE || values[place]) {
            PyErr_Format(PyExc_TypeError, place == NONE ? "no column is called %R" : "%R was given twice", name);
            return false;
        }
        values[place] = args[num + i];
    }
    for (int place = 0; place < fields->num_given; place++)
        if (!values[place])
            values[place] = fields->fields[place].is_required ? packer->missing : Py_None;
    return true;
}

/* -- rows ----------------------------------------------------------------------------------------- */

static PyObject *opened_at(const Claimed *claimed)
{
    PyObject *at = PyLong_FromSsize_t(claimed->at), *opened = at ? PyTuple_Pack(2, claimed->segment, at) : NULL;
    Py_XDECREF(at);
    return opened;
}

PyDoc_STRVAR(record_doc, "record(...)\n--\n\nRecord a row; gives where it lies if it is completed later.");

static PyObject *record(PyObject *self, PyObject *const *args, Py_ssize_t num, PyObject *names)
{
    Packer *packer = (Packer *)self;
    Fields *fields = &packer->now;
    PyObject *values[MOST_COLUMNS], *seq = NULL;
    uint8_t row[MOST_BYTES];
    Claimed claimed;
    if (!bind_args(packer, fields, args, num, names, values) || !claim(packer, &claimed))
        return NULL;
    bool is_packed = pack(packer, fields, row, values, false, true, &seq);
    int size = fields->size;
    if (is_packed && packer->later.num) {
        const uint32_t open = 0;
        for (int place = 0; place < packer->later.num; place++)
            put_null(row + packer->later_at, &packer->later.fields[place]);
        size = packer->later_at + packer->later.size + MARKER_BYTES;
        put(row, size - MARKER_BYTES, &open, MARKER_BYTES);
    }
    PyObject *result = NULL;
    if (is_packed && store(claimed.segment, claimed.at, row, size, (uint32_t)claimed.at))
        result = packer->later.num ? opened_at(&claimed) : Py_NewRef(Py_None);
    else if (forget_error())
        result = mended(packer, &claimed, values, seq);
    if (result && !packer->later.num && result != Py_None) {
        Py_DECREF(result);
        result = Py_NewRef(Py_None);
    }
    Py_XDECREF(seq);
    Py_DECREF(claimed.segment);
    return result;
}

PyDoc_STRVAR(complete_doc, "complete(opened, ...)\n--\n\nAdd to a row what was not known when it was recorded.");

static PyObject *complete(PyObject *self, PyObject *const *args, Py_ssize_t num, PyObject *names)
{
    Packer *packer = (Packer *)self;
    PyObject *values[MOST_COLUMNS], *opened = num ? args[0] : NULL;
    uint8_t row[MOST_BYTES];
    if (!opened) {
        PyErr_SetString(PyExc_TypeError, "which row is completed was not given");
        return NULL;
    }
    if (!bind_args(packer, &packer->later, args + 1, num - 1, names, values))
        return NULL;
    bool is_packed = PyTuple_Check(opened) && PyTuple_Size(opened) == 2
        && pack(packer, &packer->later, row, values, false, true, NULL);
    if (is_packed) {
        PyObject *current = PyList_GetItem(packer->place, 0);  /* empty once recording has stopped */
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(opened, 1));
        is_packed = !PyErr_Occurred() && current && PyObject_Size(current) > 0
            && store(PyTuple_GetItem(opened, 0), at + packer->later_at, row, packer->later.size, (uint32_t)at);
    }
    if (is_packed)
        return Py_NewRef(Py_None);
    if (!forget_error())
        return NULL;
    PyObject *given = tuple_of(values, packer->later.num_given);
    PyObject *result = given ? PyObject_CallFunctionObjArgs(packer->amend, opened, given, NULL) : NULL;
    Py_XDECREF(given);
    Py_XDECREF(result);
    return result ? Py_NewRef(Py_None) : NULL;
}

/* Pack what is the same in several rows, and nulls for what none of them has; false where a value is
   bad, which the others are looked at in spite of, as in `pack`. */
static bool put_same(Packer *packer, uint8_t *row, PyObject *const *same)
{
    Fields *fields = &packer->now;
    bool is_packed = true;
    for (int place = 0; place < fields->num; place++)
        if (fields->fields[place].same == NONE)
            put_null(row, &fields->fields[place]);
    for (int which = 0; which < packer->num_same; which++)
        for (int place = 0; place < fields->num; place++) {
            const Field *field = &fields->fields[place];
            if (field->same != which || put_value(packer, fields, place, row, same[which]))
                continue;
            if ((field->kind == TEXT && !PyErr_ExceptionMatches(PyExc_OverflowError)) || !forget_error())
                return false;
            is_packed = false;
        }
    return is_packed;
}

/* Record one of several rows, of which the first bytes are as `like`; false where it raises. */
static bool record_one(Packer *packer, const uint8_t *like, bool is_like, PyObject *const *same,
                       PyObject *each)
{
    Fields *fields = &packer->now;
    PyObject *seq = NULL, *values[MOST_COLUMNS];
    uint8_t row[MOST_BYTES];
    Claimed claimed;
    if (!claim(packer, &claimed))
        return false;
    for (int place = 0; place < fields->num_given; place++) {
        const Field *field = &fields->fields[place];
        values[place] = field->same != NONE ? same[field->same]
            : field->each != NONE ? PyTuple_GetItem(each, field->each) : Py_None;
    }
    memcpy(row, like, fields->size);
    bool is_packed = pack(packer, fields, row, values, true, is_like, &seq);
    bool is_done = is_packed && store(claimed.segment, claimed.at, row, fields->size, (uint32_t)claimed.at);
    if (!is_done && forget_error()) {
        PyObject *result = mended(packer, &claimed, values, seq);
        is_done = result != NULL;
        Py_XDECREF(result);
    }
    Py_XDECREF(seq);
    Py_DECREF(claimed.segment);
    return is_done;
}

/* How many rows are meant: one, or as many as the shortest list among the values has. */
static Py_ssize_t num_meant(PyObject *each)
{
    Py_ssize_t num = NONE;
    for (Py_ssize_t i = 0; i < PyTuple_Size(each); i++) {
        PyObject *value = PyTuple_GetItem(each, i);
        if (PyList_CheckExact(value) && (num == NONE || PyList_Size(value) < num))
            num = PyList_Size(value);
    }
    return num;
}

/* One of the rows that are meant, with the value at its place of each list; NULL with an error. */
static PyObject *one_meant(PyObject *each, Py_ssize_t place)
{
    const Py_ssize_t num = PyTuple_Size(each);
    PyObject *row = PyTuple_New(num);
    for (Py_ssize_t i = 0; row && i < num; i++) {
        PyObject *value = PyTuple_GetItem(each, i);
        if (PyList_CheckExact(value))
            value = PyList_GetItem(value, place);
        Py_XINCREF(value);
        if (!value || PyTuple_SetItem(row, i, value))
            Py_CLEAR(row);
    }
    return row;
}

PyDoc_STRVAR(record_all_doc,
"record_all(same..., rows)\n--\n\nRecord a row for each tuple of an iterable, behind what is the same in all;\n"
"where there are lists in a tuple, a row for each of their items.");

static PyObject *record_all(PyObject *self, PyObject *const *args, Py_ssize_t num)
{
    Packer *packer = (Packer *)self;
    uint8_t like[MOST_BYTES] = {0};
    if (num != packer->num_same + 1) {
        PyErr_Format(PyExc_TypeError, "%d values and rows are recorded, and %zd were given", packer->num_same, num);
        return NULL;
    }
    bool is_like = put_same(packer, like, args);
    if (!is_like && !forget_error())
        return NULL;
    PyObject *rows = PyObject_GetIter(args[num - 1]), *item;
    while (rows && (item = PyIter_Next(rows))) {
        PyObject *each = PySequence_Tuple(item);
        Py_DECREF(item);
        if (each && PyTuple_Size(each) != packer->num_each)
            PyErr_Format(PyExc_ValueError, "a row has %zd values, not %d", PyTuple_Size(each), packer->num_each);
        bool is_done = each && !PyErr_Occurred();
        const Py_ssize_t num_rows = is_done ? num_meant(each) : 0;
        if (num_rows == NONE)
            is_done = record_one(packer, like, is_like, args, each);
        for (Py_ssize_t place = 0; is_done && place < num_rows; place++) {
            PyObject *row = one_meant(each, place);
            is_done = row && record_one(packer, like, is_like, args, row);
            Py_XDECREF(row);
        }
        Py_XDECREF(each);
        if (!is_done)
            break;
    }
    Py_XDECREF(rows);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* -- how it is made ------------------------------------------------------------------------------- */

static int size_of(Kind kind)
{
    return kind == I64 || kind == F64 || kind == SEQ ? 8 : kind == BOOL ? 1 : 4;
}

/* Take (name, kind, is_required, same, each) of each column; false with an error where it is wrong. */
static bool read_fields(PyObject *columns, Fields *fields)
{
    const Py_ssize_t num = PyTuple_Size(columns);
    if (num < 0 || num > MOST_COLUMNS) {
        PyErr_Format(PyExc_ValueError, "at most %d columns can be recorded", MOST_COLUMNS);
        return false;
    }
    for (fields->num = 0; fields->num < num; fields->num++) {
        PyObject *name;
        int kind, is_required, same, each;
        if (!PyArg_ParseTuple(PyTuple_GetItem(columns, fields->num), "UCpii", &name, &kind, &is_required,
                              &same, &each))
            return false;
        if (!strchr("qidIbs", kind)) {
            PyErr_Format(PyExc_ValueError, "no column is of kind %c", kind);
            return false;
        }
        Py_INCREF(name);
        PyUnicode_InternInPlace(&name);
        fields->names[fields->num] = name;
        fields->fields[fields->num] = (Field){(uint8_t)kind, is_required, (int16_t)fields->size, (int8_t)same, (int8_t)each};
        fields->size += size_of((Kind)kind);
        fields->num_given += kind != SEQ;
    }
    return true;
}

static PyObject *new_packer(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(more))
{
    PyObject *place, *ids, *mend, *amend, *next, *missing, *columns, *later;
    int num_same, num_each;
    if (!PyArg_ParseTuple(args, "O!OOOOOO!O!ii:Packer", &PyList_Type, &place, &ids, &mend, &amend, &next,
                          &missing, &PyTuple_Type, &columns, &PyTuple_Type, &later, &num_same, &num_each))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Packer *packer = (Packer *)allocate(type, 0);
    if (!packer)
        return NULL;
    packer->place = Py_NewRef(place);
    packer->ids = Py_NewRef(ids);
    packer->mend = Py_NewRef(mend);
    packer->amend = Py_NewRef(amend);
    packer->next = Py_NewRef(next);
    packer->missing = Py_NewRef(missing);
    packer->num_same = num_same;
    packer->num_each = num_each;
    if (PyDict_Check(ids) && !(packer->texts = PyObject_GetAttrString(ids, "place")))
        PyErr_Clear();
    if (!read_fields(columns, &packer->now) || !read_fields(later, &packer->later)) {
        Py_DECREF(packer);
        return NULL;
    }
    packer->later_at = packer->now.size;
    packer->size = packer->now.size + MARKER_BYTES;
    if (packer->later.num)
        packer->size += packer->later.size + MARKER_BYTES;
    return (PyObject *)packer;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Packer *packer = (Packer *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(packer->place);
    Py_VISIT(packer->ids);
    Py_VISIT(packer->texts);
    Py_VISIT(packer->mend);
    Py_VISIT(packer->amend);
    Py_VISIT(packer->next);
    Py_VISIT(packer->missing);
    return 0;  /* the texts and names refer to nothing */
}

static int clear(PyObject *self)
{
    Packer *packer = (Packer *)self;
    Py_CLEAR(packer->place);
    Py_CLEAR(packer->ids);
    Py_CLEAR(packer->texts);
    Py_CLEAR(packer->mend);
    Py_CLEAR(packer->amend);
    Py_CLEAR(packer->next);
    Py_CLEAR(packer->missing);
    return 0;
}

static void dealloc(PyObject *self)
{
    Packer *packer = (Packer *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    Fields *all[] = {&packer->now, &packer->later};
    for (int which = 0; which < 2; which++)
        for (int place = 0; place < all[which]->num; place++) {
            Py_CLEAR(all[which]->names[place]);
            Py_CLEAR(all[which]->last[place].text);
        }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL | METH_KEYWORDS, record_doc},
    {"record_all", (PyCFunction)(void (*)(void))record_all, METH_FASTCALL, record_all_doc},
    {"complete", (PyCFunction)(void (*)(void))complete, METH_FASTCALL | METH_KEYWORDS, complete_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(packer_doc,
"Packer(place, ids, mend, amend, next, missing, columns, later, num_same, num_each)\n--\n\n"
"Rows of these columns, and of those that complete them later: each (name, kind, is_required, same,\n"
"each), with its places among what is the same in several rows and what each of them has, or -1.");

static PyType_Slot slots[] = {
    {Py_tp_new, new_packer}, {Py_tp_traverse, traverse}, {Py_tp_clear, clear}, {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods}, {Py_tp_doc, (void *)packer_doc}, {0, NULL},
};

static PyType_Spec packer_spec = {
    .name = "stepscope.ingest.recording.forms._rows.Packer",
    .basicsize = sizeof(Packer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

static int add_packer(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &packer_spec, NULL);
    int failed = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return failed;
}

static PyMethodDef functions[] = {
    {"keys_left", (PyCFunction)(void (*)(void))keys_left, METH_FASTCALL, keys_left_doc},
    {"places_left", (PyCFunction)(void (*)(void))places_left, METH_FASTCALL, places_left_doc},
    {"write_bytes", (PyCFunction)(void (*)(void))write_bytes, METH_FASTCALL, write_bytes_doc},
    {"write_left", (PyCFunction)(void (*)(void))write_left, METH_FASTCALL, write_left_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, add_packer}, {0, NULL}};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_rows",
    .m_doc = "Rows of a journal, packed.",
    .m_methods = functions,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__rows(void) { return PyModuleDef_Init(&module); }
