"""A small HTTP proxy with CONNECT, which asks for a user's name and password: `python proxy.py user:password`."""

import base64
import contextlib
import socket
import sys
import threading

PORT = 3128


def pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what one end says until it ends."""
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def serve(client: socket.socket, wanted: str) -> None:
    """One connection: its first line is printed; without the right credentials it is refused."""
    head = b""
    while b"\r\n\r\n" not in head and (part := client.recv(4096)):
        head += part
    first = head.decode(errors="replace").partition("\r\n")[0]
    good = wanted.lower() in head.decode(errors="replace").lower() and first.startswith("CONNECT ")
    print(first, "taken" if good else "refused", flush=True)
    if not good:
        client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        client.close()
        return
    host, _, port = first.split()[1].rpartition(":")
    server = socket.create_connection((host.strip("[]"), int(port)))
    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    pump(server, client)


def main(user: str) -> None:
    """Serve until the end of the process."""
    credentials = f"Proxy-Authorization: Basic {base64.b64encode(user.encode()).decode()}"
    with socket.create_server(("", PORT)) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client, credentials), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
