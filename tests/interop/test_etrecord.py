"""The ETRecord of `genai run --etrecord`, read by the stock parser and inspector of ExecuTorch, with an ETDump of the stock runtime."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
LLAMA = ROOT / "tests/data/checkpoints/llama"
QNN = os.environ.get("GENAI_QNN_DIR", "")

pytestmark = [
    pytest.mark.skipif(not GENAI.exists(), reason="genai is not built"),
    pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libQnnHtp.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)"),
    pytest.mark.skipif(not importlib.util.find_spec("executorch"), reason="executorch is absent"),
    pytest.mark.filterwarnings("ignore"),  # the inspector warns of every argument that has a default
]

RUN = ["--soc", "SM8650", "--context", "32", "--prefill-ar", "8", "--calibration-samples", "1", "--until", "compilation", "--profile"]

# One call of a method by the stock runtime, which reads LD_LIBRARY_PATH when it starts.
PROFILE = """
import sys, torch
from executorch.extension.pybindings.portable_lib import _load_for_executorch
types = {0: torch.uint8, 3: torch.int32, 6: torch.float32, 27: torch.uint16}
program, method, dump = sys.argv[1:]
module = _load_for_executorch(program, enable_etdump=True)
meta = module.method_meta(method)
tensors = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())]
module.run_method(method, tuple(torch.zeros(tuple(t.sizes()), dtype=types[t.dtype()]) for t in tensors))
module.write_etdump_result_to_file(dump, dump + ".debug")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("etrecord")
    done = subprocess.run([GENAI, "run", LLAMA, *RUN, "--artifact-dir", folder, "--etrecord"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert f"etrecord   {folder}/llama.SM8650.etrecord" in done.stderr
    return folder


@pytest.fixture(scope="module")
def devtools():
    """The inspector's package imports pandas for its tables, which these tests do not make."""
    if not importlib.util.find_spec("pandas"):
        stand_in = types.ModuleType("pandas")
        stand_in.__spec__ = importlib.machinery.ModuleSpec("pandas", None)
        stand_in.DataFrame = object
        sys.modules["pandas"] = stand_in
    return pytest.importorskip("executorch.devtools")


@pytest.fixture(scope="module")
def record(run, devtools):
    return devtools.parse_etrecord(str(run / "llama.SM8650.etrecord"))


def test_the_stock_parser_reads_it(record):
    operators = record._delegate_map["kv_forward"]["0"]["delegate_map"]
    assert record._delegate_map["forward"] == record._delegate_map["kv_forward"] == record._delegate_map["prefill_forward"]
    assert record._delegate_map["forward"]["0"]["name"] == "QnnBackend"
    assert sorted(handle for handles in operators.values() for handle in handles) == list(range(1, len(operators) + 1))
    assert record._debug_handle_map["forward"]["0"] == list(range(1, len(operators) + 1))
    assert record._instruction_id_to_num_outs_map == {name: {"0": 5} for name in ("forward", "kv_forward", "prefill_forward")}
    assert {"layer0.attention.q_proj", "layer1.feed_forward.down_proj", "lm_head"} <= set(operators)
    assert set(record.graph_map) == {"kv_forward/forward", "prefill_forward/forward"}


def test_the_program_is_the_graph(record):
    """Shapes and operators as the fixture's configuration has them: hidden 64, feed-forward as its weights, two layers, 8 tokens a call."""
    for name, tokens in (("kv_forward/forward", 1), ("prefill_forward/forward", 8)):
        nodes = {node.name: node for node in record.graph_map[name].graph_module.graph.nodes}
        query = nodes["layer1_attention_q_proj"]
        assert str(query.target) == "aten.convolution.default" and query.args[0].name == "layer1_attention_norm"
        assert tuple(query.meta["val"].shape) == (1, 1, tokens, 64)
        assert query.meta["stack_trace"] == "QNN Conv2d layer1.attention.q_proj"
        assert [str(node.target) for node in nodes.values()].count("aten._softmax.default") == 2
        assert str(nodes["layer0_attention_residual"].target) == "aten.add.Tensor"
        handle = query.meta["debug_handle"]
        assert record._delegate_map["forward"]["0"]["delegate_map"]["layer1.attention.q_proj"] == [handle]
    outputs = [node.name for node in list(record.edge_dialect_program.graph_module.graph.nodes)[-1].args[0]]
    assert outputs[0] == "logits" and len(outputs) == 5


def test_the_stock_inspector_joins_it_with_a_profile(run, devtools, tmp_path):
    dump = tmp_path / "profile.etdump"
    libraries = f"{QNN}:{Path(QNN).parent / 'onnxruntime_qnn.libs'}"
    command = [sys.executable, "-c", PROFILE, str(run / "llama.SM8650.sim.pte"), "prefill_forward", str(dump)]
    done = subprocess.run(command, env=dict(os.environ, LD_LIBRARY_PATH=libraries), capture_output=True, text=True, timeout=300)
    assert dump.exists(), done.stderr
    inspector = devtools.Inspector(etdump_path=str(dump), etrecord=str(run / "llama.SM8650.etrecord"))
    events = [event for block in inspector.event_blocks for event in block.events if event.name == "DELEGATE_CALL"]
    assert len(events) == 1
    assert events[0].delegate_backend_name == "QnnBackend"
    assert {"convolution.default", "_softmax.default"} <= {str(kind) for kind in events[0].op_types}
    assert "QNN Conv2d layer0.attention.q_proj" in events[0].stack_traces.values()
    cycles = [event for block in inspector.event_blocks for event in block.events if ":OpId_" in event.name]
    assert len(cycles) >= 100  # one for each operator of two layers
    for event in cycles:
        name = event.name.split(":OpId_")[0]
        (story,) = event.stack_traces.values()
        assert story.split()[2] == name and story.startswith("QNN ")


def test_events_of_the_delegate_find_their_operator(record):
    """QNN's profile names an operator and adds to it; names that are parts of others must not take their events."""
    inspector = pytest.importorskip("executorch.devtools.inspector._inspector")
    operators = record._delegate_map["forward"]["0"]["delegate_map"]
    for name in ("layer1.attention.q_rope.first", "layer1.attention.q_rope", "layer0.attention.scores", "embedding", "embedding_rows"):
        event = inspector.Event(name=name, perf_data=inspector.PerfData([1.0]), delegate_debug_identifier=f"{name}:OpId_7 (cycles)", _instruction_id=0)
        block = inspector.EventBlock(name="Execute", events=[event])
        block._gen_resolve_debug_handles(record._debug_handle_map["forward"], record._delegate_map["forward"], record._instruction_id_to_num_outs_map["forward"])
        assert event.debug_handles == operators[name]


def test_the_archive_is_sound_and_the_same_each_time(run, tmp_path):
    path = run / "llama.SM8650.etrecord"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "ETRECORD_V0"
    done = subprocess.run([GENAI, "run", LLAMA, *RUN, "--artifact-dir", tmp_path, "--etrecord", "--twin", "off"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_without_the_option_there_is_none(tmp_path):
    done = subprocess.run([GENAI, "run", LLAMA, *RUN, "--artifact-dir", tmp_path, "--twin", "off"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.etrecord")) == []
