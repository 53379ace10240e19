"""The file of approvals: written whole, for its owner only, replaced and revoked; `test_site` has the refusals."""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.headers import Request
from idiolect.deploy.site.approvals import FILE, MANY, Approvals, Consent, RefusalError, approve, check_member, revoke
from idiolect.deploy.site.ledger import Ledger
from idiolect.deploy.study import Study
from tests.deploy.federation import message_of, study_of_run
from tests.rights import umask

STUDY = study_of_run("scaffold")
OTHER = Study.model_validate({**STUDY.model_dump(), "again": 3})


def test_an_approval_is_for_its_owner_only(tmp_path):
    with umask(0):
        approve(tmp_path / "site", "site-1", STUDY)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "site").iterdir()} == {0o600}
    (one,) = Approvals.load(tmp_path / "site").approved
    assert (one.study, one.digest, one.revoked) == (STUDY, STUDY.digest, "")


def test_a_new_version_replaces_the_one_before_and_another_study_stands_beside_it(tmp_path):
    for study in (STUDY, study_of_run("fedavg"), OTHER):
        approve(tmp_path, "site-1", study)
    assert [one.digest for one in Approvals.load(tmp_path).approved] == [study_of_run("fedavg").digest, OTHER.digest]


def test_revoked_and_approved_again(tmp_path):
    with pytest.raises(ConfigError, match=r"no study 'x-12345678' is approved here; approved: none"):
        revoke(tmp_path, "x-12345678")
    approve(tmp_path, "site-1", STUDY)
    assert revoke(tmp_path, STUDY.id).revoked
    with pytest.raises(ConfigError, match="approved: none"):
        revoke(tmp_path, STUDY.id)
    approve(tmp_path, "site-1", STUDY)
    assert not Approvals.load(tmp_path).of(STUDY.id).revoked


def test_a_study_without_this_site_cannot_be_approved(tmp_path):
    gone = Study.model_validate({**STUDY.model_dump(), "left": ("site-3",)})
    for name in ("site-9", "site-3"):
        with pytest.raises(ConfigError, match=f"site '{name}' takes no part in study {STUDY.id}"):
            approve(tmp_path, name, gone)
    check_member("site-1", gone)
    assert not (tmp_path / FILE).exists()


def test_only_the_same_study_again_lets_the_kind_be_fixed_anew_and_no_round_comes_back(tmp_path):
    approve(tmp_path, "site-1", STUDY)
    Ledger(tmp_path).pin(STUDY.id, "", "kind", "a")
    Ledger(tmp_path).asked(STUDY.id, "r", "rounds", "x", 9)
    approve(tmp_path, "site-1", OTHER)
    assert Ledger(tmp_path).pinned(STUDY.id, "", "kind") == "a"
    approve(tmp_path, "site-1", OTHER)
    assert Ledger(tmp_path).pinned(STUDY.id, "", "kind") is None
    assert Ledger(tmp_path).counts(STUDY.id, "rounds") == {"r": 1}


def test_commands_at_the_same_time_lose_nothing(tmp_path):
    studies = [Study.model_validate({**STUDY.model_dump(), "id": f"s-{number:08x}"}) for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda study: approve(tmp_path, "site-1", study), studies))
    assert {one.study.id for one in Approvals.load(tmp_path).approved} == {study.id for study in studies}


def test_a_damaged_file_is_not_written_over(tmp_path):
    (tmp_path / FILE).write_bytes(b"{")
    for change in (lambda: approve(tmp_path, "site-1", STUDY), lambda: revoke(tmp_path, STUDY.id)):
        with pytest.raises(StoreError, match="cannot be read"):
            change()
    assert (tmp_path / FILE).read_bytes() == b"{"


def test_an_approval_by_another_process_is_seen_at_once(tmp_path):
    consent = Consent(tmp_path, "site-1")
    request = Request.of(message_of(STUDY, "join", place=None), "the call")
    for change, is_refused in (
        (lambda: None, True),
        (lambda: approve(tmp_path, "site-1", STUDY), False),
        (lambda: approve(tmp_path, "site-1", OTHER), True),
        (lambda: approve(tmp_path, "site-1", STUDY), False),
        (lambda: revoke(tmp_path, STUDY.id), True),
    ):
        change()
        if is_refused:
            with pytest.raises(RefusalError):
                consent.check(request)
        else:
            consent.check(request)


def test_many_equal_refusals_are_few_lines(tmp_path, caplog):
    consent = Consent(tmp_path, "site-1")
    for _ in range(150):
        consent.log(RefusalError("refused"))
    assert caplog.messages == ["refused", "refused (10 times so far)", "refused (100 times so far)"]
    for number in range(2 * MANY):
        consent.log(RefusalError(str(number)))
    assert len(consent._refusals) <= MANY
