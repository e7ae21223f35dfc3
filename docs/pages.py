"""What the documentation site has besides the pages in this folder, made from the code itself: a page for each rule,
the table of all rules, the keys of the configuration, the help of every command, and reports of real runs, as text, as
pictures of a terminal, and as the page that the verifier writes.

MkDocs calls the `on_...` functions (see `hooks` in mkdocs.yml). `python docs/pages.py` renews what README.md has of the
same kind: its first report and its table of rules.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from html import escape as html_escape
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import yaml
from gpulint.rules import all_rules
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page as SitePage

from gpulint.cli._dispatch import cli
from gpulint.config import KEYS, Config
from gpulint.findings import DOCS_URL
from gpulint.lint.documentation import DOUBTFUL, Page, page
from gpulint.lint.selection import BUILT_IN, Selection
from gpulint.reports import FORMATS
from gpulint.rule import Rule
from gpulint.source.discovery import DEFAULT_EXCLUDES

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page as SitePage

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))  # MkDocs loads this file by its path
import example_run  # noqa: E402
import terminal  # noqa: E402

REPOSITORY: Final = "https://github.com/gpulint/gpulint"
FAMILIES: Final = {
    "1": "Held memory",
    "2": "Grad mode",
    "3": "Backward and gradients",
    "4": "Peaks, copies and recovery",
    "5": "Calls that cost time",
    "6": "Allocator and memory interface",
}
_MARK: Final = re.compile(r"<!-- generated: ([a-z]+) *([\w -]*?) *-->")
_OUTSIDE: Final = re.compile(r"\]\(\.\./((?!docs/|rules/GPU)[^)#\s]+)\)")
_CODE: Final = re.compile(r"(?<![\w/\[=#.-])GPU[0-9]{3}(?![\w\]/-]|\.\w)")
_UNTOUCHED: Final = re.compile(r"(`+[^`]+`+|\[[^\]]*\]\([^)]*\)|<[^>]*>)")
_FENCE: Final = re.compile(r"\s*(```+|~~~+)")
_TABLE: Final = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW: Final = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_HEAD: Final = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_ITEM: Final = re.compile(r"(?:[-*]|\d+\.) ")

# A short program with a safe fix, an unsafe one and two severities, for the page about reports.
SAMPLE: Final = """\
import torch
import torch.nn.functional as F
from torch import nn


def train(model: nn.Module, loader, optimizer):
    total = 0.0
    for inputs, labels in loader:
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss
        torch.cuda.empty_cache()
    return total / len(loader)
"""


# -- hooks ---------------------------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the rules' pages, and pages of this folder that mkdocs.yml does not name, into the navigation."""
    nav = config.nav
    assert nav is not None
    named = set(_targets(nav))
    for group in nav:
        for title, entries in group.items():
            if title == "Rules":
                entries.extend(_rules_nav())
            if title == "Guide":
                found = (path.name for path in sorted(Path(config.docs_dir).glob("*.md")))
                entries.extend(name for name in found if name not in named)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file stands for."""

    for path, text in {**generated_pages(), **generated_assets()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(html: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Colour what a terminal colours, and name each cell's column for screens that are too narrow for a table."""
    return _TABLE.sub(lambda table: _labelled(table[0]), terminal.as_html(html))


def _labelled(table: str) -> str:
    names = [html_escape(unescape(re.sub(r"<[^>]+>", "", head)).strip()) for head in _HEAD.findall(table)]

    def row(match: re.Match[str]) -> str:
        cells = iter(names)
        return re.sub(r"<td\b", lambda _: f'<td data-label="{next(cells, "")}"', match[0])

    return _ROW.sub(row, table)


