"""`python -m bench [name …]`: run the named benchmarks, or all; exit 3 if a goal was missed."""

import os
import sys
from importlib import import_module
from pkgutil import iter_modules

import bench
from bench.report import report
from kctl.cli.errors import ExitStatus
from kctl.cli.output import Output

NOT_MEASUREMENTS = {"__main__", "report"}


def measurements() -> list[str]:
    """Names of the modules of this package that can be run."""
    return sorted({module.name for module in iter_modules(bench.__path__)} - NOT_MEASUREMENTS)


def main(names: list[str]) -> ExitStatus:
    """Run the benchmarks and print one table for each."""
    # With this variable set, every start of our broker would compile all of its modules; an
    # installed broker never does.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    out = Output()
    if unknown := set(names) - set(measurements()):
        choices = ", ".join(measurements())
        out.note(f"no such benchmark: {', '.join(sorted(unknown))}; choose from {choices}")
        return ExitStatus.USAGE
    status = ExitStatus.OK
    for name in names or measurements():
        module = import_module(f"bench.{name}")
        if not hasattr(module, "run"):  # a module that benchmarks share
            continue
        comparisons = list(module.run())
        out.lines(["", (module.__doc__ or name).splitlines()[0], *report(comparisons)])
        if not all(comparison.reached for comparison in comparisons):
            status = ExitStatus.FOUND
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
