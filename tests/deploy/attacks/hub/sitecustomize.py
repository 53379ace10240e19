"""What a malicious hub's process loads first: its job sends the calls that lie in attack/, one after the other.

attack/0000/SITE.msg is a call of a site; its answer becomes SITE.answer, and a refusal SITE.refused.
"""

import sys
import types
from pathlib import Path
from typing import Any


def attack(folder: Path, transport: Any) -> None:
    """Send all calls."""
    from idiolect.deploy.messages import read_message, write_message

    for number, calls in enumerate(sorted((folder / "attack").iterdir())):
        messages = {path.stem: read_message(path) for path in calls.glob("*.msg")}
        got = transport.call(number, messages, deadline=120)
        for site, answer in got.replies.items():
            write_message(calls / f"{site}.answer", answer)
        for site, why in got.missing.items():
            (calls / f"{site}.refused").write_text(why)


module = types.ModuleType("idiolect.deploy.hub.run")
module.run_hub = attack  # pyright: ignore[reportAttributeAccessIssue]
sys.modules["idiolect.deploy.hub.run"] = module
