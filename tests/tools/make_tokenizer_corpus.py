"""Varied texts for tokenizer tests: what people type, what broke tokenizers elsewhere, and random mixtures from a fixed seed.

Not a program: the make_tokenizer_*.py scripts import it.
"""
import random
import string

# Inputs that broke other tokenizers, and one of every kind of text whose splitting is special.
FIXED = [
    "", " ", "  ", "   ", "\n", "\n\n", "\t", "\t\t", "\r\n", " \n", "\n ", " \n \n  x", "a", "Hello", "Hello world", " Hello world ",
    "Hello, y'all! How are you 😁 ?", "Call 123 please", "What is 3333+777?", "->", "(x):\n", "This is 🦙.cpp", "\t\t\t\t\t\ttest",
    "[toxicity=0]", "Hello world! Café déjà vu — 123 😊", " <|extratoken_1|> ", " Việt", "e\u0301 \u00e9", "\u1fbd",
    "I'm you're we've they'll he'd it's 'Twas don't DON'T I'M '\u017f 'S", "ﬁ ½ ² ③ Ⅷ ٣ ๓ 一二三", "a\u0300\u0301\u0302b",
    "👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🇩🇪", "नमस्ते दुनिया", "สวัสดีชาวโลก", "안녕하세요 세계", "こんにちは世界。カタカナ", "Привет, мир!", "שלום עולם",
    "مرحبا بالعالم ١٢٣", "\u200b\u200d\ufeff\u00a0\u3000x\u2028y\u2029z\u0085w\u180e", "\x01\x02\x1f\x7f",
    "def f(x):\n    return x ** 2  # comment\n", 'for (int i = 0; i < 10; ++i) {\n\tprintf("%d\\n", a[i]);\n}\n',
    '<div class="a">&nbsp;</div>', "SELECT * FROM t WHERE a >= 10;", "1234567890", "3.14159e-10", "0x1F 1_000 1,000.50",
    "http://example.com/a?b=c&d=e#f", "user@example.com", "C:\\path\\file.txt", "a" * 200, " " * 100, "\n" * 50, "ab" * 300, "=-" * 60,
    "0" * 77, "word " * 100, "\U0001d54f\U00010330\U00011de0 \U0001fad7", "ẞßſ İıΣςσ ǅ", "don’t “quote” …—–", "x\u0327\u0308y",
    "a  b   c    d", "a \n b \n\n c\r\n\r\nd", "...!!!???", "'s 't 're 've 'm 'll 'd", "''s '' ' 's",
    "_under_score_ CamelCase snake_case HTTPServer2XX", "$100 €50 ¥3000 £2", "∑∫√∞≈≠", "\u0f0b\u0f42", "ق\u064eال\u064e",
    "Z\u0351\u036b\u0343a\u0323l\u0321g\u0344o", "ġ Ġ ▁ ▁▁ a▁b <0x41> <0x0A>", "\u212b \u00c5 ﬀ A\u030a", "\ud55c\uae00 \u1112\u1161\u11ab",
    "I saw a girl with a telescope.", "\u2581\u2581 \u2581", "the1st 2nd3rd x4y", "tab\tsep\tvalues\n1\t2\t3\n", "ÀÉÎÕÜ àéîõü ÿŸ", "中文English混合text123數字",
]

WORDS = ("the of and to in is was for on that with as it at by from an be or are this which have not had but they you we can there been "
         "their more when will would who so no if out about up said what its into than them only some could time these two may then do "
         "first any my now such like our over man me even most made after also did many before must through back years where much your "
         "way well down should because each just those people mr how too little state good very make world still own see men work long "
         "get here between both life being under never day same another know while last might us great old year off come since against "
         "go came right used take three").split()

RANGES = [(0xa0, 0x17f), (0x370, 0x3ff), (0x400, 0x4ff), (0x590, 0x5ff), (0x600, 0x6ff), (0x900, 0x97f), (0xe00, 0xe7f), (0x1100, 0x11ff),
          (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2070, 0x20cf), (0x2100, 0x218f), (0x2190, 0x22ff), (0x2460, 0x24ff), (0x2500, 0x27bf),
          (0x3000, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xfb00, 0xfdff), (0xfe00, 0xfe0f), (0xff00, 0xffef), (0x1f300, 0x1faff),
          (0x1d400, 0x1d7ff), (0x10000, 0x10fff), (0x20000, 0x2a6df), (0x300, 0x36f), (1, 0x1f), (0xe0000, 0xe01ef), (0x11d00, 0x11dff)]

POOLS = ([string.ascii_lowercase] * 6 + [string.ascii_letters] * 2 + [string.digits] * 2 + [string.punctuation] * 2 + [" "] * 4 +
         ["\n", "\t", "\r\n", "  ", "    ", "\n\n"])


def corpus(special, count, seed=20261130, scale=1.0):
    """`count` texts without NUL: FIXED, the special tokens in awkward places, and random ones about `scale` times the usual length."""
    r = random.Random(seed)
    length = lambda top: r.randint(1, max(2, int(top * scale)))

    def word():
        kind = r.random()
        if kind < .55:
            return r.choice(WORDS)
        if kind < .7:
            return r.choice(WORDS).capitalize()
        if kind < .75:
            return r.choice(WORDS).upper()
        if kind < .85:
            return "".join(r.choice(string.ascii_lowercase) for _ in range(r.randint(1, 12)))
        if kind < .92:
            return str(r.randint(0, 10 ** r.randint(1, 9)))
        return "".join(r.choice(string.ascii_letters + string.digits + "_-.'") for _ in range(r.randint(1, 10)))

    texts = list(FIXED)
    for token in special[:24]:
        texts += [token, "a" + token + "b", " " + token + " ", token + token, token[:-1], token[1:]]
    while len(texts) < count:
        kind, parts = r.random(), []
        if kind < .35:  # prose
            for _ in range(length(20)):
                parts += [word(), r.choice([" "] * 8 + [", ", ". ", "\n", " - ", "  ", "'s ", "! ", "? ", "\t", ": ", "; ", "(", ")", "\n\n"])]
        elif kind < .5:  # ASCII soup
            parts = [r.choice(r.choice(POOLS)) for _ in range(length(60))]
        elif kind < .75:  # one script, or a few
            low, high = r.choice(RANGES)
            for _ in range(length(30)):
                if r.random() < .2:
                    low, high = r.choice(RANGES)
                parts.append(chr(r.randint(low, high)) if r.random() < .85 else r.choice(" \n1a.'"))
        elif kind < .85:  # any code points
            parts = [chr(c) for c in (r.randint(1, 0x10ffff) for _ in range(length(25))) if not 0xd800 <= c <= 0xdfff]
        elif kind < .93 and special:  # special tokens among words
            parts = [r.choice([r.choice(special), word(), " ", "\n", word() + " "]) for _ in range(length(8))]
        else:  # runs
            parts = [r.choice(" \t\n\r\u00a0\u3000ab1.=-_#*'\u0301😀中") * r.randint(1, 20) for _ in range(length(6))]
        texts.append("".join(parts))
    return texts[:max(count, len(FIXED))]
