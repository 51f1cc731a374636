"""Schema registry: one client and its codecs for `consume`, `produce` and `spark-export`.

    settings = registry_settings(session)          # None if no registry is configured
    client = RegistryClient(settings)              # Confluent's REST API; schemas are cached
    decoder = Decoder(client)                      # any schema type, by the id in each value
    decoder.decode(value)                          # Python objects
    decoder.document(value)                        # the same as JSON can hold it
    Encoder(client, schema).encode(document)       # bytes with the id of the schema

Values that do not have Confluent's wire format raise `UndecodableValue`. fastavro, protobuf,
grpcio-tools and jsonschema are the extra `registry`; each is imported by the codec that needs it.
Settings, clients and decoders hold no open connections and can be pickled for Spark tasks.
"""
