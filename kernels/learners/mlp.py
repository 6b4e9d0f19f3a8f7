"""Networks with one hidden layer of sigmoids, one per variable: squared loss and its gradient.

The units of all networks stand side by side: unit k of network j is column ``j * hidden + k``.
"""

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled


@compiled
def backpropagate(
    activations: Floats,
    targets: Floats,
    second: Floats,
    offsets: Floats,
    second_gradient: Floats,
    offset_gradient: Floats,
) -> float:
    """Return half the mean squared error over rows, summed over networks.

    Overwrites the activations by its gradient before the sigmoid.

    Parameters
    ----------
    activations : ndarray of shape (rows, networks * hidden)
        On entry exp(-z), where z enters the sigmoid; on return the derivative by z.
    targets : ndarray of shape (rows, networks)
        What each network should say.
    second : ndarray of shape (networks, hidden)
        The weights of the hidden units.
    offsets : ndarray of shape (networks,)
        The constants of the outputs.
    second_gradient, offset_gradient : ndarray
        Like `second` and `offsets`; written.
    """
    rows, networks = targets.shape
    hidden = second.shape[1]
    second_gradient[:] = 0.0
    offset_gradient[:] = 0.0
    loss = 0.0
    for row in range(rows):
        for j in range(networks):
            first = j * hidden
            # error = offsets_j + sum_k second_jk sigmoid(z_jk) - targets_j
            error = offsets[j] - targets[row, j]
            for k in range(hidden):
                # sigmoid(z) = 1 / (1 + exp(-z))
                sigmoid = 1.0 / (1.0 + activations[row, first + k])
                activations[row, first + k] = sigmoid
                error += second[j, k] * sigmoid
            loss += error * error
            # The loss is sum of error^2 / (2 rows): its derivative by the output is error / rows.
            share = error / rows
            offset_gradient[j] += share
            for k in range(hidden):
                sigmoid = activations[row, first + k]
                # d loss / d second_jk = sum over rows of share sigmoid
                second_gradient[j, k] += share * sigmoid
                # d loss / d z = share second_jk sigmoid'(z), and sigmoid' = sigmoid (1 - sigmoid).
                activations[row, first + k] = share * second[j, k] * sigmoid * (1.0 - sigmoid)
    average: float = loss / (2 * rows)
    return average
