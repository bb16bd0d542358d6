"""The clock: applies events and decisions in one total order, and records them."""

from analysim.engine.simulation import Progress, Simulation

__all__ = ["Progress", "Simulation"]
