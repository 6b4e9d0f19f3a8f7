"""Paillier's encryption (1999): numbers that can be added while encrypted, by anyone, and read by who holds the key.

The generator is g = n + 1, so that a ciphertext of m is (1 + m n) r^n modulo n^2. Only r^n, the randomiser, takes long,
and it depends on nothing that is encrypted: `gpn_bayes.secure.randomisers` makes a stock of them in the background.
"""

import secrets
from typing import Any

from gpn_bayes._util.checks import shown
from gpn_bayes._util.extras import installed_by
from gpn_bayes.secure.link import ProtocolError

with installed_by("private"):
    import gmpy2
    from cryptography.hazmat.primitives.asymmetric import rsa

# Bits of the modulus, and the bits of security they are considered to give (NIST SP 800-57).
SECURITY_BITS = {2048: 112, 3072: 128}
# gmpy2 has no type stubs.
type Integer = Any


class PublicKey:
    """What everyone may know of a key: enough to encrypt and to compute with ciphertexts.

    Parameters
    ----------
    n : int
        The product of two primes.

    Attributes
    ----------
    n : int
        The modulus of plaintexts.
    bits : int
        The length of n.
    capacity : int
        Every plaintext of this many bits is below n.

    Examples
    --------
    >>> key = generate_keys(2048)
    >>> public = PublicKey(key.n)
    >>> key.decrypt(public.add(public.encrypt(20), public.encrypt(22)))
    42
    """

    def __init__(self, n: int) -> None:
        self.n: Integer = gmpy2.mpz(n)
        self.n_squared: Integer = self.n * self.n
        self.bits = self.n.bit_length()
        self.capacity = self.bits - 1
        self.ciphertext_bytes = (2 * self.bits + 7) // 8

    def __repr__(self) -> str:
        """Show the length, and nothing of the key."""
        return f"{type(self).__name__}({self.bits} bits)"

    def randomisers(self, count: int) -> list[Integer]:
        """Return fresh random n-th powers modulo n^2; other threads can work meanwhile."""
        bases = [gmpy2.mpz(secrets.randbelow(int(self.n) - 1) + 1) for _ in range(count)]
        powers: list[Integer] = gmpy2.powmod_base_list(bases, self.n, self.n_squared)
        return powers

    def encrypt(self, plaintext: int, randomiser: Integer = None) -> Integer:
        """Return a ciphertext of a number from 0 to n - 1.

        Parameters
        ----------
        plaintext : int
            What to hide.
        randomiser : optional
            One of `randomisers`, made beforehand; it must be used for one ciphertext only.
        """
        if not 0 <= plaintext < self.n:
            raise ValueError(f"a plaintext must be from 0 to n - 1, with n of {self.bits} bits; received one outside")
        if randomiser is None:
            (randomiser,) = self.randomisers(1)
        return (1 + plaintext * self.n) * randomiser % self.n_squared

    def add(self, first: Integer, second: Integer) -> Integer:
        """Return a ciphertext of the sum of what two ciphertexts hold; the randomisers multiply too."""
        return first * second % self.n_squared

    def shift(self, ciphertext: Integer, bits: int) -> Integer:
        """Return a ciphertext of 2^bits times what a ciphertext holds."""
        return gmpy2.powmod(ciphertext, gmpy2.mpz(1) << bits, self.n_squared)

    def to_bytes(self, ciphertext: Integer) -> bytes:
        """Write a ciphertext as a big-endian number of `ciphertext_bytes`."""
        return int(ciphertext).to_bytes(self.ciphertext_bytes, "big")

    def from_bytes(self, payload: bytes) -> list[Integer]:
        """Read ciphertexts that `to_bytes` wrote, one after the other, and refuse what can't be any.

        Raises
        ------
        ProtocolError
            For a number that isn't from 1 to n^2 - 1 and coprime to n.
        """
        size = self.ciphertext_bytes
        if len(payload) % size:
            raise ProtocolError(f"ciphertexts must have {size} bytes each; received {len(payload)} bytes")
        numbers = [gmpy2.mpz.from_bytes(payload[i : i + size], "big") for i in range(0, len(payload), size)]
        product = gmpy2.mpz(1)
        for number in numbers:
            product = product * number % self.n
            if number >= self.n_squared:
                raise ProtocolError("a ciphertext must be below the square of the modulus; received a larger number")
        # All are coprime to n if their product is.
        if gmpy2.gcd(product, self.n) != 1:
            raise ProtocolError("a ciphertext must be coprime to the modulus; received one that isn't")
        return numbers


