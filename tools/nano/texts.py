"""Clean text out of unpacked packages: one recipe a kind of file. Used by corpus.py."""
import gzip
import html
import itertools
import json
import re

from selectolax.lexbor import LexborHTMLParser

SKIPPED_PATHS = ("_sources", "_modules", "_static", "genindex", "py-modindex", "search", "changelog", "ChangeLog")
MAIN = ("div[role=main]", "main", "div.body", "#apicontent", "#page-content", "body")
# A browser's furniture: menus, permalinks, tables of contents.
FURNITURE = ("script,style,nav,header,footer,.sphinxsidebar,.headerlink,.navheader,.navfooter,.toc,.contents,"
             ".toctree-wrapper,#toc,.nav-wrapper,#menu-bar,.toplang,.bottomlang,#quickview,.fancy_toc,.menu")
MIN_DOCUMENT = 400  # characters
MAX_DOCUMENT = 40_000


def html_text(source):
    """Paragraphs are parted by empty lines; <pre> keeps its lines."""
    tree = LexborHTMLParser(source)
    for node in tree.css(FURNITURE):
        node.decompose()
    main = next((found for found in map(tree.css_first, MAIN) if found), None)
    if main is None:
        return ""
    parts = re.split(r"(?is)<pre\b[^>]*>(.*?)</pre>", main.html)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            part = re.sub(r"\s+", " ", part)
            part = re.sub(r"(?i) ?<(/?(p|h\d|table|section|div|dl|ul|ol|blockquote|article))\b[^>]*> ?", "\n\n", part)
            part = re.sub(r"(?i) ?<li\b[^>]*> ?(\s*\n)*", "\n- ", part)
            part = re.sub(r"(?i) ?<(br|tr|dt|dd|/li)\b[^>]*> ?", "\n", part)
            part = re.sub(r"(?i)</t[dh]>", "  ", part)
        parts[i] = html.unescape(re.sub(r"<[^>]*>", "", part))
    return tidy("\n\n".join(parts))


def tidy(text):
    text = text.replace("¶", "").replace("\u00a0", " ").replace("\r\n", "\n").replace("\t", "    ")
    text = re.sub(r"[ \u200b]+\n", "\n", text)
    text = re.sub(r"\n- *(?=\n)", "", text)
    text = re.sub(r"\n\n+- ", "\n- ", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def unwrap(text):
    """Joins the lines of each paragraph."""
    return tidy("\n\n".join(re.sub(r"\s+", " ", part).strip() for part in re.split(r"\n\s*\n", text)))


def pieces(text, limit=MAX_DOCUMENT):
    """A long text in pieces of whole paragraphs."""
    piece, size = [], 0
    for part in text.split("\n\n"):
        if size + len(part) > limit and piece:
            yield "\n\n".join(piece)
            piece, size = [], 0
        piece.append(part)
        size += len(part) + 2
    yield "\n\n".join(piece)


def from_html(path):
    yield from pieces(html_text(path.read_text(errors="ignore")))


def from_text(path):
    """Plain prose; one line may hold a whole address, which is cut at sentences."""
    text = tidy(path.read_text(errors="ignore"))
    if text.count("\n") * 2000 < len(text):
        sentences = re.split(r"(?<=[.?!]) (?=[A-Z])", text)
        text = "\n\n".join(" ".join(sentences[i:i + 5]) for i in range(0, len(sentences), 5))
    else:
        text = unwrap(text)
    yield from pieces(text)


def from_gutenberg(path):
    """Verse keeps its lines. The publisher's inserted notices go."""
    text = path.read_text(encoding="latin-1").replace("\r\n", "\n")
    text = re.sub(r"(?s)<<.*?>>", "", text)
    start = re.search(r"\*END\*?THE SMALL PRINT.*\n|\*\*\* ?START OF.*\n", text)
    end = re.search(r"\n.*(End of (The|this) Project Gutenberg|\*\*\* ?END OF).*", text, re.I)
    text = text[start.end() if start else 0:end.start() if end else len(text)]
    text = "\n\n".join(p for p in text.split("\n\n") if "gutenberg" not in p.lower() and "etext" not in p.lower())
    yield from pieces(tidy(text), 12_000)


def from_verses(path):
    """One document a chapter."""
    verses = map(json.loads, path.read_text().splitlines())
    for (book, chapter), group in itertools.groupby(verses, lambda v: (v["book"], v["chapter"])):
        yield f"{book}, chapter {chapter}\n\n" + " ".join(v["text"] for v in group)


def from_dictionary(path):
    with gzip.open(path, "rt", errors="ignore") as file:
        text = file.read()
    entries = re.split(r"\n(?=\S)", text.split("00-database-info", 1)[0] if text.startswith("00-database-info") else text)
    lines = [entry for entry in entries if not entry.startswith("00-database")]
    body = re.sub(r"[{}]", "", "\n\n".join(re.sub(r"\n +", " ", entry).strip() for entry in lines))
    yield from pieces(tidy(body), 12_000)


def from_rst(path):
    text = path.read_text(errors="ignore").replace("``", "`").replace("**", "")
    name = " ".join(path.with_suffix("").parts[-2:])
    yield tidy(f"{name}\n\n{text}")


def from_code(path):
    text = path.read_text(errors="ignore")
    if not any(part in path.parts for part in ("test", "tests", "idlelib", "encodings", "lib2to3", "pydoc_data")):
        yield from pieces(tidy(text), 12_000)


def from_api_prose(path):
    """The documentation strings of one botocore service."""
    with gzip.open(path, "rt") as file:
        service = json.load(file)
    texts = {}

    def collect(node):
        if isinstance(node, dict):
            doc = node.get("documentation")
            if isinstance(doc, str) and len(doc) > 120:
                texts[re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", doc))).strip()] = None
            for value in node.values():
                collect(value)

    collect(service)
    yield from pieces("\n\n".join(re.sub(r" ([.,;:)])", r"\1", text) for text in texts), 6_000)


RECIPES = {"html": (from_html, ".html"), "text": (from_text, ".txt"), "gutenberg": (from_gutenberg, ".txt"),
           "verses": (from_verses, ".jsonl"), "dictionary": (from_dictionary, ".dz"), "rst": (from_rst, ".rst"),
           "code": (from_code, ".py"), "api_prose": (from_api_prose, ".gz")}


def files_of(source, folder):
    """The files of one source that its recipe reads, in order. `folder`: the unpacked package."""
    suffix = source.get("suffix", RECIPES[source["recipe"]][1])
    for part in source["folders"]:
        base = folder / part
        for path in [base] if base.is_file() else sorted(base.rglob("*" + suffix)):
            inner = str(path.relative_to(folder))
            if not any(word in inner for word in (*SKIPPED_PATHS, *source.get("skip", []))) and path.is_file():
                yield path


def is_prose(paragraph):
    letters = sum(c.isalpha() or c == " " for c in paragraph)
    return paragraph.count(" ") >= 11 and letters >= 0.8 * len(paragraph)
