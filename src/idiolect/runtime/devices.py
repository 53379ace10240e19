"""The devices that run a federation: one, all of one machine, or those of several hosts.

Every device holds the server's state and the data, and computes its part of the cohort. Several hosts run one process
each with the same program, see `idiolect.runtime.distributed`; only process 0, the leader, writes.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import xla_client
from jaxtyping import Int, PyTree

from idiolect.client.client import Together
from idiolect.core import tree
from idiolect.core.cores import cores
from idiolect.core.errors import ConfigError, require
from idiolect.core.files import cache_folder
from idiolect.runtime.xla_flags import known_flags

AXIS = "clients"
WITHIN = "rows"  # divided by the devices that compute one client together
WORTH = 1e8
"""The fewest operations of a gradient that are worth another CPU core.

Measured on two cores of a Xeon, whole and divided: convolutions on 20 images, 209 million operations, 4.6 and 4.0 ms;
on 4 images, 42 million, 1.8 and 2.2 ms; on 64 images of Omniglot, 1.5 billion, 29 and 18 ms.
"""
# By default XLA ends a process whose cores wait 40 s for each other, which can happen with one large client. This
# allows a week, with a warning after a day.
WAITING = {
    "xla_cpu_collective_call_warn_stuck_timeout_seconds": 86_400,
    "xla_cpu_collective_call_terminate_timeout_seconds": 604_800,
}
# A compiler that takes less time and memory, for programs that run for seconds only.
QUICK: Mapping[str, bool | int] = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}
# By default XLA runs steps of a program side by side where it can, on threads that all devices share. Then one thread
# may compute what two devices should, from start to end: 9 and 13 of 60 programs of one round took twice the time.
IN_ORDER: Mapping[str, str] = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
Options = Mapping[str, bool | int | str]
Tree = TypeVar("Tree")


_cores_used = 1


def use_cores(count: int | None = None) -> int:
    """Make each CPU core a JAX device, so that clients are trained in parallel: up to 1.7 times as fast on two.

    (A cohort divides over cores better than one client's small matrix products.) count: all cores by default. Call
    it before anything is computed with JAX. It changes nothing if devices are configured otherwise
    (JAX_NUM_CPU_DEVICES, XLA_FLAGS, several processes). Cores wait for each other as long as `WAITING` says, unless
    XLA_FLAGS says otherwise. Returns the number of CPU devices. Raises `ConfigError` if it is called too late.
    """
    global _cores_used
    require(count is None or count >= 1, f"count = {count} must be at least 1 core")
    _wait_long()
    configured = jax.config.jax_num_cpu_devices  # pyright: ignore[reportAttributeAccessIssue]
    if "host_platform_device_count" in os.environ.get("XLA_FLAGS", "") or (configured > 0 and _cores_used == 1):
        return jax.local_device_count("cpu")
    num_cores = len(cores()) if count is None else count
    try:
        jax.config.update("jax_num_cpu_devices", num_cores)
    except RuntimeError:
        if num_cores == jax.local_device_count("cpu"):
            return num_cores
        raise ConfigError("use_cores() comes too late: call it before anything is computed with JAX") from None
    _cores_used = num_cores
    return num_cores


def _wait_long() -> None:
    """Make XLA read XLA_FLAGS with `WAITING` added, then restore the variable; XLA reads it only once.

    Only flags that this XLA knows are added. If the flags stayed, they would change the keys of JAX's compilation
    cache, and an older XLA of another library would abort on unknown flags.
    """
    flags = os.environ.get("XLA_FLAGS")
    missing = [flag for flag in _flags(WAITING) if flag in _known() and flag.partition("=")[0] not in (flags or "")]
    os.environ["XLA_FLAGS"] = " ".join([*(flags or "").split(), *missing])
    try:
        xla_client.CompileOptions()
    finally:
        del os.environ["XLA_FLAGS"]
        if flags is not None:
            os.environ["XLA_FLAGS"] = flags


def _flags(options: Options) -> dict[str, str]:
    """{flag as in XLA_FLAGS: the option's name}."""
    words = {name: str(value).lower() if isinstance(value, bool) else value for name, value in options.items()}
    return {f"--{name}={word}": name for name, word in words.items()}


@cache
def _known() -> frozenset[str]:
    """The flags of this module that the installed XLA knows."""
    return frozenset(known_flags([*_flags(WAITING), *_flags(QUICK), *_flags(IN_ORDER)], cache_folder()))


def compiler_options(devices: int, quick: bool = False) -> dict[str, bool | int | str]:
    """The options of a program for so many devices, without what the installed XLA does not know; CPUs only.

    quick: see `QUICK`.
    """
    if jax.default_backend() != "cpu":
        return {}
    wanted: Options = {**(QUICK if quick else {}), **(IN_ORDER if devices > 1 else {})}
    return {name: wanted[name] for flag, name in _flags(wanted).items() if flag in _known()}


def are_cores() -> bool:
    """Whether the devices are a CPU or its cores, which several processes can share."""
    return jax.default_backend() == "cpu" and jax.device_count() in (1, _cores_used)


class Devices:
    """A mesh axis of devices over which clients are divided. chosen: by default all devices of all processes.

    rows: the number of clients (or runs) to divide; in a single process, devices that would not make it faster are
    left unused. gradient: (rows, operations a row) of one gradient of a client: where there are more devices than
    clients and it has enough operations, `together` says which devices compute one client. The length is the number
    of parts into which clients are divided.
    """

    def __init__(
        self,
        chosen: Sequence[Any] | None = None,
        rows: float = math.inf,
        gradient: tuple[int, float] = (0, 0.0),
    ) -> None:
        self.all, self.together = tuple(jax.devices() if chosen is None else chosen), None
        if chosen is None and jax.process_count() == 1 and rows < math.inf:
            each = math.ceil(rows / len(self.all))
            parts = math.ceil(rows / each)
            self.together = _together(len(self.all) // parts, *gradient)
            self.all = self.all[: parts * self._each]

    def __len__(self) -> int:
        return len(self.all) // self._each

    @property
    def _each(self) -> int:
        return 1 if self.together is None else self.together.devices

    @cached_property
    def apart(self) -> "Devices":
        """The same devices, each for clients of its own."""
        return self if self.together is None else Devices(self.all)

    @cached_property
    def _mesh(self) -> Mesh:
        if self.together is None:
            return Mesh(np.asarray(self.all), (AXIS,))
        return Mesh(np.asarray(self.all).reshape(len(self), self._each), (AXIS, self.together.axis))

    @cached_property
    def everywhere(self) -> NamedSharding | None:
        """The sharding of a value replicated on all devices; None for a single device."""
        return None if len(self.all) == 1 else self._replicated

    def place(self, value: Tree) -> Tree:
        """Replicate the value on every device; it must be the same in all processes."""
        if self.everywhere is None:
            return value
        return jax.tree.map(self._place, value)

    def _place(self, leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array | np.ndarray):
            return leaf
        if tree.is_key(leaf):
            return jax.random.wrap_key_data(self._place(jax.random.key_data(leaf)))
        return jax.device_put(leaf if jax.process_count() == 1 else np.asarray(leaf), self.everywhere)

    def share(self, value: Tree) -> Tree:
        """As `place`, for arrays that are never modified or donated: CPU devices share one copy."""
        if self.everywhere is None or jax.process_count() > 1 or self.all[0].platform != "cpu":
            return self.place(value)
        return jax.tree.map(self._alias, value)

    def _alias(self, leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array | np.ndarray) or tree.is_key(leaf):
            return self._place(leaf)
        host = np.asarray(leaf)
        parts = [jax.device_put(host, device, may_alias=True) for device in self.all]
        return jax.make_array_from_single_device_arrays(host.shape, self._replicated, parts)

    @cached_property
    def _replicated(self) -> NamedSharding:
        return NamedSharding(self._mesh, PartitionSpec())

    def divide(self, value: Tree) -> Tree:
        """Place leaves (rows, ...) on the devices, an equal part of the rows on each; see `filled`.

        They come from the host, so that no device waits for another. A compiled function that gets rows that are
        placed in another way is compiled again.
        """
        rows = NamedSharding(self._mesh, PartitionSpec(AXIS)) if len(self) > 1 else None

        def one(leaf: Any) -> Any:
            if tree.is_key(leaf):
                return jax.random.wrap_key_data(one(np.asarray(jax.random.key_data(leaf))))
            return jax.device_put(np.asarray(leaf), rows)

        return jax.tree.map(one, value)

    def filled(self, rows: int) -> Int[np.ndarray, "filled"]:
        """The numbers of so many rows, the last one repeated until every device has equally many."""
        return np.minimum(np.arange(-(-rows // len(self)) * len(self)), rows - 1)

    def kept_everywhere(self, value: Tree) -> Tree:
        """Inside a compiled program: constrain the value to be replicated on every device."""
        return value if self.everywhere is None else jax.lax.with_sharding_constraint(value, self.everywhere)

    def map(self, mapped: Callable[..., Any], seen: PyTree, *arguments: PyTree) -> Any:
        """mapped(seen, *arguments), which maps over the arguments' leading axis, with the rows divided over devices.

        seen: replicated on every device; all arrays that `mapped` uses must be in it. Rows are padded to a multiple
        of the number of devices.
        """
        if len(self.all) == 1:
            return mapped(seen, *arguments)
        rows = jax.tree.leaves(arguments)[0].shape[0]
        filled = self.filled(rows)
        if len(filled) > rows:
            arguments = tree.gather(arguments, filled)
        sharded = jax.shard_map(
            lambda seen, arguments: mapped(seen, *arguments),
            mesh=self._mesh,
            in_specs=(PartitionSpec(), PartitionSpec(AXIS)),
            out_specs=PartitionSpec(AXIS),
            check_vma=False,
        )
        return jax.tree.map(lambda leaf: leaf[:rows], sharded(seen, arguments))


def _together(devices: int, rows: int, operations: float) -> Together | None:
    """The devices, of so many, that compute a client whose gradients take so many operations for each of `rows`."""
    devices = min(devices, int(rows * operations / WORTH))
    if devices < 2:
        return None
    return Together(WITHIN, devices, math.ceil(devices * WORTH / operations))


def is_leader() -> bool:
    """Whether this is process 0, the only one that writes and prints."""
    return jax.process_index() == 0


def agreed(value: Tree) -> Tree:
    """The leader's value, in every process; all must call it at the same point, with values of the same shapes."""
    return value if jax.process_count() == 1 else multihost_utils.broadcast_one_to_all(value)


def agreed_text(text: str) -> str:
    """The leader's text, in every process."""
    if jax.process_count() == 1:
        return text
    encoded = np.frombuffer(text.encode(), np.uint8)
    size = int(agreed(np.asarray(len(encoded))))
    return bytes(np.asarray(agreed(np.resize(encoded, size) if len(encoded) else np.zeros(size, np.uint8)))).decode()


def map_blocks(function: Callable[..., Any], block: int, *arguments: PyTree) -> Any:
    """Map over the leading axis: vmap inside blocks of `block`, one block after the other.

    The result does not depend on `block` beyond float rounding; time and memory do. Block 0 is a Python loop
    without batching, for debugging.
    """
    rows = jax.tree.leaves(arguments)[0].shape[0]
    if block == 0:
        results = [function(*tree.gather(arguments, row)) for row in range(rows)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)
    if block >= rows:
        return jax.vmap(function)(*arguments)
    # Blocks that divide the rows compile the body once; a remainder would compile it a second time.
    block = next((b for b in range(block, block // 2, -1) if rows % b == 0), block)
    return jax.lax.map(lambda args: function(*args), arguments, batch_size=None if block == 1 else block)


def sum_blocks(function: Callable[..., tuple[PyTree, Any]], block: int, *arguments: PyTree) -> tuple[PyTree, Any]:
    """As `map_blocks`, of a function with two results: (the sum of the first over all rows, the second, stacked).

    The first results are added up block by block, so that never more than a block of them is kept.
    """
    rows = jax.tree.leaves(arguments)[0].shape[0]
    block = next(b for b in range(min(max(block, 1), rows), 0, -1) if rows % b == 0)
    parts = jax.tree.map(lambda leaf: leaf.reshape(rows // block, block, *leaf.shape[1:]), arguments)
    shapes = jax.eval_shape(lambda *given: function(*tree.gather(given, 0))[0], *arguments)
    start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def step(total: PyTree, part: tuple[PyTree, ...]) -> tuple[PyTree, Any]:
        if block == 1:
            added, kept = function(*tree.gather(part, 0))
            kept = jax.tree.map(lambda leaf: leaf[None], kept)
        else:
            added, kept = jax.vmap(function)(*part)
            added = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), added)
        return jax.tree.map(jnp.add, total, added), kept

    total, kept = jax.lax.scan(step, start, parts)
    return total, jax.tree.map(lambda leaf: leaf.reshape(rows, *leaf.shape[2:]), kept)


def default_block(size: int) -> int:
    """The default number of clients vmapped together, by the numbers that training one changes in each step.

    A few kilobytes gain from batched products; more no longer fit the cache. Measured on one core:
    0.6 to 5 thousand parameters, blocks of 5 to 10 are up to 1.3x faster than 1; 79 thousand (784-100-10), blocks of
    5 are 1.65x slower.
    """
    return 8 if size <= 5_000 else 1
