#!/usr/bin/env python3
"""Tiny random decoders with the logits transformers computes for them: tests/data/model/tiny/NAME.gguf, or folders NAME in Hugging Face form,
and NAME.f32.

Usage: make_model_tiny.py OUTPUT_DIRECTORY [NAME...]
Needs torch, transformers, accelerate and gguf. Every parameter is random (norms and biases too), rounded to what the file stores (matrices
F16, vectors F32). Tensor names come from the gguf package's own table; storage conventions are those of llama.cpp's converters: query and
key rows of the Llama lineage interleaved, Gemma's norms stored with 1 added, the Llama 3 rule as a vector rope_freqs. Where transformers
can read the architecture from GGUF, the file is read back and must give the same logits.

NAME.f32: logits [24][96], little-endian float32, of the ids (37 i + 11) mod 96.
"""

import pathlib
import sys

import gguf
import numpy
import torch
import transformers

VOCAB, LAYERS, IDS = 96, 3, [(37 * i + 11) % 96 for i in range(24)]
SHAPE = {
    "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "partial_rotary_factor": 0.75, "long_factor": [1.5, 3.0, 4.0],
            "short_factor": [1.0, 1.2, 1.4], "original_max_position_embeddings": 16}

# name: (configuration class, its arguments, GGUF architecture or None, interleaved rows, added to norms, read back)
MODELS = {
    "llama": ("LlamaConfig", {"head_dim": 8, "rope_parameters": LLAMA3}, "llama", True, 0, False),
    "llama-linear": ("LlamaConfig", {"tie_word_embeddings": True, "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}},
                     "llama", True, 0, False),
    "llama-yarn": ("LlamaConfig", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                                                       "original_max_position_embeddings": 16}}, "llama", True, 0, False),
    "smollm3": ("SmolLM3Config", {"num_hidden_layers": 4, "rope_parameters": {"rope_type": "default", "rope_theta": 5e4}}, "smollm3", True, 0,
                False),
    "qwen2": ("Qwen2Config", {}, "qwen2", False, 0, True),
    "qwen3": ("Qwen3Config", {"head_dim": 16}, "qwen3", False, 0, False),
    "gemma": ("GemmaConfig", {"head_dim": 16}, "gemma", False, 1, False),
    "gemma2": ("Gemma2Config", {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8, "attn_logit_softcapping": 5.0,
                                "final_logit_softcapping": 8.0}, "gemma2", False, 1, False),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8, "num_hidden_layers": 6,
                                    "rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                                                        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}},
               "gemma3", False, 1, False),
    "phi3": ("Phi3Config", {"sliding_window": 8}, "phi3", False, 0, False),
    "phi3-longrope": ("Phi3Config", {"original_max_position_embeddings": 16, "rope_parameters": LONGROPE}, "phi3", False, 0, False),
    "granite": ("GraniteConfig", {"embedding_multiplier": 6.0, "residual_multiplier": 0.3, "attention_multiplier": 0.2,
                                  "logits_scaling": 4.0}, "granite", True, 0, False),
    "olmo2": ("Olmo2Config", {}, "olmo2", False, 0, False),
    "glm4": ("Glm4Config", {"head_dim": 8, "attention_bias": True}, "glm4", False, 0, False),
    "exaone4": ("Exaone4Config", {"sliding_window": 8, "num_hidden_layers": 4, "sliding_window_pattern": 4}, "exaone4", False, 0, False),
    "stablelm": ("StableLmConfig", {"use_qkv_bias": True}, "stablelm", False, 0, True),
    "starcoder2": ("Starcoder2Config", {"sliding_window": 8}, "starcoder2", False, 0, False),
    "phi": ("PhiConfig", {"num_key_value_heads": 4}, "phi2", False, 0, False),
    "stablelm-parallel": ("StableLmConfig", {"use_parallel_residual": True}, "stablelm", False, 0, False),
    "hf-glm": ("GlmConfig", {"head_dim": 16, "attention_bias": True}, None, False, 0, False),
    "hf-starcoder2": ("Starcoder2Config", {"sliding_window": None, "tie_word_embeddings": False}, None, False, 0, False),
    "hf-phi": ("PhiConfig", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}, None, False, 0,
               False),
    "hf-codegen": ("CodeGenConfig", {"n_embd": 32, "n_layer": LAYERS, "n_head": 4, "n_positions": 64, "n_ctx": 64, "rotary_dim": 4}, None,
                   False, 0, False),
    "hf-stablelm": ("StableLmConfig", {"use_qkv_bias": True}, None, False, 0, False),
    "hf-smollm3": ("SmolLM3Config", {"num_hidden_layers": 4, "use_sliding_window": True, "sliding_window": 8}, None, False, 0, False),
    "hf-qwen2": ("Qwen2Config", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}, None, False, 0, False),
}


