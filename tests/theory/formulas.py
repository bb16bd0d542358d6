"""Closed forms of queueing theory that the simulator is held against; times in units of the mean service time.

Erlang C: Erlang (1917), in Gross and Harris, *Fundamentals of Queueing Theory*, 2.3. Priorities: Cobham (1954) and
White and Christie (1958), there 3.4. SRPT: Schrage and Miller (1966). Feedback queues: Schrage, *The queue M/G/1 with
feedback to lower priority queues* (1967); Kleinrock, *Queueing Systems* 2 (1976), 4.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def erlang_c(servers: int, load: float) -> float:
    """Probability of waiting in M/M/c at a load per server."""
    offered = servers * load
    blocking = 1.0
    for count in range(1, servers + 1):  # Erlang B by its recursion, which never overflows
        blocking = offered * blocking / (count + offered * blocking)
    return blocking / (1 - load * (1 - blocking))


def mean_wait(servers: int, load: float) -> float:
    """Mean wait of all customers in M/M/c, service of mean 1."""
    return erlang_c(servers, load) / (servers * (1 - load))


def variance_of_a_mean_wait(servers: int, load: float) -> float:
    """n times the variance of the mean wait of n customers in M/M/c, n large.

    The waits of n customers and the area under the queue over their arrivals differ by what does not grow, so the
    variance is that of the area less the mean wait at every arrival: a function of a birth-death process. Its
    Poisson equation is solved by sums (Whitt, *Asymptotic formulas for Markov processes with applications to
    simulation*, 1992). One server: (load)(2 + 5 load - 4 load^2 + load^3) / (1 - load)^4 (Daley, 1968).
    """
    arrival = servers * load
    wait = mean_wait(servers, load)
    levels = servers + math.ceil(60 / -math.log(load))
    weights = [0.0]  # logarithms of the stationary probabilities
    for count in range(1, levels):
        weights.append(weights[-1] + math.log(arrival / min(count, servers)))
    largest = max(weights)
    total = sum(math.exp(weight - largest) for weight in weights)
    chances = [math.exp(weight - largest) / total for weight in weights]
    queue = arrival * wait
    below = 0.0
    step_before = 0.0
    variance = 0.0
    for count, chance in enumerate(chances):
        below += (max(count - servers, 0) - queue) * chance
        step = -below / (arrival * chance)
        variance += chance * (arrival * (step - wait) ** 2 + min(count, servers) * step_before**2)
        step_before = step
    return variance / arrival


def relaxation_time(servers: int, load: float) -> float:
    """Time in which what is left of the start has fallen by e, at most: of the queue and of the servers."""
    return max(1.0, 1 / (servers * (1 - math.sqrt(load)) ** 2))


def srpt_mean_response(load: float, density: Callable[[float], float], largest: float, second: float) -> float:
    """Mean time in system of M/G/1 under shortest remaining processing time.

    ``density`` of service times with mean 1 on (0, ``largest``). Schrage and Miller: for a job of size x,
    load(x) = rate * integral of t f(t) up to x, T(x) = rate (integral of t^2 f + x^2 (1 - F(x))) / (2 (1 - load(x))^2)
    + integral of dt / (1 - load(t)). ``second`` is the second moment, to check the integration.
    """
    steps = 20_000
    width = largest / steps
    rate = load
    share = moment = reached = waiting = 0.0
    response = 0.0
    for step in range(steps):  # one midpoint rule for all of the nested integrals
        size = (step + 0.5) * width
        mass = density(size) * width
        half = mass / 2
        part = share + size * half
        below = reached + half
        wait = rate * (moment + size**2 * half + size**2 * (1 - below)) / (2 * (1 - rate * part) ** 2)
        stay = waiting + width / 2 / (1 - rate * part)
        response += (wait + stay) * mass
        share, moment, reached = share + size * mass, moment + size**2 * mass, reached + mass
        waiting += width / (1 - rate * part)
    assert abs(reached - 1) < 1e-5 and abs(moment / second - 1) < 1e-4, "the integration is too coarse"
    return response


def feedback_mean_response(
    load: float, survival: Callable[[float], float], thresholds: tuple[float, ...], largest: float
) -> float:
    """Mean time in system of M/G/1 with feedback queues, first come first served in each, lower ones stopped.

    ``survival`` is P(S > x) of service times with mean 1 up to ``largest``. A job of size x that ends in the queue of
    services from a to b takes (x + W) / (1 - rate * E min(S, a)), with W = rate * E min(S, b)^2 / (2 (1 - rate * E
    min(S, b))). With ever more queues that is foreground-background (least attained service).
    """
    steps = 4_000
    response = before = 0.0  # before: E min(S, a)
    square = 0.0  # half of E min(S, b)^2, the integral of t P(S > t)
    for a, b in zip((0.0, *thresholds), (*thresholds, largest), strict=True):
        width = (b - a) / steps
        middles = [a + (step + 0.5) * width for step in range(steps)]
        tails = [survival(middle) for middle in middles]
        upto = before + sum(tails) * width
        square += sum(middle * tail for middle, tail in zip(middles, tails, strict=True)) * width
        wait = load * square / (1 - load * upto)
        ending = survival(a) - survival(b)
        sizes = upto - before + a * survival(a) - b * survival(b)  # the mean of the sizes that end here, times ending
        response += (sizes + ending * wait) / (1 - load * before)
        before = upto
    assert abs(before - 1) < 1e-4, "the mean is not 1, or the integration is too coarse"
    return response


def nonpreemptive_waits(loads: tuple[float, float]) -> tuple[float, float]:
    """Mean waits of the important and the other class in M/M/1, service of mean 1, nobody stopped (Cobham)."""
    high, low = loads
    residual = high + low  # half the rate times the second moment, which is 2
    return residual / (1 - high), residual / ((1 - high) * (1 - high - low))


def preemptive_responses(loads: tuple[float, float], second: float = 2.0) -> tuple[float, float]:
    """Mean times in system in M/G/1 where the important class stops the other, which resumes later.

    Service of mean 1; ``second`` is its second moment, 2 where it is exponential. What is found ahead of a job counts
    for half of it, and the other class is at work only for what the important one leaves.
    """
    high, low = loads
    both = high + low
    important = 1 + high * second / 2 / (1 - high)
    return important, 1 / (1 - high) + both * second / 2 / ((1 - high) * (1 - both))


def mean_wait_of_one(load: float, second: float) -> float:
    """Mean wait in M/G/1 first come first served, service of mean 1 (Pollaczek 1930, Khinchine 1932)."""
    return load * second / 2 / (1 - load)


def shared_response(load: float) -> float:
    """Mean time in system in M/G/1 under processor sharing, per unit of service: whatever its distribution."""
    return 1 / (1 - load)
