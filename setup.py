"""Builds the one compiled corner, where Cython and a C compiler are there.

Without them the install still works and nothing changes but the speed.
"""

from setuptools import Extension, setup

COMPILED = ["broker/records/decoder.py"]

DIRECTIVES = {
    "language_level": 3,
    # The C types are those of the .pxd beside each file; annotations stay what Python means.
    "annotation_typing": False,
    # No index is ever negative. Bounds stay checked: the decoder relies on IndexError.
    "wraparound": False,
    "boundscheck": True,
}


def extensions() -> list[Extension]:
    """The extensions that can be built here; an empty list when Cython is missing."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    sources = [
        # -fwrapv: timestamps wrap as in Java; -g0: debug symbols would be most of the file.
        Extension(
            path.removesuffix(".py").replace("/", "."),
            [path],
            extra_compile_args=["-O3", "-fwrapv", "-g0"],
        )
        for path in COMPILED
    ]
    modules = cythonize(sources, compiler_directives=DIRECTIVES, build_dir="build")
    for module in modules:
        module.optional = True  # a missing C compiler is no reason to fail; cythonize forgets it
    return list(modules)


setup(ext_modules=extensions())
