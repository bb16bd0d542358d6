"""A policy that does everything that is legal, at random: the same for the same seed."""

from __future__ import annotations

from random import Random

from analysim.policy import PLACERS, Job, Options, Order, Plan, Policy
from tests.property.audit import audit

STEP = 500_000
MODES = ("checkpoint", "checkpoint", "kill", "suspend", "cancel")


class ChaosOptions(Options):
    """``useless``: open what-ifs that are undone, which must change nothing. ``unit_us``: of its own wake-ups."""

    seed: int = 0
    turns: int = 40
    useless: bool = False
    cancels: bool = True
    unit_us: int = STEP


class Chaos(Policy):
    """For some turns whatever the dice say, then first come first served, so that runs end."""

    name = "chaos"
    idle_passes = True
    Options = ChaosOptions

    important = Order(lambda job: -job.priority)
    newest = Order(lambda job: -job.submit)

    def begin(self, plan: Plan) -> None:
        self.turn = 0
        self.victims_made_room = 0

    def schedule(self, plan: Plan) -> None:
        audit(plan)
        self.turn += 1
        self.dice = Random(f"{self.options.seed}:{self.turn}")
        self._waste(plan)
        if self.turn > self.options.turns:
            for job in plan.pending:
                plan.start(job)
            self._waste(plan)
        else:
            self._stir(plan)
            self._waste(plan)
            if plan.pending:
                plan.wake_at(plan.now + self.dice.randint(1, 8) * self.options.unit_us)
        audit(plan)

    def _stir(self, plan: Plan) -> None:
        if self.dice.random() < 0.4:
            self._stop_some(plan)
        if self.dice.random() < 0.3:
            self._what_if(plan, keep=self.dice.random() < 0.5)
        self._start_some(plan)
        if self.dice.random() < 0.4:
            self._move_some(plan)
        if self.dice.random() < 0.5:
            self._resize_some(plan)
        for job in plan.running:
            if self.dice.random() < 0.1:
                plan.wake_at(plan.now + self.dice.randint(1, 6) * self.options.unit_us, job)

    def _stop_some(self, plan: Plan) -> None:
        for job in plan.running:
            if not _may_stop(plan, job) or self.dice.random() > 0.3:
                continue
            mode = self.dice.choice(MODES if self.options.cancels else MODES[:4])
            plan.preempt(job, mode)
            if mode != "cancel" and self.dice.random() < 0.25:
                assert plan.start(job), "stopped and started in place is nothing"

    def _start_some(self, plan: Plan) -> None:
        queue = self.dice.choice([plan.pending, plan.pending_by(self.important), plan.pending_by(self.newest)])
        for job in queue:
            roll = self.dice.random()
            if roll < 0.05:
                plan.close(job.partition)
            elif roll < 0.1:
                plan.skip(job)
            elif roll < 0.25:
                self._start_with_room(plan, job)
            elif roll < 0.35:
                plan.start(job, where=PLACERS[self.dice.choice(["spread", "first", "pack"])]())
            elif roll < 0.45:
                self._start_at_fit(plan, job)
            elif roll < 0.6 and job.elastic and job.demand.pinned is None:
                plan.start(job, gpus=self._size(job))
            elif roll < 0.9:
                started = plan.start(job)
                if started and self.dice.random() < 0.05 and plan.freeable(job):
                    plan.preempt(job, "kill")

    def _start_at_fit(self, plan: Plan, job: Job) -> None:
        found = plan.fit(job)
        if found:
            assert plan.start(job, where=found), "what fits starts there"

    def _start_with_room(self, plan: Plan, job: Job) -> None:
        if plan.start(job):
            return
        by, above = self.dice.choice([(self.important, -job.priority), (self.newest, -job.submit)])
        # Who started at this very instant stays: a stint of no time leaves no segment for the checks to see.
        victims = plan.room(job, by=by, above=above, settled=1)
        if victims is None:
            victims = plan.reclaim(job, by=by, settled=1)
        if not victims:
            return
        assert all(_may_stop(plan, victim) for victim in victims)
        mode = self.dice.choice(["checkpoint", "kill"])
        placed = plan.replace(victims, job, mode)
        # What a checkpointing job holds counts in its partition's quota until it is released; placed anywhere or
        # on GPUs it had, a job's room is counted in GPUs, and nobody is stopped where CPUs or nodes are lacking.
        counted = plan.placer.name == "any" or job.demand.pinned is not None
        waits_for_quota = mode == "checkpoint" and not placed and placed.reason == "quota"
        assert placed or waits_for_quota or counted, f"{victims} make room for {job!r}"
        self.victims_made_room += bool(placed)

    def _move_some(self, plan: Plan) -> None:
        stopped_or_started = set(plan.books.touched)
        for job in plan.running:
            if job in stopped_or_started or not _may_stop(plan, job) or self.dice.random() > 0.4:
                continue
            if self.dice.random() < 0.5:
                plan.migrate(job, PLACERS["spread"]())
            else:
                nodes = range(plan.books.topology.size)
                plan.migrate(job, self.dice.sample(nodes, self.dice.randint(1, len(nodes))))

    def _size(self, job: Job) -> int:
        """One of the numbers of GPUs on which an elastic job runs."""
        step = job.per_node or 1
        return self.dice.randrange(job.min_gpus, job.max_gpus + 1, step)

    def _resize_some(self, plan: Plan) -> None:
        """Resize jobs that this pass left alone; some there and back, some stopped first, which is the same."""
        touched = set(plan.books.touched)
        for job in plan.running:
            if job in touched or not job.elastic or not _may_stop(plan, job) or self.dice.random() > 0.5:
                continue
            before, size, roll = plan.gpus(job), self._size(job), self.dice.random()
            if roll < 0.2:
                plan.preempt(job, self.dice.choice(["checkpoint", "kill"]))
                assert plan.start(job, gpus=size) or plan.start(job), "stopped and started in place is nothing"
            elif roll < 0.3:
                plan.resize(job, size, where=PLACERS["spread"]())
            else:
                found = plan.fit(job, gpus=size)
                placed = plan.resize(job, size)
                assert not placed or (bool(found) and plan.gpus(job) == size)
                # A smaller gang may have to be on one node where a larger one did not.
                assert size > before or placed or not found or placed.reason == "quota", "shrinking asks no quota"
            if self.dice.random() < 0.3:
                assert plan.resize(job, before), "resized there and back is nothing"

    def _what_if(self, plan: Plan, keep: bool) -> None:
        with plan.trial() as trial:
            for job in plan.running:
                if _may_stop(plan, job) and job not in plan.books.touched and self.dice.random() < 0.3:
                    if job.elastic and self.dice.random() < 0.5:
                        plan.resize(job, self._size(job))
                    else:
                        plan.preempt(job, self.dice.choice(["checkpoint", "kill"]))
            with plan.trial() as inner:
                for job in plan.pending:
                    if self.dice.random() < 0.5:
                        plan.start(job)
                if self.dice.random() < 0.5:
                    inner.keep()
            audit(plan)
            if keep:
                trial.keep()
        audit(plan)

    def _waste(self, plan: Plan) -> None:
        """What-ifs that are left without ``keep``."""
        if not self.options.useless:
            return
        usual, self.dice = self.dice, Random(f"useless:{self.options.seed}:{self.turn}")
        for _ in range(self.dice.randint(0, 2)):
            with plan.trial():
                untouched = not plan.books.touched
                if untouched and self.dice.random() < 0.5:
                    self._stop_some(plan)
                self._start_some(plan)
                if untouched:
                    self._move_some(plan)
                    self._resize_some(plan)
                plan.wake_at(plan.now + 1)
                plan.note("useless", 1)
        self.dice = usual


def _may_stop(plan: Plan, job: Job) -> bool:
    """Tell whether a job may be stopped, and did not start at this very instant."""
    return plan.freeable(job) and job.hold_from < plan.now
