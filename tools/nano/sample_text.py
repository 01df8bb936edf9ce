"""Made-up text in the shapes that the bundled model meets: calls, JSON, sums, facts, small talk. The vocabulary is learned
from it beside real prose, so that a tag or a key and its quotes become few tokens. Nothing is trained on it."""
import json
import pathlib
import re

WORDS_FILE = pathlib.Path(__file__).resolve().parents[2] / "src/eval/words.cc"


def word_lists():
    """The exercises' own words: {"FirstNames": ["Anna", ...], ...}."""
    lists = re.findall(r"string_view k(\w+)\[\] = \{(.*?)\};", WORDS_FILE.read_text(), re.S)
    return {name: re.findall(r'"([^"]+)"', body) for name, body in lists}


WORDS = word_lists()
NAMES, CITIES, THINGS, ANIMALS = WORDS["FirstNames"], WORDS["Cities"], WORDS["Objects"], WORDS["Animals"]
COLOURS, DAYS, MONTHS = WORDS["Colours"], WORDS["Weekdays"], WORDS["Months"]
TARGETS = "weather book flight user file event task order message account page image report table room".split()
VERBS = "get set create delete list find search send update add remove start stop open close read write convert book".split()
KEYS = """name city age email price count date id title status color active items quantity country phone address total unit
enabled tags description""".split()
SPECIAL = {"dsml": "｜DSML｜", "user": "<｜User｜>", "assistant": "<｜Assistant｜>", "system": "<｜System｜>",
           "bos": "<｜begin▁of▁sentence｜>", "eos": "<｜end▁of▁sentence｜>"}


def value(rng):
    """A text, a number, a boolean or a list."""
    return rng.choice([
        lambda: rng.choice(NAMES), lambda: rng.choice(CITIES), lambda: rng.choice(THINGS),
        lambda: f"{rng.choice(NAMES).lower()}@example.com", lambda: rng.randrange(1000), lambda: rng.random() < 0.5,
        lambda: f"20{rng.randrange(10, 40)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
        lambda: [rng.choice(COLOURS) for _ in range(rng.randrange(1, 4))], lambda: round(rng.random() * 100, 2),
        lambda: f"{rng.choice(COLOURS)} {rng.choice(THINGS)}"])()


def json_object(rng):
    data = {key: value(rng) for key in rng.sample(KEYS, rng.randrange(1, 6))}
    return json.dumps(data, indent=rng.choice([None, None, 2]))


def tool(rng):
    keys = rng.sample(KEYS, rng.randrange(1, 4))
    properties = {k: {"type": rng.choice(["string", "integer", "number", "boolean", "string"]),
                      "description": f"The {k} of the {rng.choice(TARGETS)}."} for k in keys}
    verb, target = rng.choice(VERBS), rng.choice(TARGETS)
    return {"name": f"{verb}_{target}", "description": f"{verb.capitalize()} the {target} by its {keys[0]}.",
            "parameters": {"type": "object", "properties": properties, "required": keys[:1]}}


def calls(rng):
    mark, text = SPECIAL["dsml"], ""
    for _ in range(rng.randrange(1, 3)):
        made = tool(rng)
        text += f"<{mark} invoke name=\"{made['name']}\">\n"
        for key in made["parameters"]["properties"]:
            argument = value(rng)
            plain = isinstance(argument, str)
            shown = argument if plain else json.dumps(argument)
            text += f'<{mark} parameter name="{key}" string="{str(plain).lower()}">{shown}</{mark} parameter>\n'
        text += f"</{mark} invoke>\n"
    return f"\n\n<{mark} calls>\n{text}</{mark} calls>"


