"""Encoding a text of about 1 MB: ours beside the reference library, one thread each, alternating in one run; the ids must be equal.

Usage: python bench/tokenizer.py MODEL [--text FILE] [--program build/bench/tokenizer] [--rounds 5]

MODEL is a GGUF, a tokenizer.json, a SentencePiece model or a tiktoken file; the reference is tokenizers, sentencepiece or tiktoken as
tests/tools/make_tokenizer_reference.py says. The peer gets the whole text at once and, where that is the same, line by line; its fastest way
counts."""

import argparse
import array
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "tools"))


def peer_tokenizer(path):
    """The reference, and the seconds that loading took."""
    import make_tokenizer_reference

    started = time.perf_counter()
    return make_tokenizer_reference.of(path), time.perf_counter() - started


def generated_text():
    from make_tokenizer_corpus import corpus

    texts, size, seed = [], 0, 1
    while size < 1_000_000:
        texts += corpus([], 500, seed=seed)[100:]
        size = sum(len(text) for text in texts)
        seed += 1
    return "\n".join(texts)


def peer_ways(source, text):
    peer = source.tokenizer
    if not peer:
        return {"encode": lambda: source.encode(text)}
    lines = text.split("\n")
    return {
        "encode": lambda: peer.encode(text, add_special_tokens=False),
        "encode_batch_fast": lambda: peer.encode_batch_fast([text], add_special_tokens=False),
        "encode_batch_fast by line": lambda: peer.encode_batch_fast(lines, add_special_tokens=False),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--program", default="build/bench/tokenizer")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    text = options.text.read_bytes().decode() if options.text else generated_text()
    peer, peer_load = peer_tokenizer(options.model)
    want = peer.encode(text)
    ways = peer_ways(peer, text)
    ours, peers, loads, names = [], [], [], set()
    with tempfile.TemporaryDirectory() as folder:
        source, ids = pathlib.Path(folder) / "text", pathlib.Path(folder) / "ids"
        source.write_bytes(text.encode())
        for _ in range(options.rounds):
            times = {}
            for name, way in ways.items():
                started = time.perf_counter()
                way()
                times[name] = time.perf_counter() - started
            fastest = min(times, key=times.get)
            names.add(fastest)
            peers.append(times[fastest])
            result = json.loads(subprocess.run([options.program, str(options.model), str(source), "3", str(ids)], capture_output=True, text=True,
                                               check=True).stdout)
            ours.append(result["mean_seconds"])
            loads.append(result["load_seconds"])
        got = array.array("i")
        got.frombytes(ids.read_bytes())
    size = result["bytes"] / 1e6
    print(f"{result['kind']}, {size:.2f} MB of text, {len(got)} ids, {'equal' if list(got) == want else 'DIFFERENT'}")
    print(f"ours        {size / statistics.median(ours):8.2f} MB/s   load {statistics.median(loads) * 1e3:7.1f} ms")
    print(f"reference   {size / statistics.median(peers):8.2f} MB/s   load {peer_load * 1e3:7.1f} ms   ({', '.join(sorted(names))})")
    ratios = [b / a for a, b in zip(ours, peers)]
    print(f"ratio       {statistics.median(ratios):8.1f}        (rounds: {', '.join(f'{r:.1f}' for r in ratios)})")
    return 0 if list(got) == want else 1


if __name__ == "__main__":
    sys.exit(main())
