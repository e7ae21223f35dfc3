"""`%load_ext gpulint` in a real kernel: what cells leave, who holds it, and failed cells that let go."""

import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

pytest.importorskip("torch")
pytest.importorskip("ipykernel")
manager = pytest.importorskip("jupyter_client.manager")

START = """
import time, weakref, torch
seen = []
class Net(torch.nn.Module):
    def forward(self, size):
        act = torch.ones(size, 1000)
        seen.append(weakref.ref(act))
        self.inner(act)
    def inner(self, act):
        deep = act * 2
        seen.append(weakref.ref(deep))
        fail(deep)
def fail(deep):
    raise ValueError("no")
def wait(deep):
    print("up", flush=True)
    while True:
        time.sleep(0.01)
def alive():
    return [ref() is not None for ref in seen]
net = Net()
"""


@dataclass
class Ran:
    """What a cell printed, its error if any, and what the kernel answered."""

    text: str = ""
    error: str = ""
    trace: str = ""
    status: str = ""


@dataclass
class Kernel:
    running: manager.KernelManager
    client: object = field(repr=False)

    def run(self, code: str, interrupt_at: str = "") -> Ran:
        ran = Ran()
        number = self.client.execute(code, allow_stdin=False)
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != number:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                ran.text += content["text"]
                if interrupt_at and interrupt_at in content["text"]:
                    self.running.interrupt_kernel()  # a SIGINT, as the button sends
            elif kind == "error":
                ran.error = f"{content['ename']}: {content['evalue']}"
                ran.trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(content["traceback"]))
            elif kind == "status" and content["execution_state"] == "idle":
                break
        while True:
            message = self.client.get_shell_msg(timeout=60)
            if message["parent_header"].get("msg_id") == number:
                ran.status = message["content"]["status"]
                return ran


@pytest.fixture(scope="module")
def process() -> Iterator[Kernel]:
    running = manager.KernelManager()
    # The spec of this very interpreter, whatever kernels are installed on the machine.
    running._kernel_spec = manager.kernelspec.KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
    )
    running.start_kernel()
    client = running.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    kernel = Kernel(running, client)
    kernel.run("import gc, torch; gc.collect(); gc.freeze()")  # else each cell looks through all of torch
    yield kernel
    client.stop_channels()
    running.shutdown_kernel(now=True)


@pytest.fixture
def kernel(process: Kernel) -> Kernel:
    """A session with the extension, in which nothing is left of the last test."""
    with contextlib.suppress(Exception):
        process.run("%unload_ext gpulint")
    process.run("%reset -f")
    assert process.run("%load_ext gpulint").error == ""
    process.run(START)
    return process


