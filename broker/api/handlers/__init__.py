"""One module per API, named as Kafka names it: the listing of this directory is the API table.

Each module has `handle` and `error_response`; `broker.api.table` has its row.
"""
