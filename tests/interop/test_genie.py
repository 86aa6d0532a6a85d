"""The engine qairt from the command line: Genie bundles, generated from by Qualcomm's libGenie, against the executorch engine over the same model.

Genie brings a prefill, a cache, masks and sampling of its own, so equal greedy ids say that graphs, masks and cache convention are right.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
CHECKPOINTS = ROOT / "tests/data/checkpoints"
QNN = os.environ.get("GENAI_QNN_DIR", "")
PROMPTS = ["7", "7,60,113,166,219,272,5", "7,60,113,166,219,272,5,58", ",".join(str((53 * i + 7) % 96) for i in range(21))]  # AR is 8
COMMON = ["--soc", "SM8650", "--context", "48", "--prefill-ar", "8", "--max-new-tokens", "12"]
IDS = [word for prompt in PROMPTS for word in ("--ids", prompt)]

pytestmark = [
    pytest.mark.skipif(not GENAI.exists(), reason="genai is not built"),
    pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libGenie.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)"),
]


def run(*arguments, code=0, **environment):
    done = subprocess.run([GENAI, *map(str, arguments)], capture_output=True, text=True, timeout=600, env=dict(os.environ, **environment))
    assert done.returncode == code, done.stderr
    return done


def facts(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def answers(report):
    return [(result["ids"], result["end"]) for result in report["results"]]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The llama fixture through the whole pipeline: its report and the simulator's bundle."""
    folder = tmp_path_factory.mktemp("llama")
    report = facts("run", CHECKPOINTS / "llama", "--engine", "qairt", *COMMON, *IDS, "--artifact-dir", folder)
    return report, folder / "llama.SM8650.sim.genie"


def copy(bundle, tmp_path):
    return Path(shutil.copytree(bundle[1], tmp_path / "copy.sim.genie"))


@pytest.mark.parametrize("model", ["llama", "phi3", "glm4", "codegen", "phi4-mini-partial-longrope", "stablelm"])
def test_greedy_ids_equal_those_of_our_own_runner(model, tmp_path):
    genie = facts("run", CHECKPOINTS / model, "--engine", "qairt", *COMMON, *IDS, "--artifact-dir", tmp_path)
    own = facts("run", CHECKPOINTS / model, *COMMON, *IDS, "--artifact-dir", tmp_path)
    assert answers(genie) == answers(own)
    assert all(len(ids) == 12 or end == "stop token" for ids, end in answers(genie))


def test_engines_mix_up_to_compilation(bundle, tmp_path):
    mixed = facts("run", CHECKPOINTS / "llama", "--engine", "compilation=qairt,inference=qairt", *COMMON, *IDS, "--artifact-dir", tmp_path)
    assert answers(mixed) == answers(bundle[0])


@pytest.mark.parametrize("engines", ["compilation=qairt", "inference=qairt", "qairt,inference=executorch"])
def test_engines_that_cannot_work_together_are_refused_at_once(engines, tmp_path):
    said = run("run", CHECKPOINTS / "llama", "--engine", engines, *COMMON, *IDS, "--artifact-dir", tmp_path / "none", code=2).stderr
    assert "Genie bundle" in said and ".pte" in said and "choose one engine for both stages" in said
    assert not (tmp_path / "none").exists()


def test_the_report_lists_both_bundles_whole(bundle):
    listed = {Path(artifact["path"]) for artifact in bundle[0]["artifacts"]}
    folders = {path.parent.name for path in listed}
    assert (bundle[1].parent / "llama.SM8650.run.json").exists()  # beside the bundles, not in one
    assert folders == {"llama.SM8650.genie", "llama.SM8650.sim.genie"}
    for folder in {path.parent for path in listed}:
        assert {path for path in listed if path.parent == folder} == set(folder.iterdir())
        config = json.loads((folder / "genie_config.json").read_text())["dialog"]
        named = [config["tokenizer"]["path"], *config["engine"]["model"]["binary"]["ctx-bins"]]
        named += [config["engine"]["backend"][key] for key in ("extensions",) if key in config["engine"]["backend"]]
        assert all((folder / name).is_file() for name in named)
        for line in (folder / "SHA256SUMS").read_text().splitlines():
            expected, name = line.split("  ")
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
    assert all(result["metrics"]["ttft_seconds"] > 0 and result["metrics"]["decode_seconds"] > 0 for result in bundle[0]["results"])


