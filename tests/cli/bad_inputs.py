"""Bad inputs of every command: what `test_many_bad_inputs` gives to the command line, one after the other.

A further command gets a function that yields `Bad`, named in `everything`. Everything here is refused before a
round is run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.core.settings import settings_of
from idiolect.data.sets.synthetic import synthetic, synthetic_population
from idiolect.models.registry import MODELS, complete_spec


@dataclass(frozen=True)
class Bad:
    """One bad input. files: name -> content of what lies in the working folder; environment: variables that are set.

    words: what the line must say, besides being one line.
    """

    arguments: tuple[str, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict[str, "str | bytes"])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    words: str = ""

    @property
    def name(self) -> str:
        """The command as it is typed, and the name of a file's content."""
        given = [repr(content[:40]) for content in self.files.values()]
        return " ".join([*(repr(word)[1:-1][:60] for word in self.arguments), *given, *self.environment.values()])


TABLE = "client,x,label\n" + "".join(f"{'ab'[i % 2]},{i / 7},{'yn'[i % 3 == 0]}\n" for i in range(40))
CELL = '[[cells]]\nid = "one"\ndata = { name = "synthetic", clients = 5, max_size = 40 }\nmodel = "mlr"\n'
METHOD = '[[cells.methods]]\nname = "local"\n'
TOML = f"{CELL}{METHOD}"
FILES = {"own.csv": TABLE}
SMALL = ("--set", "data.clients=5", "--set", "data.max_size=40")
COMPARE = ("compare", "--data", "synthetic", "--methods", "local", *SMALL)
SWEEP = ("sweep", "--data", "synthetic", "--methods", "local", *SMALL, "--set", "data.validation=0.2")
OWN = ("compare", "--data", "own.csv", "--methods", "local")
REPRODUCE = ("reproduce", "demo")
RUN = ("run", "here.toml")
NO_NUMBERS = ("NaN", "1e400", "-1e400", "text", "[1, [2]]", '{"a": 1}', '""', "北")
OTHER_TYPES = ("NaN", "1e400", "[[1]]", '{"a": 1}', "0.5.5", "-1")


def commands() -> Iterator[Bad]:
    """Commands that cannot be read."""
    lines = (
        "nosuch; --bogus; -x; compar; compare; compare --data; compare synthetic --data synthetic; compare nope.csv; "
        "compare .; sweep; sweep --data synthetic; sweep own.csv; sweep own.csv --data own.csv --methods local; "
        "run; "
        "run a.toml b.toml; resume; resume a b; reproduce; reproduce a b; show; show a b; list; list methods a b; "
        "demo surplus; demo --rounds 5; demo --jobs 0; demo --jobs many; show --jobs 2 .; list --all; launch; "
        "launch -n 2; launch -n two -- show .; launch -n 0 -- show .; launch -n -1 -- show .; "
        "launch -n 1e9 -- show .; "
        "launch -n 100000 -- show .; launch --processes; resume . --save-models some; resume . --jobs -1; "
        "resume . --set rounds=3; run a.toml --rounds 5; show absent; show own.csv; show .; resume absent; "
        "resume own.csv; resume .; run absent.toml; run .; run own.csv; list method; list x; list methods nosuch; "
        "list data nosuch; list models mpl; list metrics acc; list experiments pfedme/table9; reproduce nosuch; "
        "reproduce pfedme/table9; reproduce ../demo; reproduce /etc/passwd; reproduce demo --protocol as-told; "
        "reproduce pfedme/table1 --protocol other; reproduce demo --only nosuch; reproduce demo --only synthetic/x; "
        "reproduce demo --seeds 0; reproduce demo --seeds -1; reproduce demo --seeds two; "
        "reproduce demo --seeds 2 --splits 2; reproduce demo --seeds 99999999999999999999; --version=3; "
        "compare --data synthetic --methods local --seeds 2 --splits 2; --distributed show ."
    )
    for line in lines.split(";"):
        yield Bad(tuple(line.split()), FILES)


