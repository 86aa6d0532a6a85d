"""A run's options in one file: `--print-config` writes what `--config` reads, and mistakes are told with the nearest name."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
LLAMA = ROOT / "tests/data/checkpoints/llama"
QNN = os.environ.get("GENAI_QNN_DIR", "")
needs_qnn = pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libQnnHtp.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)")

pytestmark = pytest.mark.skipif(not GENAI.exists(), reason="genai is not built")


def genai(*arguments):
    return subprocess.run([str(word) for word in [GENAI, "run", *arguments]], capture_output=True, text=True, timeout=300)


def printed(*arguments):
    done = genai(*arguments, "--print-config")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


GIVEN = [
    [LLAMA, "--soc", "SM8650"],
    [LLAMA, "--soc", "SM8650", "--prompt", 'a "b" \\ \n é', "--prompt", "second", "--ids", "1,2,3", "--ids", "4"],
    [LLAMA, "--soc", "SM8550", "--until", "compilation", "--skip", "quantization", "--no-cache", "--backend", "htp"],
    [LLAMA, "--soc", "SM8650", "--from", "compilation", "--context", "64", "--temperature", "0.3", "--top-p", "0.95", "--seed", "9007199254740992"],
    [LLAMA, "--soc", "SM8650", "--set", "system_prompt=be=brief", "--set", "qat=1", "--raw", "--artifact-dir", "some where"],
    [LLAMA, "--soc", "SM8650", "--engine", "qairt"],
]


@pytest.mark.parametrize("given", GIVEN, ids=range(len(GIVEN)))
def test_what_is_printed_reads_back_to_the_same(tmp_path, given):
    first = printed(*given)
    (tmp_path / "run.json").write_text(first)
    assert printed("--config", tmp_path / "run.json") == first


def test_everything_given_is_in_the_file(tmp_path):
    file = json.loads(printed(*GIVEN[1], *GIVEN[3][3:]))
    assert file["model"] == str(LLAMA)
    assert file["prompt"] == ['a "b" \\ \n é', "second"]
    assert file["ids"] == [[1, 2, 3], [4]]
    assert file["from"] == "compilation"
    options = {key: file["options"][key] for key in ("context", "temperature", "top_p", "seed")}
    assert options == {"context": 64, "temperature": 0.3, "top_p": 0.95, "seed": 9007199254740992}
    assert file["options"]["recipe"] == "16a8w" and file["options"]["max_new_tokens"] == 128  # defaults are there, too


def test_the_command_line_wins(tmp_path):
    (tmp_path / "run.json").write_text(printed(*GIVEN[1], "--context", "64", "--set", "seed=5"))
    file = json.loads(printed("other", "--config", tmp_path / "run.json", "--soc", "SM8550", "--ids", "9", "--context", "128", "--set", "seed=6"))
    assert (file["model"], file["soc"], file["prompt"], file["ids"]) == ("other", "SM8550", [], [[9]])
    assert (file["options"]["context"], file["options"]["seed"]) == (128, 6)


def test_other_spellings_of_values_are_taken(tmp_path):
    (tmp_path / "run.json").write_text(
        json.dumps({"model": str(LLAMA), "soc": "SM8650", "ids": [1, 2], "engine": "executorch", "prefill_ar": 16, "raw": True, "until": None})
    )
    file = json.loads(printed("--config", tmp_path / "run.json"))
    assert file["ids"] == [[1, 2]]
    assert file["options"]["prefill_ar"] == 16 and file["options"]["raw_prompt"] is True


def test_null_is_as_if_the_key_were_not_there(tmp_path):
    (tmp_path / "run.json").write_text('{"model": null, "soc": null, "options": null, "ids": null, "engine": null, "no_cache": null}')
    assert printed(LLAMA, "--soc", "SM8650", "--config", tmp_path / "run.json") == printed(LLAMA, "--soc", "SM8650")


def test_the_file_may_be_a_pipe():
    """As `--config <(generator)` gives one."""
    file = json.dumps({"model": str(LLAMA), "soc": "SM8650", "ids": [1, 2]})
    reading, writing = os.pipe()
    os.write(writing, file.encode())
    os.close(writing)
    done = subprocess.run([GENAI, "run", "--config", f"/dev/fd/{reading}", "--print-config"], pass_fds=[reading], capture_output=True, text=True)
    os.close(reading)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ids"] == [[1, 2]]


@pytest.mark.parametrize(
    "content, message",
    [
        ({"promt": "x"}, 'unknown key "promt"; did you mean "prompt"?'),
        ({"artefact_dir": "x"}, 'unknown key "artefact_dir"; did you mean "artifact_dir"?'),
        ({"option": {}}, 'unknown key "option"; did you mean "options"?'),
        ({"json": True}, 'unknown key "json"'),
        ({"options": {"contxt": 64}}, 'unknown option "contxt"; did you mean "context"?'),
        ({"options": {"context": "many"}}, 'option context is "many", expected a whole number from 2 to 131072'),
        ({"options": {"mode": "fast"}}, "expected one of kv|hybrid"),
        ({"options": [1]}, 'key "options" holds another type of value than expected: an object'),
        ({"soc": ["a"]}, 'key "soc" holds another type of value than expected: text'),
        ({"no_cache": 1}, 'key "no_cache" holds another type of value than expected: true or false'),
        ({"until": "inferense"}, 'unknown stage "inferense"'),
        ({"soc": "SM8651"}, "SM8650"),
        ([1], "is no JSON object"),
    ],
)
def test_mistakes_in_the_file_are_told(tmp_path, content, message):
    (tmp_path / "run.json").write_text(json.dumps(content))
    soc = [] if isinstance(content, dict) and isinstance(content.get("soc"), (str, list)) else ["--soc", "SM8650"]
    printing = [] if content == {"soc": "SM8651"} else ["--print-config"]
    done = genai(LLAMA, *soc, "--ids", "1", "--config", tmp_path / "run.json", "--artifact-dir", tmp_path / "out", *printing)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_or_not_json_is_told(tmp_path):
    done = genai(LLAMA, "--soc", "SM8650", "--config", tmp_path / "none.json")
    assert done.returncode == 1 and "none.json" in done.stderr and "No such file" in done.stderr
    (tmp_path / "run.json").write_text('{"soc": ')
    done = genai(LLAMA, "--config", tmp_path / "run.json")
    assert done.returncode == 1 and "not valid JSON at line 1" in done.stderr
    done = genai("--soc", "SM8650")
    assert done.returncode == 2 and "genai run needs MODEL" in done.stderr


@needs_qnn
def test_a_run_by_the_file_is_the_run_by_the_command_line(tmp_path):
    given = [LLAMA, "--soc", "SM8650", "--context", "32", "--prefill-ar", "8", "--calibration-samples", "1", "--max-new-tokens", "4"]
    given += ["--ids", "1,2,3", "--artifact-dir", tmp_path / "out"]
    (tmp_path / "run.json").write_text(printed(*given))
    first = genai(*given)
    second = genai("--config", tmp_path / "run.json", "--json")
    assert first.returncode == 0 and second.returncode == 0, second.stderr
    facts = json.loads(second.stdout)
    assert [stage["state"] for stage in facts["stages"]] == ["completed", "reused", "reused", "completed"]
    assert ",".join(map(str, facts["results"][0]["ids"])) == first.stdout.strip()
