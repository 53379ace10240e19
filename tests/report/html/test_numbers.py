import json

from idiolect.report.html.numbers import number, numbers, script_json


def test_five_digits_and_nothing_that_is_no_number():
    assert numbers([1 / 3, 123456.7, 2.0, float("nan"), float("inf"), None]) == [0.33333, 123460, 2, None, None, None]
    assert isinstance(number(2.0), int)
    assert number(1e-9 / 3) == 3.3333e-10


def test_json_cannot_end_a_script():
    value = ["</script><!--", "a & b", "\u2028\u2029", "\ud800", "\U0001f92f"]
    text = script_json(value)
    assert not {"<", ">", "&", "\u2028", "\u2029"} & {*text}
    assert json.loads(text) == value
    text.encode()
