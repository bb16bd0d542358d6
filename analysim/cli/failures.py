"""How every command fails: one clear line on stderr, exit code 1 or 2, a traceback only on request."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from analysim.errors import AnalysimError

_DEBUG = "analysim.debug"


def remember_debug(context: typer.Context, debug: bool) -> bool:
    """Note for the whole command line that ``--debug`` was given; the callback of that option."""
    if debug:
        context.meta[_DEBUG] = True
    return debug


class Commands(TyperGroup):
    """The command group that turns errors into exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; raises ``typer.Exit`` with 1 or 2 where it fails."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except AnalysimError as error:
            _explain(ctx, str(error))
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            _explain(ctx, "stopped; the unfinished run was not written.")
            raise typer.Exit(1) from error
        except BrokenPipeError as error:
            # The reader has left; the interpreter must not try to flush the rest at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from error
        except MemoryError as error:
            _explain(ctx, "out of memory; simulate a part of the trace with --window.")
            raise typer.Exit(1) from error
        except OSError as error:
            _explain(ctx, f"{error.filename or 'the system'}: {error.strerror or error}.")
            raise typer.Exit(1) from error


def _explain(context: Any, message: str) -> None:
    if context.meta.get(_DEBUG):
        traceback.print_exc(file=sys.stderr)
    print(f"error: {message}", file=sys.stderr)
