"""EASY backfilling: first come, first served, and who delays nobody at the head may go first."""

from analysim.policy import BackfillOptions, Blocked, Order, Plan, Policy, Shadow


class Easy(Policy):
    """Start jobs in arrival order; the first that does not fit is promised the earliest start, others fill in.

    The promise is made by the users' estimates, anew in each pass, to the head of each partition. A later job of
    the partition starts when it fits now and either ends by the promised time, or leaves enough for the head then.
    """

    name = "easy"
    knowledge = "estimate"
    source = (
        "Lifka, 'The ANL/IBM SP scheduling system', JSSPP 1995; Mu'alem and Feitelson, 'Utilization, predictability, "
        "workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling', TPDS 12(6), 2001"
    )
    Options = BackfillOptions

    ending = Order(lambda job, plan: plan.ends(job))

    def schedule(self, plan: Plan) -> None:
        options = self.options
        promised: dict[str, Shadow] = {}
        walk = plan.candidates()
        for number, job in enumerate(walk, start=1):
            head = promised.get(job.partition)
            if head is not None:
                placed = plan.backfill(job, head)
                if isinstance(placed, Blocked) and placed.reason == "behind":
                    walk.within(job, head.time - plan.now)
            elif not plan.start(job):
                head = plan.shadow(job, by=self.ending, resolution=options.resolution)
                if options.window is None or head.time <= plan.now + options.window:
                    promised[job.partition] = head
            if number == options.test:
                return
