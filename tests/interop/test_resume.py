"""Runs that are resumed, with the real compiler and both engines: what a second run takes from the first, and what is left of a run that was killed
at any moment. The model is the `llama` fixture (half a second to compile).

The vendor numbers operators per process, so that equal bytes need fresh processes (docs/formats/qnn.md): every run here is one.
"""

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
LLAMA = ROOT / "tests/data/checkpoints/llama"
QNN = os.environ.get("GENAI_QNN_DIR", "")
KILLS, SEED = {"executorch": 50, "qairt": 15}, 20261130
PROGRAMS = ["llama.SM8650.pte", "llama.SM8650.sim.pte"]
BUNDLES = {
    "llama.SM8650.genie": ["SHA256SUMS", "genie_config.json", "htp_backend_ext_config.json", "model.bin", "no_tokenizer.json", "provenance.json"],
    "llama.SM8650.sim.genie": ["SHA256SUMS", "genie_config.json", "model.bin", "no_tokenizer.json", "provenance.json"],
}

pytestmark = [
    pytest.mark.skipif(not GENAI.exists(), reason="genai is not built"),
    pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libQnnHtp.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)"),
]


def files(folder):
    """Every file but the lock and the account of the last run; records without the part of their names that the key gives."""
    others = {".genai.lock", "llama.SM8650.run.json"}
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name not in others)
    return [re.sub(r"-[0-9a-f]{16}\.", "-KEY.", name) for name in found]


class Flow:
    """One engine's runs, up to the artifacts."""

    def __init__(self, engine):
        self.engine = engine
        self.artifacts = PROGRAMS if engine == "executorch" else [f"{folder}/{name}" for folder, names in BUNDLES.items() for name in names]
        self.binary = "llama.SM8650.pte" if engine == "executorch" else "llama.SM8650.genie/model.bin"
        self.complete = sorted([*self.artifacts, ".genai/compilation-KEY.json", ".genai/quantization-KEY.bin"])

    def command(self, folder, *more):
        fixed = ["--soc", "SM8650", "--context", "32", "--prefill-ar", "8", "--calibration-samples", "1", "--threads", "1", "--engine", self.engine]
        return [str(word) for word in [GENAI, "run", LLAMA, *fixed, "--until", "compilation", "--artifact-dir", folder, "--json", *more]]

    def run(self, folder, *more):
        done = subprocess.run(self.command(folder, *more), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        facts = json.loads(done.stdout)
        return facts, {stage["stage"]: stage for stage in facts["stages"]}

    def hashes(self, folder):
        return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in self.artifacts}


@pytest.fixture(scope="module", params=["executorch", "qairt"])
def flow(request, tmp_path_factory):
    """With the artifacts of runs that nobody disturbed, and how long such a run takes."""
    flow = Flow(request.param)
    seen, seconds = [], []
    for _ in range(3):
        folder = tmp_path_factory.mktemp("undisturbed")
        started = time.monotonic()
        flow.run(folder)
        seconds.append(time.monotonic() - started)
        assert files(folder) == flow.complete
        seen.append(flow.hashes(folder))
    assert seen[0] == seen[1] == seen[2]
    flow.expected, flow.seconds = seen[0], sorted(seconds)[1]
    return flow


def test_a_second_run_reuses_what_the_first_stored(tmp_path, flow):
    first, stages = flow.run(tmp_path)
    assert [stages[name]["state"] for name in ("quantization", "compilation")] == ["completed", "completed"]
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in flow.artifacts}
    second, stages = flow.run(tmp_path)
    assert [stages[name]["state"] for name in ("quantization", "compilation")] == ["reused", "reused"]
    assert Path(stages["compilation"]["reused_from"]).is_file()
    assert second["artifacts"] == first["artifacts"]
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in flow.artifacts} == before
    assert flow.hashes(tmp_path) == flow.expected


def test_no_cache_computes_everything_again(tmp_path, flow):
    flow.run(tmp_path)
    _, stages = flow.run(tmp_path, "--no-cache")
    assert [stages[name]["state"] for name in ("quantization", "compilation")] == ["completed", "completed"]
    assert flow.hashes(tmp_path) == flow.expected
    assert files(tmp_path) == flow.complete


def test_from_compilation_takes_the_stored_calibration(tmp_path, flow):
    refused = subprocess.run(flow.command(tmp_path, "--from", "compilation"), capture_output=True, text=True)
    assert refused.returncode == 2
    assert "holds no result of quantization for these inputs, options and versions; run without it once" in refused.stderr
    flow.run(tmp_path)
    _, stages = flow.run(tmp_path, "--from", "compilation")
    assert [stages[name]["state"] for name in ("quantization", "compilation")] == ["reused", "completed"]
    assert "quantization-" in stages["quantization"]["reused_from"]
    assert flow.hashes(tmp_path) == flow.expected


def test_other_options_and_damaged_artifacts_are_compiled_again(tmp_path, flow):
    flow.run(tmp_path)
    _, stages = flow.run(tmp_path, "--set", "optimization_level=2")
    assert [stages[name]["state"] for name in ("quantization", "compilation")] == ["reused", "completed"]
    _, stages = flow.run(tmp_path)
    assert [stages[name]["state"] for name in ("quantization", "compilation")] == ["reused", "completed"]
    with open(tmp_path / flow.binary, "r+b") as file:
        file.seek(-1000, os.SEEK_END)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    _, stages = flow.run(tmp_path)
    assert [stages[name]["state"] for name in ("quantization", "compilation")] == ["reused", "completed"]
    assert flow.hashes(tmp_path) == flow.expected


def test_an_artifact_is_reused_in_the_same_precision_only(tmp_path):
    flow = Flow("executorch")  # a bundle is always quantized
    _, stages = flow.run(tmp_path, "--skip", "quantization")
    assert stages["compilation"]["state"] == "completed"
    _, stages = flow.run(tmp_path)
    assert [stages[name]["state"] for name in ("quantization", "compilation")] == ["completed", "completed"]
    _, stages = flow.run(tmp_path, "--skip", "quantization")
    assert stages["compilation"]["state"] == "completed"
    _, stages = flow.run(tmp_path, "--skip", "quantization")
    assert stages["compilation"]["state"] == "reused"


def processes_of(folder):
    """Ids of processes whose command line names the folder: a forked child has its parent's."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def test_killed_at_any_moment_a_run_is_resumed_to_the_same_bytes(tmp_path, flow):
    moments = random.Random(SEED)
    kills, killed, found = KILLS[flow.engine], 0, set()
    for number in range(3 * kills):  # a run may end before its moment comes
        if killed == kills:
            break
        folder = tmp_path / str(number)
        process = subprocess.Popen(flow.command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, flow.seconds))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        patience = time.monotonic() + 5
        while processes_of(f"{folder}\0") and time.monotonic() < patience:
            time.sleep(0.01)
        assert processes_of(f"{folder}\0") == []  # the child that compiles for the simulator dies with its parent
        found.add(tuple(files(folder)) if folder.exists() else ())
        flow.run(folder)
        assert flow.hashes(folder) == flow.expected, f"kill {number}"
        assert files(folder) == flow.complete, f"kill {number}"
    assert killed == kills
    assert len(found) >= 2, found  # and not all in the same state
