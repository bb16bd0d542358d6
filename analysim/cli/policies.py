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
        print_table(
            [["name", "knowledge", "what it does"], *([*map(str, row.values())][:3] for row in rows)], left=3
        )


def _shelf() -> list[tuple[str, Path]]:
    from analysim import shelf

    return shelf.list_shelf("policies")


def _row(name: str, path: Path) -> dict[str, Any]:
    from analysim.policy.loading import load_policy

    try:
        policy = load_policy(str(path))
    except AnalysimError as error:
        return {
            "name": name,
            "knowledge": "-",
            "about": f"cannot be loaded: {error.message}",
            "path": str(path),
        }
    return {"name": name, "knowledge": policy.knowledge, "about": _first_line(policy), "path": str(path)}


def _first_line(policy: type[Policy]) -> str:
    return (inspect.getdoc(policy) or "").split("\n")[0]


@policies.command()
def show(name: str, as_json: options.Json = False, debug: options.Debug = False) -> None:
    """Show what a policy does, what it may know, and its options with their defaults."""
    from analysim.policy.loading import load_policy

    policy = load_policy(name)
    chosen = [
        {"option": key, "default": _default(policy, key), "about": field.description or ""}
        for key, field in policy.Options.model_fields.items()
    ]
    if as_json:
        facts = {"name": policy.name, "knowledge": policy.knowledge, "source": policy.source}
        print_json(
            {
                **facts,
                "about": inspect.getdoc(policy) or "",
                "options": chosen,
                "path": inspect.getfile(policy),
            }
        )
        return
    print(f"{policy.name} (knowledge: {policy.knowledge})\n")
    print(inspect.getdoc(policy) or "")
    if policy.source:
        print(f"\nSource: {policy.source}")
    print(f"File: {inspect.getfile(policy)}")
    if chosen:
        print()
        print_table(
            [["option", "default", "about"], *(list(map(str, each.values())) for each in chosen)], left=3
        )


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
