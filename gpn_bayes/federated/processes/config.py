"""The configuration files of coordinator and clients: TOML, paths relative to the file, unknown entries refused."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from gpn_bayes.federated.notears.bounds import Bounds
from gpn_bayes.federated.plan import ENOUGH, FEWEST, Plan
from gpn_bayes.secure.key_exchange import fingerprint
from gpn_bayes.wire.certificates import Identity, check_name, common_name, read_certificate, read_identity
from gpn_bayes.wire.limits import Limits

COORDINATOR = "coordinator"
_TWO = "the_other_client_learns_my_sums"
_TLS = ("authority", "certificate", "key")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"[^/\s]+:\d{1,5}")


@dataclass(frozen=True)
class Credentials:
    """A party's own certificate and key, the authority's certificate (PEM), and the clients' fingerprints."""

    identity: Identity
    authority: bytes
    fingerprints: dict[str, str]


@dataclass(frozen=True)
class CoordinatorConfig:
    """The configuration of a coordinator; see `read_coordinator`."""

    program: str
    listen: str
    out: Path
    variables: tuple[str, ...]
    secure: bool
    settings: dict[str, Any]
    credentials: Credentials
    limits: Limits
    posterior: dict[str, Any] | None

    def plan(self, run: str) -> Plan:
        """Return what a run by this name is about."""
        clients = tuple(self.credentials.fingerprints)
        settings = json.dumps(self.settings, sort_keys=True)
        return Plan(run, self.program, settings, self.variables, clients, self.secure)


@dataclass(frozen=True)
class PrivacyLimits:
    """The weakest differential privacy that a client agrees to."""

    largest_epsilon: float
    largest_delta: float


@dataclass(frozen=True)
class ClientConfig:
    """The configuration of a client; see `read_client`."""

    name: str
    coordinator: str
    coordinator_name: str
    coordinator_fingerprint: str | None
    state: Path
    secure: bool
    programs: tuple[str, ...]
    fewest: int | None
    bounds: Bounds
    privacy: PrivacyLimits | None
    credentials: Credentials
    limits: Limits


def read_coordinator(path: Path) -> CoordinatorConfig:
    """Read a coordinator's file.

    Its entries: program, listen, out, variables, secure, and the tables settings (the program's), tls (authority,
    certificate, key), clients (name = fingerprint), limits, and posterior: settings of `gpn_bayes.sample`, which asks
    for the posterior of linear networks from the statistics.

    Raises
    ------
    ValueError
        For a file that is missing, isn't TOML, or has entries that are missing, unknown or of a wrong kind.
    """
    content = _Content(path)
    variables = content.take("variables", list)
    if not all(isinstance(name, str) for name in variables):
        raise ValueError(f"{path.name}: variables must be a list of names; received something else")
    config = CoordinatorConfig(
        program=content.take("program", str),
        listen=_address(path, "listen", content.take("listen", str)),
        out=path.parent / content.take("out", str),
        variables=tuple(variables),
        secure=content.take("secure", bool, True),
        settings=_settings(content),
        credentials=_credentials(content, {}),
        limits=_limits(content),
        posterior=content.take("posterior", dict, None),
    )
    content.check_empty()
    return config


def read_client(path: Path, overrides: Mapping[str, Path | str | None] | None = None) -> ClientConfig:
    """Read a client's file.

    Its entries: coordinator, coordinator_name, coordinator_fingerprint (of the only certificate that the coordinator
    may show), state, secure (false allows plain sums), programs (those that it takes part in), fewest,
    the_other_client_learns_my_sums, the tables tls, clients and limits, as the coordinator's, bounds: what NOTEARS may
    ask, see `gpn_bayes.federated.notears.bounds`, and privacy (largest_epsilon, largest_delta): with it, only
    statistics with at least this differential privacy.

    A run must be over all clients of the table, or over at least `fewest` of them, where that is given: three or more.
    A run of two needs ``the_other_client_learns_my_sums = true``, for so it is.

    Parameters
    ----------
    path : path
        The file.
    overrides : dict, optional
        What takes the place of entries: coordinator, state, certificate, key, authority.

    Raises
    ------
    ValueError
        As `read_coordinator`, and if the client's certificate isn't among those listed.
    """
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    content = _Content(path)
    coordinator = str(given.get("coordinator") or content.take("coordinator", str))
    content.drop("coordinator")
    credentials = _credentials(content, given)
    state = path.parent / content.take("state", str, "state.sqlite")
    config = ClientConfig(
        name=common_name(credentials.identity.certificate),
        coordinator=_address(path, "coordinator", coordinator),
        coordinator_name=content.take("coordinator_name", str, COORDINATOR),
        coordinator_fingerprint=_coordinator_fingerprint(content),
        state=Path(given["state"]) if "state" in given else state,
        secure=content.take("secure", bool, True),
        programs=tuple(content.take("programs", list, ["statistics"])),
        fewest=_fewest(content, len(credentials.fingerprints)),
        bounds=_bounds(content),
        privacy=_privacy(content),
        credentials=credentials,
        limits=_limits(content),
    )
    content.check_empty()
    if credentials.fingerprints.get(config.name) != fingerprint(credentials.identity.der):
        raise ValueError(f"{path.name}: clients must list this client's own certificate; {config.name!r} isn't it")
    return config


