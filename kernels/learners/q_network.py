"""The parts of a Q-network's training that are loops rather than matrix products: its targets, and its steps."""

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Bools
from gpn_bayes.kernels.compiled import compiled


@compiled
def double_targets(
    rewards: NDArray[np.float32],
    legal: Bools,
    online: NDArray[np.float32],
    frozen: NDArray[np.float32],
    gamma: float,
    targets: NDArray[np.float32],
) -> None:
    """Write what the network should have said: the reward, and the value of the best legal action that follows.

    The online network chooses that action, the frozen one values it; where no action is legal the episode is over.

    Parameters
    ----------
    rewards : ndarray, shape (batch,)
        What the actions brought.
    legal : ndarray of bool, shape (batch, n)
        Which actions may follow.
    online, frozen : ndarray, shape (batch, n)
        What the two networks say of all actions in the states that followed.
    gamma : float
        The weight of what follows.
    targets : ndarray, shape (batch,)
        Written to.
    """
    # y = r + gamma Q_frozen(s', argmax_a Q_online(s', a)), over the legal a (van Hasselt, Guez & Silver 2016).
    for row in range(len(rewards)):
        best = -1
        for action in range(legal.shape[1]):
            if legal[row, action] and (best < 0 or online[row, action] > online[row, best]):
                best = action
        targets[row] = rewards[row]
        if best >= 0:
            targets[row] += gamma * frozen[row, best]


@compiled
def rms_step(
    parameters: NDArray[np.floating],
    gradient: NDArray[np.floating],
    squares: NDArray[np.floating],
    rate: float,
    decay: float,
    epsilon: float,
) -> None:
    """Step down a gradient, each parameter relative to the running mean square of its own slopes (RMSprop).

    Parameters
    ----------
    parameters, gradient, squares : ndarray, shape (parameters,)
        What is changed; its slopes; the running means, which are changed too.
    rate : float
        The length of a step whose slope is of the usual size.
    decay : float
        What share of the running mean stays.
    epsilon : float
        Added to the root, so that flat directions divide by no zero.
    """
    for i in range(len(parameters)):
        # v <- decay v + (1 - decay) g^2, then x <- x - rate g / (sqrt(v) + epsilon).
        squares[i] = decay * squares[i] + (1.0 - decay) * gradient[i] * gradient[i]
        parameters[i] -= rate * gradient[i] / (np.sqrt(squares[i]) + epsilon)
