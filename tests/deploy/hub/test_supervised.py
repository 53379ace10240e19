import subprocess
import sys
from pathlib import Path

import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.hub.supervised import supervised

HOLDS = """
import sys, time
from pathlib import Path
from idiolect.deploy.hub.supervised import supervised
with supervised(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(60)
"""


def test_one_process_at_a_time_and_none_after_a_kill(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "in\n"
    with pytest.raises(StoreError, match="another 'idiolect hub run' works in"), supervised(tmp_path):
        pass
    (tmp_path / "other").mkdir()
    with supervised(tmp_path / "other"):
        pass
    other.kill()
    other.wait()
    with supervised(tmp_path):
        pass
