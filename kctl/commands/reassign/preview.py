"""Preview of a reassignment before it is confirmed."""

from kctl.cli.confirmation import Plan
from kctl.cli.options import Session
from kctl.cli.tables import Columns, partition_name
from kctl.operations.reassignment.proposals import Proposal
from kctl.plans.reassignment.cost import changes_of, reassignment_cost
from kctl.views.quantities import plural
from kctl.views.reassignments import CHANGE_COLUMNS, change_row, cost_line


def move_plan(session: Session, proposal: Proposal, results: Columns) -> Plan:
    """The plan shown to the user, below its cost; `results` are printed after the change."""
    cost = reassignment_cost(proposal.layout, proposal.changes, proposal.allowed)
    session.out.note(cost_line(cost))
    _warn_of_unreadable(session, proposal)
    rows = [change_row(change) for change in changes_of(proposal.layout, proposal.changes)]
    question = f"Reassign {plural(len(proposal.changes), 'partition')}?"
    return Plan(question, rows, CHANGE_COLUMNS, partition_name, results)


def _warn_of_unreadable(session: Session, proposal: Proposal) -> None:
    """Note partitions without a live replica: the brokers cannot copy them until one is back."""
    live, replicas = proposal.layout.brokers.keys(), proposal.layout.replicas
    stuck = [tp for tp in proposal.changes if not live & set(replicas[tp])]
    if stuck:
        down = sorted({broker for tp in stuck for broker in replicas[tp]})
        brokers = f"broker{'s' * (len(down) > 1)} {', '.join(map(str, down))}"
        listed = ", ".join(map(str, stuck[:3])) + ", …" * (len(stuck) > 3)
        session.out.note(
            f"{plural(len(stuck), 'partition')} without a live replica cannot move until {brokers}"
            f" {'are' if len(down) > 1 else 'is'} back: {listed}"
        )
