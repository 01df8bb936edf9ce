"""Texts for comparing tokenizers: seeded, of every kind that tends to be handled differently."""
import random
import unicodedata

WHITE_SPACE = [chr(c) for c in [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
                                0x2028, 0x2029, 0x202F, 0x205F, 0x3000]]
# White space to some libraries or to the eye, but not White_Space: joiners, the Mongolian vowel separator.
ALMOST_SPACE = [chr(c) for c in (0x180E, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x1C, 0x1D, 0x1E, 0x1F)]
EMOJI = ["\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", "\U0001F44D\U0001F3FD", "1\uFE0F\u20E3",
         "\U0001F1E9\U0001F1EA", "\u2764\uFE0F\u200D\U0001F525", "\U0001F3F4\U000E0067\U000E0062\U000E007F",
         "\U0001F600", "\u263A"]
WORDS = ("the of and to in is that for it as was with be by on not he his but at are this have from or had an "
         "they which one you were all her she there would their we him been has when who will no more if out "
         "Internationalization don't I'LL we've O'Brien naïve café Straße ΟΔΥΣΣΕΥΣ Москва مرحبا שלום "
         "नमस्ते สวัสดี 안녕하세요 こんにちは カタカナ 深度求索 中文 İstanbul ſpecial ﬁne Ǆ").split()
CODE = ["def f(x):\n\treturn x + 1\n", "for (int i = 0; i < n; ++i) {\n    a[i] += b[i];\n}\n", "#include <vector>\r\n",
        '{"name": "get_weather", "arguments": {"city": "Paris"}}', "SELECT * FROM t WHERE a<>'b';--\n",
        "<div class=\"x\">&amp;</div>", "x := map[string]int{}", "$ ls -la ~/.ssh | grep \\.pub\n", "```python\n```\n"]


def assigned_characters():
    """Every assigned code point but surrogates and private use."""
    return [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]


class Generator:
    def __init__(self, seed, added_tokens):
        self.rng = random.Random(seed)
        self.characters = assigned_characters()
        self.by_category = {}
        for c in self.characters:
            self.by_category.setdefault(unicodedata.category(c), []).append(c)
        self.categories = sorted(self.by_category)
        self.blocks = [self.characters[i:i + 128] for i in range(0, len(self.characters), 128)]
        self.added_tokens = added_tokens
        self.kinds = [self.words, self.words, self.block, self.any_category, self.space, self.emoji, self.code,
                      self.number, self.punctuation, self.marks, self.controls, self.token, self.broken_token,
                      self.random_bytes, self.run, self.latin, self.cjk]

    def some(self, items, low, high):
        return "".join(self.rng.choices(items, k=self.rng.randint(low, high)))

    def words(self):
        return "".join(self.rng.choice(WORDS) + self.rng.choice([" ", " ", " ", ", ", ".\n", "  "])
                       for _ in range(self.rng.randint(1, 30)))

    def block(self):
        return self.some(self.rng.choice(self.blocks), 1, 30)

    def any_category(self):
        return "".join(self.rng.choice(self.by_category[self.rng.choice(self.categories)])
                       for _ in range(self.rng.randint(1, 30)))

    def space(self):
        return self.some(WHITE_SPACE + ALMOST_SPACE + [" ", " ", " ", "\n", "\r\n", "\t"], 1, 12)

    def emoji(self):
        return self.some(EMOJI, 1, 5)

    def code(self):
        return self.some(CODE, 1, 4)

    def number(self):
        digits = self.rng.choice(["0123456789", "0123456789", "٠١٢٣٤٥٦٧٨٩", "０１２３", "½²³①ⅣⅫ〇"])
        return self.some(digits, 1, 12) + self.rng.choice(["", ".", ",", " ", "e-7"])

    def punctuation(self):
        return self.some(self.by_category["Po"] + self.by_category["Sm"] + list("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~ \n"), 1, 12)

    def marks(self):
        marks = self.by_category["Mn"] + self.by_category["Mc"] + self.by_category["Me"]
        return "".join(self.some("aeouAÅ한 .1", 1, 2) + self.some(marks, 0, 3) for _ in range(self.rng.randint(1, 10)))

    def controls(self):
        return self.some([chr(c) for c in [*range(0x20), *range(0x7F, 0xA0)]] + ["\0", "a", " "], 1, 10)

    def token(self):
        return self.rng.choice(["", " ", "\n", "x"]) + self.rng.choice(self.added_tokens) + self.rng.choice(["", " ", "\n", "x"])

    def broken_token(self):
        token = self.rng.choice(self.added_tokens)
        cut = self.rng.randrange(len(token))
        return token[:cut] + self.rng.choice(["", " ", token]) + token[cut:]

    def random_bytes(self):
        return self.rng.randbytes(self.rng.randint(1, 40)).decode("utf-8", "replace")

    def run(self):
        return self.rng.choice(self.characters + WHITE_SPACE * 500) * self.rng.randint(2, 300)

    def latin(self):
        return self.some("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ '", 1, 60)

    def cjk(self):
        return self.some([chr(self.rng.randint(0x4E00, 0x9FFF)) for _ in range(20)] + list("。、ーぁヿ゠龥龦"), 1, 30)

    def text(self, max_parts=12):
        return "".join(self.rng.choice(self.kinds)() for _ in range(self.rng.randint(1, max_parts)))

    def texts(self, num_bytes):
        """Texts that hold num_bytes of UTF-8 in all."""
        out, size = [], 0
        while size < num_bytes:
            out.append(self.text())
            size += len(out[-1].encode())
        return out
