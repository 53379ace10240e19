"""What docstrings say of each setting."""

from idiolect.core.docstrings import explained, meanings, text_of


class Described:
    """A thing.

    rate, steps: how fast, and how often. size: of it;
    see `Other`.
    """


def test_each_setting_has_its_words_and_the_rest_stays():
    said, rest = explained(text_of(Described), {"rate", "steps", "size"})
    assert said == {
        "rate": "how fast, and how often.",
        "steps": "how fast, and how often.",
        "size": "of it; see `Other`.",
    }
    assert rest == "A thing."
    assert explained(text_of(Described), set())[0] == {}


def test_an_earlier_text_goes_before_a_later_one_unless_it_points_there():
    texts = ["rate: mine. size: see `Base`.", "rate: of all. size: of the base."]
    assert meanings(texts, {"rate", "size"}) == {"rate": "mine.", "size": "of the base."}
