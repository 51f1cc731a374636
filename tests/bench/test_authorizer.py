"""What an authorizer costs, counted in opcodes: the same on every machine."""

import subprocess
import sys


def test_1000_acls_cost_at_most_5_percent_of_a_produce() -> None:
    """In a process of its own: pytest changes the loggers, which adds opcodes."""
    command = [sys.executable, "-m", "bench", "authorizer"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
