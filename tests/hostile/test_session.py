"""A client that sends what is no message, or more than can be checked."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest
from support import environment

pytest.importorskip("pygls.lsp")

from gpulint.server.app import MOST, Messages


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        (b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (b"content-length: 5\r\nContent-Type: x; charset=utf-8\r\n\r\nhello", b"hello"),
        (b"Content-Length: 5\n\nhello", b"hello"),
    ],
)
def test_headers_are_read_however_they_are_spelled(sent: bytes, left: bytes) -> None:
    messages = Messages(io.BytesIO(sent))
    assert messages.readline() == b"Content-Length: 5\r\n"
    while messages.readline() != b"\r\n":
        pass
    assert messages.read(5) == left


@pytest.mark.parametrize(
    "sent",
    [
        b"Content-Lenth: 5\r\n\r\nhello",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: 0\r\n\r\n",
        b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        b"Content-Length: %d\r\n\r\n" % (MOST + 1),
        b"\xff\xfe" * 3_000,
    ],
)
def test_a_broken_header_ends_the_session_with_a_sentence(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    messages = Messages(io.BytesIO(sent + b"Content-Length: 2\r\n\r\n{}"))
    lines = 0
    while messages.readline():
        lines += 1
        assert lines < 9
    assert "the session ends" in caplog.text


def message(**content: Any) -> bytes:
    raw = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(raw), raw)


def session(*between: bytes) -> subprocess.CompletedProcess[bytes]:
    begin = message(
        id=1, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}}
    )
    end = message(id=2, method="shutdown") + message(method="exit")
    sent = b"".join((begin, message(method="initialized", params={}), *between, end))
    command = [sys.executable, "-P" if sys.version_info >= (3, 11) else "-B", "-m", "gpulint", "server"]
    return subprocess.run(command, input=sent, capture_output=True, env=environment(), timeout=120)


def test_the_server_says_why_it_ends() -> None:
    done = session(b"POST / HTTP/1.1\r\n\r\n")
    assert done.returncode == 1
    assert b"the session ends: " in done.stderr


def test_a_message_that_is_no_json_is_answered() -> None:
    done = session(b'Content-Length: 5\r\n\r\n{"a":', b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000)
    assert done.returncode == 0
    assert done.stdout.count(b"the message is no JSON that can be read") == 2


def test_a_document_of_ten_megabytes_is_refused_in_a_line() -> None:
    text = (
        "import torch\ndef f(m, xs):\n    acc = []\n    for x in xs:\n        acc.append(m(x))\n"
        + "y = [1]\n" * 1_300_000
    )
    item = {"uri": "file:///clone/big.py", "languageId": "python", "version": 1, "text": text}
    asked = {"textDocument": {"uri": item["uri"]}}
    done = session(
        message(method="textDocument/didOpen", params={"textDocument": item}),
        message(id=7, method="textDocument/diagnostic", params=asked),
    )
    assert done.returncode == 0
    assert b"gpulint does not analyse this file" in done.stdout or b'"id": 7' in done.stdout
