#!/usr/bin/env python3
"""Records what transformers computes for SmolLM2-135M-Instruct from its GGUF file: tests/data/model/smollm2.json and smollm2.f32.

Usage: make_model_smollm2.py MODEL.gguf OUTPUT_DIRECTORY
Needs torch, transformers and gguf. The weights are the file's own, dequantized by transformers, in float32.

smollm2.json: ids (64 tokens of a fixed text), columns (64 fixed vocabulary entries), argmax and largest (of |logit|) for each position,
greedy (32 ids that greedy decoding appends). smollm2.f32: logits [64 positions][64 columns], little-endian float32.
"""

import json
import pathlib
import sys

import numpy
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

TEXT = (
    "The lighthouse keeper wrote three numbers in his book each evening: 17, 42 and 108. Nobody asked him why. When the storm of 1953 "
    "came, the sea took the pier, the boats and the road, but the light did not go out. def keep(light): return light or keep(light)"
)


def main():
    path = pathlib.Path(sys.argv[1])
    out = pathlib.Path(sys.argv[2])
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    ids = tokenizer(TEXT, add_special_tokens=False)["input_ids"][:64]
    assert len(ids) == 64
    columns = sorted(numpy.random.default_rng(20).choice(model.config.vocab_size, 64, replace=False).tolist())
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double().numpy()
        sequence = list(ids)
        for _ in range(32):
            sequence.append(int(model(torch.tensor([sequence])).logits[0, -1].argmax()))
    logits[:, columns].astype("<f4").tofile(out / "smollm2.f32")
    record = {
        "ids": ids,
        "columns": columns,
        "argmax": logits.argmax(axis=1).tolist(),
        "largest": [float(f"{v:.7g}") for v in numpy.abs(logits).max(axis=1)],
        "greedy": sequence[64:],
    }
    (out / "smollm2.json").write_text(json.dumps(record) + "\n")
    top = numpy.sort(logits, axis=1)
    print("smallest gap between the two best:", (top[:, -1] - top[:, -2]).min())
    print(tokenizer.decode(sequence[64:]))


main()
