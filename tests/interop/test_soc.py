"""The chips that the program knows, a user's own file, and what is said before anything runs when a chip cannot do what is asked."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
LLAMA = ROOT / "tests/data/checkpoints/llama"
QNN = os.environ.get("GENAI_QNN_DIR", "")

pytestmark = pytest.mark.skipif(not GENAI.exists(), reason="genai is not built")
needs_qnn = pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libQnnHtp.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)")

MINE = {"socs": [{"name": "SM8750P", "marketing": "Elite (P)", "soc_id": 69, "htp_arch": 79, "vtcm_mb": 4, "device_ids": [639]}]}
RUN = ["--context", "32", "--prefill-ar", "8", "--calibration-samples", "1", "--until", "compilation", "--twin", "off"]


def genai(*arguments, **environment):
    return subprocess.run(
        [GENAI, *map(str, arguments)], capture_output=True, text=True, timeout=600, env=dict(os.environ, **environment)
    )


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "socs.json"
    path.write_text(json.dumps(MINE))
    return path


def test_the_table_agrees_with_upstreams():
    """ExecuTorch's own table of chips, of which genai's is a superset."""
    pytest.importorskip("executorch")
    schema = pytest.importorskip("executorch.backends.qualcomm.serialization.qc_schema")
    ours = {soc["name"]: soc for soc in json.loads(genai("soc", "--json").stdout)}
    for chip, info in schema._soc_info_table.items():
        soc = ours[chip.name]
        assert (soc["soc_id"], soc["htp_arch"], soc["vtcm_mb"]) == (chip.value, info.htp_info.htp_arch, info.htp_info.vtcm_size_in_mb), chip.name
        assert soc["lpai_version"] == (info.lpai_info.lpai_hardware_version if info.lpai_info else 0), chip.name


def test_a_users_file_by_option_and_by_place(mine, tmp_path):
    for done in (genai("soc", "--soc-file", mine, "--json"), genai("soc", "--json", XDG_CONFIG_HOME=str(tmp_path / "config"))):
        assert done.returncode == 0
        first = json.loads(done.stdout)[0]
        assert first["name"] == ("SM8750P" if first["user"] else "SM8850")
    (tmp_path / "config/genai").mkdir(parents=True)
    (tmp_path / "config/genai/socs.json").write_text(json.dumps(MINE))
    done = genai("soc", "639", XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert "SM8750P" in done.stdout and "your file" in done.stdout and done.stderr == ""
    printed = tmp_path / "printed.json"  # what the program prints, it reads
    printed.write_text(genai("soc", "--soc-file", mine, "--json").stdout)
    assert genai("soc", "--soc-file", printed, "--json").returncode == 0


@needs_qnn
def test_compiling_for_a_chip_of_the_users_file(mine, tmp_path):
    out = tmp_path / "out"
    done = genai("run", LLAMA, "--soc", "elite (p)", "--soc-file", mine, *RUN, "--artifact-dir", out)
    assert done.returncode == 0, done.stderr
    facts = json.loads(genai("inspect", out / "llama.SM8750P.pte", "--json").stdout)
    assert facts["binary"] == {**facts["binary"], "soc_id": 69, "htp_arch": 79}
    assert facts["methods"][0]["options"]["vtcm_mb"] == 4


@needs_qnn
def test_an_unknown_id_is_mapped_with_a_warning(tmp_path):
    done = genai("run", LLAMA, "--soc", "4711:v75", *RUN, "--artifact-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("SoC id 4711 (HTP v75) is not in the table: taken as QCS8300") == 1
    assert (tmp_path / "llama.QCS8300.pte").exists()


@pytest.mark.parametrize(
    "arguments, needle",
    [
        (["--soc", "4711"], "4711:v79"),
        (["--soc", "SM8560"], "SM8650 (Snapdragon 8 Gen 3)"),
        (["--soc", "SM8350", "--recipe", "16a4w_block"], "recipe 16a4w_block needs weights with block scales (LPBQ), which takes HTP v69 or newer"),
        (["--soc", "SM8450", "--recipe", "KV16"], "takes HTP v73 or newer; SM8450 has v69: choose a recipe with kv_bits 8"),
        (["--soc", "SM8650", "--soc-file", "BROKEN"], 'entry 1 (X): member "soc_id" is missing'),
        (["--soc", "SM8650", "--soc-file", "/nonexistent/socs.json"], "/nonexistent/socs.json"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(tmp_path, arguments, needle):
    (tmp_path / "BROKEN").write_text('[{"name": "X"}]')
    (tmp_path / "KV16").write_text(json.dumps({"base": "16a8w", "name": "kv16", "kv_bits": 16}))
    arguments = [str(tmp_path / a) if a in ("BROKEN", "KV16") else a for a in arguments]
    done = genai("run", LLAMA, *arguments, *RUN, "--artifact-dir", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert needle in done.stderr
    assert "Stage started" not in done.stderr and not (tmp_path / "out").exists()


@needs_qnn
def test_without_half_precision_and_without_weight_sharing(tmp_path):
    done = genai("run", LLAMA, "--soc", "QCM6490", *RUN, "--skip", "quantization", "--artifact-dir", tmp_path)
    assert done.returncode != 0 and "half precision, which the HTP of QCM6490 (v68) does not have" in done.stderr
    assert list(tmp_path.glob("*.pte")) == []
    done = genai("run", LLAMA, "--soc", "SM8450", *RUN, "--artifact-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recipe 16a8w: the key and value cache gets 8 bits, SM8450 (HTP v69) does not multiply 16 by 16 bits" in done.stderr
    assert "SM8450 has HTP v69, which cannot share weights between graphs (v73 can): the artifact holds them 2 times" in done.stderr
