"""Who decides: topics, their replicas and their leaders. One event queue, fenced by its epoch.

May use metadata, net, records, protocol and what lies below.
"""