def randomize(model, centre):
    generator = torch.Generator().manual_seed(7)
    for name, tensor in model.named_parameters():
        noise = torch.randn(tensor.shape, generator=generator)
        if tensor.dim() == 1:
            tensor.data = (0.3 * noise + (1.0 - centre if name.endswith("weight") else 0.0)).float()
        else:
            tensor.data = (noise * (1.0 if "embed" in name else 1.5 / tensor.shape[1] ** 0.5)).half().float()


def write_metadata(writer, config, arch):
    heads, hidden = config.num_attention_heads, config.hidden_size
    size = getattr(config, "head_dim", None) or hidden // heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(hidden)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_vocab_size(VOCAB)
    if size != hidden // heads:
        writer.add_key_length(size)
        writer.add_value_length(size)
    if hasattr(config, "rms_norm_eps"):
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    else:
        writer.add_layer_norm_eps(config.norm_epsilon if arch == "starcoder2" else config.layer_norm_eps)
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    rotary = int(size * rope.get("partial_rotary_factor", 1.0))
    writer.add_rope_dimension_count(rotary)
    writer.add_rope_freq_base(rope["rope_theta"])
    kind = rope["rope_type"]
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind in ("yarn", "longrope"):
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "longrope":
        stretched = config.max_position_embeddings / rope["original_max_position_embeddings"]
        writer.add_rope_scaling_attn_factors(float(numpy.sqrt(1 + numpy.log(stretched) / numpy.log(rope["original_max_position_embeddings"]))))
        for which in ("long", "short"):
            writer.add_tensor(f"rope_factors_{which}.weight", numpy.array(rope[f"{which}_factor"], "float32"))
    if kind == "llama3":
        frequencies = rope["rope_theta"] ** -(numpy.arange(0, rotary, 2) / rotary)
        waves = 2 * numpy.pi / frequencies
        context = rope["original_max_position_embeddings"]
        low, high = context / rope["low_freq_factor"], context / rope["high_freq_factor"]
        smooth = (context / waves - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
        blend = 1 / ((1 - smooth) / rope["factor"] + smooth)
        factors = numpy.where(waves < high, 1.0, numpy.where(waves > low, rope["factor"], blend))
        writer.add_tensor("rope_freqs.weight", factors.astype("float32"))
    if getattr(config, "sliding_window", None):
        writer.add_sliding_window(config.sliding_window)
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if arch == "granite":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if arch == "stablelm":
        writer.add_parallel_residual(config.use_parallel_residual)
    writer.add_eos_token_id(config.eos_token_id)


def interleave(rows, heads):
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def write_gguf(path, model, arch, permuted, added):
    config = model.config
    writer = gguf.GGUFWriter(path, arch)
    write_metadata(writer, config, arch)
    kind = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    for name, tensor in model.named_parameters():
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert stored, name
        values = tensor.data.numpy()
        if permuted and ("q_proj" in name or "k_proj" in name):
            values = interleave(values, config.num_attention_heads if "q_proj" in name else config.num_key_value_heads)
        if name.endswith("norm.weight"):
            values = values + numpy.float32(added)
        writer.add_tensor(stored, values.astype("float16" if values.ndim > 1 else "float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    out = pathlib.Path(sys.argv[1])
    for name, (configuration, arguments, arch, permuted, added, readable) in MODELS.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        shape = {k: v for k, v in SHAPE.items() if k not in arguments}
        if configuration == "CodeGenConfig":  # has names of its own for the rest
            shape = {"vocab_size": VOCAB, "bos_token_id": 1, "eos_token_id": 2}
        config = getattr(transformers, configuration)(**shape, **arguments)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
        with torch.no_grad():
            randomize(model, added)
            logits = model(torch.tensor([IDS])).logits[0].numpy()
        if arch:
            write_gguf(out / f"{name}.gguf", model, arch, permuted, added)
        else:
            model.save_pretrained(out / name)
        logits.astype("<f4").tofile(out / f"{name}.f32")
        print(name, "largest logit", numpy.abs(logits).max())
        if readable:
            again = transformers.AutoModelForCausalLM.from_pretrained(out, gguf_file=f"{name}.gguf", dtype=torch.float32).eval()
            with torch.no_grad():
                difference = numpy.abs(again(torch.tensor([IDS])).logits[0].numpy() - logits).max()
            print("   read back by transformers:", difference)


main()
