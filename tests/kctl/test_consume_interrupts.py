"""Ctrl-C is handled between steps; a second one interrupts at once."""

import signal
import threading

import pytest

from kctl.cli.interrupts import ctrl_c_noted


def test_first_ctrl_c_is_deferred_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), ctrl_c_noted() as noted:
        assert not noted.is_set()
        signal.raise_signal(signal.SIGINT)
        assert noted.is_set()
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_do_not_change_signal_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def enter() -> None:
        with ctrl_c_noted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [before]
