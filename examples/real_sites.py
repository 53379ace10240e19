"""Train with a hub and two sites, each a process with only its own samples; then list what the sites sent.

Between real machines the same hub and sites use mutual TLS: docs/four-hospitals.md has the steps.
Run: python examples/real_sites.py [ROUNDS]
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20

EXPERIMENT = f"""
name = "hospitals"

[[cells]]
id = "hospitals"
data = {{ name = "synthetic", alpha = 0.5, beta = 0.5, clients = 2, max_size = 200 }}
model = {{ name = "mlr" }}
rounds = {rounds}
eval_every = {rounds}
methods = [{{ name = "ditto", rate = 0.05 }}]
"""

with TemporaryDirectory() as folder:
    file, out = Path(folder) / "hospitals.toml", Path(folder) / "out"
    file.write_text(EXPERIMENT)
    # --quick leaves out network and certificates; without it the sites need the extra idiolect[sites].
    command = [sys.executable, "-m", "idiolect", "federate", str(file), "--quick", "--out", str(out)]
    subprocess.run(command, check=True)
    for log in sorted(out.glob("sites/*/sent.jsonl")):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        sizes = [line["bytes"] for line in lines if "task" in line]  # other lines are the terms that the hub sent
        print(f"{log.parent.name} sent {len(sizes)} messages, {sum(sizes):,} bytes")
