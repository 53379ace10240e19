"""`python -m tests.changed` names the test files of the modules and tests that have changed since the last commit."""

import subprocess
from pathlib import Path

from tests.test_structure import TESTED_IN, TESTS, name_of, own_test

ROOT = TESTS.parent


def mirror_of(path: Path) -> Path | None:
    """The test file of a changed file, relative to the repository; None if it has none."""
    if path.parts[0] == "tests":
        return path if path.name.startswith("test_") else None
    if path.parts[:2] != ("src", "idiolect") or path.suffix != ".py":
        return Path("tests/docs/test_words.py") if path.suffix == ".md" else None
    name = name_of(ROOT / path)
    return Path("tests", TESTED_IN.get(name) or own_test(name))


def changed() -> list[Path]:
    """The files that differ from the last commit, and those that git does not know yet."""
    asked = (["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"])
    listed = [subprocess.run(["git", *one], cwd=ROOT, capture_output=True, text=True, check=True) for one in asked]
    return [Path(line) for done in listed for line in done.stdout.splitlines()]


def main() -> None:
    """Print the files, always with `tests/test_structure.py`."""
    files = {Path("tests/test_structure.py"), *(file for path in changed() if (file := mirror_of(path)) is not None)}
    print(*sorted(file.as_posix() for file in files if (ROOT / file).is_file()))


if __name__ == "__main__":
    main()
