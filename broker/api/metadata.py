"""Answers Metadata: brokers, controller, topics.

Version 0 cannot say "all topics" with null: there an empty list means all, from 1 on none.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)


def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """The cluster as the client's listener shows it; a topic that is not there has an error."""
    metadata = context.services.metadata
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.broker_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in metadata.brokers_of(context.peer.listener_name)
        ],
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        topics=[_unknown_topic(topic) for topic in request.topics or ()],
    )


def _unknown_topic(topic: MetadataRequestTopic) -> MetadataResponseTopic:
    code = (
        ErrorCode.UNKNOWN_TOPIC_ID if topic.name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    return MetadataResponseTopic(error_code=code, name=topic.name, topic_id=topic.topic_id)


def error_response(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    """The error on every topic asked for; there is no other place for it."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name, topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )
