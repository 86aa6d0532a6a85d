#!/usr/bin/env python3
"""Rotary frequencies as transformers computes them, and angles in double precision at far positions: tests/data/model/rope.json.

Usage: make_model_rope.py OUTPUT_DIRECTORY
Needs torch, transformers and numpy. Each case: config (the keys of config.json that matter), context, and what
modeling_rope_utils' functions give for it: frequencies and attention_factor. "far": the Llama 3 rule written again here in double precision,
with cos and sin at positions past the original context.
"""

import json
import pathlib
import sys

import numpy
import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

LLAMA = {"head_dim": 64, "hidden_size": 2048, "num_attention_heads": 32, "max_position_embeddings": 131072}
QWEN = {"head_dim": 128, "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 131072}
PHI4 = {"hidden_size": 3072, "num_attention_heads": 24, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096}
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 32768}
LONG = {"rope_type": "longrope", "rope_theta": 1e4, "partial_rotary_factor": 0.75, "original_max_position_embeddings": 4096,
        "short_factor": [1.0 + 0.01 * i for i in range(48)], "long_factor": [1.0 + 0.9 * i for i in range(48)]}
LLAMA32 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 8192}

CASES = [
    ("llama-3.2-1b", "LlamaConfig", LLAMA, LLAMA32, 512),
    ("linear", "LlamaConfig", LLAMA, {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}, 512),
    ("yarn", "Qwen3Config", QWEN, YARN, 512),
    ("yarn, factor 16, both mscales 1", "Qwen3Config", QWEN, {**YARN, "factor": 16.0, "mscale": 1.0, "mscale_all_dim": 1.0}, 512),
    ("yarn, mscales 1 and 0.5", "Qwen3Config", QWEN, {**YARN, "factor": 16.0, "mscale": 1.0, "mscale_all_dim": 0.5}, 512),
    ("yarn, explicit attention factor", "Qwen3Config", QWEN, {**YARN, "attention_factor": 1.25, "mscale": 1.0, "mscale_all_dim": 0.5}, 512),
    ("yarn, betas, fractions kept", "Qwen3Config", QWEN, {**YARN, "beta_fast": 24.0, "beta_slow": 2.0, "truncate": False}, 512),
    ("phi-4-mini at its original length", "Phi3Config", PHI4, LONG, 4096),
    ("phi-4-mini one beyond", "Phi3Config", PHI4, LONG, 4097),
]


def far_angles():
    frequencies = 5e5 ** -(numpy.arange(0, 64, 2, dtype="float64") / 64)
    waves = 2 * numpy.pi / frequencies
    smooth = numpy.clip((8192 / waves - 1.0) / 3.0, 0, 1)
    frequencies = frequencies * (smooth + (1 - smooth) / 32.0)
    positions = [0, 1, 8191, 8192, 8193, 20000, 131071]
    angles = numpy.outer(positions, frequencies)
    return {"context": 131072, "positions": positions, "cos": numpy.cos(angles).tolist(), "sin": numpy.sin(angles).tolist()}


def main():
    cases = []
    for name, configuration, shape, rope, context in CASES:
        config = getattr(transformers, configuration)(**shape, rope_parameters=dict(rope))
        frequencies, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, torch.device("cpu"), seq_len=context)
        cases.append({
            "name": name, "config": {**shape, "rope_parameters": rope}, "head_dim": shape.get("head_dim", 128), "context": context,
            "frequencies": [float(f"{v:.9g}") for v in frequencies.tolist()], "attention_factor": factor,
        })
    far = far_angles()
    for key in ("cos", "sin"):
        far[key] = [[float(f"{v:.9g}") for v in row] for row in far[key]]
    (pathlib.Path(sys.argv[1]) / "rope.json").write_text(json.dumps({"cases": cases, "far": far}) + "\n")


main()
