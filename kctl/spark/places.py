"""Directories on this machine or on any file system of Spark's, and the little that differs."""

import json
import os
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

from kctl.spark.hadoop import HadoopPath

Place = Path | HadoopPath


def remove_tree(place: Place) -> None:
    """Remove a directory and all that is in it, if it is there."""
    if isinstance(place, HadoopPath):
        place.remove_tree()
    else:
        shutil.rmtree(place, ignore_errors=True)


def write_json(place: Place, document: dict[str, Any]) -> None:
    """Write a document so that it is there whole or not at all, also after a power cut."""
    text = json.dumps(document, ensure_ascii=False, indent=1)
    name = f".{place.name}.{uuid4().hex[:8]}"
    if isinstance(place, HadoopPath):
        hidden = place.parent / name
        hidden.write_text(text)
        place.unlink()  # Hadoop renames to where nothing is
        hidden.rename(place)
        return
    draft = place.with_name(name)
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(place)
