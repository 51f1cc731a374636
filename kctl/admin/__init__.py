"""What kctl asks a cluster, over broker.net.client: one module per subject, plain records out.

Works on any Kafka: what an older cluster lacks is said in words, with the version that has it.
"""
