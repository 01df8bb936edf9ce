"""Random JSON Schemas of the supported kind, and values that they take, spelled as the grammars spell them."""
import json
import random
import string

FORMATS = {
    "date": ["2024-02-29", "1999-12-31"], "time": ["23:59:59Z", "01:02:03.5+01:00"],
    "date-time": ["2024-02-29T12:00:00Z"], "duration": ["P1Y2M", "PT5M"], "email": ["a.b@example.org"],
    "hostname": ["www.example.org"], "ipv4": ["127.0.0.1"], "ipv6": ["::1", "1:2:3:4:5:6:7:8"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"], "uri": ["https://example.org/a?b#c"],
    "json-pointer": ["/a/0"],
}
PATTERNS = {
    "^[a-z]{1,10}$": ["a", "abcdefghij"], "^[A-Z][a-z]*( [A-Z][a-z]*)?$": ["Ann", "Ann Lee"],
    "^\\d{3}-\\d{4}$": ["555-0123"], "^(yes|no|maybe)$": ["no"], "[0-9]": ["a1b", "7"], "^x": ["x", "xyz\n"],
    "^[^\"\\\\]+$": ["plain"], "^\\w+\\.(py|cc)$": ["main_2.py"],
}
WORDS = ["name", "id", "value", "kind", "size", "items", "a b", "quote\"", "\u00e4\u20ac", "x1", "color", "next"]


class Schemas:
    """One seed, one sequence of (schema, [values])."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def next(self):
        """A schema and some valid values."""
        self.defs = {}
        schema, make = self.schema(0)
        if self.defs:
            schema = {**schema, "$defs": self.defs}
        return schema, [make() for _ in range(3)]

    def schema(self, depth):
        kinds = [self.string, self.integer, self.number, self.enum, self.constant, self.boolean, self.null]
        if depth < 4:
            kinds += [self.object] * 6 + [self.array] * 3 + [self.any_of, self.all_of, self.one_of, self.typed_list,
                                                             self.ref, self.open_object, self.conditional]
        if depth == 0:
            kinds = [self.object] * 5 + kinds
        return self.random.choice(kinds)(depth)

    def text(self, low=0, high=12):
        letters = string.ascii_letters + " \"\\\n\t/{}[]:,\u00e9\u4e2d\U0001f600"
        return "".join(self.random.choice(letters) for _ in range(self.random.randint(low, high)))

    def string(self, _):
        r = self.random
        kind = r.randrange(6)
        if kind == 0:
            name = r.choice(list(FORMATS))
            return {"type": "string", "format": name}, lambda: r.choice(FORMATS[name])
        if kind == 1:
            pattern = r.choice(list(PATTERNS))
            return {"type": "string", "pattern": pattern}, lambda: r.choice(PATTERNS[pattern])
        if kind == 2:
            low = r.randint(0, 5)
            high = low + r.randint(0, 60)
            return ({"type": "string", "minLength": low, "maxLength": high}, lambda: self.text(low, min(high, low + 5)))
        if kind == 3:
            return {"type": "string", "pattern": "^[a-z]*$", "maxLength": 5}, lambda: r.choice(["", "abc", "abcde"])
        return {"type": "string"}, self.text

    def integer(self, _):
        r = self.random
        low, high = sorted(r.choice([r.randint(-20, 20), r.randint(-10**6, 10**6), r.randint(-10**12, 10**12)])
                           for _ in range(2))
        kind = r.randrange(5)
        if kind == 0:
            return {"type": "integer"}, lambda: r.randint(-10**9, 10**9)
        if kind == 1:
            return {"type": "integer", "minimum": low, "maximum": high}, lambda: r.randint(low, high)
        if kind == 2:
            return {"type": "integer", "exclusiveMinimum": low}, lambda: low + r.randint(1, 1000)
        if kind == 3:
            of = r.randint(2, 12)
            return {"type": "integer", "multipleOf": of}, lambda: of * r.randint(-1000, 1000)
        return {"type": "integer", "maximum": high}, lambda: high - r.randint(0, 1000)

    def number(self, _):
        r = self.random
        low = round(r.uniform(-1000, 1000), r.randint(0, 4))
        if r.randrange(2):
            return {"type": "number"}, lambda: r.choice([0, -1.5, 1e20, 3, 0.25])
        key = r.choice(["minimum", "exclusiveMinimum"])
        return {"type": "number", key: low, "maximum": low + 10}, lambda: round(low + r.uniform(0.01, 9.9), 4)

    def enum(self, _):
        values = self.random.sample(["red", "green", "\"q\"", 1, -2.5, True, None, [1, "a"], {"k": [None]}, ""], 4)
        return {"enum": values}, lambda: self.random.choice(values)

    def constant(self, _):
        value = self.random.choice(["fixed", 7, False, [1], {"a": {}}])
        return {"const": value}, lambda: value

    def boolean(self, _):
        return {"type": "boolean"}, lambda: self.random.choice([True, False])

    def null(self, _):
        return {"type": "null"}, lambda: None

    def typed_list(self, _):
        return {"type": ["string", "integer", "null"]}, lambda: self.random.choice(["s", 3, None])

    def any_of(self, depth):
        parts = [self.schema(depth + 1) for _ in range(2)]
        return {"anyOf": [p for p, _ in parts]}, lambda: self.random.choice(parts)[1]()

    def one_of(self, depth):
        inner = [self.schema(depth + 2) for _ in range(2)]
        branches = [{"type": "object", "properties": {"kind": {"const": name}, "v": schema},
                     "required": ["kind", "v"]} for name, (schema, _) in zip("ab", inner)]

        def make():
            i = self.random.randrange(2)
            return {"kind": "ab"[i], "v": inner[i][1]()}
        return {"oneOf": branches}, make

    def all_of(self, depth):
        (a, make_a), (b, make_b) = self.object(depth + 1, WORDS[:5]), self.object(depth + 1, WORDS[5:])
        for part in (a, b):
            part.pop("additionalProperties", None)
        return {"allOf": [a, b]}, lambda: {**make_a(), **make_b()}

    def ref(self, depth):
        name = f"d{len(self.defs)}"
        self.defs[name] = True
        leaf, make_leaf = self.schema(depth + 2)
        self.defs[name] = {"type": "object", "properties": {"leaf": leaf, "next": {"$ref": f"#/$defs/{name}"}},
                           "required": ["leaf"], "additionalProperties": False}

        def make(level=0):
            value = {"leaf": make_leaf()}
            if level < 2 and self.random.randrange(2):
                value["next"] = make(level + 1)
            return value
        return {"$ref": f"#/$defs/{name}"}, make

    def open_object(self, depth):
        schema, make = self.schema(depth + 1)
        pattern = self.random.randrange(2)
        out = {"type": "object", "additionalProperties": schema}
        if pattern:
            out["patternProperties"] = {"^n": {"type": "integer"}}

        def build():
            value = {w: make() for w in self.random.sample(WORDS, 2) if not w.startswith("n")}
            if pattern:
                value["n1"] = 5
            return value
        return out, build

    def conditional(self, depth):
        schema, make = self.schema(depth + 2)
        out = {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "extra": schema}, "required": ["kind"],
               "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["extra"]}}
        return out, lambda: self.random.choice([{"kind": "b"}, {"kind": "a", "extra": make()}])

    def object(self, depth, words=None):
        names = self.random.sample(words or WORDS, self.random.randint(1, 5))
        parts = {name: self.schema(depth + 1) for name in names}
        required = [name for name in names if self.random.randrange(2)]
        schema = {"type": "object", "properties": {name: part for name, (part, _) in parts.items()}}
        if required:
            schema["required"] = required
        if self.random.randrange(2):
            schema["additionalProperties"] = False

        def make():
            return {name: make_part() for name, (_, make_part) in parts.items()
                    if name in required or self.random.randrange(2)}
        return schema, make

    def array(self, depth):
        r = self.random
        part, make_part = self.schema(depth + 1)
        if r.randrange(4) == 0:
            first, make_first = self.schema(depth + 1)
            return ({"type": "array", "prefixItems": [first], "items": part, "minItems": 1},
                    lambda: [make_first()] + [make_part() for _ in range(r.randint(0, 2))])
        low = r.randint(0, 2)
        high = low + r.randint(0, 4)
        return ({"type": "array", "items": part, "minItems": low, "maxItems": high},
                lambda: [make_part() for _ in range(r.randint(low, high))])


def spelled(value):
    return json.dumps(value, ensure_ascii=False)
