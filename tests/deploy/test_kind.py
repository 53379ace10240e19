"""What hub and sites agree the data are."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from idiolect import deploy
from idiolect.core.errors import DataError
from idiolect.data import from_table
from idiolect.deploy.kind import Kind
from tests.tables import wards


@pytest.fixture(scope="module")
def data():
    return from_table(wards(), "ward")


def test_of_data_and_of_their_schema_are_one(data):
    for some in (data, from_table(wards(regression=True), "ward")):
        kind = Kind.of(some)
        assert Kind.of_schema(some.schema, some.name) == kind
        again = Kind.from_dict(json.loads(json.dumps(kind.to_dict())))
        assert again == kind
        assert again.digest == kind.digest
        kind.check(some)
        kind.check(replace(some, name="other"))


def test_the_digest_depends_on_each_part(data):
    kind = Kind.of(data)
    others = [replace(kind, **change) for change in CHANGES]
    assert len({kind.digest, *(other.digest for other in others)}) == len(CHANGES) + 1


CHANGES = [
    {"name": "x"},
    {"task": "regression"},
    {"classes": ("ill", "well", "dead")},
    {"feature_shape": (9,)},
    {"schema": None},
    {"target": (0.0, 2.0)},
]


@pytest.mark.parametrize("change", CHANGES[1:])
def test_what_differs_is_named_in_one_line(data, change):
    told = {"feature_shape": "shape of a sample", "target": "mean and scale of the labels"}
    (field,) = change
    with pytest.raises(DataError, match=f"the {told.get(field, field)} differs from the federation's") as error:
        replace(Kind.of(data), **change).check(data)
    assert "\n" not in str(error.value)


def test_a_column_of_another_schema_is_named(data):
    other = from_table(wards(seed=1), "ward")
    with pytest.raises(DataError, match=r"schema.*columns: age: mean: [0-9.]* here, [0-9.]* there"):
        Kind.of(data).check(replace(other, classes=data.classes))


@pytest.mark.parametrize("values", [{}, {"name": "x"}, {"name": 3}])
def test_what_is_no_kind_is_refused(values):
    with pytest.raises(DataError, match="of no kind that this version knows"):
        Kind.from_dict(values)


@pytest.mark.parametrize("name", ["kind", "schema/summary"])
def test_what_reads_the_network_loads_neither_jax_nor_pandas(name):
    path = Path(deploy.__file__).parent / f"{name}.py"
    tops = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in tops}
    heavy = {m for m in modules if m.split(".")[0] in ("jax", "pandas", "equinox") or m.startswith("idiolect.data")}
    assert not heavy
