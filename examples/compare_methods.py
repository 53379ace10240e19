"""Compare three methods on the same clients, rounds and seeds.

Run: python examples/compare_methods.py [ROUNDS]
"""

import sys

import idiolect

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60

# Twelve clients whose labels follow different rules. idiolect.data.mnist() and others read published data.
data = idiolect.data.synthetic(0.5, 0.5, clients=12, max_size=200)

comparison = idiolect.compare(
    data,
    "mlr",
    ["local", "fedavg", idiolect.Ditto(rate=0.05)],
    rounds=rounds,
    eval_every=rounds,
    seeds=2,
)
comparison.show()  # mean and 95 % interval over the seeds, worst clients, and clients that lose

best = max(comparison.lines, key=lambda line: line.pooled.mean)
print(f"Highest test accuracy: {best.method} ({best.model}), {100 * best.pooled.mean:.1f} %")
