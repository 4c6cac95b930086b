"""Python's own output: groups, notes, colours, syntax errors, what it ignores, faulthandler."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import events, incident, only, sample


@pytest.mark.parametrize("name", ["python-group.txt", "python-group-colour.txt"])
def test_a_tree_of_exceptions_is_one_event_whose_root_was_raised_first(name: str) -> None:
    (event,) = sample(name).events
    assert event.text.startswith("ZeroDivisionError: division by zero\nwhile warming up")
    types = [block.type for block in event.exceptions]
    assert types[0] == "ZeroDivisionError"
    assert {"ValueError", "OSError", "ExceptionGroup"} <= set(types)
    assert types[-1] == "RuntimeError"
    assert (event.span.first, event.span.last) == (1, 43)
    assert [frame.function for frame in event.exceptions[0].frames] == ["<module>", "f"]


def test_a_note_belongs_to_the_message() -> None:
    found = sample("python-note.txt").primary_event
    assert found is not None
    assert "CUDA error: no kernel image is available\nError details from previous import attempts:" in found.text
    assert (found.tool, found.detail["name"]) == ("cuda", "cudaErrorNoKernelImageForDevice")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("python-syntax.txt", "SyntaxError: invalid syntax"),
        ("python-indentation.txt", "IndentationError: unexpected indent"),
    ],
)
def test_syntax_errors_have_the_place_they_complain_about(name: str, text: str) -> None:
    (event,) = sample(name).events
    assert event.text == text
    assert event.exceptions[0].frames[-1].path.startswith("/srv/app/")


def test_what_python_ignores_ended_nothing_and_each_message_ends_where_the_next_begins() -> None:
    found = sample("python-unraisable.txt")
    ignored, thread, task = found.events
    assert (ignored.text, ignored.is_fatal) == ("ValueError: in del", False)
    assert (thread.text, thread.is_fatal) == ("ZeroDivisionError: division by zero", True)
    assert task.text == "KeyError: 'x'"
    assert found.primary == thread.id


def test_a_fatal_error_has_the_frames_of_its_own_thread() -> None:
    event = sample("faulthandler-segfault.txt").primary_event
    assert event is not None
    assert (event.kind, event.tool, event.detail["signal"]) == ("crash", "python", "11")
    assert [frame.function for frame in event.exceptions[0].frames] == ["<module>", "string_at"]
    aborted = sample("faulthandler-abort.txt").events[0]
    assert aborted.is_echo, "it says how the program ended, not why"
    assert [frame.path for frame in aborted.exceptions[0].frames] == ["<string>"]


def test_a_dump_on_a_timer_tells_of_a_hang() -> None:
    found = sample("faulthandler-timeout.txt")
    assert found.is_failure
    assert found.primary_event is not None
    assert found.primary_event.tool == "hang"


def test_head_and_tail_cut_off() -> None:
    event = only(
        """\
            self.model_runner.init_cublas()
          File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_runner.py", line 300, in initialize
            self.init_attention_backend()
        ValueError: Unsupported head dim 80
        """
    )
    assert event.text == "ValueError: Unsupported head dim 80"
    assert event.exceptions[0].frames[0].line == 300
    event = only(
        """\
        Traceback (most recent call last):
          File "/opt/vllm/v1/engine/core.py", line 699, in run_engine_core
            engine_core = EngineCoreProc(*args, **kwargs)
                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """
    )
    assert event.text == "traceback cut off in run_engine_core"


def test_frames_quoted_below_their_exception() -> None:
    event = only(
        """\
        torch.OutOfMemoryError: Tried to allocate 394.00 MiB.
        ...
          File "/opt/vllm/v1/attention/backends/flashinfer.py", line 753, in _get_workspace_buffer
        """
    )
    assert event.text == "torch.OutOfMemoryError: Tried to allocate 394.00 MiB."
    assert event.exceptions[0].frames[0].function == "_get_workspace_buffer"
    assert (event.span.first, event.span.last) == (1, 3)


def test_a_group_whose_tree_was_cut_off_only_wraps() -> None:
    found = incident(
        """\
          | RuntimeError: Invalid prompt
          +------------------------------------
        ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
        """
    )
    assert found.primary_event is not None
    assert found.primary_event.text == "RuntimeError: Invalid prompt"
    assert events("ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)")[0].is_echo
