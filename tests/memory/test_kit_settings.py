"""Allocator settings: names by version, text, and reading back, with torch's answers played where there is no GPU."""

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from gpulint import memory
from gpulint.memory import alloc_conf


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in (alloc_conf.OLD, alloc_conf.NEW):
        # Set first, so that what `configure` writes is taken back afterwards.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


class TestText:
    @pytest.mark.parametrize(
        ("version", "variable"),
        [
            ("1.13.1", "PYTORCH_CUDA_ALLOC_CONF"),
            ("2.8.0", "PYTORCH_CUDA_ALLOC_CONF"),
            ("2.9.1+cu128", "PYTORCH_CUDA_ALLOC_CONF"),
            ("2.11.0", "PYTORCH_CUDA_ALLOC_CONF"),
            ("2.12.0", "PYTORCH_ALLOC_CONF"),
            ("2.13.0a0+git123", "PYTORCH_ALLOC_CONF"),
            (None, "PYTORCH_CUDA_ALLOC_CONF"),
        ],
    )
    def test_variable(self, version, variable) -> None:
        assert alloc_conf.variable_for(version) == variable

    def test_lists_are_one_value(self) -> None:
        text = "expandable_segments:True, roundup_power2_divisions:[256:1,512:2,>:4],max_split_size_mb:64"
        parsed = alloc_conf.parse(text)
        assert parsed["roundup_power2_divisions"] == "[256:1,512:2,>:4]"
        assert alloc_conf.render(parsed) == text.replace(" ", "")

        for malformed in ("expandable_segments", "a:", ":b", "expandable_segments=True"):
            with pytest.raises(ValueError, match="key:value"):
                alloc_conf.parse(malformed)

    def test_automatic(self) -> None:
        assert alloc_conf.automatic("2.4.0", "linux") == {"expandable_segments": "True"}
        assert alloc_conf.automatic("2.0.1", "linux") == {}
        assert alloc_conf.automatic("2.4.0", "win32") == {}

    def test_folklore_is_named(self) -> None:
        assert "106 GiB" in alloc_conf.warnings_for({"max_split_size_mb": "128"})[0]
        both = {"max_split_size_mb": "128", "expandable_segments": "True"}
        assert "137 GiB" in alloc_conf.warnings_for(both)[0]
        assert alloc_conf.warnings_for({"expandable_segments": "True"}) == ()
        assert alloc_conf.warnings_for({"max_split_size_mb": "2048"}) == ()

    @pytest.mark.parametrize(
        ("visible", "listed"),
        [
            ("0", True), ("0,1", True), ("", True), ("-1", True), ("GPU-8f3a2c1d-aa", True), ("MIG-GPU-1/0/1", True),
            ("0.8", False), ("80%", False), ("cuda:0", False),
        ],
    )  # fmt: skip
    def test_a_fraction_is_no_list_of_cards(self, visible, listed) -> None:
        assert alloc_conf.lists_cards(visible) is listed


class TestConfigure:
    def test_the_choice_of_cards_is_no_limit_on_memory(self, monkeypatch, caplog) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
        made = memory.configure(expandable_segments=True, check=False)
        assert made.notes == (alloc_conf.not_a_limit("0"),)
        assert caplog.text == ""
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0.8")
        with caplog.at_level("INFO", "gpulint.memory"):
            memory.configure(expandable_segments=True, check=False)
        assert alloc_conf.not_a_limit("0.8") in caplog.text
        assert "is no list of cards" in caplog.text

    @pytest.fixture(autouse=True)
    def _unused(self, monkeypatch) -> None:
        """Another test may have used a GPU of this machine."""
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)

    def test_adds_to_what_is_there_and_leaves_one_variable(self, monkeypatch) -> None:
        monkeypatch.setenv(alloc_conf.OLD, "max_split_size_mb:64,expandable_segments:False")
        made = memory.configure(expandable_segments=True, garbage_collection_threshold=0.8, check=False)
        assert made.variable == alloc_conf.variable_for(torch.__version__)
        assert made.value == os.environ[made.variable]
        assert made.value == "max_split_size_mb:64,expandable_segments:True,garbage_collection_threshold:0.8"
        assert [name for name in (alloc_conf.OLD, alloc_conf.NEW) if name in os.environ] == [made.variable]
        assert made.notes

    def test_what_torch_does_not_know_or_cannot_read_is_refused(self, monkeypatch) -> None:
        with pytest.raises(ValueError, match="no setting 'expandable_segment'"):
            memory.configure(expandable_segment=True)
        monkeypatch.setenv(alloc_conf.OLD, "nonsense")
        with pytest.raises(memory.AllocatorSettingsError, match="cannot read"):
            memory.configure(expandable_segments=True)

    def test_too_late(self, cuda) -> None:
        with pytest.raises(memory.AllocatorSettingsError, match="before the first tensor goes to the GPU"):
            memory.configure(expandable_segments=True)

    def test_in_force_already_is_not_too_late(self, cuda, monkeypatch) -> None:
        monkeypatch.setattr(alloc_conf, "read_back", lambda: {"expandable_segments": True})
        assert memory.configure(expandable_segments=True).checked
        with pytest.raises(memory.AllocatorSettingsError):
            memory.configure(expandable_segments=True, pinned_num_register_threads=4)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
    def test_without_cuda_it_says_that_nothing_was_checked(self) -> None:
        made = memory.configure(expandable_segments=True)
        assert not made.checked
        assert "not checked" in str(made)

    def test_without_torch_nothing_is_imported(self) -> None:
        code = (
            "import sys; from gpulint import memory;"
            "print(memory.configure(expandable_segments=True, check=False).value, 'torch' in sys.modules)"
        )
        printed = subprocess.check_output([sys.executable, "-c", code], text=True)
        assert printed.split() == ["expandable_segments:True", "False"]


class TestReadBack:
    @pytest.fixture
    def answers(self, cuda, monkeypatch) -> dict[str, Any]:
        cuda.started = False
        state: dict[str, Any] = {"expandable_segments": False, "max_split_size": -1, "told": []}
        monkeypatch.setattr(alloc_conf, "read_back", lambda: dict(state))
        monkeypatch.setattr(alloc_conf, "_tell", lambda value: state["told"].append(value))
        return state

    def test_taken_with_sizes_in_bytes(self, answers) -> None:
        answers.update(expandable_segments=True, max_split_size=64 * 1024**2)
        made = memory.configure(expandable_segments=True, max_split_size_mb=64, strict=True)
        assert (made.checked, made.refused) == (True, {})

    def test_ignored_settings_warn_or_raise(self, answers) -> None:
        with pytest.warns(memory.AllocatorSettingsWarning, match="expandable_segments is False"):
            made = memory.configure(expandable_segments=True)
        assert made.refused == {"expandable_segments": "False"}
        assert answers["told"] == ["expandable_segments:True"]
        with pytest.raises(memory.AllocatorSettingsError, match="did not take"):
            memory.configure(expandable_segments=True, strict=True)

    def test_told_directly_where_the_variable_came_too_late(self, answers, monkeypatch) -> None:
        monkeypatch.setattr(alloc_conf, "_tell", lambda value: answers.update(expandable_segments=True))
        assert not memory.configure(expandable_segments=True, strict=True).refused
