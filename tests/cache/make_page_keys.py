#!/usr/bin/env python3
"""Writes page_keys.json: names of KV pages, computed with nothing but hashlib and hmac.

    python3 tests/cache/make_page_keys.py > tests/cache/page_keys.json

Independent of the C++ code, which must reproduce every key (src/cache/page_key_test.cc). The
arithmetic, all numbers little endian:
    fingerprint = SHA-256("dkv1.model" | each field: u32 length, bytes)
    root        = HMAC-SHA-256(secret, "dkv1.root" | u64 generation | fingerprint | u32 page_tokens)
    narrowed    = HMAC-SHA-256(root, "dkv1.salt" | salt)
    switched    = SHA-256("dkv1.switch" | last public page | tenant's root)
    page        = SHA-256("dkv1.page" | key before | u32 n | tokens | u32 q | q media)
    media       = u32 offset in page | u32 start in item | u32 length | media digest
    digest      = SHA-256("dkv1.media" | preprocessor's fingerprint | original bytes)
"""

import hashlib
import hmac
import json
import struct

PAGE = 64


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def u32(value):
    return struct.pack("<I", value)


def fingerprint(fields):
    return sha256(b"dkv1.model", *(u32(len(f)) + f for f in fields))


def root_of(name):
    message = b"dkv1.root" + struct.pack("<Q", name["generation"]) + fingerprint(name["fields"])
    root = hmac.new(name["secret"], message + u32(PAGE), hashlib.sha256).digest()
    if "salt" in name:
        root = hmac.new(root, b"dkv1.salt" + name["salt"], hashlib.sha256).digest()
    return root


def spans_in_page(items, begin, end):
    """The parts of (position, length, preprocessor, bytes) items inside positions [begin, end)."""
    spans = []
    for position, length, preprocessor, original in items:
        first, last = max(position, begin), min(position + length, end)
        if first < last:
            spans.append((first - begin, first - position, last - first, preprocessor, original))
    return spans


def page_key(previous, tokens, spans):
    parts = [b"dkv1.page", previous, u32(len(tokens))]
    parts += [struct.pack("<i", t) for t in tokens]
    parts.append(u32(len(spans)))
    for offset, start, length, preprocessor, original in spans:
        parts += [u32(offset), u32(start), u32(length),
                  sha256(b"dkv1.media", preprocessor, original)]
    return sha256(*parts)


def vector(title, name, tokens, items=(), public=None, public_pages=0):
    """`public`: the name of the root whose chain the first public_pages pages belong to."""
    key = root_of(public) if public else root_of(name)
    keys, media = [], []
    for begin in range(0, len(tokens), PAGE):
        if public and begin == public_pages * PAGE:
            key = sha256(b"dkv1.switch", key, root_of(name))
        spans = spans_in_page(items, begin, begin + PAGE)
        key = page_key(key, tokens[begin:begin + PAGE], spans)
        keys.append(key.hex())
        media += [{"page": begin // PAGE, "offset": s[0], "start": s[1], "length": s[2],
                   "preprocessor": s[3].hex(), "original": s[4].hex()} for s in spans]
    result = {"title": title, "root": shown(name), "tokens": tokens, "media": media, "keys": keys}
    if public:
        result["public_root"], result["public_pages"] = shown(public), public_pages
    return result


def shown(name):
    result = {"secret": name["secret"].hex(), "generation": name["generation"],
              "fields": [f.hex() for f in name["fields"]]}
    if "salt" in name:
        result["salt"] = name["salt"].hex()
    return result


def tokens(count, seed, vocab=129280):
    """A linear congruence; any numbers do, as long as they are written into the file."""
    state, out = seed, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        out.append((state >> 8) % vocab)
    return out


FIELDS = [b"deepseek-v4.1-flash", bytes(range(32)), bytes(range(32, 64)), b"kv1:40x512:fp4", b"yarn",
          b"", struct.pack("<I", 1), b"vision-1"]
TENANT = {"secret": bytes(range(100, 132)), "generation": 0, "fields": FIELDS}
PUBLIC = {"secret": bytes(32), "generation": 7, "fields": FIELDS}
PREPROCESSOR = hashlib.sha256(b"resize 1").digest()
OTHER_PREPROCESSOR = hashlib.sha256(b"resize 2").digest()
CAT, DOG = b"bytes of a cat", b"bytes of a dog"


