"""`--backend gpu` and `--backend lpai`: what can be prepared on this host, what the stock tools say of it, and what is said about the rest.
That the graph inside is right is tests/qnn/test_dlc.c, where Qualcomm's own reader composes it and the simulator runs it."""

import io
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
LLAMA = ROOT / "tests/data/checkpoints/llama"
QNN = os.environ.get("GENAI_QNN_DIR", "")

pytestmark = [
    pytest.mark.skipif(not GENAI.exists(), reason="genai is not built"),
    pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libQnnIr.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)"),
]

RUN = ["--context", "32", "--prefill-ar", "8"]
GPU = ["--soc", "SM8650", "--backend", "gpu", "--skip", "quantization", "--mode", "kv", "--until", "compilation"]


def genai(*arguments):
    return subprocess.run([GENAI, *map(str, arguments)], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    done = genai("run", LLAMA, *RUN, *GPU, "--artifact-dir", folder, "--etrecord")
    assert done.returncode == 0, done.stderr
    names = ["llama.SM8650.gpu.etrecord", "llama.SM8650.gpu.pte", "llama.SM8650.gpu.run.json"]
    assert sorted(path.name for path in folder.glob("llama*")) == names  # apart from what a run for the HTP writes
    return folder / "llama.SM8650.gpu.pte"


def test_the_stock_tools_read_the_program_for_the_gpu(program):
    pytest.importorskip("executorch")
    from executorch.backends.qualcomm.serialization.qc_schema import QcomChipset, QnnExecuTorchBackendType, QnnExecuTorchGpuPrecision
    from executorch.backends.qualcomm.serialization.qc_schema_serialize import flatbuffer_to_option
    from executorch.exir._serialize._program import deserialize_pte_binary

    read = deserialize_pte_binary(program.read_bytes()).program
    plan = next(plan for plan in read.execution_plan if plan.name == "kv_forward")
    assert len(plan.inputs) == 7 and len(plan.outputs) == 5
    delegate = plan.delegates[0]
    assert delegate.id == "QnnBackend"
    options = flatbuffer_to_option(delegate.compile_specs[0].value)
    assert options.backend_options.backend_type == QnnExecuTorchBackendType.kGpuBackend
    assert options.online_prepare and not options.is_from_context_binary and not options.shared_buffer
    assert options.backend_options.gpu_options.precision == QnnExecuTorchGpuPrecision.kGpuPrecisionUserProvided
    assert options.backend_options.htp_options is None
    assert options.soc_info.soc_model == QcomChipset.SM8650
    payload = read.backend_delegate_data[delegate.processed.index].data  # a DLC: a zip archive, without any header before it
    with zipfile.ZipFile(io.BytesIO(payload)) as dlc:
        assert {"model", "model.params"} <= set(dlc.namelist())
    assert b"kv_forward" in payload and b"input_0_tokens" in payload  # stored without compression; Qualcomm's writer leaves checksums empty


def test_inspect_and_generate_say_what_it_is(program):
    facts = json.loads(genai("inspect", program, "--json").stdout)
    methods = {method["name"]: method for method in facts["methods"]}
    assert methods["kv_forward"]["options"]["backend"] == "gpu"
    assert json.loads(methods["get_genai_provenance"]["values"][0])["backend"] == "gpu"
    assert "prepared on the device" in genai("inspect", program).stdout
    done = genai("generate", program, "--ids", "1,2")
    assert done.returncode == 1 and "for the gpu of a device" in done.stderr


def test_equal_runs_give_equal_programs(program, tmp_path):
    done = genai("run", LLAMA, *RUN, *GPU, "--artifact-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / program.name).read_bytes() == program.read_bytes()


@pytest.mark.parametrize(
    "arguments, code, needle",
    [
        (["--backend", "gpu", "--until", "compilation", "--mode", "kv"], 2, "skip it (--skip quantization)"),
        (["--backend", "gpu", "--until", "compilation", "--skip", "quantization"], 2, "expected kv (--mode kv)"),
        (["--backend", "gpu", "--skip", "quantization", "--mode", "kv", "--ids", "1"], 1, "that needs a device"),
        (["--backend", "gpu", "--skip", "quantization", "--mode", "kv", "--until", "compilation", "--qnn-dir", "/nonexistent"], 1, "libQnnIr.so"),
        (["--backend", "gpu", "--engine", "qairt", "--until", "compilation"], (1, 2), "gpu"),
        (["--backend", "lpai", "--until", "compilation"], 2, "SM8650 has no LPAI that is known"),
        (["--backend", "lpai", "--until", "compilation"], 2, "SM8850 (v6)"),
        (["--backend", "lpai", "--until", "compilation", "--soc", "SM8850"], 1, "libQnnLpai.so"),
        (["--backend", "lpai", "--until", "compilation", "--soc", "SM8850"], 1, "QNN_SDK_ROOT"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(tmp_path, arguments, code, needle):
    soc = [] if "--soc" in arguments else ["--soc", "SM8650"]
    done = genai("run", LLAMA, *RUN, *soc, *arguments, "--artifact-dir", tmp_path / "out")
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), done.stderr
    assert needle in done.stderr
    assert "Stage started" not in done.stderr and not (tmp_path / "out").exists()


def test_a_cancelled_or_failed_run_leaves_nothing(tmp_path):
    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (100 * 1024, 100 * 1024))

    done = subprocess.run(
        [GENAI, "run", LLAMA, *RUN, *GPU, "--artifact-dir", tmp_path], capture_output=True, text=True, timeout=600, preexec_fn=limit
    )
    assert done.returncode != 0
    assert [path.name for path in tmp_path.glob("llama*")] == []
