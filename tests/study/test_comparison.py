"""The experiment behind a comparison."""

import equinox as eqx
import jax

from idiolect.study.comparison import comparison_of, own_or_named

MODEL = {"name": "mlr", "l2": 0.1}


def test_a_model_is_the_users_own_or_named() -> None:
    own = eqx.nn.Linear(2, 2, key=jax.random.key(0))
    assert own_or_named(own) == (own, {"name": "own"})
    assert own_or_named("mlr") == (None, {"name": "mlr"})
    assert own_or_named(MODEL) == (None, MODEL)


def test_one_cell_named_after_the_data_with_all_settings() -> None:
    methods = ["local", {"name": "pfedme", "rate": 0.5}]
    experiment = comparison_of(
        "mine", {"name": "synthetic"}, MODEL, methods, seeds=3, first_seed=2, title="A title", rounds=7, cohort=5
    )
    assert (experiment.name, experiment.title) == ("compare-mine", "A title")
    assert (experiment.seeds, experiment.first_seed) == (3, 2)
    (cell,) = experiment.cells
    assert (cell.id, cell.rounds, cell.cohort, cell.select) == ("mine", 7, 5, "last")
    assert [method.name for method in cell.methods] == ["local", "pfedme"]
    assert cell.methods[1].spec == {"name": "pfedme", "rate": 0.5}
    assert dict(cell.data) == {"name": "synthetic"}


def test_validation_data_are_scored_only_where_they_choose() -> None:
    def splits(select: str) -> list[str]:
        return list(
            comparison_of("d", {"name": "synthetic"}, MODEL, ["local"], select=select, rounds=2).cells[0].splits
        )

    assert splits("last") == ["train", "test"]
    assert splits("best-validation") == ["train", "validation", "test"]
