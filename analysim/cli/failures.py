"""How every command fails: one clear line on stderr and an exit code, a traceback only on request."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Never

import typer
from typer.core import TyperGroup

from analysim.errors import AnalysimError

_DEBUG = "analysim.debug"
_STOPPING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class _Stopped(KeyboardInterrupt):
    """A signal asked the process to end: everything unwinds as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def remember_debug(context: typer.Context, debug: bool) -> bool:
    """Note for the whole command line that ``--debug`` was given; the callback of that option."""
    if debug:
        context.meta[_DEBUG] = True
    return debug


class Commands(TyperGroup):
    """The command group that turns errors into exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; raises ``typer.Exit`` where it fails: 1 or 2, or 128 + the signal."""
        try:
            with _stopped_by_signals():
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except AnalysimError as error:
            _explain(ctx, error, str(error))
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            _explain(ctx, error, "stopped; the unfinished run was not written.")
            raise typer.Exit(128 + getattr(error, "number", signal.SIGINT)) from error
        except BrokenPipeError as error:
            # The reader has left; the interpreter must not try to flush the rest at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from error
        except MemoryError as error:
            _explain(ctx, error, "out of memory; simulate a part of the trace with --window.")
            raise typer.Exit(1) from error
        except OSError as error:
            _explain(ctx, error, f"{error.filename or 'the system'}: {error.strerror or error}.")
            raise typer.Exit(1) from error


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Turn the signals that end a process into ``_Stopped``, unless the process was started to ignore them."""
    before = {number: signal.getsignal(number) for number in _STOPPING}
    caught = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, before[number])


def _stop(number: int, frame: FrameType | None) -> Never:
    signal.signal(number, signal.SIG_IGN)  # a second one must not disturb the cleaning up
    raise _Stopped(number)


def _explain(context: Any, error: BaseException, message: str) -> None:
    if context.meta.get(_DEBUG):
        traceback.print_exc(file=sys.stderr)
    notes = getattr(error, "__notes__", ())
    print("error:", " ".join((message, *notes)), file=sys.stderr)
