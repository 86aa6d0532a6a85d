"""Writes tests/data/gguf with the `gguf` Python package (0.19), which is the independent reference for tests/checkpoint/test_gguf*.c.

  dequantize.gguf      per block type: random blocks, and beside them, as F32, what gguf.quants.dequantize makes of them
  metadata.gguf        every metadata type and arrays of every element type
  split-*.gguf         one small model in three files
  big-endian.gguf      the header of a big-endian file
  smollm2.txt          digests of dequantized tensors of SmolLM2-135M-Instruct Q4_1 (only when its path is given)

Usage: make_gguf_data.py [SMOLLM2_GGUF]
"""

import hashlib
import pathlib
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "gguf"
BLOCK_TYPES = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.IQ4_NL, T.IQ4_XS, T.MXFP4]


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def dequantize():
    rng = np.random.default_rng(20)
    writer = gguf.GGUFWriter(str(OUT / "dequantize.gguf"), "test")
    for kind in BLOCK_TYPES:
        size, width = gguf.GGML_QUANT_SIZES[kind]
        rows, blocks = 3, 512 // size if size < 256 else 2
        raw = rng.integers(0, 256, (rows, blocks * width), dtype=np.uint8)
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(raw, kind)
        name = kind.name.lower()
        writer.add_tensor(name, raw, raw_dtype=kind)
        writer.add_tensor(name + ".expected", np.ascontiguousarray(values, dtype=np.float32))
    write(writer)


def metadata():
    writer = gguf.GGUFWriter(str(OUT / "metadata.gguf"), "test")
    writer.add_custom_alignment(64)
    writer.add_uint8("u8", 200)
    writer.add_int8("i8", -100)
    writer.add_uint16("u16", 60000)
    writer.add_int16("i16", -30000)
    writer.add_uint32("u32", 4000000000)
    writer.add_int32("i32", -2000000000)
    writer.add_float32("f32", 0.1)
    writer.add_uint64("u64", 2**64 - 1)
    writer.add_int64("i64", -(2**63))
    writer.add_float64("f64", 0.1)
    writer.add_bool("yes", True)
    writer.add_bool("no", False)
    writer.add_string("string", "naïve 🦙\n")
    writer.add_key_value("empty string", "", gguf.GGUFValueType.STRING)
    V = gguf.GGUFValueType
    for name, sub, items in [
        ("u8s", V.UINT8, [0, 255]),
        ("i8s", V.INT8, [-128, 127]),
        ("u16s", V.UINT16, [1, 65535]),
        ("i16s", V.INT16, [-32768, 5]),
        ("u32s", V.UINT32, [7, 2**32 - 1]),
        ("i32s", V.INT32, [-(2**31), 9]),
        ("f32s", V.FLOAT32, [1.5, -0.25]),
        ("u64s", V.UINT64, [2**53, 3]),
        ("i64s", V.INT64, [-(2**53), 4]),
        ("f64s", V.FLOAT64, [0.1, -1e300]),
        ("bools", V.BOOL, [True, False]),
        ("strings", V.STRING, ["a", "bc", "déf"]),
    ]:
        writer.add_key_value(name, items, V.ARRAY, sub_type=sub)
    writer.add_tensor("matrix", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("cube", np.arange(24, dtype=np.float16).reshape(2, 3, 4))
    write(writer)


def split():
    writer = gguf.GGUFWriter(str(OUT / "split.gguf"), "llama", split_max_tensors=2)
    writer.add_block_count(1)
    for i in range(5):
        writer.add_tensor(f"tensor.{i}", np.full((2, 4), i, dtype=np.float32))
    write(writer)


def big_endian():
    writer = gguf.GGUFWriter(str(OUT / "big-endian.gguf"), "test", endianess=gguf.GGUFEndian.BIG)
    writer.add_block_count(1)
    write(writer)


def smollm2(path):
    reader = gguf.GGUFReader(path)
    lines = [hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()]
    for tensor in reader.tensors:
        if tensor.name in ("token_embd.weight", "blk.0.attn_norm.weight", "blk.0.ffn_down.weight", "blk.7.attn_k.weight", "blk.29.ffn_up.weight"):
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype("<f4")
            lines.append(f"{tensor.name} {tensor.tensor_type.name} {values.shape[0]} {hashlib.sha256(values.tobytes()).hexdigest()}")
    (OUT / "smollm2.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    dequantize()
    metadata()
    split()
    big_endian()
    if len(sys.argv) > 1:
        smollm2(sys.argv[1])
