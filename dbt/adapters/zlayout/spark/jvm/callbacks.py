"""Makes sure that Spark can call back into this Python process, as file skipping requires, and that nobody else can.

Spark calls a Python file index over a loopback port, which every user of the machine can reach. PySpark opens this port
without a token, so anyone who connects could answer for a table. This module therefore gives the port a random token
that only this process and its JVM know.
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


def ensure_skipping(spark: SparkSession) -> tuple[bool, str]:
    """Lets Spark call back into Python, and returns whether plain SQL of this session can skip files.

    Returns:
        ``(True, 'ok')``, or ``(False, reason)`` if Spark cannot call back.
    """
    context = getattr(spark, "_sc", None)
    if context is None or getattr(context, "_gateway", None) is None:
        return False, "this is a Spark Connect session, which has no access to a JVM; tables are read in full"
    try:
        with _LOCK:
            _ensure_token(context._gateway)
    except Exception as error:
        return False, f"Spark cannot call back into Python ({error}); tables are read in full"
    return True, "ok"


def _ensure_token(gateway: Any) -> None:
    """Starts the callback server with a token so that it answers only this JVM, or adds a token to a running one.

    Raises:
        UnsupportedError: This is not possible here; the message says why.
    """
    # Connect clients have neither.
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
            "its callback server asks for no token, so any user of this machine could answer for a table; "
            "let PySpark start the JVM itself"
        )
    else:
        start(gateway)
    _prove(gateway)
    _SECURED[gateway] = gateway._callback_server


def _with_token(gateway: Any, start: Callable[[object], None]) -> None:
    """Does the same for PySpark's default gateway (pinned threads), whose callback server has no token of its own."""
    from py4j.java_gateway import JavaObject  # noqa: PLC0415 - absent in Connect clients

    jvm = gateway.jvm
    # Steps that may be refused come first, so that a failure leaves the gateway unchanged.
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
        _close_foreign_connections(gateway._callback_server)
    else:
        old.shutdown()


def _close_foreign_connections(server: Any) -> None:
    """Closes connections that other users opened before the server asked for a token.

    Connections of this user stay open, because this JVM may be using them.

    Raises:
        UnsupportedError: The system does not say who owns the open connections.
    """
    with server.lock:
        opened = [connection.socket for connection in server.connections if connection.socket is not None]
    owners = {peer: uid for table in _SOCKET_TABLES for peer, uid in _owners(table)}
    for each in opened:
        with contextlib.suppress(OSError):  # closed in the meantime
            host, port = each.getpeername()[:2]
            if not owners:
                raise UnsupportedError(
                    "PySpark's callback server was started before, without a token, and has open connections, and "
                    "this system does not say who owns them; call enable(spark) before anything that calls back "
                    "into Python, such as foreachBatch, starts"
                )
            if owners.get(_peer(host, port)) != os.getuid():
                each.shutdown(socket.SHUT_RDWR)


def _owners(table: Path) -> Iterator[tuple[str, int]]:
    """Yields local address and user id of each open connection in a Linux socket table; nothing on other systems."""
    if not table.is_file():
        return
    for line in table.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        address, _, port = fields[1].partition(":")
        if fields[3] == _ESTABLISHED:
            # In both tables the last four bytes are the IPv4 address; the callback server listens on IPv4.
            yield f"{address[-8:]}:{port}", int(fields[7])


def _peer(host: str, port: int) -> str:
    """Returns an IPv4 address and port as the socket tables of Linux write them on a little-endian machine."""
    return f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}"


class _Answer:
    """A supplier that Java calls to prove that callbacks work."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get(self) -> str:
        """Returns the text."""
        return self.text

    class Java:
        """Tells Py4J which Java interface this class implements."""

        implements = ("java.util.function.Supplier",)


def _prove(gateway: Any) -> None:
    answer = _Answer(secrets.token_hex(8))
    if gateway.jvm.java.util.Optional.empty().orElseGet(answer) != answer.text:
        raise UnsupportedError("the callback server does not answer")


# Gateway → its callback server that has a token. A server that replaces it later must be checked again.
_SECURED: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