class _Content:
    """The entries of a TOML file, taken one by one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise ValueError(f"the configuration file must exist; {str(path)!r} is not a file")
        try:
            self._entries = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path.name} can't be read as TOML: {error}") from None

    def take(self, name: str, kind: type, default: Any = ...) -> Any:
        """Return an entry, which must be of a kind, and strike it off."""
        if name not in self._entries:
            if default is ...:
                raise ValueError(f"{self.path.name}: {name!r} must be given; it isn't")
            return default
        value = self._entries.pop(name)
        if not isinstance(value, kind):
            raise ValueError(f"{self.path.name}: {name!r} must be of type {kind.__name__}; received {shortened(value)}")
        return value

    def drop(self, name: str) -> None:
        """Strike an entry off."""
        self._entries.pop(name, None)

    def check_empty(self) -> None:
        """Refuse entries that nobody took."""
        if self._entries:
            raise ValueError(f"{self.path.name}: every entry must be known; received {next(iter(self._entries))!r}")


def _credentials(content: _Content, given: Mapping[str, Path | str]) -> Credentials:
    tls = content.take("tls", dict, {})
    files = {}
    for name in _TLS:
        value = tls.pop(name, None)
        if name in given:
            files[name] = Path(given[name])
        elif isinstance(value, str):
            files[name] = content.path.parent / value
        else:
            raise ValueError(f"{content.path.name}: tls must name the file of the {name}; it doesn't")
    if tls:
        raise ValueError(f"{content.path.name}: every entry must be known; received {next(iter(tls))!r} in tls")
    identity = read_identity(files["certificate"], files["key"])
    read_certificate(files["authority"])
    return Credentials(identity, files["authority"].read_bytes(), _fingerprints(content))


def _coordinator_fingerprint(content: _Content) -> str | None:
    value: str | None = content.take("coordinator_fingerprint", str, None)
    if value is not None and not _FINGERPRINT.fullmatch(value):
        raise ValueError(
            f"{content.path.name}: coordinator_fingerprint must be the SHA-256 of its certificate, 64 hexadecimal "
            "digits; it isn't"
        )
    return value


def _fingerprints(content: _Content) -> dict[str, str]:
    clients = content.take("clients", dict)
    if not clients:
        raise ValueError(f"{content.path.name}: clients must list at least one; received none")
    for name, value in clients.items():
        check_name(name)
        if not isinstance(value, str) or not _FINGERPRINT.fullmatch(value):
            raise ValueError(
                f"{content.path.name}: clients must be given as name = SHA-256 of the certificate, 64 hexadecimal "
                f"digits; that of {name!r} isn't"
            )
    if len(set(clients.values())) < len(clients):
        raise ValueError(f"{content.path.name}: clients must have different certificates; two have the same")
    return dict(clients)


def _settings(content: _Content) -> dict[str, Any]:
    settings: dict[str, Any] = content.take("settings", dict, {})
    try:
        json.dumps(settings)
    except TypeError:
        raise ValueError(f"{content.path.name}: settings must be texts, numbers or lists; received a date") from None
    return settings


def _fewest(content: _Content, clients: int) -> int | None:
    """Return over how many clients a run must be; None for all."""
    fewest: int | None = content.take("fewest", int, None)
    two = content.take(_TWO, bool, False)
    least = FEWEST if two else ENOUGH
    if (clients if fewest is None else fewest) < least:
        raise ValueError(
            f"{content.path.name}: a run must be over at least {least} clients, of which it then reveals the sum only; "
            f"received {clients if fewest is None else fewest}" + ("" if two else f" ({_TWO} = true allows two)")
        )
    return fewest


def _bounds(content: _Content) -> Bounds:
    try:
        return Bounds.read(content.take("bounds", dict, {}))
    except ValueError as error:
        raise ValueError(f"{content.path.name}: {error}") from None


def _privacy(content: _Content) -> PrivacyLimits | None:
    given = content.take("privacy", dict, None)
    if given is None:
        return None
    names = [field.name for field in fields(PrivacyLimits)]
    if sorted(given) != sorted(names):
        raise ValueError(
            f"{content.path.name}: privacy must have the entries {' and '.join(names)}; received "
            f"{', '.join(sorted(given)) or 'none'}"
        )
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ValueError(f"{content.path.name}: {name} must be a positive number; received {value!r}")
    return PrivacyLimits(**given)


def _limits(content: _Content) -> Limits:
    given = content.take("limits", dict, {})
    known = {field.name for field in fields(Limits)}
    for name in given:
        if name not in known:
            raise ValueError(f"{content.path.name}: limits are {', '.join(sorted(known))}; received {name!r}")
    return Limits(**given)


def _address(path: Path, name: str, text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f"{path.name}: {name} must be host:port; received {text!r}")
    return text
