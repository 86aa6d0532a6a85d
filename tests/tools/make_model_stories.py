#!/usr/bin/env python3
"""Records what transformers computes for stories260K.bin (llama2.c's format): tests/data/model/stories260k.json and stories260k.f32.

Usage: make_model_stories.py stories260K.bin OUTPUT_DIRECTORY
Needs torch and transformers. Layout of the file: llama2.c's `legacy_export`: seven int32 (dim, hidden, layers, heads, kv_heads, vocabulary,
sequence length; a negative vocabulary means an output matrix of its own), then float32 tensors; query and key rows hold interleaved rotary
pairs, which are reordered here for transformers' half-split form. Same record as make_model_smollm2.py writes.
"""

import json
import pathlib
import sys

import numpy
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def load(path):
    raw = path.read_bytes()
    dim, hidden, layers, heads, kv_heads, vocab, length = numpy.frombuffer(raw, "<i4", 7).tolist()
    tied, vocab = vocab > 0, abs(vocab)
    size = dim // heads
    values, at = numpy.frombuffer(raw, "<f4", offset=28), 0

    def take(*shape):
        nonlocal at
        count = int(numpy.prod(shape))
        at += count
        return torch.tensor(values[at - count : at].reshape(shape).copy())

    def halves(rows, count):  # [2i, 2i+1] pairs of each head to [i, i + size/2]
        return rows.view(count, size // 2, 2, dim).transpose(1, 2).reshape(count * size, dim)

    state = {"model.embed_tokens.weight": take(vocab, dim)}
    names = [
        ("input_layernorm", (dim,)),
        ("self_attn.q_proj", (heads * size, dim)),
        ("self_attn.k_proj", (kv_heads * size, dim)),
        ("self_attn.v_proj", (kv_heads * size, dim)),
        ("self_attn.o_proj", (dim, dim)),
        ("post_attention_layernorm", (dim,)),
        ("mlp.gate_proj", (hidden, dim)),
        ("mlp.down_proj", (dim, hidden)),
        ("mlp.up_proj", (hidden, dim)),
    ]
    for name, shape in names:
        stacked = take(layers, *shape)
        for i in range(layers):
            tensor = stacked[i]
            if name.endswith("q_proj"):
                tensor = halves(tensor, heads)
            if name.endswith("k_proj"):
                tensor = halves(tensor, kv_heads)
            state[f"model.layers.{i}.{name}.weight"] = tensor
    state["model.norm.weight"] = take(dim)
    take(length * size)  # rotary tables, unused by readers
    state["lm_head.weight"] = state["model.embed_tokens.weight"] if tied else take(vocab, dim)
    config = LlamaConfig(
        vocab_size=vocab, hidden_size=dim, intermediate_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv_heads, max_position_embeddings=length, rms_norm_eps=1e-5, tie_word_embeddings=tied,
    )
    model = LlamaForCausalLM(config).float().eval()
    model.load_state_dict(state, strict=True)
    return model


def main():
    out = pathlib.Path(sys.argv[2])
    model = load(pathlib.Path(sys.argv[1]))
    with torch.no_grad():
        sequence = [1]
        for _ in range(63):  # the model's own text, so that it stays in what it knows
            sequence.append(int(model(torch.tensor([sequence])).logits[0, -1].argmax()))
        ids = sequence[:64]
        logits = model(torch.tensor([ids])).logits[0].double().numpy()
        for _ in range(32):
            sequence.append(int(model(torch.tensor([sequence])).logits[0, -1].argmax()))
    columns = list(range(0, logits.shape[1], 8))
    logits[:, columns].astype("<f4").tofile(out / "stories260k.f32")
    record = {
        "ids": ids,
        "columns": columns,
        "argmax": logits.argmax(axis=1).tolist(),
        "largest": [float(f"{v:.7g}") for v in numpy.abs(logits).max(axis=1)],
        "greedy": sequence[64:],
    }
    (out / "stories260k.json").write_text(json.dumps(record) + "\n")


main()
