#!/usr/bin/env python3
"""Writes tests/data/tokenizer/smollm2.json: texts and the ids that the reference library gives them.

The reference is Hugging Face tokenizers with the vocabulary and merges of the SmolLM2 GGUF and SmolLM2's own pre-tokenizer
(Digits, one by one, then ByteLevel), as its tokenizer.json has it.

    python tests/tools/make_tokenizer_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf tests/data/tokenizer/smollm2.json
"""
import json
import sys

import tokenizers
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from make_tokenizer_corpus import corpus

NORMAL, USER_DEFINED = 1, 4


def reference(path):
    fields = GGUFReader(path).fields
    contents = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(line.split(" ", 1)) for line in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({content: i for i, content in enumerate(contents)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    special = [content for content, kind in zip(contents, types) if kind not in (NORMAL, USER_DEFINED)]
    tokenizer.add_special_tokens([AddedToken(content, special=True, normalized=False) for content in special])
    return tokenizer, special


def main():
    tokenizer, special = reference(sys.argv[1])
    texts = corpus(special, 2400, scale=0.6)
    cases = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts]
    # The vocabulary lacks the tokens of a few rare bytes, so not every text comes back: record which do.
    for case in cases:
        if tokenizer.decode(case[1], skip_special_tokens=False) != case[0]:
            case.append(tokenizer.decode(case[1], skip_special_tokens=False))
    with open(sys.argv[2], "w", encoding="utf-8", newline="") as out:
        head = {"reference": f"tokenizers {tokenizers.__version__}", "vocabulary": "SmolLM2-135M-Instruct"}
        lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
        out.write(json.dumps(head)[:-1] + ',"cases":[\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
