"""Signals that are remembered: the first one stops nothing, the second one stops as usual."""

import os
import signal

import pytest

from calibrant.cli._errors import Stopped
from calibrant.cli._signals import Signals, forget_signals, stop

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of Unix")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_the_first_signal_is_remembered_and_the_second_one_acts_as_usual(
    number: signal.Signals,
) -> None:
    heard = []
    before = signal.signal(number, lambda *_: heard.append(number))
    try:
        with Signals() as signals:
            assert signals.number is None
            os.kill(os.getpid(), number)
            assert signals.number == number
            assert heard == []
            os.kill(os.getpid(), number)
            assert heard == [number]
        os.kill(os.getpid(), number)
        assert heard == [number, number]
    finally:
        signal.signal(number, before)


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.number is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_whose_error_was_dropped_is_remembered() -> None:
    """Python drops errors within finalizers, where a handler may run."""
    forget_signals()
    try:
        with pytest.raises(Stopped):
            stop(signal.SIGTERM, None)
        with Signals() as signals:
            assert signals.number == signal.SIGTERM
    finally:
        forget_signals()
