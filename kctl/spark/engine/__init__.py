"""Spark sessions and jobs, and file systems accessed through Spark."""