def options() -> Iterator[Bad]:
    """Options with values that they cannot have."""
    numbers = ("nan", "inf", "-inf", "", "many", "1,5", "1e400", "0x10", "-1", "0", "None", "北", "9" * 30)
    of_both = {
        "--rounds": (*numbers, "1.5", "4294967296"),
        "--cohort": (*numbers, "6", "2.5", "1e300"),
        "--seeds": (*numbers, "1.5", "100000000"),
        "--seed": ("nan", "inf", "", "one", "1.5", "-1", "4294967296", str(2**31), str(2**64), str(2**70), "9" * 99),
        "--eval-every": (*numbers, "1.5", str(2**40)),
        "--sampling": ("", "uniform", "fixd", "FIXED", "3"),
        "--metric": (
            "acuracy",
            "rmse",
            ",",
            "accuracy,acuracy",
            "accuracy accuracy",
            "3",
            "Accuracy",
            "北",
        ),
        "--model": ("", "lstm", "mpl", "linear", "cnn", "MLR", "../x", "北", "3"),
        "--methods": ("", ",", "nosuch", "pFedMe", "local,local", "local;global", "3", " ", "local,nosuch"),
        "--data": ("", " ", "nosuch", "synthetc", "table", "absent.csv", "Synthetic", "3", "~/x.csv", "x" * 5000),
        "--out": ("", " ", "own.csv", "own.csv/here", "x" * 300, "/proc/here", "/dev/null", "loop/here"),
    }
    for command in (COMPARE, SWEEP):
        for option, values in of_both.items():
            unlike = {(SWEEP, "--cohort"): ("2.5",)}.get((command, option), ())
            yield from (Bad((*command, option, value), FILES) for value in values if value not in unlike)
    only = {
        "--splits": (*numbers, "1.5"),
        "--select": ("", "best", "first", "best-test", "best-validation", "last-5", "LAST"),
        "--jobs": ("0", "-1", "nan", "many", "", "1.5"),
        "--save-models": ("", "some", "0", "FIRST"),
        "--debug": ("yes",),
    }
    for option, values in only.items():
        yield from (Bad((*COMPARE, option, value), FILES) for value in values)
    searched = {
        "--search": ("", "gird", "Grid", "bayes", "random", "optuna", "3"),
        "--memory": ("nan", "inf", "-inf", "0", "-3", "lots", "", "1e400"),
        "--batch": ("0", "-1", "nan", "all", "", "1.5"),
        "--eta": ("0", "1", "-3", "nan", "x", "", "2.5"),
        "--budget": ("0", "-1", "nan", "all", "", "1.5"),
        "--folds": ("x", "nan", "", "2.5"),
    }
    for option, values in searched.items():
        yield from (Bad((*SWEEP, option, value)) for value in values)
    for folds in ("-1", "0", "1", "99", "1000", "9" * 30):
        yield Bad((*SWEEP, "--search", "cv", "--folds", folds))
    yield Bad(("sweep", *OWN[1:], "--search", "cv", "--folds", "1000"), FILES, words="folds")
    for budget in ("0", "-5", "x"):
        yield Bad((*SWEEP, "--search", "random", "--budget", budget))
    yield from (
        Bad((*COMPARE, "--data-dir", folder, "--data", "mnist"), FILES) for folder in ("", "absent", "own.csv")
    )
    yield from (
        Bad((*COMPARE, "--data", name)) for name in ("har", "school", "vehicle", "landmine", "emnist", "mosei")
    )
    for variable in ("nan", "0", "-1", "lots", "inf"):
        yield Bad((*SWEEP, "--set", "local.rate=0.1,0.2"), environment={"IDIOLECT_MEMORY": variable})
    yield Bad((*COMPARE[:2], "mnist", *COMPARE[3:5]), environment={"IDIOLECT_DATA": "absent"})
    for key, value in (("IDIOLECT_PROCESSES", "2"), ("IDIOLECT_PROCESS", "0"), ("IDIOLECT_COORDINATOR", "x")):
        yield Bad(COMPARE, environment={key: value})


