"""A client that sends what is no message, or more than can be checked."""

import io
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("pygls.lsp")

from server_support import INITIALIZE, message, talk

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


def session(folder: Path, *between: bytes) -> subprocess.CompletedProcess[bytes]:
    begin = (INITIALIZE, message({"method": "initialized", "params": {}}))
    return talk(b"".join((*begin, *between, *END)), folder)


END = (message({"id": 2, "method": "shutdown"}), message({"method": "exit"}))


def test_the_server_says_why_it_ends(tmp_path: Path) -> None:
    done = session(tmp_path, b"POST / HTTP/1.1\r\n\r\n")
    assert done.returncode == 1
    assert b"the session ends: " in done.stderr


def test_a_message_that_is_no_json_is_answered(tmp_path: Path) -> None:
    done = session(tmp_path, message(b'{"a":'), message(b"[" * 200_000))
    assert done.returncode == 0
    assert done.stdout.count(b"the message is no JSON that can be read") == 2


def test_a_document_of_ten_megabytes_is_refused_in_a_line(tmp_path: Path) -> None:
    text = (
        "import torch\ndef f(m, xs):\n    acc = []\n    for x in xs:\n        acc.append(m(x))\n"
        + "y = [1]\n" * 1_300_000
    )
    item = {"uri": "file:///clone/big.py", "languageId": "python", "version": 1, "text": text}
    asked = {"textDocument": {"uri": item["uri"]}}
    done = session(
        tmp_path,
        message({"method": "textDocument/didOpen", "params": {"textDocument": item}}),
        message({"id": 7, "method": "textDocument/diagnostic", "params": asked}),
    )
    assert done.returncode == 0
    assert b"gpulint does not analyse this file" in done.stdout or b'"id": 7' in done.stdout
