"""Finds a policy by name, file, ``module:Class`` or entry point, and checks that it is one.

Our own policies have no privilege: every policy file is loaded the same way.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from analysim import shelf
from analysim.errors import PolicyFileError, ShelfError
from analysim.plan.orders import Order
from analysim.policy.base import Knowledge, Policy
from analysim.spelling import suggest

ENTRY_POINTS = "analysim.policies"
"""Entry-point group in which another package offers policies."""


def load_policy(name: str) -> type[Policy]:
    """Load the policy class that a name, a path, ``module:Class`` or an entry point means.

    Raises ``PolicyFileError`` for a file that cannot be loaded or holds no policy, ``ShelfError`` for an unknown name.
    """
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        return _from_module(name)
    offered = entry_points(group=ENTRY_POINTS, name=name)
    try:
        path = shelf.find("policies", name)
    except ShelfError:
        if not offered:
            raise
        return _check(_load_entry_point(name), name)
    if offered:
        raise ShelfError(
            f"policy {name!r} means two things: {path} and an entry point of another package.",
            "Name the file, or the class as module:Class.",
        )
    return load_policy_file(path)


def load_policy_file(path: Path) -> type[Policy]:
    """Load the one policy class of a file."""
    module = _import_file(path)
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Policy) and value.__module__ == module.__name__
    ]
    concrete = [policy for policy in found if not inspect.isabstract(policy)]
    if not concrete:
        if found:
            raise PolicyFileError(
                f"{path}: class {found[0].__name__} has no schedule(self, plan) method.", "Write one; it decides."
            )
        raise PolicyFileError(
            f"{path}: there is no policy in it.", "Write a class that derives from analysim.policy.Policy."
        )
    leaves = [policy for policy in concrete if not any(policy in other.__mro__[1:] for other in concrete)]
    if len(leaves) > 1:
        names = ", ".join(policy.__name__ for policy in leaves)
        raise PolicyFileError(f"{path}: there are {len(leaves)} policies in it: {names}.", "Keep one in a file.")
    return _check(leaves[0], path.stem)


def _import_file(path: Path) -> ModuleType:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise PolicyFileError(f"{path}: cannot be read: {error.strerror}.") from error
    # A name of its own for every content, so that two files of one name do not meet in sys.modules.
    digest = hashlib.sha256(str(path.resolve()).encode() + source).hexdigest()[:12]
    name = f"analysim_policy_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise PolicyFileError(f"{path}: is not a Python file.", "Name a .py file.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise PolicyFileError(f"{path}{_line_of(path, error)}: {type(error).__name__}: {_text(error)}.") from error
    return module


def _line_of(path: Path, error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f":{error.lineno}"
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f":{line}" if line is not None else ""


def _text(error: Exception) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(text.split()).rstrip(".")


def _from_module(name: str) -> type[Policy]:
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise PolicyFileError(f"policy {name!r}: {error}.", "Is the package installed?") from error
    policy = getattr(module, class_name, None)
    if policy is None:
        remedy = suggest(class_name, [key for key in vars(module) if not key.startswith("_")])
        raise PolicyFileError(f"policy {name!r}: module {module_name} has no {class_name}.", remedy)
    return _check(policy, class_name)


def _load_entry_point(name: str) -> Any:
    (point, *others) = entry_points(group=ENTRY_POINTS, name=name)
    if others:
        packages = ", ".join(str(each.dist.name) for each in (point, *others) if each.dist is not None)
        raise ShelfError(f"policy {name!r} is offered by several packages: {packages}.", "Uninstall one.")
    try:
        return point.load()
    except Exception as error:
        raise PolicyFileError(f"policy {name!r}: its package cannot be loaded: {error}.") from error


def _check(policy: Any, name: str) -> type[Policy]:
    """Check what every policy declares; raise ``PolicyFileError`` naming its file."""
    if not (inspect.isclass(policy) and issubclass(policy, Policy)):
        raise PolicyFileError(f"policy {name!r} is no class derived from analysim.policy.Policy.")
    where = inspect.getsourcefile(policy) or name
    if not policy.name:
        policy.name = name
    if policy.knowledge not in get_args(Knowledge):
        raise PolicyFileError(
            f"{where}: knowledge = {policy.knowledge!r} is none of {', '.join(get_args(Knowledge))}.",
            "It says what the policy may know of durations.",
        )
    if not hasattr(policy.Options, "model_validate"):
        raise PolicyFileError(f"{where}: Options is no pydantic model.", "Derive it from analysim.policy.Options.")
    parameters = list(inspect.signature(policy.schedule).parameters)
    if len(parameters) != 2:
        raise PolicyFileError(
            f"{where}: schedule takes ({', '.join(parameters)}).", "It is called as schedule(self, plan)."
        )
    flags = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_GENERATOR
    code = getattr(inspect.unwrap(policy.schedule), "__code__", None)
    if code is not None and code.co_flags & flags:
        raise PolicyFileError(
            f"{code.co_filename}:{code.co_firstlineno}: schedule is async or yields, so nothing in it would run.",
            "Write a plain def schedule(self, plan).",
        )
    for key, value in vars(policy).items():
        if isinstance(value, Order):
            value.name = key
    return policy
