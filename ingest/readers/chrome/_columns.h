/* Columns of a table as they grow, given away in Arrow's C data interface:
   https://arrow.apache.org/docs/format/CDataInterface.html */

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

enum { NULLABLE = 2 };

/* format is Arrow's: `I` 32 bits without sign, `l` 64 bits, `b` one bit, `U` text in UTF-8. */
typedef struct {
    const char *name, *format;
    uint8_t *valid;     /* a bit for each row */
    void *values;       /* of a text: where each begins, and where the last ends */
    uint8_t *text;
    int64_t num_null, text_size;
} Column;

static size_t num_value_bytes(const Column *column, size_t num_rows)
{
    switch (*column->format) {
    case 'b': return (num_rows + 7) / 8;
    case 'I': return num_rows * 4;
    case 'U': return (num_rows + 1) * 8;
    default: return num_rows * 8;
    }
}

/* Make room for so many rows and bytes of text; false where there is none. */
static bool make_room(Column *column, size_t num_rows, size_t num_text_bytes)
{
    bool is_text = *column->format == 'U', is_bits = *column->format == 'b';
    size_t num_bytes = num_value_bytes(column, num_rows) + 1;
    column->valid = calloc(num_rows / 8 + 1, 1);
    column->values = is_bits ? calloc(num_bytes, 1) : malloc(num_bytes);
    column->text = is_text ? malloc(num_text_bytes + 1) : NULL;
    if (is_text && column->values)
        *(int64_t *)column->values = 0;
    return column->valid && column->values && (column->text || !is_text);
}

static void drop_room(Column *column)
{
    free(column->valid);
    free(column->values);
    free(column->text);
}

static inline void set_bit(uint8_t *bits, int64_t row) { bits[row / 8] |= 1 << row % 8; }

static inline void put_valid(Column *column, int64_t row, bool is_there)
{
    if (is_there)
        set_bit(column->valid, row);
    else
        column->num_null++;
}

static inline void put_number(Column *column, int64_t row, int64_t number, bool is_there)
{
    ((int64_t *)column->values)[row] = number;
    put_valid(column, row, is_there);
}

static inline void put_bool(Column *column, int64_t row, bool is_true)
{
    if (is_true)
        set_bit(column->values, row);
}

/* End a text whose bytes were written behind those that are there. */
static inline void put_text(Column *column, int64_t row, bool is_there)
{
    ((int64_t *)column->values)[row + 1] = column->text_size;
    put_valid(column, row, is_there);
}

static void release_column(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)array->buffers[i]);
    free(array->buffers);
    array->release = NULL;
}

static void *shrunk(void *block, size_t num_bytes)
{
    void *smaller = realloc(block, num_bytes ? num_bytes : 1);
    return smaller ? smaller : block;
}

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void drop_schema(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release)
        schema->release(schema);
    free(schema);
}

static void drop_array(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release)
        array->release(array);
    free(array);
}

static PyObject *schema_of(const Column *column)
{
    struct ArrowSchema *schema = malloc(sizeof *schema);
    if (!schema)
        return PyErr_NoMemory();
    *schema = (struct ArrowSchema){
        .format = column->format, .name = column->name, .flags = NULLABLE,
        .release = release_schema};
    PyObject *capsule = PyCapsule_New(schema, "arrow_schema", drop_schema);
    if (!capsule)
        free(schema);
    return capsule;
}

/* A column as a capsule, which owns from now on what is in it. */
static PyObject *array_of(Column *column, int64_t num_rows)
{
    struct ArrowArray *array = malloc(sizeof *array);
    const void **buffers = malloc(3 * sizeof *buffers);
    if (!array || !buffers) {
        free(array);
        free(buffers);
        return PyErr_NoMemory();
    }
    if (!column->num_null) {
        free(column->valid);
        column->valid = NULL;
    }
    buffers[0] = column->valid;
    buffers[1] = shrunk(column->values, num_value_bytes(column, num_rows));
    buffers[2] = column->text ? shrunk(column->text, column->text_size) : NULL;
    *array = (struct ArrowArray){
        .length = num_rows, .null_count = column->num_null, .n_buffers = column->text ? 3 : 2,
        .buffers = buffers, .release = release_column};
    *column = (Column){.name = column->name, .format = column->format};
    PyObject *capsule = PyCapsule_New(array, "arrow_array", drop_array);
    if (!capsule) {
        release_column(array);
        free(array);
    }
    return capsule;
}
