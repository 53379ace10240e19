"""Machines of their own on this one: network namespaces, in which only the hub's port can be reached.

A hub and sites, each with its own network, folder /srv/idiolect, host name and /etc/hosts. A veth pair connects each
site to the hub. Policy routing drops everything except connections that a site opens to the hub's port: the hub
cannot open a connection to a site, and sites cannot reach each other. `offline` machines have no network at all. A
memory stick is at /mnt/stick on all of them.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
HUB, PORT = "192.0.2.1", 8002
HUB6 = "2001:db8::1"
BEHIND, PROXY_PORT = "198.51.100.1", 3128
"""The address and port of a proxy, for a site that reaches nothing else."""
_END = "__end_of_command__"


def why_not() -> str:
    """Why namespaces cannot be made here; empty if they can."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need Linux, root and the program `ip`"
    name = f"try{os.getpid()}"
    begin = ["ip", "netns", "exec", name, "unshare", "--mount", "--uts", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        made = [
            subprocess.run(command, capture_output=True, text=True)
            for command in (["ip", "netns", "add", name], begin)
        ]
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    bad = [one for one in made if one.returncode]
    return f"network namespaces are not permitted here: {bad[0].stderr.strip()}" if bad else ""


class Host:
    """One machine with a shell that stays open; its folder is /srv/idiolect on it."""

    def __init__(self, namespace: str, name: str, folder: Path, stick: Path, path: Path) -> None:
        self.namespace, self.name, self.folder = namespace, name, folder
        self.folder.mkdir(parents=True)
        self._stick, self._path, self._own = stick, path, folder.with_name(f"{name}.etc")
        self._own.mkdir()
        (self._own / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        self.started: list[tuple[subprocess.Popen[str], Path]] = []
        self._shell = subprocess.Popen(
            self._inside("exec bash"),
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _inside(self, script: str) -> list[str]:
        """A command line that runs a script on this machine."""
        steps = [
            "mount --make-rprivate /",
            "mount -t tmpfs none /srv",
            "mount -t tmpfs none /mnt",
            "mkdir /srv/idiolect /mnt/stick",
            f"mount --bind {self.folder} /srv/idiolect",
            f"mount --bind {self._stick} /mnt/stick",
            f"mount --bind {self._own / 'hosts'} /etc/hosts",
            f"hostname {self.name}",
            "cd /srv/idiolect",
            script,
        ]
        own = " && ".join(steps)
        return ["ip", "netns", "exec", self.namespace, "unshare", "--mount", "--uts", "sh", "-c", own]

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        paths = {
            "PATH": f"{self._path}:{kept['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": "/srv/idiolect/home",
        }
        return {**kept, **paths, "COLUMNS": "200", "IDIOLECT_CACHE": "/srv/idiolect/home"}

    def run(self, command: str, answer: str = "", limit: float = 300) -> tuple[int, str]:
        """Run a command in the shell, whose variables stay; its status and what it printed.

        answer: what a person types, on a terminal.
        """
        if answer:
            command = f"printf '{answer}\\n' | script -qec {shlex.quote(command)} /dev/null"
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {command}\n}} {'' if answer else '</dev/null'}\necho {_END} $?\n")
        self._shell.stdin.flush()
        timer = threading.Timer(limit, self._shell.kill)
        timer.start()
        lines: list[str] = []
        try:
            for line in self._shell.stdout:
                if line.startswith(_END) or f"{_END} " in line:
                    before, _, status = line.rpartition(f"{_END} ")
                    return int(status), "".join([*lines, before]).replace("\r", "")
                lines.append(line)
        finally:
            timer.cancel()
        return -1, "".join(lines)

    def start(self, command: str, variables: Mapping[str, str] | None = None) -> Path:
        """Start a command that keeps running; the file with what it prints."""
        out = self._own / f"{len(self.started)}.txt"
        with out.open("w") as file:
            process = subprocess.Popen(
                self._inside(f"exec {command}"),
                env={**self._environment(), **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self.started.append((process, out))
        return out

    def wait_for(self, out: Path, text: str, limit: float = 240) -> str:
        """What a started command has printed, as soon as the text is in it."""
        end = time.monotonic() + limit
        while text not in (printed := out.read_text()):
            (process,) = [one for one, path in self.started if path == out]
            if process.poll() is not None and text not in out.read_text():
                raise AssertionError(
                    f"{self.name}: ended with {process.returncode} before {text!r}:\n{out.read_text()}"
                )
            if time.monotonic() > end:
                raise AssertionError(f"{self.name}: no {text!r} within {limit:.0f} s in\n{printed}")
            time.sleep(0.2)
        return printed

    def interrupt(self, limit: float = 60) -> None:
        """Ctrl-C for every command that was started."""
        for process, _ in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process, _ in self.started:
            process.wait(limit)

    def listening(self) -> set[tuple[str, int]]:
        """The TCP sockets that listen on this machine at other addresses than its loopback: (family, port)."""
        code = "cat /proc/net/tcp; echo ===; cat /proc/net/tcp6"
        _, text = self.run(code)
        found: set[tuple[str, int]] = set()
        for family, part in zip(("ipv4", "ipv6"), text.split("===\n"), strict=True):
            for line in part.splitlines()[1:]:
                address, port = line.split()[1].split(":")
                loopback = address in (
                    "0100007F",
                    "00000000000000000000000001000000",
                    "0000000000000000FFFF00000100007F",
                )
                if line.split()[3] == "0A" and not loopback:
                    found.add((family, int(port, 16)))
        return found

    def end(self) -> None:
        """End every process in the machine's network."""
        self._shell.kill()
        self._shell.wait()
        for _ in range(20):
            pids = subprocess.run(
                ["ip", "netns", "pids", self.namespace], capture_output=True, text=True
            ).stdout.split()
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    continue
            for process, _ in self.started:
                process.poll()
            if not pids:
                return
            time.sleep(0.1)


def _ip(*words: str, inside: str = "") -> None:
    command = ["ip", *(["-n", inside] if inside else []), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def _programs(folder: Path) -> Path:
    """A folder with the programs of this environment."""
    folder.mkdir()
    for name in ("python", "python3"):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (folder / "idiolect").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m idiolect "$@"\n')
    code = "import sys; sys.argv[0] = 'nvflare'; from nvflare.cli import main; sys.exit(main())"
    (folder / "nvflare").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n')
    for path in folder.iterdir():
        path.chmod(0o755)
    return folder


@contextmanager
def hosts(
    folder: Path,
    sites: Sequence[str],
    offline: Sequence[str] = (),
    *,
    families: Mapping[str, Sequence[int]] | None = None,
    through: Mapping[str, str] | None = None,
) -> Generator[dict[str, Host]]:
    """The machines `hub`, these sites and offline ones, as `Host`s by name; afterwards nothing of them is left.

    families: 4 and 6 for IPv4 and IPv6, of a site (default: both). through: site -> another one, by which alone it
    reaches anything: a proxy at port 3128 of its address in `BEHIND`.
    """
    tag = f"i{os.getpid() % 100000}"
    names = ["hub", *sites, *offline]
    spaces = {name: f"{tag}-{name}" for name in names}
    stick, path = folder / "stick", _programs(folder / "bin")
    stick.mkdir()
    machines: dict[str, Host] = {}
    try:
        for space in spaces.values():
            _ip("netns", "add", space)
            _ip("link", "set", "lo", "up", inside=space)
        for number, site in enumerate(sites):
            if site in (through or {}):
                _connect_proxy(tag, spaces[(through or {})[site]], spaces[site])
            else:
                _connect(tag, number, spaces["hub"], spaces[site], (families or {}).get(site, (4, 6)))
        for name in {*names} - {*(through or {}).values()}:
            _only_from_or_to(spaces[name], *_allowed(name, through or {}))
        for name in names:
            machines[name] = Host(spaces[name], name, folder / name, stick, path)
        yield machines
    finally:
        for machine in machines.values():
            machine.end()
        for space in spaces.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True)


def address(number: int, family: int = 4) -> str:
    """The address of the site of this number, from 0."""
    return f"192.0.2.{11 + number}" if family == 4 else f"2001:db8::{11 + number}"


def _connect(tag: str, number: int, hub: str, site: str, families: Sequence[int]) -> None:
    ours, theirs = f"{tag}h{number}", f"{tag}s{number}"
    _ip("link", "add", ours, "netns", hub, "type", "veth", "peer", "name", theirs, "netns", site)
    for space, name in ((hub, ours), (site, theirs)):
        _ip("link", "set", name, "up", inside=space)
    for family in families:
        mine, its, flags = (HUB if family == 4 else HUB6), address(number, family), ["nodad"] if family == 6 else []
        width, kind = (32, "-4") if family == 4 else (128, "-6")
        _ip(kind, "addr", "add", f"{mine}/{width}", "dev", ours, *flags, inside=hub)
        _ip(kind, "addr", "add", f"{its}/{width}", "dev", theirs, *flags, inside=site)
        _ip(kind, "route", "add", its, "dev", ours, "src", mine, inside=hub)
        _ip(kind, "route", "add", mine, "dev", theirs, "src", its, inside=site)


def _connect_proxy(tag: str, proxy: str, site: str) -> None:
    ours, theirs = f"{tag}p", f"{tag}b"
    _ip("link", "add", ours, "netns", proxy, "type", "veth", "peer", "name", theirs, "netns", site)
    for space, name, own in ((proxy, ours, BEHIND), (site, theirs, "198.51.100.2")):
        _ip("addr", "add", f"{own}/24", "dev", name, inside=space)
        _ip("link", "set", name, "up", inside=space)


def _allowed(name: str, through: Mapping[str, str]) -> tuple[str, int]:
    return ("sport", PORT) if name == "hub" else ("dport", PROXY_PORT if name in through else PORT)


def _only_from_or_to(space: str, end: str, port: int) -> None:
    """Route TCP from (sport) or to (dport) a port, and nothing else."""
    subprocess.run(["ip", "netns", "exec", space, "sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward"], check=True)
    for kind in ("-4", "-6"):
        rule = ["pref", "100", "iif", "lo", "ipproto", "tcp", end, str(port), "lookup", "main"]
        _ip(kind, "rule", "add", *rule, inside=space)
        _ip(kind, "rule", "del", "pref", "32766", inside=space)
