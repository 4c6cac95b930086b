"""Failures that come from another process: a closed pipe, a signal, a connection that is refused."""

from __future__ import annotations

import pytest
from tests.source.asking import all_steps, package, traced_in

from gpuwhy.model.event import Frame, RaisedException
from gpuwhy.source.answers import Swallow, Trace
from gpuwhy.source.tracing import Question, trace

WORKER = """
    import logging
    import os
    import signal
    logger = logging.getLogger(__name__)
    def serve():
        raise OSError("the real reason")
    def work(pipe, parent):
        try:
            serve()
        except Exception as error:
            logger.error(f"Worker hit an exception: {error}")
            parent.send_signal(signal.SIGQUIT)
"""


def borders(answer: Trace) -> dict[str, Swallow]:
    return {each.process: each for each in answer.swallowed if each.process}


@pytest.mark.parametrize(
    ("starting", "target"),
    [
        ("import multiprocessing as mp", "mp.Process(target=work, args=(1,)).start()"),
        ("from multiprocessing import Process", "Process(target=work).start()"),
        ("import multiprocessing", "multiprocessing.get_context('spawn').Process(target=work).start()"),
    ],
)
def test_who_waits_for_a_process_is_told_what_that_prints(starting: str, target: str) -> None:
    main = f"""
        {starting}
        from pkg.worker import work
        def launch(pipe):
            {target}
            if pipe.recv() != "ready":
                raise RuntimeError("initialisation failed")
    """
    answer = traced_in({"worker.py": WORKER, "main.py": main}, Question(symbol="pkg.main:launch"))
    border = borders(answer)["work"]
    assert border.spot.path == "pkg/worker.py"
    assert [log.message.pieces for log in border.logs] == [("Worker hit an exception: ", "")]


@pytest.mark.parametrize(
    "handed",
    [
        "def launch(pipe, run=work):\n    mp.Process(target=run).start()\n",
        "def start(run):\n    mp.Process(target=run).start()\ndef launch(pipe):\n    start(run=work)\n",
        "class Launcher:\n    run = staticmethod(work)\n    def start(self):\n        mp.Process(target=self.run).start()\ndef launch(pipe):\n    Launcher().start()\n",
        "class Launcher:\n    def __init__(self, run):\n        self.run = run\n    def start(self):\n        mp.Process(target=self.run).start()\ndef launch(pipe):\n    Launcher(work).start()\n",
    ],
    ids=["default", "argument", "class attribute", "constructor"],
)  # fmt: skip
def test_a_function_that_is_handed_on_before_it_is_started(handed: str) -> None:
    waiting = "    try:\n        return pipe.read()\n    except EOFError:\n        raise RuntimeError('gone')\n"
    main = f"import multiprocessing as mp\nfrom pkg.worker import work\n{handed}{waiting}"
    answer = traced_in({"worker.py": WORKER, "main.py": main}, Question(symbol="pkg.main:launch"))
    assert set(borders(answer)) == {"work"}


def test_who_waits_for_nobody_is_told_of_no_process() -> None:
    main = """
        import multiprocessing as mp
        from pkg.worker import work
        def launch():
            mp.Process(target=work).start()
        def check(value):
            if value:
                raise ValueError
    """
    answer = traced_in({"worker.py": WORKER, "main.py": main}, Question(symbol="pkg.main:check"))
    assert not borders(answer)


SIGNALLED = """
    import logging
    import os
    import signal
    logger = logging.getLogger(__name__)
    def stop(pid):
        child = psutil.Process(pid)
        child.kill()
    def install():
        def on_quit(number, frame):
            logger.error("Received a signal from a child")
            stop(os.getpid())
        signal.signal(signal.SIGQUIT, on_quit)
"""


def test_the_handler_of_a_signal_leads_to_who_sends_it() -> None:
    files = {"worker.py": WORKER, "main.py": SIGNALLED}
    line = SIGNALLED.split("\n").index('            logger.error("Received a signal from a child")') + 1
    answer = traced_in(files, Question(place=f"pkg/main.py:{line}"))
    steps = {(step.kind, step.text) for step in all_steps(answer)}
    assert ("signal", "install.on_quit() runs on SIGQUIT") in steps
    assert ("sender", "parent.send_signal(signal.SIGQUIT)") in steps
    assert set(borders(answer)) == {"work"}


