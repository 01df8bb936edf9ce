"""Definitions out of WordNet's database files (dict/data.*, index.*, index.sense). Used by corpus.py and tokenizer.py."""
import collections
import math
import re

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
MAX_WORDS = 16      # of a definition
MIN_CUT_WORDS = 4   # a definition is not cut shorter than this
COMMON = re.compile(r"[a-z]{3,14}")
PLAIN = re.compile(r"[A-Za-z][A-Za-z ,'-]*")
MIN_WORDS = 3
MIN_NOUN_SHARE = 0.3  # of the count of the word as another part of speech
# Definitions of words that nobody should be taught to say.
UNWANTED = re.compile(r"\b(slur|offensive|obscene|disparag\w*|vulgar\w*|derogatory|insulting|ethnic|vagina|penis|sexual\w*|"
                      r"intercourse|prostitut\w*|genital\w*|copulat\w*|rape|excrement|negroid|homosexual\w*|suicide|negro|whores?)\b", re.I)
DANGLING = {"a", "an", "the", "of", "or", "and", "to", "in", "on", "by", "for", "with", "that", "which", "is", "are",
            "from", "as", "at", "who", "its", "their", "used", "especially", "usually", "often", "into", "whose", "his",
            "means", "make", "so", "has", "it", "be", "than", "more", "very", "some", "any", "all", "but", "not", "can"}
# Where a definition may end early, best first: after a clause, then before a phrase.
BOUNDARY = re.compile(r",$|^(that|which|who|whose|when|where|especially|usually|such|used|having|consisting|containing)$")
PHRASE = re.compile(r"^(with|in|by|from|for|as|on|at|or|and|to|of)$")

Sense = collections.namedtuple("Sense", "word part definition example synonyms count")


def bare_definition(gloss):
    """The definition without examples, remarks in parentheses and second halves."""
    text = gloss.split('; "')[0]
    while re.search(r"\([^()]*\)", text):
        text = re.sub(r"\s*\([^()]*\)", "", text)
    return re.sub(r"\s+", " ", text.split(";")[0]).strip(" ,:;.")


def short_definition(gloss):
    """At most MAX_WORDS words, cut where a clause or a phrase ends."""
    words = bare_definition(gloss).split()
    if len(words) <= MAX_WORDS:
        return " ".join(words)
    for ends in (BOUNDARY, PHRASE):
        for cut in range(MAX_WORDS, MIN_CUT_WORDS, -1):
            if ends.search(words[cut]) or words[cut - 1].endswith(","):
                return finished(words[:cut])
    return finished(words[:MAX_WORDS])


def finished(words):
    while len(words) > 1 and words[-1].strip(",").lower() in DANGLING:
        words = words[:-1]
    return " ".join(words).rstrip(",:;")


def read_counts(folder):
    """(lemma, part's letter, offset) -> how often the sense was met in tagged texts."""
    letters = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
    counts = {}
    for line in (folder / "index.sense").read_text().splitlines():
        key, offset, _, count = line.split()
        lemma, rest = key.split("%", 1)
        counts[lemma, letters[rest[0]], offset] = int(count)
    return counts


def read_senses(folder):
    """All (word, synset) pairs, in the files' order: Sense, with the word as it is written."""
    counts = read_counts(folder)
    for part, letter in PARTS.items():
        for line in (folder / f"data.{part}").read_text().splitlines():
            if line.startswith("  ") or " | " not in line:
                continue
            head, gloss = line.split(" | ", 1)
            fields = head.split()
            spelled = [fields[4 + 2 * i].split("(")[0] for i in range(int(fields[3], 16))]
            words = [word.replace("_", " ") for word in spelled]
            found = re.search(r'; "([^"]+)"', gloss)
            for lemma, word in zip(spelled, words):
                others = [w for w in words if w != word]
                yield fields[0], Sense(word, part, gloss.strip(), found.group(1) if found else "", others,
                                       counts.get((lemma.lower(), letter, fields[0]), 0))


def first_offsets(folder):
    """(lemma, part) -> the offset of its most frequent sense, which the index lists first."""
    first = {}
    for part in PARTS:
        for line in (folder / f"index.{part}").read_text().splitlines():
            if not line.startswith("  "):
                fields = line.split()
                first[fields[0], part] = fields[-int(fields[2])]
    return first


def glossary(folder, frequency, core_size):
    """-> [(Sense with a short definition, core)]: common words, each with its first sense. The core_size most common
    nouns are core and come first. frequency: word -> count in the corpus; a word must be known there or in the tagged
    texts that the senses were counted in."""
    first = first_offsets(folder)
    entries, strongest = {}, collections.Counter()  # word -> the count of its most frequent sense, any part
    for offset, sense in read_senses(folder):
        key = sense.word, sense.part
        strongest[sense.word] = max(strongest[sense.word], sense.count)
        if first.get(key) == offset and key not in entries and is_common(sense, first, frequency):
            definition = short_definition(sense.definition)
            if teaches(definition, sense):
                entries[key] = sense._replace(definition=definition)

    def rank(sense):
        met = math.log1p(frequency.get(sense.word, 0))
        known = 2 * math.log1p(sense.count) + met
        if sense.count < MIN_NOUN_SHARE * strongest[sense.word]:  # "deaf" is hardly a noun
            known = 0
        elif not sense.count:  # the word was met, but perhaps as another part of speech
            known = 0 if any((sense.word, part) in first for part in PARTS if part != sense.part) else met / 2
        return sense.part != "noun", -known, sense.word

    ranked = sorted(entries.values(), key=rank)
    return [(sense, sense.part == "noun" and i < core_size) for i, sense in enumerate(ranked)]


def is_common(sense, lemmas, frequency):
    """lemmas: has (word, part) for each."""
    word = sense.word
    plural = word.endswith("s") and (word[:-1], sense.part) in lemmas
    return COMMON.fullmatch(word) and not plural and (sense.count or frequency.get(word, 0) >= 3)


def teaches(definition, sense):
    """A few plain words, without the word itself."""
    words = definition.lower().split()
    return (len(words) >= MIN_WORDS and PLAIN.fullmatch(definition) and sense.word not in words
            and not UNWANTED.search(sense.definition))


def sense_line(sense):
    """One line of running text: the whole definition, an example, synonyms."""
    line = f"{sense.word} ({sense.part}): {bare_definition(sense.definition)}."
    if sense.example:
        line += f" Example: {sense.example}."
    if sense.synonyms:
        line += f" Synonyms: {', '.join(sense.synonyms[:6])}."
    return line
