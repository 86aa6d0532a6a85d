#!/usr/bin/env python3
"""Writes tests/data/tokenizer/small/: tiny tokenizers of every kind, with the ids, pieces and texts that the reference libraries give.

    python tests/tools/make_tokenizer_small.py tests/data/tokenizer/small

References: Hugging Face tokenizers (tokenizers.json, splits.json, normalizers.json), sentencepiece (*.model, sentencepiece.json) and tiktoken
(tiktoken/, tekken.json, ranked.json). Everything is trained here on generated text; the same versions give the same files.
"""
import base64
import io
import json
import os
import pathlib
import sys
import tempfile

import sentencepiece
import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from make_tokenizer_corpus import FIXED, corpus

TRAINING = [text for text in corpus([], 700, seed=7) if len(text) < 400]
TEXTS = [text for text in FIXED if len(text) < 90] + corpus([], 160, seed=11, scale=0.5)[len(FIXED):130]

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
O200K = (BEFORE + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?|" + BEFORE + UPPER + "+" + LOWER + "*" + CONTRACTIONS +
         r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL)
TEKKEN = BEFORE + UPPER + "*" + LOWER + "+|" + BEFORE + UPPER + "+" + LOWER + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + TAIL)
SEED = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + TAIL
BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
DIGITS_ANY = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL


def special(*contents):
    return [AddedToken(content, special=True, normalized=False) for content in contents]


