"""Text takes the columns that a terminal gives it, and lines break where a reader would break them."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.reports.columns import columns_of, cut, cut_apart, cut_inside, filled, padded
from gpuwhy.reports.row import Row


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert columns_of("sm_120a") == 7
    assert columns_of("显存不足") == 8
    assert columns_of("🔥") == 2
    assert columns_of("Ｆ") == 2
    assert columns_of("e\u0301") == 1
    assert columns_of("각") == 2  # and taken apart, as macOS names files:
    assert columns_of("\u1100\u1161\u11a8") == 2


def test_wide_text_keeps_to_the_width() -> None:
    text = "模型 加载 失败 显存 不足 请 检查 驱动 版本 和 工具 链"
    assert all(columns_of(line) <= 24 for line in Row(text, 2, hang=2).wrapped(24))
    assert "".join(Row(text).wrapped(24)).replace(" ", "") == text.replace(" ", "")


def test_running_text_without_blanks_is_broken_and_a_path_is_not() -> None:
    sentence = "显存不足" * 20
    lines = list(filled(sentence, 30, "  ", "    "))
    assert all(columns_of(line) <= 30 for line in lines)
    assert "".join(line.strip() for line in lines) == sentence
    path = "/data/模型/Qwen3-235B-A22B-Instruct-2507-FP8/model-00001-of-00024.safetensors"
    assert f"  {path}" in list(filled(f"cannot open {path}", 40, "", "  "))


def test_a_number_is_no_line_of_its_own() -> None:
    name = "CompilationContext._normalize_cuda_arch"
    assert list(filled(f"3. {name} raises", 40, "  ", "     ")) == [f"  3. {name}", "     raises"]


def test_two_blanks_within_a_line_stay() -> None:
    assert list(filled("a link  [inferred]", 40, "", "")) == ["a link  [inferred]"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), st.integers(4, 60))
def test_nothing_is_lost_and_only_words_are_wider(text: str, width: int) -> None:
    lines = list(filled(text, width, "", ""))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    for line in lines:
        assert columns_of(line) <= width or " " not in line.strip(" ")


def test_what_is_cut_fits() -> None:
    assert cut("gpu017", 10) == "gpu017"
    assert cut("显存不足显存不足", 10) == "显存不..."
    assert columns_of(cut_inside("显" * 200, 81)) <= 81
    line = "model weights take 5.20GiB; " + "x" * 200 + " the KV cache gets -1.05GiB."
    assert cut_inside(line, 80).startswith("model weights take 5.20GiB;")
    assert cut_inside(line, 80).endswith("the KV cache gets -1.05GiB.")


def test_a_table_is_straight_whatever_it_holds() -> None:
    assert {columns_of(padded(each, 12)) for each in ("torch", "飞桨", "🔥", "e\u0301")} == {12}
    assert unicodedata.east_asian_width("飞") == "W"


def test_two_long_texts_are_cut_where_they_differ() -> None:
    same = "/opt/engine/bin/python -m engine --model /data/models/" + "x" * 200
    one, other = cut_apart(f"{same} --tp 4", f"{same} --tp 8 --more", 60)
    assert one != other
    assert "--tp 4" in one
    assert "--tp 8" in other
    assert max(columns_of(one), columns_of(other)) <= 60
    assert cut_apart("580.95.05", "570.86.15", 60) == ("580.95.05", "570.86.15")
    assert cut_apart("a" * 80, "b" * 80, 60) == ("a" * 57 + "...", "b" * 57 + "...")
