"""A warning that is not in the log because another package raised the level of its logger."""

from __future__ import annotations

import pytest
from tests.source.asking import package

from gpuwhy.source.tracing import Question, trace

SPEAKING = """
    import logging
    logger = logging.getLogger("pkg.jit")
    def load(path):
        try:
            value = open(path)
        except Exception as error:
            logger.warning(f"cannot load: {error}")
            value = None
        if value is None:
            raise RuntimeError("nothing")
"""


@pytest.mark.parametrize(
    ("silencing", "is_silenced"),
    [
        ("import logging\nlogging.getLogger('pkg.jit').setLevel(logging.ERROR)\n", True),
        ("import logging\nlogging.getLogger('pkg').setLevel('CRITICAL')\n", True),
        ("import logging\nlogging.getLogger().setLevel(40)\n", True),
        ("import logging\nfrom pkg.speaking import logger as other\nother.setLevel(logging.ERROR)\n", True),
        ("import logging\nimport pkg.speaking as speaking\nspeaking.logger.setLevel(logging.ERROR)\n", True),
        ("import logging\nlogging.getLogger('pkg.jit').setLevel(logging.WARNING)\n", False),
        ("import logging\nlogging.getLogger('pkg.jit.core').setLevel(logging.ERROR)\n", False),
        ("import logging\nlogging.getLogger('pkgs').setLevel(logging.ERROR)\n", False),
        ("import logging\ndef f(level):\n    logging.getLogger('pkg.jit').setLevel(level)\n", False),
    ],
)
def test_where_the_level_is_raised(silencing: str, is_silenced: bool) -> None:
    engine = package({"start.py": silencing}, "engine")
    roots = {**package({"speaking.py": SPEAKING}), **engine}
    answer = trace(roots, Question(symbol="pkg.speaking:load", follow=("engine",)))
    (log,) = [log for swallow in answer.swallowed for log in swallow.logs]
    assert [spot.path for spot in log.silenced_by] == (["engine/start.py"] if is_silenced else [])
