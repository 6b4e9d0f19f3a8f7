"""Garbled circuits: one party encrypts a circuit gate by gate, the other computes it without learning what it computes.

XOR gates are free (Kolesnikov & Schneider 2008), and AND gates take two blocks (half gates; Zahur, Rosulek & Evans
2015). Every wire has two labels that differ by a secret offset, the same for all wires; who evaluates holds one of
them. Their lowest bits differ, which makes those of an output wire shares of its bit: the result belongs to nobody
until it is opened. Many instances of one circuit are garbled at once.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Words
from gpn_bayes.secure.blocks import BLOCK_BYTES, WORD, TweakableHash, blocks_of, colours, random_blocks, where_set
from gpn_bayes.secure.circuits import TRUE, Circuit
from gpn_bayes.secure.session import Session


def garble(circuit: Circuit, inputs: Words, offset: Words, hash: TweakableHash) -> tuple[Words, Words]:
    """Encrypt a circuit.

    Parameters
    ----------
    circuit : Circuit
        What to encrypt.
    inputs : ndarray of uint64, shape (inputs, batch, 2)
        Of each input wire of each instance, the label of 0.
    offset : ndarray of uint64, shape (2,)
        What the label of 1 differs by; its lowest bit is 1.
    hash : TweakableHash
        A hash that the other party has too, and has used as often.

    Returns
    -------
    tables : ndarray of uint64, shape (AND gates, 2, batch, 2)
        What the other party needs to evaluate it.
    outputs : ndarray of uint64, shape (outputs, batch, 2)
        Labels of 0.
    """
    labels = _wires(circuit, inputs)
    labels[TRUE] = offset
    tables = [np.empty((0, 2, *labels.shape[1:]), dtype=WORD)]
    for layer in circuit.layers:
        one, other, out = layer.xor
        labels[out] = labels[one] ^ labels[other]
        one, other, out = layer.conjunction
        if out.size:
            table, labels[out] = _garble_conjunctions(labels[one], labels[other], offset, hash)
            tables.append(table)
    return np.concatenate(tables), labels[circuit.outputs]


def _garble_conjunctions(one: Words, other: Words, offset: Words, hash: TweakableHash) -> tuple[Words, Words]:
    tweaks = hash.tweaks(2, 1, *one.shape[:2])
    zeros = np.stack([one, other])[:, None]
    (one_0, one_1), (other_0, other_1) = hash(np.concatenate([zeros, zeros ^ offset], axis=1), tweaks)
    # The first half is the AND with a bit that the garbler knows, the second with one that the evaluator knows: the
    # second input's bit is split into the lowest bit of its label, and the rest.
    garblers = one_0 ^ one_1 ^ where_set(colours(other), np.broadcast_to(offset, one.shape))
    evaluators = other_0 ^ other_1 ^ one
    out = one_0 ^ where_set(colours(one), garblers) ^ other_0 ^ where_set(colours(other), evaluators ^ one)
    return np.stack([garblers, evaluators], axis=1), out


def evaluate(circuit: Circuit, inputs: Words, tables: Words, hash: TweakableHash) -> Words:
    """Compute a garbled circuit on one label of each input wire; return one label of each output wire.

    Parameters
    ----------
    circuit, tables, hash
        As in `garble`.
    inputs : ndarray of uint64, shape (inputs, batch, 2)
        The labels of the inputs' bits.
    """
    labels = _wires(circuit, inputs)
    done = 0
    for layer in circuit.layers:
        one, other, out = layer.xor
        labels[out] = labels[one] ^ labels[other]
        one, other, out = layer.conjunction
        if out.size:
            table = tables[done : done + out.size]
            labels[out] = _evaluate_conjunctions(labels[one], labels[other], table, hash)
            done += out.size
    found: Words = labels[circuit.outputs]
    return found


def _evaluate_conjunctions(one: Words, other: Words, table: Words, hash: TweakableHash) -> Words:
    garblers, evaluators = table[:, 0], table[:, 1]
    first, second = hash(np.stack([one, other]), hash.tweaks(2, *one.shape[:2]))
    labels: Words = first ^ where_set(colours(one), garblers) ^ second ^ where_set(colours(other), evaluators ^ one)
    return labels


def _wires(circuit: Circuit, inputs: Words) -> Words:
    """Return room for the labels of all wires; constant ones have label 0, whatever they are."""
    labels = np.zeros((circuit.n_wires, *inputs.shape[1:]), dtype=WORD)
    labels[2 : 2 + len(inputs)] = inputs
    return labels


def compute(session: Session, circuit: Circuit, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Compute a circuit together; each party gets one share of every bit of the result.

    Parameters
    ----------
    session : Session
        The party that leads garbles, the other evaluates.
    circuit : Circuit
        The same for both.
    bits : ndarray of 0 and 1, shape (own inputs, batch)
        This party's inputs for each instance.

    Returns
    -------
    ndarray of uint8, shape (outputs, batch)
        The XOR of both parties' is the result.
    """
    return (_compute_as_garbler if session.leads else _compute_as_evaluator)(session, circuit, bits)


def _compute_as_garbler(session: Session, circuit: Circuit, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    transfers, batch = session.outgoing, bits.shape[1]
    own = random_blocks(circuit.n_inputs[0], batch)
    others = transfers.correlated(circuit.n_inputs[1] * batch).reshape(-1, batch, 2)
    tables, outputs = garble(circuit, np.concatenate([own, others]), transfers.offset, transfers.hash)
    active = own ^ where_set(bits, np.broadcast_to(transfers.offset, own.shape))
    session.link.send("garbled circuit", active.tobytes() + tables.tobytes())
    return colours(outputs)


def _compute_as_evaluator(session: Session, circuit: Circuit, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    transfers, batch = session.incoming, bits.shape[1]
    own = transfers.correlated(bits.ravel()).reshape(-1, batch, 2)
    n_others, n_tables = circuit.n_inputs[0], circuit.n_conjunctions
    payload = session.link.receive("garbled circuit", (n_others + 2 * n_tables) * batch * BLOCK_BYTES)
    received = blocks_of(payload, n_others + 2 * n_tables, batch)
    tables = received[n_others:].reshape(n_tables, 2, batch, 2)
    return colours(evaluate(circuit, np.concatenate([received[:n_others], own]), tables, transfers.hash))
