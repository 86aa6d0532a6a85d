#!/usr/bin/env python3
"""Checkpoint to device artifact: genai beside the upstream ExecuTorch flow, as whole processes.

    bench/compile.py [--model GGUF] [--genai build/genai] [--runs 3] [--peer 'COMMAND'] [--simulator]

Our side is measured in this run: wall time and peak memory of `genai run --until compilation` without the simulator's twin, and the part of it that
the vendor's finalize calls take. The peer's side is the figure recorded for it on a 2-core, 24 GB machine, unless --peer gives its command, which is
then run once and measured in the same way. --simulator also times one prefill and one decode call of the simulator's artifact.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "genai"
RECORDED = {"seconds": 940.0, "peak": 9.0 * 2**30, "bytes": 200_982_016, "prefill": 27.6, "decode": 6.7}


def measure(command):
    """Wall seconds, peak bytes of the largest process, standard output."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed with status {status}")
    return time.monotonic() - started, usage.ru_maxrss * 1024, output


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=CACHE / "models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--genai", default=ROOT / "build/genai")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peer", help="the peer's command, to be run afresh")
    parser.add_argument("--simulator", action="store_true", help="also time calls of the simulator")
    options = parser.parse_args()
    peer = dict(RECORDED)
    if options.peer:
        peer["seconds"], peer["peak"], _ = measure(shlex.split(options.peer))
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        base = [str(options.genai), "run", str(options.model), "--soc", "SM8650", "--until", "compilation", "--no-cache", "--json", "--artifact-dir", folder]
        for _ in range(options.runs):
            seconds, peak, output = measure([*base, "--twin", "off"])
            facts = json.loads(output)
            numbers = facts["statistics"]
            runs.append((seconds, peak, seconds / numbers["device.finalize_seconds"], numbers["device.finalize_seconds"], facts["artifacts"][0]["bytes"]))
        seconds, peak, over, finalize, size = (statistics.median(column) for column in zip(*runs))
        print(f"{options.runs} runs, medians (the peer: {'measured now' if options.peer else 'recorded figures'})")
        print(f"{'':34}{'genai':>12}{'peer':>12}{'peer/genai':>12}")
        for name, ours, theirs, unit in (
            ("checkpoint to .pte, s", seconds, peer["seconds"], 1),
            ("peak memory, GB", peak, peer["peak"], 1e9),
            ("device artifact, MB", size, peer["bytes"], 1e6),
        ):
            print(f"{name:34}{ours / unit:12.2f}{theirs / unit:12.2f}{theirs / ours:12.2f}")
        print(f"{'vendor finalize, s':34}{finalize:12.2f}")
        print(f"{'total / vendor finalize':34}{over:12.2f}")
        if options.simulator:
            measure([*base, "--twin", "inline"])
            artifact = next(Path(folder).glob("*.sim.pte"))
            ids = ",".join(str(100 + i) for i in range(128))
            for name, ar, some in (("prefill", "128", ids), ("decode", "1", "100")):
                out = Path(folder) / "logits"
                _, _, text = measure([str(options.genai), "logits", str(artifact), "--ids", some, "--on", "htp", "--ar", ar, "--out", str(out), "--json"])
                call = json.loads(text)["seconds"]
                print(f"{'simulator, ' + name + ' call, s':34}{call:12.2f}{peer[name]:12.2f}{peer[name] / call:12.2f}")


if __name__ == "__main__":
    main()
