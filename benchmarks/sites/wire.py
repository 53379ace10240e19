"""What can be read on the wire and in the hub's files: private leaves and samples are looked for, byte by byte."""

import json
import re
import socket
import sqlite3
import struct
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Shaped, UInt64

from benchmarks.sites.federation import data_of, experiment_of
from benchmarks.sites.live import Live, Row, live
from idiolect.core.errors import IdiolectError
from idiolect.deploy.messages import read_message
from idiolect.deploy.this_machine import ARRAYS

LONG = 8
"""Bytes that are looked for at once: two numbers of 32 bits."""
_DIFFERENT = 5  # of these bytes: zeros and ones are everywhere


@dataclass
class Recorder:
    """All TCP content on the loopback, by (from port, to port)."""

    flows: dict[tuple[int, int], list[bytes]] = field(default_factory=dict[tuple[int, int], list[bytes]])
    dropped: int = 0

    def content(self, port: int, inside: bool) -> dict[tuple[int, int], bytes]:
        """The flows of a port (inside) or all others."""
        return {ports: b"".join(parts) for ports, parts in self.flows.items() if (port in ports) == inside}

    def take(self, packet: bytes) -> None:
        """Keep the content of an Ethernet packet of TCP over IPv4 or IPv6."""
        kind = packet[12:14]
        if kind == b"\x08\x00" and packet[23] == 6:
            start, end = 14 + (packet[14] & 15) * 4, 14 + int.from_bytes(packet[16:18])
            end = end if end > start else len(packet)
        elif kind == b"\x86\xdd" and packet[20] == 6:
            start, end = 54, len(packet)
        else:
            return
        ports = struct.unpack_from("!HH", packet, start)
        content = packet[start + (packet[start + 12] >> 4) * 4 : end]
        if content:
            self.flows.setdefault(ports, []).append(content)


@contextmanager
def recorded() -> Generator[Recorder]:
    """Record all packets on `lo` during the block."""
    recorder, over = Recorder(), threading.Event()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3)) as raw:
        raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)  # SO_RCVBUFFORCE
        raw.bind(("lo", 0))
        raw.settimeout(0.2)

        def record() -> None:
            while not over.is_set():
                try:
                    packet, address = raw.recvfrom(1 << 17)
                except TimeoutError:
                    continue
                if address[2] == 4:  # outgoing: on the loopback each packet is seen twice
                    recorder.take(packet)

        thread = threading.Thread(target=record, daemon=True)
        thread.start()
        try:
            yield recorder
        finally:
            time.sleep(0.5)
            over.set()
            thread.join()
            recorder.dropped = struct.unpack("II", raw.getsockopt(263, 6, 8))[1]  # SOL_PACKET, PACKET_STATISTICS


def needles(vectors: Iterable[Shaped[np.ndarray, "..."]]) -> UInt64[np.ndarray, "needles"]:
    """Every two neighbouring numbers of 32 bits of these vectors whose bytes are no common pattern, sorted."""
    found = set[bytes]()
    for vector in vectors:
        content = np.ascontiguousarray(vector).tobytes()
        for at in range(0, len(content) - LONG + 1, 4):
            if len(set(piece := content[at : at + LONG])) >= _DIFFERENT:
                found.add(piece)
    return np.sort(np.frombuffer(b"".join(sorted(found)), np.uint64))


def hits(content: bytes, wanted: UInt64[np.ndarray, "needles"]) -> int:
    """How many places of a content, at any offset, hold one of the needles."""
    total = 0
    for offset in range(LONG):
        count = (len(content) - offset) // LONG
        if count > 0 and len(wanted):
            here = np.frombuffer(content, np.uint64, count, offset)
            at = np.minimum(np.searchsorted(wanted, here), len(wanted) - 1)
            total += int((wanted[at] == here).sum())
    return total


def decimals(vectors: Iterable[Shaped[np.ndarray, "..."]]) -> set[bytes]:
    """The numbers as a text would begin them: nine digits after the point."""
    values = np.concatenate([np.asarray(v, np.float64).reshape(-1) for v in vectors])
    return {f"{abs(value):.12f}"[:-3].encode() for value in values if value and value != round(value)}


def text_hits(content: bytes, wanted: set[bytes]) -> int:
    """How many of these numbers stand in a text."""
    return len({number.group(1) for number in re.finditer(rb"(\d+\.\d{9})\d*", content)} & wanted)


@dataclass
class Secrets:
    """What must not be seen: samples, and every state that the sites have had. Initial states are the hub's own."""

    samples: dict[str, Shaped[np.ndarray, "..."]] = field(default_factory=dict[str, Shaped[np.ndarray, "..."]])
    states: dict[tuple[str, int, str], Shaped[np.ndarray, "..."]] = field(
        default_factory=dict[tuple[str, int, str], Shaped[np.ndarray, "..."]]
    )

    def follow(self, run: Live) -> None:
        """Read the sites' states until the run has ended."""
        for site, path in run.place.sites.items():
            message = read_message(path / ARRAYS)
            assert message is not None
            self.samples |= {f"{site}/{n}": v for n, v in message.vectors.items() if n.endswith(".x")}
        while not run.ended.wait(0.01):
            self.look(run.place.sites)

    def look(self, sites: Mapping[str, Path]) -> None:
        """Read the states that the sites have now: what is private, and a model that only neighbours may see."""
        for site, path in sites.items():
            for file in (path / "state").rglob("*.msg"):
                try:
                    message = read_message(file)
                except IdiolectError:
                    continue
                if message is None or message.header["round"] < 0:
                    continue
                for name, vector in message.vectors.items():
                    if name.split("/")[0] in ("private", "view"):
                        self.states[site, message.header["round"], name] = vector

    @property
    def all(self) -> list[Shaped[np.ndarray, "..."]]:
        """All vectors."""
        return [*self.samples.values(), *self.states.values()]


