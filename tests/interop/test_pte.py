"""Our .pte in the hands of stock ExecuTorch: its deserializer reads what we wrote, its runtime executes it.

The context binary and the methods come from the upstream reference file, re-wrapped by pte_write (tests/executorch/test_pte_rewrap.c), so both
files must give the same methods and the same outputs, bit for bit.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

TESTS = Path(__file__).resolve().parent.parent
UPSTREAM = TESTS.parent.parent / "shared/fixtures/pte/stories260k_hybrid_llama_qnn.pte"
REWRAP = Path(os.environ.get("GENAI_BUILD_DIR", TESTS.parent / "build")) / "tests/test_executorch_pte_rewrap"

sys.path.insert(0, str(TESTS / "tools"))
stock = pytest.importorskip("stock_executorch")
pytest.importorskip("executorch")

pytestmark = [
    pytest.mark.skipif(not UPSTREAM.exists(), reason=f"{UPSTREAM.name} is absent"),
    pytest.mark.skipif(not REWRAP.exists(), reason="test_executorch_pte_rewrap is not built"),
]


@pytest.fixture(scope="module")
def rewrapped(tmp_path_factory):
    path = tmp_path_factory.mktemp("pte") / "rewrapped.pte"
    environment = dict(os.environ, GENAI_REWRAP_INPUT=str(UPSTREAM), GENAI_REWRAP_OUTPUT=str(path))
    folder = path.parent
    subprocess.run([REWRAP], env=environment, check=True, cwd=folder, capture_output=True)
    return path


def deserialize(path):
    from executorch.exir._serialize._program import deserialize_pte_binary

    return deserialize_pte_binary(path.read_bytes()).program


def test_deserializer_reads_the_same_methods(rewrapped):
    import make_pte_reference

    ours, theirs = deserialize(rewrapped), deserialize(UPSTREAM)
    assert ours.version == theirs.version == 0
    assert [plan.name for plan in ours.execution_plan] == [plan.name for plan in theirs.execution_plan]
    for a, b in zip(ours.execution_plan, theirs.execution_plan):
        a, b = make_pte_reference.method(ours, a), make_pte_reference.method(theirs, b)
        if "payload" in b:
            assert a["payload"].pop("signature") != b["payload"].pop("signature")
        assert a == b


def test_option_block_is_upstreams(rewrapped):
    from executorch.backends.qualcomm.serialization.qc_schema_serialize import flatbuffer_to_option

    def block(program):
        blocks = {bytes(plan.delegates[0].compile_specs[0].value) for plan in program.execution_plan if plan.delegates}
        assert len(blocks) == 1
        return flatbuffer_to_option(blocks.pop())

    ours, theirs = block(deserialize(rewrapped)), block(deserialize(UPSTREAM))
    assert not ours.use_mha2sha  # an option of upstream's compiler, which had no part in our graphs
    theirs.use_mha2sha = False
    assert ours == theirs


def test_plan_details(rewrapped):
    from torch.utils._pytree import treespec_loads

    program = deserialize(rewrapped)
    for plan in program.execution_plan:
        assert plan.non_const_buffer_sizes == ([0, 0] if plan.delegates else [0])
        assert len(plan.chains) == 1 and plan.operators == []
        assert treespec_loads(plan.container_meta_type.encoded_out_str).num_leaves == len(plan.outputs)
        if plan.delegates:
            assert treespec_loads(plan.container_meta_type.encoded_inp_str).num_leaves == len(plan.inputs)
            assert [spec.key for spec in plan.delegates[0].compile_specs] == ["qnn_compile_spec"]


@pytest.mark.skipif(not stock.library_path(), reason="GENAI_QNN_DIR names no QNN libraries")
def test_runtime_executes_with_the_same_outputs(rewrapped):
    calls = [("prefill_forward", None), ("kv_forward", None), ("get_n_layers", []), ("get_kv_output_3_quant_attr", [])]
    ours, theirs = stock.execute(str(rewrapped), calls), stock.execute(str(UPSTREAM), calls)
    for a, b in zip(ours[:2], theirs[:2]):
        assert len(a) == len(b) == 11
        for mine, other in zip(a, b):
            assert mine.dtype == other.dtype
            numpy.testing.assert_array_equal(mine, other)
        assert len(numpy.unique(a[0])) > 100  # logits, not zeros
    assert ours[2:] == theirs[2:]
    recorded = json.loads((TESTS / "data/pte/stories260k.json").read_text())["methods"]
    values = {method["name"]: [value["value"] for value in method["values"]] for method in recorded}
    assert ours[2] == values["get_n_layers"]
    assert ours[3] == values["get_kv_output_3_quant_attr"]