def test_names_and_shapes_are_genies(bundle):
    binary = facts("inspect", bundle[1])["binary"]
    assert binary["soc_id"] == 57 and binary["htp_arch"] == 75  # SM8650 in Qualcomm's tables
    for graph, m in zip(binary["graphs"], (1, 8)):
        shapes = {tensor["name"]: (tensor["type"], tensor["shape"]) for tensor in graph["inputs"] + graph["outputs"]}
        assert shapes["input_ids"] == ("i32", [1, m]) and shapes["position_ids"] == ("i32", [1, m])
        assert shapes["attention_mask"] == ("u16", [1, 1, m, 48])
        assert shapes["past_key_1_in"] == ("u16", [1, 2, 16, 48 - m]) and shapes["past_value_1_in"] == ("u16", [1, 2, 48 - m, 16])
        assert shapes["past_key_1_out"] == ("u16", [1, 2, 16, m]) and shapes["past_value_1_out"] == ("u16", [1, 2, m, 16])
        assert shapes["logits"][0] == "u16"
        encodings = {t["name"]: (t["scale"], t["offset"]) for t in graph["inputs"] + graph["outputs"] if "scale" in t}
        assert encodings["past_key_1_in"] == encodings["past_key_1_out"]


def test_a_bundle_runs_again_by_folder_and_by_file_from_anywhere(bundle, tmp_path):
    moved = copy(bundle, tmp_path)
    expected = answers(bundle[0])
    for path in (moved, moved / "genie_config.json"):
        assert answers(facts("generate", path, *IDS, "--max-new-tokens", "12")) == expected
    stored = facts("run", CHECKPOINTS / "llama", "--engine", "qairt", "--from", "inference", *COMMON, *IDS, "--artifact-dir", bundle[1].parent)
    assert answers(stored) == expected


def test_only_ids_on_stdout(bundle):
    done = run("generate", bundle[1], "--ids", PROMPTS[0], "--max-new-tokens", "3")
    assert done.stdout == ",".join(map(str, bundle[0]["results"][0]["ids"][:3])) + "\n"


@pytest.mark.parametrize(
    "harm, says",
    [
        (lambda b: (b / "model.bin").unlink(), 'the context binary "'),
        (lambda b: (b / "no_tokenizer.json").unlink(), 'the tokenizer "'),
        (lambda b: (b / "genie_config.json").write_text("{"), "genie_config.json"),
        (lambda b: os.truncate(b / "model.bin", 1000), "is damaged or was changed"),
        (lambda b: (b / "provenance.json").write_text("{}"), "is damaged or was changed"),
        (lambda b: (b / "SHA256SUMS").write_text("nonsense\n"), "no SHA-256"),
        (lambda b: [(b / "SHA256SUMS").unlink(), os.truncate(b / "model.bin", 1000)], "Genie error -1 (general error)"),
    ],
    ids=["no-binary", "no-tokenizer", "no-json", "short-binary", "record", "sums", "short-binary-without-sums"],
)
def test_a_damaged_bundle_is_refused_by_name(bundle, tmp_path, harm, says):
    broken = copy(bundle, tmp_path)
    harm(broken)
    done = run("run", CHECKPOINTS / "llama", "--engine", "qairt", "--from", "inference", *COMMON, "--ids", "7",
               "--artifact-dir", make_place(broken, tmp_path), code=1)
    assert says in done.stderr, done.stderr


def make_place(broken, tmp_path):
    """The damaged bundle where `run --from inference` looks for it."""
    place = tmp_path / "place"
    place.mkdir()
    broken.rename(place / "llama.SM8650.sim.genie")
    return place


def test_a_bundle_that_is_not_there_and_the_devices_one_are_refused(bundle, tmp_path):
    said = run("run", CHECKPOINTS / "llama", "--engine", "qairt", "--from", "inference", *COMMON, "--ids", "7", "--artifact-dir", tmp_path, code=2)
    assert "llama.SM8650.sim.genie/genie_config.json" in said.stderr and "compile it first" in said.stderr
    device = bundle[1].parent / "llama.SM8650.genie"
    assert "share weights" in run("generate", device, "--ids", "7", code=1).stderr