_KINDS = {b"\x89PNG\r\n\x1a\n": "PNG", b"SQLite format 3\0": "SQLite"}


def kind_of(path: Path) -> str:
    """The kind of a file by its content, one that nobody executes; "?" for any other."""
    content = path.read_bytes()
    for start, kind in _KINDS.items():
        if content.startswith(start):
            if kind == "SQLite":
                sqlite3.connect(f"file:{path}?mode=ro", uri=True).close()
            return kind
    if not content:
        return "empty"
    try:
        if (message := read_message(path)) is not None:
            return "message" if message.vectors or message.header else "?"
    except IdiolectError:
        pass
    try:
        text = content.decode()
        if path.suffix in (".json", ".jsonl"):
            for part in [text] if path.suffix == ".json" else text.splitlines():
                json.loads(part)
            return path.suffix[1:].upper()
    except ValueError:
        return "?"
    return path.suffix[1:].upper() if path.suffix in (".csv", ".md", ".svg", ".txt", ".toml") else "?"


def own_files(out: Path) -> list[Path]:
    """The files of a hub's folder, without the kits that this machine holds for all."""
    files = [path for path in out.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if "federation" not in path.relative_to(out).parts[:1]]


def _plainly(vector: Shaped[np.ndarray, "..."]) -> None:
    """Send a vector over the loopback without TLS: the recorder must see it."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as mine,
        server.accept()[0] as theirs,
    ):
        mine.sendall(np.ascontiguousarray(vector).tobytes())
        theirs.recv(1 << 16)


def wire(folder: Path) -> list[Row]:
    """A ring of dFedU and a star with private heads: neither the wire nor the hub's files hold a private number."""
    rows = list[Row]()
    for method, title, cell in (
        ({"name": "dfedu", "graph": "ring", "rate": 0.05, "coupling": 0.1}, "dFedU on a ring", {}),
        ({"name": "pflego"}, "PFLEGO, private heads", {"model": {"name": "mlp", "hidden": [5]}}),
    ):
        rows += _searched(folder / str(method["name"]), method, title, cell)
    return rows


def _searched(out: Path, method: Mapping[str, object], title: str, cell: Mapping[str, object]) -> list[Row]:
    experiment = experiment_of([method], rounds=8, eval_every=4, **cell)
    secrets, began = Secrets(), time.monotonic()
    with recorded() as packets:
        run = live(out, experiment, data_of(3), secrets.follow)
        secrets.look(run.place.sites)
        _plainly(next(iter(secrets.states.values())))
    seconds = round(time.monotonic() - began)
    port, wanted = run.kits.hub.port, needles(secrets.all)
    tls, plain = packets.content(port, True), packets.content(port, False)
    states = needles(secrets.states.values())
    sent = [hits(content, states) for content in plain.values()]
    job = json.loads((out / "segment.json").read_bytes())["job"].encode()
    among = [content for content, found in zip(plain.values(), sent, strict=True) if not found]
    told = sum(job in content for content in among), sum(job in content for content in tls.values())
    on_hub = sum(hits(content, wanted) for content in tls.values())
    on_others = sum(hits(content, wanted) for content in among)
    size, other = sum(map(len, tls.values())), sum(map(len, among))
    looked = f"{len(wanted):,} needles of {LONG} bytes ({len(secrets.states)} states, {len(secrets.samples)} tables)"
    wire_row = Row(
        f"wire, {title}",
        f"{looked}: {on_hub} found in {size:,} bytes to and from the hub's port, {on_others} in {other:,} bytes "
        f"between parents and workers. Controls: a state in clear text is found at {max(sent, default=0)} places, "
        f"the job's id is in {told[0]} flows between parents and workers and in {told[1]} of the hub's port. Packets "
        f"that the recorder lost: {packets.dropped}",
        seconds,
        not on_hub and not on_others and max(sent, default=0) > 0 and told[0] > 0 and told[1] == 0 and bool(size),
    )
    return [wire_row, _files(out, run, secrets, wanted, title)]


def _files(out: Path, run: Live, secrets: Secrets, wanted: UInt64[np.ndarray, "needles"], title: str) -> Row:
    began, texts = time.monotonic(), decimals(secrets.all)
    own = own_files(out)
    kit = [path for path in run.kits.hub.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    contents = [path.read_bytes() for path in [*own, *kit]]
    bytes_found = sum(hits(content, wanted) for content in contents)
    texts_found = sum(text_hits(content, texts) for content in contents)
    control = hits((run.place.sites["site-1"] / ARRAYS).read_bytes(), wanted)
    kinds: dict[str, int] = {}
    for path in own:
        kinds[kind_of(path)] = kinds.get(kind_of(path), 0) + 1
    strange = [path.relative_to(out).as_posix() for path in own if kind_of(path) == "?"]
    listed = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    return Row(
        f"hub's files, {title}",
        f"{bytes_found} needles and {texts_found} of {len(texts):,} numbers as text found in {len(contents)} files "
        f"({sum(map(len, contents)):,} bytes) of the hub's folder, kit and logs; in a site's own data file the same "
        f"search finds {control:,}. The folder holds {listed}"
        + (f"; of no known kind: {', '.join(strange)}" if strange else "; nothing that must be unpickled"),
        round(time.monotonic() - began, 1),
        not bytes_found and not texts_found and control > 0 and not strange,
    )
