"""Preview of a reassignment before it is confirmed."""

from kctl.cli.confirmation import Plan
from kctl.cli.options import Session
from kctl.cli.tables import partition_name
from kctl.operations.reassignment.proposals import Proposal
from kctl.plans.reassignment.cost import changes_of, reassignment_cost
from kctl.views.quantities import plural
from kctl.views.reassignments import CHANGE_COLUMNS, change_row, cost_line


def move_plan(session: Session, proposal: Proposal) -> Plan:
    """The plan shown to the user, below its cost."""
    cost = reassignment_cost(proposal.layout, proposal.changes, proposal.allowed)
    session.out.note(cost_line(cost))
    rows = [change_row(change) for change in changes_of(proposal.layout, proposal.changes)]
    question = f"Reassign {plural(len(proposal.changes), 'partition')}?"
    return Plan(question, rows, CHANGE_COLUMNS, partition_name)
