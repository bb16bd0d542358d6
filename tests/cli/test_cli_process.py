"""The command line as a process: what it imports, signals, closed pipes, and the built wheel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from functools import partial
from pathlib import Path

import pytest
from small_run import SIMULATE

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("matplotlib", "numpy", "pandas", "pydantic", "simpy", "yaml")
ANALYSIM = (sys.executable, "-m", "analysim")


@pytest.fixture
def environment() -> dict[str, str]:
    """The package is found from any directory, installed or not."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


@pytest.mark.parametrize(
    ("words", "allowed"),
    [(["--help"], []), (["--version"], []), (["simulate", "--help"], ["pydantic"])],  # Typer's own import
)
def test_help_imports_nothing_heavy(
    words: list[str], allowed: list[str], environment: dict[str, str]
) -> None:
    program = (
        "import sys\nfrom analysim.cli import main\nsys.argv = ['analysim', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print('imported', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], env=environment, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] in ("imported []", f"imported {allowed}"), done.stderr


def test_importing_the_package_is_cheap(environment: dict[str, str]) -> None:
    program = (
        "import sys, analysim\n"
        f"before = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert callable(analysim.simulate) and 'compare' in dir(analysim)\n"
        "print(before, 'pandas' in sys.modules, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == "[] True False\n", done.stderr


SLOW_POLICY = """\
import time

from analysim.policy import Plan, Policy


class Slow(Policy):
    name = "slow"

    def schedule(self, plan: Plan) -> None:
        print("started", flush=True)
        time.sleep(30)
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_cleanly_and_leaves_nothing(
    here: Path, environment: dict[str, str], sent: signal.Signals
) -> None:
    (here / "slow.py").write_text(SLOW_POLICY)
    words = [*ANALYSIM, *SIMULATE, "--policy", "slow.py"]
    pipe = subprocess.PIPE
    # A test run started in the background inherits ignored signals; a user's terminal does not.
    listens = partial(signal.signal, sent, signal.SIG_DFL)
    with subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True, preexec_fn=listens) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(sent)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 128 + sent
    assert stderr.splitlines()[-1] == "error: stopped; the unfinished run was not written."
    assert "Traceback" not in stderr
    assert not (here / "runs").exists()


def test_a_reader_that_leaves_early_is_no_crash(here: Path, environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        words = [*ANALYSIM, "policies", "list"]
        done = subprocess.run(words, env=environment, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


def test_stdout_holds_data_alone(here: Path, environment: dict[str, str]) -> None:
    import json

    done = subprocess.run([*ANALYSIM, *SIMULATE, "--json"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["completed"] == 6
    assert done.stderr.startswith("trace    prod.csv")


@pytest.mark.slow
def test_a_wheel_in_a_clean_environment_finds_the_bundled_shelves(here: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(here / "dist"),
        str(REPOSITORY),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (here / "dist").glob("*.whl")
    venv.create(here / "clean", with_pip=True)
    python = here / "clean" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, timeout=300)
    command = str(here / "clean" / "bin" / "analysim")
    words = [
        "simulate",
        "--trace",
        "demo",
        "--topology",
        "gpu-1152",
        "--policy",
        "fifo",
        "--window",
        ":6h",
        "--out",
        "run",
    ]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([command, *words], cwd=here, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (here / "run/figures/jct_cdf.png").is_file()
    assert str(REPOSITORY) not in (here / "run/run.json").read_text()
    listed = subprocess.run(
        [command, "policies", "list"], cwd=here, env=environment, capture_output=True, text=True
    )
    assert {"fifo", "preempt", "migrate", "sjf", "srtf"} <= {
        line.split()[0] for line in listed.stdout.splitlines()
    }