def byte_characters():
    """The characters that stand for bytes in byte-level vocabularies (GPT-2)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(rest)}}


def test_text_goes_through_the_tokenizer_of_the_bundle(tmp_path):
    model = Path(shutil.copytree(CHECKPOINTS / "llama", tmp_path / "talker"))
    words = ["<pad>", "<s>", "</s>", *byte_characters().values()]
    words += [f"word{i}" for i in range(320 - len(words))]
    special = [dict(id=i, content=words[i], special=True, single_word=False, lstrip=False, rstrip=False, normalized=False) for i in range(3)]
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    begin = dict(type="TemplateProcessing", single=[{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                 pair=[{"Sequence": {"id": "A", "type_id": 0}}], special_tokens={"<s>": dict(id="<s>", ids=[1], tokens=["<s>"])})
    vocabulary = dict(type="BPE", vocab={word: i for i, word in enumerate(words)}, merges=[], unk_token=None, dropout=None,
                      continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False, byte_fallback=False)
    tokenizer = dict(version="1.0", truncation=None, padding=None, added_tokens=special, normalizer=None, pre_tokenizer=level,
                     post_processor=begin, decoder=level, model=vocabulary)
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    (model / "tokenizer_config.json").write_text(json.dumps(dict(bos_token="<s>", eos_token="</s>")))
    calibration = ["--set", "calibration_length=64"]
    genie = facts("run", model, "--engine", "qairt", *COMMON, "--prompt", "Hello!", *calibration, "--artifact-dir", tmp_path / "a")
    own = facts("run", model, *COMMON, "--prompt", "Hello!", *calibration, "--artifact-dir", tmp_path / "b")
    assert answers(genie) == answers(own) and genie["results"][0]["text"] == own["results"][0]["text"]
    assert genie["results"][0]["metrics"]["prompt_tokens"] == 7  # <s> and six bytes: no second <s> of Genie's
    written = tmp_path / "a/talker.SM8650.sim.genie"
    assert json.loads((written / "genie_config.json").read_text())["dialog"]["context"]["bos-token"] == 1
    again = facts("generate", written, "--prompt", "Hello!", "--max-new-tokens", "12")
    assert again["results"][0]["text"] == own["results"][0]["text"]
    with open(written / "tokenizer.json", "a") as file:
        file.write(" ")
    assert "tokenizer.json" in run("generate", written, "--prompt", "Hello!", code=1).stderr


def test_a_prompt_that_genie_cannot_take_is_refused_before_anything_runs(bundle):
    prompt = ",".join(["5"] * 41)  # the context of 48 without the block of 8 that prefill keeps free
    done = run("generate", bundle[1], "--ids", "7", "--ids", prompt, code=1)
    assert "prompt 2 has 41 tokens" in done.stderr and "40 at most" in done.stderr and done.stdout == ""


def test_models_that_genie_cannot_drive_are_refused_with_the_reason(tmp_path):
    said = run("run", CHECKPOINTS / "gemma3", "--engine", "qairt", *COMMON, "--ids", "7", "--artifact-dir", tmp_path, code=1).stderr
    assert "sliding window" in said and "executorch" in said
    said = run("run", CHECKPOINTS / "llama", "--engine", "qairt", "--skip", "quantization", *COMMON, "--ids", "7", "--artifact-dir", tmp_path, code=1)
    assert "quantize the model" in said.stderr
    assert not list(tmp_path.glob("*.genie"))


def test_without_libgenie_the_engine_says_so_before_it_compiles(tmp_path):
    libraries = tmp_path / "qnn" / "onnxruntime_qnn"
    libraries.mkdir(parents=True)
    for library in Path(QNN).iterdir():
        if library.name != "libGenie.so":
            (libraries / library.name).symlink_to(library)
    (tmp_path / "qnn" / "onnxruntime_qnn.libs").symlink_to(Path(QNN).parent / "onnxruntime_qnn.libs")
    done = run("run", CHECKPOINTS / "llama", "--engine", "qairt", *COMMON, "--ids", "7", "--artifact-dir", tmp_path / "a", "--qnn-dir", libraries, code=1)
    assert "libGenie.so" in done.stderr and "CompilationStage" not in done.stderr
    known = facts("doctor", "--qnn-dir", libraries)["genie"]
    assert not known["available"] and "libGenie.so" in known["reason"]
    assert facts("doctor")["genie"]["available"]
