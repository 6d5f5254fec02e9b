"""`kessai eval gate`, `compare` and `html` as a user has them: exit codes, documents, files that are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from host.evaluation.codes import Code
from host.evaluation.page.write import write
from shared_contracts.base import dump
from tests.support.cli import ROOT, Cli
from tests.support.evaluations import cases, conditions, raw, report
from tests.support.planted import planted
from tests.support.records import fits
from tests.support.signed_reports import believing, written


def test_a_good_report_passes_and_one_severe_incident_does_not(nowhere: Cli, tmp_path: Path):
    good, keys = written(tmp_path, "good.json", report()), believing(tmp_path)
    said = nowhere("eval", "gate", good, *keys)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("passed\n")
    bad = written(tmp_path, "bad.json", report([raw("one"), planted(Code.DUPLICATE_NOTICE)]))
    said = nowhere("eval", "gate", bad, *keys)
    assert (said.code, said.err) == (1, "")
    assert "duplicate_notice" in said.out.splitlines()[0]
    for path, code in ((good, 0), (bad, 1)):
        said = nowhere("eval", "gate", path, "--json", *keys)
        assert (said.code, said.err) == (code, "")
        fits(said.json(), "command.eval_gate.json")
        assert said.json()["passed"] is (code == 0)
    assert not nowhere.home.exists()


def test_a_report_that_nobody_known_has_signed_is_red_for_that_alone(nowhere: Cli, tmp_path: Path):
    good, keys = written(tmp_path, "good.json", report()), believing(tmp_path)
    document = json.loads(Path(good).read_text("utf-8"))
    document["cases"][0]["got"]["seconds"] += 1
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(document), "utf-8")
    for path, more, why in (
        (str(forged), keys, "its signature is of another report"),
        (good, (), "is gone, and its seal-keys.json was not named with --keys"),
    ):
        said = nowhere("eval", "gate", path, *more)
        assert (said.code, said.err) == (1, "")
        assert said.out.splitlines()[0] == "not passed. the report proves too little: not_signed"
        assert why in said.out
    nothing = nowhere("eval", "gate", good, "--keys", good)
    assert (nothing.code, nothing.out, "cannot be used" in nothing.err) == (2, "", True)


@pytest.mark.parametrize("version", ["3", "5"])
def test_a_report_of_another_format_is_named_and_what_is_to_be_done(nowhere: Cli, tmp_path: Path, version: str):
    file = tmp_path / "report.json"
    file.write_text(json.dumps(dump(report()) | {"format": f"kessai-evaluation/{version}"}), "utf-8")
    for arguments in (("gate", str(file)), ("html", str(file)), ("compare", str(file), str(file))):
        said = nowhere("eval", *arguments)
        assert (said.code, said.out) == (2, "")
        what, mend = said.err.splitlines()
        assert what.endswith(f"it is kessai-evaluation/{version}, and this program reads kessai-evaluation/4")
        assert mend.strip() == "Run kessai eval again; what another build wrote is read by that one."


def test_a_change_is_judged_by_its_exit_code_and_its_document(nowhere: Cli, tmp_path: Path):
    failing = cases()
    next(one for one in failing if one["category"] == "midway_fault")["got"]["told_ja"] = "失敗しました。"
    before = written(tmp_path, "before.json", report(failing))
    changed = conditions(changed_component="notification")
    kept = tmp_path / "comparison.json"
    after = {
        "fixed": (0, report(conditions=changed)),
        "no_effect": (1, report(failing, conditions=changed)),
        None: (2, report(conditions=conditions(changed_component="notification", seed=8))),
    }
    for verdict, (code, content) in after.items():
        path = written(tmp_path, "after.json", content)
        kept.unlink(missing_ok=True)
        said = nowhere("eval", "compare", before, path, "--json")
        assert (said.code, said.err.split()) == (code, [] if verdict is None else ["comparison", str(kept)])
        fits(said.json(), "command.eval_compare.json")
        compared = said.json()["comparison"]
        assert (None if compared is None else compared["verdict"]) == verdict
        assert (json.loads(kept.read_bytes()) if kept.exists() else None) == (said.json() if verdict else None)
        shown = nowhere("eval", "compare", before, path, "--report", str(tmp_path / "elsewhere" / "deep"))
        assert shown.code == code
        assert (verdict if verdict is not None else "seed") in shown.out


def test_a_comparison_is_kept_with_its_groups_over_an_earlier_one_and_over_nothing_else(nowhere: Cli, tmp_path: Path):
    failing = cases()
    failed = next(one for one in failing if one["category"] == "midway_fault")
    failed["got"]["told_ja"] = "失敗しました。"
    before = written(tmp_path, "before.json", report(failing))
    after = written(tmp_path, "after.json", report(conditions=conditions(changed_component="notification")))
    kept = tmp_path / "kept" / "comparison.json"
    for _ in range(2):
        assert nowhere("eval", "compare", before, after, "--report", str(kept.parent)).code == 0
    groups = json.loads(kept.read_bytes())["comparison"]["groups"]
    assert groups["failed"] == [failed["id"]]
    in_one = [one for name in ("failed", "neighbours", "controls") for one in groups[name]]
    assert sorted(in_one) == sorted(one["id"] for one in failing)
    for another in (b"{}", b"mine", Path(before).read_bytes()):
        kept.write_bytes(another)
        said = nowhere("eval", "compare", before, after, "--report", str(kept.parent))
        assert (said.code, said.out) == (2, "")
        assert f"{kept} is there and is no comparison" in said.err
        assert kept.read_bytes() == another
    nothing = nowhere("eval", "compare", before, after, "--report", after)
    assert (nothing.code, f"{after}/comparison.json cannot be written" in nothing.err) == (2, True)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[1, 2]", "no JSON object"),
        (b'{"format": "kessai-crash-matrix/1"}', "format"),
        (b'{"format": NaN}', "not JSON"),
        (b"[" * 100_000, "JSON"),
        (b'{"cases": 1, "cases": 2}', "twice"),
    ],
    ids=["empty", "bytes", "a list", "another format", "no number", "a tower", "a member twice"],
)
def test_what_is_no_report_is_refused_by_both_commands(nowhere: Cli, tmp_path: Path, content: bytes, named: str):
    file = tmp_path / "report.json"
    file.write_bytes(content)
    for arguments in (("gate", str(file)), ("compare", str(file), str(file))):
        said = nowhere("eval", *arguments)
        assert (said.code, said.out) == (2, "")
        assert said.err.startswith(f"kessai: {file} is no report of an evaluation")
        assert named in said.err
        assert len(said.err) < 1500


def test_a_report_without_one_of_the_costs_components_is_none_and_its_content_is_not_repeated(
    nowhere: Cli, tmp_path: Path
):
    document = dump(report())
    del document["rates"]["compensation_call"]
    document["cases"][0]["got"]["calls"] = "4004004004"
    file = tmp_path / "report.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    said = nowhere("eval", "gate", str(file))
    assert said.code == 2
    assert "rates.compensation_call" in said.err
    assert "cases[0].got.calls" in said.err
    assert "4004004004" not in said.err


@pytest.mark.parametrize("name", ["nowhere.json", ".", "/dev/zero"])
def test_a_file_that_cannot_be_read_is_named(nowhere: Cli, name: str):
    said = nowhere("eval", "gate", name)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"kessai: {name} cannot be read")


def test_a_reports_page_is_written_beside_it_or_where_it_is_wanted_and_made_again_as_it_was(
    nowhere: Cli, tmp_path: Path
):
    content = report([raw("one"), planted(Code.DUPLICATE_NOTICE)])
    path = written(tmp_path, "report.json", content)
    page = tmp_path / "report.html"
    said = nowhere("eval", "html", path)
    assert (said.code, said.out, said.err.split()) == (0, "", ["page", str(page)])
    assert page.read_text(encoding="utf-8") == write(content), "the signature is not on it"
    page.write_text("<!DOCTYPE html> an older one", encoding="utf-8")
    assert nowhere("eval", "html", path).code == 0
    out = tmp_path / "elsewhere.html"
    assert nowhere("eval", "html", path, "--out", str(out)).code == 0
    assert out.read_bytes() == page.read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["elsewhere.html", "report.html", "report.json"]
    assert not nowhere.home.exists()


def test_what_is_no_page_is_not_written_over(nowhere: Cli, tmp_path: Path):
    path = written(tmp_path, "report.json", report([]))
    before = Path(path).read_bytes()
    for out in (path, str(tmp_path), str(tmp_path / "none" / "page.html")):
        said = nowhere("eval", "html", path, "--out", out)
        assert said.code == 2
        assert out in said.err
    assert Path(path).read_bytes() == before
    assert nowhere("eval", "html", str(tmp_path / "missing.json")).code == 2


@pytest.mark.parametrize("module", ["altair", "vl_convert"])
def test_without_what_draws_pictures_it_says_what_to_install(nowhere: Cli, tmp_path: Path, module: str):
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('no', name={module!r})\n", encoding="utf-8")
    path = written(tmp_path, "report.json", report([]))
    said = nowhere.plainly("eval", "html", path, PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert (said.code, said.out) == (15, "")
    assert "pip install 'kessai[report]'" in said.err
    assert nowhere.plainly("eval", "gate", path, PYTHONPATH=f"{tmp_path}:{ROOT}").code == 1
    assert not (tmp_path / "report.html").exists()


def test_an_evaluation_without_what_draws_pictures_says_in_one_line_how_its_page_is_made(tmp_path: Path):
    (tmp_path / "altair.py").write_text("raise ModuleNotFoundError('no', name='altair')\n", encoding="utf-8")
    path = written(tmp_path, "report.json", report([]))
    after = (
        "import pathlib, sys\n"
        "from host.commands import evaluate, evaluate_html\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "evaluate_html.beside(evaluate.read_report(path), path)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", after, path], env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}, cwd=ROOT,
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"pip install 'kessai[report]'; then: kessai eval html {path}")
    assert not (tmp_path / "report.html").exists()
