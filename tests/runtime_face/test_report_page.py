"""The HTML report: complete in itself, safe against what users write, alive in a real browser, with axes that can be read."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from made import drift, environment, finding, holder, rank, run, samples

from gpulint.findings import Severity
from gpulint.reports.page import BOTTOM, HEIGHT, LEFT, MOST_LABELS, RIGHT, WIDTH, amounts, below
from gpulint.reports.page import page as write_page
from gpulint.reports.verify import document
from gpulint.runtime.parent.verdict import Verification, verify
from gpulint.runtime.record.result import End, Held, Site

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
VOID = {"meta", "br", "img", "line", "circle", "rect", "polyline", "polygon"}


def verification(folder: Path) -> Verification:
    script = folder / "train<b>.py"
    script.write_text(f"x = 1\nlosses.append(loss)  # {EVIL}\ny = 2\n", encoding="utf-8")
    site = Site(str(script), 2, EVIL)
    steps = samples(
        [1_000_000 + 4096 * n for n in range(1, 24)], warmup=3, reserved=4_000_000, peak=2_000_000, rss=1
    )
    steps = [replace(step, retries=int(step.step > 9)) for step in steps]
    births = (Held(site, 16, 65536),)
    held = holder(line=2, text=f"list `losses` {EVIL}", file=str(script), births=births, nodes=3, bound=99)
    seen = rank(
        steps,
        environment=environment(platform=EVIL, device_name=f"GPU {EVIL}"),
        end=End("stopped", EVIL),
        drifts=(drift(site=site),),
        holders=(held,),
        notes=(EVIL,),
    )
    claim = finding(line=2, filename=str(script), message=f"`losses` {EVIL}", severity=Severity.ERROR)
    return verify(EVIL, replace(run(seen), command=("python", EVIL)), [claim])


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [
            value or "" for name, value in attrs if name in ("src", "href", "action", "srcset")
        ]
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.stack.pop() == tag


def test_the_page_is_well_formed_self_contained_and_escaped(tmp_path: Path) -> None:
    page = write_page(document(verification(tmp_path)))
    reader = _Reader()
    reader.feed(page)
    assert reader.stack == []
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 2
    assert reader.addresses == []
    assert not re.search(r"https?://", page)
    assert not re.search(r"@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert 'aria-label="Memory by step' in page


def test_holders_are_listed_on_a_narrow_screen_and_samples_stay_a_table(tmp_path: Path) -> None:
    page = write_page(document(verification(tmp_path)))
    holders, samples = (page[page.index(title) :] for title in ("Who holds memory", "Every step"))
    assert '<table class="listed">' in holders[: holders.index("</table>")]
    assert '<td class="num" data-head="Autograd nodes">' in holders
    assert "<table><thead>" in samples[: samples.index("</table>")]


@pytest.fixture
def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")


def test_it_opens_in_a_real_browser(browser: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    probe = (
        "<script>const svg = document.querySelector('figure svg'); const box = svg.getBoundingClientRect();"
        "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width, clientY: box.top + 9}));"
        "const mark = (name, value) => document.body.setAttribute('data-' + name, value);"
        "mark('hover', document.querySelector('.tip').textContent);"
        "svg.dispatchEvent(new KeyboardEvent('keydown', {key: 'Home'}));"
        "mark('home', document.querySelector('.tip').textContent);"
        "document.querySelector('.key[data-series=reserved]').click();"
        "mark('reserved', document.querySelector('.s-reserved').classList.contains('hidden'));"
        "mark('width', document.documentElement.scrollWidth <= window.innerWidth);</script></body>"
    )
    page.write_text(write_page(document(verification(tmp_path))).replace("</body>", probe), encoding="utf-8")
    options = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1200,1600"
    profile = ("--virtual-time-budget=3000", f"--user-data-dir={tmp_path / 'profile'}")
    command = [browser, *options.split(), *profile, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    dom = done.stdout
    assert 'data-ready="true"' in dom, done.stderr[-2000:]
    assert "<title>owned" not in dom
    hover = re.search(r'data-hover="([^"]*)"', dom)
    assert hover[1].startswith("step 23 (train)")
    assert "reserved: 3.81 MiB" in hover[1]
    assert re.search(r'data-home="step 1 \(train, warm-up\)', dom)
    assert 'data-reserved="true"' in dom
    assert 'data-width="true"' in dom


# -- the axes of its drawings --------------------------------------------------------------------------------


MIB = 1024**2


@pytest.mark.parametrize(
    ("high", "said"),
    [
        (67 * MIB, ["0 B", "20 MiB", "40 MiB", "60 MiB"]),
        (1400 * MIB, ["0 B", "512 MiB", "1 GiB"]),
        (5000 * MIB, ["0 B", "1 GiB", "2 GiB", "3 GiB", "4 GiB"]),
        (300, ["0 B", "100 B", "200 B", "300 B"]),
        (1, ["0 B", "1 B"]),
    ],
)
def test_amounts_are_round(high: int, said: list[str]) -> None:
    assert re.findall(r">([^<]+)</text>", amounts(high)) == said


def test_a_lower_edge_that_is_not_zero_has_round_amounts_too() -> None:
    drawn = amounts(61 * MIB, 48 * MIB)
    assert re.findall(r">([^<]+)</text>", drawn) == ["50 MiB", "55 MiB", "60 MiB"]
    assert re.findall(r'y1="([\d.]+)"', amounts(60 * MIB, 50 * MIB))[0] == str(float(HEIGHT - BOTTOM))


@pytest.mark.parametrize("high", [1, 7, 999, 1023, 1025, 10**6, 3 * 10**9, 79 * 1024**3])
def test_there_are_a_few_and_they_leave_room_for_their_words(high: int) -> None:
    said = re.findall(r">([^<]+)</text>", amounts(high))
    assert 2 <= len(said) <= 5
    # letters of 22 units on a narrow screen, as wide as DejaVu's
    assert max(map(len, said)) * 22 * 0.6 <= LEFT - 10


def test_words_below_are_few_and_stay_inside() -> None:
    drawn = below([(step / 100, f"step {step}") for step in range(1, 101)])
    placed = re.findall(r'x="([\d.]+)"[^>]*text-anchor="(\w+)">step (\d+)<', drawn)
    assert len(placed) <= MOST_LABELS
    distances = {round(float(b[0]) - float(a[0])) for a, b in pairwise(placed)}
    assert len(distances) == 1
    (end,) = re.findall(r'x="([\d.]+)"[^>]*text-anchor="(\w+)"', below([(1.0, "step 1")]))
    assert end == (str(float(WIDTH - RIGHT)), "end")
    assert re.findall(r'x="([\d.]+)"[^>]*text-anchor="(\w+)"', below([(0.0, "")])) == [
        (str(float(LEFT)), "start")
    ]
    assert below([]) == ""
