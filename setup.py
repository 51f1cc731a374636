"""Builds the one compiled corner, where Cython and a C compiler are there; without them nothing changes but speed."""

from setuptools import Extension, setup

COMPILED = ["broker/records/decoder.py"]


def extensions() -> list[Extension]:
    """The extensions that can be built here; an empty list when Cython is missing."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    modules = [
        Extension(path.removesuffix(".py").replace("/", "."), [path], optional=True)
        for path in COMPILED
    ]
    return list(cythonize(modules, language_level=3, build_dir="build"))


setup(ext_modules=extensions())
