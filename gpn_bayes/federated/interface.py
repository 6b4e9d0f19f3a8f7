"""What a federated program sees of its clients, and they of it: tasks go out, sums of their answers come back."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from gpn_bayes.federated.combining import Shapes


class Channel(ABC):
    """The coordinator's view of its clients.

    A program must be a deterministic function of its channel: one that was killed is run again, and asks again for the
    sums that it has already had.

    Attributes
    ----------
    clients : tuple of str
        Their names.
    """

    clients: tuple[str, ...]

    @abstractmethod
    def sum(self, task: str, values: Mapping[str, ArrayLike], shapes: Shapes | None = None) -> dict[str, np.ndarray]:
        """Send a task to all clients, and return the sums over the clients of the arrays that they answer.

        Every call is a round; rounds are numbered from 0.

        Parameters
        ----------
        task : str
            What to do.
        values : dict of str to array
            What the clients need for it; no secret.
        shapes : dict of str to tuple, optional
            The arrays that each client must answer. Without it, those that most clients answer; later rounds of the
            same task must keep to them.

        Returns
        -------
        dict of str to ndarray
        """


class Participant(ABC):
    """One client's side of a program; it knows its own rows."""

    @abstractmethod
    def answer(self, task: str, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return what this client adds to the sums of a task."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Return what is needed to resume after a restart."""

    @abstractmethod
    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from what `state` returned."""