def on_page_markdown(markdown: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Fill in what is generated, and make rule codes links."""
    if page.file.src_uri == "contributing.md":
        return linked(markdown, page.file.src_uri)  # its links lead from the repository's top
    filled = _MARK.sub(lambda mark: PARTS[mark[1]](mark[2]), markdown)
    return linked(_OUTSIDE.sub(_on_github, filled), page.file.src_uri)


def _on_github(link: re.Match[str]) -> str:
    """A link to a file of the repository that is no page; one to nothing stays, and fails the build."""
    return f"]({REPOSITORY}/blob/main/{link[1]})" if (ROOT / link[1]).exists() else link[0]


def on_post_build(config: MkDocsConfig) -> None:
    """Let `rules/GPU101` and `rules/GPU101/` lead to a rule's page on every server: findings carry that address."""
    for code in (*BUILT_IN, *(rule.code for rule in all_rules())):
        folder = Path(config.site_dir, "rules", code)
        folder.mkdir(parents=True)
        stub = f'<!doctype html><meta charset="utf-8"><title>{code}</title><link rel="canonical" href="../{code}.html">'
        stub += f'<meta http-equiv="refresh" content="0; url=../{code}.html"><a href="../{code}.html">{code}</a>\n'
        (folder / "index.html").write_text(stub, encoding="utf-8")


def _targets(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, Mapping):
        for value in nav.values():
            yield from _targets(value)
    else:
        for value in nav:
            yield from _targets(value)


# -- rules ---------------------------------------------------------------------------------------------------


def generated_pages() -> dict[str, str]:
    """Path below docs/ → Markdown, for every page that is made from the code alone."""
    pages = {f"rules/{rule.code}.md": rule_page(rule) for rule in all_rules()}
    pages |= {f"rules/{code}.md": _built_in_page(code, name) for code, name in BUILT_IN.items()}
    return pages | {"contributing.md": _contributing()}


def _contributing() -> str:
    """CONTRIBUTING.md as a page of the site."""

    def target(link: re.Match[str]) -> str:
        path = link[1]
        return (
            f"]({path.removeprefix('docs/')})"
            if path.startswith("docs/")
            else f"]({REPOSITORY}/blob/main/{path})"
        )

    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", target, text)


def generated_assets() -> dict[str, str]:
    """Path below docs/ → text, for what pages show and link to."""
    return {
        "assets/terminal.svg": terminal.picture(SAMPLE, columns=100),
        "assets/terminal-narrow.svg": terminal.picture(SAMPLE, columns=62),
        "assets/report.html": example_run.report(),
    }


def rule_page(rule: type[Rule]) -> str:
    """A rule's page: what `gpulint rule CODE` prints, with its sources and how to switch it on or off."""
    source = f"{REPOSITORY}/blob/main/{rule.__module__.removeprefix('gpulint.').replace('.', '/')}.py"
    state = "on by default" if rule.default else f"off by default, on with `--extend-select {rule.code}`"
    state += DOUBTFUL if rule.doubts else ""
    documentation = page(rule)
    head = f"# {rule.code} {rule.name}\n\n**{rule.severity.value}** · {state} · [source]({source})\n"
    foot = f"```console\n$ gpulint rule {rule.code}          # this page\n$ gpulint --select {rule.code} .   # only this rule\n```\n"
    return "\n".join([head, documentation.body(), "## On the command line\n", foot])


def _built_in_page(code: str, name: str) -> str:
    return f"# {code} {name}\n\nNo rule of its own file. {_BUILT_IN_TEXT[code]}\n"


_BUILT_IN_TEXT: Final = {
    "GPU000": "A file that cannot be read, decoded or parsed, or on which gpulint itself failed. The other files are still "
    "checked, and the exit status is 2 where gpulint failed. What an older Python reads, Python 2 or an argument called "
    "`async`, is a note where the file was met in a folder, and an error where it was named. It is neither accepted by a baseline nor "
    "silenced by comments.",
    "GPU001": "A comment that silences findings, and none that it names is there. `--fix` takes it out. See "
    "[Suppressions and baseline](../suppressions.md).",
}


def rules_table(_: str = "") -> str:
    """Every rule by family, with what it finds."""
    parts = []
    for digit, title in FAMILIES.items():
        rows = [_row(page(rule)) for rule in all_rules() if rule.code[3] == digit]
        head = "| Code | Name | Severity | Finds |\n| --- | --- | --- | --- |\n"
        table = head + "\n".join(rows)
        parts.append(f'## GPU{digit}: {title}\n\n<div class="rules" markdown>\n\n{table}\n\n</div>\n')
    return "\n".join(parts)


def _row(item: Page) -> str:
    rule = item.rule
    severity = rule.severity.value + ("" if rule.default else "; off by default")
    cells = (f"[{rule.code}]({rule.code}.md)", rule.name, severity, item.summary.removeprefix("Finds "))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _rules_nav() -> list[dict[str, Any]]:
    nav: list[dict[str, Any]] = []
    for digit, title in FAMILIES.items():
        codes = [{f"{r.code} {r.name}": f"rules/{r.code}.md"} for r in all_rules() if r.code[3] == digit]
        nav.append({f"GPU{digit} {title}": codes})
    nav.append(
        {"Without a rule": [{f"{code} {name}": f"rules/{code}.md"} for code, name in BUILT_IN.items()]}
    )
    return nav


# -- configuration, commands, reports ------------------------------------------------------------------------


def configuration_keys(_: str = "") -> str:
    """Every key of the configuration: what it is, its type, its default, an example."""
    parts = []
    for name, key in KEYS.items():
        example = f"{name} = {key.example}"
        parts.append(
            f"### `{name}`\n\n{key.help}\n\n"
            f"**Type:** {type_of(key.schema)}  \n**Default:** {default_of(name)}\n\n"
            f"```toml\n[tool.gpulint]\n{example}\n```\n"
        )
    return "\n".join(parts)


def type_of(schema: Mapping[str, Any]) -> str:
    """A JSON schema in words."""
    if "enum" in schema:
        return "one of " + ", ".join(f'`"{value}"`' for value in schema["enum"])
    if schema["type"] == "array":
        items = schema["items"]
        return (
            "list of selectors: codes, prefixes of codes, `ALL`" if "pattern" in items else "list of strings"
        )
    if schema["type"] == "object":
        return (
            f"table, each value: {type_of(schema['additionalProperties'])}"
            if schema["additionalProperties"] != {"type": "object"}
            else "table of tables"
        )
    return {"boolean": "`true` or `false`", "string": "string"}[schema["type"]]


def default_of(name: str) -> str:
    """The value in force where the key is not set."""
    if name == "select":
        return "every rule that is on by default"
    if name == "exclude":
        return ", ".join(f"`{pattern}`" for pattern in sorted(DEFAULT_EXCLUDES))
    value = getattr(Config(), name.replace("-", "_"), None)
    if value is None:
        return "none"
    return f"`{json.dumps(value)}`" if isinstance(value, (str, bool)) else "empty"


def codes_left(selectors: str) -> str:
    """The rules in force where the first selector is selected and the others are ignored."""
    select, *ignore = selectors.split()
    left = Selection(Config(select=(select,), ignore=tuple(ignore))).rules_for(str(ROOT)).rules
    return ", ".join(rule.code for rule in left)


def option_table(_: str = "") -> str:
    """The options of single rules."""
    rows = ["| Rule | Option | Default | |", "| --- | --- | --- | --- |"]
    for rule in all_rules():
        for option in rule.options:
            choices = (
                f" One of {', '.join(f'`{json.dumps(choice)}`' for choice in option.choices)}."
                if option.choices
                else ""
            )
            text = (option.help[:1].upper() + option.help[1:]).rstrip(".") + "." + choices
            rows.append(
                f"| [{rule.code}](rules/{rule.code}.md) {rule.name} | `{option.name}` | `{json.dumps(option.default)}` | {text} |"
            )
    return "\n".join(rows) + "\n"


def commands(_: str = "") -> str:
    """The help of every command, as an 80-column terminal shows it, and for narrow screens as one of 44 does."""
    narrow = dict(help_texts(44))
    return "\n".join(
        f"## `{' '.join(path)}`\n\n```{{ .text .wide }}\n{text}```\n\n```{{ .text .narrow }}\n{narrow[path]}```\n"
        for path, text in help_texts()
    )


def help_texts(columns: int = 80) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command's name in words, and its help."""

    def walk(
        command: click.Command, parent: click.Context | None, path: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        settings = dict(command.context_settings) | {"terminal_width": columns, "max_content_width": columns}
        context = click.Context(command, parent=parent, info_name=path[-1], **settings)
        yield path, command.get_help(context) + "\n"
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                yield from walk(child, context, (*path, name))

    yield from walk(cli, None, ("gpulint",))


def action_inputs(_: str = "") -> str:
    """The inputs and the output of the GitHub action."""

    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    rows = ["| input | default | |", "| --- | --- | --- |"]
    for name, given in action["inputs"].items():
        default = f"`{given['default']}`" if given["default"] else "none"
        rows.append(f"| `{name}` | {default} | {given['description']} |")
    outputs = (f"| output `{name}` | | {given['description']} |" for name, given in action["outputs"].items())
    return "\n".join([*rows, *outputs]) + "\n"


def format_list(_: str = "") -> str:
    """The output formats' names."""
    return ", ".join(f"`{name}`" for name in FORMATS)


def sample(_: str = "") -> str:
    """The program that the reports on the page are about."""
    return f'```python title="train.py"\n{SAMPLE}```\n'


def report(arguments: str) -> str:
    """What gpulint prints about the sample with these arguments, as a code block; as text with its colours."""
    language = "json" if re.search("json|sarif|gitlab", arguments) else "text"
    colour = "always" if re.fullmatch(r"|--diff.*|--output-format (concise|grouped)", arguments) else "never"
    text = printed(SAMPLE, *arguments.split(), colour=colour)
    if language == "json" and "json-lines" not in arguments:
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    prompt = f"$ {' '.join(['gpulint', *arguments.split(), 'train.py'])}\n" if language == "text" else ""
    return f"```{language}\n{prompt}{text}```\n"


def printed(program: str, *arguments: str, colour: str = "never") -> str:
    """What gpulint prints, run now, about a program with findings that is called train.py."""
    always = ("--no-cache", "--isolated", "--color", colour)
    with tempfile.TemporaryDirectory() as made:
        folder = os.path.realpath(made)
        Path(folder, "train.py").write_text(program, encoding="utf-8")
        command = [sys.executable, "-m", "gpulint", *always, *arguments, "train.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 1:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout.replace(folder, "/project")


PARTS: Final[Mapping[str, Callable[[str], str]]] = {
    "rules": rules_table,
    "keys": configuration_keys,
    "options": option_table,
    "left": codes_left,
    "commands": commands,
    "action": action_inputs,
    "formats": format_list,
    "sample": sample,
    "report": report,
}


# -- text ----------------------------------------------------------------------------------------------------


def linked(text: str, path: str) -> str:
    """Markdown for MkDocs: codes of rules are links, and a list may follow a paragraph without a blank line."""
    here = Path(path).stem
    up = "" if path.startswith("rules/") else "rules/"
    codes = {*BUILT_IN, *(rule.code for rule in all_rules())} - {here}

    def link(match: re.Match[str]) -> str:
        return f"[{match[0]}]({up}{match[0]}.md)" if match[0] in codes else match[0]

    def span(part: str) -> str:
        code = part.strip("`")
        if part.startswith("`") and code in codes:
            return f"[`{code}`]({up}{code}.md)"
        return part if _UNTOUCHED.fullmatch(part) else _CODE.sub(link, part)

    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
        elif not fence:
            before = lines[-1] if lines else ""
            if (
                _ITEM.match(line)
                and before.strip()
                and not before.startswith(" ")
                and not _ITEM.match(before)
            ):
                lines.append("")
            if not line.startswith(("#", "    ")):
                line = "".join(map(span, _UNTOUCHED.split(line)))
        lines.append(line)
    return "\n".join(lines) + "\n"


# -- README --------------------------------------------------------------------------------------------------


def readme(text: str) -> str:
    """README.md with its report and its table of rules as they are now. Its links are whole addresses: package indexes show it too."""
    shown = f"$ gpulint train.py\n{_first_finding(printed(example_run.script()))}"
    text = re.sub(r"(?<=```console\n).*?(?=```\n)", lambda _: shown, text, count=1, flags=re.DOTALL)
    rows = "".join(_readme_row(digit, title) for digit, title in FAMILIES.items())
    return re.sub(r"(?:^\| GPU\dxx .*\n)+", lambda _: rows, text, count=1, flags=re.MULTILINE)


def _first_finding(report: str) -> str:
    """A report's first finding, where the others are, and its last line."""
    first, *others, last = report.rstrip("\n").split("\n\n")
    heads = [re.sub(r"^(\S+): \w+\[(\w+)\].*", r"\2 at \1", other, flags=re.DOTALL) for other in others]
    return f"{first}\n\n[… {' and '.join(heads)} …]\n\n{last}\n"


def _readme_row(digit: str, title: str) -> str:
    rules = [rule for rule in all_rules() if rule.code[3] == digit]
    listed = ", ".join(f"[{rule.code}]({DOCS_URL}{rule.code}) {rule.name}" for rule in rules)
    return f"| GPU{digit}xx {title.lower()} | {listed} |\n"


if __name__ == "__main__":
    target = ROOT / "README.md"
    target.write_text(readme(target.read_text(encoding="utf-8")), encoding="utf-8")
