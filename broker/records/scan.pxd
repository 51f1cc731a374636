# The C types of scan.py, for the form that setup.py compiles; see there.
cimport cython

@cython.locals(
    position=Py_ssize_t, record_end=Py_ssize_t, end=Py_ssize_t, index=Py_ssize_t,
    null_keys=Py_ssize_t, packed="unsigned long long", is_sequential=bint, is_inside=bint, is_odd=bint,
    raw="unsigned long long", second="unsigned long long", last_raw="unsigned long long",
    timestamp="long long", smallest="long long", largest="long long",
    limit="long long",
)
cpdef tuple scan_records(
    const unsigned char[::1] data, Py_ssize_t start, long long count, long long base_timestamp,
    bint is_compressed, bint check_sizes, list suspects=*, long long oldest=*, long long newest=*,
    long long first=*, bint is_last=*, bint check_form=*,
)

@cython.locals(packed="unsigned long long", raw="unsigned long long", raw_length="unsigned long long")
cdef Py_ssize_t _skip_headers(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t index
) except -1

@cython.locals(
    packed="unsigned long long", raw="unsigned long long", raw_length="unsigned long long",
    at=Py_ssize_t,
)
cdef bint _are_headers_odd(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t index
) except -1

@cython.locals(size=int)
cdef bint _has_spare_byte(unsigned long long packed) noexcept

cdef unsigned long long _long_varint(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t index
) except? 0

@cython.locals(raw="unsigned long long", byte="unsigned long long", size=int)
cdef unsigned long long _read_varint(
    const unsigned char[::1] data, Py_ssize_t position
) except? 0

@cython.locals(size=int)
cdef int _varlong_size(const unsigned char[::1] data, Py_ssize_t position) except -1

@cython.locals(raw="unsigned long long", byte="unsigned long long", at=int)
cdef unsigned long long _varlong(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t size
) except? 0
