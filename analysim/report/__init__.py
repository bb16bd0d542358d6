"""Figures and timeline exports of finished runs: tables in, files out.

Four functions are the public face: ``draw_run``, ``draw_comparison``, ``draw_fidelity`` and ``write_chrome_trace``.
"""

from analysim.report.chrome_trace import write_chrome_trace
from analysim.report.fidelity import draw_fidelity
from analysim.report.figures import draw_comparison, draw_run

__all__ = ["draw_comparison", "draw_fidelity", "draw_run", "write_chrome_trace"]
