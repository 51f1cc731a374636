"""An export directory in an object store (`s3://`, `gs://`), written by the local engine.

The layout is that of a local export directory. Tasks write to a staging directory on this machine,
which also has the lock and the plan for `--resume`; `--to` URLs have staging directories of their
own in the user's cache. Publishing uploads the files to `export=N/` and then `_manifest.json`. An
object store has no rename, so an export without its manifest is incomplete: readers that may run at
the same time must look for the manifest, and the next run removes what a killed one has left.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crc32c import crc32c

from kctl.cli.errors import CliError
from kctl.spark.planning.plan import Plan
from kctl.spark.publishing.export_directory import (
    MANIFEST,
    ExportDirectory,
    export_name,
    export_number,
    make_manifest,
)
from kctl.spark.publishing.staging import STAGING, Staging
from kctl.spark.writing.content import UNDECODABLE
from kctl.spark.writing.results import UNKNOWN, ExportedFile, TaskResult

SCHEMES = ("s3", "gs")
"""Schemes of the object stores that Arrow writes to."""

_CHUNK_BYTES = 8 * 1024 * 1024


class ObjectPath:
    """A path in an object store, with the names of pathlib's methods."""

    def __init__(self, file_system: Any, url: str, path: str) -> None:
        self._fs = file_system
        self._url = url
        self.path = path

    @classmethod
    def open(cls, location: str) -> "ObjectPath":
        """The path of a URL; CliError if it is not valid."""
        from pyarrow import fs

        try:
            file_system, path = fs.FileSystem.from_uri(location)
        except (OSError, ValueError) as error:
            raise CliError(f"{location}: {error}", "e.g. s3://bucket/directory") from error
        return cls(file_system, location.partition("?")[0].rstrip("/"), path.rstrip("/"))

    @property
    def file_system(self) -> Any:
        """Arrow's file system."""
        return self._fs

    def __str__(self) -> str:
        return self._url

    def __truediv__(self, name: str) -> "ObjectPath":
        return ObjectPath(self._fs, f"{self._url}/{name}", f"{self.path}/{name}")

    @property
    def name(self) -> str:
        """The last component."""
        return self.path.rpartition("/")[2]

    def exists(self) -> bool:
        """Whether there is an object, or objects below."""
        from pyarrow import fs

        return bool(self._fs.get_file_info(self.path).type != fs.FileType.NotFound)

    def is_dir(self) -> bool:
        """Whether there are objects below."""
        from pyarrow import fs

        return bool(self._fs.get_file_info(self.path).type == fs.FileType.Directory)

    def iterdir(self) -> Iterator["ObjectPath"]:
        """What is directly below."""
        from pyarrow import fs

        for info in self._fs.get_file_info(fs.FileSelector(self.path, allow_not_found=True)):
            yield self / info.base_name

    def walk(self) -> Iterator[str]:
        """The paths of all objects below, relative to this one."""
        from pyarrow import fs

        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=True)
        for info in self._fs.get_file_info(selector):
            if info.type == fs.FileType.File:
                yield info.path.removeprefix(self.path).lstrip("/")

    def read_text(self) -> str:
        """Read a small object."""
        with self._fs.open_input_stream(self.path) as stream:
            return bytes(stream.read()).decode()

    def write_text(self, text: str) -> None:
        """Write a small object."""
        with self._fs.open_output_stream(self.path) as stream:
            stream.write(text.encode())

    def upload(self, source: Path) -> None:
        """Copy a local file."""
        with source.open("rb") as file, self._fs.open_output_stream(self.path) as stream:
            while data := file.read(_CHUNK_BYTES):
                stream.write(data)

    def size_and_crc32c(self) -> tuple[int, str]:
        """The size of the object and its CRC-32C in hexadecimal, by streaming."""
        size = crc = 0
        with self._fs.open_input_stream(self.path) as stream:
            while data := stream.read(_CHUNK_BYTES):
                size, crc = size + len(data), crc32c(data, crc)
        return size, f"{crc:08x}"

    def remove_tree(self) -> None:
        """Delete the object and all below it."""
        if self.is_dir():
            self._fs.delete_dir(self.path)
        elif self.exists():
            self._fs.delete_file(self.path)

    def rmdir(self) -> None:
        """Object stores have no empty directories."""


class ObjectStoreExportDirectory(ExportDirectory):
    """Exports in an object store; `staging` is a local directory."""

    staging: Staging

    def __init__(self, location: str) -> None:
        self._store = ObjectPath.open(location)
        super().__init__(self._store, Staging(_scratch(str(self._store)) / STAGING))  # type: ignore[arg-type]

    def exports(self) -> list[int]:
        """The numbers of complete exports, ascending: those that have a manifest."""
        return [number for number in self._numbers() if self._manifest_path(number).exists()]

    def _numbers(self) -> list[int]:
        found = (export_number(path.name) for path in self._store.iterdir())
        return sorted(number for number in found if number is not None)

    def _manifest_path(self, number: int) -> ObjectPath:
        return self._store / export_name(number) / MANIFEST

    def found_files(self, number: int) -> Mapping[str, ExportedFile]:
        """The data files of an export, by relative path."""
        directory = self._store / export_name(number)
        return {
            path: ExportedFile(path, UNKNOWN, *(directory / path).size_and_crc32c())
            for path in sorted(directory.walk())
            if path != MANIFEST
        }

    def commit(self, plan: Plan, results: list[TaskResult]) -> Any:
        """Upload a finished run, the manifest last; can be repeated after a crash."""
        published = self._published(plan.run_id)
        path = published or self._upload(plan, results)
        self.staging.remove()
        return path

    def _upload(self, plan: Plan, results: list[TaskResult]) -> ObjectPath:
        replaced = self.exports() if plan.is_overwrite else []
        self._remove_incomplete()
        target = self._store / export_name((self._numbers() or [0])[-1] + 1)
        self.staging.out.mkdir(exist_ok=True)
        for result in results:
            self.staging.assemble(result)
        files = [file for result in results for file in result.files]
        if all(file.path.startswith(UNDECODABLE) for file in files):
            files += self.staging.write_empty(plan)
        out = Path(str(self.staging.out))
        for file in files:
            (target / file.path).upload(out / file.path)
        manifest = make_manifest(plan, results, files)
        (target / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1))
        for number in replaced:  # the manifest first: without it the rest is not an export
            self._manifest_path(number).remove_tree()
            (self._store / export_name(number)).remove_tree()
        return target

    def _remove_incomplete(self) -> None:
        for number in set(self._numbers()) - set(self.exports()):
            (self._store / export_name(number)).remove_tree()

    @property
    def is_half_replaced(self) -> bool:
        """Exports are deleted only after their replacement is complete."""
        return False

    def clean_up(self) -> None:
        """Remove all files of a failed run."""
        self.staging.remove()


def _scratch(url: str) -> Path:
    """The local directory for runs into a URL."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kctl"
    return cache / "exports" / hashlib.sha256(url.encode()).hexdigest()[:16]


@contextmanager
def open_object_store(location: str) -> Iterator[ExportDirectory]:
    """The export directory at a URL; CliError names what the store refuses."""
    try:
        yield ObjectStoreExportDirectory(location)
    except OSError as error:
        if error.filename is not None:
            raise
        raise CliError(
            f"{location.partition('?')[0]}: {str(error).splitlines()[0]}",
            "check the address and the credentials (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …)",
        ) from error
