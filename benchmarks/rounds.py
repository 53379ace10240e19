"""One round of every method on one network, against FedAvg's round and against what its operations predict.

    python -m benchmarks.rounds                     # PFLEGO's network for Omniglot, tau = 50
    python -m benchmarks.rounds --samples 64 --cohort 1 --clients 2 --repeats 2

All clients hold the same number of random samples and take exact gradient steps on all of them (batch_size = 0), as
in PFLEGO's experiments. Methods are timed in turn, round by round, so that a busy machine hurts all of them alike;
medians are compared. One forward pass over the samples counts 1, a backward pass 2. Methods with short rounds make
several in a call, up to ten, since a call's first touch of its memory costs some 40 ms, as a run's first round does.
"""

import argparse
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from benchmarks.timing import medians, simulation


@dataclass(frozen=True)
class Counted:
    """A method, and its passes over a client's samples in a round of tau steps: forward 1, backward 2."""

    spec: dict[str, Any]
    passes: float
    why: str


def counted(tau: int) -> list[Counted]:
    """The methods, each with tau local steps, and what they cost."""
    step = {"local_steps": tau, "batch_size": 0, "rate": 1e-3}
    gradient = 3
    return [
        Counted({"name": "fedavg", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "local", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "fedprox", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "scaffold", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "scaffold", "option": "I", **step}, (tau + 1) * gradient, "tau gradients, one more for c_i"),
        Counted({"name": "fedadam", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "reptile", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "afl", **step}, tau * gradient + 1, "tau gradients, one loss"),
        Counted({"name": "fedper", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "lg-fedavg", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "fedbabu", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "ditto", **step}, 2 * tau * gradient, "tau gradients for w, tau for v"),
        Counted({"name": "apfl", **step}, 2 * tau * gradient, "tau gradients at w, tau at the mixture"),
        Counted({"name": "fedu", **step}, tau * gradient, "tau gradients"),
        Counted({"name": "fedsgd", "batch_size": 0, "rate": 1e-3}, gradient, "one gradient"),
        Counted(
            {"name": "fedrep", "head_steps": tau, "body_steps": 5, "batch_size": 0, "rate": 1e-3},
            1 + 5 * gradient,
            "features once, 5 gradients",
        ),
        Counted(
            {"name": "fedrecon", "recon_steps": tau, "split": "none", **step},
            1 + tau * gradient,
            "features once, tau gradients",
        ),
        Counted({"name": "pflego", "local_steps": tau, "rate": 1e-3}, 1 + gradient, "features once, one gradient"),
    ]


def measure(args: argparse.Namespace, report: Callable[[str], None]) -> list[tuple[Counted, float]]:
    """Median seconds a round of every method, timed in turn."""
    methods = counted(args.tau)
    shape = (28, 28, 1) if args.features == 0 else (args.features,)
    sizes = {"classes": args.classes, "clients": args.clients, "samples": args.samples, "cohort": args.cohort}
    sims = [simulation(method.spec, args.model, shape, **sizes) for method in methods]
    names = [method.spec["name"] for method in methods]
    rounds = [min(10, max(1, round(methods[0].passes / method.passes))) for method in methods]
    return list(zip(methods, medians(sims, names, args.repeats, report, rounds), strict=True))


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--model", default="omniglot-cnn", help="a model of the zoo")
    parser.add_argument("--features", type=int, default=0, help="features of a sample; 0: images of 28 x 28")
    parser.add_argument("--tau", type=int, default=50, help="local steps")
    parser.add_argument("--samples", type=int, default=256, help="training samples of a client")
    parser.add_argument("--classes", type=int, default=32, help="classes")
    parser.add_argument("--clients", type=int, default=4, help="clients")
    parser.add_argument("--cohort", type=int, default=2, help="clients a round")
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds")
    args = parser.parse_args()
    console = Console()
    found = measure(args, lambda text: console.print(f"[dim]{text}[/dim]"))
    base, base_seconds = found[0]
    table = Table(title=f"{args.model}, tau = {args.tau}, {args.cohort} clients of {args.samples} samples a round")
    for column in ("method", "passes", "s a round", "FedAvg / method", "predicted", "time / predicted"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for method, seconds in found:
        predicted = base_seconds * method.passes / base.passes
        name = method.spec["name"] + (" (I)" if method.spec.get("option") == "I" else "")
        table.add_row(
            name,
            f"{method.passes:g}",
            f"{seconds:.3f}",
            f"{base_seconds / seconds:.2f}",
            f"{base.passes / method.passes:.2f}",
            f"{seconds / predicted:.2f}",
        )
    console.print(table)
    console.print(
        f"{platform.machine()}, {jax.devices()[0].platform}, {jax.device_count()} device(s), jax {jax.__version__}"
    )


if __name__ == "__main__":
    main()
