"""A site's log of refusals stays short."""

from idiolect.deploy.site.refusals import MANY, RefusalLog


def test_many_equal_refusals_are_few_lines(caplog):
    log = RefusalLog()
    for _ in range(150):
        log.note("refused")
    assert caplog.messages == ["refused", "refused (10 times so far)", "refused (100 times so far)"]
    for number in range(2 * MANY):
        log.note(str(number))
    assert len(log._counts) <= MANY
