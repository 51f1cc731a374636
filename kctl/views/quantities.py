"""Formatting of numbers."""


def human_bytes(count: float) -> str:
    """`1.5 GB`: decimal units, as disks and networks are labelled."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def size_text(count: object) -> str:
    """`1.5GB`, for cells of tables: without a blank, so that awk sees one field."""
    return human_bytes(float(str(count))).replace(" ", "")


def plural(count: int, noun: str) -> str:
    """`1 partition`, `2 partitions`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
