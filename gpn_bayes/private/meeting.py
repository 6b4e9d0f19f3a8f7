"""A run over TLS: if it ends early, the other party is informed, and nothing of the run is reused."""

from collections.abc import Callable

from gpn_bayes._util.extras import installed_by
from gpn_bayes.private.protocol import Learned, learn
from gpn_bayes.private.settings import Settings
from gpn_bayes.private.tables import PartyTable
from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.secure.randomisers import RandomiserPool

with installed_by("private"):
    from gpn_bayes.wire.tls_link import TlsLink

# Seconds that a party waits for a message; nothing takes nearly as long to compute.
PATIENCE = 120.0


def learn_over_tls(
    link: TlsLink,
    table: PartyTable,
    settings: Settings,
    pool: RandomiserPool | None,
    *,
    first: bool,
    advance: Callable[[float], None] = lambda share: None,
) -> Learned:
    """Learn a network with the party at the other end, and hang up, whatever happens.

    Parameters
    ----------
    link : TlsLink
        To the other party.
    table, settings, pool, first, advance
        As of `gpn_bayes.private.protocol.learn`.
    """
    with link:
        try:
            return learn(link, table, settings, pool, first=first, advance=advance)
        except BaseException as error:
            link.abort(_reason(error))
            raise


def _reason(error: BaseException) -> bytes:
    if isinstance(error, KeyboardInterrupt):
        return b"interrupted"
    if isinstance(error, ValueError):
        return b"refused"
    return b"protocol" if isinstance(error, ProtocolError | ConnectionError) else b"failed"
