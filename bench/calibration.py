"""Float calibration passes: ours beside transformers on torch, alternating in one run, as tokens per second and their ratio.

Usage: python bench/calibration.py MODEL.gguf --program build/bench/calibration [--tokens 512] [--threads 2] [--rounds 5]

Our side is bench/calibration.c: full causal attention over the tokens, logits of every position, the range of every activation taken.
The peer's side is one forward pass of AutoModelForCausalLM in float32 over as many tokens, logits of every position, nothing observed."""

import argparse
import json
import pathlib
import statistics
import subprocess
import time


def peer_model(path, threads):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(threads)
    return torch, AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()


def peer_pass(torch, model, tokens):
    ids = torch.tensor([[(t * 7919 + 11) % 40000 for t in range(tokens)]])
    with torch.no_grad():
        started = time.perf_counter()
        model(ids, use_cache=False)
        return tokens / (time.perf_counter() - started)


def our_pass(program, path, tokens, threads):
    command = [program, str(path), str(tokens), "1", str(threads)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--program", default="build/bench/calibration")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch, model = peer_model(options.model, options.threads)
    peer_pass(torch, model, options.tokens)
    ours, peers, peak = [], [], 0
    for _ in range(options.rounds):  # alternating, so that other load on the machine meets both
        peers.append(peer_pass(torch, model, options.tokens))
        result = our_pass(options.program, options.model, options.tokens, options.threads)
        ours.append(result["mean_tokens_per_second"])
        peak = max(peak, result["peak_bytes"])
    ratios = [a / b for a, b in zip(ours, peers)]
    print(f"ours          {statistics.median(ours):8.1f} tok/s  (best {max(ours):.1f}; peak memory {peak / 1e6:.0f} MB)")
    print(f"transformers  {statistics.median(peers):8.1f} tok/s  (best {max(peers):.1f}; torch {torch.__version__}, float32)")
    print(f"ratio         {statistics.median(ratios):8.2f}        (rounds: {', '.join(f'{r:.2f}' for r in ratios)})")


if __name__ == "__main__":
    main()
