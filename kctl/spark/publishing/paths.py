"""Operations on local paths and on paths of Spark's file systems alike."""

import json
import os
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

from kctl.spark.engine.hadoop import HadoopPath

AnyPath = Path | HadoopPath


def remove_tree(place: AnyPath) -> None:
    """Delete a directory tree if it exists."""
    if isinstance(place, HadoopPath):
        place.remove_tree()
    else:
        shutil.rmtree(place, ignore_errors=True)


def write_json(place: AnyPath, document: dict[str, Any]) -> None:
    """Write a document atomically and durably."""
    text = json.dumps(document, ensure_ascii=False, indent=1)
    name = f".{place.name}.{uuid4().hex[:8]}"
    if isinstance(place, HadoopPath):
        hidden = place.parent / name
        hidden.write_text(text)
        place.unlink()  # Hadoop cannot rename over an existing file
        hidden.rename(place)
        return
    draft = place.with_name(name)
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(place)
