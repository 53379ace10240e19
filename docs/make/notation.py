"""Typeset the equations of docstrings and pages: plain notation becomes LaTeX, and a library makes MathML of that."""

import re
from collections.abc import Callable
from html import escape

from latex2mathml.converter import convert

LETTERS = "alpha beta gamma delta epsilon eta theta lambda mu nu xi pi rho sigma tau phi psi omega"
GREEK = {*LETTERS.split(), "Gamma", "Delta", "Theta", "Lambda", "Sigma", "Phi", "Psi", "Omega"}
NAMED = {"grad": r"\nabla", "sum": r"\sum", "min": r"\min", "max": r"\max", "argmin": r"\arg\min", "sqrt": r"\sqrt"}
ROMAN = {"mean", "tr", "sign", "ceil", "simplex", "SGD"}
BARRED = {"xbar": "x", "vbar": "v", "wbar": "w", "Mbar": "M", "gbar": "g", "thetabar": "theta"}
SYMBOLS = {"<-": r"\leftarrow", "<=": r"\le", ">=": r"\ge", "->": r"\to", "||": r"\|", "..": r"\dots", "*": r"\cdot"}
ROW = 62
"""Characters of a row beyond which it is divided at its commas."""

_KNOWN = "|".join((*GREEK, *NAMED, *ROMAN, *BARRED))
_TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<code>`[^`]*`) | (?P<quoted>"[^"]*")
    | (?P<name>(?!(?:KNOWN)_)[A-Za-z]{2,}(?:_[a-z]{2,})+(?![\w{]))
    | (?P<word>[A-Za-zÀ-ž]+(?:-[A-Za-z]{2,})*(?:'s\b)?) | (?P<number>\d[\d,]*(?:\.\d+)?)
    | (?P<script>[_^](?:\{[^{}]*\}|\([^()]*\)|-?\w[A-Za-z0-9]*|\*)) | (?P<primes>'+)
    | (?P<symbol><-|<=|>=|->|\|\||\.\.) | (?P<other>.)""".replace("KNOWN", _KNOWN),
    re.VERBOSE,
)
_FRACTION = re.compile(r"(?<![\w\])}])\(([^()/\s]+) ?/ ?([^()/\s]+)\)")
_TAG = re.compile(r"^(.*\S)\s{2,}(\((?!gradient|the )[^()]*\)(?: to \(\d+\))?|\(\"learned\"\))$")
ARROWS = {"<-": "←", "<=": "≤", ">=": "≥", "||": "‖"}
OPERATORS = {"sum": "Σ", "grad": "∇", "min": "min", "max": "max", "argmin": "arg min", "mean": "mean"}
_BASE = "|".join((*sorted(GREEK, key=len, reverse=True), *BARRED))
_SCRIPTS = r"(_\{[^{}]*\}|_[A-Za-z0-9]{1,5})?(\^(?:-?\w|\{[^{}]*\}|\([^()]*\)))?([*+']+(?![\w]))?"
_SYMBOL = re.compile(rf"({_BASE}|{'|'.join(OPERATORS)}|[A-Za-z]|\|\||\))" + _SCRIPTS)
_BELOW = rf"(?:{'|'.join(OPERATORS)})(?=_)(?:_\{{[^{{}}]*\}}|_[A-Za-z]{{1,5}})"
_INLINE = re.compile(
    rf"<-|<=|>=|(?:\|\||\))\^(?:\d|\(1/2\))|\|\||(?<![\w`'])(?<!\w-)"
    rf"(?:(?:{_BASE}|[A-Za-z]){_SCRIPTS}|{_BELOW}|grad(?= [A-Za-z]_))(?![\w`-])"
)


def latex(text: str) -> str:
    """Translate one row of a docstring's notation: `w_{i,R} <- w - eta grad f_i(w)`; other words stay words."""
    text = _FRACTION.sub(lambda m: f"⟪{m[1]}⟫⟪{m[2]}⟫", text)
    parts: list[str] = []
    words: list[str] = []

    def flush() -> None:
        if words:
            parts.append(rf"\text{{ {' '.join(words)} }}")
            words.clear()

    tokens = [(m.lastgroup or "", m[0]) for m in _TOKEN.finditer(text)]
    for at, (kind, token) in enumerate(tokens):
        before = tokens[at - 1][0] if at else "space"
        after = tokens[at + 1][1] if at + 1 < len(tokens) else " "
        if kind == "space":
            continue
        if kind in ("code", "quoted", "name") or (kind == "word" and not is_math(token, tokens[at + 1 :], words)):
            words.append(token.strip("`").replace("_", r"\_"))
            continue
        if words and token in ",:;" and kind == "other":
            words[-1] += token
            continue
        flush()
        attached = before not in ("space", "symbol") and (after in " ,)=(" or after.isspace())
        if kind == "word":
            parts.append(_letter(token))
        elif kind == "script":
            parts.append(_script(token))
        elif token in "+*" and attached:
            parts.append(f"^{{{token}}}")
        elif token == "<" and not after.isspace():
            parts.append(r"\langle ")
        elif token == ">" and before != "space":
            parts.append(r"\rangle ")
        elif token in "⟪⟫":
            parts.append({"⟪": r"\frac{" if parts[-1:] != ["}"] else "{", "⟫": "}"}[token])
        elif token in ",;:" and after.isspace():
            parts.append(rf"{token}\;")
        else:
            parts.append(SYMBOLS.get(token, rf"\{token}" if token in "{}%&#" else token))
    flush()
    joined = " ".join(parts)
    return re.sub(r"\\sqrt \( (.*?) \)", r"\\sqrt{ \1 }", joined)


