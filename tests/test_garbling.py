"""Circuits against whole numbers, and garbled circuits against plain ones."""

import numpy as np
import pytest

from gpn_bayes.secure.blocks import TweakableHash, colours, random_blocks, where_set
from gpn_bayes.secure.circuits import FALSE, TRUE, CircuitBuilder
from gpn_bayes.secure.garbling import compute, evaluate, garble
from gpn_bayes.secure.link import ProtocolError, memory_links
from gpn_bayes.secure.session import Session
from gpn_bayes.secure.words import bits_of, check_bits, pack, reduced, signed, unpack, words_of
from tests.parties import LEAST_P, Pair, both, p_uniform


@pytest.fixture(scope="module")
def pair():
    return Pair()


def garbled(circuit, first, second):
    """Garble and evaluate in one place; return the labels of 0, the labels that were found, and the offset."""
    bits = np.concatenate([first, second])
    zeros, offset = random_blocks(*bits.shape), random_blocks(1)[0] | np.array([1, 0], dtype=np.uint64)
    tables, outputs = garble(circuit, zeros, offset, TweakableHash(bytes(16)))
    active = zeros ^ where_set(bits, np.broadcast_to(offset, zeros.shape))
    return outputs, evaluate(circuit, active, tables, TweakableHash(bytes(16))), offset


# Random circuits


def random_circuits(count, rng):
    """Return one circuit that holds many of six inputs and ten gates each, and their gates as plain triples."""
    builder = CircuitBuilder(3 * count, 3 * count)
    first, second = (np.reshape(wires, (count, 3)).tolist() for wires in builder.inputs)
    kinds = rng.integers(0, 4, (count, 10)).tolist()
    picks = rng.random((count, 10, 2))
    gates, outputs = [], []
    for place in range(count):
        wires, plan = [FALSE, TRUE, *first[place], *second[place]], []
        for kind, pick in zip(kinds[place], picks[place], strict=True):
            one, other = (int(p * len(wires)) for p in pick)
            plan.append((kind, one, other))
            method = (builder.xor, builder.conjunction, builder.disjunction, lambda a, b: builder.negation(a))[kind]
            wires.append(method(wires[one], wires[other]))
        gates.append(plan)
        outputs.extend(wires[-4:])
    return builder.build(outputs), gates


def plain_gates(plan, inputs):
    bits = [0, 1, *inputs]
    for kind, one, other in plan:
        a, b = bits[one], bits[other]
        bits.append((a ^ b, a & b, a | b, 1 - a)[kind])
    return bits[-4:]


def test_ten_thousand_random_circuits():
    rng, count = np.random.default_rng(8), 10_000
    circuit, gates = random_circuits(count, rng)
    first, second = rng.integers(0, 2, (2, 3 * count, 1), dtype=np.uint8)
    inputs = np.concatenate([first.reshape(count, 3), second.reshape(count, 3)], axis=1).tolist()
    expected = np.array([plain_gates(plan, own) for plan, own in zip(gates, inputs, strict=True)]).reshape(-1, 1)
    np.testing.assert_array_equal(circuit.evaluate(first, second), expected)
    zeros, labels, offset = garbled(circuit, first, second)
    np.testing.assert_array_equal(labels ^ zeros, where_set(expected, np.broadcast_to(offset, zeros.shape)))
    assert circuit.n_conjunctions > 20_000


def test_random_circuits_on_all_inputs():
    rng = np.random.default_rng(9)
    every = bits_of(np.arange(64, dtype=np.uint64), 6)
    for _ in range(20):
        circuit, (plan,) = random_circuits(1, rng)
        expected = np.array([plain_gates(plan, column) for column in every.T.tolist()]).T
        np.testing.assert_array_equal(circuit.evaluate(every[:3], every[3:]), expected)
        zeros, labels, _ = garbled(circuit, every[:3], every[3:])
        np.testing.assert_array_equal(colours(zeros) ^ colours(labels), expected)