def settings() -> Iterator[Bad]:
    """Settings of an experiment and its cells, given with --set."""
    lines = (
        "rounds|=3||rounds|=|==|.|.=3|.rounds=3|rounds.=3|data=|data=3|data.=3|data..x=1|model=|model=3|model.=1|"
        "local=3|local.=3|local.rate.x=1|methods=[]|methods=local|methods=[3]|cells=[]|splits=[]|splits=test|"
        'splits=["test","tset"]|splits=["train"]|splits=3|draw=personal|draw=["persnal"]|draw=[3]|eval_clients=0|'
        "eval_clients=6|eval_clients=-1|eval_clients=1.5|eval_clients=all|private=disk|private=3|private=null|"
        "shared_init=maybe|shared_init=2|new_splits=perhaps|new_splits=[]|tune=maybe|tune=true|gaps=3|gaps=[3]|"
        'gaps=[{"larger":"a"}]|metric=3|metric=[]|metric=acuracy|select=best|select=best-test|select=3|'
        "select=best-validation|sampling=uniform|sampling=3|cohort=6|cohort=0|cohort=-1|cohort=many|cohort=[2]|"
        "rounds=0|rounds=-1|rounds=1e400|rounds=NaN|rounds=1.5|rounds=many|rounds=[5]|rounds=null|rounds=true|"
        "rounds={}|rounds=1e12|rounds=99999999999999999999|rounds=4294967296|eval_every=0|eval_every=-2|"
        "eval_every=often|eval_every=1e400|eval_every=null|eval_every=99999999999999999999|seeds=0|seeds=-1|"
        "seeds=1e9|seeds=many|seeds=1.5|seeds=NaN|seeds=null|first_seed=-1|first_seed=2.5|first_seed=1e400|"
        "first_seed=99999999999999999999999|name=3|name=null|title=3|title=null|description=3|across=rounds.x|"
        "across=data.name|across=3|protocol=as-told|protocol=3|after_test=3|source=3|raounds=3|Rounds=3|"
        "rounds =x|data.clietns=3|local.raet=0.1|locl.rate=0.1|fedavg.rate=0.1|modle.l2=0|id=3|id=null"
    )
    for line in lines.split("|"):
        yield Bad((*COMPARE, "--set", line))
    swept = (
        "local.rate=log(0,1,3)|local.rate=log(1,2)|local.rate=log(1,2,0)|local.rate=log(a,b,c)|local.rate=log(1,2,3|"
        "local.rate=lin(1,2,3,4)|local.rate=0.1,0.1|local.rate=0.1,fast|local.rate=|local.rate=,|local.rate=0.1,,0.2|"
        "local.rate=NaN|local.rate=1e400|local.rate=-1|local.rate=0|local.rat=1|local.rate=loguniform(0.1,1)|"
        "local.rate=uniform(1,0)|local.rate=log(1,2,1e9)|local.rate=log(nan,1,3)|local.rate=log(1,inf,3)|"
        "local.local_steps=1.5|local.local_steps=0,1|local.local_steps=1e12|local.batches=fresh,stale|model.l2=-1|"
        "model.l2=|model.l2=x|model.l2=NaN|model.l3=1|pfedme.rate=1|select=last-10|data.validation=0|private=file|"
        "new_splits=true|local=3|.rate=1|local.=1|local.rate|rate=1,2|seeds=0|local.label=x|local.name=global"
    )
    for line in swept.split("|"):
        yield Bad((*SWEEP, "--set", line))
    for key in ("rounds", "local.rate", "data.clients", "model.l2", "nosuch", "eval_every"):
        yield Bad(("run", "here.toml", "--set", f"{key}=NaN"), {"here.toml": TOML})
        yield Bad((*REPRODUCE, "--set", f"{key}=-1"))
    for word in ("nosuch", "one/nosuch", "", "/", "local/"):
        yield Bad(("run", "here.toml", "--only", word), {"here.toml": TOML})


def wrong_values(key: str, default: Any) -> list[str]:
    """Texts of values that a hyper-parameter with this default cannot have."""
    if key in ("graph", "mixture", "relation", "modalities", "rates"):
        return ["NaN", '{"a": 1}', "nosuch", "-1", "[[]]", '[["a"]]', '""', "1e400", "-1e400", "[null]"]
    if isinstance(default, bool):
        return [*OTHER_TYPES, "maybe", "2", '"true"', "[true]"]
    if isinstance(default, str) or default is None:
        return [*OTHER_TYPES, "nosuch", '""', "北", "-1e39"]
    if isinstance(default, int):
        return [*OTHER_TYPES, "1e12", "1e30", "9" * 40, "many", "1.5", "true", "null"]
    return [*OTHER_TYPES, "1e39", "fast", "true", "[0.1]", '"0.1"']


