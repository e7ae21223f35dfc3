"""The documentation site, built for real."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gpulint.rules import all_rules
from support import run_command

from gpulint.config import KEYS
from gpulint.findings import DOCS_URL
from gpulint.lint.selection import BUILT_IN

ROOT = Path(__file__).parents[1]
pytest.importorskip("mkdocs", reason="the extra docs is not installed")
pytest.importorskip("material", reason="the extra docs is not installed")


ADDED = "on-the-moon.html"


@dataclass(frozen=True, slots=True)
class Built:
    """How a build went, and what it left."""

    site: Path
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The site of the sources with a page more, whose links lead nowhere: mkdocs writes it all before it complains."""
    top = tmp_path_factory.mktemp("sources")
    shutil.copytree(ROOT / "docs", top / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    for name in (
        "mkdocs.yml", "action.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks", "editors", "fixtures", "rules", "tests",
    ):  # fmt: skip
        (top / name).symlink_to(ROOT / name)
    nowhere = "[nowhere](no-such-page.md) and [no such key](configuration.md#no-such-key)"
    (top / "docs/on-the-moon.md").write_text(f"# Training on the moon\n\nSee GPU101, {nowhere}.\n")
    # Not --quiet: it hides warnings even from strict mode.
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(top / "site")]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return Built(top / "site", run_command(*command, cwd=top, env=env, timeout=200))


@pytest.fixture(scope="module")
def site(built: Built) -> Path:
    return built.site


def pages(site: Path) -> list[str]:
    """The site's own pages, without the reports that they show and the page that was added."""
    found = (path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return sorted(
        name for name in found if name not in ("404.html", ADDED) and not name.startswith("assets/")
    )


class Loaded(HTMLParser):
    """What a page makes a browser fetch, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("script", "img", "iframe", "source", "video", "embed"):
            self.fetched += [given[name] for name in ("src", "srcset") if name in given]
        if tag == "link" and given.get("rel") in (
            "stylesheet",
            "icon",
            "preload",
            "preconnect",
            "dns-prefetch",
        ):
            self.fetched.append(given["href"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


def read(path: Path) -> Loaded:
    reader = Loaded()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def test_every_rule_and_key_has_its_place(site: Path) -> None:
    for rule in all_rules():
        text = (site / f"rules/{rule.code}.html").read_text(encoding="utf-8")
        assert rule.name in text
        assert "Use instead" in text
    index = read(site / "rules/index.html").links
    assert {f"{rule.code}.html" for rule in all_rules()} <= set(index)
    configuration = (site / "configuration.html").read_text(encoding="utf-8")
    for key in KEYS:
        assert f'<h3 id="{key}"' in configuration
    assert "<!-- generated" not in "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.html"))


def test_the_address_that_findings_carry_leads_to_the_page(site: Path) -> None:
    path = DOCS_URL.split("/", 3)[3]
    for code in (*BUILT_IN, *(rule.code for rule in all_rules())):
        stub = (site / path / code / "index.html").read_text(encoding="utf-8")
        assert f"url=../{code}.html" in stub
        assert (site / path / f"{code}.html").exists()


def test_nothing_comes_from_another_host(site: Path) -> None:
    for page in pages(site):
        for address in read(site / page).fetched:
            assert not re.match(r"(?:https?:)?//", address), f"{page}: {address}"
            assert (site / page).parent.joinpath(address.partition("?")[0]).exists(), f"{page}: {address}"
    for path in (*site.rglob("*.css"), *site.rglob("*.svg")):
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//|@import", path.read_text(encoding="utf-8")), path


def test_what_a_terminal_shows(site: Path) -> None:
    """The picture is of this gpulint, at two widths, and reports in the pages have the terminal's colours."""
    for name, columns in (("terminal", 100), ("terminal-narrow", 62)):
        picture = ElementTree.parse(site / f"assets/{name}.svg")
        text = "".join(picture.getroot().itertext()).replace("\xa0", " ")
        assert "gpulint train.py" in text
        assert "note[GPU101]" in text
        assert f"gpulint-{columns}-" in (site / f"assets/{name}.svg").read_text(encoding="utf-8")
    formats = (site / "output-formats.html").read_text(encoding="utf-8")
    assert "note[GPU101]</span>" in formats
    assert not any("\x1b" in path.read_text(encoding="utf-8") for path in site.rglob("*.html"))


def test_the_report_of_a_real_run(site: Path) -> None:
    report = (site / "assets/report.html").read_text(encoding="utf-8")
    assert "train.py" in report
    assert "confirmed" in report
    assert "total_loss += F.cross_entropy(logits, labels)" in report, "the script's own lines are shown"
    assert "# expect" not in report
    assert not re.search(r"/(?:tmp|home|root|work)/", report)
    for page in ("verify.html", "out-of-memory.html"):
        assert "assets/report.html" in read(site / page).fetched


def test_rules_by_symptom(site: Path) -> None:
    """The page by symptom names every rule that is about memory running out."""
    named = (site / "out-of-memory.html").read_text(encoding="utf-8")
    # Time, spelling, and what another names.
    without = {"GPU107", "GPU204", "GPU406", "GPU503", "GPU504", "GPU603"}
    missing = {rule.code for rule in all_rules() if f"rules/{rule.code}.html" not in named}
    assert missing <= without


def test_links_within_the_site(site: Path) -> None:
    for page in pages(site):
        for link in read(site / page).links:
            target = link.partition("#")[0]
            if target and not re.match(r"[a-z]+:", target):
                assert (site / page).parent.joinpath(target).exists(), f"{page}: {link}"


def test_the_search_index(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {f"rules/{rule.code}.html" for rule in all_rules()} <= places
    assert (site / "search/search_index.js").exists()  # for pages opened from the disk


def test_a_broken_link_fails_the_build_and_nothing_else_does(built: Built) -> None:
    assert built.done.returncode == 1
    complaints = [line for line in built.done.stderr.splitlines() if line.startswith("WARNING")]
    assert len(complaints) == 2, built.done.stderr
    assert any("no-such-page.md" in line for line in complaints)
    assert any("#no-such-key" in line for line in complaints)


def test_a_new_page_joins_the_navigation(site: Path) -> None:
    assert ADDED in read(site / "index.html").links
    assert "rules/GPU101.html" in read(site / ADDED).links
