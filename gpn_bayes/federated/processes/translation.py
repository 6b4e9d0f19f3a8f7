"""Plans, keys and tasks as messages and back."""

from collections.abc import Iterable

from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.requests import Request
from gpn_bayes.secure.key_exchange import SignedKey
from gpn_bayes.wire import arrays
from gpn_bayes.wire import federation_pb2 as messages


def plan_to_message(plan: Plan) -> messages.Plan:
    """Return a plan as a message.

    Examples
    --------
    >>> plan = Plan("r1", "statistics", "{}", ("x", "y"), ("a", "b", "c"), True)
    >>> plan_from_message(plan_to_message(plan)) == plan
    True
    """
    return messages.Plan(
        run=plan.run, program=plan.program, settings=plan.settings, variables=plan.variables, clients=plan.clients,
        secure=plan.secure,
    )  # fmt: skip


def plan_from_message(message: messages.Plan) -> Plan:
    """Return the plan that a message holds."""
    return Plan(
        message.run, message.program, message.settings, tuple(message.variables), tuple(message.clients), message.secure
    )


def key_to_message(run: str, key: SignedKey) -> messages.Announcement:
    """Return a client's key as a message."""
    return messages.Announcement(
        run=run, client=key.client, public_key=key.public_key, possession=key.possession, signature=key.signature,
        certificate=key.certificate,
    )  # fmt: skip


def key_from_message(message: messages.Announcement) -> SignedKey:
    """Return the key that a message holds."""
    return SignedKey(message.client, message.public_key, message.possession, message.signature, message.certificate)


def keys_to_message(run: str, keys: Iterable[SignedKey]) -> messages.Keys:
    """Return the keys of all clients as a message."""
    return messages.Keys(run=run, announcements=[key_to_message(run, key) for key in keys])


def keys_from_message(message: messages.Keys) -> list[SignedKey]:
    """Return the keys that a message holds."""
    return [key_from_message(announcement) for announcement in message.announcements]


def task_to_message(run: str, round_number: int, request: Request) -> messages.Task:
    """Return a round's task as a message."""
    values = arrays.to_messages(request.values)
    return messages.Task(run=run, round=round_number, name=request.task, values=values)


def request_from_message(message: messages.Task) -> Request:
    """Return the request that a task's message holds."""
    return Request.of(message.name, arrays.from_messages(message.values))