def byte_level(merges, splits, nfc=False, ignore_merges=False):
    """A byte-level BPE trained with its own pre-tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits) if len(splits) > 1 else splits[0]
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=256 + merges, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(TRAINING, trainer)
    if ignore_merges:
        tokenizer.model.ignore_merges = True
    return tokenizer


def characters(size, pre, byte_fallback=False, added=()):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=byte_fallback, fuse_unk=byte_fallback))
    tokenizer.pre_tokenizer = pre
    first = ["<unk>", "<s>", "</s>"] + (["<0x%02X>" % i for i in range(256)] if byte_fallback else []) + list(added)
    trainer = trainers.BpeTrainer(vocab_size=len(first) + size, special_tokens=first, show_progress=False)
    # Other characters than these are unknown to the vocabulary. (The trainer's own limit on the alphabet picks among equals at random.)
    tokenizer.train_from_iterator(["".join(c for c in text if " " <= c <= "~" or "à" <= c <= "ï") for text in TRAINING], trainer)
    # The trainer marks byte tokens special; real files do not.
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if not token["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(state))


def spelled():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def template(tokenizer, single, *names):
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=[(n, tokenizer.token_to_id(n)) for n in names])


def make_tokenizers():
    gpt2 = byte_level(300, [pre_tokenizers.ByteLevel(add_prefix_space=False)])
    gpt2.add_special_tokens(special("<|endoftext|>"))
    gpt2.add_tokens([AddedToken("<|extratoken_1|>", normalized=False)])
    yield "gpt2", gpt2, ["<|endoftext|>x", " <|extratoken_1|> ", "a<|extratoken_1|>b"]

    prefixed = byte_level(200, [pre_tokenizers.ByteLevel(add_prefix_space=True)])
    prefixed.add_special_tokens(special("<s>"))
    yield "byte-level with prefix space", prefixed, ["<s>x", "<s> x", "x<s>"]

    smollm = byte_level(300, [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    smollm.add_special_tokens(special("<|im_start|>", "<|im_end|>"))
    yield "smollm", smollm, ["<|im_start|>user\nHi 12<|im_end|>\n"]

    llama3 = byte_level(300, [split(LLAMA3), spelled()], ignore_merges=True)
    # A token that no merge makes: only ignore_merges finds it.
    state = json.loads(llama3.to_str())
    state["model"]["vocab"]["ĠVi\u00e1\u00bb\u0129t"] = len(state["model"]["vocab"])
    llama3 = Tokenizer.from_str(json.dumps(state))
    llama3.add_special_tokens(special("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"))
    template(llama3, "<|begin_of_text|> $A", "<|begin_of_text|>")
    yield "llama3", llama3, ["<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>", "x Việt Việt", "3333+777"]

    qwen2 = byte_level(300, [split(QWEN2), spelled()], nfc=True)
    qwen2.add_special_tokens(special("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    qwen2.add_tokens([AddedToken("<think>", normalized=False), AddedToken("cafe\u0301", normalized=True)])
    yield "qwen2", qwen2, ["<think>e\u0301</think>", "cafe\u0301 caf\u00e9", "->", "(x):\n"]

    falcon = byte_level(250, [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
                              pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")])
    yield "falcon", falcon, ["12345 ...x!!² 1234567"]

    o200k = byte_level(250, [split(O200K), spelled()])
    yield "o200k", o200k, ["HTTPServer's ABCdef 中A中a"]

    deepseek = byte_level(250, [split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3), spelled()])
    yield "deepseek3", deepseek, [".method(x) 漢字かなABC"]

    # Llama 2: dummy prefix and byte fallback in the normalizer.
    llama2 = characters(400, pre_tokenizers.Metaspace(), byte_fallback=True)
    llama2.pre_tokenizer = None
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama2.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    template(llama2, "<s> $A", "<s>")
    yield "llama2", llama2, ["<s>[INST] Hi [/INST]", "a</s>b", "</s> x"]

    # Mistral v3: the dummy prefix only at the start of the text.
    first = Tokenizer.from_str(llama2.to_str())
    first.normalizer = None
    first.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    yield "metaspace first", first, ["<s>x", "x</s>y", "x</s> y"]

    # Gemma: no prefix, user-defined runs of spaces and line ends.
    gemma = characters(350, pre_tokenizers.Metaspace(prepend_scheme="never"), byte_fallback=True,
                       added=["▁▁", "▁▁▁", "\n\n", "\t\t", "[toxicity=0]"])
    gemma.normalizer = normalizers.Replace(" ", "▁")
    gemma.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    gemma.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    template(gemma, "<s> $A </s>", "<s>", "</s>")
    yield "gemma", gemma, ["\t\t\t\t\ttest", "a\n\n\nb", "    x", "[toxicity=0]"]

    # Unknown characters, fused and not.
    unknown = characters(300, pre_tokenizers.Metaspace())
    unknown.decoder = decoders.Metaspace()
    yield "unknown not fused", unknown, ["漢漢a漢"]
    fused = Tokenizer.from_str(unknown.to_str())
    fused.model.fuse_unk = True
    fused.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    fused.decoder = decoders.Metaspace(prepend_scheme="never")
    yield "unknown fused", fused, ["漢漢a漢"]

    flags = byte_level(200, [pre_tokenizers.ByteLevel(add_prefix_space=False)])
    flags.normalizer = normalizers.Lowercase()
    flags.add_tokens([AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False),
                      AddedToken("<b>", lstrip=True, rstrip=True, normalized=True), AddedToken("word", single_word=True, normalized=False),
                      AddedToken("Mixed", normalized=True), AddedToken("É", normalized=True),
                      AddedToken("\n\n", lstrip=True, normalized=False), AddedToken("  ", lstrip=True, rstrip=True, normalized=True)])
    yield "added token flags", flags, ["a  <l>  b", "a  <r> \n b", "a  <b>\t b <B> c", "word words sword _word word", "mixed MIXED Mixed é É",
                                       "<l><r> <l>", "  <r>  <l>  ", "<b> <b>",
                                       "a<r>\n\nb", "<r>\n\n<r>\n\n", "a \n\nb", "<b>  b", "a    <l>\n\n", "x" + " " * 7 + "y"]

    bert_like = characters(300, pre_tokenizers.BertPreTokenizer())
    bert_like.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Nmt(),
                                                 normalizers.Replace(Regex(r"\d+"), "0")])
    template(bert_like, "<s> $A </s>", "<s>", "</s>")
    yield "normalizers and punctuation", bert_like, ["Ⅷ ½ ﬁ 2024-11-30"]

    normalized_bytes = byte_level(200, [split(r"\w+|\s+")])
    normalized_bytes.normalizer = normalizers.ByteLevel()
    yield "byte-level normalizer", normalized_bytes, []


def make_unigrams(charsmap):
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
    pieces += [(piece, score) for piece, score in train_unigram_pieces() if piece not in ("<unk>", "<s>", "</s>")]
    plain = Tokenizer(models.Unigram(pieces, 0, False))
    plain.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
    plain.pre_tokenizer = pre_tokenizers.Metaspace()
    plain.decoder = decoders.Metaspace()
    plain.add_special_tokens(special("<s>", "</s>"))
    template(plain, "$A </s>", "</s>")
    yield "unigram", plain, ["ﬁne ½ ﬁ"]
    fallback = Tokenizer(models.Unigram(pieces + [("<0x%02X>" % i, -20.0) for i in range(256)], 0, True))
    fallback.normalizer = normalizers.Replace(" ", "▁")
    fallback.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    yield "unigram with byte fallback", fallback, []


def train_sentencepiece(out, name, **options):
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        rules = options.pop("rules", None)
        if rules:
            path = pathlib.Path(folder) / "rules.tsv"
            os.chdir(folder)  # the model records the name as it is given
            path.write_text("".join("%s\t%s\n" % (" ".join("%X" % ord(c) for c in a), " ".join("%X" % ord(c) for c in b)) for a, b in rules))
            options["normalization_rule_tsv"] = path.name
        model = io.BytesIO()
        lines = [line for text in TRAINING for line in text.split("\n") if line.strip() and sum(c < "\x7f" for c in line) > 0.9 * len(line)]
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, minloglevel=2, hard_vocab_limit=False,
                                                 character_coverage=0.98, num_threads=1, **options)
        os.chdir(here)
    data = model.getvalue()
    if out:
        (out / (name + ".model")).write_bytes(data)
    return data


RULES = [("ﬁ", "fi"), ("½", "1/2"), ("\u212b", "\u00c5"), ("A\u030a", "\u00c5"), ("\u3000", " "), ("\t", " "), ("…", "...")]


def train_unigram_pieces():
    data = train_sentencepiece(None, "", model_type="unigram", vocab_size=420, normalization_rule_name="identity")
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    return [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]


SENTENCEPIECE = {
    "llama": dict(model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                  split_digits=True, allow_whitespace_only_pieces=True),
    "gemma": dict(model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                  add_dummy_prefix=False, user_defined_symbols=["▁▁", "▁▁▁", "<table>"]),
    "plain": dict(model_type="bpe", vocab_size=400, rules=RULES),
    "suffix": dict(model_type="bpe", vocab_size=350, treat_whitespace_as_suffix=True, rules=RULES[:2]),
    "unigram": dict(model_type="unigram", vocab_size=420, rules=RULES),
    "unigram_bytes": dict(model_type="unigram", vocab_size=700, byte_fallback=True, normalization_rule_name="identity",
                          remove_extra_whitespaces=False, user_defined_symbols=["▁▁", "<table>"]),
}


def make_sentencepiece(out):
    entries = []
    for name, options in SENTENCEPIECE.items():
        processor = sentencepiece.SentencePieceProcessor(model_proto=train_sentencepiece(out, name, **dict(options)))
        cases = []
        for text in TEXTS + ["<table>x</table>", "a<table>", "  leading", "trailing  ", "ﬁne ½\u3000x…"]:
            ids = processor.encode(text)
            if processor.unk_id() in ids:  # decoding an unknown piece is a matter of taste: the id list decides
                cases.append([text, ids])
            else:
                cases.append([text, ids, processor.decode(ids)])
        entries.append({"name": name, "cases": cases})
    write(out / "sentencepiece.json", {"reference": "sentencepiece " + sentencepiece.__version__}, entries)


def make_ranked(out):
    trained = byte_level(300, [split(LLAMA3), spelled()])
    to_byte = {c: b for b, c in enumerate_byte_alphabet()}
    ranks = {}
    for content, _ in sorted(trained.get_vocab().items(), key=lambda item: item[1]):
        ranks[bytes(to_byte[c] for c in content)] = len(ranks)
    specials = {"<|begin|>": len(ranks), "<|end|>": len(ranks) + 1}
    folder = out / "tiktoken"
    folder.mkdir(exist_ok=True)
    lines = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    (folder / "tokenizer.model").write_bytes(lines)
    config = {"added_tokens_decoder": {str(i): {"content": c, "special": True} for c, i in specials.items()}, "bos_token": "<|begin|>",
              "eos_token": {"content": "<|end|>"}, "chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    encoding = tiktoken.Encoding("small", pat_str=LLAMA3, mergeable_ranks=ranks, special_tokens=specials)
    texts = TEXTS + ["<|begin|>x<|end|>"]
    cases = [[text, encoding.encode(text, allowed_special="all")] for text in texts]
    # Tekken: the same ranks behind ten special tokens, of which the file names two; the last 20 ranks are not used.
    used = len(ranks) - 20
    tekken = {"config": {"pattern": TEKKEN, "num_vocab_tokens": len(ranks), "default_vocab_size": used + 10, "default_num_special_tokens": 10,
                         "version": "v7"},
              "vocab": [{"rank": r, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for t, r in ranks.items()],
              "special_tokens": [{"rank": 0, "token_str": "<unk>", "is_control": True}, {"rank": 1, "token_str": "<s>", "is_control": True}]}
    (out / "tekken.json").write_text(json.dumps(tekken, separators=(",", ":")) + "\n")
    inner = tiktoken.Encoding("tekken", pat_str=TEKKEN, mergeable_ranks={t: r for t, r in ranks.items() if r < used}, special_tokens={})
    tekken_cases = [[text, [i + 10 for i in inner.encode(text, disallowed_special=())]] for text in TEXTS]
    write(out / "ranked.json", {"reference": "tiktoken " + tiktoken.__version__},
          [{"name": "tiktoken", "cases": cases}, {"name": "tekken", "cases": tekken_cases}])


def enumerate_byte_alphabet():
    printable = list(range(33, 127)) + list(range(0xa1, 0xad)) + list(range(0xae, 0x100))
    others = [b for b in range(256) if b not in printable]
    return [(b, chr(b)) for b in printable] + [(b, chr(256 + n)) for n, b in enumerate(others)]


def make_gguf(out):
    """A byte-level vocabulary and one with scores, as llama.cpp's converters write them; no tensors."""
    import gguf
    tokenizer = byte_level(300, [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.add_special_tokens(special("<|im_start|>", "<|im_end|>"))
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    state = json.loads(tokenizer.to_str())
    contents = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    added = {token["content"]: 3 if token["special"] else 4 for token in state["added_tokens"]}
    writer = gguf.GGUFWriter(str(out / "bytes.gguf"), "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(contents)
    writer.add_token_types([added.get(content, 1) for content in contents])
    writer.add_token_merges([" ".join(merge) for merge in state["model"]["merges"]])
    writer.add_bos_token_id(tokenizer.token_to_id("<|im_start|>"))
    writer.add_eos_token_id(tokenizer.token_to_id("<|im_end|>"))
    writer.add_add_bos_token(True)
    writer.add_chat_template("{{ messages }}")
    finish_gguf(writer)
    cases = []
    for text in TEXTS + ["<|im_start|>a<think>b<|im_end|>", "Call 123 please"]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append([text, ids, tokenizer.decode(ids, skip_special_tokens=False)])
    entries = [{"name": "bytes", "cases": cases}]

    processor = sentencepiece.SentencePieceProcessor(model_file=str(out / "llama.model"))
    size = processor.get_piece_size()
    kinds = [2 if processor.is_unknown(i) else 3 if processor.is_control(i) else 6 if processor.is_byte(i) else 1 for i in range(size)]
    writer = gguf.GGUFWriter(str(out / "scores.gguf"), "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([processor.id_to_piece(i) for i in range(size)])
    writer.add_token_scores([processor.get_score(i) for i in range(size)])
    writer.add_token_types(kinds)
    writer.add_unk_token_id(processor.unk_id())
    finish_gguf(writer)
    entries.append({"name": "scores", "cases": [[text, processor.encode(text), processor.decode(processor.encode(text))] for text in TEXTS]})
    write(out / "gguf.json", {"reference": f"tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}"}, entries)


def finish_gguf(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def make_splits(out):
    patterns = [GPT2, LLAMA3, QWEN2, QWEN35, DIGITS_ANY, SEED, BAILING, O200K, TEKKEN, DEEPSEEK3]
    texts = TEXTS + corpus([], 170, seed=3, scale=0.5)[len(FIXED):]
    entries = [{"regex": p, "behavior": "Isolated", "invert": False, "cases": cases_of(split(p), texts)} for p in patterns]
    others = [r"\s+", r"\p{L}+|\p{N}", r"[aeiou]", r"\w+", r"\bx+\b", r"x{2}+", r"\d{1,2}+", r"[\p{L}&&[^a-m]]+", r"(?=[A-Z])", r"[\u3040-\u30ff]+",
              r"^\w|\w$", r"\h+", r"\S+", r"[一-龥]+", r"(?=(\d{3})+(?!\d))", r"\d{1,3}(?=(?:\d{3})*\b)", r"\p{Han}+", r"[[:punct:]]+",
              r"\P{L}+", r"[[:alnum:][:space:]]+", r"[^\S\n]+", r"[a-z\S]+", r" ?[^(\s|[.,!?…。，、।۔،])]+", r"[^\D]+", r"[\W]"]
    behaviors = ["Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
    names = ["isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next"]
    for i, pattern in enumerate(others):
        for k in (i % 5, (i + 2) % 5):
            invert = (i + k) % 3 == 0
            pre = pre_tokenizers.Split(Regex(pattern), names[k], invert=invert)
            entries.append({"regex": pattern, "behavior": behaviors[k], "invert": invert, "cases": cases_of(pre, TEXTS[20:60])})
    write(out / "splits.json", {"reference": "tokenizers " + tokenizers.__version__}, entries)


def cases_of(pre, texts):
    return [[text, [piece for piece, _ in pre.pre_tokenize_str(text)]] for text in texts]


def make_normalizers(out, charsmap):
    kinds = [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(), normalizers.Lowercase(), normalizers.Strip(),
             normalizers.Strip(True, False), normalizers.Prepend("▁"), normalizers.Replace("l", "LL"), normalizers.Replace(Regex(r"\s+"), " "),
             normalizers.Nmt(), normalizers.ByteLevel(), normalizers.Precompiled(charsmap)]
    texts = TEXTS + ["e\u0301\u00e9", "\u1fbd", "\ud55c\uae00 \u1112\u1161\u11ab \uac00\u11a8", "q\u0323\u0307 q\u0307\u0323", "\u212bA\u030a", "ǅ İ ẞ",
                     "\u0344\u0958\u2126", "ﬁ½Ａ＃ｶﾞ", "A\u030a…\t\u3000"]
    entries = []
    for kind in kinds:
        probe = Tokenizer(models.BPE())
        probe.normalizer = kind
        entries.append({"json": json.loads(probe.to_str())["normalizer"], "cases": [[text, kind.normalize_str(text)] for text in texts]})
    write(out / "normalizers.json", {"reference": "tokenizers " + tokenizers.__version__}, entries)


def write(path, head, entries):
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    with open(path, "w", encoding="utf-8", newline="") as out:
        out.write(json.dumps(head)[:-1] + ',"entries":[\n' + lines + "\n]}\n")


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(train_sentencepiece(None, "", model_type="bpe", vocab_size=350, rules=RULES))
    charsmap = proto.normalizer_spec.precompiled_charsmap
    entries = []
    for name, tokenizer, extra in list(make_tokenizers()) + list(make_unigrams(charsmap)):
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        cases = []
        for text in extra + TEXTS[:90]:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            decoded = tokenizer.decode(ids, skip_special_tokens=False)
            cases.append([text, ids] if decoded == text else [text, ids, decoded])
        framed = tokenizer.encode("Hello").ids
        entries.append({"name": name, "json": json.loads(tokenizer.to_str()), "hello": framed, "cases": cases})
    write(out / "tokenizers.json", {"reference": "tokenizers " + tokenizers.__version__}, entries)
    make_splits(out)
    make_normalizers(out, charsmap)
    make_sentencepiece(out)
    make_gguf(out)
    make_ranked(out)


main()