def test_a_changed_table_changes_the_result():
    """Negative control: the comparison with plain evaluation does notice."""
    builder = CircuitBuilder(8, 8)
    circuit = builder.build(builder.add(*builder.inputs))
    bits = np.random.default_rng(2).integers(0, 2, (16, 40), dtype=np.uint8)
    zeros, offset = random_blocks(16, 40), random_blocks(1)[0] | np.array([1, 0], dtype=np.uint64)
    tables, outputs = garble(circuit, zeros, offset, TweakableHash(bytes(16)))
    tables[0] ^= np.uint64(1)
    active = zeros ^ where_set(bits, np.broadcast_to(offset, zeros.shape))
    labels = evaluate(circuit, active, tables, TweakableHash(bytes(16)))
    found = colours(outputs) ^ colours(labels)
    assert (found != circuit.evaluate(bits[:8], bits[8:])).any()


# Builders


def numbers(bits, count, rng):
    values = rng.integers(0, 2**bits, (2, count), dtype=np.uint64)
    values[:, :3] = [[0, 2**bits - 1, 5], [2**bits - 1, 0, 5]]
    return values


@pytest.mark.parametrize("bits", [3, 48])
@pytest.mark.parametrize("name", ["add", "subtract", "greater"])
def test_arithmetic(name, bits):
    builder = CircuitBuilder(bits, bits)
    result = getattr(builder, name)(*builder.inputs)
    circuit = builder.build([result] if name == "greater" else result)
    one, other = numbers(bits, 200, np.random.default_rng(bits))
    if bits == 3:
        one, other = (values.astype(np.uint64) for values in np.divmod(np.arange(64), 8))
    expected = {"add": one + other, "subtract": one - other, "greater": (one > other).astype(np.uint64)}[name]
    found = words_of(circuit.evaluate(bits_of(one, bits), bits_of(other, bits)))
    np.testing.assert_array_equal(found, reduced(expected, bits))
    # As few AND gates as is known.
    assert circuit.n_conjunctions == (bits if name == "greater" else bits - 1)


def test_select():
    builder = CircuitBuilder(5, 4)
    condition, *first = builder.inputs[0]
    circuit = builder.build(builder.select(condition, first, builder.inputs[1]))
    assert circuit.n_conjunctions == 4
    values = np.array([[9, 9], [6, 6]], dtype=np.uint64)
    mine = np.concatenate([[[0, 1]], bits_of(values[0], 4)]).astype(np.uint8)
    assert words_of(circuit.evaluate(mine, bits_of(values[1], 4))).tolist() == [6, 9]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 9])
def test_argmax_finds_the_first_of_the_greatest(count):
    builder = CircuitBuilder(3 * count, 0)
    parts = [builder.inputs[0][3 * place : 3 * place + 3] for place in range(count)]
    circuit = builder.build(builder.argmax(parts))
    values = np.random.default_rng(count).integers(0, 8, (count, 300), dtype=np.uint64)
    mine = bits_of(values, 3).transpose(1, 0, 2).reshape(3 * count, 300)
    opened = circuit.evaluate(mine, np.empty((0, 300), dtype=np.uint8))
    found = words_of(opened).astype(int) if count > 1 else np.zeros(300, dtype=int)
    np.testing.assert_array_equal(found, values.argmax(axis=0))


def test_constants_take_no_gates():
    builder = CircuitBuilder(1, 0)
    (wire,) = builder.inputs[0]
    assert builder.xor(wire, FALSE) == builder.conjunction(TRUE, wire) == builder.disjunction(FALSE, wire) == wire
    assert builder.conjunction(FALSE, wire) == builder.xor(wire, wire) == builder.xor(TRUE, TRUE) == FALSE
    assert builder.conjunction(wire, wire) == wire
    assert builder.negation(FALSE) == builder.disjunction(TRUE, TRUE) == TRUE
    assert builder.build([wire]).layers == ()


# Between two parties


def adder(bits):
    builder = CircuitBuilder(bits, bits)
    return builder.build(builder.add(*builder.inputs))


