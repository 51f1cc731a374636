"""`spark-export list`: the exports in a directory."""

from collections.abc import Iterator
from typing import Any

from kctl.cli.errors import CliError
from kctl.cli.tables import Column
from kctl.spark.engine.local import EngineOptions
from kctl.spark.publishing.export_directory import ExportDirectory
from kctl.spark.publishing.spark_export_directory import open_export_directory

EXPORT_COLUMNS = [
    Column("export", right=True),
    Column("written_at", "WRITTEN"),
    Column("mode"),
    Column("format"),
    Column("topics"),
    Column("partitions", right=True),
    Column("records", right=True),
    Column("undecodable", right=True),
    Column("gaps", right=True),
    Column("files", right=True),
    Column("size_bytes", "BYTES", right=True),
    Column("cluster_id", wide=True),
    Column("run_id", wide=True),
    Column("path", wide=True),
]


def list_exports(location: str, options: EngineOptions) -> list[dict[str, Any]]:
    """A row per export; CliError without exports, or if a manifest cannot be read."""
    with open_export_directory(location, options) as target:
        rows = list(_rows(target))
    if not rows:
        raise CliError(f"{location}: contains no exports", "kctl spark-export TOPIC… --to DIR")
    return rows


def _rows(target: ExportDirectory) -> Iterator[dict[str, Any]]:
    for number in target.exports():
        manifest = target.manifest(number)
        entries, files = manifest["partitions"], manifest["files"]
        yield {
            "export": number,
            "written_at": manifest["written_at"],
            "mode": manifest.get("mode"),
            "format": manifest["settings"]["export_format"],
            "topics": sorted({entry["topic"] for entry in entries}),
            "partitions": len(entries),
            "records": sum(entry["records"] for entry in entries),
            "undecodable": sum(entry["undecodable"] for entry in entries),
            "gaps": sum(len(entry.get("gaps", ())) for entry in entries),
            "files": len(files),
            "size_bytes": sum(file["size_bytes"] for file in files),
            "cluster_id": manifest.get("cluster_id"),
            "run_id": manifest["run_id"],
            "path": str(target.export_path(number)),
            "offsets": [
                {"topic": entry["topic"], "partition": entry["partition"], **entry["range"]}
                for entry in entries
            ],
        }
