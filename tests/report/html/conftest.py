"""The report's page in the browser that the tests of pages share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idiolect.report.html.render import page_html
from tests.report.conftest import Opened


@pytest.fixture(scope="session")
def open_page(visit: Callable[..., Opened], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Opened]:
    """Render a payload, open the file, wait until it is ready. options: of the browser's context."""

    def opened(payload: dict[str, Any], **options: Any) -> Opened:
        path: Path = tmp_path_factory.mktemp("page") / "report.html"
        path.write_text(page_html(payload))
        found = visit(path.as_uri(), **options)
        found.page.wait_for_selector("html[data-ready]", state="attached")
        return found

    return opened
