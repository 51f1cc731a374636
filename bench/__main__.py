"""`python -m bench [name …]`: run the named measurements, or all; status 3 if a goal was missed."""

import os
import sys
from importlib import import_module
from pkgutil import iter_modules

import bench
from bench.report import report
from kctl.errors import ExitStatus
from kctl.output import Output

NOT_MEASUREMENTS = {"__main__", "report"}


def measurements() -> list[str]:
    """The modules of this package that have something to measure."""
    return sorted({module.name for module in iter_modules(bench.__path__)} - NOT_MEASUREMENTS)


def main(names: list[str]) -> ExitStatus:
    """Run and print one table per measurement."""
    # Where this is set, each start of ours compiles everything anew, as no installed one does.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    out = Output()
    if unknown := set(names) - set(measurements()):
        out.note(f"no such measurement: {', '.join(sorted(unknown))}; have {measurements()}")
        return ExitStatus.USAGE
    status = ExitStatus.OK
    for name in names or measurements():
        module = import_module(f"bench.{name}")
        if not hasattr(module, "run"):  # a helper that measurements share
            continue
        comparisons = list(module.run())
        out.lines(["", (module.__doc__ or name).splitlines()[0], *report(comparisons)])
        if not all(comparison.reached for comparison in comparisons):
            status = ExitStatus.FOUND
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
