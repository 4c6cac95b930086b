"""What is laid out before any browser sees it: the chain, the time line, the table, the excerpt, the log."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies
from tests.reports.html import samples

from gpuwhy.model.event import Log, LogLine
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.finding import Link
from gpuwhy.reports.html.architectures import matrix_of, matrix_of_facts
from gpuwhy.reports.html.chain import NARROW, WIDE, pictures
from gpuwhy.reports.html.excerpt import excerpt_of
from gpuwhy.reports.html.inert import inert, whole_command
from gpuwhy.reports.html.log_lines import MOST, ShownLogs
from gpuwhy.reports.html.text_width import width, wrapped
from gpuwhy.reports.html.timeline import timeline_of
from gpuwhy.snapshot.given import given


def log(lines: int, name: str = "a.log") -> Log:
    return Log(
        name, "log", tuple(LogLine(number, f"line {number}", f"line {number}") for number in range(1, lines + 1))
    )


@for_all(strategies.text(max_size=600), strategies.integers(40, 500), strategies.integers(1, 6))
def test_wrapped_text_stays_inside_and_is_cut_only_with_a_mark(text: str, room: int, most: int) -> None:
    lines = wrapped(text, room, 14, most)
    assert 1 <= len(lines) <= most
    assert all(width(line, 14) <= room for line in lines)
    if not lines[-1].endswith("…"):
        assert "".join(lines).replace(" ", "") == "".join(text.split())


def test_a_long_word_is_divided_where_paths_are() -> None:
    assert wrapped("site-packages/flashinfer/compilation_context.py", 200, 14, 3)[0].endswith(("/", "-"))


@for_all(strategies.text(max_size=300))
def test_what_is_printed_has_no_control_characters(text: str) -> None:
    assert all(each == "\n" or each.isprintable() or each.isspace() for each in inert(text) if each < "\x7f")


def test_a_heap_of_marks_over_one_letter_is_cut_but_not_in_a_command() -> None:
    heap = "a" + "\u0301" * 50 + "b"
    assert inert(heap) == "a" + "\u0301" * 3 + "…b"
    assert inert("e\u0301") == "e\u0301"
    assert inert(whole_command(heap)) == heap


def test_the_chain_has_the_symptom_on_top_and_boxes_apart() -> None:
    seen = Evidence("seen", "quote", Place("log", "a.log", 3))
    chain = (Link("the cause", seen), Link("hidden", seen, is_swallowed=True), Link("follows", Evidence("so", "", None, Standing.INFERRED)), Link("the symptom", seen))  # fmt: skip
    wide, narrow = pictures(chain)
    assert (wide.width, narrow.width) == (WIDE, NARROW)
    for picture in (wide, narrow):
        assert [node.kind for node in picture.nodes] == ["symptom", "inferred", "swallowed", "cause"]
        assert [node.number for node in picture.nodes] == [4, 3, 2, 1]
        ends = [(node.y, node.y + node.height) for node in picture.nodes]
        assert all(end < following for (_, end), (following, _) in itertools.pairwise(ends))
        assert ends[-1][1] <= picture.height
        assert len(picture.arrows) == 3


def test_a_chain_of_one_link_is_cause_and_symptom() -> None:
    ((node,), _) = [picture.nodes for picture in pictures((Link("both", Evidence("seen", "q", Place("log", "a", 1))),))]
    assert node.kind == "cause"
    assert not pictures(())


def test_kernel_units_and_processes_have_lanes_of_their_own() -> None:
    found = samples.seed()
    line = timeline_of(found.incident, ShownLogs(found.incident.logs, ()))
    assert line is not None
    assert [lane.name for lane in line.lanes] == ["kernel", "sglang-eagle3.service", "sglang.service", "python3 (pid 21200)", "TP0 (pid 21210)"]  # fmt: skip
    assert [mark.at for mark in line.marks] == sorted(mark.at for mark in line.marks)
    assert all(0 <= mark.x <= 100 for mark in line.marks)
    assert [mark.style for mark in line.marks if mark.id == found.incident.primary] == ["primary"]
    assert {mark.style for mark in line.marks if mark.id in found.incident.before} == {"echo"}
    assert line.is_time


def test_an_event_without_a_time_lies_where_the_one_before_it_does() -> None:
    found = samples.seed()
    events = tuple(
        msgspec.structs.replace(event, time=None) if event.id == 8 else event for event in found.incident.events
    )
    line = timeline_of(msgspec.structs.replace(found.incident, events=events), ShownLogs((), ()))
    assert line is not None
    at = {mark.id: mark.at for mark in line.marks}
    assert at[8] == at[7]


def test_without_times_the_axis_counts_lines() -> None:
    found = samples.untimed()
    line = timeline_of(found.incident, ShownLogs((), ()))
    assert line is not None
    assert not line.is_time
    assert line.begin == 1
    assert all(label.startswith("line ") for _, label in line.ticks)


def test_of_too_many_events_the_lesser_ones_are_left_out() -> None:
    found = samples.large(events=900, lines=10)
    line = timeline_of(found.incident, ShownLogs((), ()))
    assert line is not None
    assert len(line.marks) == 600
    assert line.left_out == 300
    assert found.incident.primary in {mark.id for mark in line.marks}


def test_one_event_needs_no_picture() -> None:
    found = samples.seed()
    assert (
        timeline_of(msgspec.structs.replace(found.incident, events=found.incident.events[:1]), ShownLogs((), ()))
        is None
    )


def test_binaries_against_the_gpu_of_the_host() -> None:
    table = matrix_of_facts(given(samples.FACTS).facts)
    assert table is not None
    assert [column.name for column in table.columns if column.is_host] == ["12.0", "12.0a"]
    rows = {row.name: row for row in table.rows}
    assert table.rows[0].name == "flash-attn"
    assert rows["flash-attn"].standing == "bad"
    cell = dict(zip([column.name for column in table.columns], rows["torch"].cells, strict=True))
    assert cell["12.0"] == "code + PTX"
    assert cell["9.0"] == "code"
    assert cell["9.0a"] == ""


def test_no_binaries_no_table() -> None:
    assert matrix_of_facts(given({"cc": "12.0"}).facts) is None


@pytest.mark.parametrize("value", ["nonsense", ["x" * 10_000], 7, None, [None, "sm_", "sm_9999999"]])
def test_odd_lists_of_targets_make_an_empty_row(value: object) -> None:
    table = matrix_of_facts(given({"binary_archs": {"a": value}}).facts)
    assert table is None or all(not any(row.cells) for row in table.rows)


def test_an_inspection_as_a_table() -> None:
    table = matrix_of(samples.inspected())
    assert table is not None
    assert [row.standing for row in table.rows] == ["bad", "good", "good"]


def test_the_excerpt_shows_the_guard_and_the_swallowing_handler() -> None:
    excerpt = excerpt_of(samples.seed())
    assert excerpt is not None
    assert excerpt.is_installed
    roles = {(file.path, line.number): line.role for file in excerpt.files for line in file.lines}
    assert roles["flashinfer/jit/core.py", 109] == "guard"
    assert roles["flashinfer/compilation_context.py", 107] == "swallow"
    assert roles["flashinfer/compilation_context.py", 83] == "raise"
    numbers = [line.number for line in excerpt.files[1].lines]
    assert numbers == sorted(numbers)


def test_without_installed_source_the_excerpt_is_the_traceback_and_what_to_look_for() -> None:
    excerpt = excerpt_of(samples.bare())
    assert excerpt is not None
    assert not excerpt.is_installed
    lines = [line for file in excerpt.files for line in file.lines]
    assert [line.role for line in lines].count("guard") == 1
    assert any(line.role == "swallow" and not line.number for line in lines)


def test_a_small_log_is_shown_whole() -> None:
    shown = ShownLogs([log(300)], [Place("log", "a.log", 7)])
    assert shown.logs[0].is_whole
    assert [line.number for line in shown.logs[0].lines if line.is_cited] == [7]
    assert shown.anchor(Place("log", "a.log", 300)) == "log-1-300"


def test_of_a_large_log_the_neighbourhood_of_cited_lines_is_shown() -> None:
    shown = ShownLogs([log(50_000)], [Place("log", "a.log", 20_000), Place("log", "a.log", 40_000)])
    numbers = [line.number for line in shown.logs[0].lines]
    assert numbers == [*range(19_988, 20_013), *range(39_988, 40_013)]
    assert [line.before for line in shown.logs[0].lines if line.before] == [19_987, 19_975]
    assert not shown.logs[0].is_whole
    assert shown.anchor(Place("log", "a.log", 1)) == ""


def test_many_cited_lines_are_bounded_and_come_before_their_neighbours() -> None:
    cited = [Place("log", "a.log", number) for number in range(1, 50_000, 40)]
    shown = ShownLogs([log(50_000), log(10, "b.log")], cited)
    assert sum(len(each.lines) for each in shown.logs) <= MOST
    assert {place.line for place in cited} <= {line.number for line in shown.logs[0].lines}


def test_further_lines_of_one_record_have_no_anchor_of_their_own() -> None:
    record = Log(
        "a.log", "journal", (LogLine(3, "first", "first"), LogLine(3, "second", "second"), LogLine(4, "x", "x"))
    )
    assert [line.anchor for line in ShownLogs([record], ()).logs[0].lines] == ["log-1-3", "", "log-1-4"]
