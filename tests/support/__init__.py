"""Helpers that tests of every package share: real servers, clients, and golden data.

Which helper for what:

| to test                                          | use                                          |
|--------------------------------------------------|----------------------------------------------|
| one API of the broker, on the wire               | fixture `wire` of tests/api (`WireClient`)   |
| any bytes on a socket, closed connections        | `wire.WireClient` (send, receive, ask)       |
| frames and responses without a socket            | `wire.request_frame`, `wire.read_answer`     |
| our broker as a process                          | fixtures `broker`, `shared_broker`;          |
|                                                  | `broker.running_broker(dir, broker_id=1)`    |
| several brokers as processes, with ZooKeeper     | `cluster.Cluster` (tests/cluster/conftest)   |
| replication with logs and fetchers, but without  | `in_process_cluster.run_in_cluster`          |
| processes: the test is the controller            |                                              |
| the metadata store on a real ZooKeeper           | fixture `zookeeper`; `zookeeper.ZooKeeper`   |
| the same behaviour as Apache Kafka, live         | fixture `real_kafka` (mark `kafka`)          |
| Apache Kafka 4.x in KRaft mode                   | fixture `kraft_kafka` (mark `kafka`)         |
| the same as Kafka's tools printed, recorded      | `golden_tools.golden_tool`                   |
| a kctl command                                   | fixture `kctl`; `kctl.run_kctl`              |
| batches of records as bytes                      | `tests.log.support.batch`, `produced`        |
| their offsets, epochs and timestamps             | `batches.assign_offset_and_epoch` and others |
| coroutines as tests                              | `coroutines.pytest_pyfunc_call` in conftest  |
| sockets and listeners in one event loop          | `tests.net.support.in_loop`, `listening`     |
| a server process of any kind                     | `processes.ServerProcess`, `free_port`       |
| a schema registry                                | `registry.running_registry`;                 |
|                                                  | `running_apicurio` (mark `kafka`)            |
| TLS                                              | `certificates`, `tls_front`                  |
| a transaction that stays open                    | `open_transactions`                          |
"""