def rows(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


class TestWhatACellLeaves:
    def test_its_variables_its_result_and_what_it_freed(self, kernel: Kernel) -> None:
        kernel.run("old = torch.ones(500, 500)")
        said = kernel.run("%%gpu_memory\nkept = torch.ones(1000, 1000)\ndel old\nkept + 1")
        assert "no CUDA here" in said.text
        assert "(+6.68 MiB)" in said.text
        assert "3.81 MiB  float32[1000, 1000]: `kept`" in rows(said.text)
        assert re.search(r"3\.81 MiB  float32\[1000, 1000\]: `Out\[(\d+)\]`, `_`, `_\1`", said.text)
        assert "976.56 KiB  float32[500, 500]: `old`" in rows(said.text)

    def test_containers_attributes_closures_and_caches_are_seen_into(self, kernel: Kernel) -> None:
        said = kernel.run(
            "%%gpu_memory\nimport functools\n"
            "history = [{'loss': torch.ones(250, 1000)} for _ in range(3)]\n"
            "net.saved = torch.ones(2000, 1000)\n"
            "@functools.lru_cache\ndef table(n): return torch.ones(n, 1000)\n"
            "_ignored = table(3000) is None\n"
            "def make():\n    inside = torch.ones(4000, 1000)\n    return lambda: inside\n"
            "closure = make()"
        )
        assert "2.86 MiB  3 tensors: `history`" in rows(said.text)
        assert "7.63 MiB  float32[2000, 1000]: `net`" in rows(said.text)
        assert "11.44 MiB  float32[3000, 1000]: `table`" in rows(said.text)
        assert "15.26 MiB  float32[4000, 1000]: `closure`" in rows(said.text)

    def test_what_only_a_graph_or_a_view_keeps(self, kernel: Kernel) -> None:
        kernel.run("w = torch.ones(1000, 1000, requires_grad=True)")
        said = kernel.run("%%gpu_memory\nloss = w.exp().exp().sum()")
        assert "left by this cell: 7.63 MiB" in rows(said.text)
        assert re.search(r"7\.63 MiB  \d tensors, 7\.63 MiB of it in autograd graphs: `loss`", said.text)
        said = kernel.run("%%gpu_memory\nrow = w.detach()[0]\ndel w, loss")  # a view keeps all of it
        assert "left by this cell: nothing" in rows(said.text)
        assert "float32[1000, 1000]: `w`" not in said.text

    def test_a_cell_runs_as_it_would_without(self, kernel: Kernel) -> None:
        waits = kernel.run("%%gpu_memory\nimport asyncio\nawait asyncio.sleep(0)\nw = torch.ones(1000, 1000)")
        assert "`w`" in waits.text
        fails = kernel.run("%%gpu_memory\n\nx = 1\n1/0")
        assert fails.status == "error"  # "run all" stops here
        assert "> 4 1/0" in fails.trace
        assert "left by this cell: nothing" in fails.text

    @pytest.mark.parametrize(
        "head", ["%%gpu_memory\n%%time", "%%time\n%%gpu_memory", "%%capture --no-stdout\n%%gpu_memory"]
    )
    def test_beside_other_cell_magics(self, kernel: Kernel, head: str) -> None:
        said = kernel.run(f"{head}\nbeside = torch.ones(1000, 1000)")
        assert said.error == ""
        assert said.text.count("3.81 MiB  float32[1000, 1000]: `beside`") == 1
        assert "`again`" in kernel.run("%%gpu_memory\nagain = torch.ones(1000, 1000)").text


class TestFailedCells:
    def test_a_failed_cell_is_there_for_a_debugger_and_gone_with_the_next(self, kernel: Kernel) -> None:
        failed = kernel.run("%%gpu_memory\nnet(1000)")
        assert failed.error == "ValueError: no"
        assert re.search(r"the last error \(local `act` of forward\(\), (In\[\d+\]|a cell):4\)", failed.text)
        assert "the last error (local `deep` of fail()" in failed.text
        assert "left by this cell: 7.63 MiB" in failed.text
        for looks in ("%tb", "%gpu_memory", "import sys; print(sys.last_value, alive())"):
            said = kernel.run(looks).text
        assert said == "no [True, True]\n"
        assert kernel.run("print(alive())").text == "[False, False]\n"

    def test_after_a_debugger_that_could_not_be_left(self, kernel: Kernel) -> None:
        kernel.run("net(1000)")
        assert "StdinNotImplementedError" in kernel.run("# what was it?\n%debug").error
        assert kernel.run("print(alive())").text == "[False, False]\n"

    def test_after_a_debugger_that_was_left(self, kernel: Kernel) -> None:
        # As `%debug` does, with its commands given beforehand: a kernel asked from here has nobody to type them.
        kernel.run("net(1000)")
        asked = kernel.run(
            "import sys, io\nfrom IPython.core.debugger import Pdb\ntable = get_ipython().InteractiveTB\n"
            "table.pdb = Pdb(stdin=io.StringIO('up\\nq\\n'), stdout=io.StringIO())\ntable.pdb.use_rawinput = False\n"
            "table.pdb.reset()\ntable.pdb.interaction(None, sys.last_traceback)\nprint(alive())"
        )
        assert (asked.error, asked.text) == ("", "[True, True]\n")
        assert kernel.run("print(alive())").text == "[False, False]\n"

    def test_without_the_extension_or_switched_off_it_stays_and_clear_frees_it(self, kernel: Kernel) -> None:
        kernel.run("%unload_ext gpulint")
        kernel.run("net(1000)")
        for _ in range(3):
            assert kernel.run("print(alive())").text == "[True, True]\n"
        said = kernel.run("from gpulint import memory\nprint(memory.clear())\nprint(alive())")
        assert "let go of the last error and the variables in its traceback" in said.text
        assert "[False, False]" in said.text
        kernel.run("%load_ext gpulint")
        kernel.run("%gpu_memory off")
        kernel.run("seen.clear(); net(1000)")
        assert kernel.run("print(alive())").text == "[True, True]\n"
        assert "let go of the last error" in kernel.run("%gpu_memory clear").text
        assert kernel.run("print(alive())").text == "[False, False]\n"

    def test_an_interrupted_cell(self, kernel: Kernel) -> None:
        kernel.run("fail = wait")
        stopped = kernel.run("%%gpu_memory\nnet(1000)", interrupt_at="up")
        assert stopped.error.startswith("KeyboardInterrupt")
        assert "local `deep` of wait()" in stopped.text
        assert kernel.run("print(alive())").text == "[False, False]\n"

    def test_what_an_error_itself_carries_and_one_behind_another(self, kernel: Kernel) -> None:
        kernel.run("big = torch.ones(1000, 1000); seen.append(weakref.ref(big))")
        kernel.run("big.no_such_attribute")  # an AttributeError refers to the object
        kernel.run("del big")
        kernel.run("try:\n    net(1000)\nexcept ValueError as error:\n    raise KeyError('x') from error")
        assert kernel.run("print(alive())").text == "[False, False, False]\n"


class TestTheLineMagic:
    def test_what_is_alive_and_what_ipython_keeps(self, kernel: Kernel) -> None:
        kernel.run("torch.ones(1000, 1000)")
        kernel.run("mine = torch.ones(2000, 1000)")
        said = kernel.run("%gpu_memory").text
        assert "7.63 MiB  float32[2000, 1000]: `mine`" in rows(said)
        assert re.search(r"3\.81 MiB  float32\[1000, 1000\]: `Out\[\d+\]`, `_`, `_\d+`", said)
        named = kernel.run("%gpu_memory clear").text
        assert re.search(
            r"only results that were shown still hold .*:\n +3\.81 MiB +float32\[1000, 1000\]: `Out", named
        )
        kernel.run("mine[0]")  # shown as well: to forget that would free nothing
        assert "2000" not in kernel.run("%gpu_memory clear").text
        assert "Out[" not in kernel.run("%gpu_memory clear out").text
        assert "Out[" not in kernel.run("%gpu_memory").text

    def test_ipythons_own_copy_of_what_was_shown_last(self, kernel: Kernel) -> None:
        """`user_ns_hidden` has one of its own, which `%reset out` leaves where it is."""
        kernel.run("big = torch.ones(1000, 1000); seen.append(weakref.ref(big))")
        kernel.run("big")
        kernel.run("_ = 3; del big")
        kernel.run("%gpu_memory clear out")
        assert kernel.run("print(alive())").text == "[False]\n"
        kernel.run("torch.ones(500, 500)")
        assert "float32[500, 500]: `Out[" in kernel.run("%gpu_memory").text
        assert kernel.run("print(tuple(_.shape))").text == "(500, 500)\n"

    def test_a_name_that_hides_what_was_shown_last(self, kernel: Kernel) -> None:
        kernel.run("torch.ones(1000, 1000)")
        kernel.run(
            "Out.clear()\nfor _ in range(3): pass\nfor name in [one for one in globals() if one[:1] == '_' and one[1:].isdigit()]: del globals()[name]"
        )
        assert "float32[1000, 1000]: `_`" in kernel.run("%gpu_memory").text

    def test_without_a_cache_of_results(self, kernel: Kernel) -> None:
        kernel.run("hook = get_ipython().displayhook; hook.do_full_cache = False")
        kernel.run("big = torch.ones(1000, 1000); seen.append(weakref.ref(big))")
        kernel.run("big")
        kernel.run("del big")
        assert kernel.run("%gpu_memory clear out").error == ""
        assert kernel.run("hook.do_full_cache = True; print(alive())").text == "[False]\n"

    def test_loaded_twice_and_unloaded(self, kernel: Kernel) -> None:
        assert "'of' is unknown; usage: %gpu_memory [on | off" in kernel.run("%gpu_memory of").text
        kernel.run("%load_ext gpulint")
        kernel.run("%reload_ext gpulint")
        assert kernel.run("%%gpu_memory\nx = 1").text.count("left by this cell") == 1
        kernel.run("%unload_ext gpulint")
        assert "`%gpu_memory` not found" in kernel.run("%gpu_memory").text
