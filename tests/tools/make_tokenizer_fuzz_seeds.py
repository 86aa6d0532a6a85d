#!/usr/bin/env python3
"""Writes tests/data/fuzz/tokenizer_json/: the seed corpus of the tokenizer fuzz target, small files of every kind it reads.

    python tests/tools/make_tokenizer_fuzz_seeds.py tests/data/tokenizer/small tests/data/fuzz/tokenizer_json
"""
import json
import pathlib
import sys


def shrink(tokenizer, keep):
    """The same rules with the first tokens of the vocabulary and the merges among them."""
    model = tokenizer["model"]
    if isinstance(model["vocab"], list):
        model["vocab"] = model["vocab"][:keep]
        return tokenizer
    kept = dict(sorted(model["vocab"].items(), key=lambda item: item[1])[:keep])
    merges = [merge for merge in model["merges"] if merge[0] in kept and merge[1] in kept and merge[0] + merge[1] in kept]
    model["vocab"], model["merges"] = kept, merges[:20]
    used = {token["content"] for token in tokenizer["added_tokens"]}
    tokenizer["added_tokens"] = tokenizer["added_tokens"][:6]
    if tokenizer.get("post_processor") and not used & set(kept):
        tokenizer["post_processor"] = None
    return tokenizer


def main():
    small, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for entry in json.loads((small / "tokenizers.json").read_text())["entries"]:
        name = entry["name"].replace(" ", "-").replace(",", "")
        keep = 300 if "byte" in name or name in ("llama2", "gemma", "metaspace-first") else 60
        (out / f"{name}.json").write_text(json.dumps(shrink(entry["json"], keep), ensure_ascii=False, separators=(",", ":")))
    tekken = json.loads((small / "tekken.json").read_text())
    tekken["vocab"] = tekken["vocab"][:270]
    tekken["config"]["default_vocab_size"] = 280
    (out / "tekken.json").write_text(json.dumps(tekken, separators=(",", ":")))
    (out / "ranks.tiktoken").write_bytes(b"".join((small / "tiktoken/tokenizer.model").read_bytes().splitlines(True)[:280]))
    for name in ("plain", "unigram", "gemma"):
        (out / f"{name}.model").write_bytes((small / f"{name}.model").read_bytes())


main()