def test_two_parties_compute_and_open(pair):
    circuit, rng = adder(16), np.random.default_rng(4)
    mine, yours = rng.integers(0, 2**16, (2, 50), dtype=np.uint64)
    inputs = (bits_of(mine, 16), bits_of(yours, 16))
    shares = pair.run(lambda session, bits: compute(session, circuit, bits), inputs)
    np.testing.assert_array_equal(words_of(shares[0] ^ shares[1]), (mine + yours) % 2**16)
    opened = pair.run(lambda session, own: session.open_bits(own), shares)
    np.testing.assert_array_equal(words_of(opened[0]), (mine + yours) % 2**16)
    np.testing.assert_array_equal(opened[0], opened[1])


def test_constant_outputs_open_too(pair):
    builder = CircuitBuilder(1, 1)
    circuit = builder.build([FALSE, TRUE, builder.inputs[0][0]])
    bits = np.array([[1, 0]], dtype=np.uint8)
    shares = pair.run(lambda session, own: compute(session, circuit, own), (bits, bits))
    assert (shares[0] ^ shares[1]).tolist() == [[0, 0], [1, 1], [1, 0]]


def test_shares_of_a_result_are_uniform(pair):
    """The same inputs 2,000 times: each party's shares of four bits make a random number."""
    circuit = adder(4)
    inputs = [bits_of(np.full(2000, value, dtype=np.uint64), 4) for value in (3, 9)]
    for shares in pair.run(lambda session, own: compute(session, circuit, own), inputs):
        assert p_uniform(words_of(shares), 4) > LEAST_P


def test_messages_have_the_same_lengths_for_other_inputs(pair):
    circuit = adder(12)
    records = []
    for value in (0, 4095):
        inputs = [bits_of(np.full(7, value, dtype=np.uint64), 12)] * 2
        records.append(pair.recorded(lambda session, own: session.open_bits(compute(session, circuit, own)), inputs))
    assert records[0] == records[1]
    # 16 bytes for every input bit of either party, 32 for every AND gate.
    sizes = {kind: length for direction, kind, length in records[0][0] if direction == "sent"}
    assert sizes["garbled circuit"] == 7 * (12 * 16 + 11 * 32)
    sizes = {kind: length for direction, kind, length in records[0][1] if direction == "sent"}
    assert sizes["transfer columns"] == 16 * 8 * -(-7 * 12 // 8)


def test_a_truncated_circuit_is_refused():
    links = memory_links()
    _, follower = both(lambda: Session(links[0], True), lambda: Session(links[1], False))
    links[0].send("garbled circuit", bytes(100))
    rule = "^a message of kind 'garbled circuit' must have 160 bytes; received 100$"
    with pytest.raises(ProtocolError, match=rule):
        compute(follower, adder(4), np.zeros((4, 1), dtype=np.uint8))


def test_opened_shares_of_another_length_are_refused():
    links = memory_links()
    leader, _ = both(lambda: Session(links[0], True), lambda: Session(links[1], False))
    links[1].send("opened shares", bytes(5))
    with pytest.raises(ProtocolError, match="^a message of kind 'opened shares' must have 6 bytes; received 5$"):
        leader.open(np.array([3]), 48)


def test_two_parties_open_sums(pair):
    opened = pair.run(lambda session, own: session.open(own, 40), (np.array([2**40 - 1, 5]), np.array([2, 6])))
    assert opened[0].tolist() == opened[1].tolist() == [1, 11]


# Words


@pytest.mark.parametrize("bits", [8, 40, 48, 64])
def test_words_survive_packing(bits):
    words = reduced(np.random.default_rng(0).integers(0, 2**64, (3, 5), dtype=np.uint64), bits)
    payload = pack(words, bits)
    assert len(payload) == 15 * bits // 8
    np.testing.assert_array_equal(unpack(payload, bits, 3, 5), words)
    np.testing.assert_array_equal(reduced(signed(words, bits), bits), words)
    np.testing.assert_array_equal(words_of(bits_of(words, bits)), words)
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert signed(reduced(np.array([low, -1, 0, high]), bits), bits).tolist() == [low, -1, 0, high]


@pytest.mark.parametrize("bits", [0, 12, 72, -8, 8.5])
def test_bits_fill_bytes(bits):
    with pytest.raises(ValueError, match=f"^bits must be a multiple of 8 between 8 and 64; received {bits}$"):
        check_bits(bits)
