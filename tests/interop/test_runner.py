"""Our runner beside stock ExecuTorch 1.5.1 (its QNN backend, the same libraries): the same logits, bit for bit, for prefill and for decode, on
artifacts of ours and on the upstream reference file.

Stock ExecuTorch is driven here the way its own C++ runner does it: new tokens at the end of the window, a mask that selects, new keys and values
copied into the caches behind the ones already there.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
LLAMA = ROOT / "tests/data/checkpoints/llama"
STORIES = ROOT.parent / "shared/fixtures/checkpoints/stories260K.bin"
UPSTREAM = ROOT.parent / "shared/fixtures/pte/stories260k_hybrid_llama_qnn.pte"
QNN = os.environ.get("GENAI_QNN_DIR", "")

stock = pytest.importorskip("stock_executorch")
pytest.importorskip("executorch")

pytestmark = [
    pytest.mark.skipif(not GENAI.exists(), reason="genai is not built"),
    pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libQnnHtp.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)"),
]


def genai(*arguments):
    done = subprocess.run([GENAI, *map(str, arguments)], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def methods_of(path):
    return {m["name"]: m for m in json.loads(genai("inspect", path, "--json"))["methods"]}


class Method:
    """One method as the plan has it: inputs tokens, mask, positions, keys, values; outputs logits, keys, values. `order` gives for each role the
    position in the plan."""

    def __init__(self, facts):
        self.shapes = [tuple(t["shape"]) for t in facts["inputs"]]
        self.types = [{"i32": "int32", "u16": "uint16", "u8": "uint8"}[t["type"]] for t in facts["inputs"]]
        self.layers = (len(facts["outputs"]) - 1) // 2
        self.ar = self.shapes[0][1]
        self.context = self.shapes[1][-1]
        logits = [t for t in facts["graph"]["outputs"] if t["shape"] == facts["outputs"][0]["shape"]]
        assert len(logits) == 1
        self.scale, self.offset = numpy.float32(logits[0]["scale"]), logits[0]["offset"]


class Stock:
    """A sequence driven through stock ExecuTorch, one process per call."""

    def __init__(self, path):
        self.path = path
        facts = methods_of(path)
        self.methods = {name: Method(facts[name]) for name in ("kv_forward", "prefill_forward")}
        self.past = 0
        decode = self.methods["kv_forward"]
        self.keys = [numpy.zeros((*decode.shapes[3 + i][:3], decode.context), decode.types[3 + i]) for i in range(decode.layers)]
        first_value = 3 + decode.layers
        self.values = [
            numpy.zeros((*decode.shapes[first_value + i][:2], decode.context, decode.shapes[first_value + i][3]), decode.types[first_value + i])
            for i in range(decode.layers)
        ]

    def call(self, name, ids):
        """Logits of the AR tokens `ids`, as real numbers."""
        m = self.methods[name]
        assert len(ids) == m.ar
        kept = m.context - m.ar
        top = numpy.iinfo(m.types[1]).max
        mask = numpy.zeros(m.shapes[1], m.types[1])
        mask[..., : self.past] = top
        for i in range(m.ar):
            mask[0, 0, i, kept : kept + i + 1] = top
        inputs = [numpy.array([ids], "int32"), mask, numpy.arange(self.past, self.past + m.ar, dtype="int32")[None]]
        inputs += [numpy.ascontiguousarray(k[..., :kept]) for k in self.keys]
        inputs += [numpy.ascontiguousarray(v[:, :, :kept]) for v in self.values]
        outputs = stock.execute(str(self.path), [(name, inputs)])[0]
        for i in range(m.layers):
            self.keys[i][..., self.past : self.past + m.ar] = outputs[1 + i]
            self.values[i][:, :, self.past : self.past + m.ar] = outputs[1 + m.layers + i]
        self.past += m.ar
        logits = outputs[0].reshape(m.ar, -1).astype(numpy.int64)
        return ((logits + m.offset).astype(numpy.float32) * m.scale).astype(numpy.float32)


def ours(path, ids, ar, folder):
    out = folder / f"ours_{ar}.f32"
    genai("logits", path, "--ids", ",".join(map(str, ids)), "--on", "htp", "--ar", ar, "--out", out)
    return numpy.fromfile(out, numpy.float32).reshape(len(ids), -1)


def check(path, ids, folder):
    sequence = Stock(path)
    ar = sequence.methods["prefill_forward"].ar
    assert len(ids) == 2 * ar
    expected = numpy.concatenate([sequence.call("prefill_forward", ids[:ar]), sequence.call("prefill_forward", ids[ar:])])
    numpy.testing.assert_array_equal(ours(path, ids, ar, folder), expected)
    sequence = Stock(path)
    few = ids[:3]
    expected = numpy.concatenate([sequence.call("kv_forward", [token]) for token in few])
    numpy.testing.assert_array_equal(ours(path, few, 1, folder), expected)
    assert len(numpy.unique(expected)) > 100


@pytest.mark.parametrize("kv_bits", [8, 16])
def test_our_artifact_in_stock_executorch(tmp_path, kv_bits):
    shipped = json.loads(genai("recipes", "--json"))[0]
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(dict(shipped, name="test", kv_bits=kv_bits)))
    genai(
        *["run", LLAMA, "--soc", "SM8650", "--until", "compilation", "--context", 32, "--prefill-ar", 8, "--recipe", recipe],
        *["--artifact-dir", tmp_path, "--calibration-samples", 2],
    )
    check(tmp_path / "llama.SM8650.sim.pte", [5, 17, 300, 2, 9, 81, 44, 7, 250, 3, 3, 100, 61, 12, 0, 319], tmp_path)


@pytest.mark.skipif(not UPSTREAM.exists(), reason="the upstream reference file is absent")
def test_the_upstream_file_in_our_runner(tmp_path):
    check(UPSTREAM, [(i * 37 + 1) % 512 for i in range(64)], tmp_path)


def test_constant_methods_read_by_stock_executorch(tmp_path):
    genai(
        *["run", LLAMA, "--soc", "SM8650", "--until", "compilation", "--context", 32, "--prefill-ar", 8, "--skip", "quantization"],
        *["--artifact-dir", tmp_path],
    )
    path = tmp_path / "llama.SM8650.sim.pte"
    names = ["get_n_layers", "get_vocab_size", "get_max_context_len", "get_use_kv_cache", "get_n_kv_heads", "get_head_dim"]
    values = stock.execute(str(path), [(name, []) for name in names])
    assert [v[0] for v in values] == [2, 320, 32, True, 2, 16]


@pytest.mark.skipif(not STORIES.exists(), reason="stories260K.bin is absent")
def test_stories_continue_as_in_float(tmp_path):
    """The llama2.c model compiled by us, in half precision, continues a sequence greedily as the float host executor does. (Its own
    continuation is no text, in transformers too, and its largest logits lie close together: 8-bit weights choose others.)"""
    prompt = [1, 403, 407, 261, 378, 432, 383]
    done = json.loads(
        genai(
            *["run", STORIES, "--soc", "SM8650", "--ids", ",".join(map(str, prompt)), "--context", 128, "--prefill-ar", 32],
            *["--skip", "quantization", "--max-new-tokens", 24, "--artifact-dir", tmp_path, "--json"],
        )
    )
    ids = done["results"][0]["ids"]
    out = tmp_path / "float.f32"
    genai("logits", STORIES, "--ids", ",".join(map(str, prompt + ids)), "--on", "float", "--out", out)
    rows = numpy.fromfile(out, numpy.float32).reshape(len(prompt) + len(ids), -1)
    rows = rows[len(prompt) - 1 : -1]
    assert ids[:8] == rows[:8].argmax(axis=1).tolist()
    behind = rows.max(axis=1) - rows[numpy.arange(len(ids)), ids]
    assert (behind < 0.02 * numpy.abs(rows).max(axis=1)).all(), behind  # where two are as good as equal in half precision, either may come


def test_every_prompt_length_gives_the_same_next_token_by_prefill_and_by_decode(tmp_path):
    """Prompts of 1 to AR + 1 tokens: padding, a full block, and a block and one."""
    genai(
        *["run", LLAMA, "--soc", "SM8650", "--until", "compilation", "--context", 32, "--prefill-ar", 8, "--artifact-dir", tmp_path],
        *["--calibration-samples", 2],
    )
    artifact = tmp_path / "llama.SM8650.sim.pte"
    ids = [5, 17, 300, 2, 9, 81, 44, 7, 250]
    by_decode = ours(artifact, ids, 1, tmp_path).argmax(axis=1).tolist()
    for length in range(1, len(ids) + 1):
        by_prefill = ours(artifact, ids[:length], 8, tmp_path).argmax(axis=1).tolist()
        assert by_prefill[-1] == by_decode[length - 1], length
