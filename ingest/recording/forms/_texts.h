/* Bytes that rows point to, such as texts and changes of a batch, written as `texts.py` says; and who
   left a batch, or a dict. One call of these nobody comes between. */

#pragma once
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MARKER_BYTES = 4 };

/* Take room for what is stored with its length before it and its number behind it: `place` is the
   segment, where the next one begins, and what the first byte of the segment counts as. None where
   there is no room, with no error. */
typedef struct { Py_buffer view; uint8_t *begin; uint32_t number; } Room;

static bool take_room(PyObject *place, Py_ssize_t size, Room *room)
{
    PyObject *segment = PyList_GetItem(place, 0), *end = PyList_GetItem(place, 1), *first = PyList_GetItem(place, 2);
    if (!segment || !end || !first)
        return false;
    const Py_ssize_t at = PyLong_AsSsize_t(end), following = at + (size + 2 * MARKER_BYTES + 7) / 8 * 8;
    const long long number = (PyLong_AsLongLong(first) + at) / 8;
    if (PyErr_Occurred() || PyObject_GetBuffer(segment, &room->view, PyBUF_WRITABLE))
        return false;
    PyObject *next = NULL;
    if (at >= 0 && following <= room->view.len && number > 0 && number <= UINT32_MAX)
        next = PyLong_FromSsize_t(following);
    if (!next || PyList_SetItem(place, 1, next)) {
        PyBuffer_Release(&room->view);
        return false;
    }
    room->begin = (uint8_t *)room->view.buf + at;
    room->number = (uint32_t)number;
    return true;
}

/* What was copied behind `begin + MARKER_BYTES` is whole from here on; gives its number. */
static PyObject *finish(Room *room, Py_ssize_t size)
{
    const uint32_t length = (uint32_t)size;
    memcpy(room->begin, &length, MARKER_BYTES);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(room->begin + MARKER_BYTES + size, &room->number, MARKER_BYTES);
    PyBuffer_Release(&room->view);
    return PyLong_FromUnsignedLong(room->number);
}

/* Write bytes, and give their number; NULL without an error where there is no room for them. */
static PyObject *write_text(PyObject *place, const char *raw, Py_ssize_t size)
{
    Room room;
    if (!take_room(place, size, &room))
        return NULL;
    memcpy(room.begin + MARKER_BYTES, raw, (size_t)size);
    return finish(&room, size);
}

PyDoc_STRVAR(write_bytes_doc,
"write_bytes(place, raw)\n--\n\nWrite bytes where the next are to lie; gives their number, or None without room.");

static PyObject *write_bytes(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t num)
{
    char *raw;
    Py_ssize_t size;
    if (num != 2 || PyBytes_AsStringAndSize(args[1], &raw, &size)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a place and bytes are taken");
        return NULL;
    }
    if (size > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a text is too long");
        return NULL;
    }
    PyObject *number = write_text(args[0], raw, size);
    return number || PyErr_Occurred() ? number : Py_NewRef(Py_None);
}

PyDoc_STRVAR(write_left_doc,
"write_left(place, before, counter, left)\n--\n\nWrite the change of a batch that some rows leave, by their places.");

static PyObject *write_left(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t num)
{
    enum { HEAD_BYTES = 20, MOST_LEFT = 64 };
    uint8_t raw[HEAD_BYTES + 4 * MOST_LEFT];
    Room room;
    const Py_ssize_t num_left = num == 4 ? PyList_Size(args[3]) : -1;
    if (num_left < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a place, a change, a counter and places are taken");
        return NULL;
    }
    if (num_left > MOST_LEFT)
        return Py_NewRef(Py_None);
    const uint32_t head[] = {(uint32_t)PyLong_AsUnsignedLong(args[1]), (uint32_t)num_left, 0};
    const int64_t counter = PyLong_AsLongLong(args[2]);
    memcpy(raw, head, sizeof head);
    memcpy(raw + sizeof head, &counter, 8);
    for (Py_ssize_t i = 0; i < num_left; i++) {
        const uint32_t left = (uint32_t)PyLong_AsUnsignedLong(PyList_GetItem(args[3], i));
        memcpy(raw + HEAD_BYTES + 4 * i, &left, 4);
    }
    const Py_ssize_t size = HEAD_BYTES + 4 * num_left;
    if (PyErr_Occurred() || !take_room(args[0], size, &room))
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    memcpy(room.begin + MARKER_BYTES, raw, (size_t)size);
    return finish(&room, size);
}

PyDoc_STRVAR(places_left_doc,
"places_left(before, now)\n--\n\nThe places of those of a list who are not in another that has no more.");

static PyObject *places_left(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t num)
{
    if (num != 2 || !PyList_Check(args[0]) || !PyList_Check(args[1]) || !PyList_Size(args[1]))
        return Py_NewRef(Py_None);
    const Py_ssize_t num_before = PyList_Size(args[0]), num_now = PyList_Size(args[1]);
    PyObject *places = num_before < num_now ? NULL : PyList_New(0);
    Py_ssize_t at = 0;
    for (Py_ssize_t place = 0; places && place < num_before && num_now - at <= num_before - place; place++) {
        if (at < num_now && PyList_GetItem(args[0], place) == PyList_GetItem(args[1], at)) {
            at++;
        } else {
            PyObject *number = PyLong_FromSsize_t(place);
            if (!number || PyList_Append(places, number))
                Py_CLEAR(places);
            Py_XDECREF(number);
        }
    }
    if (PyErr_Occurred())
        return NULL;
    if (places && at == num_now)
        return places;
    Py_XDECREF(places);
    return Py_NewRef(Py_None);
}

PyDoc_STRVAR(keys_left_doc,
"keys_left(before, now)\n--\n\nThose keys of a dict that are not in another, which has no more; or None.");

static PyObject *keys_left(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t num)
{
    if (num != 2 || !PyDict_Check(args[0]) || !PyDict_Check(args[1]))
        return Py_NewRef(Py_None);
    Py_ssize_t at = 0, now_at = 0;
    PyObject *left = PyList_New(0), *key, *now = NULL;
    bool is_more = PyDict_Next(args[1], &now_at, &now, NULL);
    while (left && PyDict_Next(args[0], &at, &key, NULL)) {
        if (is_more && key == now)
            is_more = PyDict_Next(args[1], &now_at, &now, NULL);
        else if (PyList_Append(left, key))
            Py_CLEAR(left);
    }
    if (left && is_more) {
        Py_DECREF(left);
        return Py_NewRef(Py_None);
    }
    return left;
}
