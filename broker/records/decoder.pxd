# The C types of decoder.py, for the form that setup.py compiles; see there.
cimport cython

@cython.locals(
    position=Py_ssize_t, start=Py_ssize_t, record_end=Py_ssize_t,
    raw="unsigned long long", second="unsigned long long", last_raw="unsigned long long",
    offset="long long", chars="const char*",
    records=list, headers=tuple, no_headers=tuple,
)
cpdef list decode_records(
    bytes data, long long count, long long base_offset, long long base_timestamp,
    append_time=*,
)

@cython.locals(
    position=Py_ssize_t, record_end=Py_ssize_t, index=Py_ssize_t, length=Py_ssize_t,
    raw="unsigned long long", second="unsigned long long", last_raw="unsigned long long",
    timestamp="long long",
    offsets="long long[::1]", timestamps="long long[::1]",
    key_starts="int[::1]", key_lengths="int[::1]",
    value_starts="int[::1]", value_lengths="int[::1]",
    header_starts="int[::1]", header_counts="int[::1]",
)
cpdef decode_columns(
    bytes data, long long count, long long base_offset, long long base_timestamp,
    append_time=*,
)

cdef tuple _long_varint(bytes data, Py_ssize_t position)

@cython.locals(
    raw="unsigned long long", byte="unsigned long long", shift="int", after=Py_ssize_t
)
cdef tuple _varlong(bytes data, Py_ssize_t position)

@cython.locals(start=Py_ssize_t)
cdef tuple _read_headers(bytes data, Py_ssize_t position, Py_ssize_t count)

@cython.locals(start=Py_ssize_t, first=Py_ssize_t, count=Py_ssize_t)
cdef tuple _skip_headers(bytes data, Py_ssize_t position)

@cython.locals(raw="unsigned long long", start=Py_ssize_t)
cdef tuple _header_key(bytes data, Py_ssize_t position)

@cython.locals(raw="unsigned long long", start=Py_ssize_t)
cdef tuple _header_value(bytes data, Py_ssize_t position)
