"""The output of kafka-configs."""

from collections.abc import Iterator, Sequence

from kctl.model.configs import BROKER_DEFAULTS, Config, Entity


def description_lines(
    entity: Entity, configs: Sequence[Config], *, describe_all: bool
) -> Iterator[str]:
    """The lines of `--describe` for one entity."""
    if entity.name == BROKER_DEFAULTS:
        yield f"Default configs for {entity.type} in the cluster are:"
    else:
        yield f"{'All' if describe_all else 'Dynamic'} configs for {entity} are:"
    for config in configs:
        synonyms = ", ".join(f"{s.source}:{s.name}={_java(s.value)}" for s in config.synonyms)
        sensitive = str(config.sensitive).lower()
        value = _java(config.value)
        yield f"  {config.name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def completion_line(entity: Entity) -> str:
    """The line of `--alter`."""
    if entity.name == BROKER_DEFAULTS:
        return f"Completed updating default config for {entity.type} in the cluster."
    return f"Completed updating config for {entity}."


def _java(value: str | None) -> str:
    return "null" if value is None else value
