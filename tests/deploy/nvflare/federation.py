"""Three real sites and a hub on this machine, with stand-ins for what idiolect does at both ends."""

import json
from pathlib import Path

from idiolect.deploy.nvflare.processes import free_port, start, stop
from idiolect.deploy.nvflare.provision import Kits, provision

SOURCE = Path(__file__).parents[3] / "src"

# Loaded by every process of the engine; the modules that the roles import are these few lines.
STAND_INS = """
import os
import sys
import types

package = types.ModuleType("idiolect")
package.__path__ = [os.environ["IDIOLECT_SOURCE"] + "/idiolect"]  # no JAX, whatever the package itself imports
sys.modules["idiolect"] = package


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096


def peak(reset=False):
    if reset:
        open("/proc/self/clear_refs", "w").write("5")
    return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) * 1024


def run_hub(folder, transport):
    import json
    import time

    import numpy as np

    from idiolect.deploy.messages import Message

    wanted = json.loads((folder / "wanted.json").read_text())
    with open(folder / "rounds.txt", "a") as out:
        for round, (kind, size) in enumerate(wanted):
            rng = np.random.default_rng(round)
            sent = {s: {"w": rng.normal(size=size).astype("f4"), "n": np.int64(round)} for s in transport.sites}
            head = {"run": "r", "round": round, "kind": kind, "sites": list(transport.sites)}
            messages = {s: Message({**head, "for": s}, v) for s, v in sent.items()}
            if kind in ("huge", "inside"):
                transport.bound(1 << 20)
                time.sleep(5)  # nothing of an earlier answer is on its way
            memory, begun = resident(), time.monotonic()
            peak(reset=True)
            replies = transport.call(round, messages, deadline=5 if kind == "slow" else 60)
            right = {}
            for site, reply in replies.replies.items():
                names = transport.sites
                left = names[names.index(site) - 1]
                expected = sent[left if kind == "ring" else site]
                right[site] = all(
                    reply.vectors[k].tobytes() == np.asarray(v).tobytes() for k, v in expected.items()
                ) and reply.vectors["w"].dtype == np.float32 and reply.header["caller"] == "server"
            seconds = time.monotonic() - begun
            told = {"memory": memory, "peak": peak(), "seconds": seconds, "kind": kind, "right": right}
            told |= {"missing": dict(replies.missing), "jax": [
                r.header["jax"] for r in replies.replies.values()] + ["jax" in sys.modules]}
            out.write(json.dumps(told) + chr(10))
            out.flush()


class Site:
    def answer(self, message, caller, peer):
        import time

        from idiolect.deploy.messages import Message

        head = {"caller": caller, "jax": "jax" in sys.modules}
        kind, own, names = message.header["kind"], message.header["for"], message.header["sites"]
        if kind == "ring":
            i = names.index(own)
            near = {names[i - 1], names[(i + 1) % len(names)]}
            peer.expect("r", near)
            got = peer.exchange(message.header["round"], {n: message for n in near}, deadline=30)
            assert not got.missing, got.missing
            return Message(head, got.replies[names[i - 1]].vectors)
        if kind in ("huge", "inside") and own == "site-2":
            import numpy as np

            from idiolect.deploy.nvflare import carriers

            carriers.INSIDE = 1 << 40 if kind == "inside" else 1 << 20
            return Message(head, {"w": np.zeros(100_000_000, "f4")})
        if kind == "raise" and own == "site-2":
            raise ValueError("patient 4711")
        if kind == "slow" and own == "site-2":
            time.sleep(7)
        return Message(head, message.vectors)

    def close(self):
        pass


for name, what in {"idiolect.deploy.hub.run": run_hub, "idiolect.deploy.site.site": lambda folder: Site()}.items():
    module = types.ModuleType(name)
    setattr(module, "run_hub" if what is run_hub else "open_site", what)
    sys.modules[name] = module
"""


class Federation:
    """Kits, processes, and the hub's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hub = folder, folder / "hub"
        self.hub.mkdir()
        stand_ins = folder / "stand-ins"
        stand_ins.mkdir()
        (stand_ins / "sitecustomize.py").write_text(STAND_INS)
        self.kits: Kits = provision(folder / "kits", "fed", ["site-1", "site-2", "site-3"], free_port())
        self.environment = {
            "PYTHONPATH": f"{stand_ins}:{SOURCE}",
            "IDIOLECT_SOURCE": str(SOURCE),
            "IDIOLECT_HUB": str(self.hub),
        }

    def start(self) -> None:
        for kit in (self.kits.hub, *self.kits.sites.values()):
            start(kit, self.environment)

    def stop(self) -> None:
        for kit in (self.kits.hub, *self.kits.sites.values()):
            stop(kit)

    def want(self, *rounds: tuple[str, int]) -> None:
        (self.hub / "wanted.json").write_text(json.dumps(rounds))
        (self.hub / "rounds.txt").unlink(missing_ok=True)

    def rounds(self) -> list[dict[str, object]]:
        path = self.hub / "rounds.txt"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
