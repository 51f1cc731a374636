"""Builds the compiled modules if Cython and a C compiler are available.

Without them the installation works as well; the same source files are interpreted, only slower.
"""

from setuptools import Extension, setup

COMPILED = ["broker/records/decoder.py", "broker/records/scan.py"]

DIRECTIVES = {
    "language_level": 3,
    # C types come from the .pxd beside each file, not from annotations.
    "annotation_typing": False,
    # No index is ever negative. Bounds are checked: the modules rely on IndexError.
    "wraparound": False,
    "boundscheck": True,
}


def extensions() -> list[Extension]:
    """The extensions to build; an empty list if Cython is missing."""
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
        module.optional = True  # do not fail without a C compiler; cythonize drops this flag
    return list(modules)


setup(ext_modules=extensions())
