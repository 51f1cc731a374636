"""docs/monitoring/dashboard.json: a Grafana dashboard, written from the table below.

`python -m kctl.docs` writes it; `--check` finds it out of date.
"""

import json
from typing import Any, Final

_PANELS: Final[tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]] = (
    (
        "Problems",
        "short",
        (
            ("sum(kafka_controller_kafkacontroller_offlinepartitionscount)", "offline"),
            ("sum(kafka_server_replicamanager_underminisrpartitioncount)", "under min ISR"),
            ("sum(kafka_server_replicamanager_underreplicatedpartitions)", "under-replicated"),
            ("sum(kafka_log_logmanager_offlinelogdirectorycount)", "failed directories"),
        ),
    ),
    (
        "Bytes in and out",
        "Bps",
        (
            ('sum(rate(kafka_server_brokertopicmetrics_bytesin_total{topic!=""}[1m]))', "in"),
            ('sum(rate(kafka_server_brokertopicmetrics_bytesout_total{topic!=""}[1m]))', "out"),
            (
                'sum(rate(kafka_server_brokertopicmetrics_replicationbytesin_total{topic!=""}[1m]))',
                "replication",
            ),
        ),
    ),
    (
        "Records in, by topic",
        "short",
        (
            (
                "topk(10, sum by (topic) "
                '(rate(kafka_server_brokertopicmetrics_messagesin_total{topic!=""}[1m])))',
                "{{topic}}",
            ),
        ),
    ),
    (
        "Requests per second, by API",
        "reqps",
        (
            (
                "topk(10, sum by (request) "
                "(rate(kafka_network_requestmetrics_requests_total[1m])))",
                "{{request}}",
            ),
        ),
    ),
    (
        "Produce time, 99 %",
        "ms",
        (
            (
                "max by (instance) (kafka_network_requestmetrics_totaltimems"
                '{request="Produce",quantile="0.99"})',
                "{{instance}}",
            ),
        ),
    ),
    (
        "Errors per second",
        "short",
        (
            (
                "sum by (request, error) (rate(kafka_network_requestmetrics_errors_total[1m]))",
                "{{request}} {{error}}",
            ),
        ),
    ),
    (
        "Idle share of the event loop",
        "percentunit",
        (("rate(kafka_network_socketserver_idle_seconds_total[1m])", "{{instance}}"),),
    ),
    (
        "Partitions and leaders",
        "short",
        (
            ("kafka_server_replicamanager_partitioncount", "partitions {{instance}}"),
            ("kafka_server_replicamanager_leadercount", "leaders {{instance}}"),
        ),
    ),
    (
        "ISR changes per second",
        "short",
        (
            ("sum(rate(kafka_server_replicamanager_isrshrinks_total[5m]))", "shrinks"),
            ("sum(rate(kafka_server_replicamanager_isrexpands_total[5m]))", "expands"),
        ),
    ),
    (
        "Size on disk, by topic",
        "bytes",
        (("topk(10, sum by (topic) (kafka_log_log_size))", "{{topic}}"),),
    ),
    (
        "Connections",
        "short",
        (
            (
                "sum by (listener, instance) (kafka_server_socket_server_metrics_connection_count)",
                "{{listener}} {{instance}}",
            ),
        ),
    ),
    (
        "Memory and CPU",
        "short",
        (
            ("process_resident_memory_bytes", "memory {{instance}}"),
            ("rate(process_cpu_seconds_total[1m])", "cores {{instance}}"),
        ),
    ),
)
"""Title, unit, and (expression, legend) of every panel."""

_WIDTH: Final = 12
_HEIGHT: Final = 8


def dashboard_json() -> str:
    """The text of docs/monitoring/dashboard.json."""
    document = {
        "title": "Kafka (kctl-broker)",
        "uid": "kctl-broker",
        "schemaVersion": 39,
        "tags": ["kafka"],
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "15s",
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [_panel(number, *panel) for number, panel in enumerate(_PANELS)],
    }
    return json.dumps(document, indent=2) + "\n"


def _panel(
    number: int, title: str, unit: str, targets: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {
            "x": number % 2 * _WIDTH,
            "y": number // 2 * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(targets)
        ],
    }
