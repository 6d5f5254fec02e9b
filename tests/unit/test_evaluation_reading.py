"""A set of cases is read whole, or refused with the file, the case and the member that are wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from shared_contracts.evaluation import EvaluationCase
from shared_contracts.evaluation_cases import FILES_MAX, CaseSet, Refused, case_set, read_cases
from shared_contracts.named_file import TEXT_BYTES_MAX

DATA = Path(__file__).parents[2] / "host" / "data" / "evaluation"
ONE = """[[case]]
id = "mine-1"
category = "high_value"
why = "Row 9: 60,000 yen need an approval."
decision = { by = "tanaka", verdict = "approve" }
automatable = false
needs_human = true
has_side_effect = true
needs_compensation = false
request = { order_id = "A-1", customer_id = "C-1", lines = [{ line_id = "L1", quantity = 1 }] }

[case.expected]
state = "COMPLETED"
reason = "notice_verified"
path = ["get_order"]
calls_max = 4
effects = { returns = 1, notices = 1 }
approver = "tanaka"
compensation = false
"""
NOBODY = (
    ONE.replace('by = "tanaka", verdict = "approve"', 'verdict = "nobody"')
    .replace('"tanaka"', '"nobody"')
    .replace("COMPLETED", "EXPIRED")
)


def written(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        (directory / f"{name}.toml").write_text(text, encoding="utf-8")
    return directory


def refused(path: Path) -> str:
    read = read_cases(path)
    assert isinstance(read, Refused), read
    return "\n".join(read.problems)


def taken(path: Path) -> CaseSet:
    read = read_cases(path)
    assert isinstance(read, CaseSet), read
    return read


def test_a_set_may_be_one_file_of_one_case(tmp_path):
    (case,) = taken(written(tmp_path, few=ONE) / "few.toml").cases
    assert (case.id, case.tenant, case.expected.approver) == ("mine-1", "acme-jp", "tanaka")


def test_nobody_is_how_a_file_says_that_there_is_no_approver(tmp_path):
    (case,) = taken(written(tmp_path, few=NOBODY)).cases
    assert case.expected.approver is None


def test_of_a_directory_every_toml_file_right_in_it_is_read_and_nothing_else(tmp_path):
    written(tmp_path, b=ONE, a=ONE.replace("mine-1", "mine-2"))
    (tmp_path / "README.md").write_text("not a case", encoding="utf-8")
    (tmp_path / "deeper").mkdir()
    written(tmp_path / "deeper", c=ONE)
    assert [case.id for case in taken(tmp_path).cases] == ["mine-1", "mine-2"]


def test_the_digest_is_of_the_cases_and_not_of_files_or_their_order(tmp_path):
    whole = taken(DATA)
    text = "\n".join(file.read_text("utf-8") for file in sorted(DATA.glob("*.toml"), reverse=True))
    moved = taken(written(tmp_path, all=f"# in one file\n{text}"))
    assert (moved.sha256, moved.cases) == (whole.sha256, whole.cases)
    assert re.fullmatch(r"[0-9a-f]{64}", whole.sha256)


def test_the_digest_is_another_one_for_any_other_word_of_any_case(tmp_path):
    first = taken(written(tmp_path, few=ONE)).sha256
    changed = [ONE.replace(old, new) for old, new in (("60,000", "61,000"), ('"L1"', '"L2"'), ("_max = 4", "_max = 5"))]
    assert len({first, *(taken(written(tmp_path, few=text)).sha256 for text in changed)}) == 4


def test_a_part_of_a_set_is_a_set_with_a_digest_of_its_own():
    whole = taken(DATA)
    part = case_set(tuple(reversed(whole.cases[:3])))
    assert part.cases == whole.cases[:3]
    assert part.sha256 != whole.sha256
    assert all(isinstance(case, EvaluationCase) for case in part.cases)


FAULT = 'retries = 0\ntold_ja = "x"\n'
CHANGED = {  # what stands there instead, and what is said of it
    "a member that is missing": ("calls_max = 4\n", "", "mine-1: expected.calls_max: is missing"),
    "an approver that is missing": ('approver = "tanaka"\n', "", "mine-1: expected.approver: is missing"),
    "a member that nobody knows": ("needs_human", "urgent = 1\nneeds_human", "mine-1: urgent: is not known"),
    "a number in quotes": ("_max = 4", '_max = "4"', "mine-1: expected.calls_max: Input should be a valid integer"),
    "a category that is none": ('"high_value"', '"high"', "mine-1: category: must be 'normal', 'defective'"),
    "a date for a text": ('order_id = "A-1"', "requested_at = 2026-07-30", "mine-1: a date has no canonical JSON"),
    "a fraction": ("quantity = 1", "quantity = 1.5", "mine-1: a float has no canonical JSON"),
    "an integer without end": ("quantity = 1", f"quantity = 0x{'f' * 9000}", "mine-1: Exceeds the limit"),
    "digits without end": ("quantity = 1", f"quantity = {'9' * 9000}", "is no TOML: Exceeds the limit"),
    "an id that is no name": ('"mine-1"', '"\\u0007"', "case 1: id: String should match"),
    "no id": ('id = "mine-1"\n', "", "case 1: id: is missing"),
    "an effect not counted": ("effect = true", "effect = false", "mine-1: the case: has_side_effect says"),
    "another approver": ('by = "tanaka"', 'by = "mori"', "mine-1: the case: expected.approver is the one who decides"),
    "automatable with a person": ("automatable = false", "automatable = true", "mine-1: the case: automatable says"),
    "a person not counted": ("needs_human = true", "needs_human = false", "mine-1: the case: needs_human says"),
    "a request that names itself": ('order_id = "A-1"', 'request_id = "r"', "mine-1: the case: request leaves out"),
    "a decision by nobody": ('by = "tanaka", ', "", "mine-1: decision: name who approves or denies"),
    "single brackets": ("[[case]]", "[case]", "case is one table; write [[case]]"),
}
WHOLE = {
    "a fault of another category": (
        f'{ONE}[case.fault]\nkind = "notice_failure"\n{FAULT}',
        "the case: a fault belongs",
    ),
    "a fault at no tool": (f'{ONE}[case.fault]\nkind = "timeout"\n{FAULT}', "mine-1: fault: name the tool"),
    "something beside the cases": (f"title = 'mine'\n{ONE}", "title is not known here"),
    "numbers for cases": ("case = [1]", "case 1: the case: Input should be an object"),
    "no TOML": ("case: {}", "is no TOML: "),
    "brackets without end": (f"case = {'[' * 100_000}", "is nested too deeply"),
    "more than anybody writes": ("#" * (TEXT_BYTES_MAX + 1), "cannot be read: it is larger than"),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_a_case_that_is_wrong_in_one_place_is_refused_with_that_place(tmp_path, kind):
    old, new, said = CHANGED[kind]
    assert ONE.count(old) == 1
    assert refused(written(tmp_path, few=ONE.replace(old, new))).startswith(f"few.toml: {said}")


@pytest.mark.parametrize("kind", WHOLE)
def test_a_file_that_is_no_set_is_refused_by_its_name(tmp_path, kind):
    text, said = WHOLE[kind]
    told = refused(written(tmp_path, few=text))
    assert told.startswith("few.toml: ")
    assert said in told


def test_a_file_without_a_case_is_no_set(tmp_path):
    assert "no case at all; write each as a [[case]] table" in refused(written(tmp_path, few="# later\n"))


def test_an_id_that_stands_twice_is_refused_with_both_places(tmp_path):
    assert refused(written(tmp_path, a=ONE, b=ONE)) == (
        "b.toml: mine-1 stands in a.toml already; give each case an id of its own"
    )


def test_everything_that_is_wrong_is_told_at_once_up_to_a_bound(tmp_path):
    bad = ONE.replace("calls_max = 4\n", "")
    said = refused(written(tmp_path, a=bad, b="=", c=bad.replace("mine-1", "mine-3")))
    assert [line.split(": ")[0] for line in said.splitlines()] == ["b.toml", "a.toml", "c.toml"]
    many = "\n".join(bad.replace("mine-1", f"mine-{nth}") for nth in range(30))
    assert len(refused(written(tmp_path, a=many)).splitlines()) == 20


def test_what_is_no_file_is_told_and_not_waited_for(tmp_path):
    assert "No such file" in refused(tmp_path / "none.toml")
    assert "no case at all" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe.toml")
    assert "pipe.toml: cannot be read: it is a pipe" in refused(tmp_path)
    (tmp_path / "pipe.toml").unlink()
    (tmp_path / "latin.toml").write_bytes(b"# \xff")
    assert "latin.toml: cannot be read: it is no text in UTF-8" in refused(tmp_path)


def test_a_directory_of_too_many_files_is_not_taken_for_a_set(tmp_path):
    written(tmp_path, **{f"f{nth}": "" for nth in range(FILES_MAX + 1)})
    assert f"more than {FILES_MAX} files" in refused(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('verdict = "approve"', 'verdict = "deny", again = "deny"', "asked again"),
        ('verdict = "approve"', 'verdict = "approve", again = "deny"', "again belongs to order_changed"),
        ('verdict = "approve"', 'verdict = "approve", tried_by = "tanaka"', "somebody else"),
        ("needs_compensation = false", 'needs_compensation = false\nundone_by = "sato"', "undone_by belongs"),
        ("compensation = false\n", "compensation = false\nundone = { returns = 1, notices = 0 }\n", "expected.undone"),
        (
            "[case.expected]",
            '[case.fault]\nkind = "timeout"\ntool = "create_return"\nretries = 0\ntold_ja = "-"\n[case.expected]',
            "worth nothing",
        ),
    ],
    ids=["asked again after a no", "asked again of nothing", "tried by the approver", "undone for nothing",
         "undone uncalled for", "a timeout of a case of high value"],
)  # fmt: skip
def test_what_a_case_says_of_its_people_and_of_its_undoing_fits_together(tmp_path, old, new, named):
    at = ONE.rindex(old)
    assert named in refused(written(tmp_path, few=ONE[:at] + new + ONE[at + len(old) :]))
