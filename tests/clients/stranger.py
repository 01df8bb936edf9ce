"""Somebody who knows the address and nothing else, and README's own examples.

DI_PLAIN_URL is `serve` without further flags. Usage: stranger.py README FOLDER, which
holds node_modules and takes the examples as files.
"""

import os
import re
import subprocess
import sys

import openai

URL = os.environ["DI_PLAIN_URL"]
README_URL = "http://127.0.0.1:8000"
RUNNERS = {"bash": ["bash", "-eu"], "python": [sys.executable], "javascript": ["node"]}
ENDINGS = {"bash": "sh", "python": "py", "javascript": "mjs"}

failures = 0


def report(title, error):
    global failures
    failures += error is not None
    print(f"failed {title}: {' '.join(error.split())[:400]}" if error else f"passed {title}",
          flush=True)


def strangers_client():
    """base_url, any key, the one model that is listed: content within 64 tokens."""
    client = openai.OpenAI(base_url=URL + "/v1", api_key="anything", max_retries=0)
    model = client.models.list().data[0].id
    answer = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "Hello!"}], max_tokens=64
    )
    content = answer.choices[0].message.content
    return None if content and content.strip() else f"no content within 64 tokens: {answer}"


def snippets(readme):
    """(language, text) of the fenced blocks under each heading that contains "serve"."""
    inside, language, lines = False, None, []
    for line in open(readme, encoding="utf-8"):
        fence = re.match(r"```(\w*)\s*$", line)
        if language is None and line.startswith("#"):
            inside = "serve" in line.lower()
        elif language is None and fence and inside:
            language, lines = fence.group(1) or "text", []
        elif language is not None and fence:
            if language in RUNNERS:
                yield language, "".join(lines)
            language = None
        elif language is not None:
            lines.append(line)


def run_snippet(language, text, folder):
    """As written, but for the address where another server has the port."""
    path = os.path.join(os.path.abspath(folder), f"snippet.{ENDINGS[language]}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(README_URL, URL))
    result = subprocess.run(
        RUNNERS[language] + [path], cwd=folder, capture_output=True, text=True, timeout=60
    )
    if result.returncode != 0:
        return f"exit {result.returncode}: {result.stderr or result.stdout}"
    return None if result.stdout.strip() else "prints nothing"


def main(readme, folder):
    report("stranger: base_url and any key give content within 64 tokens", strangers_client())
    seen = set()
    for language, text in snippets(readme):
        if "./run.sh" in text:
            continue  # the server that runs already
        seen.add(language)
        report(f"README: {language}: {text.strip().splitlines()[0][:60]}",
               run_snippet(language, text, folder))
    missing = set(RUNNERS) - seen
    if missing:
        report("README: a snippet in each language", f"none in {sorted(missing)}")
    return failures


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