def refused_settings() -> Iterator[tuple[str, str, str]]:
    """(method, setting, value): every hyper-parameter of every method with every value that it cannot have.

    Left out are those that only the model or the federation can refuse.
    """
    for name, method in ALGORITHMS.items():
        for key, default in hyperparameters(method).items():
            if key not in ("head", "decoder", "relation", "graph", "modalities"):
                yield from ((name, key, value) for value in wrong_values(key, default))


def methods() -> Iterator[Bad]:
    """Every hyper-parameter of every method with a value that it cannot have."""
    for name, method in ALGORITHMS.items():
        for key, default in hyperparameters(method).items():
            values = wrong_values(key, default)
            first = len(name) + len(key)  # not the same values for every setting: `refused_settings` has all of them
            value = values[first % len(values)]
            yield Bad((*COMPARE[:3], "--methods", name, *SMALL, "--set", f"{name}.{key}={value}"))
        yield Bad(("compare", "--data", "synthetic", "--methods", name, "--set", f"{name}.ratee=1", *SMALL))


def models() -> Iterator[Bad]:
    """Every key of every model with values that it cannot have: all of them where a key is new, else one."""
    seen: set[str] = set()
    for name in MODELS:
        for key in complete_spec(name):
            values = ["NaN", "1e400", '{"a": 1}', "nosuch", "-1", '[["a"]]', "true"]
            if key in ("hidden", "channels", "kernel", "pool", "pool_stride", "dense"):
                values += ["0", "1.5", "[0]", "[-1]", '["x"]', "1e12", "[1e12, 1e12]", "9" * 40, "null"]
            if key == "l2":
                values += ["null", "[0.1]", '""', "1e39"]
            first = len(name) % len(values)
            for value in values if key not in seen else values[first : first + 1]:
                yield Bad((*COMPARE, "--model", name, "--set", f"model.{key}={value}"))
            seen.add(key)
        yield Bad((*COMPARE, "--model", name, "--set", "model.widht=1"))


def data() -> Iterator[Bad]:
    """Arguments of data that are made here, and of tables."""
    for name, source in (("synthetic", synthetic), ("synthetic-population", synthetic_population)):
        for key, setting in settings_of(source).items():
            values = ["NaN", "1e400", "nosuch", '{"a": 1}', "[1, [2]]", "-1"]
            if isinstance(setting.default, int):
                values += ["1.5", "1e30", "9" * 40]
            if isinstance(setting.default, float):
                values += ["1e39", "null"]
            yield from (
                Bad(("compare", "--data", name, *COMPARE[3:], "--set", f"data.{key}={value}"))
                for value in values
                if (key, value) not in FINE
            )
    words = (
        "client=x|client=label|client=clinet|client=3|client=null|label=lable|label=client|label=|path=absent.csv|"
        "path=3|path=null|path=|split=label|split=client|split=splt|split=3|partition=absent|partition=own.csv|"
        "partition=3|task=regresion|task=regression|task=3|categorical=y|categorical=[3]|categorical=3|"
        'ignore=["y"]|ignore=y|ignore=["x"]|ignore=[\'x\']|ignore=[3]|ignore=3|ignore={}|standardise=maybe|'
        "standardise=2|standardise=null|minimum=1000|minimum=0|minimum=-1|minimum=many|minimum=1.5|minimum=NaN|test=0|"
        "test=1|test=-0.1|test=2|test=NaN|test=half|test=null|test=0.999|validation=1|validation=-1|validation=NaN|"
        "validation=0.99|validation=half|split_seed=-1|split_seed=1.5|split_seed=x|"
        "title=3|title=[]|titel=x|missing=0.3|folder=x|name=nosuch|name=3|name=mnist"
    )
    for word in words.split("|"):
        yield Bad((*OWN, "--set", f"data.{word}"), FILES)
    yield from (Bad((*OWN, *pair), FILES) for pair in (("--client", "x y"), ("--client", ""), ("--label", "")))


FINE = {("split_seed", "1e30"), ("split_seed", "9" * 40)}  # any whole number seeds a split


def everything() -> list[Bad]:
    """All bad inputs, each once."""
    from tests.cli import bad_experiments, bad_tables  # they are made of what stands here

    further = (bad_experiments.experiments(), bad_tables.tables(), bad_tables.of_models())
    made = chain(commands(), options(), settings(), methods(), models(), data(), *further)
    return list({bad.name: bad for bad in made}.values())
