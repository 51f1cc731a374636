"""`python -m kctl.docs` writes the generated files; `--check` compares them.

man/, completions/, docs/settings.md, docs/reference/, docs/monitoring/dashboard.json.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from broker.config.reference import settings_page
from kctl.cli.errors import ExitStatus
from kctl.cli.output import Output
from kctl.docs.broker_completion import broker_completion_scripts
from kctl.docs.broker_page import BROKER_PAGE, broker_page
from kctl.docs.completion import completion_scripts
from kctl.docs.dashboard import dashboard_json
from kctl.docs.man import man_page, page_name
from kctl.docs.reference_pages import apis_page, exit_statuses_page
from kctl.docs.tree import walk_commands

SINGLE_FILES: Final = {
    Path("docs/settings.md"): settings_page,
    Path("docs/reference/apis.md"): apis_page,
    Path("docs/reference/exit-statuses.md"): exit_statuses_page,
    Path("docs/monitoring/dashboard.json"): dashboard_json,
}
"""Generated files outside of the folders that hold nothing else."""


def wanted_files() -> dict[Path, str]:
    """Every generated file, by its path below the project's root."""
    commands = list(walk_commands())
    pages = {Path("man") / page_name(command): man_page(command) for command in commands}
    scripts = completion_scripts(commands) | broker_completion_scripts()
    completions = {Path("completions") / name: text for name, text in scripts.items()}
    pages[Path("man") / BROKER_PAGE] = broker_page()
    return pages | completions | {path: text() for path, text in SINGLE_FILES.items()}


def stale_files(root: Path, wanted: dict[Path, str]) -> list[Path]:
    """Files below `root` that are missing, differ, or belong to a removed command."""
    present = {
        path.relative_to(root)
        for folder in ("man", "completions")
        for path in (root / folder).glob("*")
    }
    present |= {path for path in SINGLE_FILES if (root / path).exists()}
    behind = {path for path in present & wanted.keys() if (root / path).read_text() != wanted[path]}
    return sorted(behind | (present ^ wanted.keys()))


def write_files(root: Path, wanted: dict[Path, str]) -> None:
    """Update the files below `root`, and delete those of removed commands."""
    for path in stale_files(root, wanted):
        if path in wanted:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(wanted[path])
        else:
            (root / path).unlink()


def main(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if files are out of date.")
    ] = False,
    root: Annotated[Path, typer.Option(help="The project's root.")] = Path(),
) -> None:
    """Write the files that are generated from commands, settings and metrics."""
    wanted = wanted_files()
    stale = stale_files(root, wanted)
    if not check:
        write_files(root, wanted)
    elif stale:
        names = ", ".join(map(str, stale))
        Output().note(f"out of date: {names}; run `make docs` and commit the result")
        raise typer.Exit(ExitStatus.FAILED)


if __name__ == "__main__":
    typer.run(main)
