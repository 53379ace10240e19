"""What a worker process of a command needs, loaded once in the server that forks the workers."""

from importlib import import_module

from idiolect.core.loading import loading

_NEEDED = ("idiolect.cli.main", "idiolect.study.run.parallel")  # the command's program, and what a worker does

with loading():
    for name in _NEEDED:
        import_module(name)
