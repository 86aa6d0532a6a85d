#!/usr/bin/env python3
"""Writes seed corpora of fuzz targets under tests/data/fuzz/: small files of every kind that the targets of tokenizers, configurations, GGUF
vocabularies, GGUF models and llama2.c files read.

    python tests/tools/make_fuzz_seeds.py tests/data

Needs gguf and numpy. The decoders have the sizes of src/model/model_fuzz.c.
"""
import json
import pathlib
import struct
import sys

import gguf
import numpy

LAYERS, HIDDEN, HEADS, HEAD, FEED_FORWARD, VOCAB = 2, 8, 2, 4, 16, 16


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


def tokenizer_files(small, out):
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



def tokenizer_configs(out):
    token = {"lstrip": False, "normalized": False, "rstrip": True, "single_word": False, "special": True}
    added = {"258": {"content": "<s>", **token}, "259": {"content": "</s>", **token}, "260": {"content": "<|im_end|>", **token}}
    plain = {"added_tokens_decoder": added, "bos_token": "<s>", "eos_token": {"content": "</s>", "__type": "AddedToken"},
             "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"}
    llama = plain | {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": True, "add_eos_token": False}
    named = plain | {"chat_template": [{"name": "default", "template": "x"}, {"name": "tool_use", "template": "y"}], "clean_up": None}
    for name, config in (("plain", plain), ("llama", llama), ("named", named)):
        (out / name).write_text(json.dumps(config, separators=(",", ":")))


def gguf_file(path, architecture, fields, tensors=()):
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in fields.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}.get(type(value), writer.add_array)
        add(key, value)
    for name, shape in tensors:
        writer.add_tensor(name, numpy.ones(shape, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf_vocabularies(out):
    byte_level = [chr(c) for c in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))] + ["ab", "Ġa", "<s>", "</s>"]
    gguf_file(out / "bytes", "llama", {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.tokens": byte_level,
        "tokenizer.ggml.token_type": [1] * 258 + [3, 3], "tokenizer.ggml.merges": ["a b", "Ġ a"], "tokenizer.ggml.bos_token_id": 258,
        "tokenizer.ggml.eos_token_id": 259, "tokenizer.ggml.add_bos_token": True, "tokenizer.chat_template": "{{ messages[0].content }}"})
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + ["▁", "a", "b", "ab", "▁ab", "\\n\\n"]
    scored = {"tokenizer.ggml.tokens": pieces, "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * 5 + [4],
              "tokenizer.ggml.scores": [0.0] * 259 + [-1.0, -2.0, -3.0, -0.5, -0.25, -4.0], "tokenizer.ggml.bos_token_id": 1,
              "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_space_prefix": True}
    gguf_file(out / "scores", "llama", scored | {"tokenizer.ggml.model": "llama"})
    gguf_file(out / "unigram", "llama", scored | {"tokenizer.ggml.model": "t5"})


def models(out):
    base = {"num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": 1, "head_dim": HEAD,
            "intermediate_size": FEED_FORWARD, "vocab_size": VOCAB, "max_position_embeddings": 64, "eos_token_id": [1, 2]}
    llama3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 16}
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1, "mscale_all_dim": 1}
    longrope = {"type": "longrope", "long_factor": [1.5, 3], "short_factor": [1, 1.2], "original_max_position_embeddings": 16}
    both = {"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8}, "sliding_attention": {"rope_theta": 1e4}}
    for name, more in {
        "llama": {"rope_scaling": llama3}, "mistral": {"sliding_window": 3, "rope_parameters": yarn}, "qwen2": {"use_sliding_window": True},
        "qwen3": {"tie_word_embeddings": True}, "gemma": {}, "gemma2": {"sliding_window": 3, "attn_logit_softcapping": 5},
        "gemma3_text": {"sliding_window": 3, "rope_parameters": both}, "phi3": {"rope_scaling": longrope},
        "granite": {"embedding_multiplier": 6, "logits_scaling": 4}, "smollm3": {"no_rope_layers": [1, 0]},
        "stablelm": {"partial_rotary_factor": 0.5}, "exaone4": {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 3},
    }.items():
        (out / name).write_text(json.dumps({"model_type": name, **base, **more}, separators=(",", ":")) + '\\0{"eos_token_id":3}')
    sizes = {"block_count": 1, "embedding_length": HIDDEN, "feed_forward_length": FEED_FORWARD, "attention.head_count": HEADS,
             "attention.head_count_kv": 1, "attention.key_length": HEAD, "attention.value_length": HEAD, "context_length": 64,
             "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e4}
    shapes = {"attn_norm": [HIDDEN], "attn_q": [HEADS * HEAD, HIDDEN], "attn_k": [HEAD, HIDDEN], "attn_v": [HEAD, HIDDEN],
              "attn_output": [HIDDEN, HEADS * HEAD], "ffn_norm": [HIDDEN], "ffn_gate": [FEED_FORWARD, HIDDEN], "ffn_up": [FEED_FORWARD, HIDDEN],
              "ffn_down": [HIDDEN, FEED_FORWARD]}
    gemma = {"attn_q_norm": [HEAD], "attn_k_norm": [HEAD], "post_attention_norm": [HIDDEN], "post_ffw_norm": [HIDDEN]}
    for name, more, layer in (("llama", {"rope.dimension_count": HEAD}, shapes), ("gemma3", {"attention.sliding_window": 3}, shapes | gemma)):
        gguf_file(out / f"{name}.gguf", name, {f"{name}.{key}": value for key, value in {**sizes, **more}.items()},
                  [("token_embd.weight", [VOCAB, HIDDEN]), ("output_norm.weight", [HIDDEN])] +
                  [(f"blk.0.{key}.weight", shape) for key, shape in layer.items()])


def llama2c(out):
    for name, vocabulary in (("tied", 4), ("untied", -4)):
        width, feed_forward, layers, heads, kv_heads, context = 4, 4, 1, 2, 1, 2
        kv = width // heads * kv_heads
        count = 4 * width + layers * (2 * width + 2 * width * width + 2 * kv * width + 3 * width * feed_forward) + width
        count += 2 * context * (width // heads // 2) + (4 * width if vocabulary < 0 else 0)
        header = struct.pack("<7i", width, feed_forward, layers, heads, kv_heads, vocabulary, context)
        (out / name).write_bytes(header + numpy.ones(count, "<f4").tobytes())


def main():
    data = pathlib.Path(sys.argv[1])
    for name, make in (("tokenizer_file_fuzz", lambda out: tokenizer_files(data / "tokenizer/small", out)),
                       ("tokenizer_config_fuzz", tokenizer_configs), ("gguf_vocabulary_fuzz", gguf_vocabularies), ("model_fuzz", models),
                       ("llama2c_fuzz", llama2c)):
        out = data / "fuzz" / name
        out.mkdir(parents=True, exist_ok=True)
        make(out)


main()
