"""Check a site before its first round: kit, configuration, certificate, data, connection; one line per finding."""

import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from idiolect.core.errors import ConfigError, DataError, IdiolectError, StoreError, os_errors_as
from idiolect.deploy.headers import Looked, Request
from idiolect.deploy.messages import Message
from idiolect.deploy.nvflare.kits import Kit, certificate
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.site import child_of

LEAST_DISK = 500_000_000
LEAST_MEMORY = 300_000_000
"""Bytes that must be free: for states and models, and for the engine's worker in addition to the trainer."""
WAIT = 10.0
_HTTP = b"GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


@dataclass(frozen=True)
class Finding:
    """One check. line: what was found, or what is wrong and what to do."""

    what: str
    good: bool
    line: str


def site_checks(kit: Kit) -> Iterator[Finding]:
    """Configuration, certificate, name, connection, data, memory and disk of a site, in this order."""
    steps: list[tuple[str, Callable[[Kit], str]]] = [
        ("configuration", _configuration),
        ("certificate", _certificate),
        ("hub's name", _name),
        ("connection", _connection),
    ]
    for what, step in steps:
        yield _found(what, lambda step=step: step(kit))
    yield from _trainer(kit)
    yield _found("disk", lambda: _disk(kit))


def _found(what: str, step: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, step())
    except IdiolectError as error:
        return Finding(what, False, str(error))


def _configuration(kit: Kit) -> str:
    config = SiteConfig.load(kit.site)
    if config.name != kit.name:
        raise ConfigError(
            f"{kit.site}/site.toml is of '{config.name}', but the kit is of '{kit.name}'; init it again"
        )
    allow = config.allow
    allowed = [f"methods: {', '.join(allow.methods)}", f"evaluation: {_word(allow.evaluation)}"]
    return "; ".join([f"site '{config.name}'", *allowed, f"summaries: {_word(allow.summaries)}"])


def _word(yes: bool) -> str:
    return "yes" if yes else "no"


def _certificate(kit: Kit) -> str:
    details = certificate(kit)
    return f"of {details.name}, valid until {details.not_after:%Y-%m-%d}"


def _name(kit: Kit) -> str:
    try:
        found = socket.getaddrinfo(kit.host, kit.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise StoreError(
            f"'{kit.host}' does not resolve on this machine: add it to the DNS or to /etc/hosts"
        ) from None
    return f"{kit.host} is {found[0][4][0]}"


def _connection(kit: Kit) -> str:
    """Connect by mutual TLS; the hub's first words come only if it takes the site's certificate."""
    hub, startup = f"{kit.host}:{kit.port}", kit.folder / "startup"
    try:
        context = ssl.create_default_context(cafile=str(startup / "rootCA.pem"))
        context.load_cert_chain(str(startup / "client.crt"), str(startup / "client.key"))
        context.set_alpn_protocols(["h2", "http/1.1"])
        with (
            socket.create_connection((kit.host, kit.port), timeout=WAIT) as plain,
            context.wrap_socket(plain, server_hostname=kit.identity) as secure,
        ):
            secure.sendall(_HTTP2 if secure.selected_alpn_protocol() == "h2" else _HTTP)
            if not secure.recv(9):
                raise StoreError(f"{hub} has closed the connection: does it know this site's certificate?")
    except ssl.SSLCertVerificationError as error:
        raise StoreError(f"{hub} is not the hub of this kit ({error.verify_message}): ask the hub's owner") from None
    except ssl.SSLError as error:
        raise StoreError(f"{hub} refused the connection over TLS ({error.reason}): ask for a certificate") from None
    except ConnectionRefusedError:
        raise StoreError(f"nothing listens at {hub}: start the hub, or let its administrator open the port") from None
    except (TimeoutError, OSError) as error:
        reason = getattr(error, "strerror", None) or "no answer"
        raise StoreError(f"{hub} cannot be reached ({reason}): let outbound connections to it through") from None
    return f"{hub} answers over mutual TLS"


def _trainer(kit: Kit) -> Iterator[Finding]:
    """The data and the memory, as the trainer's own process finds them."""
    try:
        config = SiteConfig.load(kit.site)
    except IdiolectError as error:
        yield Finding("data", False, str(error))
        return
    child = child_of(kit.site, config)
    try:
        answer = child.call(Request(task="look").message(), 120.0)
    finally:
        child.close()
    yield _found("data", lambda: _data(answer))
    if not answer.error:
        yield _found("memory", lambda: _memory(Looked.of(answer, "the trainer's answer").resident))


def _data(answer: Message) -> str:
    if answer.error:
        raise DataError(answer.error)
    return Looked.of(answer, "the trainer's answer").data


def _memory(resident: int) -> str:
    import psutil

    free = int(psutil.virtual_memory().available)
    line = f"the trainer takes {resident / 1e6:,.0f} MB, {free / 1e6:,.0f} MB are free"
    if free < resident + LEAST_MEMORY:
        raise StoreError(f"{line}: at least {(resident + LEAST_MEMORY) / 1e6:,.0f} MB are needed; end other programs")
    return line


def _disk(kit: Kit) -> str:
    with os_errors_as(f"cannot read the free space for {kit.folder}"):
        free = shutil.disk_usage(kit.folder).free
    if free < LEAST_DISK:
        raise StoreError(f"{free / 1e6:,.0f} MB are free: make room for {LEAST_DISK / 1e6:,.0f} MB")
    return f"{free / 1e9:,.1f} GB are free"
