"""Whether Spark can call back into this Python process, which file skipping needs, and nobody else can.

Spark asks a file index in Python over a port on loopback, which every user of the machine can reach. PySpark opens that
port without asking callers for a token; whoever connects could answer for a table. So the port gets a token here: a
random one that only this process and its JVM know.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dbt.adapters.zlayout.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCK = threading.Lock()
_ESTABLISHED = "01"
_SOCKET_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def skipping_status(spark: SparkSession) -> tuple[bool, str]:
    """Whether plain SQL of this session can skip files, and if not, why.

    Returns:
        ``(True, 'ok')`` or ``(False, reason)``.
    """
    context = getattr(spark, "_sc", None)
    if context is None or getattr(context, "_gateway", None) is None:
        return False, "this is a Spark Connect session, which has no JVM at hand; tables are read in full"
    try:
        with _LOCK:
            _ensure_token(context._gateway)
    except Exception as error:
        return False, f"Spark cannot call back into Python ({error}); tables are read in full"
    return True, "ok"


def _ensure_token(gateway: Any) -> None:
    """Starts the callback server so that it answers this JVM alone, or makes one that runs already do so.

    Raises:
        UnsupportedError: That cannot be had here; the message says why.
    """
    # Both are absent in Connect clients.
    from py4j.clientserver import ClientServer  # noqa: PLC0415
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415

    running = gateway.__dict__.get("_callback_server")
    if running is not None and _SECURED.get(gateway) is running:
        return
    start: Callable[[object], None] = ensure_callback_server_started
    if isinstance(gateway, ClientServer):
        _with_token(gateway, start)
    elif gateway.callback_server_parameters.auth_token is None:
        raise UnsupportedError(
            "its callback server asks for no token, so that any user of this machine could answer for a table; "
            "let PySpark start the JVM itself"
        )
    else:
        start(gateway)
    _prove(gateway)
    _SECURED[gateway] = gateway._callback_server


def _with_token(gateway: Any, start: Callable[[object], None]) -> None:
    """The same for the gateway of pinned threads, PySpark's default, whose callback server knows no token."""
    from py4j.java_gateway import JavaObject  # noqa: PLC0415 - absent in Connect clients

    jvm = gateway.jvm
    # What may be refused comes first: a failure leaves the gateway as it was.
    field = jvm.java.lang.Class.forName("py4j.Gateway").getDeclaredField("cbClient")
    field.setAccessible(True)
    java_server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    started_before = gateway.__dict__.get("_callback_server") is not None
    token = gateway.python_parameters.auth_token or secrets.token_hex(32)
    if not started_before:
        gateway.python_parameters.auth_token = token
    start(gateway)
    java_gateway, old = java_server.getGateway(), java_server.getCallbackClient()
    client = jvm.py4j.PythonClient(
        java_gateway,
        None,
        gateway._callback_server.get_listening_port(),
        old.getAddress(),
        30,
        jvm.java.util.concurrent.TimeUnit.SECONDS,
        jvm.javax.net.SocketFactory.getDefault(),
        java_server,
        old.isMemoryManagementEnabled(),
        old.getReadTimeout(),
        token,
    )
    gateway.python_parameters.auth_token = token
    field.set(java_gateway, client)
    if started_before:
        _close_strangers(gateway._callback_server)
    else:
        old.shutdown()


def _close_strangers(server: Any) -> None:
    """Ends connections that other users opened while the server asked for no token; those of this JVM may be in use.

    Raises:
        UnsupportedError: Nobody can tell whose an open connection is.
    """
    with server.lock:
        opened = [connection.socket for connection in server.connections if connection.socket is not None]
    owners = {peer: uid for table in _SOCKET_TABLES for peer, uid in _owners(table)}
    for each in opened:
        with contextlib.suppress(OSError):  # closed meanwhile
            host, port = each.getpeername()[:2]
            if not owners:
                raise UnsupportedError(
                    "PySpark's callback server was started before, without a token, and has open connections, and "
                    "this system does not tell whose they are; call enable(spark) before anything that calls back "
                    "into Python, such as foreachBatch, starts"
                )
            if owners.get(_peer(host, port)) != os.getuid():
                each.shutdown(socket.SHUT_RDWR)


def _owners(table: Path) -> Iterator[tuple[str, int]]:
    """Local address and user of each open connection in a socket table of Linux; nothing elsewhere."""
    if not table.is_file():
        return
    for line in table.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        address, _, port = fields[1].partition(":")
        if fields[3] == _ESTABLISHED:
            # The last four bytes are an IPv4 address, in both tables: the callback server listens on one.
            yield f"{address[-8:]}:{port}", int(fields[7])


def _peer(host: str, port: int) -> str:
    """An IPv4 address as Linux' socket tables write it, on a little-endian machine."""
    return f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}"


class _Answer:
    """What Java asks to prove that the way back is open."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get(self) -> str:
        """The text."""
        return self.text

    class Java:
        """Names the interface to Py4J."""

        implements = ("java.util.function.Supplier",)


def _prove(gateway: Any) -> None:
    answer = _Answer(secrets.token_hex(8))
    if gateway.jvm.java.util.Optional.empty().orElseGet(answer) != answer.text:
        raise UnsupportedError("the callback server does not answer")


# The server of each gateway that asks for a token: one that took its place later has to be looked at again.
_SECURED: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
