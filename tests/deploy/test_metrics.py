"""Metrics: the library is an extra, and memory is counted without what processes share."""

import os
import urllib.request

import pytest

from idiolect.core.errors import ConfigError
from idiolect.deploy import metrics
from idiolect.deploy.metrics import Measure, memory_of, serving
from idiolect.deploy.nvflare.processes import free_port


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'idiolect\[metrics\]'"), serving(1, list):
        pass


def test_each_request_reads_anew():
    pytest.importorskip("prometheus_client")
    port, reads = free_port(), []

    def read():
        reads.append(1)
        yield Measure("x", "A number.", {"": len(reads)})
        yield Measure("y", "By site.", {"a": 1, "b": 2}, "site", counter=True)

    with serving(port, read):
        texts = [urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5).read().decode() for _ in range(2)]
    assert "idiolect_x 1.0" in texts[0]
    assert "idiolect_x 2.0" in texts[1]
    assert 'idiolect_y_total{site="b"} 2.0' in texts[1]


def test_memory_of_a_process_and_of_none():
    pytest.importorskip("psutil")
    assert memory_of(os.getpid()) > 1e6
    assert memory_of(None) == memory_of(2**22 + 1) == 0
