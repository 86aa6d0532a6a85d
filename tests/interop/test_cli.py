"""The program `genai` from outside: what it says to bad input, its exit codes, and what it leaves behind when it is interrupted.

The model is the `llama` fixture (2 layers, no tokenizer: prompts are ids). What must be slow enough to be interrupted uses SmolLM2.
"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
LLAMA = ROOT / "tests/data/checkpoints/llama"
GGUF = os.environ.get("GENAI_MODEL_GGUF", "")
QNN = os.environ.get("GENAI_QNN_DIR", "")

pytestmark = pytest.mark.skipif(not GENAI.exists(), reason="genai is not built")
needs_qnn = pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libQnnHtp.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)")
needs_gguf = pytest.mark.skipif(not os.path.exists(GGUF), reason="SmolLM2 is absent (GENAI_MODEL_GGUF)")

SMALL = ["--soc", "SM8650", "--context", "32", "--prefill-ar", "8", "--max-new-tokens", "4", "--calibration-samples", "1"]
IDS = ["--ids", "1,2,3,4,5"]


def genai(*arguments, cwd=None, environment=None, limit=None):
    return subprocess.run(
        [GENAI, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=environment, preexec_fn=limit, timeout=600
    )


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """An 8-bit KV cache: the smallest artifact."""
    shipped = json.loads(genai("recipes", "--json").stdout)[0]
    path = tmp_path_factory.mktemp("recipe") / "small.json"
    path.write_text(json.dumps(dict(shipped, name="small", kv_bits=8)))
    return path


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory, recipe):
    folder = tmp_path_factory.mktemp("artifacts")
    done = genai("run", LLAMA, *SMALL, *IDS, "--recipe", recipe, "--artifact-dir", folder, "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def left_behind(folder):
    """Files that must not be there: artifacts, whole or not, and temporary ones."""
    return sorted(path.name for path in Path(folder).glob("*") if ".pte" in path.name or re.search(r"\.[A-Za-z0-9]{6}$", path.name))


# ---- Usage ----
@pytest.mark.parametrize(
    "arguments, needle",
    [
        ([], "a command is missing"),
        (["rnu"], "did you mean run?"),
        (["run", LLAMA, "--sock", "SM8650"], "did you mean --soc?"),
        (["run"], "needs MODEL"),
        (["run", LLAMA, *IDS], "--soc is missing"),
        (["run", LLAMA, "--soc", "SM8650"], "a prompt is missing"),
        (["run", LLAMA, "--soc", "SM8650", "--prompt", "  "], "prompt is blank"),
        (["run", LLAMA, "--soc", "SM8650", "--ids", "1,x"], "separated by commas"),
        (["run", LLAMA, "--soc", "SM8560", *IDS], "SM8650"),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--recipe", "16a8v"], "16a8w"),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--until", "compile"], "model_preparation, quantization, compilation, inference"),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--backend", "cpu"], "htp, gpu, lpai"),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--context", "8", "--prefill-ar", "8"], "smaller than the context"),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--set", "max_new_token=3"], "max_new_tokens"),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--temperature", "nan"], "temperature"),
        (["run", "nothing.gguf", "--soc", "SM8650", *IDS], '"nothing.gguf" does not exist'),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--skip", "compilation"], "--from inference runs the one that an earlier run stored"),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--skip", "model_preparation"], "stage quantization needs the model"),
        (["run", LLAMA, "--soc", "SM8650", "--until", "compilation", "--name", "n" * 129], "option name has 129 bytes"),
        (["run", LLAMA, "--soc", "SM8650", *IDS, "--calibration", "nothing.txt"], "nothing.txt"),
        (["logits", LLAMA, "--ids", "1", "--on", "moon", "--out", "x"], "float, simulated or htp"),
        (["logits", LLAMA, "--ids", "1"], "--out is missing"),
        (["logits", LLAMA, "--ids", "1", "--text", "a", "--on", "htp", "--out", "x"], "give either --ids or --text"),
        (["logits", LLAMA, "--ids", "1,x", "--on", "htp", "--out", "x"], "separated by commas"),
        (["generate", LLAMA, "--ids", "1"], "is a folder, but no Genie bundle"),
        (["tokenize", GGUF or LLAMA, "--frob"], "unknown option --frob"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_is_right(arguments, needle, tmp_path):
    done = genai(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert needle in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_and_version():
    assert genai("--version").stdout.startswith("genai ")
    overview = genai("--help")
    assert overview.returncode == 0
    for command in re.findall(r"^  (\w+) ", overview.stdout, re.MULTILINE):
        done = genai(command, "--help")
        assert done.returncode == 0
        assert done.stdout.startswith(f"usage: genai {command}")
        assert done.stderr == ""


def test_an_engine_that_is_not_there(tmp_path):
    done = genai("run", LLAMA, *SMALL, *IDS, "--engine", "compilation=tvm", cwd=tmp_path)
    assert done.returncode == 1
    assert "tvm" in done.stderr and "compilation" in done.stderr


def test_errors_are_facts_with_json(tmp_path):
    done = genai("run", LLAMA, "--soc", "SM8560", *IDS, "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "ConfigValidationError"


def test_a_mistake_on_the_command_line_is_a_fact_with_json():
    done = genai("run", LLAMA, "--json", "--sock", "SM8650")
    assert done.returncode == 2
    assert "--soc" in json.loads(done.stdout)["error"]["message"]


# ---- Standard streams ----
def shell(script, *arguments, cwd=None):
    return subprocess.run(["bash", "-c", script, "bash", GENAI, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=600)


def test_lines_never_end_up_in_files_when_streams_are_closed(tmp_path):
    """A closed descriptor's number goes to the next file that is opened."""
    run = ["run", LLAMA, *SMALL, "--until", "quantization", "--artifact-dir"]
    assert shell('exec "$@" <&- >&- 2>&-', *run, tmp_path / "closed").returncode == 0
    assert (tmp_path / "closed/.genai.lock").read_text().strip().isdigit()
    assert genai(*run, tmp_path / "open").returncode == 0
    closed, opened = (sorted(path.name for path in (tmp_path / name).rglob("*")) for name in ("closed", "open"))
    assert closed == opened


