"""Runs one task on each node of a Ray cluster; started as a program of its own by the Python that has the cluster's Ray.

Reads one line of JSON (``address``, and for a run ``nodes``, ``line``, ``stdin`` in Base64, ``limit``, ``concurrency``,
``rate``) and prints JSON lines: first the nodes, then one for each that is begun, and one for each that ended. Needs
nothing but Ray: no other part of gpuwhy is there.
"""

import base64
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from typing import Any

MARK = "gpuwhy-ray "
"""Before each line of ours: Ray and what it loads print to the same output."""


def say(**document: Any) -> None:
    sys.stdout.write(MARK + json.dumps(document) + "\n")
    sys.stdout.flush()


def names_of(listed: list[dict[str, Any]]) -> dict[str, str]:
    """A name for each node: what ``ray start --node-name`` gave it, or its host's; with a part of its id where two share one."""
    named: dict[str, str] = {}
    for node in listed:
        address, given = node.get("NodeManagerAddress", ""), node.get("NodeName", "")
        named[node["NodeID"]] = given if given and given != address else node.get("NodeManagerHostname") or address
    shared = [name for name in named.values() if list(named.values()).count(name) > 1]
    return {identity: name + "-" + identity[:8] if name in shared else name for identity, name in named.items()}


def look(line: str, stdin: bytes, limit: float) -> tuple[bytes, int | None, str, bool]:
    """On the node: the shell line with its input; what it wrote, how it ended, and whether it had to be given up."""
    environment = dict(os.environ)
    # not a public part of Ray: without it the usual place is looked at
    with contextlib.suppress(Exception):
        from ray._private import worker

        environment["GPUWHY_RAY_LOGS"] = worker._global_node.get_logs_dir_path()
    # what Ray set for its own worker is not the node's
    for name in ("LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"):
        environment.pop(name, None)
    process = subprocess.Popen(
        ["sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(stdin, timeout=limit)
        return output, process.returncode, errors[-4000:].decode("utf-8", "replace"), False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        return output, None, errors[-4000:].decode("utf-8", "replace"), True


def run(ray: Any, request: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    remote = ray.remote(look)
    stdin = ray.put(base64.b64decode(request["stdin"]))
    waiting = [node for node in nodes if node["name"] in set(request["nodes"])]
    # a task that does not even start is given up as well
    limit = request["limit"]
    pending: dict[Any, tuple[str, float]] = {}
    begun = 0.0
    while waiting or pending:
        now = time.monotonic()
        if (
            waiting
            and len(pending) < request["concurrency"]
            and (not request["rate"] or now >= begun + 1 / request["rate"])
        ):
            node = waiting.pop(0)
            begun = now
            place = NodeAffinitySchedulingStrategy(node["id"], soft=False)
            reference = remote.options(num_cpus=0, max_retries=0, scheduling_strategy=place).remote(
                request["line"], stdin, limit
            )
            pending[reference] = (node["name"], now)
            say(started=node["name"])
            continue
        done, _ = ray.wait(list(pending), timeout=0.2) if pending else ([], [])
        for reference in done:
            name, _ = pending.pop(reference)
            try:
                output, status, errors, is_over = ray.get(reference, timeout=60)
                say(ended=name, output=base64.b64encode(output).decode(), status=status, errors=errors, is_over=is_over)
            except Exception as error:  # noqa: BLE001 - whatever a task may fail with, told of its node
                say(ended=name, output="", failure=type(error).__name__ + ": " + str(error)[:2000])
        for reference, (name, since) in list(pending.items()):
            if time.monotonic() - since > limit + 20:
                pending.pop(reference)
                with contextlib.suppress(Exception):
                    ray.cancel(reference, force=True)
                say(ended=name, output="", is_over=True)
        if not pending and waiting:
            time.sleep(0.05)


def main() -> None:
    request = json.loads(sys.stdin.readline())
    try:
        import ray
    except ImportError as error:
        say(failure="import", message=str(error))
        return
    try:
        ray.init(address=request["address"], log_to_driver=False, logging_level=logging.ERROR, configure_logging=True)
        listed = ray.nodes()
    except Exception as error:  # noqa: BLE001 - whatever Ray may raise, told to whoever asked
        say(failure="connect", message=type(error).__name__ + ": " + str(error)[:2000])
        return
    names = names_of(listed)
    nodes = [
        {
            "name": names[node["NodeID"]],
            "id": node["NodeID"],
            "address": node.get("NodeManagerAddress", ""),
            "is_alive": bool(node.get("Alive", node.get("alive"))),
            "reason": str(node.get("DeathReasonMessage") or "")[:500],
        }
        for node in listed
    ]
    say(nodes=nodes)
    if "nodes" in request:
        run(ray, request, [node for node in nodes if node["is_alive"]])
    ray.shutdown()


if __name__ == "__main__":
    main()
