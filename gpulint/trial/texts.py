"""The files of a program as they were read, and as fixes make them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpulint.atomic import target_of
from gpulint.source.edits import apply_edits
from gpulint.source.files import SourceFile, decode, read_bytes
from gpulint.trial.plan import TrialFix


@dataclass(frozen=True, slots=True)
class Texts:
    """Every file that a fix touches, by absolute path."""

    files: dict[str, SourceFile]

    @classmethod
    def of(cls, fixes: Iterable[TrialFix]) -> Texts:
        """Read the files. Raises `FileError` where one has become unreadable since it was linted."""
        paths = dict.fromkeys(os.path.abspath(fix.file) for fix in fixes)
        return cls({path: decode(path, read_bytes(path)) for path in paths})

    def why_not_written(self, fix: TrialFix) -> str:
        """Why the fix's file would not be written; empty where it would be."""
        path = os.path.abspath(fix.file)
        if not self.files[path].survives_rewriting:
            return "the encoding of its file is not one-to-one: writing would change other bytes too"
        try:
            target_of(path)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def fixed(self, fixes: Sequence[TrialFix]) -> tuple[dict[str, str], list[TrialFix]]:
        """The text of each file with the fixes in it, and those that are not in it because they overlap another."""
        texts: dict[str, str] = {}
        lost: list[TrialFix] = []
        for path, source in self.files.items():
            here = [fix for fix in fixes if os.path.abspath(fix.file) == path]
            texts[path], taken = apply_edits(source.text, [fix.first for fix in here], unsafe=True)
            lost += [fix for fix in here if not any(fix.first is one for one in taken)]
        return texts, lost

    def encoded(self, texts: dict[str, str]) -> dict[str, bytes]:
        """Texts as bytes of their files. Raises `FileError` for a character that a file's encoding lacks."""
        return {path: self.files[path].encode(text) for path, text in texts.items()}
