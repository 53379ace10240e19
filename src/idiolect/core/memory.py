"""How much memory this machine has, and a check before something is made that cannot fit."""

import os

from idiolect.core.errors import require


def machine_memory() -> int | None:
    """Bytes of memory that this machine has, or None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, LookupError, ValueError, OSError):
        return None


def check_fits(needed: int, what: str) -> None:
    """Raise `ConfigError` if something needs more bytes than this machine has; what: what it is, what to do."""
    if (memory := machine_memory()) is not None:
        told = f"this machine has {memory / 1e9:.0f} GB of memory, and at least {needed / 1e9:,.0f} GB are needed"
        require(needed <= memory, f"{told} for {what}")