def is_math(word: str, following: list[tuple[str, str]], words: list[str]) -> bool:
    """Whether a word is a symbol: a letter, a Greek name, an operator; `a` before a word is an article."""
    if word in GREEK or word in NAMED or word in BARRED or word in ROMAN or word in ("dw", "dc"):
        return True
    if len(word) > 1:
        return word.isupper() and len(word) < 3 and word != "II"  # LW is a product
    if word in "aA":
        ahead = [token for kind, token in following[:2] if kind == "word"]
        return not (following and following[0][0] == "space" and ahead and (len(ahead[0]) > 1 or words))
    return True


def _letter(word: str) -> str:
    if word in GREEK:
        return rf"\{word}"
    if word in BARRED:
        return rf"\bar{{{_letter(BARRED[word])}}}"
    return rf"\text{{{word}}}" if word in ROMAN else NAMED.get(word, " ".join(word))


def _script(token: str) -> str:
    body = token[1:]
    if body[0] in "{(":
        body = body[1:-1]
    if token[0] == "_" and body.isalpha() and body not in GREEK and len(body) > 2:
        return rf"_{{\text{{{body}}}}}"
    inner = re.sub(r"\bin\b", "∈", body)
    return f"{token[0]}{{{latex(inner) if not inner.isalpha() or inner in GREEK else ' '.join(inner)}}}"


def rows(line: str) -> list[tuple[str, str]]:
    """Divide a line of a docstring into rows (what to typeset, its number at the right)."""
    found = _TAG.match(line.rstrip())
    text, tag = (found[1], found[2]) if found else (line, "")
    text = text.strip().rstrip(",.") if not text.strip().endswith("..") else text.strip()
    parts = _split(text) if len(text) > ROW else [text]
    return [(part, tag if at == len(parts) - 1 else "") for at, part in enumerate(parts)]


def _split(text: str) -> list[str]:
    """At the commas that lie outside of all brackets and stand before an equation."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "({[") - (letter in ")}]")
        rest = text[at + 1 :]
        if letter in ",;" and depth == 0 and re.match(r"\s+\S+(?: \S+)? (?:=|<-) ", rest):
            parts.append(text[start : at + 1])
            start = at + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def display(lines: list[str]) -> str:
    """HTML of a block of lines, each a row or more, indented as they were."""
    least = min(len(line) - len(line.lstrip()) for line in lines)
    html: list[str] = []
    for line in lines:
        indent = (len(line) - len(line.lstrip()) - least) // 4
        for at, (text, tag) in enumerate(rows(line)):
            deep = indent + (1 if at else 0)
            number = f'<span class="eq-number">{escape(tag)}</span>' if tag else ""
            body = convert(latex(text), display="block").replace(r"\_", "_")  # which it leaves in words
            html.append(f'<div class="eq" style="--deep:{deep}">{body}{number}</div>')
    return '<div class="eqs">\n' + "\n".join(html) + "\n</div>"


def inline(text: str) -> str:
    """Markdown of a docstring's paragraph: symbols are set as such, code stays, nothing else is markup."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else _symbols(piece, plain) for piece in pieces)


def symbols(markdown: str) -> str:
    """Markdown in which symbols are set as such, outside of its code and links."""
    pieces = re.split(r"(`[^`]*`|\]\([^)]*\))", markdown)
    return "".join(piece if piece.startswith(("`", "](")) else _symbols(piece, str) for piece in pieces)


_FENCE = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
EQUATIONS = "equations"


def typeset(markdown: str) -> str:
    """A page with its blocks of equations typeset, and then its symbols too; a page without such a block as it is."""
    if not any(found[2] == EQUATIONS for found in _FENCE.finditer(markdown)):
        return markdown
    parts: list[str] = []
    last = 0
    for found in _FENCE.finditer(markdown):
        lines = [line for line in found[3].splitlines() if line.strip()]
        parts += [symbols(markdown[last : found.start()]), display(lines) if found[2] == EQUATIONS else found[0]]
        last = found.end()
    return "".join([*parts, symbols(markdown[last:])])


def _symbols(text: str, between: Callable[[str], str]) -> str:
    """The text with its symbols as HTML. between: what is made of all else."""
    parts: list[str] = []
    last = 0
    for found in _INLINE.finditer(text):
        if html := _html(found[0]):
            parts += [between(text[last : found.start()]), html]
            last = found.end()
    return "".join([*parts, between(text[last:])])


def plain(text: str) -> str:
    """Text in which Markdown and HTML see nothing of theirs."""
    return re.sub(r"([\\*_\[\]#~|])", r"\\\1", escape(text, quote=False))


def _html(symbol: str) -> str:
    """A symbol of a paragraph; empty for a letter alone, which may be a word."""
    if symbol in ARROWS:
        return ARROWS[symbol]
    found = _SYMBOL.fullmatch(symbol)
    if found is None or (len(symbol) == 1 and symbol not in GREEK):
        return ""
    base, below, above, ending = (part or "" for part in found.groups())
    word = (
        OPERATORS.get(base)
        or ARROWS.get(base)
        or (f"&{base};" if base in GREEK else f"{_greek_in(BARRED[base])}&#772;" if base in BARRED else base)
    )
    up = above.strip("^{}()") + ending.replace("*", "&#42;").replace("'", "&prime;")
    sub = f"<sub>{_greek_in(below[1:].strip('{}'))}</sub>" if below else ""
    return f"<var>{word}{sub}{f'<sup>{up}</sup>' if up else ''}</var>"


def _greek_in(text: str) -> str:
    return re.sub(r"[A-Za-z]+", lambda m: f"&{m[0]};" if m[0] in GREEK else m[0], text)