def test_who_kills_a_process_of_the_package() -> None:
    """Exit code 137: from SIGKILL through the function that sends it and the handler of another signal to the failure."""
    files = {"worker.py": WORKER, "main.py": "import psutil\n" + "\n".join(line[4:] for line in SIGNALLED.split("\n"))}
    answer = trace(package(files), Question(signal="SIGKILL", follow=("pkg",)))
    texts = [step.text for step in all_steps(answer) if step.kind in ("sender", "signal")]
    assert {"child.kill()", "stop(os.getpid())", "install.on_quit() runs on SIGQUIT"} <= set(texts)
    assert set(borders(answer)) == {"work"}


def test_a_signal_that_nobody_sends() -> None:
    answer = trace(package({"m.py": "x = 1\n"}), Question(signal="SIGKILL", follow=("pkg",)))
    assert "nothing in the packages that were given sends SIGKILL" in answer.problem


def test_handlers_that_send_to_each_other_in_a_circle() -> None:
    files = {"m.py": """
        import os
        import signal
        def one(number, frame):
            os.kill(1, signal.SIGUSR2)
        def two(number, frame):
            os.kill(1, signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, one)
        signal.signal(signal.SIGUSR2, two)
    """}  # fmt: skip
    answer = traced_in(files, Question(place="pkg/m.py:5"))
    assert {"one() runs on SIGUSR1", "two() runs on SIGUSR2"} <= {step.text for step in all_steps(answer)}


def raised(*frames: tuple[str, int, str]) -> Question:
    return Question(raised=RaisedException("ValueError", "no", tuple(Frame(*frame, "") for frame in frames)))


CALLED = """
    import os
    def check(level):
        if level > 3:
            raise ValueError("no")
    def from_one():
        check(os.environ.get("ONE"))
    def from_two():
        if os.environ.get("WHEN"):
            check(os.environ.get("TWO"))
"""


def test_a_parameter_has_the_value_of_the_call_in_the_traceback() -> None:
    answer = traced_in({"m.py": CALLED}, raised(("pkg/m.py", 10, "from_two"), ("pkg/m.py", 5, "check")))
    assert {each.name for each in answer.switches} == {"TWO", "WHEN"}
    assert [step.requires[0].text for step in all_steps(answer) if step.kind == "caller"] == ['os.environ.get("WHEN")']


def test_without_the_callers_every_call_is_a_candidate() -> None:
    answer = traced_in({"m.py": CALLED}, raised(("pkg/m.py", 5, "check")))
    assert {each.name for each in answer.switches} == {"ONE", "TWO"}


def test_a_file_that_is_written_only_when_it_is_not_there() -> None:
    files = {"m.py": """
        import subprocess
        from pathlib import Path
        class Spec:
            @property
            def plan_path(self):
                return Path("/cache") / "plan"
            def write_plan(self):
                target = self.plan_path
                target.write_text("what to do")
            def build(self):
                if not self.plan_path.exists():
                    self.write_plan()
                run(self.plan_path)
        def run(plan_path):
            try:
                subprocess.run(["make", "-f", str(plan_path)], check=True)
            except subprocess.CalledProcessError as error:
                raise RuntimeError("build failed") from error
    """}  # fmt: skip
    answer = traced_in(files, Question(symbol="pkg.m:run"))
    written = [step for step in all_steps(answer) if step.text.startswith("the file at .plan_path:")]
    assert [step.text for step in written] == ['the file at .plan_path: target.write_text("what to do")']
    assert [[each.text for each in step.requires] for step in written[0].steps] == [["not self.plan_path.exists()"]]
    assert "make -f {str(plan_path)}" in {each.name for each in answer.switches if each.kind == "subprocess"}


def test_a_key_that_is_missing_is_what_a_bare_handler_hides() -> None:
    files = {"m.py": """
        def read(config):
            try:
                extra = getattr(config, "extra", None)
                layers = extra["layers"]
            except:
                layers = None
            return layers
    """}  # fmt: skip
    answer = traced_in(files, Question(symbol="pkg.m:read"))
    (swallow,) = answer.swallowed
    assert swallow.may_hide == ('extra["layers"] (pkg/m.py:5)',)