@pytest.mark.parametrize("arguments", [["--version"], ["soc"], ["run", "--help"], ["models", "--json"]])
@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written_is_an_error(arguments, where):
    done = shell(f'exec "$@" {where}', *arguments)
    assert done.returncode == 1
    assert done.stderr == "genai: error: cannot write to standard output\n"


def test_a_reader_that_has_enough_is_no_reason_to_complain():
    done = shell('"$@" | head -n 1', "run", "--help")
    assert done.stdout == "usage: genai run MODEL [options]\n"
    assert done.stderr == ""


@needs_qnn
def test_no_more_text_is_generated_than_can_be_written(artifacts, tmp_path):
    shutil.copy(artifacts[0] / "llama.SM8650.sim.pte", tmp_path)
    letters = {chr(97 + i): i for i in range(26)} | {f"unused{i}": i for i in range(26, 320)}
    model = dict(type="BPE", vocab=letters, merges=[], unk_token=None)
    level = dict(type="ByteLevel", add_prefix_space=False, use_regex=True)
    tokenizer = dict(version="1.0", added_tokens=[], normalizer=None, pre_tokenizer=level, post_processor=None, decoder=level, model=model)
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    generate = ["generate", tmp_path / "llama.SM8650.sim.pte", "--prompt", "hello", "--max-new-tokens", "8"]
    assert genai(*generate).returncode == 0
    done = shell('"$@" >/dev/full', *generate)
    assert done.returncode == 1
    assert "InferenceStage failed" in done.stderr and "cannot write to standard output" in done.stderr


# ---- Tables ----
def test_tables_are_json():
    assert any(soc["name"] == "SM8650" and soc["htp_arch"] == 75 for soc in json.loads(genai("soc", "--json").stdout))
    assert [recipe["name"] for recipe in json.loads(genai("recipes", "--json").stdout)][0] == "16a8w"
    families = {model["family"]: model for model in json.loads(genai("models", "--json").stdout)}
    assert families["gemma3"]["types"] == ["gemma3_text", "gemma3"] and "soft caps" in families["gemma3"]["traits"]


