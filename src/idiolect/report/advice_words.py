"""The sentences of an advice: its columns, what it takes, which client uses what, and how it was decided."""

from collections.abc import Sequence

from idiolect.report.text import plain_difference, size
from idiolect.study.advice.advise import Advice, Line
from idiolect.study.advice.blend import BLEND
from idiolect.study.advice.decision import MARGIN, OWN, WORTH, words_of
from idiolect.study.advice.policies import BY_SIZE, CHOSEN, PORTFOLIO, shown_of
from idiolect.study.combine.combined import KINDS

MOST = 12  # clients named in a sentence
ALONE = "alone"

POLICIES = {
    BLEND: "Let each client mix all methods",
    PORTFOLIO: "Let each client choose its method",
    BY_SIZE: "Federate small clients only",
    CHOSEN: "Use what validation rows choose",
}
"""What the headline says of a policy."""


def alone_words(advice: Advice) -> str:
    """What clients reach by themselves, with which all is compared, as sentences call it."""
    return words_of(advice.decision.alone)


def title_of(advice: Advice, name: str) -> str:
    """A candidate as texts call it."""
    titles = {one.name: one.title for one in advice.choices}
    return titles.get(name, name)


def columns_text(advice: Advice) -> str:
    """What the table's columns and its last lines are."""
    return (
        f"Loss: {_loss_words(advice)}. Gap: by how much the loss is lower than with {alone_words(advice)}, with its "
        "95 % interval. Worse off: the share of clients with a higher mean loss than with that; surely: the share "
        "for which this is beyond noise. `own`: fitted on each client's rows. `pooled`: needs all rows in one "
        "place, which no federation allows; the client is a column. Penalties are chosen by folds or validation "
        "rows; trees are LightGBM's. `guess`: the mean, or the shares of the labels. Policies follow "
        "validation rows: `blend` mixes all methods, with weights for each client; `portfolio` takes one for each "
        "client, `by-size` one for clients with few rows, `chosen` one of all these in each division."
    )


def _loss_words(advice: Advice) -> str:
    if advice.loss_name == "mse":
        return "the mean squared error, as a share of the labels' variance; RMSE in the label's units"
    return "log-loss"


def takes(advice: Advice) -> str:
    """What the advised method takes: rounds, and bytes of a client and of all. Of a policy: each method in use."""
    method = advice.decision.method
    if method not in POLICIES:
        return f"It takes {_cost(advice, advice.line(method))}"
    used = kept_names(advice) if method == BLEND else _users(advice)
    federated = [line for line in map(advice.line, used) if line.kind != ALONE]
    if not federated:
        return ""
    each = [
        f"{title_of(advice, line.name)} {line.rounds:g} rounds, {size(_bytes(advice, line))}" for line in federated
    ]
    return f"It takes about (median rounds, bytes of all clients together): {'; '.join(each)}.{_how(advice)}"


def _how(advice: Advice) -> str:
    """How to do what a policy advises; "" for a policy that no command follows."""
    method = advice.decision.method
    if method not in KINDS:
        return ""
    names = ",".join(choice.name for choice in advice.choices)
    kind = "" if method == BLEND else f" --kind {method}"
    return (
        f" To do so, train the methods by `idiolect compare` with `--methods {names} --out mine`, combine them by "
        f"`idiolect combine mine{kind}`, and predict by `idiolect predict`."
    )


def _cost(advice: Advice, line: Line) -> str:
    """Rounds and bytes of a method."""
    assert line.sent is not None
    down, up = line.sent
    return (
        f"about {line.rounds:g} rounds (median of those that validation data chose). A client receives {size(down)} "
        f"and sends {size(up)} per round; all of them together {size(_bytes(advice, line))}."
    )


def _bytes(advice: Advice, line: Line) -> float:
    """Bytes of all clients in all rounds."""
    assert line.rounds is not None
    assert line.sent is not None
    return line.rounds * sum(line.sent) * advice.about.num_clients


def _users(advice: Advice) -> dict[str, list[str]]:
    """Each method that some clients use in most divisions, and these clients."""
    users: dict[str, list[str]] = {}
    for client, kept in advice.kept.items():
        users.setdefault(max(kept, key=lambda name: kept[name]), []).append(client)
    return {name: users[name] for name in kept_names(advice) if name in users}


def uses_text(advice: Advice) -> str:
    """What each client uses in most divisions, under the policy that is the answer or else under the portfolio."""
    shown = shown_of(advice.decision.method)
    lines = [
        f"- {title_of(advice, name)}: {len(clients)} ({named(clients)})" for name, clients in _users(advice).items()
    ]
    how = "the method with the largest weight in most divisions" if shown == BLEND else "in most divisions"
    return f"With `{shown}`, {how}:\n\n" + "\n".join(lines)


def named(names: Sequence[str]) -> str:
    """The first few names, and the number of the others."""
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def trees_words(advice: Advice) -> str:
    """What it means that gradient boosting beats every candidate; "" if it does not."""
    if advice.decision.trees is None:
        return ""
    name, difference = advice.decision.trees
    whose = "with all rows in one place" if name.startswith("pooled") else "on each client's own rows"
    return (
        f"gradient boosting {whose} has a lower loss than every federated model, by at least "
        f"{plain_difference(difference)}: the relation has interactions or steps that these models miss"
    )


def rule_text(advice: Advice) -> str:
    """How it was decided."""
    decision = advice.decision
    beyond = decision.beyond
    best = min(decision.tested, key=lambda one: one.p)
    text = (
        "In each division every method's setting and round are those with the least validation loss; test rows are "
        "then used once. Intervals are corrected for the rows that divisions share (Nadeau and Bengio, 2003). "
        f"{_reference_words(advice)}{len(decision.tested)} candidates are tested against it: each federated method, "
        f"and the policies `{BLEND}`, `{PORTFOLIO}`, `{BY_SIZE}` and `{CHOSEN}`. p values are corrected for "
        "their number. Federate: one of them is better. The answer is the better one with the least validation loss; "
        "a personal model must also be better than the best shared one, and a policy better than the best method by "
        f"{100 * WORTH:g} % of that loss. Do not federate: no mean gain reaches {100 * MARGIN:g} % of it, and all "
        f"intervals end below it or every shared model is surely worse. Otherwise it is inconclusive. Here: "
        f"{decision.why}. Least corrected p value: {best.p:.2g} ({title_of(advice, best.name)})."
    )
    if beyond is not None:
        text += f" Loss of the best shared model minus that of the best personal one: {plain_difference(beyond)}."
    return text + f" {decision.share:.0%} of the divisions rank {title_of(advice, decision.method)} first."


def _reference_words(advice: Advice) -> str:
    """Which model stands for clients without the others, and why."""
    words = f"What clients reach by themselves is {alone_words(advice)}"
    if any(line.name in OWN for line in advice.lines):
        other = "local training's" if advice.decision.alone in OWN else "that of own regressions"
        words += f", whose validation loss is {'lower than' if advice.decision.alone in OWN else 'not above'} {other}"
    return f"{words}. "


def kept_names(advice: Advice) -> list[str]:
    """The methods that a client may use, in order."""
    return list(next(iter(advice.kept.values())))
