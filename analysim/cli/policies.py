"""``analysim policies``: list, show and new."""

from __future__ import annotations

import inspect
import keyword
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysim.cli import options
from analysim.cli.talk import Talk, print_json, print_table
from analysim.errors import AnalysimError, UserError

if TYPE_CHECKING:
    from analysim.policy import Policy

policies = typer.Typer(help="Scheduling policies: list, show, and start your own.", no_args_is_help=True)

_TEMPLATE = '''"""{title}: describe here what the policy does and where the idea comes from."""

from analysim.policy import Plan, Policy


class {class_name}(Policy):
    """Start jobs in arrival order; a job that does not fit closes its own partition for this pass."""

    name = "{name}"

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending:
            if not plan.start(job):
                plan.close(job.partition)
'''


@policies.command("list")
def list_policies(as_json: options.Json = False, debug: options.Debug = False) -> None:
    """List the policies on the shelves, with what each may know of durations."""
    rows = [_row(name, path) for name, path in _shelf()]
    if as_json:
        print_json(rows)
    else:
        table = [[row["name"], row["knowledge"], row["title"]] for row in rows]
        print_table([["name", "knowledge", "what it does"], *table], left=3)


def _shelf() -> list[tuple[str, Path]]:
    from analysim import shelf

    return shelf.list_shelf("policies")


def _row(name: str, path: Path) -> dict[str, Any]:
    from analysim.policy.loading import load_policy

    try:
        policy = load_policy(str(path))
    except AnalysimError as error:
        told = f"cannot be loaded: {error.message}"
        facts = {"name": name, "title": told, "knowledge": "-", "source": "", "about": told, "options": {}}
        return {**facts, "path": str(path)}
    return {**_facts(policy), "name": name, "path": str(path)}


def _facts(policy: type[Policy]) -> dict[str, Any]:
    """What a policy says of itself; ``title`` is the first sentence of its docstring."""
    about = inspect.cleandoc(policy.__doc__ or "")  # not that of the base class
    return {
        "name": policy.name,
        "title": re.split(r"(?<=[.])\s", " ".join(about.split("\n\n")[0].split()), maxsplit=1)[0],
        "knowledge": policy.knowledge,
        "source": policy.source,
        "about": about,
        "options": {key: _option(policy, key) for key in policy.Options.model_fields},
        "path": inspect.getfile(policy),
    }


def _option(policy: type[Policy], option: str) -> dict[str, Any]:
    from analysim.config.dumping import type_written

    field = policy.Options.model_fields[option]
    return {"type": type_written(field), "default": _default(policy, option), "description": field.description or ""}


@policies.command()
def show(name: str, as_json: options.Json = False, debug: options.Debug = False) -> None:
    """Show what a policy does, what it may know, and its options with their defaults."""
    from analysim.policy.loading import load_policy

    facts = _facts(load_policy(name))
    if as_json:
        print_json(facts)
        return
    print(f"{facts['name']} (knowledge: {facts['knowledge']})\n")
    print(facts["about"])
    if facts["source"]:
        print(f"\nSource: {facts['source']}")
    print(f"File: {facts['path']}")
    if facts["options"]:
        print()
        table = [[key, *map(str, option.values())] for key, option in facts["options"].items()]
        print_table([["option", "type", "default", "about"], *table], left=4)


def _default(policy: type[Policy], option: str) -> Any:
    from analysim.config.dumping import write_value

    fields = policy.Options.model_fields
    if any(field.is_required() for field in fields.values()):
        return "(required)" if fields[option].is_required() else fields[option].default
    return write_value(getattr(policy.Options(), option), fields[option])


@policies.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the policy: letters, digits and underscores.")],
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write policies/NAME.py, a policy that runs as it is, to be changed into yours."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(
            f"{name!r} is no name for a policy.", "Use lower-case letters, digits and underscores: my_policy."
        )
    taken = dict(_shelf()).get(name)
    if taken is not None:
        raise UserError(f"There is a policy {name!r} already: {taken}.", "Choose another name.")
    path = Path("policies") / f"{name}.py"
    words = name.split("_")
    text = _TEMPLATE.format(
        name=name, title=" ".join(words).capitalize(), class_name="".join(map(str.capitalize, words))
    )
    path.parent.mkdir(exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    print(path)
    Talk(quiet=quiet).say(f"try it: analysim simulate --trace demo --topology gpu-1152 --policy {name}")
