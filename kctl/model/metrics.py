"""Series of a metrics endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """One value with its name and labels."""

    name: str
    labels: Mapping[str, str]
    value: float
