"""`kctl demo` runs to its end, and its commands work."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_tour_completes_with_its_intended_failures() -> None:
    words = [sys.executable, "-m", "kctl", "demo"]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=380)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.rstrip().endswith("The broker was stopped and its files were deleted")
    failed = [line for line in answer.stdout.splitlines() if line.startswith("(exit status")]
    # The lag above its limit, a denied request, a name misspelled, a broker that is not there.
    statuses = ["(exit status 3)"] * 2 + ["(exit status 1)"] * 2
    assert failed == statuses
    assert "12 plums" in answer.stdout
    assert "8 records in 1 file" in answer.stdout
    assert "no problems found" in answer.stdout


@pytest.mark.slow
@pytest.mark.spark  # its ZooKeeper is in PySpark's jars
@pytest.mark.timeout(500)
def test_cluster_tour_shows_failures_and_ends_healthy() -> None:
    words = [sys.executable, "-m", "kctl", "demo", "cluster"]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=480)
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stdout[-3000:]
    assert answer.stdout.rstrip().endswith("The cluster was stopped and its files were deleted")
    failed = {line for line in answer.stdout.splitlines() if line.startswith("(exit status")}
    assert failed <= {"(exit status 4)"}  # replicas of a broker that has just been killed
    # The record survives with the clean policy, and is lost with the unclean one.
    safe, risky = answer.stdout.split("── unclean.leader.election.enable=")[1:3]
    assert "$ kctl consume safe --exit\nprecious\n" in safe
    assert "$ kctl consume risky --exit\n\n" in risky
    assert "no problems found" in answer.stdout
