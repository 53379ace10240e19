"""What a summary tells, in plain words: for the site's administrator, before it is sent."""

from collections.abc import Mapping

from idiolect.deploy.schema.summary import ColumnSummary, LabelSummary, Reading, Summary, WordCounts


def listing(summary: Summary) -> list[str]:
    """All that would leave the site, a line for each column: every number and every word of the summary."""
    split = f"'{summary.split}' is the column of splits" if summary.split else "the site has no column of splits"
    comma = "; its values are separated by semicolons" if summary.comma_likely else ""
    lines = [
        f"site '{summary.site}': {_count(summary.rows, 'training row')}, no row itself; "
        f"words and numbers of fewer than {summary.minimum} rows are not told",
        f"client column '{summary.client}'; {split}{comma}",
        _label(summary.label),
    ]
    return lines + [_column(column) for column in summary.columns]


def _column(column: ColumnSummary) -> str:
    parts = [f"column '{column.name}', stored as {column.stored}: {column.count} values, {column.missing} missing"]
    parts += ["kept even if it looks like an identifier"] if column.keep else []
    parts += _readings(column.readings)
    parts += _words(column.words) if column.words is not None else []
    if not column.readings and column.words is None and column.count:
        parts.append("too few values: nothing else is told")
    return "; ".join(parts)


def _label(label: LabelSummary) -> str:
    parts = [f"label '{label.name}', stored as {label.stored}"]
    parts += [f"named a {label.task}"] if label.task else []
    if label.classes is not None:
        told = ", ".join(f"'{name}' {count}" for name, count in label.classes.items())
        parts.append(f"every class with its training rows: {told}")
    return "; ".join(parts + _readings(label.readings))


def _readings(readings: Mapping[str, Reading]) -> list[str]:
    parts: list[str] = []
    for name, reading in readings.items():
        moments, whole = reading.moments, reading.whole
        parts.append(
            f"all {moments.count} are {moments.mean!r} (read as {name})"
            if moments.constant
            else f"read as {name}: {moments.count} values, mean {moments.mean!r}, "
            f"sum of squared deviations {moments.m2!r}"
        )
        if moments.constant and moments.m2:
            parts.append(f"sum of squared deviations {moments.m2!r}")
        if whole is not None:
            parts.append(f"whole numbers, {whole.distinct} distinct" + (", all of nine digits" if whole.long else ""))
            if whole.smallest is not None or whole.largest is not None:
                parts.append(f"smallest {whole.smallest!r}, largest {whole.largest!r}")
    return parts


def _words(words: WordCounts) -> list[str]:
    told = ", ".join(f"'{word}' {count}" for word, count in words.named.items())
    parts = [f"words with their rows: {told}" if told else "no word is told"]
    if words.withheld_words or words.withheld_rows:
        parts.append(f"not told: {_count(words.withheld_words, 'rare word')} in {_count(words.withheld_rows, 'row')}")
    return parts


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