class PrivateKey(PublicKey):
    """Both primes: decrypts, and makes randomisers in a quarter of the time, modulo p^2 and q^2.

    Parameters
    ----------
    p, q : int
        Two primes of equal length; `generate_keys` draws them.
    """

    def __init__(self, p: int, q: int) -> None:
        super().__init__(p * q)
        self._p: Integer = gmpy2.mpz(p)
        self._q: Integer = gmpy2.mpz(q)
        if p == q or self._p.bit_length() != self._q.bit_length() or not (self._p.is_prime() and self._q.is_prime()):
            raise ValueError("a key needs two different primes of equal length; received other numbers")
        self._p_squared, self._q_squared = self._p**2, self._q**2
        self._p_inverse = gmpy2.invert(self._p, self._q)
        self._p_squared_inverse = gmpy2.invert(self._p_squared, self._q_squared)
        # (1 + n)^(p - 1) is 1 - n modulo p^2, whose discrete logarithm is -q modulo p.
        self._p_scale = gmpy2.invert(-self._q, self._p)
        self._q_scale = gmpy2.invert(-self._p, self._q)

    def randomisers(self, count: int) -> list[Integer]:
        """Return fresh random n-th powers modulo n^2, as uniform as those of the public key.

        An n-th power modulo p^2 is any element of the subgroup of order p - 1, and so is x^p for x from 1 to p - 1.
        """
        p_powers = _random_powers(self._p, self._p_squared, count)
        q_powers = _random_powers(self._q, self._q_squared, count)
        return [
            x + self._p_squared * ((y - x) * self._p_squared_inverse % self._q_squared)
            for x, y in zip(p_powers, q_powers, strict=True)
        ]

    def decrypt(self, ciphertext: Integer) -> int:
        """Return what a ciphertext holds; the powers take a time that doesn't depend on the primes."""
        p_part = gmpy2.powmod_sec(ciphertext % self._p_squared, self._p - 1, self._p_squared)
        q_part = gmpy2.powmod_sec(ciphertext % self._q_squared, self._q - 1, self._q_squared)
        modulo_p = (p_part - 1) // self._p * self._p_scale % self._p
        modulo_q = (q_part - 1) // self._q * self._q_scale % self._q
        return int(modulo_p + self._p * ((modulo_q - modulo_p) * self._p_inverse % self._q))


def _random_powers(prime: Integer, prime_squared: Integer, count: int) -> list[Integer]:
    bases = [gmpy2.mpz(secrets.randbelow(int(prime) - 1) + 1) for _ in range(count)]
    powers: list[Integer] = gmpy2.powmod_base_list(bases, prime, prime_squared)
    return powers


def check_key_bits(bits: Any) -> None:
    """Refuse a key length that isn't offered.

    Examples
    --------
    >>> check_key_bits(1024)
    Traceback (most recent call last):
    ValueError: key_bits must be 2048 (112-bit security) or 3072 (128-bit security); received 1024
    """
    if isinstance(bits, bool) or bits not in SECURITY_BITS:
        offered = " or ".join(f"{length} ({security}-bit security)" for length, security in SECURITY_BITS.items())
        raise ValueError(f"key_bits must be {offered}; received {shown(bits)}")


def generate_keys(bits: int = 3072) -> PrivateKey:
    """Return a fresh key; its primes are drawn as those of RSA are.

    Parameters
    ----------
    bits : int, default 3072
        The length of the modulus: 3072 for 128-bit security, 2048 for 112-bit security.

    Examples
    --------
    >>> generate_keys(2048)
    PrivateKey(2048 bits)
    """
    check_key_bits(bits)
    numbers = rsa.generate_private_key(public_exponent=65537, key_size=bits).private_numbers()
    return PrivateKey(numbers.p, numbers.q)


def read_public_key(payload: bytes, bits: int) -> PublicKey:
    """Read a key that another party sent as a big-endian number.

    Raises
    ------
    ProtocolError
        For a number of another length, or one that can't be a product of two large primes.

    Examples
    --------
    >>> read_public_key(bytes(256), 2048)
    Traceback (most recent call last):
    gpn_bayes.secure.link.ProtocolError: a public key must be an odd composite number of 2048 bits; received another
    """
    n = gmpy2.mpz.from_bytes(payload, "big")
    if n.bit_length() != bits or n.is_even() or n.is_prime(1):
        raise ProtocolError(f"a public key must be an odd composite number of {bits} bits; received another")
    return PublicKey(n)