def fact(rng):
    name, city, thing, n = rng.choice(NAMES), rng.choice(CITIES), rng.choice(THINGS), rng.randrange(10_000, 10_000_000)
    return rng.choice([
        f"The {thing} code of {name} is {n}.", f"The code of {name} is {n}.", f"{name} lives in {city}.",
        f"The secret number of {city} is {n}.", f"Remember: the {thing} of {name} has the number {n}.",
        f"{name} has {n % 100} {thing}s and a {rng.choice(COLOURS)} {rng.choice(ANIMALS)}.",
        f"My name is {name} and my favourite colour is {rng.choice(COLOURS)}.",
        f"{rng.choice(NAMES)} has the ticket. What is the {thing} code of {name}? Where is {name}?",
        f"{name} met a {rng.choice(ANIMALS)} on {rng.choice(DAYS)}, {rng.randrange(1, 29)} {rng.choice(MONTHS)}."])


def sum_(rng):
    a, b = rng.randrange(10_000) // rng.choice([1, 10, 100]), rng.randrange(10_000) // rng.choice([1, 10, 100])
    return rng.choice([
        f"{a} + {b} = {a + b}", f"{a} - {b} = {a - b}", f"{a % 100} * {b % 10} = {a % 100 * (b % 10)}",
        f"What is {a} plus {b}? {a + b}", f"What is {a} minus {b}? {a - b}", f"The sum of {a} and {b} is {a + b}.",
        f"{a % 100} km are {a % 100 * 1000} m.", f"Is {a} greater than {b}? {'Yes' if a > b else 'No'}.",
        f"Calculate {a} + {b}. First the ones: {a % 10} + {b % 10} = {a % 10 + b % 10}, carry {(a % 10 + b % 10) // 10}."])


def request(rng):
    words = rng.sample(THINGS + ANIMALS, rng.randrange(3, 7))
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    return rng.choice([
        f"What is the {thing} code of {name}?", f"What is a {rng.choice(ANIMALS)}?", f"Define the word {thing}.",
        f"Copy this: {' '.join(words)}", f"Sort these words: {', '.join(words)}", f"Reverse this list: {', '.join(words)}",
        f"Tell me a story about a {rng.choice(ANIMALS)} and a {rng.choice(ANIMALS)}.", "Hello, how are you?",
        "Who are you?", "What can you do?", "Thank you!", f"Where does {name} live?", "Answer with one JSON object.",
        f"Write the data about {name} as JSON.", f"How many {thing}s does {name} have?", f"Count the words: {' '.join(words)}"])


def answer(rng):
    return rng.choice([
        lambda: " ".join(rng.sample(THINGS, 4)), lambda: ", ".join(sorted(rng.sample(ANIMALS, 4))), lambda: json_object(rng),
        lambda: "I am a small language model. I can answer short questions, call tools and write JSON.",
        lambda: f"Once upon a time a {rng.choice(ANIMALS)} found a {rng.choice(COLOURS)} {rng.choice(THINGS)}.",
        lambda: str(rng.randrange(10_000_000)), lambda: calls(rng), lambda: f"The answer is {rng.randrange(1000)}.",
        lambda: "I am well, thank you. How can I help you?", lambda: f"{rng.choice(NAMES)} lives in {rng.choice(CITIES)}."])()


def conversation(rng):
    text = SPECIAL["bos"]
    if rng.random() < 0.4:
        tools = "\n".join(json.dumps(tool(rng)) for _ in range(rng.randrange(1, 4)))
        text += f"{SPECIAL['system']}You are a helpful assistant.\n\n### Schemas\n\n{tools}\n"
    for _ in range(rng.randrange(1, 4)):
        thought = f"<think>The user asks about a {rng.choice(THINGS)}.</think>" if rng.random() < 0.4 else "</think>"
        text += f"{SPECIAL['user']}{request(rng)}{SPECIAL['assistant']}{thought}{answer(rng)}{SPECIAL['eos']}"
    return text


def sample_texts(rng, count):
    """`count` texts of about 500 characters, all shapes in turn."""
    for i in range(count):
        shape = (conversation, json_object, fact, sum_)[i % 4]
        yield "\n".join(shape(rng) for _ in range(1 if shape is conversation else 8))
