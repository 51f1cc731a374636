# The C types of decoder.py, for the form that setup.py compiles; see there.
cimport cython

@cython.locals(
    position=Py_ssize_t, start=Py_ssize_t, record_end=Py_ssize_t, index=Py_ssize_t,
    raw="unsigned long long", second="unsigned long long", last_raw="unsigned long long",
    offset="long long", chars="const char*", records=list, headers=tuple, no_headers=tuple,
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