def with_field(index, value):
    return {**TENANT, "fields": FIELDS[:index] + [value] + FIELDS[index + 1:]}


def image(position, length, original=CAT, preprocessor=PREPROCESSOR):
    return (position, length, preprocessor, original)


def text_vectors():
    for count in (1, 2, 63, 64, 65, 127, 128, 129, 200, 320):
        yield vector(f"text of {count} tokens", TENANT, tokens(count, 1))
    yield vector("zeros", TENANT, [0] * 64)
    yield vector("the largest id", TENANT, [2**31 - 1] * 64)
    yield vector("negative ids", TENANT, [-1, -2] * 32)
    yield vector("one token changed in the first page", TENANT, [7] + tokens(128, 1)[1:])
    yield vector("two tokens swapped", TENANT, [tokens(64, 1)[i ^ 1] for i in range(64)])


def media_vectors():
    text = tokens(192, 2)
    cases = {
        "image inside a page": [image(70, 10)],
        "image at a page's begin": [image(64, 10)],
        "image up to a page's end": [image(54, 10)],
        "image over a border": [image(60, 10)],
        "image of one whole page": [image(64, 64)],
        "image over three pages": [image(10, 150)],
        "image of one token before a border": [image(63, 1)],
        "image of one token behind a border": [image(64, 1)],
        "two images in a page": [image(5, 10), image(20, 10, DOG)],
        "two images that touch": [image(5, 10), image(15, 10, DOG)],
        "two images, swapped": [image(5, 10, DOG), image(20, 10)],
        "two images that meet at a border": [image(50, 14), image(64, 14, DOG)],
        "another image": [image(70, 10, DOG)],
        "the same image twice": [image(5, 10), image(70, 10)],
        "another preprocessor": [image(70, 10, CAT, OTHER_PREPROCESSOR)],
        "an empty image": [image(70, 10, b"")],
    }
    for title, items in cases.items():
        yield vector(title, TENANT, text, items)
    yield vector("image in a partial page", TENANT, text[:100], [image(90, 10)])


def root_vectors():
    text = tokens(128, 3)
    names = {
        "another model": with_field(0, b"deepseek-v4.2-flash"),
        "other weights": with_field(1, bytes(32)),
        "another tokenizer": with_field(2, bytes(32)),
        "another layout": with_field(3, b"kv1:40x512:fp8"),
        "an adapter": with_field(5, hashlib.sha256(b"adapter").digest()),
        "another engine": with_field(6, struct.pack("<I", 2)),
        "a byte moved between fields": {**TENANT, "fields": [b"deepseek-v4.1-flas", b"h" + FIELDS[1]]
                                        + FIELDS[2:]},
        "no fields": {**TENANT, "fields": []},
        "another namespace": {**TENANT, "secret": bytes(range(101, 133))},
        "next generation": {**TENANT, "generation": 1},
        "a generation of 64 bits": {**TENANT, "generation": 2**40 + 5},
        "narrowed by a salt": {**TENANT, "salt": b"user-17"},
        "narrowed by another salt": {**TENANT, "salt": b"user-18"},
        "narrowed by an empty salt": {**TENANT, "salt": b""},
        "narrowed by a long salt": {**TENANT, "salt": bytes(range(200))},
    }
    for title, name in names.items():
        yield vector(title, name, text)
    for pages in (1, 2, 3):
        yield vector(f"switch after {pages} public pages", TENANT, tokens(230, 4), (), PUBLIC, pages)
    narrowed = {**TENANT, "salt": b"user-17"}
    yield vector("switch to a narrowed root", narrowed, tokens(128, 4), (), PUBLIC, 1)
    yield vector("switch with an image over it", TENANT, tokens(128, 4), [image(60, 20)], PUBLIC, 1)


def main():
    vectors = [*text_vectors(), *media_vectors(), *root_vectors()]
    lines = ",\n".join(json.dumps(v, separators=(",", ":")) for v in vectors)
    print(f'{{"page_tokens":{PAGE},"vectors":[\n{lines}\n]}}')


main()
