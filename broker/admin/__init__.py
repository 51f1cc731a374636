"""The admin port: metrics and health over HTTP, read-only, served from threads of its own.

`admin.listeners=http://127.0.0.1:9644` opens it; it is closed by default. Nothing of HTTP runs on
the event loop: a scrape reads the broker's counters from another thread.
"""
