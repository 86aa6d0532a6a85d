"""The reference tokenizers of vocabulary files, each from the library that defines its ids.

Not a program: tests/interop/test_tokenizer.py imports it. `of(path)` gives a Reference for
  - a GGUF with a byte-level vocabulary: Hugging Face tokenizers, with the splitting rules of the models' own tokenizer.json;
  - a GGUF with a scored vocabulary: sentencepiece, over a model rebuilt from the GGUF's pieces and scores;
  - tokenizer.json: Hugging Face tokenizers;
  - a SentencePiece model: sentencepiece;
  - a tiktoken file or tekken.json: tiktoken, with the patterns and special tokens that their makers publish.
"""
import base64
import json
import re
import unicodedata

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTIONS + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + CONTRACTIONS +
         r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


class Reference:
    def __init__(self, encode, decode=None, special=(), tokenizer=None):
        self.encode = encode
        self.decode = decode  # of ids; None where the reference's text is another matter
        self.special = list(special)
        self.tokenizer = tokenizer  # of the library tokenizers, where that is the reference


def of(path):
    data = path.open("rb").read(64)
    if data[:4] == b"GGUF":
        return gguf(path)
    if data.lstrip()[:1] == b"{":
        root = json.loads(path.read_text())
        return tekken(root) if "config" in root else hugging_face(str(path))
    return sentencepiece_file(path) if data[:1] == b"\n" else ranked_file(path)


def hugging_face(path):
    from tokenizers import Tokenizer
    return wrapped(Tokenizer.from_file(path))


def wrapped(tokenizer):
    return Reference(lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
                     lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
                     [token.content for token in tokenizer.get_added_tokens_decoder().values()], tokenizer)


def metadata(path):
    from gguf import GGUFReader
    return {key: field.contents() for key, field in GGUFReader(path).fields.items() if key.startswith(("tokenizer.", "general."))}


def gguf(path):
    fields = metadata(path)
    return byte_level_gguf(fields) if fields["tokenizer.ggml.model"] == "gpt2" else scored_gguf(fields)


def splits_of(name):
    """(pre-tokenizer steps, normalizer, ignore_merges) of the models behind llama.cpp's name."""
    from tokenizers import Regex, normalizers, pre_tokenizers as pre
    split = lambda pattern: pre.Split(Regex(pattern), "isolated")
    spelled = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre.ByteLevel(add_prefix_space=False)
    return {
        "llama-bpe": ([split(LLAMA3), spelled], None, True),
        "qwen2": ([split(QWEN2), spelled], normalizers.NFC(), False),
        "gpt-2": ([gpt2], None, False),
        "mpt": ([gpt2], normalizers.NFC(), False),
        "smollm": ([pre.Digits(individual_digits=True), gpt2], None, False),
        "starcoder": ([pre.Digits(individual_digits=True), gpt2], None, False),
        "refact": ([pre.Digits(individual_digits=True), gpt2], None, False),
        "command-r": ([pre.Digits(individual_digits=True), gpt2], None, False),
        "deepseek-coder": ([split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-\ud7ff]+"),
                            pre.Digits(individual_digits=True), spelled], None, False),
    }.get(name)


def byte_level_gguf(fields):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    rules = splits_of(fields.get("tokenizer.ggml.pre", "default"))
    if rules is None:
        return None
    steps, normalizer, ignore_merges = rules
    contents, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = []
    for line in fields["tokenizer.ggml.merges"]:
        cut = line.index(" ", 1)
        merges.append((line[:cut], line[cut + 1:]))
    tokenizer = Tokenizer(models.BPE({content: i for i, content in enumerate(contents)}, merges, ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [{"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                              "special": kind != USER_DEFINED}
                             for i, (content, kind) in enumerate(zip(contents, types)) if kind in (UNKNOWN, CONTROL, USER_DEFINED)]
    return wrapped(Tokenizer.from_str(json.dumps(state)))


def scored_gguf(fields):
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
    if fields["tokenizer.ggml.model"] != "llama":
        return None
    unknown = fields.get("tokenizer.ggml.unknown_token_id", 0)
    contents = fields["tokenizer.ggml.tokens"]
    types = [CONTROL if kind == UNKNOWN and i != unknown else kind for i, kind in enumerate(fields["tokenizer.ggml.token_type"])]
    types[unknown] = UNKNOWN
    model = sentencepiece_model_pb2.ModelProto()
    for content, kind, score in zip(contents, types, fields["tokenizer.ggml.scores"]):
        # Converters write user-defined pieces with plain spaces.
        model.pieces.add(piece=content.replace(" ", "▁") if kind == USER_DEFINED else content, score=score, type=kind)
    model.trainer_spec.model_type = 2
    model.trainer_spec.byte_fallback = BYTE in types
    prefix = bool(fields.get("tokenizer.ggml.add_space_prefix", True))
    model.normalizer_spec.add_dummy_prefix = prefix
    model.normalizer_spec.remove_extra_whitespaces = False
    if prefix and USER_DEFINED in types:
        return None  # llama.cpp and SentencePiece differ in what follows a user-defined piece
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    special = {content: i for i, (content, kind) in enumerate(zip(contents, types)) if kind in (UNKNOWN, CONTROL)}
    parts = re.compile("(" + "|".join(map(re.escape, sorted(special, key=len, reverse=True))) + ")")

    def encode(text):
        ids = []
        for part in parts.split(text):
            if part:
                ids += [special[part]] if part in special else processor.encode(part)
        return ids

    return Reference(encode, None, list(special)[:8] + [c for c, kind in zip(contents, types) if kind == USER_DEFINED][:12])


def sentencepiece_file(path):
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    # sentencepiece itself never parses control pieces in a text, so none is put into the texts.
    return Reference(processor.encode, lambda ids: None if processor.unk_id() in ids else processor.decode(ids))


KNOWN_RANKS = {
    128000: (LLAMA3, ["<|begin_of_text|>", "<|end_of_text|>"], {"<|start_header_id|>": 128006, "<|end_header_id|>": 128007, "<|eom_id|>": 128008,
                                                               "<|eot_id|>": 128009, "<|python_tag|>": 128010}, False),
    200000: (O200K, ["<|begin_of_text|>", "<|end_of_text|>"], {"<|header_start|>": 200005, "<|eot|>": 200008, "<|patch|>": 200092}, False),
    151643: (QWEN2, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|extra_0|>"], {"<|extra_204|>": 151850}, True),
}


def ranked_file(path):
    import tiktoken
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in path.read_bytes().splitlines() if line)}
    if len(ranks) not in KNOWN_RANKS:
        return None
    pattern, first, more, nfc = KNOWN_RANKS[len(ranks)]
    special = {content: len(ranks) + i for i, content in enumerate(first)} | more
    encoding = tiktoken.Encoding("reference", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    normalize = (lambda text: unicodedata.normalize("NFC", text)) if nfc else (lambda text: text)
    return Reference(lambda text: encoding.encode(normalize(text), allowed_special="all"), None, special)


def tekken(root):
    import tiktoken
    special = root["config"]["default_num_special_tokens"]
    used = root["config"]["default_vocab_size"] - special
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in root["vocab"][:used]}
    encoding = tiktoken.Encoding("reference", pat_str=root["config"]["pattern"], mergeable_ranks=ranks, special_tokens={})
    return Reference(lambda text: [i + special for i in encoding.encode(text, disallowed_special=())])
