"""Writes tests/data/safetensors/widened.txt: for three fixture checkpoints (F32, sharded F16, BF16), every tensor's shape and the SHA-256 of its
elements as float32, by safetensors and torch: the independent reference for tests/checkpoint/test_hugging_face.c."""

import hashlib
import pathlib

import torch
from safetensors import safe_open

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"

lines = []
for name in ("llama", "llama-sharded-f16", "llama-tied-rope3-bf16"):
    for path in sorted((DATA / "checkpoints" / name).glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for key in sorted(file.keys()):
                tensor = file.get_tensor(key)
                digest = hashlib.sha256(tensor.to(torch.float32).contiguous().numpy().tobytes()).hexdigest()
                kind = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}[tensor.dtype]
                lines.append(f"{name} {key} {kind} {'x'.join(map(str, tensor.shape))} {digest}")
out = DATA / "safetensors"
out.mkdir(parents=True, exist_ok=True)
(out / "widened.txt").write_text("\n".join(lines) + "\n")