# ---- Bad input ----
def test_unknown_architecture(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(LLAMA, model)
    model.chmod(0o755)
    config = json.loads((model / "config.json").read_text())
    config.update(architectures=["FrobnicatorForCausalLM"], model_type="frobnicator")
    (model / "config.json").unlink()
    (model / "config.json").write_text(json.dumps(config))
    done = genai("run", model, *SMALL, *IDS, "--artifact-dir", tmp_path / "out", "--until", "quantization")
    assert done.returncode == 1
    assert "robnicator" in done.stderr and "[model_preparation]" in done.stderr
    assert left_behind(tmp_path / "out") == []


def test_missing_library(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key not in ("GENAI_QNN_DIR", "QNN_SDK_ROOT", "LD_LIBRARY_PATH")}
    environment.update(HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    for twin in ("process", "inline"):
        done = genai("run", LLAMA, *SMALL, *IDS, "--artifact-dir", tmp_path / "out", "--twin", twin, environment=environment)
        assert done.returncode == 1
        assert "Searched" in done.stderr and str(tmp_path / "cache") in done.stderr
        assert "GENAI_QNN_DIR" in done.stderr  # how to get them
        assert not (tmp_path / "out").exists()  # found out before any stage runs
    done = genai("doctor", environment=environment)
    assert done.returncode == 1
    assert "missing" in done.stdout


def test_library_folder_without_libraries(tmp_path):
    done = genai("run", LLAMA, *SMALL, *IDS, "--artifact-dir", tmp_path / "out", "--qnn-dir", tmp_path)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr


def test_artifact_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    done = genai("run", LLAMA, *SMALL, *IDS, "--artifact-dir", tmp_path / "file/below", "--until", "quantization")
    assert done.returncode == 1
    assert "file" in done.stderr


def test_truncated_and_foreign_files(tmp_path):
    empty, text = tmp_path / "empty.gguf", tmp_path / "text.gguf"
    empty.write_bytes(b"")
    text.write_text("this is not a model" * 100)
    for path in (empty, text):
        done = genai("run", path, *SMALL, *IDS, "--artifact-dir", tmp_path / "out", "--until", "quantization")
        assert done.returncode == 1, done.stderr
        assert path.name in done.stderr
        assert genai("inspect", path).returncode == 1
    pte = tmp_path / "broken.pte"
    pte.write_bytes(b"\x3c\0\0\0ET12eh00" + bytes(200))
    done = genai("generate", pte, *IDS)
    assert done.returncode == 1 and "broken.pte" in done.stderr
    assert genai("inspect", pte).returncode == 1


@needs_qnn
def test_a_forged_context_binary_cannot_crash_inspect(artifacts, tmp_path):
    folder, _ = artifacts
    good = (folder / "llama.SM8650.sim.pte").read_bytes()
    begin = good.index(b"\xcd\xab\x78\x56") + 256
    for seed in range(8):
        bad = bytearray(good)
        for i in range(begin + 16, begin + 4096, 7):
            bad[i] ^= (i * 31 + seed * 17) & 0xFF
        path = tmp_path / "forged.pte"
        path.write_bytes(bad)
        done = genai("inspect", path)
        assert done.returncode in (0, 1), done.stderr
        assert "kv_forward" in done.stdout


def test_every_kind_of_error_is_documented():
    kinds = re.findall(r'"(\w+)"', re.search(r"names\[\] = \{(.*?)\};", (ROOT / "src/base/status.c").read_text(), re.DOTALL).group(1))
    page = (ROOT / "docs/errors.md").read_text()
    missing = [kind for kind in kinds[1:] if kind != "PipelineError" and f"| {kind} |" not in page]
    assert len(kinds) > 10 and missing == []


# ---- The whole way ----
@needs_qnn
def test_run_gives_artifacts_and_facts(artifacts):
    folder, facts = artifacts
    assert [Path(a["path"]).name for a in facts["artifacts"]] == ["llama.SM8650.pte", "llama.SM8650.sim.pte"]
    assert all(Path(a["path"]).stat().st_size == a["bytes"] for a in facts["artifacts"])
    assert [s["state"] for s in facts["stages"]] == ["completed"] * 4
    assert all(s["seconds"] > 0 for s in facts["stages"])
    assert facts["peak_memory_bytes"] > 0
    assert facts["metrics"]["simulated"] is True
    assert len(facts["results"][0]["ids"]) == 4


@needs_qnn
def test_text_goes_to_stdout_and_everything_else_to_stderr(artifacts):
    folder, facts = artifacts
    done = genai("generate", folder / "llama.SM8650.sim.pte", *IDS, "--max-new-tokens", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ",".join(map(str, facts["results"][0]["ids"]))
    assert "[GenAIPipeline] InferenceStage started" in done.stderr
    assert "says nothing about the speed of a device" in done.stderr


@needs_qnn
def test_several_prompts_and_from_inference(artifacts, recipe):
    folder, facts = artifacts
    again = genai("run", LLAMA, *SMALL, *IDS, "--ids", "9,8", "--recipe", recipe, "--artifact-dir", folder, "--from", "inference", "--json")
    assert again.returncode == 0, again.stderr
    results = json.loads(again.stdout)["results"]
    assert len(results) == 2
    assert results[0]["ids"] == facts["results"][0]["ids"]


@needs_qnn
@pytest.mark.parametrize(
    "option, said",
    [
        (["--context", "64"], "context 32, this run asks for 64"),
        (["--prefill-ar", "16"], "prefill_ar 8, this run asks for 16"),
        (["--mode", "kv"], "mode hybrid, this run asks for kv"),
        (["--recipe", "16a4w"], "recipe small, this run asks for 16a4w"),
    ],
)
def test_from_inference_is_not_told_otherwise_than_the_artifact_was(artifacts, option, said):
    done = genai("run", LLAMA, "--soc", "SM8650", *IDS, "--artifact-dir", artifacts[0], "--from", "inference", *option)
    assert done.returncode == 1
    assert said in done.stderr


@needs_qnn
def test_until_compilation_needs_no_prompt(tmp_path, recipe):
    done = genai("run", LLAMA, *SMALL, "--recipe", recipe, "--artifact-dir", tmp_path, "--until", "compilation", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stages"][3]["state"] == "skipped"


@needs_qnn
def test_equal_runs_give_equal_files(artifacts, tmp_path, recipe):
    folder, _ = artifacts
    done = genai("run", LLAMA, *SMALL, "--recipe", recipe, "--artifact-dir", tmp_path, "--until", "compilation")
    assert done.returncode == 0, done.stderr
    for name in ("llama.SM8650.pte", "llama.SM8650.sim.pte"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


@needs_qnn
def test_inspect_explains_the_artifact(artifacts):
    folder, _ = artifacts
    facts = json.loads(genai("inspect", folder / "llama.SM8650.sim.pte", "--json").stdout)
    methods = {method["name"]: method for method in facts["methods"]}
    assert list(methods)[:2] == ["kv_forward", "prefill_forward"]
    assert methods["kv_forward"]["graph"]["inputs"][1]["scale"] > 0
    record = json.loads(methods["get_genai_provenance"]["values"][0])
    assert record["variant"] == "simulator" and record["soc"]["name"] == "SM8650"
    text = genai("inspect", folder / "llama.SM8650.pte").stdout
    assert "weights shared" in text and "prefill_forward" in text
    checkpoint = json.loads(genai("inspect", LLAMA, "--json").stdout)
    assert checkpoint["model"]["family"] == "llama" and checkpoint["model"]["layers"] == 2
    assert checkpoint["model"]["traits"] == ["rotary base 10000"]


@needs_qnn
def test_prompt_longer_than_the_context(artifacts):
    folder, _ = artifacts
    ids = ",".join(["7"] * 40)
    done = genai("generate", folder / "llama.SM8650.sim.pte", "--ids", ids)
    assert done.returncode == 1
    assert "40 tokens" in done.stderr and "context length of the artifact is 32" in done.stderr


@needs_qnn
@pytest.mark.parametrize(
    "arguments, needle",
    [
        (["--ids", ",".join(["7"] * 33)], "prompt 1 has 33 tokens, but the context length of the artifact is 32"),
        (["--ids", ",".join(["7"] * 25), "--engine", "qairt"], "takes prompts of 24 at most"),
        (["--ids", "1", "--ids", "7,320"], "prompt 2: id 320 at position 1 is outside the vocabulary of 320"),
        (["--prompt", "hello"], "the model has no tokenizer for the prompt"),
    ],
)
def test_a_prompt_that_cannot_be_run_is_refused_before_anything_is_compiled(tmp_path, recipe, arguments, needle):
    done = genai("run", LLAMA, *SMALL, *arguments, "--recipe", recipe, "--artifact-dir", tmp_path)
    assert done.returncode == 1
    assert needle in done.stderr and "[inference]" in done.stderr
    assert "QuantizationStage" not in done.stderr


@needs_qnn
def test_artifact_of_another_soc(artifacts, recipe):
    folder, _ = artifacts
    shutil.copy(folder / "llama.SM8650.sim.pte", folder / "llama.SM8550.sim.pte")
    options = [option if option != "SM8650" else "SM8550" for option in SMALL]
    done = genai("run", LLAMA, *options, *IDS, "--artifact-dir", folder, "--from", "inference")
    (folder / "llama.SM8550.sim.pte").unlink()
    assert done.returncode == 1
    assert "compiled for SM8650, this run is for SM8550" in done.stderr


@needs_qnn
@pytest.mark.parametrize("kilobytes", [4, 200, 400])
def test_full_disk_leaves_nothing_half_written(tmp_path, recipe, kilobytes):
    """A limit on the size of files stands for the full disk: writes fail in the middle."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, kilobytes * 1024))

    done = genai("run", LLAMA, *SMALL, *IDS, "--recipe", recipe, "--artifact-dir", tmp_path, limit=limit)
    assert done.returncode == 1, done.stderr
    assert "[compilation]" in done.stderr and "File too large" in done.stderr
    for name in left_behind(tmp_path):  # the device's artifact may be whole when the simulator's does not fit
        assert name == "llama.SM8650.pte" and genai("inspect", tmp_path / name).returncode == 0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 300 kB."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@needs_qnn
def test_a_disk_that_is_too_small_is_noticed_before_compiling(small_disk, recipe):
    done = genai("run", LLAMA, *SMALL, *IDS, "--recipe", recipe, "--artifact-dir", small_disk)
    assert done.returncode == 1
    assert "its disk has" in done.stderr and "free disk space" in done.stderr
    assert left_behind(small_disk) == []


@needs_qnn
def test_two_runs_in_one_directory(tmp_path, recipe):
    import fcntl

    with open(tmp_path / ".genai.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = genai("run", LLAMA, *SMALL, *IDS, "--recipe", recipe, "--artifact-dir", tmp_path)
        assert done.returncode == 1
        assert "in use by another run" in done.stderr


# ---- Interruption ----
def start(*arguments):
    return subprocess.Popen([GENAI, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)


def wait_for(process, needle):
    lines = []
    for line in process.stderr:
        lines.append(line)
        if needle in line:
            return
    raise AssertionError(f"{needle!r} did not appear:\n{''.join(lines)}")


def interrupt(process, how=signal.SIGINT, within=10):
    started = time.monotonic()
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert time.monotonic() - started < within
    return err


def children_of(folder):
    """Processes that still have the folder in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command and b"genai" in command.split(b"\0")[0]:
            found.append(entry.parent.name)
    return found


@needs_qnn
@needs_gguf
@pytest.mark.parametrize(
    "how, line", [(signal.SIGINT, "calibrating"), (signal.SIGTERM, "calibrating"), (signal.SIGINT, "compiling graphs"), (signal.SIGTERM, "compiling graphs")]
)
def test_interrupting_quantization_and_compilation(tmp_path, how, line):
    process = start("run", GGUF, "--soc", "SM8650", "--prompt", "Hi", "--artifact-dir", tmp_path, "--calibration-samples", "2")
    wait_for(process, line)
    time.sleep(1)
    err = interrupt(process, how)
    assert "cancel" in err
    assert left_behind(tmp_path) == []
    time.sleep(0.5)
    assert children_of(tmp_path) == []


@needs_qnn
@needs_gguf
def test_a_second_interrupt_ends_at_once(tmp_path):
    process = start("run", GGUF, "--soc", "SM8650", "--prompt", "Hi", "--artifact-dir", tmp_path, "--calibration-samples", "1")
    wait_for(process, "compiling graphs")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    interrupt(process, within=1.5)
    assert left_behind(tmp_path) == []


def test_where_logits_cannot_go_is_said_before_anything_is_computed(tmp_path):
    done = genai("logits", LLAMA, "--ids", "1", "--on", "simulated", "--out", tmp_path / "no" / "x.f32")
    assert done.returncode == 1
    assert "x.f32" in done.stderr and "calibrat" not in done.stderr


@needs_qnn
def test_what_logits_compiles_is_gone_afterwards(tmp_path):
    environment = dict(os.environ, TMPDIR=str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    options = ["--on", "htp", "--context", "32", "--prefill-ar", "8", "--set", "calibration_samples=1"]
    for ids, code in (("1,2,3", 0), ("1,320", 1)):
        done = genai("logits", LLAMA, "--ids", ids, "--out", tmp_path / "x.f32", *options, environment=environment)
        assert (done.returncode != 0) == code, done.stderr
        assert list((tmp_path / "temporary").iterdir()) == []


@needs_qnn
@needs_gguf
def test_a_second_interrupt_takes_what_logits_compiled_along(tmp_path):
    environment = dict(os.environ, TMPDIR=str(tmp_path))
    command = ["logits", GGUF, "--ids", "1,2", "--on", "htp", "--out", tmp_path / "x.f32", "--set", "calibration_samples=1"]
    process = subprocess.Popen([GENAI, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1, env=environment)
    wait_for(process, "compiling graphs")
    assert len(list(tmp_path.glob("genai.*"))) == 1
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    interrupt(process, within=1.5)
    assert list(tmp_path.iterdir()) == []


@needs_qnn
@needs_gguf
def test_a_killed_run_leaves_no_process_and_nothing_that_stops_the_next(tmp_path, recipe):
    process = start("run", GGUF, "--soc", "SM8650", "--prompt", "Hi", "--artifact-dir", tmp_path, "--calibration-samples", "1")
    wait_for(process, "compiling graphs")
    time.sleep(1)
    assert len(children_of(tmp_path)) == 2  # the simulator's twin compiles in a process of its own
    process.kill()
    process.communicate(timeout=10)
    time.sleep(0.5)
    assert children_of(tmp_path) == []
    assert left_behind(tmp_path) == []
    done = genai("run", LLAMA, *SMALL, *IDS, "--recipe", recipe, "--artifact-dir", tmp_path)
    assert done.returncode == 0, done.stderr


@needs_qnn
def test_interrupting_inference(tmp_path, recipe):
    long = ["--soc", "SM8650", "--context", "2048", "--prefill-ar", "8", "--max-new-tokens", "0", "--calibration-samples", "1"]
    process = start("run", LLAMA, *long, *IDS, "--recipe", recipe, "--artifact-dir", tmp_path)
    wait_for(process, "InferenceStage started")
    time.sleep(1)
    interrupt(process)
    assert left_behind(tmp_path) == ["llama.SM8650.pte", "llama.SM8650.sim.pte"]
    assert genai("inspect", tmp_path / "llama.SM8650.sim.pte").returncode == 0


@needs_qnn
def test_interrupting_preparation(tmp_path):
    """Preparation takes milliseconds; a checkpoint in a pipe that nobody fills holds it up for as long as it takes."""
    model = tmp_path / "model"
    shutil.copytree(LLAMA, model)
    model.chmod(0o755)
    (model / "config.json").unlink()
    os.mkfifo(model / "config.json")
    process = start("run", model, *SMALL, *IDS, "--artifact-dir", tmp_path / "out")
    wait_for(process, "ModelPreparationStage started")
    interrupt(process)
    assert left_behind(tmp_path / "out") == []


# ---- Tokenizing and logits ----
@needs_gguf
def test_tokenize_gives_a_json_line_per_input(tmp_path):
    (tmp_path / "lines.jsonl").write_text('"one\\ntwo"\n"three"\n')
    done = genai("tokenize", GGUF, "--text", "Hello world", "--text", " x", "--jsonl", tmp_path / "lines.jsonl", "--chat", "Hi")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line.get("text") for line in lines[:4]] == ["Hello world", " x", "one\ntwo", "three"]
    assert lines[4]["rendered"].endswith("<|im_start|>assistant\n")
    ids = ",".join(map(str, lines[0]["ids"]))
    back = json.loads(genai("tokenize", GGUF, "--ids", ids).stdout)
    assert back["text"] == "Hello world"


def test_float_logits_equal_transformers(tmp_path):
    """expected_logits.f32 beside the fixture was computed by transformers."""
    numpy = pytest.importorskip("numpy")
    expected = json.loads((LLAMA / "expected.json").read_text())
    ids = expected["input_ids"]
    reference = numpy.fromfile(LLAMA / "expected_logits.f32", numpy.float32).reshape(len(ids), -1)
    out = tmp_path / "logits.f32"
    done = genai("logits", LLAMA, "--ids", ",".join(map(str, ids)), "--on", "float", "--context", "64", "--prefill-ar", "16", "--out", out)
    assert done.returncode == 0, done.stderr
    ours = numpy.fromfile(out, numpy.float32).reshape(reference.shape)
    assert numpy.max(numpy.abs(ours - reference).max(1) / numpy.abs(reference).max(1)) < 1e-3
